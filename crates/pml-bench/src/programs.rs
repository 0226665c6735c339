//! The programs that measurements start: the `pml` under test, and this program as its downstream server.

use std::path::{Path, PathBuf};

use pml::problem::{ErrorCode, Problem};
use pml::runtime;

use crate::figure::failed;

/// Both programs. They are in one directory, as `cargo build` leaves them.
#[derive(Debug)]
pub(crate) struct Programs {
    /// The program under test. Sandbox workers and guards are started from it too.
    pub(crate) pml: PathBuf,
    /// This program, whose `echo-server` is the downstream server of the gateway.
    pub(crate) bench: PathBuf,
}

impl Programs {
    /// Finds both, and makes the parts of `pml` in this process start their workers from the `pml` that was found.
    ///
    /// # Errors
    /// There is no `pml` beside this program.
    pub(crate) fn find() -> Result<Programs, Problem> {
        let bench = std::env::current_exe().map_err(failed)?;
        let pml = beside(&bench)?;
        runtime::start_parts_from(pml.clone());
        Ok(Programs { pml, bench })
    }
}

fn beside(bench: &Path) -> Result<PathBuf, Problem> {
    let pml = bench.with_file_name(format!("pml{}", std::env::consts::EXE_SUFFIX));
    if pml.is_file() {
        return Ok(pml);
    }
    let text = format!("there is no `pml` beside `pml-bench`: {} is missing", pml.display());
    Err(Problem::new(ErrorCode::Config, text).hint("`cargo build --release --package pml` builds it"))
}
