//! Tests of the requests that `http` makes and refuses.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use expect_test::expect;
use reqwest::dns::Resolve as _;

use super::guard::{AddressReach, HostAllowlist, HostLookup, PublicResolver, is_public};
use super::{HttpFetcher, Url};
use crate::builtin::check::{answer, server_with};
use crate::builtin::{BuiltinServer, BuiltinSettings, servers};

/// A small local server that answers by path and keeps the requests it received.
struct Fake {
    origin: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    fn start() -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Fake { origin, seen }
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// Reads one request, keeps it as lines, and answers it. A client that leaves early is no failure here.
fn serve(stream: TcpStream, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut lines, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
        lines.push(line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    lines.push(String::from_utf8(body).unwrap());
    let path = lines[0].split(' ').nth(1).unwrap().to_owned();
    seen.lock().unwrap().push(lines.join("\n"));
    drop(respond(stream, &path));
}

fn respond(mut stream: TcpStream, path: &str) -> std::io::Result<()> {
    let (status, header, body): (_, String, Vec<u8>) = match path.split_once("?to=") {
        Some((path, target)) => {
            (path.trim_start_matches('/').to_owned(), format!("location: {target}\r\n"), vec![])
        }
        None => match path {
            "/text" => ("200".to_owned(), "x-note: a\r\nx-note: b\r\n".to_owned(), "né".into()),
            "/bytes" => ("200".to_owned(), String::new(), vec![0xff, 0x00]),
            "/missing" => ("404".to_owned(), String::new(), b"no such thing".to_vec()),
            "/large" => ("200".to_owned(), String::new(), vec![b'x'; 3 * 1024 * 1024]),
            "/circle" => ("302".to_owned(), "location: /circle\r\n".to_owned(), vec![]),
            "/silent" => {
                // Holds the connection open until the client goes away.
                stream.read_exact(&mut [0]).unwrap_or_default();
                return Ok(());
            }
            _ => ("200".to_owned(), String::new(), b"ok".to_vec()),
        },
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status} x\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n")?;
    stream.write_all(&body)
}

async fn ask(server: &BuiltinServer, tool: &str, url: &str) -> Result<String, String> {
    answer(server, tool, &format!(r#"{{"url":"{url}"}}"#)).await
}

#[tokio::test]
async fn an_allowed_origin_answers() {
    let fake = Fake::start();
    let server = server_with("http", None, &[&fake.origin]);
    let shown =
        ask(&server, "get", &format!("{}/text", fake.origin)).await.unwrap().replace(&fake.origin, "");
    expect![[r#"{"url":"/text","status":200,"ok":true,"headers":{"connection":"close","content-length":"3","x-note":"a, b"},"body":"né","encoding":"utf8","truncated":false}"#]]
        .assert_eq(&shown);
    let bytes = ask(&server, "get", &format!("{}/bytes", fake.origin)).await.unwrap();
    assert!(bytes.contains(r#""body":"/wA=","encoding":"base64""#), "{bytes}");
    let missing = ask(&server, "get", &format!("{}/missing", fake.origin)).await.unwrap();
    assert!(missing.contains(r#""status":404,"ok":false"#), "{missing}");
    let head = ask(&server, "head", &format!("{}/missing", fake.origin)).await.unwrap();
    assert!(head.contains(r#""body":"""#), "{head}");
}

#[tokio::test]
async fn what_is_sent_is_what_was_given() {
    let fake = Fake::start();
    let server = server_with("http", None, &[&fake.origin]);
    let arguments = format!(
        r#"{{"url":"{}/in","headers":{{"X-Key":"k"}},"body":{{"n": 10e110, "big":1234567890123456789012345678901234567890}}}}"#,
        fake.origin
    );
    answer(&server, "post", &arguments).await.unwrap();
    let seen =
        fake.seen()[0].replace(&fake.origin[7..], "HOST").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect![[r#"
        POST /in HTTP/1.1
        accept-encoding: identity
        user-agent: pml/VERSION
        x-key: k
        content-type: application/json
        accept: */*
        host: HOST
        content-length: 61
        {"n": 10e110, "big":1234567890123456789012345678901234567890}"#]]
    .assert_eq(&seen);
    // A string is sent as it is, even an empty one or one that looks like JSON; any other value is sent as JSON.
    for (body, sent, is_json) in [
        (r#""né""#, "né", false),
        (r#""""#, "", false),
        (r#""[1]""#, "[1]", false),
        ("[1, 2]", "[1, 2]", true),
        ("null", "null", true),
    ] {
        let arguments = format!(r#"{{"url":"{}/in","body":{body}}}"#, fake.origin);
        answer(&server, "post", &arguments).await.unwrap();
        let seen = fake.seen().pop().unwrap();
        assert!(seen.ends_with(&format!("\n{sent}")), "{body}: {seen}");
        assert_eq!(seen.contains("content-type: application/json"), is_json, "{body}: {seen}");
    }
}

#[test]
fn what_sends_a_body_says_so() {
    let server = server_with("http", None, &["example.com"]);
    for tool in server.definitions() {
        let schema: serde_json::Value = serde_json::from_str(tool.input_schema.get()).unwrap();
        let sends = ["post", "put", "patch"].contains(&tool.name.as_str());
        let required = if sends { serde_json::json!(["url", "body"]) } else { serde_json::json!(["url"]) };
        assert_eq!(schema["required"], required, "{}", tool.name);
    }
}

#[tokio::test]
async fn answers_are_cut_at_the_limit_and_at_the_time() {
    let fake = Fake::start();
    let server = server_with("http", None, &[&fake.origin]);
    let large = ask(&server, "get", &format!("{}/large", fake.origin)).await.unwrap();
    assert!(large.ends_with(r#""encoding":"utf8","truncated":true}"#));
    assert!((1024 * 1024..1024 * 1024 + 500).contains(&large.len()), "{}", large.len());
    let arguments = format!(r#"{{"url":"{}/silent","timeoutMs":50}}"#, fake.origin);
    let error = answer(&server, "get", &arguments).await.unwrap_err();
    assert_eq!(error, "host `127.0.0.1` did not answer within 50 ms; set `timeoutMs` to wait longer");
}

#[tokio::test]
async fn headers_of_the_connection_and_odd_bodies_are_refused() {
    let fake = Fake::start();
    let server = server_with("http", None, &[&fake.origin]);
    for (tool, more, expected) in [
        ("get", r#""headers":{"Host":"x"}"#, "header `host` is set by the connection itself; leave it out"),
        (
            "get",
            r#""headers":{"Proxy-Authorization":"x"}"#,
            "header `proxy-authorization` is set by the connection itself; leave it out",
        ),
        ("get", r#""headers":{"a":"x\r\nb: y"}"#, "header `a` has characters that cannot be sent"),
        ("get", r#""body":"x""#, "a `GET` request has no body; use `post` to send one"),
    ] {
        let error =
            answer(&server, tool, &format!(r#"{{"url":"{}/",{more}}}"#, fake.origin)).await.unwrap_err();
        assert_eq!(error, expected);
    }
    assert_eq!(fake.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn redirects_are_followed_and_lose_what_may_be_secret() {
    let (first, second) = (Fake::start(), Fake::start());
    let server = server_with("http", None, &[&first.origin, &second.origin]);
    let arguments = format!(
        r#"{{"url":"{}/302?to={}/text","headers":{{"Authorization":"Bearer s","X-Api-Key":"s","Accept":"text/plain"}},"body":"b"}}"#,
        first.origin, second.origin
    );
    let told = answer(&server, "post", &arguments).await.unwrap();
    assert!(told.starts_with(&format!(r#"{{"url":"{}/text""#, second.origin)), "{told}");
    let seen = second.seen()[0].to_lowercase();
    assert!(seen.starts_with("get /text"), "{seen}");
    assert!(
        seen.contains("accept: text/plain") && !seen.contains("bearer") && !seen.contains("x-api-key"),
        "{seen}"
    );

    let same =
        format!(r#"{{"url":"{0}/307?to=/text","headers":{{"X-Api-Key":"s"}},"body":"b"}}"#, first.origin);
    answer(&server, "put", &same).await.unwrap();
    let seen = first.seen().pop().unwrap();
    assert!(
        seen.starts_with("PUT /text") && seen.contains("x-api-key: s") && seen.ends_with("\nb"),
        "{seen}"
    );
}

#[tokio::test]
async fn redirects_cannot_lead_where_the_first_url_could_not() {
    let (fake, canary) = (Fake::start(), Fake::start());
    let server = server_with("http", None, &[&fake.origin, "*"]);
    for (target, expected) in [
        (format!("{}/", canary.origin), "port "),
        (
            "http://169.254.169.254/latest/meta-data".to_owned(),
            "host `169.254.169.254` is at 169.254.169.254, which is not a public address",
        ),
        (
            "http://[::ffff:10.0.0.1]/".to_owned(),
            "host `[::ffff:a00:1]` is at ::ffff:10.0.0.1, which is not a public address",
        ),
        ("file:///etc/passwd".to_owned(), "URLs with the scheme `file` are not asked"),
        ("http://user:pass@example.com/".to_owned(), "the URL carries a user name or password"),
    ] {
        let error = ask(&server, "get", &format!("{}/302?to={target}", fake.origin)).await.unwrap_err();
        assert!(error.starts_with(expected), "{target}: {error}");
    }
    let circle = ask(&server, "get", &format!("{}/circle", fake.origin)).await.unwrap_err();
    assert_eq!(circle, "the server redirected more than 5 times");
    assert_eq!(canary.seen(), Vec::<String>::new());
}

#[test]
fn a_redirect_from_https_to_http_is_refused() {
    let request = super::HttpHop {
        method: super::Method::GET,
        url: Url::parse("https://example.com/").unwrap(),
        headers: super::HeaderMap::new(),
        body: None,
    };
    let next = Url::parse("http://example.com/").unwrap();
    let error = request.redirected(next, super::StatusCode::FOUND).err().unwrap();
    assert_eq!(error.to_string(), "the server redirected from https to http, which is refused");
}

#[tokio::test]
async fn urls_that_lead_inside_are_refused_whatever_their_spelling() {
    let server = server_with("http", None, &["*"]);
    for url in [
        "http://127.0.0.1/",
        "http://127.1/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://127.0.0.1./",
        "http://①②⑦.⓪.⓪.①/",
        "http://%31%32%37.0.0.1/",
        "http://0/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
        "http://172.16.0.1/",
        "http://172.31.255.255/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://2852039166/",
        "http://0xa9fea9fe/",
        "http://100.64.0.1/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://192.0.0.192/",
        "http://198.18.0.1/",
        "http://203.0.113.7/",
        "http://224.0.0.1/",
        "http://255.255.255.255/",
        "http://[::1]/",
        "http://[::]/",
        "http://[0:0:0:0:0:0:0:1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b:1::a00:1]/",
        "http://[2002:7f00:1::]/",
        "http://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
        "http://[2001:db8::1]/",
        "http://[fc00::1]/",
        "http://[fd00:ec2::254]/",
        "http://[fe80::1]/",
        "http://[fec0::1]/",
        "http://[ff02::1]/",
        "https://127.0.0.1/",
    ] {
        let error = ask(&server, "get", url).await.unwrap_err();
        assert!(error.contains("which is not a public address"), "{url}: {error}");
    }
    for url in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "data:text/plain,x",
        "javascript:1",
        "http://user@example.com/",
        "http://:secret@example.com/",
        "http://example.com:22/",
        "https://example.com:80/",
        "http://",
        "http:///",
        "//example.com/",
        "example.com",
        "http://[fe80::1%25eth0]/",
        "http://exa mple.com/",
        "",
    ] {
        ask(&server, "get", url).await.unwrap_err();
    }
}

#[test]
fn public_addresses_are_public() {
    for address in [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "2a00:1450::1",
    ] {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
}

/// A resolver whose first answer is harmless and whose later ones are not.
fn flipping(first: &'static str, later: &'static str) -> HostLookup {
    let asked = AtomicUsize::new(0);
    Arc::new(move |_| {
        let address = if asked.fetch_add(1, Ordering::Relaxed) == 0 { first } else { later };
        let addresses: Vec<IpAddr> = address.split(' ').map(|address| address.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    })
}

#[tokio::test]
async fn only_public_addresses_of_a_name_are_connected_to() {
    let resolver = PublicResolver(flipping("127.0.0.1 93.184.216.34 ::1", "127.0.0.1"));
    let first: Vec<_> = resolver.resolve("rebind.example".parse().unwrap()).await.unwrap().collect();
    assert_eq!(first, ["93.184.216.34:0".parse().unwrap()]);
    let error = resolver.resolve("rebind.example".parse().unwrap()).await.err().unwrap();
    assert!(
        error.to_string().starts_with("host `rebind.example` is at 127.0.0.1, which is not a public address")
    );
}

#[tokio::test]
async fn a_name_that_resolves_inside_is_refused_at_the_connection() {
    let web = Arc::new(HttpFetcher::new(&["*".to_owned()], flipping("10.0.0.7", "10.0.0.7")).unwrap());
    let server = BuiltinServer { name: "http", description: "", tools: web.tools(), root: None };
    let error = ask(&server, "get", "http://inside.example/").await.unwrap_err();
    assert_eq!(
        error,
        "cannot reach `inside.example`: host `inside.example` is at 10.0.0.7, which is not a public address; the \
         operator can add its origin to `[builtin.http] hosts`"
    );
}

#[test]
fn the_list_means_what_it_says() {
    let list =
        ["api.example.com", "*.Example.org", "bücher.example", "http://localhost:8080", "https://in.example"];
    let allowed = HostAllowlist::parse(&list.map(str::to_owned)).unwrap();
    for (url, expected) in [
        ("https://api.example.com/x", Some(AddressReach::Public)),
        ("http://API.example.com./x", Some(AddressReach::Public)),
        ("https://api.example.com:443/", Some(AddressReach::Public)),
        ("https://api.example.com:8443/", None),
        ("https://example.com/", None),
        ("https://x.api.example.com/", None),
        ("https://api.example.com.evil.test/", None),
        ("https://a.b.example.org/", Some(AddressReach::Public)),
        ("https://example.org/", None),
        ("https://notexample.org/", None),
        ("https://xn--bcher-kva.example/", Some(AddressReach::Public)),
        ("http://localhost:8080/", Some(AddressReach::Anywhere)),
        ("https://localhost:8080/", None),
        ("http://localhost/", None),
        ("https://in.example/", Some(AddressReach::Anywhere)),
        ("http://in.example/", None),
    ] {
        assert_eq!(allowed.check(&Url::parse(url).unwrap()).ok(), expected, "{url}");
    }
    let error = allowed.check(&Url::parse("https://example.com/").unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "host `example.com` is not allowed; the operator can add it to `[builtin.http] hosts`"
    );
}

#[test]
fn an_entry_that_is_no_host_is_named() {
    for entry in
        ["", "a:8080", "a/b", "ftp://a", "http://a/path", "http://u@a", "*.1.2.3.4", "a*b", "**", "*."]
    {
        let settings = BuiltinSettings { http_hosts: vec![entry.to_owned()], ..BuiltinSettings::default() };
        let error = servers(&settings).err().unwrap_or_else(|| panic!("{entry} was taken")).to_string();
        assert!(error.starts_with(&format!("`{entry}` in `[builtin.http] hosts` is no host;")), "{error}");
    }
    assert!(servers(&BuiltinSettings::default()).unwrap().iter().all(|server| server.name() != "http"));
}
