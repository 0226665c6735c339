//! `pml audit`: lists the log of questions, answers and decisions, and verifies that nobody changed it.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::name::{printable, truncate_text};
use pml_store::{AuditEntry, AuditVerification, Store};
use serde_json::json;

use super::run_table::format_time;
use super::{CommandContext, out};
use crate::problem::Problem;

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub(super) enum AuditCommand {
    /// Verify that no entry was changed, removed or cut off
    Verify,
    /// List entries, oldest first
    List(ListAuditArgs),
}

/// Arguments of `pml audit list`.
#[derive(Debug, Args)]
pub(super) struct ListAuditArgs {
    /// Only entries after this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: i64,
    /// The number of entries
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
}

pub(super) async fn run(here: &CommandContext, audit: AuditCommand) -> Result<ExitCode, Problem> {
    // Only the database is needed, so the log can be read even where the configuration cannot.
    let store = here.open_store().await?;
    match audit {
        AuditCommand::Verify => verify(here, store).await,
        AuditCommand::List(list) => self::list(here, store, list).await,
    }
}

async fn verify(here: &CommandContext, store: Store) -> Result<ExitCode, Problem> {
    let verified = store.verify_audit().await?;
    match &verified {
        AuditVerification::Whole { rows, head } if here.json => {
            out::json(&json!({ "whole": true, "entries": rows, "head": head }));
        }
        AuditVerification::Whole { rows, head } => {
            out::line(format!("the log is whole: {rows} entries, head {head}"));
        }
        AuditVerification::Broken { seq, why } if here.json => {
            out::json(&json!({ "whole": false, "entry": seq, "why": why.to_string() }));
        }
        AuditVerification::Broken { seq, why } => {
            out::line(format!("{}the log is broken{} at entry {seq}: {why}", out::BOLD_RED, out::RESET));
        }
    }
    let whole = matches!(verified, AuditVerification::Whole { .. });
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn list(here: &CommandContext, store: Store, list: ListAuditArgs) -> Result<ExitCode, Problem> {
    let rows = store.audit_entries(list.after, list.limit).await?;
    if here.json {
        out::json(&rows.iter().map(row_json).collect::<Vec<_>>());
    } else if rows.is_empty() {
        out::note(if list.after > 0 { "no entries after that one" } else { "no entries yet" });
    } else {
        let cells: Vec<Vec<String>> = rows.iter().map(row_cells).collect();
        out::line(out::table(&["entry", "when", "who", "run", "what", "particulars"], &cells));
    }
    Ok(ExitCode::SUCCESS)
}

fn row_json(row: &AuditEntry) -> serde_json::Value {
    json!({
        "entry": row.seq, "at": row.at, "principal": row.principal.0, "workflowId": row.run, "kind": row.kind,
        "body": row.body, "hash": row.hash,
    })
}

fn row_cells(row: &AuditEntry) -> Vec<String> {
    vec![
        row.seq.to_string(),
        format_time(row.at),
        printable(&row.principal.0),
        row.run.as_ref().map(ToString::to_string).unwrap_or_default(),
        printable(&row.kind),
        printable(&truncate_text(row.body.get(), 80)),
    ]
}
