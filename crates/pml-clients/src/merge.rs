//! Puts the servers of several files together, each once.

use crate::dialect::ClientServer;

/// A server that one or more files have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedServer {
    /// The name of the first.
    pub name: String,
    /// The different settings that files give it, each with the index of its file, in the order of the files. More
    /// than one is a conflict that a person has to decide.
    pub choices: Vec<(usize, ClientServer)>,
    /// The entries that say what one of the choices says, the choices included: file and name.
    pub entries: Vec<(usize, String)>,
}

/// Merges servers, which come with the index of their file. Servers with the same address are one server, whatever their
/// names. Servers with the same name and different addresses are one server with a choice. PML itself is left out.
pub fn merge(found: impl IntoIterator<Item = (usize, ClientServer)>) -> Vec<MergedServer> {
    let mut merged: Vec<MergedServer> = Vec::new();
    for (file, server) in found.into_iter().filter(|(_, server)| !server.is_pml()) {
        let entry = (file, server.name.clone());
        let same = merged.iter_mut().find_map(|known| {
            let choice = known.choices.iter().position(|(_, choice)| choice.address == server.address)?;
            Some((known, choice))
        });
        if let Some((known, choice)) = same {
            // A server that any client uses is in use.
            known.choices[choice].1.enabled |= server.enabled;
            known.entries.push(entry);
            continue;
        }
        let named = merged.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&server.name));
        match named {
            Some(known) => {
                known.choices.push((file, server));
                known.entries.push(entry);
            }
            None => merged.push(MergedServer {
                name: server.name.clone(),
                choices: vec![(file, server)],
                entries: vec![entry],
            }),
        }
    }
    merged
}
