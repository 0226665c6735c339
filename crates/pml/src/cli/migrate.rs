//! `pml migrate`: copies the database to another one.

use std::process::ExitCode;

use clap::Args;
use pml_store::{CopyProgress, DatabasePlace, NewAuditEntry, Store, TableReport};
use serde_json::json;

use super::{CommandContext, out};
use crate::clock::now_ms;
use crate::config;
use crate::problem::Problem;
use crate::runtime::run_blocking;

/// Arguments of `pml migrate`.
#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Where to: `postgres://user:password@host/database`, where `${NAME}` stands for a variable, or a file
    #[arg(long, value_name = "WHERE")]
    to: String,
}

pub(super) async fn run(here: &CommandContext, migrate: MigrateArgs) -> Result<ExitCode, Problem> {
    let from = match config::database_url(&here.paths, &here.env)? {
        Some(address) => DatabasePlace::Server(address.url.reveal().to_owned()),
        None => DatabasePlace::File(here.paths.database()),
    };
    let to = config::expand_variables(&migrate.to, &here.env, &here.cwd)?;
    let to = match config::is_database_url(&to) {
        true => DatabasePlace::Server(to),
        false => DatabasePlace::File(here.cwd.join(to)),
    };
    let (source, target, beside, is_quiet) = (from.clone(), to.clone(), here.paths.database(), here.json);
    let copied = run_blocking(move || {
        let mut told = ProgressNotes { is_quiet, last: None };
        pml_store::copy_database(&source, &target, &beside, |progress| told.note(progress))
    })
    .await?;
    let store = match &to {
        DatabasePlace::File(path) => Store::open(path.clone()).await?,
        DatabasePlace::Server(url) => Store::open_postgres(url, here.paths.database()).await?,
    };
    let name = store.path().display().to_string();
    let entry = NewAuditEntry {
        at: now_ms(),
        principal: pml_model::Principal::local(),
        run: None,
        kind: "database migrated",
        body: json!({ "to": name }),
    };
    store.append_audit(vec![entry]).await?;
    show(here, &name, &copied, &to);
    Ok(ExitCode::SUCCESS)
}

fn show(here: &CommandContext, name: &str, copied: &[TableReport], to: &DatabasePlace) {
    if here.json {
        let tables: Vec<_> = copied
            .iter()
            .map(|table| json!({ "table": table.table, "rows": table.rows, "digest": table.digest.as_str() }))
            .collect();
        return out::json(&json!({ "to": name, "tables": tables }));
    }
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    out::line(format!("{name} holds all {rows} rows of {} tables, compared by digest", copied.len()));
    out::line(match to {
        DatabasePlace::Server(_) => {
            "To use it, set `url` in `[store]` of the configuration of each gateway, and give each the same `seal.key`."
        }
        DatabasePlace::File(path) if *path == here.paths.database() => {
            "To use it, take `[store]` out of the configuration."
        }
        DatabasePlace::File(_) => {
            "To use it, take `[store]` out of the configuration and name the directory of the file in `PML_HOME`."
        }
    });
    out::line("The old database is as it was.");
}

/// Tells on standard error which table is being worked on.
struct ProgressNotes {
    is_quiet: bool,
    last: Option<(String, bool)>,
}

impl ProgressNotes {
    fn note(&mut self, progress: CopyProgress<'_>) {
        let now = (progress.table.to_owned(), progress.is_comparing);
        if self.is_quiet || self.last.as_ref() == Some(&now) {
            return;
        }
        let verb = if progress.is_comparing { "comparing" } else { "copying" };
        out::note(format!("{verb} {}", progress.table));
        self.last = Some(now);
    }
}
