//! Gives each name to one server.
//!
//! A model that reads `github` must not be led to `gіthub`. So of servers whose names are equal or
//! could be taken for each other, the first keeps the name and later ones are left out; servers come
//! in the order of trust: built in, the user's file, its imports, the project's file.

use std::collections::BTreeMap;

use pml_model::ServerName;
use pml_model::name::look_alike;

use super::error::Problem;
use super::server::Draft;
use super::settings::{BUILT_IN, Builtin};

/// The names given so far, by the form in which look-alikes are equal.
pub(super) struct Names(BTreeMap<String, Owner>);

enum Owner {
    BuiltIn(&'static str),
    Configured { name: String, place: String },
}

impl Names {
    /// The names of the built-in servers that are not switched off.
    pub(super) fn new(builtin: &Builtin) -> Names {
        let used = BUILT_IN.iter().filter(|name| !builtin.disabled.iter().any(|off| off == *name));
        Names(used.map(|name| (look_alike(name), Owner::BuiltIn(name))).collect())
    }

    /// Gives `draft` its name. It stays given even where the server turns out to be unusable: calls
    /// meant for it must not go to one that is trusted less.
    pub(super) fn claim(&mut self, draft: &Draft) -> Result<ServerName, Problem> {
        let name = ServerName::new(&draft.name)
            .map_err(|error| draft.problem(&error.to_string(), "give it another name"))?;
        let form = look_alike(&draft.name);
        if let Some(owner) = self.0.get(&form) {
            return Err(clash(draft, owner));
        }
        self.0.insert(form, Owner::Configured { name: draft.name.clone(), place: draft.place() });
        Ok(name)
    }
}

fn clash(draft: &Draft, owner: &Owner) -> Problem {
    let name = &draft.name;
    let (taken, owner, hint) = match owner {
        Owner::BuiltIn(taken) => (
            *taken,
            format!("the built-in server `{taken}`"),
            format!("rename it, or set `enabled = false` in `[builtin.{taken}]`"),
        ),
        Owner::Configured { name, place } => {
            (name.as_str(), format!("the server `{name}` at {place}"), "rename one of them".to_owned())
        }
    };
    let relation = if name == taken { "belongs to" } else { "could be taken for that of" };
    draft.problem(&format!("server `{name}` is left out: its name {relation} {owner}"), hint)
}
