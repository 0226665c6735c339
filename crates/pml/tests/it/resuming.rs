//! Event streams of sessions over HTTP: cut in the middle and resumed.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Served, eventually, text};
use crate::http::{Reply, authority, in_session_with, initialize, send, served_with_fixture};

/// The slow tool's call, which reports each step.
fn slow(steps: u32) -> Value {
    let arguments = json!({"steps": steps, "interval_ms": 20});
    json!({"name": "legacy__test_slow", "arguments": arguments, "_meta": {"progressToken": "p"}})
}

/// A request for the events of a session, after `last` if there is one.
fn listen(served: &Served, session: &str, last: Option<&str>) -> Reply {
    let token = format!("Bearer {}", served.token);
    let mut headers = vec![
        ("Host", authority(served)),
        ("Authorization", token.as_str()),
        ("Accept", "text/event-stream"),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    headers.extend(last.map(|last| ("Last-Event-ID", last)));
    send(served, "GET", "/mcp", &headers, "")
}

/// The id and the message of an event.
fn parts(event: &str) -> (String, Option<Value>) {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let message =
        field("data:").filter(|data| !data.is_empty()).map(|data| serde_json::from_str(data).unwrap());
    (field("id:").unwrap_or_default().to_owned(), message)
}

/// Everything until the stream ends, without the comments that keep it open.
fn rest(mut reply: Reply) -> Vec<(String, Option<Value>)> {
    assert!(reply.is_stream(), "{}", reply.status);
    let events: Vec<String> = std::iter::from_fn(|| reply.next_event()).collect();
    events.iter().filter(|event| !event.starts_with(':')).map(|event| parts(event)).collect()
}

fn steps(events: &[(String, Option<Value>)]) -> Vec<u64> {
    events.iter().filter_map(|(_, message)| message.as_ref()?["params"]["progress"].as_u64()).collect()
}

#[test]
fn a_stream_that_broke_is_resumed_after_any_event_and_by_its_session_only() {
    let (_home, served) = served_with_fixture();
    let (session, _) = initialize(&served);
    let (other, _) = initialize(&served);
    let mut reply = in_session_with(&served, &session, "tools/call", &slow(40));
    assert!(reply.is_stream());
    let first: Vec<_> = (0..3).map(|_| parts(&reply.next_event().unwrap())).collect();
    assert_eq!(first[0].1, None, "the first event only says that the stream can be resumed");
    assert_eq!(steps(&first), [1, 2]);
    // The connection is cut while the call runs, and the call goes on.
    drop(reply);

    let resumed = rest(listen(&served, &session, Some(&first[1].0)));
    assert_eq!(steps(&resumed), (2..=40).collect::<Vec<_>>(), "each once and in order");
    let (last, result) = resumed.last().unwrap();
    assert_eq!(text(&result.as_ref().unwrap()["result"]), "finished 40 steps");
    let again = rest(listen(&served, &session, Some(&first[2].0)));
    assert_eq!(again, resumed[1..], "an ended stream can still be read");
    assert_eq!(rest(listen(&served, &session, Some(last))), []);

    for unknown in ["1-1", "nonsense", &last.replace('-', "-9")] {
        let refused = listen(&served, &session, Some(unknown));
        assert_eq!(refused.status, 400);
        assert!(refused.body().contains("there is nothing to resume"));
    }
    assert_eq!(listen(&served, &other, Some(last)).status, 400, "the stream of another session");
}

#[test]
fn a_call_whose_client_went_before_any_event_is_not_cancelled() {
    let (_home, served) = served_with_fixture();
    let (session, _) = initialize(&served);
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": slow(300)}).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: */*\r\n\
         Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
        authority(&served),
        served.token,
        body.len()
    );
    let connection = crate::http::send_raw(&served, head.as_bytes());
    // The requests below have the same id, which is refused while the call runs. One that came before the call would take
    // its place.
    std::thread::sleep(Duration::from_millis(500));
    let cancelled = json!({"name": "legacy__test_cancelled_calls", "arguments": {}});
    let status = || in_session_with(&served, &session, "tools/call", &cancelled).status;
    eventually("the call runs", || status() == 400);
    drop(connection);
    eventually("the call ends", || status() == 200);
    let told = in_session_with(&served, &session, "tools/call", &cancelled).response();
    assert_eq!(text(&told["result"]), "0");
}

#[test]
fn a_session_that_comes_back_for_changes_learns_of_all_that_can_have_changed() {
    let (_home, served) = served_with_fixture();
    let (session, _) = initialize(&served);
    let mut reply = listen(&served, &session, Some("changes"));
    let methods: Vec<Value> = (0..3).map(|_| reply.event()["method"].take()).collect();
    let lists = ["tools", "prompts", "resources"].map(|list| format!("notifications/{list}/list_changed"));
    assert_eq!(methods, lists.map(Value::from));
}
