//! Trace contexts, and what is recorded when.

use tokio_util::sync::CancellationToken;

use super::*;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_context_is_read_as_the_standard_writes_it() {
    assert_eq!(TraceContext::parse(PARENT).map(|context| context.to_string()).as_deref(), Some(PARENT));
    let later = PARENT.replacen("00-", "01-", 1) + "-more";
    assert!(TraceContext::parse(&later).is_some(), "later versions may say more");
    for wrong in [
        "",
        "00",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
    ] {
        assert_eq!(TraceContext::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn without_a_collector_the_trace_of_the_client_is_passed_on_as_it_is() {
    let (telemetry, receiver) = Telemetry::new(false);
    assert!(receiver.is_none());
    let parent = TraceContext::parse(PARENT);
    assert_eq!(telemetry.begin("x", SpanKind::Client, parent.clone()).context(), parent);
    assert_eq!(telemetry.begin("x", SpanKind::Client, None).context(), None);
}

#[tokio::test]
async fn a_span_is_within_its_parent_and_unsampled_traces_have_none() {
    let (telemetry, receiver) = Telemetry::new(true);
    let parent = TraceContext::parse(PARENT);
    let mut span = telemetry.begin("tools/call x", SpanKind::Client, parent.clone());
    span.set("mcp.method.name", || "tools/call");
    span.fail("tool_error");
    let context = span.context().unwrap();
    let outer = parent.unwrap();
    assert_eq!(context.trace(), outer.trace());
    assert_ne!(context.span(), outer.span());
    drop(span);
    let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00"));
    assert_eq!(telemetry.begin("x", SpanKind::Client, unsampled.clone()).context(), unsampled);
    telemetry.begin("did not happen", SpanKind::Client, None).discard();
    drop(telemetry);
    let spans = receiver.unwrap().drain().await;
    let encoded = export::encode(&spans);
    let spans = encoded["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    assert_eq!(spans.len(), 1);
    assert_eq!(spans[0]["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(spans[0]["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(spans[0]["status"]["code"], 2);
    assert_eq!(spans[0]["attributes"][1]["value"]["stringValue"], "tool_error");
}

/// Ends as many spans.
fn end_spans(telemetry: &Telemetry, spans: usize) {
    for _ in 0..spans {
        drop(telemetry.begin("tools/call x", SpanKind::Client, None));
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_sent_batch_after_batch_without_a_pause() {
    let (telemetry, receiver) = Telemetry::new(true);
    let mut receiver = receiver.unwrap();
    end_spans(&telemetry, 3_000);
    let (began, stop) = (tokio::time::Instant::now(), CancellationToken::new());
    let mut received = 0;
    while received < 3_000 {
        received += receiver.next_batch(false, &stop).await.len();
    }
    assert_eq!(received, 3_000);
    // The clock is the test's own: it goes on only while everything waits.
    assert!(began.elapsed() < 2 * export::GATHER, "only the last batch waits for others");
}

#[tokio::test]
async fn a_span_that_finds_no_room_is_counted() {
    let (telemetry, receiver) = Telemetry::new(true);
    end_spans(&telemetry, QUEUE + 10);
    assert_eq!(telemetry.counts().unwrap().dropped(), 10);
    let kept = telemetry.clone();
    drop(telemetry);
    let mut receiver = receiver.unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let mut left = 0;
    loop {
        let batch = receiver.next_batch(false, &stop).await;
        left += batch.len();
        if batch.is_empty() {
            break;
        }
    }
    assert_eq!((left, kept.counts().unwrap().sent()), (QUEUE, 0));
}

/// A collector that answers its first request once it is told to, and keeps the bodies that it received.
async fn slow_collector(
    listener: tokio::net::TcpListener,
    asked: tokio::sync::oneshot::Sender<()>,
    answer: tokio::sync::oneshot::Receiver<()>,
    bodies: Arc<parking_lot::Mutex<Vec<String>>>,
) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut first = Some((asked, answer));
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut request = Vec::new();
        let body = loop {
            let text = String::from_utf8_lossy(&request).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let head = head.to_ascii_lowercase();
                let length = head.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
                if body.len() >= length.parse::<usize>().unwrap() {
                    break body.to_owned();
                }
            }
            assert!(stream.read_buf(&mut request).await.unwrap() > 0, "a request is cut off");
        };
        bodies.lock().push(body);
        if let Some((asked, answer)) = first.take() {
            asked.send(()).unwrap();
            answer.await.unwrap();
        }
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        stream.write_all(reply.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_batch_that_is_on_its_way_at_the_end_is_not_sent_again() {
    let (telemetry, receiver) = Telemetry::new(true);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (asked, was_asked) = tokio::sync::oneshot::channel();
    let (answer, answered) = tokio::sync::oneshot::channel();
    let bodies = Arc::<parking_lot::Mutex<Vec<String>>>::default();
    let collector = tokio::spawn(slow_collector(listener, asked, answered, Arc::clone(&bodies)));
    let stop = CancellationToken::new();
    let headers = std::collections::BTreeMap::new();
    let settings = crate::config::TelemetryCollector { endpoint, headers };
    let exporting = tokio::spawn(export_task(settings, receiver.unwrap(), stop.clone()));
    drop(telemetry.begin("the first one", SpanKind::Client, None));
    was_asked.await.unwrap();
    stop.cancel();
    // Lets the task see that the program ends while it sends.
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    answer.send(()).unwrap();
    exporting.await.unwrap();
    collector.abort();
    let sent = bodies.lock().iter().filter(|body| body.contains("the first one")).count();
    assert_eq!(sent, 1, "{bodies:#?}");
}
