//! `pml policy`: explains the policy of a tool, rule by rule, and tests it against expectations.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use pml_model::name::printable;
use pml_model::{Annotations, Definition, ToolId};
use serde_json::{Value, json};

use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::approve::{Explanation, specificity};
use crate::catalogue::ToolSnapshot;
use crate::config::{self, Expectation};
use crate::problem::{ErrorCode, Problem};

/// What to do with the rules.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Explain each attribute of a tool's policy and the rule that sets it
    Explain {
        /// The tool
        #[arg(value_name = "SERVER:TOOL")]
        tool: String,
    },
    /// Compare the policy with a file of expectations such as `"github:search_*" = "auto"` (or hil, deny)
    #[command(
        after_help = "The file is TOML, or YAML where its name says so. Of several expectations about a tool the most specific counts. One that is about no tool there is fails."
    )]
    Test {
        /// The file of expectations
        file: PathBuf,
    },
}

pub(super) async fn run(here: &CommandContext, policy: PolicyCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    app.tools.ensure_manifests_loaded().await;
    let done = match policy {
        PolicyCommand::Explain { tool } => explain(here, &app, &tool),
        PolicyCommand::Test { file } => test(here, &app, &file),
    };
    app.close().await;
    done
}

fn explain(here: &CommandContext, app: &App, tool: &str) -> Result<ExitCode, Problem> {
    let id =
        ToolId::parse(tool).map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))?;
    let snapshot = app.tools.snapshot();
    let (definition, held) = match snapshot.find_quarantined(&id) {
        Some(held) => (&held.definition, Some(held.reason.to_string())),
        None => (&snapshot.tool(&id)?.definition, None),
    };
    let explanation = app.policy().explain(&id, &definition.annotations);
    if here.json {
        out::json(&explained(&id, definition, held.as_deref(), &explanation));
    } else {
        show(&id, definition, held.as_deref(), &explanation);
    }
    Ok(ExitCode::SUCCESS)
}

fn explained(id: &ToolId, definition: &Definition, held: Option<&str>, why: &Explanation) -> Value {
    let attributes: serde_json::Map<String, Value> = why
        .attributes
        .iter()
        .map(|attribute| {
            let said =
                json!({ "value": attribute.value, "because": attribute.because, "place": attribute.place });
            (attribute.name.to_owned(), said)
        })
        .collect();
    let rules: Vec<Value> =
        why.rules.iter().map(|(rule, place)| json!({ "rule": rule, "place": place })).collect();
    let (believed, because) = &why.believed;
    json!({
        "tool": id,
        "mode": why.verdict.mode.as_str(),
        "because": why.verdict.because,
        "attributes": attributes,
        "rules": rules,
        "annotations": { "said": definition.annotations, "believed": believed, "because": because },
        "definition": definition.digest,
        "heldBack": held,
    })
}

fn show(id: &ToolId, definition: &Definition, held: Option<&str>, why: &Explanation) {
    out::line(format!("{}{}{}", out::BOLD, printable(&id.to_string()), out::RESET));
    let cells: Vec<Vec<String>> = why
        .attributes
        .iter()
        .map(|attribute| {
            let place = attribute.place.clone().unwrap_or_default();
            vec![attribute.name.to_owned(), attribute.value.clone(), printable(&attribute.because), place]
        })
        .collect();
    out::line(out::table(&["ATTRIBUTE", "VALUE", "BECAUSE", "WHERE"], &cells));
    for (rule, place) in &why.rules {
        out::line(format!("rule: {} at {place}", printable(rule)));
    }
    let (believed, because) = &why.believed;
    let word = if *believed { "believed" } else { "not believed" };
    out::line(format!(
        "annotations: {}; {word}, because {because}",
        describe_annotations(&definition.annotations)
    ));
    let state =
        held.map_or_else(|| "in use".to_owned(), |why| format!("held back, because {}", printable(why)));
    out::line(format!("definition: {}, {state}", definition.digest.short()));
}

fn describe_annotations(annotations: &Annotations) -> String {
    let hints = [
        ("readOnlyHint", annotations.read_only_hint),
        ("destructiveHint", annotations.destructive_hint),
        ("idempotentHint", annotations.idempotent_hint),
        ("openWorldHint", annotations.open_world_hint),
    ];
    let said: Vec<String> =
        hints.iter().filter_map(|(name, value)| Some(format!("{name} {}", (*value)?))).collect();
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

/// A tool whose policy differs from an expectation, or an expectation that matches no tool.
struct PolicyDifference {
    tool: String,
    expected: &'static str,
    is: &'static str,
    because: String,
    place: String,
}

fn test(here: &CommandContext, app: &App, file: &std::path::Path) -> Result<ExitCode, Problem> {
    let expectations = config::read_expectations(&here.cwd.join(file), &here.env)?;
    let (checked, differences) = differences(app, &app.tools.snapshot(), &expectations);
    if here.json {
        let all: Vec<Value> = differences
            .iter()
            .map(|difference| {
                json!({ "tool": difference.tool, "expected": difference.expected, "is": difference.is,
                    "because": difference.because, "place": difference.place })
            })
            .collect();
        out::json(&json!({ "checked": checked, "differences": all }));
    } else if differences.is_empty() {
        out::line(format!("{checked} tools are as expected"));
    } else {
        let cells: Vec<Vec<String>> = differences
            .iter()
            .map(|it| {
                let (tool, because) = (printable(&it.tool), printable(&it.because));
                vec![tool, it.expected.to_owned(), it.is.to_owned(), because, it.place.clone()]
            })
            .collect();
        out::line(out::table(&["TOOL", "EXPECTED", "IS", "BECAUSE", "WHERE"], &cells));
    }
    Ok(if differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The number of tools with an expectation, and the differences.
fn differences(
    app: &App,
    snapshot: &ToolSnapshot,
    expected: &[Expectation],
) -> (usize, Vec<PolicyDifference>) {
    let policy = app.policy();
    let mut expected: Vec<(&Expectation, bool)> = expected.iter().map(|it| (it, false)).collect();
    expected.sort_by_key(|(it, _)| Reverse(specificity(&it.subject)));
    let (mut checked, mut found) = (0, Vec::new());
    let usable = snapshot.tools.iter().map(|tool| (&tool.id, &tool.definition));
    let held = snapshot.quarantined.iter().map(|held| (&held.id, &held.definition));
    for (id, definition) in usable.chain(held) {
        let about = |it: &Expectation| it.subject.covers(id.server.as_str(), &id.tool);
        expected.iter_mut().filter(|(it, _)| about(it)).for_each(|(_, used)| *used = true);
        let Some((it, _)) = expected.iter().find(|(it, _)| about(it)) else { continue };
        checked += 1;
        let verdict = policy.verdict(id, &definition.annotations);
        if verdict.mode != it.mode {
            let (expected, is) = (it.mode.as_str(), verdict.mode.as_str());
            found.push(PolicyDifference {
                tool: id.to_string(),
                expected,
                is,
                because: verdict.because,
                place: it.place.clone(),
            });
        }
    }
    found.extend(expected.iter().filter(|(_, used)| !used).map(|(it, _)| PolicyDifference {
        tool: it.subject_text.clone(),
        expected: it.mode.as_str(),
        is: "-",
        because: "it is about no tool there is".to_owned(),
        place: it.place.clone(),
    }));
    found.sort_by(|a, b| a.tool.cmp(&b.tool));
    (checked, found)
}
