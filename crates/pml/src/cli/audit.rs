//! `pml audit`: the log of questions, answers and decisions, and whether it is what was written.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::name::{printable, shortened};
use pml_store::{AuditRow, Store, Verified};
use serde_json::json;

use super::runs::when;
use super::{Here, out};
use crate::problem::Problem;

/// What to do with the audit log.
#[derive(Debug, Subcommand)]
pub(super) enum Audit {
    /// Verify that no entry was changed, removed or cut off
    Verify,
    /// List entries, oldest first
    List(List),
}

/// Arguments of `pml audit list`.
#[derive(Debug, Args)]
pub(super) struct List {
    /// Only entries after this one
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: i64,
    /// The number of entries
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
}

pub(super) async fn run(here: &Here, audit: Audit) -> Result<ExitCode, Problem> {
    // Only the database is needed: a configuration that cannot be read is no reason not to look.
    let store = Store::open(here.paths.database()).await?;
    match audit {
        Audit::Verify => verify(here, store).await,
        Audit::List(list) => self::list(here, store, list).await,
    }
}

async fn verify(here: &Here, store: Store) -> Result<ExitCode, Problem> {
    let verified = store.verify_audit().await?;
    match &verified {
        Verified::Whole { rows, head } if here.json => {
            out::json(&json!({ "whole": true, "entries": rows, "head": head }));
        }
        Verified::Whole { rows, head } => {
            out::line(format!("the log is whole: {rows} entries, head {head}"));
        }
        Verified::Broken { seq, why } if here.json => {
            out::json(&json!({ "whole": false, "entry": seq, "why": why.to_string() }));
        }
        Verified::Broken { seq, why } => {
            out::line(format!("{}the log is broken{} at entry {seq}: {why}", out::BOLD_RED, out::RESET));
        }
    }
    let whole = matches!(verified, Verified::Whole { .. });
    Ok(if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn list(here: &Here, store: Store, list: List) -> Result<ExitCode, Problem> {
    let rows = store.audit_rows(list.after, list.limit).await?;
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

fn row_json(row: &AuditRow) -> serde_json::Value {
    json!({
        "entry": row.seq, "at": row.at, "principal": row.principal.0, "workflowId": row.run, "kind": row.kind,
        "body": row.body, "hash": row.hash,
    })
}

fn row_cells(row: &AuditRow) -> Vec<String> {
    vec![
        row.seq.to_string(),
        when(row.at),
        printable(&row.principal.0),
        row.run.as_ref().map(ToString::to_string).unwrap_or_default(),
        printable(&row.kind),
        printable(&shortened(row.body.get(), 80)),
    ]
}
