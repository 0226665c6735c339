//! The text format, and the bounds of labels.

use pml_model::Principal;

use super::family::MOST_SERIES;
use super::*;

fn text(metrics: &Metrics) -> String {
    let mut report = MetricsReport::default();
    metrics.report(&mut report);
    report.to_prometheus()
}

#[test]
fn buckets_are_cumulative_and_end_with_the_count() {
    let metrics = Metrics::default();
    let tool = ToolId::parse("fs:read").unwrap();
    for ms in [1, 1, 3, 30, 90_000] {
        metrics.note_call(&tool, CallStatus::Ok, Duration::from_millis(ms));
    }
    let text = text(&metrics);
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("pml_tool_call_duration_seconds")).collect();
    let bucket = |bound: &str, count: u32| {
        format!("pml_tool_call_duration_seconds_bucket{{server=\"fs\",le=\"{bound}\"}} {count}")
    };
    for expected in
        [bucket("0.001", 2), bucket("0.005", 3), bucket("0.05", 4), bucket("60", 4), bucket("+Inf", 5)]
    {
        assert!(lines.contains(&expected.as_str()), "{expected}\n{lines:#?}");
    }
    assert!(lines.contains(&"pml_tool_call_duration_seconds_count{server=\"fs\"} 5"), "{lines:#?}");
}

#[test]
fn beyond_the_bound_servers_are_counted_together() {
    let metrics = Metrics::default();
    for number in 0..MOST_SERIES + 50 {
        let tool = ToolId::parse(&format!("server{number}:read")).unwrap();
        metrics.note_call(&tool, CallStatus::Error, Duration::ZERO);
    }
    let text = text(&metrics);
    let series = text.lines().filter(|line| line.starts_with("pml_tool_calls_total{")).count();
    assert_eq!(series, MOST_SERIES + 1);
    assert!(text.contains("pml_tool_calls_total{server=\"other\",status=\"error\"} 50\n"), "{text}");
}

#[test]
fn a_suggestion_is_accepted_once_by_a_run_of_what_it_named() {
    let metrics = Metrics::default();
    let ours = Principal::local();
    metrics.note_suggestion(&ours, "s", ["fs:read".to_owned()].into_iter());
    metrics.note_use(&ours, "other", ["fs:read"].into_iter());
    metrics.note_use(&ours, "s", ["fs:write"].into_iter());
    assert_eq!(metrics.suggestions_accepted.get(), 0);
    metrics.note_use(&ours, "s", ["fs:write", "fs:read"].into_iter());
    metrics.note_use(&ours, "s", ["fs:read"].into_iter());
    assert_eq!((metrics.suggestions_generated.get(), metrics.suggestions_accepted.get()), (1, 1));
}
