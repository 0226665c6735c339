//! Trace contexts, and what is recorded when.

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
