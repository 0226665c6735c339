//! Three gateways on one PostgreSQL server, behind a proxy that gives every request of a conversation to another one, while
//! gateways and the server are killed. `PML_REPLICA_KILLS` sets how often (12 otherwise).

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::gateway::{execution, signal};
use crate::harness::{Home, PASSPHRASE, PATIENCE, Served, eventually};
use crate::ledger::{self, Ledger};
use crate::resume::listed;
use crate::server::Server;

/// The name by which clients know the proxy.
const NAME: &str = "pml.example.com";
const REPLICAS: usize = 3;

/// What a request is answered with.
pub struct Reply {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Reply {
    fn header(&self, name: &str) -> Option<&str> {
        let line =
            self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim())
    }

    /// The JSON-RPC response, whether it came alone or in a stream; `None` if the connection was cut before it.
    fn response(&self) -> Option<Value> {
        let lines = self.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        messages.into_iter().find(|message| message.get("result").or(message.get("error")).is_some())
    }
}

/// A proxy that gives each connection to the next gateway that takes it.
pub struct Proxy {
    address: SocketAddr,
    upstreams: Arc<Vec<Upstream>>,
}

#[derive(Default)]
struct Upstream {
    address: Mutex<Option<SocketAddr>>,
    served: AtomicUsize,
}

