//! Embeds tools and served intents in the background, and publishes the vectors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pml_mcp::server::ChangeNotice;
use pml_model::Principal;
use tokio::sync::broadcast::error::RecvError;

use super::embeddings::{self, AGAIN, Embedder, EmbeddingScope, PrincipalTexts};
use super::{Knowledge, experience};
use crate::heap;
use crate::runtime::run_blocking;

/// 500 ms: the delay after the start before embedding begins. Stored vectors are loaded at once, and the client that
/// started the program waits for other things.
const BEFORE_READING: Duration = Duration::from_millis(500);
/// The number of texts after which it is worthwhile to return the memory that embedding took to the system.
const MANY: usize = 100;
/// 5 s: the interval at which new texts are looked for.
const LOOK: Duration = Duration::from_secs(5);

/// Embeds the tools and the served intents, as long as the program runs.
pub(crate) async fn embedding_task(knowledge: Arc<Knowledge>) {
    let mut changes = knowledge.tools.changes();
    let mut looks = tokio::time::interval(LOOK);
    let mut of = load_stored_first(&knowledge).await;
    let mut known = 0;
    tokio::select! {
        () = knowledge.stop.cancelled() => return,
        () = tokio::time::sleep(BEFORE_READING) => {}
    }
    loop {
        let reader = knowledge.embeddings.embedder();
        let read = match of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &reader)) {
            true => Ok(()),
            false => remember(&knowledge, &reader).await,
        };
        let read = match read {
            Ok(()) => {
                of = Some(Arc::clone(&reader));
                read_all(&knowledge, &reader, EmbeddingScope::Everything).await
            }
            Err(trouble) => Err(trouble),
        };
        let before = known;
        known = reader.vectors.read().len();
        let many = known.abs_diff(before) >= MANY;
        let taken_in = Arc::clone(&knowledge);
        run_blocking(move || {
            take_in(&taken_in);
            if many {
                heap::release_unused_memory();
            }
        })
        .await;
        let pause = match read {
            Ok(()) => Duration::ZERO,
            Err(trouble) => {
                reader.note_failure(trouble);
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
                    Ok(ChangeNotice::Tools) | Err(RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }
}

/// Loads the stored vectors right after the start, so that the first request finds tools by meaning. Returns the
/// embedder they belong to.
async fn load_stored_first(knowledge: &Arc<Knowledge>) -> Option<Arc<Embedder>> {
    let reader = knowledge.embeddings.embedder();
    let loaded = remember(knowledge, &reader).await;
    let tools = knowledge.tools.snapshot().tools.iter().map(embeddings::tool_text).collect();
    knowledge.embeddings.finish_loading(&reader, tools);
    loaded.is_ok().then_some(reader)
}

/// Embeds tools and intents for at most `patience`: a command ends soon, and the next one continues.
pub(crate) async fn embed_for(knowledge: &Arc<Knowledge>, patience: Duration) {
    let reader = knowledge.embeddings.embedder();
    let all = async {
        remember(knowledge, &reader).await?;
        knowledge.embeddings.finish_loading(&reader, Vec::new());
        read_all(knowledge, &reader, EmbeddingScope::Findable).await
    };
    match tokio::time::timeout(patience, all).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(trouble)) => reader.note_failure(trouble),
    }
    let knowledge = Arc::clone(knowledge);
    run_blocking(move || take_in(&knowledge)).await;
}

/// Publishes new vectors to the experience and the tool graph.
fn take_in(knowledge: &Knowledge) {
    for (principal, learned) in knowledge.principals() {
        let read = (&*knowledge.memory, &knowledge.embeddings);
        experience::update_experience(read, knowledge.tools.snapshot(), &principal, &learned);
        if let Err(error) = knowledge.bring_graph_up_to_date(&principal) {
            tracing::debug!(%error, "how tools hang together could not be read");
        }
    }
}

/// Loads the vectors that the model stored earlier.
async fn remember(knowledge: &Arc<Knowledge>, reader: &Embedder) -> Result<(), String> {
    reader.model.open().await?;
    knowledge.memory.refresh().await.map_err(|error| error.to_string())?;
    let knowledge = Arc::clone(knowledge);
    let remembered = run_blocking(move || {
        let mut whose: Vec<Principal> = knowledge.memory.intents().into_keys().collect();
        if !whose.contains(&Principal::local()) {
            whose.push(Principal::local());
        }
        knowledge.embeddings.load_stored(&whose)
    });
    remembered.await.map_err(|error| error.to_string())
}

async fn read_all(
    knowledge: &Arc<Knowledge>,
    reader: &Arc<Embedder>,
    what: EmbeddingScope,
) -> Result<(), String> {
    knowledge.memory.refresh().await.map_err(|error| error.to_string())?;
    let of = Arc::clone(knowledge);
    let texts = run_blocking(move || texts_to_embed(&of)).await;
    knowledge.embeddings.embed_all(reader, texts, what, &knowledge.stop).await
}

/// All texts that a search can find. Takes tens of milliseconds for thousands of tools.
fn texts_to_embed(knowledge: &Knowledge) -> Vec<PrincipalTexts> {
    let mut texts: BTreeMap<Principal, Vec<String>> = BTreeMap::new();
    // Tools belong to the installation and come first: more depends on them.
    let tools = knowledge.tools.snapshot().tools.iter().map(embeddings::tool_text).collect();
    texts.insert(Principal::local(), tools);
    for (principal, intents) in knowledge.memory.intents() {
        texts.entry(principal).or_default().extend(intents);
    }
    texts.into_iter().collect()
}
