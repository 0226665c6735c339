//! What one client does to the gateway must not keep others out.
//!
//! `PML_SOAK_CONNECTIONS` says how many slow connections there are (`cargo xtask soak connections`).

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::harness::{Home, PATIENCE, Served};
use crate::http::{Reply, authority, modern_by, send, send_raw};

/// How many slow connections there are where nobody says otherwise: more than the gateway can have files open.
const SAMPLE: usize = 600;

/// A gateway that may have few files open.
fn confined(home: &Home) -> Served {
    let inner = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 512; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    home.serve_by(command)
}

/// A request whose body never comes to its end.
fn slow_body(served: &Served, path: &str, more: &str) -> TcpStream {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-www-form-urlencoded\r\n{more}\
         Content-Length: 1000\r\n\r\npassphrase=",
        authority(served)
    );
    send_raw(served, head.as_bytes())
}

fn is_open(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    match stream.read(&mut [0; 64 * 1024]) {
        Ok(bytes) => bytes > 0,
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

#[track_caller]
fn assert_healthy(served: &Served, when: &str) {
    assert_eq!(send(served, "GET", "/health", &[("Host", authority(served))], "").status, 200, "{when}");
    let client = json!({"name": "test", "capabilities": {}});
    let call = json!({"name": "math:evaluate", "arguments": {"expression": "6 * 7"}});
    let reply = modern_by(served, &client, "tools/call", &call).response();
    assert!(reply.to_string().contains("42"), "{when}: {reply}");
}

#[test]
fn slow_bodies_do_not_silence_the_gateway_and_cut_nobody_off() {
    let count = std::env::var("PML_SOAK_CONNECTIONS").map_or(SAMPLE, |count| count.parse().unwrap());
    let home = Home::new("");
    let served = confined(&home);
    assert_healthy(&served, "before");
    // A stream that hears of changes, and a run that takes its time.
    let token = format!("Authorization: Bearer {}\r\n", served.token);
    let mut stream = listen(&served, &token);
    assert!(is_open(&mut stream));
    let slow_run = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let client = json!({"name": "test", "capabilities": {}});
            let code = "await new Promise((resolve) => setTimeout(resolve, 4000)); return 'awake'";
            let work = json!({"intent": "sleep a little", "implementation": {"type": "code", "code": code}});
            let call = json!({"name": "pml_execute", "arguments": work});
            modern_by(&served, &client, "tools/call", &call).response()
        });
        let mut held = Vec::new();
        for number in 0..count {
            held.push(slow_body(&served, "/login", ""));
            if number % 97 == 0 {
                assert_healthy(&served, &format!("with {number} slow bodies"));
            }
        }
        assert_healthy(&served, "with all of them");
        let latest = held.last_mut().unwrap();
        assert!(is_open(latest), "the latest of them has its time");
        assert!(!is_open(&mut held[0]), "the first of them had to make room");
        assert!(is_open(&mut stream), "who is known is not cut off");
        run.join().unwrap()
    });
    assert!(slow_run.to_string().contains("awake"), "{slow_run}");
    assert_healthy(&served, "afterwards");
    assert!(is_open(&mut stream));
}

/// A stream of changes, as a client of the stateless era opens one.
fn listen(served: &Served, token: &str) -> TcpStream {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "notifications": {"toolsListChanged": true}});
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{token}Content-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n\
         Content-Length: {}\r\n\r\n{body}",
        authority(served),
        body.len()
    );
    let mut stream = send_raw(served, head.as_bytes());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut first = [0; 15];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    stream
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for_whoever_sends_it() {
    let home = Home::new("");
    let served = home.serve(&[]);
    let json = "Content-Type: application/json\r\n";
    let token = format!("Authorization: Bearer {}\r\n", served.token);
    let known = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\n{token}{json}Accept: */*\r\nContent-Length: 1000\r\n\r\n{{",
        authority(&served)
    );
    let chunked = format!(
        "POST /api/analyse HTTP/1.1\r\nHost: {}\r\n{token}{json}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n",
        authority(&served)
    );
    let mut slow = vec![slow_body(&served, "/login", ""), send_raw(&served, known.as_bytes())];
    slow.push(send_raw(&served, chunked.as_bytes()));
    for stream in slow {
        let mut drip = stream.try_clone().unwrap();
        // A byte now and then does not help.
        let dripping = std::thread::spawn(move || {
            for _ in 0..600 {
                std::thread::sleep(Duration::from_millis(100));
                if drip.write_all(b"1").is_err() {
                    return;
                }
            }
        });
        let status = Reply::read(stream).map(|reply| reply.status);
        assert!(matches!(status, Some(400 | 408) | None), "{status:?}");
        dripping.join().unwrap();
    }
    // Nobody is let in to send a body without being known.
    let stranger = known.replace(&token, "");
    assert_eq!(Reply::read(send_raw(&served, stranger.as_bytes())).unwrap().status, 401);
}
