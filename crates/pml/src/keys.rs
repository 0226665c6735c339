//! Client keys: random, shown once, stored as digests.
//!
//! The rights of a key are looked up at each use and never cached with a session: a revoked key stops counting in
//! running gateways within a second.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_model::{Digest, KeyId, Principal};
use pml_store::{ClientKey, NewClientKey, Store};

use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::config::{Secret, disk};
use crate::problem::{ErrorCode, Problem};

/// 250 ms: the pause before a failed read of the keys is retried. A revoked key must not count for more than a second.
const AGAIN: Duration = Duration::from_millis(250);
/// The prefix of a key, so that people and secret scanners recognise one.
const PREFIX: &str = "pmlk_";
/// The number of random bytes in a key.
const KEY_BYTES: usize = 32;
/// The most characters that a client name may have.
const NAME_CHARACTERS: usize = 64;

/// The valid keys.
#[derive(Debug, Default)]
pub struct ClientKeys {
    known: RwLock<Arc<Vec<Arc<ClientKey>>>>,
}

impl ClientKeys {
    /// The key with this text. The comparison takes the same time for every wrong text.
    pub fn find(&self, presented: &str) -> Option<Arc<ClientKey>> {
        let digest = Digest::of(presented.as_bytes());
        let mut found = None;
        for key in self.current().iter() {
            if black_box(is_same(&key.digest, &digest)) {
                found = Some(Arc::clone(key));
            }
        }
        found
    }

    /// The key with this id, if it is valid.
    pub fn get(&self, id: KeyId) -> Option<Arc<ClientKey>> {
        self.current().iter().find(|key| key.id == id).cloned()
    }

    fn current(&self) -> Arc<Vec<Arc<ClientKey>>> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads the stored keys.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), Problem> {
        let stored = store.client_keys().await?;
        let counting = stored.into_iter().filter(|key| key.revoked_at.is_none()).map(Arc::new);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(counting.collect());
        Ok(())
    }
}

/// Compares in constant time.
fn is_same(one: &Digest, other: &Digest) -> bool {
    let pairs = one.as_str().bytes().zip(other.as_str().bytes());
    pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

/// Keeps the keys in sync with the database.
pub(crate) async fn follow_stored_keys(keys: Arc<ClientKeys>, store: Store, stop: CancellationToken) {
    let mut changes = store.changes();
    loop {
        let read = keys.refresh(&store).await;
        if let Err(problem) = &read {
            tracing::warn!(%problem, "the keys of clients could not be read");
        }
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep(AGAIN), if read.is_err() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// The properties of a new key.
#[derive(Debug)]
pub struct KeyRequest {
    /// The name of the client.
    pub client: String,
    /// Whether the answers of its user count as a person's answers.
    pub interactive: bool,
    /// Whether the client asks its own user before it calls a tool.
    pub asks_itself: bool,
}

/// Creates a key and stores its digest. The key itself cannot be shown again.
///
/// # Errors
/// The name is invalid, or the key cannot be stored.
pub async fn create(
    store: &Store,
    principal: Principal,
    wanted: KeyRequest,
) -> Result<(Secret, ClientKey), Problem> {
    check_name(&wanted.client)?;
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the system gives no random numbers: {error}"))
    })?;
    let key = Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)));
    let new = NewClientKey {
        principal,
        client: wanted.client,
        digest: Digest::of(key.reveal().as_bytes()),
        interactive: wanted.interactive,
        asks_itself: wanted.asks_itself,
        now: now_ms(),
    };
    let stored = store.add_client_key(new).await?;
    Ok((key, stored))
}

fn check_name(name: &str) -> Result<(), Problem> {
    let plain = name.chars().all(pml_model::name::is_plain) && name.trim() == name;
    if plain && !name.is_empty() && name.chars().count() <= NAME_CHARACTERS {
        return Ok(());
    }
    let shown = pml_model::name::printable(name);
    Err(Problem::new(ErrorCode::InvalidRequest, format!("`{shown}` is no name for a client"))
        .hint(format!("give 1 to {NAME_CHARACTERS} visible characters, such as `--client desk`")))
}

/// Revokes a key.
///
/// # Errors
/// There is no such key, it was revoked before, or the change cannot be stored.
pub async fn revoke(store: &Store, principal: &Principal, id: KeyId) -> Result<ClientKey, Problem> {
    let revoked = store.revoke_client_key(principal, id, now_ms()).await?;
    revoked.ok_or_else(|| {
        Problem::new(ErrorCode::NotFound, format!("there is no key `{id}` that counts"))
            .hint("`pml keys list` shows the keys there are, by their numbers")
    })
}

/// Reads a key from a file that only its owner may read.
///
/// # Errors
/// The file cannot be read, is open to other users, or holds no key.
pub fn read_key_file(path: &Path) -> Result<Secret, Problem> {
    let shown = pml_model::name::printable(&path.display().to_string());
    let again = "`pml keys create --client NAME --key-file PATH` makes a key";
    let Some(bytes) = disk::read(path)? else {
        return Err(Problem::new(ErrorCode::Config, format!("there is no key file `{shown}`")).hint(again));
    };
    if disk::open_to_others(path, 0o077) != 0 {
        let text = format!("other users can read or write the key file `{shown}`");
        return Err(Problem::new(ErrorCode::Config, text)
            .hint("revoke the key with `pml keys revoke` and make another"));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    let text = text.trim();
    if !text.starts_with(PREFIX) || text.contains(char::is_whitespace) {
        return Err(
            Problem::new(ErrorCode::Config, format!("the file `{shown}` holds no key of PML")).hint(again)
        );
    }
    Ok(Secret::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_key_is_known_until_it_is_revoked_and_stands_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        let keys = ClientKeys::default();
        let wanted =
            |client: &str| KeyRequest { client: client.to_owned(), interactive: true, asks_itself: false };
        let (desk, made) = create(&store, Principal::local(), wanted("desk")).await.unwrap();
        let (editor, _) = create(&store, Principal::local(), wanted("editor")).await.unwrap();
        assert_ne!(desk.reveal(), editor.reveal());
        assert!(keys.find(desk.reveal()).is_none(), "nothing was read yet");
        keys.refresh(&store).await.unwrap();
        assert_eq!(keys.find(desk.reveal()).unwrap().id, made.id);
        assert_eq!(keys.find(editor.reveal()).unwrap().client, "editor");
        assert!(keys.get(made.id).unwrap().interactive);
        for wrong in ["", PREFIX, &desk.reveal()[..40], &format!("{} ", desk.reveal()), made.digest.as_str()]
        {
            assert!(keys.find(wrong).is_none(), "{wrong}");
        }
        assert_eq!(made.digest, Digest::of(desk.reveal().as_bytes()));
        revoke(&store, &Principal::local(), made.id).await.unwrap();
        assert_eq!(revoke(&store, &Principal::local(), made.id).await.unwrap_err().code, ErrorCode::NotFound);
        keys.refresh(&store).await.unwrap();
        assert!(keys.find(desk.reveal()).is_none() && keys.get(made.id).is_none());
        assert!(keys.find(editor.reveal()).is_some());
    }

    #[tokio::test]
    async fn a_client_has_a_name_that_can_be_seen() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        for bad in ["", " desk", "de\u{202e}sk", "a\nb", &"x".repeat(NAME_CHARACTERS + 1)] {
            let wanted = KeyRequest { client: bad.to_owned(), interactive: false, asks_itself: false };
            let refused = create(&store, Principal::local(), wanted).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidRequest, "{bad:?}");
        }
        assert!(store.client_keys().await.unwrap().is_empty());
    }
}
