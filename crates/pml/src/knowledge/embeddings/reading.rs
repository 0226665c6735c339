//! Reads texts in the background, a few at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pml_graph::everyday;
use pml_model::{Digest, Principal};
use tokio_util::sync::CancellationToken;

use super::reader::{EVERYDAY, Reader};
use super::{Embeddings, digest, stored};

/// How many texts are read at a time: what is done so far is kept, and counts at once.
const TOGETHER: usize = 8;
/// How many texts that are gone may be known.
const SPARE: usize = 10_000;

/// What is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::knowledge) enum Reading {
    /// Tools and intents: what can be found.
    Findable,
    /// What is asked for every day as well, which makes finding better.
    Everything,
}

/// The texts of one principal.
pub(in crate::knowledge) type TextsOf = (Principal, Vec<String>);

impl Embeddings {
    /// Reads what was not read yet; ends early where the model is changed. `texts` are all that can be found: what is
    /// known beside them may be forgotten.
    pub(in crate::knowledge) async fn read_all(
        &self,
        reader: &Arc<Reader>,
        mut texts: Vec<TextsOf>,
        what: Reading,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        if !reader.model.is_there() {
            return Ok(());
        }
        let wanted: HashSet<Digest> = texts
            .iter()
            .flat_map(|(_, texts)| texts.iter().map(|text| digest(text)))
            .chain(EVERYDAY.iter().cloned())
            .collect();
        let principals: Vec<Principal> = texts.iter().map(|(principal, _)| principal.clone()).collect();
        texts.iter_mut().for_each(|(_, texts)| {
            let unread = reader.unread(std::mem::take(texts));
            *texts = unread.into_iter().map(|(_, text)| text).collect();
        });
        // Nobody waits for what is asked for every day, so it is not told as left.
        let mut left = texts.iter().map(|(_, texts)| texts.len()).sum();
        reader.left.store(left, Ordering::Release);
        if what == Reading::Everything {
            texts.push((Principal::local(), everyday::texts().map(str::to_owned).collect()));
        }
        for (principal, texts) in texts {
            for some in reader.unread(texts).chunks(TOGETHER) {
                if stop.is_cancelled() || !Arc::ptr_eq(reader, &self.reader()) {
                    return Ok(());
                }
                self.read_some(reader, &principal, some).await?;
                left = usize::saturating_sub(left, some.len());
                reader.left.store(left, Ordering::Release);
            }
        }
        *reader.trouble.lock() = None;
        for principal in principals {
            self.forget_others(reader, principal.clone()).await;
            self.forget_gone(reader, principal, &wanted).await;
        }
        Ok(())
    }

    async fn read_some(
        &self,
        reader: &Reader,
        principal: &Principal,
        some: &[(Digest, String)],
    ) -> Result<(), String> {
        let read = reader.read_some(some).await?;
        let kept: Vec<_> = read.iter().map(|(key, vector)| (key.clone(), stored(vector))).collect();
        reader.take(kept.clone());
        let model = reader.model.name();
        let keep = self.store.keep_vectors(principal, &model, kept);
        keep.await.map_err(|error| error.to_string())
    }

    /// Forgets what texts mean that are gone, once there are many.
    async fn forget_gone(&self, reader: &Reader, principal: Principal, wanted: &HashSet<Digest>) {
        let gone = too_many(reader.known.read().keys(), wanted, SPARE);
        if gone.is_empty() {
            return;
        }
        let model = reader.model.name();
        let forgotten = gone.clone();
        match self.store.forget_vectors(&principal, &model, forgotten).await {
            Ok(()) => {
                let mut known = reader.known.write();
                gone.iter().for_each(|text| drop(known.remove(text)));
            }
            Err(error) => tracing::debug!(%error, "what texts mean that are gone could not be forgotten"),
        }
    }

    /// What other models read is of no use once this one has read it all.
    async fn forget_others(&self, reader: &Reader, principal: Principal) {
        let model = reader.model.name();
        if let Err(error) = self.store.forget_other_vectors(&principal, &model).await {
            tracing::debug!(%error, "what other models read could not be forgotten");
        }
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
