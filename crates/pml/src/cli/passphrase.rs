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
    let store = here.open_store().await?;
    if passphrase::is_set(&here.paths, &store)? {
        let old = passphrase::ask_on_terminal("Passphrase as it is now: ").await?;
        if !passphrase::verify(&here.paths, &store, SignInDoor::Terminal, old.reveal()).await? {
            let forgotten = match store.is_shared() {
                true => "delete the row `local` of the table `person`".to_owned(),
                false => format!("delete `{}`", here.paths.passphrase().display()),
            };
            return Err(Problem::new(ErrorCode::Denied, "that is not the passphrase")
                .hint(format!("if it is forgotten, {forgotten} and set a new one")));
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
    passphrase::set_for_all(&here.paths, &store, new.reveal()).await?;
    out::line("The passphrase is set. Whoever was signed in has to sign in again.");
    Ok(ExitCode::SUCCESS)
}
