//! A gateway that is used for long, with servers that die, clients that leave and calls that are given up: it holds no
//! more at the end than when it was warm. `cargo xtask soak long-life` takes minutes.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faulty::{self, Ledger, NO_MODEL, Remote, resident, signal};
use crate::harness::{Home, Served, eventually, lives, text};
use crate::http::{authority, in_session_with, initialize, modern_by, send, send_raw};

/// Descriptors that come and go with connections.
const DESCRIPTORS: usize = 24;
/// Threads of the blocking pool, which end by themselves after ten idle seconds.
const THREADS: usize = 24;
/// 32 MiB: pages of the allocator, the caches of the database, and the results that are kept.
const MEMORY: u64 = 32 << 20;

/// What a gateway holds.
#[derive(Debug, Clone, Copy)]
struct Holdings {
    processes: usize,
    descriptors: usize,
    threads: usize,
    memory: u64,
}

impl Holdings {
    fn of(served: &Served) -> Holdings {
        let pid = served.child.id();
        let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
        Holdings {
            processes: descendants(pid).len(),
            descriptors: count("fd"),
            threads: count("task"),
            memory: resident(pid),
        }
    }

    /// The most of both.
    fn most(self, other: Holdings) -> Holdings {
        Holdings {
            processes: self.processes.max(other.processes),
            descriptors: self.descriptors.max(other.descriptors),
            threads: self.threads.max(other.threads),
            memory: self.memory.max(other.memory),
        }
    }

    fn is_within(&self, warm: &Holdings) -> bool {
        self.processes <= warm.processes
            && self.descriptors <= warm.descriptors + DESCRIPTORS
            && self.threads <= warm.threads + THREADS
            && self.memory <= warm.memory + warm.memory / 4 + MEMORY
    }
}

/// All processes below `root`.
fn descendants(root: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([root]);
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect();
    loop {
        let before = found.len();
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| found.contains(parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if found.len() == before {
            found.remove(&root);
            return found;
        }
    }
}

/// Everything that clients do, and everything that goes wrong, once.
fn round(served: &Served, fragile: &Ledger, number: usize) {
    let client = json!({ "name": "steady", "capabilities": {} });
    let ask = |params: &Value| modern_by(served, &client, "tools/call", params).response();
    let call = |tool: &str| ask(&json!({ "name": tool, "arguments": {} }));
    for tool in ["calm:ok", "remote:ok"] {
        let answer = call(tool);
        assert_eq!(text(&answer["result"]), "ok", "round {number}: {answer}");
    }
    let code = format!(
        "return [await mcp.calm.ok({{}}), (await mcp.math.evaluate({{ expression: '{number} + 1' }})).value];"
    );
    let arguments = json!({ "intent": "count", "implementation": { "type": "code", "code": code } });
    let ran = ask(&json!({ "name": "pml_execute", "arguments": arguments }));
    assert_eq!(ran["result"]["structuredContent"]["status"], "success", "round {number}: {ran}");
    // A session is opened, used and ended.
    let (session, _) = initialize(served);
    assert_eq!(in_session_with(served, &session, "tools/list", &json!({})).status, 200);
    let token = format!("Bearer {}", served.token);
    let headers = [
        ("Host", authority(served)),
        ("Authorization", token.as_str()),
        ("Mcp-Session-Id", session.as_str()),
    ];
    let ended = send(served, "DELETE", "/mcp", &headers, "").status;
    assert!((200..300).contains(&ended), "{ended}");
    // A client leaves in the middle of a call, and another in the middle of a request.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "hasty", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "calm:hang", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: calm:hang\r\nContent-Length: {}\r\n\r\n",
        authority(served),
        body.len()
    );
    drop(send_raw(served, format!("{head}{body}").as_bytes()));
    drop(send_raw(served, head.as_bytes()));
    // A server is killed between two calls, and one dies in the middle of a call.
    if number.is_multiple_of(4) {
        if let Some(pid) = fragile.pids().last().filter(|pid| lives(**pid)) {
            signal(*pid, "-KILL");
        }
    } else if number % 4 == 2 {
        call("fragile:crash");
    }
    // Started again, or left alone for a time.
    call("fragile:ok");
}

#[test]
fn a_long_life_leaves_nothing_behind() {
    let minutes = std::env::var("PML_LONG_LIFE_MINUTES").ok().and_then(|text| text.parse::<u64>().ok());
    let length = minutes.map_or(Duration::from_secs(20), |minutes| Duration::from_secs(minutes * 60));
    let home = Home::new("");
    let remote = Remote::start(&home, "remote", &["--stream"]);
    let tables = [
        "client_wait = \"1s\"\n".to_owned(),
        NO_MODEL.to_owned(),
        faulty::allowed(&home, "calm", &[], "call_timeout = \"2s\"\n"),
        faulty::allowed(&home, "fragile", &[], ""),
        remote.allowed("remote", ""),
    ];
    home.configure(&tables.concat());
    let mut served = home.serve(&[]);
    let fragile = Ledger::of(&home, "fragile");
    let began = Instant::now();
    let mut number = 0;
    // Warm: every kind of thing has happened a few times.
    let mut warm = Holdings::of(&served);
    while number < 8 || began.elapsed() < length / 4 {
        round(&served, &fragile, number);
        warm = warm.most(Holdings::of(&served));
        number += 1;
    }
    while began.elapsed() < length || number < 16 {
        round(&served, &fragile, number);
        number += 1;
    }
    eventually(&format!("it holds no more than {warm:?} after {number} rounds"), || {
        let now = Holdings::of(&served);
        let is_within = now.is_within(&warm);
        if !is_within {
            eprintln!("{now:?}");
        }
        is_within
    });
    let all = descendants(served.child.id());
    assert!(!all.is_empty());
    signal(served.child.id(), "-TERM");
    served.child.wait().unwrap();
    eventually("nothing is left", || all.iter().all(|pid| !lives(*pid)));
}
