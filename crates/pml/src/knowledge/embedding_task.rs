//! Has tools and served intents read in the background, and takes in what was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::Change;
use pml_model::Principal;
use tokio::sync::broadcast::error::RecvError;

use super::embeddings::{self, AGAIN, Reader, Reading};
use super::{Knowledge, experience};
use crate::heap;
use crate::runtime::blocking;

/// How long after the start reading begins: what was read before is there at once, and whoever started us waits for other
/// things.
const BEFORE_READING: Duration = Duration::from_millis(500);
/// After how many texts it is worth while to give back what reading took.
const MANY: usize = 100;
/// How often it is looked whether there is something new to read.
const LOOK: Duration = Duration::from_secs(5);

/// Reads the tools there are and the intents that were served, as long as the program runs.
pub(crate) async fn embedding_task(knowledge: Arc<Knowledge>) {
    let mut changes = knowledge.tools.changes();
    let mut looks = tokio::time::interval(LOOK);
    let mut of: Option<Arc<Reader>> = None;
    let mut known = 0;
    tokio::select! {
        () = knowledge.stop.cancelled() => return,
        () = tokio::time::sleep(BEFORE_READING) => {}
    }
    loop {
        let reader = knowledge.embeddings.reader();
        let read = match of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &reader)) {
            true => Ok(()),
            false => remember(&knowledge, &reader).await,
        };
        let read = match read {
            Ok(()) => {
                of = Some(Arc::clone(&reader));
                read_all(&knowledge, &reader, Reading::Everything).await
            }
            Err(trouble) => Err(trouble),
        };
        let before = known;
        known = reader.known.read().len();
        let many = known.abs_diff(before) >= MANY;
        let taken_in = Arc::clone(&knowledge);
        blocking(move || {
            take_in(&taken_in);
            if many {
                heap::give_back();
            }
        })
        .await;
        let pause = match read {
            Ok(()) => Duration::ZERO,
            Err(trouble) => {
                reader.failed(trouble);
                AGAIN
            }
        };
        tokio::select! {
            () = knowledge.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        loop {
            tokio::select! {
                () = knowledge.stop.cancelled() => return,
                () = knowledge.embeddings.changed.notified() => break,
                _ = looks.tick() => break,
                change = changes.recv() => match change {
                    Ok(Change::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Reads what can be found, for at most that long: a command ends soon, and the next one goes on where it stopped.
pub(crate) async fn embed_for(knowledge: &Arc<Knowledge>, patience: Duration) {
    let reader = knowledge.embeddings.reader();
    let all = async {
        remember(knowledge, &reader).await?;
        read_all(knowledge, &reader, Reading::Findable).await
    };
    match tokio::time::timeout(patience, all).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(trouble)) => reader.failed(trouble),
    }
    let knowledge = Arc::clone(knowledge);
    blocking(move || take_in(&knowledge)).await;
}

/// Lets what was read be used: by what served requests before, and by what hangs together.
fn take_in(knowledge: &Knowledge) {
    for (principal, learned) in knowledge.principals() {
        let read = (&*knowledge.memory, &knowledge.embeddings);
        experience::bring_up_to_date(read, knowledge.tools.snapshot(), &principal, &learned);
        if let Err(error) = knowledge.bring_graph_up_to_date(&principal) {
            tracing::debug!(%error, "how tools hang together could not be read");
        }
    }
}

/// Takes in what the model read before.
async fn remember(knowledge: &Arc<Knowledge>, reader: &Reader) -> Result<(), String> {
    reader.model.open().await?;
    knowledge.memory.refresh().await.map_err(|error| error.to_string())?;
    let knowledge = Arc::clone(knowledge);
    let remembered = blocking(move || {
        let mut whose: Vec<Principal> = knowledge.memory.intents().into_keys().collect();
        if !whose.contains(&Principal::local()) {
            whose.push(Principal::local());
        }
        knowledge.embeddings.remember_now(&whose)
    });
    remembered.await.map_err(|error| error.to_string())
}

async fn read_all(knowledge: &Knowledge, reader: &Arc<Reader>, what: Reading) -> Result<(), String> {
    knowledge.memory.refresh().await.map_err(|error| error.to_string())?;
    let mut texts: BTreeMap<Principal, Vec<String>> = BTreeMap::new();
    // Tools are those of the installation, and come first: more depends on them.
    let tools = knowledge.tools.snapshot().tools.iter().map(embeddings::text).collect();
    texts.insert(Principal::local(), tools);
    for (principal, intents) in knowledge.memory.intents() {
        texts.entry(principal).or_default().extend(intents);
    }
    knowledge.embeddings.read_all(reader, texts.into_iter().collect(), what, &knowledge.stop).await
}
