//! A table of runs.

use pml_model::RunState;
use pml_model::name::{printable, truncate_text};
use pml_store::RunRow;

use super::out;

/// A table of runs.
pub(super) fn run_table(rows: &[RunRow]) -> String {
    let cells: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                row.id.to_string(),
                status_text(row),
                row.calls.to_string(),
                format_time(row.created_at),
                printable(&truncate_text(&row.intent, 48)),
            ]
        })
        .collect();
    out::table(&["run", "state", "calls", "begun", "for"], &cells)
}

/// The status of a run in a few words.
pub(super) fn status_text(row: &RunRow) -> String {
    match (row.state, &row.error_code, row.wake_at, &row.question_id) {
        (RunState::Failed, Some(code), _, _) => format!("failed {code}"),
        (RunState::Waiting, _, _, Some(_)) => "waiting for an answer".to_owned(),
        (RunState::Waiting, _, Some(at), None) => format!("sleeps until {}", format_time(at)),
        (state, _, _, _) => state.to_string(),
    }
}

/// A time in milliseconds since 1970, formatted for people.
pub(super) fn format_time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms)
        .map(|at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_else(|_| ms.to_string())
}
