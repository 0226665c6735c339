//! Tests of the telemetry settings.

use super::complaints::complaints;
use super::*;

#[test]
fn spans_are_sent_only_to_a_collector_that_is_named() {
    let telemetry = |text: &str| user(text).load().unwrap().telemetry;
    assert_eq!(telemetry(""), None);
    assert_eq!(telemetry("[telemetry]\n"), None);
    let named = "[telemetry]\notlp_endpoint = \"http://127.0.0.1:4318\"\nheaders = { x-key = \"k$$1\" }";
    let collector = telemetry(named).unwrap();
    assert_eq!(collector.endpoint.as_str(), "http://127.0.0.1:4318/");
    assert_eq!(collector.headers["x-key"].reveal(), "k$1");
}

#[test]
fn a_collector_that_is_named_wrongly_is_told_with_its_place() {
    expect![[r#"
        ~/pml/pml.toml:2:17: `telemetry.otlp_endpoint` is no plain address
        hint: write it as `http://127.0.0.1:4318`, without `/v1/traces`; credentials go into `headers`
        ~/pml/pml.toml:2:17: `telemetry.otlp_endpoint` is no plain address
        hint: write it as `http://127.0.0.1:4318`, without `/v1/traces`; credentials go into `headers`
        ~/pml/pml.toml:2:11: `telemetry.headers` stands without `otlp_endpoint`
        hint: give the address of the collector, or remove it
        ~/pml/pml.toml:3:11: `telemetry.headers.x key` is no HTTP header
        hint: a name has no spaces, and a value has no line breaks
        ~/pml/pml.toml:3:11: the variable `NOT_SET` is not set
        hint: set `NOT_SET` in the environment PML is started in
        ~/pml/pml.toml:2:1: unknown key `endpoint`
        hint: known here: `otlp_endpoint`, `headers`
    "#]]
    .assert_eq(&complaints(&[
        "[telemetry]\notlp_endpoint = \"localhost:4318\"",
        "[telemetry]\notlp_endpoint = \"http://me:secret@127.0.0.1:4318\"",
        "[telemetry]\nheaders = { x-key = \"k\" }",
        "[telemetry]\notlp_endpoint = \"http://127.0.0.1\"\nheaders = { \"x key\" = \"k\" }",
        "[telemetry]\notlp_endpoint = \"http://127.0.0.1\"\nheaders = { x-key = \"${NOT_SET}\" }",
        "[telemetry]\nendpoint = \"http://127.0.0.1\"",
    ]));
}
