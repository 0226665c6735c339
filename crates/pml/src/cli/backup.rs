//! `pml backup` and `pml restore`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use pml_store::{Audit, KeyInBackup, Store};
use serde_json::json;

use super::{Here, out};
use crate::clock::now_ms;
use crate::problem::Problem;
use crate::runtime::blocking;

/// Arguments of `pml backup`.
#[derive(Debug, Args)]
pub(super) struct Backup {
    /// The file to write [default: a new file in `backups` beside the database]
    path: Option<PathBuf>,
    /// Leave `seal.key` out: the backup can then be restored only beside that key
    #[arg(long)]
    without_key: bool,
}

/// Arguments of `pml restore`.
#[derive(Debug, Args)]
pub(super) struct Restore {
    /// The backup
    path: PathBuf,
}

pub(super) async fn backup(here: &Here, backup: Backup) -> Result<ExitCode, Problem> {
    let to = match backup.path {
        Some(path) => here.cwd.join(path),
        None => new_path(&here.paths.backups())?,
    };
    let key = if backup.without_key { KeyInBackup::LeftOut } else { KeyInBackup::Included };
    let made = Store::open(here.paths.database()).await?.backup(&to, key).await?;
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

pub(super) async fn restore(here: &Here, restore: Restore) -> Result<ExitCode, Problem> {
    let from = here.cwd.join(restore.path);
    let (database, backup, label) = (here.paths.database(), from.clone(), stamp());
    let put_back = database.clone();
    let restored = blocking(move || pml_store::restore(&backup, &put_back, &label)).await?;
    let entry = Audit {
        at: now_ms(),
        principal: pml_model::Principal::local(),
        run: None,
        kind: "database restored",
        body: json!({ "backup": from.display().to_string() }),
    };
    Store::open(database).await?.audit(vec![entry]).await?;
    if here.json {
        out::json(&json!({
            "restored": from.display().to_string(),
            "aside": restored.aside.as_ref().map(|path| path.display().to_string()),
            "keyFromBackup": restored.key == KeyInBackup::Included,
            "damagedRows": restored.damaged_rows,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    out::line(format!("{} is in place, checked", from.display()));
    if let Some(aside) = &restored.aside {
        out::line(format!("What was there before is in {}", aside.display()));
    }
    for row in &restored.damaged_rows {
        out::note(format!("damaged in the backup, and left out: {row}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// A file that is not there yet, in a directory for its owner alone.
fn new_path(directory: &Path) -> Result<PathBuf, Problem> {
    crate::config::disk::private_dir(directory)?;
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

/// The present time as part of a file name.
fn stamp() -> String {
    jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string()
}
