//! `pml rules`: what people allowed for later runs too, and taking it back.

use std::process::ExitCode;

use clap::Subcommand;
use pml_model::name::printable;
use pml_store::{ApprovalRule, Maker};
use serde_json::{Value, json};

use super::runs::when;
use super::{Here, out};
use crate::app::Role;
use crate::flow::{self, By};
use crate::problem::Problem;

/// What to do with standing rules.
#[derive(Debug, Subcommand)]
pub(super) enum Rules {
    /// List standing rules, newest first, expired and revoked ones included
    List,
    /// Revoke a rule: its calls need approval again
    Revoke {
        /// Its number
        id: i64,
    },
}

pub(super) async fn run(here: &Here, rules: Rules) -> Result<ExitCode, Problem> {
    let app = here.open(Role::Command).await?;
    let done = async {
        match rules {
            Rules::List => list(here, &flow::rules(&app, &app.principal).await?),
            Rules::Revoke { id } => {
                let rule = flow::revoke_rule(&app, &app.principal, id, &By::Shell).await?;
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

fn list(here: &Here, rules: &[ApprovalRule]) {
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
        (Some(at), _) => format!("no more, since {}", when(at)),
        (None, Maker::Person) => format!("until {}", when(rule.expires_at)),
        (None, Maker::Unknown) => format!("until {}, not under by = \"human\"", when(rule.expires_at)),
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
        "madeByPerson": rule.maker == Maker::Person, "revokedAt": rule.revoked_at, "uses": rule.uses, "usedAt": rule.used_at,
    })
}
