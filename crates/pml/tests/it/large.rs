//! What a large result costs the gateway while it passes through.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::faulty::{self, Remote};
use crate::harness::{Client, Home, Served};
use crate::http::{in_session_with, initialize, modern_by};

/// What a result of 15 MB may take beyond what the gateway had: room for it twice, and a little more.
const LARGE_BYTES: u64 = 32 * 1024 * 1024;

/// How many rows make 15 MB, which is nearly as much as a message may have.
const ROWS: u64 = 290_000;

/// How often in a row the result is asked for.
const TIMES: usize = 3;

/// How a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Door {
    Stdio,
    /// The answer is a JSON document.
    Http,
    /// The answer is the last event of a stream.
    HttpStream,
    HttpSession,
}

/// The gateways of one home and who talks to them.
struct Clients {
    served: Served,
    session: String,
    stdio: Client,
}

impl Clients {
    fn of(home: &Home) -> Clients {
        let served = home.serve(&["--expose", "full"]);
        let (session, _) = initialize(&served);
        Clients { session, served, stdio: home.stdio(&["--expose", "full"]) }
    }

    fn pid(&self, door: Door) -> u32 {
        if door == Door::Stdio { self.stdio.child.id() } else { self.served.child.id() }
    }

    /// The answer to a call, as it came.
    fn answer(&mut self, door: Door, rows: u64) -> String {
        let call = |progress| json!({"name": "s:big", "arguments": {"count": rows, "progress": progress}});
        let test = json!({"name": "test", "capabilities": {}});
        match door {
            Door::Stdio => self.answer_by_stdio(&call(false)),
            Door::Http => modern_by(&self.served, &test, "tools/call", &call(false)).body(),
            Door::HttpStream => {
                let reply = modern_by(&self.served, &test, "tools/call", &call(true));
                assert!(reply.is_stream());
                reply.body()
            }
            Door::HttpSession => {
                in_session_with(&self.served, &self.session, "tools/call", &call(false)).body()
            }
        }
    }

    fn answer_by_stdio(&mut self, call: &Value) -> String {
        let id = self.stdio.begin("tools/call", call);
        loop {
            let line = self.stdio.line();
            if line.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result""#)) {
                return line;
            }
        }
    }
}

/// The rows as the server writes them.
fn rows(count: u64) -> String {
    let mut text = String::new();
    for n in 0..count {
        let comma = if n == 0 { "" } else { "," };
        write!(text, r#"{comma}{{"n":{n},"b":1.0,"a":-0,"e":10e110,"s":"\u00e9 é"}}"#).unwrap();
    }
    text
}

#[track_caller]
fn check(home: &Home, server: &str, doors: &[Door]) {
    // The embedding model is loaded in the background soon after the start, and takes 25 MiB of its own.
    home.configure(&format!("{server}\n[embedding]\nmodel = \"none\"\n"));
    let mut clients = Clients::of(home);
    let (few, many) = (rows(1), rows(ROWS));
    assert!(many.len() > 15_000_000);
    for door in doors {
        let small = clients.answer(*door, 1);
        assert!(small.contains(&few), "{door:?}: {small}");
        let pid = clients.pid(*door);
        faulty::forget_peak(pid);
        let before = faulty::resident(pid);
        for time in 1..=TIMES {
            let large = clients.answer(*door, ROWS);
            let shown: String = large.chars().take(200).collect();
            assert!(large.contains(&many), "{door:?}: another result: {shown}");
            let grown = faulty::peak(pid).saturating_sub(before);
            let mib = grown as f64 / 1024.0 / 1024.0;
            assert!(grown <= LARGE_BYTES, "{door:?}, call {time}: {mib:.1} MiB");
        }
    }
}

#[test]
fn a_large_result_of_a_process_is_not_copied_on_its_way() {
    let home = Home::new("");
    let server = faulty::allowed(&home, "s", &[], "");
    check(&home, &server, &[Door::Stdio, Door::Http, Door::HttpStream, Door::HttpSession]);
}

#[test]
fn a_large_result_that_comes_over_http_is_not_copied_on_its_way() {
    let home = Home::new("");
    let remote = Remote::start(&home, "s", &[]);
    check(&home, &remote.allowed("s", ""), &[Door::Stdio, Door::Http]);
}

#[test]
fn a_large_result_that_comes_as_an_event_is_not_copied_on_its_way() {
    let home = Home::new("");
    let remote = Remote::start(&home, "s", &["--stream"]);
    check(&home, &remote.allowed("s", ""), &[Door::Stdio, Door::HttpStream]);
}
