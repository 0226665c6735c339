//! `pml capabilities test`: whether capabilities still do what was recorded.

use std::process::ExitCode;
use std::sync::Arc;

use pml_model::capability::CapabilityState;
use pml_model::name::printable;
use pml_store::CapabilityQuery;
use serde_json::json;

use super::{CommandContext, out};
use crate::app::App;
use crate::flow::{self, CapabilityTest};
use crate::problem::Problem;
use crate::progress::ProgressBar;

/// The largest number of capabilities that are tested when none is named.
const MOST: u32 = 10_000;

pub(super) async fn test(
    here: &CommandContext,
    app: &Arc<App>,
    names: Vec<String>,
) -> Result<ExitCode, Problem> {
    let names = if names.is_empty() { active(app).await? } else { names };
    let bar = ProgressBar::new("replaying runs");
    let mut tests = Vec::with_capacity(names.len());
    for name in &names {
        bar.show(tests.len(), Some(names.len()));
        tests.push(flow::test_capability(app, &app.principal, name).await?);
    }
    drop(bar);
    let failed = tests.iter().filter(|test| test.failures().next().is_some()).count();
    if here.json {
        out::json(&json!({ "tests": tests, "failed": failed }));
    } else {
        print(&tests, failed);
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The ids of the capabilities that are in use, by name.
async fn active(app: &App) -> Result<Vec<String>, Problem> {
    let query =
        CapabilityQuery { state: Some(CapabilityState::Active), recent: false, limit: MOST, offset: 0 };
    let all = flow::capabilities(app, &app.principal, query).await?;
    Ok(all.into_iter().map(|one| one.procedure.id.as_str().to_owned()).collect())
}

fn print(tests: &[CapabilityTest], failed: usize) {
    let rows: Vec<Vec<String>> = tests
        .iter()
        .map(|test| {
            let (runs, failures) = (test.replays.len(), test.failures().count());
            let outcome = match (runs, failures) {
                (0, _) => "no recorded run is kept".to_owned(),
                (_, 0) => "passed".to_owned(),
                (_, failures) => format!("{failures} failed"),
            };
            vec![printable(&test.name), runs.to_string(), outcome]
        })
        .collect();
    if !rows.is_empty() {
        out::line(out::table(&["name", "runs", "outcome"], &rows).trim_end());
    }
    for test in tests {
        for replay in test.failures() {
            let failure = replay.failure.as_deref().unwrap_or_default();
            out::line(format!("{} {}: {}", printable(&test.name), replay.run, printable(failure)));
        }
    }
    let tested = tests.iter().filter(|test| !test.replays.is_empty()).count();
    out::note(format!("{tested} tested, {failed} failed, {} without a recorded run", tests.len() - tested));
}
