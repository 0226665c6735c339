//! Embeds texts in the background, a few at a time.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use pml_graph::everyday;
use pml_model::{Digest, Principal};
use tokio_util::sync::CancellationToken;

use super::embedder::{EVERYDAY, Embedder};
use super::{Embeddings, keyed, quantised};
use crate::runtime::run_blocking;

/// The batch size: each finished batch is stored and counts at once.
const TOGETHER: usize = 8;
/// The number of vectors of vanished texts that may be kept.
const SPARE: usize = 10_000;

/// Which texts are embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::knowledge) enum EmbeddingScope {
    /// Tools and intents: everything that a search can find.
    Findable,
    /// Everyday requests as well, which improves the search.
    Everything,
}

/// The texts of one principal.
pub(in crate::knowledge) type PrincipalTexts = (Principal, Vec<String>);

/// What is to be done so that everything is embedded.
struct EmbeddingWork {
    /// The digests of all texts, so that vectors of others can be dropped.
    wanted: HashSet<Digest>,
    principals: Vec<Principal>,
    /// The texts without a vector.
    unread: Vec<(Principal, Vec<(Digest, String)>)>,
    /// Everyday requests without a vector.
    everyday: Vec<(Digest, String)>,
}

impl EmbeddingWork {
    fn new(reader: &Embedder, texts: Vec<PrincipalTexts>, what: EmbeddingScope) -> EmbeddingWork {
        let keyed: Vec<(Principal, Vec<(Digest, String)>)> =
            texts.into_iter().map(|(principal, texts)| (principal, keyed(texts))).collect();
        let all = keyed.iter().flat_map(|(_, texts)| texts.iter().map(|(key, _)| key));
        let wanted = all.chain(EVERYDAY.iter()).cloned().collect();
        let everyday = match what {
            EmbeddingScope::Findable => Vec::new(),
            EmbeddingScope::Everything => {
                EVERYDAY.iter().cloned().zip(everyday::everyday_texts().map(str::to_owned)).collect()
            }
        };
        EmbeddingWork {
            wanted,
            principals: keyed.iter().map(|(principal, _)| principal.clone()).collect(),
            unread: keyed
                .into_iter()
                .map(|(principal, texts)| (principal, reader.still_unread(texts)))
                .collect(),
            everyday: reader.still_unread(everyday),
        }
    }
}

impl Embeddings {
    /// Embeds the texts that have no vector yet; ends early if the model changes. `texts` are all that a search can
    /// find: other vectors may be dropped.
    pub(in crate::knowledge) async fn embed_all(
        &self,
        reader: &Arc<Embedder>,
        texts: Vec<PrincipalTexts>,
        what: EmbeddingScope,
        stop: &CancellationToken,
    ) -> Result<(), String> {
        if !reader.model.is_configured() {
            return Ok(());
        }
        let of = Arc::clone(reader);
        // Thousands of texts are hashed, which no request should wait for.
        let EmbeddingWork { wanted, principals, unread, everyday } =
            run_blocking(move || EmbeddingWork::new(&of, texts, what)).await;
        // Nothing waits for the everyday requests, so they do not count as remaining.
        let mut left = unread.iter().map(|(_, texts)| texts.len()).sum();
        reader.remaining.store(left, Ordering::Release);
        for (principal, texts) in unread.into_iter().chain([(Principal::local(), everyday)]) {
            for some in reader.still_unread(texts).chunks(TOGETHER) {
                if stop.is_cancelled() || !Arc::ptr_eq(reader, &self.embedder()) {
                    return Ok(());
                }
                self.read_some(reader, &principal, some).await?;
                left = usize::saturating_sub(left, some.len());
                reader.remaining.store(left, Ordering::Release);
            }
        }
        *reader.last_error.lock() = None;
        for principal in principals {
            self.forget_others(reader, principal.clone()).await;
            self.forget_gone(reader, principal, &wanted).await;
        }
        Ok(())
    }

    async fn read_some(
        &self,
        reader: &Embedder,
        principal: &Principal,
        some: &[(Digest, String)],
    ) -> Result<(), String> {
        let read = reader.embed_batch(some).await?;
        let kept: Vec<_> = read.iter().map(|(key, vector)| (key.clone(), quantised(vector))).collect();
        reader.add_vectors(kept.clone());
        let model = reader.model.name();
        let keep = self.store.store_vectors(principal, &model, kept);
        keep.await.map_err(|error| error.to_string())
    }

    /// Drops the vectors of vanished texts, once there are many.
    async fn forget_gone(&self, reader: &Embedder, principal: Principal, wanted: &HashSet<Digest>) {
        let gone = too_many(reader.vectors.read().keys(), wanted, SPARE);
        if gone.is_empty() {
            return;
        }
        let model = reader.model.name();
        let forgotten = gone.clone();
        match self.store.forget_vectors(&principal, &model, forgotten).await {
            Ok(()) => {
                let mut known = reader.vectors.write();
                gone.iter().for_each(|text| drop(known.remove(text)));
            }
            Err(error) => tracing::debug!(%error, "what texts mean that are gone could not be forgotten"),
        }
    }

    /// Drops the vectors of other models, once this one has embedded everything.
    async fn forget_others(&self, reader: &Embedder, principal: Principal) {
        let model = reader.model.name();
        if let Err(error) = self.store.forget_vectors_of_other_models(&principal, &model).await {
            tracing::debug!(%error, "what other models read could not be forgotten");
        }
    }
}

/// The known but unwanted vectors, if they are more than `spare` and more than the wanted ones: a server that is away
/// for a while need not be embedded again.
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
    use crate::knowledge::embeddings::digest;

    #[test]
    fn what_is_gone_is_forgotten_once_it_is_much() {
        let texts: Vec<Digest> = (0..10).map(|number| digest(&format!("text {number}"))).collect();
        let wanted: HashSet<Digest> = texts[..3].iter().cloned().collect();
        assert_eq!(too_many(texts.iter(), &wanted, 7), []);
        assert_eq!(too_many(texts.iter(), &wanted, 6), texts[3..]);
        assert_eq!(too_many(texts[..6].iter(), &wanted, 0), [], "as many may be gone as are there");
    }
}
