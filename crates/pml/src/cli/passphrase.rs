//! `pml passphrase`: sets the passphrase for signing in and for approving as a person.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use super::{CommandContext, out};
use crate::passphrase::{self, SignInDoor};
use crate::problem::{ErrorCode, Problem};

pub(super) async fn run(here: &CommandContext) -> Result<ExitCode, Problem> {
    if !std::io::stdin().is_terminal() {
        let text = "a passphrase is typed by a person, and standard input is no terminal";
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("run `pml passphrase` in a terminal"));
    }
    if passphrase::is_set(&here.paths)? {
        let store = here.open_store().await?;
        let old = passphrase::ask_on_terminal("Passphrase as it is now: ").await?;
        if !passphrase::verify(&here.paths, &store, SignInDoor::Terminal, old.reveal()).await? {
            let forgotten = here.paths.passphrase();
            return Err(Problem::new(ErrorCode::Denied, "that is not the passphrase")
                .hint(format!("if it is forgotten, delete `{}` and set a new one", forgotten.display())));
        }
    } else {
        // No secret exists yet that only the owner knows, so setting the first one at least requires reading the
        // terminal.
        passphrase::confirm_on_terminal().await?;
    }
    let new = passphrase::ask_on_terminal("New passphrase: ").await?;
    let again = passphrase::ask_on_terminal("The same again: ").await?;
    if new != again {
        return Err(Problem::new(ErrorCode::InvalidRequest, "the two are not the same")
            .hint("nothing was changed; run `pml passphrase` again"));
    }
    passphrase::set(&here.paths, new.reveal()).await?;
    out::line("The passphrase is set. Whoever was signed in has to sign in again.");
    Ok(ExitCode::SUCCESS)
}