impl Proxy {
    fn start() -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let upstreams: Arc<Vec<Upstream>> = Arc::new((0..REPLICAS).map(|_| Upstream::default()).collect());
        let all = Arc::clone(&upstreams);
        thread::spawn(move || {
            for (number, client) in listener.incoming().enumerate() {
                let Ok(client) = client else { continue };
                let next = (0..REPLICAS).map(|step| &all[(number + step) % REPLICAS]);
                let mut taken = next.filter_map(|upstream| {
                    let address = (*upstream.address.lock().unwrap())?;
                    Some((upstream, TcpStream::connect(address).ok()?))
                });
                if let Some((upstream, server)) = taken.next() {
                    upstream.served.fetch_add(1, Ordering::Relaxed);
                    join(&client, &server);
                }
            }
        });
        Proxy { address, upstreams }
    }

    pub fn point(&self, replica: usize, served: Option<&Served>) {
        let address = served.map(|served| {
            let authority = served.url.trim_start_matches("http://").split('/').next().unwrap();
            authority.parse().unwrap()
        });
        *self.upstreams[replica].address.lock().unwrap() = address;
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Reply> {
        self.send_within(PATIENCE, method, path, headers, body)
    }

    /// The same, given up when nothing comes for so long.
    fn send_within(
        &self,
        patience: Duration,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Option<Reply> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        stream.set_read_timeout(Some(patience)).unwrap();
        let mut head =
            format!("{method} {path} HTTP/1.0\r\nHost: {NAME}\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
        let mut text = Vec::new();
        // A gateway that is killed cuts the reply short.
        drop(stream.read_to_end(&mut text));
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some(Reply { status, head: head.to_owned(), body: body.to_owned() })
    }
}

fn join(client: &TcpStream, server: &TcpStream) {
    for (from, to) in [(client, server), (server, client)] {
        let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        thread::spawn(move || {
            drop(std::io::copy(&mut from, &mut to));
            drop(to.shutdown(std::net::Shutdown::Write));
        });
    }
}

/// Gateways on one database, with a proxy in front of them.
pub struct Replicas {
    // In this order they end: gateways before what they use.
    pub served: Vec<Option<Served>>,
    pub homes: Vec<Home>,
    server: Server,
    /// What requests are sent with.
    pub token: String,
    pub proxy: Proxy,
}

impl Replicas {
    pub fn start(settings: &str, asks: bool) -> Replicas {
        let server = Server::start();
        server.execute("postgres", "CREATE DATABASE pml");
        let settings = format!(
            "{settings}\n[serve]\nhosts = [\"{NAME}\"]\n[store]\nurl = {}\n",
            json!(server.url("pml"))
        );
        let first = if asks { ledger::asking_home(&settings) } else { ledger::home(&settings) };
        let listed = first.run(&["runs", "list"]);
        assert_eq!(listed.code, 0, "{listed:?}");
        let mut replicas = Replicas {
            server,
            homes: vec![first],
            served: Vec::new(),
            token: String::new(),
            proxy: Proxy::start(),
        };
        replicas.served.push(Some(replicas.homes[0].serve(&[])));
        replicas.token = replicas.served[0].as_ref().unwrap().token.clone();
        for number in 1..REPLICAS {
            let home = Home::new(&fs::read_to_string(replicas.homes[0].path("pml.toml")).unwrap());
            for file in ["seal.key", "token"] {
                fs::copy(replicas.homes[0].path(file), home.path(file)).unwrap();
            }
            replicas.served.push(Some(home.serve(&[])));
            replicas.homes.push(home);
            replicas.proxy.point(number, replicas.served[number].as_ref());
        }
        replicas.proxy.point(0, replicas.served[0].as_ref());
        replicas
    }

    pub fn kill(&mut self, replica: usize) {
        self.proxy.point(replica, None);
        self.served[replica] = None;
    }

    pub fn restart(&mut self, replica: usize) {
        self.served[replica] = Some(self.homes[replica].serve(&[]));
        self.proxy.point(replica, self.served[replica].as_ref());
    }

    fn post(&self, session: Option<&str>, message: &Value) -> Option<Reply> {
        self.post_within(PATIENCE, session, message)
    }

    fn post_within(&self, patience: Duration, session: Option<&str>, message: &Value) -> Option<Reply> {
        let token = format!("Bearer {}", self.token);
        let mut headers = vec![
            ("Authorization", token.as_str()),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        if let Some(session) = session {
            headers.extend([("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")]);
        }
        self.proxy.send_within(patience, "POST", "/mcp", &headers, &message.to_string())
    }

    /// Opens a session, at whichever gateway.
    fn open(&self) -> String {
        self.try_open().expect("a session")
    }

    /// The same; `None` if the token is not known there.
    pub fn try_open(&self) -> Option<String> {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let reply = self.post(None, &message)?;
        let session = reply.header("mcp-session-id")?.to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        (self.post(Some(&session), &ready)?.status == 202).then_some(session)
    }

    /// The result of a request; `None` if the gateway that had it was killed or cannot reach the database.
    pub fn request(&self, session: &str, method: &str, params: &Value) -> Option<Value> {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        let reply = self.post(Some(session), &message)?;
        assert_ne!(reply.status, 404, "the session is lost: {}", reply.body);
        let response = reply.response()?;
        assert!(response.get("error").is_none(), "{response}");
        Some(response["result"].clone())
    }

    pub fn call(&self, session: &str, tool: &str, arguments: &Value) -> Option<Value> {
        let result = self.request(session, "tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        Some(result["structuredContent"].clone())
    }

    /// How many connections each gateway had.
    fn shares(&self) -> Vec<usize> {
        self.proxy.upstreams.iter().map(|upstream| upstream.served.load(Ordering::Relaxed)).collect()
    }
}

#[test]
fn every_request_of_a_conversation_may_reach_another_gateway() {
    let replicas = Replicas::start("[approvals]\nby = \"client\"\n", true);
    let session = replicas.open();
    let tools = |result: Option<Value>| result.unwrap()["tools"].as_array().unwrap().len();
    let all = tools(replicas.request(&session, "tools/list", &json!({})));
    assert!(all > 0);
    for turn in 0..4 {
        let code = "return (await mcp.ledger.add({ id: args.id })).id;";
        let mut params = execution("a test", code, &json!({ "id": format!("{turn}") }), &json!({}));
        params["_meta"] = json!({ "pml/idempotencyKey": format!("key {turn}") });
        let asked = replicas.request(&session, "tools/call", &params).unwrap()["structuredContent"].clone();
        assert_eq!(asked["status"], "approval_required", "{asked}");
        let again = replicas.request(&session, "tools/call", &params).unwrap()["structuredContent"].clone();
        assert_eq!(again["workflowId"], asked["workflowId"], "the same request is the same run");
        let run = json!({ "workflow_id": asked["workflowId"], "approved": true });
        let done = replicas.call(&session, "pml_continue", &run).unwrap();
        assert_eq!(
            (&done["status"], &done["result"]),
            (&json!("success"), &json!(format!("{turn}"))),
            "{done}"
        );
        assert_eq!(tools(replicas.request(&session, "tools/list", &json!({}))), all);
    }
    assert_eq!(Ledger::of(&replicas.homes[0]).added(), ["0", "1", "2", "3"]);
    assert!(replicas.shares().iter().all(|served| *served >= 5), "{:?}", replicas.shares());

    // An id that somebody made up, and one of another client, are sessions of nobody.
    let made_up = replicas.post(Some("bWFkZSB1cA"), &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }));
    assert_eq!(made_up.unwrap().status, 404);
}

#[test]
fn who_signed_in_at_one_gateway_is_known_at_all() {
    let replicas = Replicas::start("", false);
    let home = &replicas.homes[0];
    let (url, path) = (replicas.server.url("pml"), home.path("pml.db"));
    let paths = pml::config::Paths { config: home.path("pml.toml"), data: home.path("") };
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
        let store = pml_store::Store::open_postgres(&url, path).await.unwrap();
        pml::passphrase::set_for_all(&paths, &store, PASSPHRASE).await.unwrap();
    });
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let typed = format!("passphrase={}", PASSPHRASE.replace(' ', "+"));
    let signed_in = replicas.proxy.send("POST", "/login", &form, &typed).unwrap();
    assert_eq!(signed_in.status, 200, "{}", signed_in.body);
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let session = |cookie: &str| {
        let reply = replicas.proxy.send("GET", "/api/session", &[("Cookie", cookie)], "").unwrap();
        serde_json::from_str::<Value>(&reply.body).unwrap_or_default()["role"].clone()
    };
    for _ in 0..REPLICAS {
        assert_eq!(session(&cookie), "person");
    }
    let link = replicas.served[1].as_ref().unwrap().link.clone();
    let path = format!("/open/{}", link.rsplit('/').next().unwrap());
    for _ in 0..REPLICAS {
        let opened = replicas.proxy.send("GET", &path, &[], "").unwrap();
        let viewer = opened.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
        assert_eq!(session(&viewer), "viewer");
    }
    let csrf = serde_json::from_str::<Value>(&signed_in.body).unwrap()["csrf"].as_str().unwrap().to_owned();
    let left =
        replicas.proxy.send("POST", "/logout", &[("Cookie", &cookie), ("X-PML-CSRF", &csrf)], "").unwrap();
    assert_eq!(left.status, 204, "{}", left.body);
    for _ in 0..REPLICAS {
        assert_ne!(session(&cookie), "person");
    }
}

