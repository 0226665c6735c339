//! `pml backup` and `pml restore`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pml_store::{KeyInBackup, NewAuditEntry};
use serde_json::json;

use super::{CommandContext, out};
use crate::clock::now_ms;
use crate::config;
use crate::problem::Problem;
use crate::runtime::run_blocking;

/// Arguments of `pml backup`.
#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// The file to write [default: a new file in `backups` beside the database]
    path: Option<PathBuf>,
    /// Leave `seal.key` out: the backup can then be restored only beside that key
    #[arg(long)]
    without_key: bool,
}

/// Arguments of `pml restore`.
#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The backup
    path: PathBuf,
}

pub(super) async fn backup(here: &CommandContext, backup: BackupArgs) -> Result<ExitCode, Problem> {
    let to = match backup.path {
        Some(path) => here.cwd.join(path),
        None => new_path(&here.paths.backups())?,
    };
    let key = if backup.without_key { KeyInBackup::LeftOut } else { KeyInBackup::Included };
    let made = here.open_store().await?.backup(&to, key).await?;
    let shown = to.display().to_string();
    if here.json {
        let included = key == KeyInBackup::Included;
        out::json(&json!({
            "path": shown, "bytes": made.bytes, "keyIncluded": included, "damagedRows": made.damaged_rows,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    out::line(format!("{shown} ({} KiB), checked", made.bytes.div_ceil(1024)));
    out::line(match key {
        KeyInBackup::Included => {
            "It includes `seal.key`, so it can be put back anywhere, and whoever has it can read what runs saw: keep it \
             as safe as the data directory."
        }
        KeyInBackup::LeftOut => {
            "`seal.key` is not in it: without that file beside the database it cannot be put back."
        }
    });
    out::line("Not included: the configuration, the passphrase, the bearer token and accepted commands.");
    if made.damaged_rows > 0 {
        out::note(format!(
            "{} damaged rows are in it as they are; `pml doctor` names them",
            made.damaged_rows
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn restore(here: &CommandContext, restore: RestoreArgs) -> Result<ExitCode, Problem> {
    let from = here.cwd.join(restore.path);
    let (database, backup, label) = (here.paths.database(), from.clone(), stamp());
    let address = config::database_url(&here.paths, &here.env)?;
    let restored = run_blocking(move || match address {
        Some(address) => {
            pml_store::restore_backup_to_server(&backup, address.url.reveal(), &database, &label)
        }
        None => pml_store::restore_backup(&backup, &database, &label),
    })
    .await?;
    let entry = NewAuditEntry {
        at: now_ms(),
        principal: pml_model::Principal::local(),
        run: None,
        kind: "database restored",
        body: json!({ "backup": from.display().to_string() }),
    };
    here.open_store().await?.append_audit(vec![entry]).await?;
    if here.json {
        out::json(&json!({
            "restored": from.display().to_string(),
            "aside": restored.replaced_files_dir.as_ref().map(|path| path.display().to_string()),
            "keyFromBackup": restored.key == KeyInBackup::Included,
            "damagedRows": restored.damaged_rows,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    out::line(format!("{} is in place, checked", from.display()));
    if let Some(aside) = &restored.replaced_files_dir {
        out::line(format!("What was there before is in {}", aside.display()));
    }
    for row in &restored.damaged_rows {
        out::note(format!("damaged in the backup, and left out: {row}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A new file name in a directory that only its owner can read.
fn new_path(directory: &Path) -> Result<PathBuf, Problem> {
    config::disk::create_private_dir(directory)?;
    let (stamp, mut number) = (stamp(), 1);
    loop {
        let name = if number == 1 { format!("pml-{stamp}.db") } else { format!("pml-{stamp}-{number}.db") };
        let path = directory.join(name);
        if !path.exists() {
            return Ok(path);
        }
        number += 1;
    }
}

/// The current time in a form that fits file names.
fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
