//! `pml capabilities versions`, `diff` and `rollback`.

use std::process::ExitCode;
use std::sync::Arc;

use pml_model::name::printable;
use pml_model::version::short_qualified_name;
use serde_json::json;

use super::run_table::format_time;
use super::{CommandContext, out};
use crate::app::App;
use crate::flow::{self, EffectChange, RepairOutcome, VersionDiff, VersionRecord};
use crate::problem::Problem;
use crate::version_diff::{DiffLine, DiffSide, ParameterChange};

/// The number of unchanged lines that are shown around a change.
const AROUND: usize = 2;

pub(super) async fn list(here: &CommandContext, app: &App, name: &str) -> Result<ExitCode, Problem> {
    let list = flow::capability_versions(app, &app.principal, name).await?;
    if here.json {
        out::json(&list);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = list.versions.iter().map(row).collect();
    out::line(
        out::table(&["version", "runs as", "state", "worked", "since", "qualified name"], &rows).trim_end(),
    );
    for offered in &list.versions {
        if let Some(because) = &offered.version.offered_because {
            out::note(format!("version {} is offered: {}", offered.version.version, printable(because)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(record: &VersionRecord) -> Vec<String> {
    let state = match (&record.version.offered_because, record.current) {
        (Some(_), _) => "offered".to_owned(),
        (None, true) => format!("in force, {}", record.state.as_str()),
        (None, false) => "kept".to_owned(),
    };
    vec![
        record.version.version.to_string(),
        record.version.name.clone(),
        state,
        format!("{} of {}", record.success_count, record.success_count + record.failure_count),
        format_time(record.version.created_at),
        short_qualified_name(&record.qualified_name).to_owned(),
    ]
}

pub(super) async fn diff(
    here: &CommandContext,
    app: &App,
    name: &str,
    (from, to): (Option<u32>, Option<u32>),
) -> Result<ExitCode, Problem> {
    let diff = flow::diff_versions(app, &app.principal, name, from, to).await?;
    if here.json {
        out::json(&diff);
    } else {
        print(&diff);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(diff: &VersionDiff) {
    out::line(format!(
        "{}{} version {} → {}{}",
        out::BOLD,
        printable(&diff.name),
        diff.from,
        diff.to,
        out::RESET
    ));
    if let Some(because) = &diff.offered_because {
        out::line(format!("offered: {}", printable(because)));
    }
    print_code(&diff.code);
    for name in &diff.parameters.added {
        out::line(format!("parameter + {}", printable(name)));
    }
    for name in &diff.parameters.removed {
        out::line(format!("parameter - {}", printable(name)));
    }
    for ParameterChange { name, before, after } in &diff.parameters.changed {
        let (before, after) = (printable(&before.to_string()), printable(&after.to_string()));
        out::line(format!("parameter {}: {before} → {after}", printable(name)));
    }
    diff.effects.iter().for_each(|change| out::line(effect(change)));
    if diff.effects.is_empty() {
        out::line("effects: the same tools");
    }
}

/// Prints the changed lines, and some around them.
pub(super) fn print_code(lines: &[DiffLine]) {
    let changed = |at: usize| lines.get(at).is_some_and(|line| line.side != DiffSide::Both);
    let mut left_out = false;
    for (at, line) in lines.iter().enumerate() {
        if !(at.saturating_sub(AROUND)..=at + AROUND).any(changed) {
            left_out = true;
            continue;
        }
        if std::mem::take(&mut left_out) {
            out::line(format!("{}…{}", out::DIM, out::RESET));
        }
        let sign = match line.side {
            DiffSide::Both => ' ',
            DiffSide::Removed => '-',
            DiffSide::Added => '+',
        };
        out::line(format!("{sign} {}", printable(&line.text)));
    }
    if !lines.iter().any(|line| line.side != DiffSide::Both) {
        out::line("code: the same");
    }
}

fn effect(change: &EffectChange) -> String {
    let sign = if change.added { '+' } else { '-' };
    let what = change.effect.unwrap_or("is not known to only read");
    let approval = match change.approval {
        Some("auto") => "needs no approval",
        Some("deny") => "is denied",
        Some(_) => "needs approval",
        None => "is not there",
    };
    format!("effect {sign} {} {what}, {approval}", printable(&change.tool))
}

pub(super) async fn roll_back(
    here: &CommandContext,
    app: &App,
    name: &str,
    version: Option<u32>,
) -> Result<ExitCode, Problem> {
    let version = flow::roll_back(app, &app.principal, name, version).await?;
    if here.json {
        out::json(&json!({ "version": version }));
    } else {
        out::line(format!("version {version} of {} is in force", printable(name)));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn repair(here: &CommandContext, app: &Arc<App>, name: &str) -> Result<ExitCode, Problem> {
    let outcome = flow::repair_capability(app, &app.principal, name).await?;
    let code = match outcome {
        RepairOutcome::None { .. } => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    };
    if here.json {
        out::json(&outcome);
        return Ok(code);
    }
    let shown = printable(name);
    match &outcome {
        RepairOutcome::Unchanged => out::line(format!("the tools of {shown} have not changed")),
        RepairOutcome::Offered { name, version, because } => {
            out::line(format!("version {version} of {} is offered: {}", printable(name), printable(because)));
            out::note(format!(
                "`pml capabilities diff {name}` shows it, `pml capabilities accept {name}` puts it in force"
            ));
        }
        RepairOutcome::Existing { name } => {
            out::line(format!("the repaired program is there already: {}", printable(name)));
        }
        RepairOutcome::None { because } => out::note(format!("no repair of {shown}: {}", printable(because))),
    }
    Ok(code)
}

pub(super) async fn accept(here: &CommandContext, app: &App, name: &str) -> Result<ExitCode, Problem> {
    let (name, version) = flow::accept_repair(app, &app.principal, name).await?;
    if here.json {
        out::json(&json!({ "name": name, "version": version }));
    } else {
        out::line(format!("version {version} of {} is in force", printable(&name)));
    }
    Ok(ExitCode::SUCCESS)
}