#[test]
fn a_gateway_says_that_it_is_not_ready_until_its_database_is_there() {
    let server = Server::start();
    server.execute("postgres", "CREATE DATABASE pml");
    let home = ledger::home(&format!("[store]\nurl = {}\n", json!(server.url("pml"))));
    server.kill();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ready = || -> Option<u16> {
        let mut stream = TcpStream::connect(port).ok()?;
        stream.write_all(format!("GET /ready HTTP/1.0\r\nHost: {port}\r\n\r\n").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        text.split(' ').nth(1)?.parse().ok()
    };
    let mut gateway = home.command(&["serve", "--listen", &port.to_string()]);
    let mut gateway =
        gateway.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    eventually("it listens", || ready().is_some());
    assert_eq!(ready(), Some(503));
    server.run();
    eventually("it is ready", || ready() == Some(200));
    server.kill();
    eventually("it is not ready any more", || ready() == Some(503));
    assert!(gateway.try_wait().unwrap().is_none(), "it goes on");
    let before = threads(gateway.id());
    thread::scope(|scope| {
        for _ in 0..60 {
            scope.spawn(|| assert_eq!(ready(), Some(503)));
        }
    });
    let after = threads(gateway.id());
    assert!(after < before + 20, "{after} threads, {before} before it was asked 60 times");
    // Its last changes cannot be stored, and it ends all the same.
    signal(gateway.id(), "-TERM");
    eventually("it has ended", || gateway.try_wait().unwrap().is_some());
}

/// The number of threads of a process.
fn threads(process: u32) -> usize {
    fs::read_dir(format!("/proc/{process}/task")).unwrap().count()
}

/// A run that somebody wants.
struct Wanted {
    name: String,
    params: Value,
    /// Its id, once a gateway has acknowledged it.
    id: Option<String>,
}

#[test]
fn whichever_gateway_is_killed_nothing_is_lost_and_nothing_happens_twice() {
    let kills = number("PML_REPLICA_KILLS", 12);
    let mut dice = Dice(number("PML_SEED", 1));
    let mut replicas = Replicas::start("[approvals]\nby = \"client\"\n[runs]\nworkers = 1\n", false);
    let session = replicas.open();
    let code = r#"
        const first = (await mcp.ledger.add({ id: args.name + " one", before: args.before, after: 20 })).id;
        return [first, (await mcp.ledger.add({ id: args.name + " two", before: args.before, after: 20 })).id];
    "#;
    let mut wanted: Vec<Wanted> = Vec::new();
    let mut victims = BTreeMap::<&str, usize>::new();
    for kill in 0..kills {
        for part in 0..3 {
            let name = format!("{kill}.{part}");
            let context = json!({ "name": name, "before": dice.roll(80) });
            let mut params = execution("a test", code, &context, &json!({ "detach": true }));
            params["_meta"] = json!({ "pml/idempotencyKey": name });
            wanted.push(Wanted { name, params, id: None });
        }
        acknowledge(&replicas, &session, &mut wanted, Duration::ZERO);
        thread::sleep(Duration::from_millis(dice.roll(200)));
        if kill % 4 == 3 {
            *victims.entry("the database").or_default() += 1;
            replicas.server.kill();
            acknowledge(&replicas, &session, &mut wanted, Duration::ZERO);
            thread::sleep(Duration::from_millis(dice.roll(500)));
            replicas.server.run();
        } else {
            *victims.entry("a gateway").or_default() += 1;
            let victim = usize::try_from(dice.roll(REPLICAS as u64)).unwrap();
            replicas.kill(victim);
            acknowledge(&replicas, &session, &mut wanted, Duration::ZERO);
            replicas.restart(victim);
        }
    }
    acknowledge(&replicas, &session, &mut wanted, PATIENCE);
    let mut answered = 0;
    let until = Instant::now() + PATIENCE;
    loop {
        answered += answer_doubts(&replicas, &session);
        let mut open = listed(&replicas.homes[0]);
        open.retain(|row| row["state"] != "done");
        if open.is_empty() {
            break;
        }
        assert!(Instant::now() < until, "these do not end: {open:#?}");
        thread::sleep(Duration::from_millis(100));
    }
    let ledger = Ledger::of(&replicas.homes[0]);
    let mut counts = BTreeMap::<String, usize>::new();
    ledger.added().into_iter().for_each(|id| *counts.entry(id).or_default() += 1);
    for Wanted { name, id, .. } in &wanted {
        for part in ["one", "two"] {
            assert_eq!(counts.remove(&format!("{name} {part}")), Some(1), "{name} {part} of {id:?}");
        }
    }
    assert_eq!(counts, BTreeMap::new());
    assert_eq!(listed(&replicas.homes[0]).len(), wanted.len(), "a request repeated is the same run");
    eprintln!("{} runs, killed: {victims:?}, calls in doubt: {answered}", wanted.len());
}

/// Sends every request that no gateway has acknowledged, until one does or `patience` is over.
fn acknowledge(replicas: &Replicas, session: &str, wanted: &mut [Wanted], patience: Duration) {
    let until = Instant::now() + patience;
    for one in wanted.iter_mut().filter(|one| one.id.is_none()) {
        loop {
            let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": one.params });
            // A gateway without a database makes its clients wait.
            let reply = replicas.post_within(Duration::from_millis(1_500), Some(session), &message);
            let response = reply.and_then(|reply| {
                assert_ne!(reply.status, 404, "the session is lost: {}", reply.body);
                reply.response()
            });
            let told = response.map(|response| response["result"]["structuredContent"].clone());
            one.id = told.and_then(|told| Some(told["workflowId"].as_str()?.to_owned()));
            if one.id.is_some() || Instant::now() >= until {
                break;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Answers what gateways ask about calls that were sent and have no end: the ledger knows.
fn answer_doubts(replicas: &Replicas, session: &str) -> usize {
    let mut answered = 0;
    for row in listed(&replicas.homes[0]).iter().filter(|row| row["state"] == "waiting") {
        let id = row["workflowId"].as_str().unwrap();
        let Some(status) = replicas.call(session, "pml_get_task_result", &json!({ "workflow_id": id }))
        else {
            continue;
        };
        if status["question"]["type"] != "in_doubt" {
            continue;
        }
        let added = Ledger::of(&replicas.homes[0]).added();
        let mut command = replicas.homes[0].command(&["runs", "resume", id]);
        for doubt in status["question"]["calls"].as_array().unwrap() {
            let arguments: Value = serde_json::from_str(doubt["arguments"].as_str().unwrap()).unwrap();
            let verdict = match added.iter().any(|known| arguments["id"] == **known) {
                true => json!({ "id": arguments["id"] }).to_string(),
                false => "again".to_owned(),
            };
            command.args(["--call", &format!("{}={verdict}", doubt["call"])]);
            answered += 1;
        }
        // Another gateway may have been quicker.
        command.output().unwrap();
    }
    answered
}
