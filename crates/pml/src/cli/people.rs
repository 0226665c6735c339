//! `pml people`: who signs in to the dashboard beside the operator.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use pml_model::{Membership, Principal};
use pml_store::Store;
use serde_json::json;

use super::ask::require_passphrase;
use super::keys::RoleName;
use super::run_table::format_time;
use super::{CommandContext, out};
use crate::config::Secret;
use crate::flow;
use crate::passphrase;
use crate::people;
use crate::problem::{ErrorCode, Problem};

/// What to do with people.
#[derive(Debug, Subcommand)]
pub(super) enum PeopleCommand {
    /// Add a person, who signs in with a name and a passphrase
    Add(AddPersonArgs),
    /// List the people who may sign in
    List,
    /// Put a person into a project of an organisation
    Assign(AssignPersonArgs),
    /// Set the passphrase of a person; their sessions end
    Passphrase {
        /// Their name
        name: String,
    },
    /// Remove a person: their sessions end and their keys are revoked; what they own stays
    Remove {
        /// Their name
        name: String,
    },
}

/// Arguments of `pml people add`.
#[derive(Debug, Args)]
pub(super) struct AddPersonArgs {
    /// Their name, as `pml keys create --for` takes it
    name: String,
    /// What they may do
    #[arg(long, value_enum, default_value_t = RoleName::Approver)]
    role: RoleName,
}

/// Arguments of `pml people assign`.
#[derive(Debug, Args)]
pub(super) struct AssignPersonArgs {
    /// Their name, as `pml keys create --for` takes it
    name: String,
    /// The project, whose members see what is published to it
    #[arg(long, value_name = "NAME", default_value = "default")]
    project: String,
    /// The organisation that the project belongs to
    #[arg(long, value_name = "NAME", default_value = "default")]
    org: String,
}

pub(super) async fn run(here: &CommandContext, people: PeopleCommand) -> Result<ExitCode, Problem> {
    let store = here.open_store().await?;
    match people {
        PeopleCommand::Add(add) => {
            let person = name(&add.name)?;
            require_passphrase(&here.paths, &store).await?;
            let given = ask_twice(&person).await?;
            people::add(&store, person.clone(), add.role.into(), given.reveal()).await?;
            tell(here, "person", &person, "may sign in");
        }
        PeopleCommand::Assign(assign) => {
            let person = name(&assign.name)?;
            require_passphrase(&here.paths, &store).await?;
            let to = Membership { org: assign.org, project: assign.project };
            flow::assign_person(&store, &person, &to).await?;
            tell(here, "person", &person, &format!("is in project {} of {}", to.project, to.org));
        }
        PeopleCommand::List => list(here, &store).await?,
        PeopleCommand::Passphrase { name: given } => {
            let person = name(&given)?;
            prove(here, &store, &person).await?;
            let given = ask_twice(&person).await?;
            people::set_passphrase(&store, &person, given.reveal()).await?;
            tell(here, "person", &person, "has another passphrase and has to sign in again");
        }
        PeopleCommand::Remove { name: given } => {
            let person = name(&given)?;
            require_passphrase(&here.paths, &store).await?;
            let keys = people::remove(&store, &person).await?;
            tell(here, "person", &person, &format!("was removed; {keys} keys were revoked"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn name(given: &str) -> Result<Principal, Problem> {
    Principal::parse(given).map_err(|error| Problem::new(ErrorCode::InvalidRequest, error.to_string()))
}

/// A person changes their own passphrase with the old one; the operator changes anybody's.
async fn prove(here: &CommandContext, store: &Store, person: &Principal) -> Result<(), Problem> {
    if !store.people().await?.iter().any(|known| known.principal == *person) {
        return Err(people::nobody(person));
    }
    let typed =
        passphrase::ask_on_terminal(&format!("{person}'s passphrase, or the operator's passphrase: "))
            .await?;
    if people::verify(store, &person.0, typed.reveal()).await?.is_some() {
        return Ok(());
    }
    let is_operator = passphrase::is_set(&here.paths, store)?
        && passphrase::verify(&here.paths, store, passphrase::SignInDoor::Terminal, typed.reveal()).await?;
    match is_operator {
        true => Ok(()),
        false => Err(Problem::new(ErrorCode::Denied, "that is not the passphrase")
            .hint("nothing was changed; try again")),
    }
}

async fn ask_twice(person: &Principal) -> Result<Secret, Problem> {
    let new = passphrase::ask_on_terminal(&format!("{person}'s new passphrase: ")).await?;
    let again = passphrase::ask_on_terminal("The same again: ").await?;
    match new == again {
        true => Ok(new),
        false => Err(Problem::new(ErrorCode::InvalidRequest, "the two are not the same")
            .hint("nothing was changed; run the command again")),
    }
}

fn tell(here: &CommandContext, field: &str, person: &Principal, what: &str) {
    match here.json {
        true => out::json(&json!({ field: person })),
        false => out::line(format!("{person} {what}")),
    }
}

async fn list(here: &CommandContext, store: &Store) -> Result<(), Problem> {
    let people = store.people().await?;
    let members: HashMap<Principal, Membership> = store.memberships().await?.into_iter().collect();
    let member = |who: &Principal| members.get(who).cloned().unwrap_or_default();
    if here.json {
        let rows = people.iter().map(|person| {
            json!({ "person": person.principal, "role": person.role, "createdAt": person.created_at,
                "changedAt": person.changed_at, "org": member(&person.principal).org,
                "project": member(&person.principal).project })
        });
        out::json(&rows.collect::<Vec<_>>());
    } else if people.is_empty() {
        out::note("nobody but the operator; `pml people add NAME` adds somebody");
    } else {
        let rows: Vec<Vec<String>> = people
            .iter()
            .map(|person| {
                vec![
                    person.principal.to_string(),
                    person.role.to_string(),
                    member(&person.principal).project,
                    member(&person.principal).org,
                    format_time(person.created_at),
                    format_time(person.changed_at),
                ]
            })
            .collect();
        out::line(out::table(&["person", "role", "project", "organisation", "added", "changed"], &rows));
    }
    Ok(())
}
