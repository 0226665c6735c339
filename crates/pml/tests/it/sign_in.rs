//! Signing in to remote servers, against an authorization server that can be told to misbehave.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Client, Finished, Home, eventually, material, node, text};

/// The fixture: a server that wants a sign-in, with its authorization server.
struct Notes {
    child: Child,
    url: String,
}

impl Notes {
    fn start(switches: &Value) -> Notes {
        let mut command = Command::new(node());
        command.arg(material("fixture/oauth.mjs")).arg(switches.to_string()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Notes { child, url: url.trim().to_owned() }
    }

    fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap()
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.authority()).unwrap();
        let host = self.authority();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn log(&self) -> Value {
        let reply = self.ask("GET", "/log", "");
        let start = reply.find('{').unwrap();
        let end = reply.rfind('}').unwrap();
        serde_json::from_str(&reply[start..=end]).unwrap()
    }

    fn count(&self, what: &str) -> u64 {
        self.log()[what].as_u64().unwrap()
    }

    fn set(&self, switches: &Value) {
        let reply = self.ask("POST", "/set", &switches.to_string());
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    }

    /// A home whose only server is this one, with these further settings of it.
    fn home(&self, settings: &str) -> Home {
        let url = &self.url;
        let home = Home::new(&format!(
            "[servers.notes]\nurl = \"{url}\"\n{settings}\n[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n"
        ));
        // The browser of a person who agrees to everything.
        let script = format!("#!{}\nfetch(process.argv[2]).catch(() => {{}});\n", node());
        let browser = home.path("browser");
        std::fs::write(&browser, script).unwrap();
        std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o700)).unwrap();
        home
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn finish(mut command: Command) -> Finished {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn login(home: &Home, args: &[&str]) -> Finished {
    let mut command = home.command(&[&["login", "notes"], args].concat());
    command.env("BROWSER", home.path("browser"));
    finish(command)
}

#[track_caller]
fn logged_in(home: &Home, args: &[&str]) {
    let login = login(home, args);
    assert!(login.code == 0 && login.stdout.contains("signed in to `notes`: 2 tools"), "{login:?}");
}

fn read(home: &Home) -> Finished {
    home.run(&["call", "notes:read"])
}

#[track_caller]
fn reads(home: &Home) {
    let call = read(home);
    assert!(call.code == 0 && call.stdout.contains("read: "), "{call:?}");
}

#[track_caller]
fn needs_sign_in(home: &Home) {
    let call = home.run(&["call", "notes:read", "--json"]);
    assert_eq!(call.code, 1, "{call:?}");
    let error = serde_json::from_str::<Value>(&call.stdout).unwrap()["error"].clone();
    assert_eq!(error["code"], "LOGIN_REQUIRED", "{call:?}");
    assert_eq!(
        error["hint"], "run `pml login notes`, or set `bearer` or `headers` of `[servers.notes]` in pml.toml",
        "{call:?}"
    );
}

/// Neither the files of a home nor what was printed may have a token.
#[track_caller]
fn no_tokens_in(home: &Home) {
    for entry in std::fs::read_dir(home.path("")).unwrap().map(Result::unwrap) {
        let Ok(content) = std::fs::read(entry.path()) else { continue };
        for prefix in [b"at-", b"rt-"] {
            let is_token = |at: &[u8]| {
                at.starts_with(prefix)
                    && at.iter().skip(3).take(8).all(u8::is_ascii_hexdigit)
                    && at.get(11) == Some(&b'-')
            };
            assert!(!content.windows(12).any(is_token), "{} has a token", entry.path().display());
        }
    }
}

/// Three ways to be known to the authorization server, with and without rotation of refresh tokens: one sign-in, then
/// tokens that expire, are refused in mid-call, and are used by one process after the other, without a second prompt.
#[test]
fn one_sign_in_is_enough_however_tokens_end() {
    for (registration, settings) in [
        ("dynamic", String::new()),
        ("metadata", "client_metadata = \"https://pml.example/pml.json\"".to_owned()),
        ("none", "client_id = \"desk\"\nclient_secret = \"s%:1\"\nissuer = \"ISSUER\"".to_owned()),
    ] {
        for rotate in [true, false] {
            let case = format!("{registration}, rotation {rotate}");
            let mut switches = json!({ "registration": registration, "rotate": rotate });
            if registration == "none" {
                switches["client"] = json!({ "id": "desk", "secret": "s%:1" });
            }
            let notes = Notes::start(&switches);
            let home = notes.home(&settings.replace("ISSUER", &format!("http://{}", notes.authority())));
            needs_sign_in(&home);
            logged_in(&home, &[]);
            reads(&home);
            let mut client = home.stdio(&[]);
            let call = json!({ "name": "notes:read", "arguments": {} });
            for round in 1..=3 {
                // The token is refused in mid-call, then in a process that starts.
                notes.set(&json!({ "expire": true }));
                let answer = client.request("tools/call", &call);
                assert!(text(&answer).starts_with("read: "), "{case}, round {round}: {answer}");
                notes.set(&json!({ "expire": true }));
                reads(&home);
            }
            assert_eq!(client.finish(), 0);
            let log = notes.log();
            assert_eq!(log["authorized"], 1, "{case}: {log}");
            assert_eq!((&log["calls"], &log["refreshed"]), (&json!(7), &json!(6)), "{case}: {log}");
            assert_eq!((&log["reused"], &log["problems"]), (&json!(0), &json!([])), "{case}: {log}");
            assert_eq!(log["registered"], u64::from(registration == "dynamic"), "{case}: {log}");
            no_tokens_in(&home);
        }
    }
}

#[test]
fn many_calls_in_several_processes_renew_once() {
    let notes = Notes::start(&json!({ "delay": 300 }));
    let home = notes.home("");
    logged_in(&home, &[]);
    let mut clients: Vec<_> = (0..2).map(|_| home.stdio(&[])).collect();
    let call = json!({ "name": "notes:read", "arguments": {} });
    for client in &mut clients {
        client.request("tools/call", &call);
    }
    notes.set(&json!({ "expire": true }));
    let asked: Vec<Vec<u64>> = clients
        .iter_mut()
        .map(|client| (0..5).map(|_| client.begin("tools/call", &call)).collect())
        .collect();
    for (client, ids) in clients.iter_mut().zip(asked) {
        for id in ids {
            let answer = client.response_or_aside(id);
            assert!(text(&answer["result"]).starts_with("read: "), "{answer}");
        }
    }
    let log = notes.log();
    assert_eq!(
        (&log["refreshed"], &log["reused"], &log["calls"]),
        (&json!(1), &json!(0), &json!(12)),
        "{log}"
    );
    // Tokens that end soon are renewed before they are refused.
    notes.set(&json!({ "expiresIn": 0, "expire": true }));
    clients[0].request("tools/call", &call);
    notes.set(&json!({ "expiresIn": 3600 }));
    let before = notes.count("unauthorized");
    let answer = clients[0].request("tools/call", &call);
    assert!(text(&answer).starts_with("read: "), "{answer}");
    assert_eq!(notes.count("unauthorized"), before);
    assert!(clients.into_iter().all(|client| client.finish() == 0));
}

#[test]
fn a_running_gateway_learns_of_a_sign_in_and_of_a_sign_out() {
    let notes = Notes::start(&json!({}));
    let home = notes.home("");
    let mut client = home.stdio(&[]);
    let call = json!({ "name": "notes:read", "arguments": {} });
    let before = client.request("tools/call", &call);
    assert!(before.to_string().contains("pml login notes"), "{before}");
    logged_in(&home, &[]);
    let after = client.request("tools/call", &call);
    assert!(text(&after).starts_with("read: "), "{after}");
    let list = home.run(&["list"]);
    assert!(list.stdout.contains("signed in"), "{list:?}");
    let status = home.run(&["status", "notes", "--json"]);
    let status: Value = serde_json::from_str(&status.stdout).unwrap_or_else(|_| panic!("{status:?}"));
    assert_eq!((&status[0]["signIn"], &status[0]["tools"]), (&json!("signed in"), &json!(2)), "{status}");
    let unknown = home.run(&["status", "note"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("did you mean `notes`?"), "{unknown:?}");
    let logout = home.run(&["logout", "notes"]);
    assert!(logout.code == 0 && logout.stdout.contains("signed out of `notes`"), "{logout:?}");
    assert_eq!(notes.count("revoked"), 2);
    let out = client.request("tools/call", &call);
    assert!(out.to_string().contains("LOGIN_REQUIRED"), "{out}");
    assert_eq!(home.run(&["logout", "notes"]).stdout, "nobody was signed in to `notes`\n");
    let audit = home.run(&["audit", "list", "--json"]).stdout;
    assert!(audit.contains("signed in to server") && audit.contains("signed out of server"), "{audit}");
    assert_eq!(client.finish(), 0);
}

#[test]
fn a_sign_in_that_was_ended_elsewhere_asks_for_another() {
    let notes = Notes::start(&json!({ "refresh": false }));
    let home = notes.home("");
    logged_in(&home, &[]);
    reads(&home);
    notes.set(&json!({ "expire": true }));
    needs_sign_in(&home);
    assert!(home.run(&["list"]).stdout.contains("sign-in ended"));
    let status = home.run(&["status"]);
    assert!(status.stdout.contains("no run is under way"), "{status:?}");
    assert!(status.stderr.contains("`pml login notes`"), "{status:?}");
    logged_in(&home, &[]);
    reads(&home);
    // A token endpoint that is down is no reason to sign in again.
    notes.set(&json!({ "refresh": true }));
    logged_in(&home, &[]);
    notes.set(&json!({ "expire": true, "token": "down" }));
    let down = home.run(&["call", "notes:read", "--json"]);
    assert!(down.code == 1 && !down.stdout.contains("LOGIN_REQUIRED"), "{down:?}");
    notes.set(&json!({ "token": null }));
    reads(&home);
}

#[test]
fn a_client_that_the_authorization_server_forgot_is_registered_again() {
    for device in [false, true] {
        let notes = Notes::start(&json!({ "device": device }));
        let home = notes.home("");
        let args: &[&str] = if device { &["--device"] } else { &[] };
        logged_in(&home, args);
        logged_in(&home, args);
        assert_eq!(notes.count("registered"), 1);
        // At the next renewal it does not know the client any more.
        notes.set(&json!({ "expire": true, "forget": true }));
        needs_sign_in(&home);
        logged_in(&home, args);
        reads(&home);
        assert_eq!(notes.count("registered"), 2);
    }
}

#[test]
fn scopes_that_are_missing_are_asked_for_by_the_next_sign_in() {
    let notes = Notes::start(&json!({ "scopes": "notes:write" }));
    let home = notes.home("");
    logged_in(&home, &[]);
    let write = || home.run(&["call", "notes:write", "--json"]);
    let refused = write();
    assert!(
        refused.stdout.contains("LOGIN_REQUIRED") && refused.stdout.contains("notes:write"),
        "{refused:?}"
    );
    reads(&home);
    assert!(home.run(&["list"]).stdout.contains("scopes missing"));
    let again = login(&home, &[]);
    assert!(again.stdout.contains("scopes: notes:read notes:write"), "{again:?}");
    assert_eq!(write().code, 0);
    reads(&home);
}

/// Scopes that turn out to be missing while another request renews the tokens: both are kept.
#[test]
fn missing_scopes_do_not_cost_the_tokens_that_are_renewed_meanwhile() {
    let notes = Notes::start(&json!({ "scopes": "notes:write", "held": true, "delay": 500 }));
    let home = notes.home("");
    logged_in(&home, &[]);
    let mut client = home.stdio(&[]);
    let call = |tool: &str| json!({ "name": format!("notes:{tool}"), "arguments": {} });
    client.request("tools/call", &call("read"));
    let write = client.begin("tools/call", &call("write"));
    eventually("the server has the call", || notes.count("held") == 1);
    notes.set(&json!({ "expire": true }));
    let read = client.begin("tools/call", &call("read"));
    let answer = client.response_or_aside(read);
    assert!(text(&answer["result"]).starts_with("read: "), "{answer}");
    let refused = client.response_or_aside(write);
    assert!(refused.to_string().contains("LOGIN_REQUIRED"), "{refused}");
    let again = client.request("tools/call", &call("read"));
    assert!(text(&again).starts_with("read: "), "{again}");
    let log = notes.log();
    assert_eq!((&log["refreshed"], &log["reused"]), (&json!(1), &json!(0)), "{log}");
    assert!(home.run(&["list"]).stdout.contains("scopes missing"));
    assert_eq!(client.finish(), 0);
}

/// Runs a program of which the second call needs a scope that nobody granted; the id of the run, which waits.
#[track_caller]
fn waits_for_sign_in(client: &mut Client) -> String {
    let code = "const a = await mcp.notes.read({});\n\
         try { return { a, b: await mcp.notes.write({}) }; } catch (e) { return { a, code: e.code }; }";
    let arguments = json!({ "intent": "copy a note", "implementation": { "type": "code", "code": code } });
    let asked = client.request("tools/call", &json!({ "name": "pml_execute", "arguments": arguments }));
    let told = &asked["structuredContent"];
    assert_eq!(
        (&told["status"], &told["question"]["type"]),
        (&json!("approval_required"), &json!("sign_in")),
        "{asked}"
    );
    assert_eq!(told["question"]["calls"][0]["tool"], "notes:write", "{asked}");
    assert!(text(&asked).contains("`pml login notes`"), "{asked}");
    told["workflowId"].as_str().unwrap().to_owned()
}

fn call_own(client: &mut Client, tool: &str, arguments: &Value) -> Value {
    client.request("tools/call", &json!({ "name": tool, "arguments": arguments }))
}

/// The run goes on where it stood: in the gateway that runs, and in one that starts later.
#[test]
fn a_run_waits_for_a_sign_in_and_goes_on_after_it() {
    for restarts in [false, true] {
        let notes = Notes::start(&json!({ "scopes": "notes:write" }));
        let home = notes.home("");
        logged_in(&home, &[]);
        let mut client = home.stdio(&[]);
        let run = waits_for_sign_in(&mut client);
        assert_eq!(notes.count("calls"), 1);
        let listed = home.run(&["runs", "show", &run]);
        assert!(listed.stderr.contains("pml login notes"), "{listed:?}");
        let kept = match restarts {
            true => {
                assert_eq!(client.finish(), 0);
                None
            }
            false => Some(client),
        };
        let signed_in = login(&home, &[]);
        assert!(signed_in.stdout.contains(&format!("run {run} goes on")), "{signed_in:?}");
        let mut client = kept.unwrap_or_else(|| home.stdio(&[]));
        let ended = call_own(&mut client, "pml_continue", &json!({ "workflow_id": run }));
        assert_eq!(
            ended["structuredContent"]["result"],
            json!({ "a": "read: 1", "b": "write: 2" }),
            "{ended}"
        );
        assert_eq!(notes.count("calls"), 2, "nothing is called twice");
        assert_eq!(client.finish(), 0);
    }
}

#[test]
fn a_run_that_waits_for_a_sign_in_can_go_on_without_it_or_end() {
    let notes = Notes::start(&json!({ "scopes": "notes:write" }));
    let home = notes.home("");
    logged_in(&home, &[]);
    let mut client = home.stdio(&[]);
    let run = waits_for_sign_in(&mut client);
    // Tried again in vain, it asks once more.
    let again = call_own(&mut client, "pml_continue", &json!({ "workflow_id": run, "approved": true }));
    assert_eq!(again["structuredContent"]["question"]["type"], "sign_in", "{again}");
    let without = call_own(&mut client, "pml_continue", &json!({ "workflow_id": run, "approved": false }));
    let result = &without["structuredContent"]["result"];
    assert_eq!(*result, json!({ "a": "read: 1", "code": "LOGIN_REQUIRED" }), "{without}");
    let run = waits_for_sign_in(&mut client);
    let ended = call_own(&mut client, "pml_abort", &json!({ "workflow_id": run }));
    assert!(ended.to_string().contains("aborted"), "{ended}");
    // The client of a direct call is told at once.
    let direct = call_own(&mut client, "notes:write", &json!({}));
    assert!(direct["isError"] == true && text(&direct).contains("pml login notes"), "{direct}");
    assert_eq!(client.finish(), 0);
}

/// Requests that wait for a renewal share its failure too.
#[test]
fn a_renewal_that_fails_is_tried_once_for_all_who_wait() {
    let notes = Notes::start(&json!({}));
    let home = notes.home("");
    logged_in(&home, &[]);
    let mut client = home.stdio(&[]);
    let call = json!({ "name": "notes:read", "arguments": {} });
    client.request("tools/call", &call);
    // The authorization server takes long to say that it is down.
    notes.set(&json!({ "expire": true, "token": "down", "delay": 2000 }));
    let before = notes.log();
    let calls: Vec<u64> = (0..8).map(|_| client.begin("tools/call", &call)).collect();
    for id in calls {
        let answer = client.response_or_aside(id);
        assert!(answer.to_string().contains("was not sent"), "{answer}");
    }
    let asked = notes.count("asked") - before["asked"].as_u64().unwrap();
    // A call that comes only after the failure may try again.
    assert!(asked < 8, "{asked} renewals for 8 calls");
    assert_eq!(client.finish(), 0);
}

#[test]
fn asking_who_authorizes_leaves_no_session_behind() {
    let notes = Notes::start(&json!({ "open": true }));
    let home = notes.home("");
    logged_in(&home, &[]);
    let log = notes.log();
    assert!(log["opened"].as_u64().unwrap() >= 1, "{log}");
    assert_eq!(log["opened"], log["ended"], "{log}");
}

#[test]
fn a_machine_without_a_browser_signs_in_by_a_code() {
    let notes = Notes::start(&json!({ "device": true }));
    let home = notes.home("");
    // Without a screen, the code is what is offered.
    let device = home.run(&["login", "notes"]);
    assert!(device.code == 0 && device.stderr.contains("WDJB-MJHT"), "{device:?}");
    reads(&home);
    assert_eq!((notes.count("authorized"), notes.count("codes")), (1, 0));
    let without = Notes::start(&json!({}));
    let home = without.home("");
    let refused = home.run(&["login", "notes", "--device"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("knows no sign-in on another device"),
        "{refused:?}"
    );
}

#[test]
fn metadata_is_found_in_every_form() {
    for switches in [
        json!({ "issuerPath": "/tenant/1" }),
        json!({ "issuerPath": "/tenant/1", "openid": true }),
        json!({ "issuerPath": "/tenant/1", "openid": "below" }),
        json!({ "openid": true }),
        json!({ "noMetadata": true }),
    ] {
        let notes = Notes::start(&switches);
        let home = notes.home("");
        if switches["noMetadata"] == true {
            // Such a server names no issuer in its redirects either.
            notes.set(&json!({ "iss": null }));
        }
        let login = login(&home, &[]);
        assert_eq!(login.code, 0, "{switches}: {login:?}");
        reads(&home);
    }
}

/// What a server or an authorization server may say to get at codes, tokens, secrets or a private network.
#[test]
fn servers_that_lie_get_nothing() {
    let other = Notes::start(&json!({}));
    let elsewhere = format!("http://{}", other.authority());
    for (switches, why) in [
        (
            json!({ "resource": { "authorization_servers": ["http://10.0.0.1"] } }),
            "neither `https` nor on this machine",
        ),
        (json!({ "resource": { "authorization_servers": ["https://10.0.0.1"] } }), "not at a public address"),
        (json!({ "resource": { "authorization_servers": [] } }), "names no authorization server"),
        (json!({ "resource": { "resource": elsewhere } }), "is about"),
        (json!({ "server": { "issuer": elsewhere } }), "names the issuer"),
        (json!({ "server": { "token_endpoint": "http://192.168.0.1/token" } }), "neither `https`"),
        (json!({ "server": { "authorization_endpoint": "javascript:alert(1)" } }), "neither `https`"),
        (json!({ "server": { "code_challenge_methods_supported": ["plain"] } }), "PKCE"),
        (json!({ "iss": elsewhere }), "the redirect came from issuer"),
        (json!({ "iss": null }), "the redirect came from issuer"),
        (json!({ "deny": true }), "access_denied"),
        (json!({ "documents": "redirect" }), "redirects, which is not followed"),
        (json!({ "documents": "huge" }), "sends more than"),
        (json!({ "token": "html" }), "unusable reply"),
        (json!({ "token": "mac" }), "not of type `Bearer`"),
        (json!({ "token": "newline" }), "characters that a header cannot carry"),
        (json!({ "token": "huge" }), "sends more than"),
        (json!({ "token": "redirect" }), "redirects, which is not followed"),
        (json!({ "token": "down" }), "temporarily_unavailable"),
        (json!({ "registration": "none" }), "set `client_id`"),
    ] {
        let notes = Notes::start(&switches);
        let home = notes.home("");
        let login = login(&home, &[]);
        assert_eq!(login.code, 1, "{switches}: {login:?}");
        assert!(login.stderr.contains(why), "{switches}: {login:?}");
        assert_eq!(notes.log()["problems"], json!([]), "{switches}");
        needs_sign_in(&home);
    }
    assert_eq!(other.count("authorized"), 0);
}

#[test]
fn tokens_go_to_the_address_that_they_were_asked_for() {
    let (notes, thief) = (Notes::start(&json!({})), Notes::start(&json!({})));
    let home = notes.home("");
    logged_in(&home, &[]);
    // Somebody changes the address of the server.
    let config = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    std::fs::write(home.path("pml.toml"), config.replace(&notes.url, &thief.url)).unwrap();
    needs_sign_in(&home);
    assert!(!home.run(&["list"]).stdout.contains("signed in"));
    std::fs::write(home.path("pml.toml"), config).unwrap();
    reads(&home);
}

#[test]
fn a_secret_needs_an_issuer_and_a_taken_port_is_named() {
    let notes = Notes::start(&json!({}));
    let home = notes.home("client_id = \"a\"\nclient_secret = \"b\"");
    let refused = home.run(&["list"]);
    assert!(refused.code == 2 && refused.stderr.contains("needs `client_id` and `issuer`"), "{refused:?}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let home = notes.home(&format!("redirect_port = {port}"));
    let refused = login(&home, &[]);
    assert!(refused.stderr.contains(&format!("port {port} of this machine")), "{refused:?}");
    let stdio = Home::new("[servers.x]\ncommand = \"true\"\n");
    let refused = stdio.run(&["login", "x"]);
    assert!(refused.code == 2 && refused.stderr.contains("takes no sign-in"), "{refused:?}");
    assert!(stdio.run(&["login", "y"]).stderr.contains("no server is called `y`"));
}

#[test]
fn other_programs_cannot_end_a_sign_in_at_its_port() {
    let notes = Notes::start(&json!({}));
    let home = notes.home("");
    let mut command = home.command(&["login", "notes", "--no-browser"]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find(|line| line.starts_with("http://")).unwrap();
    let port = address.split("redirect_uri=http%3A%2F%2F127.0.0.1%3A").nth(1).unwrap();
    let port: u16 = port.split('%').next().unwrap().parse().unwrap();
    for request in
        ["GET /callback?code=x&state=wrong HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "POST x\r\n\r\n", ""]
    {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).ok();
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 400"), "{reply}");
    }
    let mut person = Command::new(home.path("browser"));
    assert!(person.arg(&address).status().unwrap().success());
    eventually("the sign-in ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
    reads(&home);
}
