//! Ensures that each server name is unique and cannot be confused with another.
//!
//! A model that reads `github` must not be led to `gіthub`. So of servers whose names are equal or confusable, the
//! first keeps the name and later ones are left out. The order is that of trust: built-in servers, the user's file,
//! its imports, the project's file.

use std::collections::BTreeMap;

use pml_model::ServerName;
use pml_model::name::confusable_skeleton;

use super::error::LeftOutServer;
use super::server::ServerDraft;
use super::settings::{BUILT_IN, BuiltinConfig};

/// The claimed names, by the form in which look-alikes are equal.
pub(super) struct ClaimedNames(BTreeMap<String, NameOwner>);

enum NameOwner {
    BuiltIn(&'static str),
    Configured { name: String, place: String },
}

impl ClaimedNames {
    /// Claims the names of the enabled built-in servers.
    pub(super) fn new(builtin: &BuiltinConfig) -> ClaimedNames {
        let used = BUILT_IN.iter().filter(|name| !builtin.disabled.iter().any(|off| off == *name));
        ClaimedNames(used.map(|name| (confusable_skeleton(name), NameOwner::BuiltIn(name))).collect())
    }

    /// Claims the name of `draft`. The claim holds even where the server turns out to be unusable: calls to it must
    /// not go to a less trusted server.
    pub(super) fn claim(&mut self, draft: &ServerDraft) -> Result<ServerName, LeftOutServer> {
        let name = ServerName::new(&draft.name)
            .map_err(|error| draft.problem(&error.to_string(), "give it another name"))?;
        let form = confusable_skeleton(&draft.name);
        if let Some(owner) = self.0.get(&form) {
            return Err(clash(draft, owner));
        }
        self.0.insert(form, NameOwner::Configured { name: draft.name.clone(), place: draft.place() });
        Ok(name)
    }
}

fn clash(draft: &ServerDraft, owner: &NameOwner) -> LeftOutServer {
    let name = &draft.name;
    let (taken, owner, hint) = match owner {
        NameOwner::BuiltIn(taken) => (
            *taken,
            format!("the built-in server `{taken}`"),
            format!("rename it, or set `enabled = false` in `[builtin.{taken}]`"),
        ),
        NameOwner::Configured { name, place } => {
            (name.as_str(), format!("the server `{name}` at {place}"), "rename one of them".to_owned())
        }
    };
    let relation = if name == taken { "belongs to" } else { "could be taken for that of" };
    draft.problem(&format!("server `{name}` is left out: its name {relation} {owner}"), hint)
}
