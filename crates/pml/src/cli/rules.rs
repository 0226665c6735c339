//! `pml rules`: lists and revokes standing rules, the approvals that later runs reuse.

use std::process::ExitCode;

use clap::Subcommand;
use pml_model::name::printable;
use pml_store::{ApprovalRule, RuleMaker};
use serde_json::{Value, json};

use super::run_table::format_time;
use super::{CommandContext, out};
use crate::app::ProcessRole;
use crate::flow::{self, AnswerChannel};
use crate::problem::Problem;

/// What to do with standing rules.
#[derive(Debug, Subcommand)]
pub(super) enum RulesCommand {
    /// List standing rules, newest first, expired and revoked ones included
    List,
    /// Revoke a rule: its calls need approval again
    Revoke {
        /// Its number
        id: i64,
    },
}

pub(super) async fn run(here: &CommandContext, rules: RulesCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = async {
        match rules {
            RulesCommand::List => list(here, &flow::rules(&app, &app.principal).await?),
            RulesCommand::Revoke { id } => {
                let rule = flow::revoke_rule(&app, &app.principal, id, &AnswerChannel::Shell).await?;
                if here.json {
                    out::json(&as_json(&rule));
                } else {
                    out::line(format!("rule {id} for {} is taken back", printable(&rule.tool)));
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    };
    let done = done.await;
    app.close().await;
    done
}

fn list(here: &CommandContext, rules: &[ApprovalRule]) {
    if here.json {
        return out::json(&rules.iter().map(as_json).collect::<Vec<_>>());
    }
    if rules.is_empty() {
        return out::note("no rules; `pml runs approve RUN --remember code` makes one of a yes");
    }
    let rows: Vec<Vec<String>> = rules.iter().map(row).collect();
    out::line(out::table(&["rule", "tool", "code", "arguments", "counts", "used", "by"], &rows));
}

fn row(rule: &ApprovalRule) -> Vec<String> {
    let only = |this: bool| if this { "only the same" } else { "any" };
    let counts = match (rule.revoked_at, rule.maker) {
        (Some(at), _) => format!("no more, since {}", format_time(at)),
        (None, RuleMaker::Person) => format!("until {}", format_time(rule.expires_at)),
        (None, RuleMaker::Unknown) => {
            format!("until {}, not under by = \"human\"", format_time(rule.expires_at))
        }
    };
    vec![
        rule.number.to_string(),
        printable(&rule.tool),
        only(rule.code_hash.is_some()).to_owned(),
        only(rule.arguments.is_some()).to_owned(),
        counts,
        rule.uses.to_string(),
        printable(&rule.by),
    ]
}

fn as_json(rule: &ApprovalRule) -> Value {
    json!({
        "id": rule.number, "tool": rule.tool, "definition": rule.definition, "codeHash": rule.code_hash,
        "arguments": rule.arguments, "expiresAt": rule.expires_at, "by": rule.by, "createdAt": rule.created_at,
        "madeByPerson": rule.maker == RuleMaker::Person, "revokedAt": rule.revoked_at, "uses": rule.uses, "usedAt": rule.used_at,
    })
}
