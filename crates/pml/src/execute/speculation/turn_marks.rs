//! The write epochs of the reads that are started together.

use std::collections::HashMap;

use pml_model::ServerName;
use tokio::sync::Mutex;

use crate::epoch::{Epoch, EpochMark};

/// The marks of the servers that one turn of a run reads from. Each is asked of the database once, by the first read that
/// needs it, and before any read of that server begins.
#[derive(Default)]
pub(crate) struct TurnMarks(Mutex<HashMap<ServerName, Option<EpochMark>>>);

impl TurnMarks {
    /// The mark for reads of a server; `None` if the database cannot be read.
    pub(super) async fn of(&self, epoch: &Epoch, server: &ServerName) -> Option<EpochMark> {
        let mut marks = self.0.lock().await;
        if let Some(mark) = marks.get(server) {
            return *mark;
        }
        let mark = epoch.mark_for_server(server).ok();
        marks.insert(server.clone(), mark);
        mark
    }
}

#[cfg(test)]
mod tests {
    use pml_store::{BlockingStore, ProcessIdentity, Store};

    use super::*;
    use crate::epoch::WriteReach;

    #[tokio::test]
    async fn all_reads_of_a_server_in_a_turn_have_the_mark_of_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::from(BlockingStore::open(&dir.path().join("pml.db")).unwrap());
        let epoch = Epoch::new(store, ProcessIdentity { pid: 1, started: "here".to_owned() });
        let (server, turn) = (ServerName::new("a").unwrap(), TurnMarks::default());
        let first = turn.of(&epoch, &server).await;
        drop(epoch.begin_write(WriteReach::Everywhere));
        assert_eq!(
            turn.of(&epoch, &server).await,
            first,
            "a write since then makes them useless, as it should"
        );
        assert_ne!(TurnMarks::default().of(&epoch, &server).await, first);
    }
}
