//! Reads tools and intents in the background, as long as the program runs.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pml_graph::everyday;
use pml_mcp::server::Change;
use pml_model::Digest;
use tokio::sync::broadcast::error::RecvError;

use super::reader::{EVERYDAY, Reader};
use super::{digest, stored, text};
use crate::app::App;
use crate::heap;
use crate::memory::experience;
use crate::runtime::blocking;

/// How many texts are read at a time: what is done so far is kept, and counts at once.
const TOGETHER: usize = 8;
/// How long after the start reading begins: what was read before is there at once, and whoever started us waits for other
/// things.
const BEFORE_READING: Duration = Duration::from_millis(500);
/// How long it is waited after a failure.
pub(super) const AGAIN: Duration = Duration::from_secs(30);
/// How many texts that are gone may be known.
const SPARE: usize = 10_000;
/// After how many texts it is worth while to give back what reading took.
const MANY: usize = 100;
/// How often it is looked whether there is something new to read.
const LOOK: Duration = Duration::from_secs(5);

/// Reads the tools there are and the intents that were served, as long as the program runs.
pub(crate) async fn keep_reading(app: Arc<App>) {
    let mut changes = app.changes();
    let mut looks = tokio::time::interval(LOOK);
    let mut of: Option<Arc<Reader>> = None;
    let mut known = 0;
    tokio::select! {
        () = app.stopping().cancelled() => return,
        () = tokio::time::sleep(BEFORE_READING) => {}
    }
    loop {
        let reader = app.meaning.reader();
        let read = match of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &reader)) {
            true => Ok(()),
            false => remember(&app, &reader).await,
        };
        let read = match read {
            Ok(()) => {
                of = Some(Arc::clone(&reader));
                read_all(&app, &reader, Reading::Everything).await
            }
            Err(trouble) => Err(trouble),
        };
        let told = Arc::clone(&app);
        let before = known;
        known = reader.known.read().unwrap_or_else(PoisonError::into_inner).len();
        let many = known.abs_diff(before) >= MANY;
        blocking(move || {
            take_in(&told);
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
            () = app.stopping().cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        loop {
            tokio::select! {
                () = app.stopping().cancelled() => return,
                () = app.meaning.changed.notified() => break,
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

/// Lets what was read be used: by what served requests before, and by what hangs together.
fn take_in(app: &App) {
    experience::bring_up_to_date(&app.memory, &app.meaning, app.catalogue.snapshot(), &app.principal);
    if let Err(error) = app.network.bring_up_to_date(app) {
        tracing::debug!(%error, "how tools hang together could not be read");
    }
}

/// Reads what can be found, for at most that long: a command ends soon, and the next one goes on where it stopped.
pub(crate) async fn read_for(app: &Arc<App>, patience: Duration) {
    let reader = app.meaning.reader();
    let all = async {
        remember(app, &reader).await?;
        read_all(app, &reader, Reading::Findable).await
    };
    match tokio::time::timeout(patience, all).await {
        Ok(Ok(())) | Err(_) => {}
        Ok(Err(trouble)) => reader.failed(trouble),
    }
    let told = Arc::clone(app);
    blocking(move || take_in(&told)).await;
}

/// Takes in what the model read before.
async fn remember(app: &Arc<App>, reader: &Arc<Reader>) -> Result<(), String> {
    reader.model.open().await?;
    let app = Arc::clone(app);
    blocking(move || app.meaning.remember_now()).await.map_err(|error| error.to_string())
}

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Tools and intents: what can be found.
    Findable,
    /// What is asked for every day as well, which makes finding better.
    Everything,
}

/// Reads what was not read yet; ends early where the model is changed.
async fn read_all(app: &Arc<App>, reader: &Arc<Reader>, what: Reading) -> Result<(), String> {
    app.memory.refresh().await.map_err(|error| error.to_string())?;
    if !reader.model.is_there() {
        return Ok(());
    }
    let mut texts: Vec<String> = app.catalogue.snapshot().tools.iter().map(text).collect();
    texts.extend(app.memory.intents());
    let wanted: HashSet<Digest> =
        texts.iter().map(|text| digest(text)).chain(EVERYDAY.iter().cloned()).collect();
    let mut unread = reader.unread(texts);
    // Nobody waits for the rest, so it is not told as left.
    let mut left = unread.len();
    if what == Reading::Everything {
        unread.extend(reader.unread(everyday::texts().map(str::to_owned).collect()));
    }
    reader.left.store(left, Ordering::Release);
    for some in unread.chunks(TOGETHER) {
        if app.stopping().is_cancelled() || !Arc::ptr_eq(reader, &app.meaning.reader()) {
            return Ok(());
        }
        let read = reader.read_some(some).await?;
        let kept: Vec<_> = read.iter().map(|(key, vector)| (key.clone(), stored(vector))).collect();
        reader.take(kept.clone());
        left = left.saturating_sub(some.len());
        reader.left.store(left, Ordering::Release);
        let (store, principal, model) =
            (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
        let keep = blocking(move || store.keep_vectors(&principal, &model, kept));
        keep.await.map_err(|error| error.to_string())?;
    }
    *reader.trouble.lock().unwrap_or_else(PoisonError::into_inner) = None;
    forget_others(app, reader).await;
    forget_gone(app, reader, &wanted).await;
    Ok(())
}

/// Forgets what texts mean that are gone, once there are many.
async fn forget_gone(app: &Arc<App>, reader: &Arc<Reader>, wanted: &HashSet<Digest>) {
    let gone = {
        let known = reader.known.read().unwrap_or_else(PoisonError::into_inner);
        too_many(known.keys(), wanted, SPARE)
    };
    if gone.is_empty() {
        return;
    }
    let (store, principal, model) = (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
    let forgotten = gone.clone();
    match blocking(move || store.forget_vectors(&principal, &model, forgotten)).await {
        Ok(()) => {
            let mut known = reader.known.write().unwrap_or_else(PoisonError::into_inner);
            gone.iter().for_each(|text| drop(known.remove(text)));
        }
        Err(error) => tracing::debug!(%error, "what texts mean that are gone could not be forgotten"),
    }
}

/// What is known and not wanted, where that is more than `spare` and more than what is wanted: a server that is away for a
/// while need not be read again.
fn too_many<'k>(
    known: impl Iterator<Item = &'k Digest>,
    wanted: &HashSet<Digest>,
    spare: usize,
) -> Vec<Digest> {
    let gone: Vec<Digest> = known.filter(|text| !wanted.contains(*text)).cloned().collect();
    if gone.len() > spare.max(wanted.len()) { gone } else { Vec::new() }
}

/// What other models read is of no use once this one has read it all.
async fn forget_others(app: &Arc<App>, reader: &Arc<Reader>) {
    let (store, principal, model) = (app.store.clone(), app.meaning.principal.clone(), reader.model.name());
    if let Err(error) = blocking(move || store.forget_other_vectors(&principal, &model)).await {
        tracing::debug!(%error, "what other models read could not be forgotten");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_forgotten_once_it_is_much() {
        let texts: Vec<Digest> = (0..10).map(|number| digest(&format!("text {number}"))).collect();
        let wanted: HashSet<Digest> = texts[..3].iter().cloned().collect();
        assert_eq!(too_many(texts.iter(), &wanted, 7), []);
        assert_eq!(too_many(texts.iter(), &wanted, 6), texts[3..]);
        assert_eq!(too_many(texts[..6].iter(), &wanted, 0), [], "as many may be gone as are there");
    }
}
