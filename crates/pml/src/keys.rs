//! Client keys: random, shown once, stored as digests; what each may do, and what it did.
//!
//! The rights of a key are looked up at each use and never cached with a session: a revoked key stops counting in
//! running gateways within a second, and an expired one at once.

mod meter;

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pml_model::{Digest, KeyId, KeyRights, Principal, Role, ToolId, ToolScope};
use pml_store::{ClientKey, NewClientKey, Store};

use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::config::{Secret, disk};
use crate::people::People;
use crate::problem::{ErrorCode, Problem};
use meter::KeyMeters;
pub(crate) use meter::{RunAdmission, exchange_counts_task};

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
    meters: KeyMeters,
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
        let found = found.filter(|key| !key.rights.is_expired(now_ms()));
        if let Some(key) = &found {
            self.note_use(key);
        }
        found
    }

    /// The key with this id, if it is valid.
    pub fn get(&self, id: KeyId) -> Option<Arc<ClientKey>> {
        self.current().iter().find(|key| key.id == id && !key.rights.is_expired(now_ms())).cloned()
    }

    /// The key with this id.
    ///
    /// # Errors
    /// It was revoked or has expired.
    pub fn require(&self, id: KeyId) -> Result<Arc<ClientKey>, Problem> {
        self.get(id).ok_or_else(|| {
            Problem::new(ErrorCode::Unauthorized, format!("key {id} was revoked or has expired"))
                .hint("`pml keys list` shows which keys count; `pml keys create` makes another")
        })
    }

    /// The valid keys that have a budget.
    pub(crate) fn with_budget(&self) -> Vec<Arc<ClientKey>> {
        let now = now_ms();
        let limited =
            |key: &&Arc<ClientKey>| !key.rights.budget.is_unlimited() && !key.rights.is_expired(now);
        self.current().iter().filter(limited).cloned().collect()
    }

    /// The role of whoever has this key; without a key of its own, a client acts for the operator.
    pub fn role(&self, key: Option<KeyId>) -> Option<Role> {
        match key {
            None => Some(Role::Admin),
            Some(key) => self.get(key).map(|key| key.rights.role),
        }
    }

    /// The tools that whoever has this key reaches; none with a key that is not valid.
    pub fn reach(&self, key: Option<KeyId>) -> KeyReach {
        match key.map(|key| self.get(key)) {
            None => KeyReach(Some(ToolScope::default())),
            Some(key) => KeyReach(key.map(|key| key.rights.tools.clone())),
        }
    }

    /// Whether a key still permits a call of the tool.
    ///
    /// # Errors
    /// It was revoked or has expired, or does not reach the tool.
    pub(crate) fn check_call(
        &self,
        id: Option<KeyId>,
        tool: &ToolId,
    ) -> Result<Option<Arc<ClientKey>>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let key = self.require(id)?;
        match key.rights.tools.holds(tool) {
            true => Ok(Some(key)),
            false => Err(Problem::new(ErrorCode::Denied, format!("key {id} does not reach `{tool}`"))
                .hint("`pml keys list` shows what it reaches")),
        }
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

/// The tools that a client reaches.
#[derive(Debug, Clone)]
pub struct KeyReach(Option<ToolScope>);

impl KeyReach {
    /// Whether the client reaches the tool.
    pub fn holds(&self, tool: &ToolId) -> bool {
        self.0.as_ref().is_some_and(|tools| tools.holds(tool))
    }

    /// Whether the client reaches everything of a server: what is no tool, such as a resource, has no narrower scope.
    pub fn holds_all_of(&self, server: &str) -> bool {
        self.0.as_ref().is_some_and(|tools| tools.holds_all_of(server))
    }
}

/// Compares in constant time.
fn is_same(one: &Digest, other: &Digest) -> bool {
    let pairs = one.as_str().bytes().zip(other.as_str().bytes());
    pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

/// Keeps the keys, and who may sign in, in sync with the database.
pub(crate) async fn follow_stored_keys(
    (keys, people): (Arc<ClientKeys>, Arc<People>),
    store: Store,
    stop: CancellationToken,
) {
    let mut changes = store.changes();
    loop {
        let read = match keys.refresh(&store).await {
            Ok(()) => people.refresh(&store).await,
            failed => failed,
        };
        if let Err(problem) = &read {
            tracing::warn!(%problem, "keys and people could not be read");
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
    /// Role, scope, expiry and budget.
    pub rights: KeyRights,
}

impl KeyRequest {
    /// A key for the client `name` that restricts nothing of what it may do for its principal.
    pub fn named(name: &str) -> KeyRequest {
        KeyRequest {
            client: name.to_owned(),
            interactive: false,
            asks_itself: false,
            rights: KeyRights::of_role(Role::Approver),
        }
    }
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
    if wanted.interactive && wanted.rights.role < Role::Approver {
        let role = wanted.rights.role;
        let text =
            format!("a key with the role `{role}` answers nothing, so its client cannot be interactive");
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("give it `--role approver`"));
    }
    let key = new_secret()?;
    let new = NewClientKey {
        principal,
        client: wanted.client,
        digest: Digest::of(key.reveal().as_bytes()),
        interactive: wanted.interactive,
        asks_itself: wanted.asks_itself,
        rights: wanted.rights,
        now: now_ms(),
    };
    let stored = store.add_client_key(new).await?;
    Ok((key, stored))
}

fn new_secret() -> Result<Secret, Problem> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the system gives no random numbers: {error}"))
    })?;
    Ok(Secret::new(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes))))
}

/// Replaces a key by another with the same rights. The old one is revoked, or stays valid until `old_until`.
///
/// # Errors
/// There is no such key that is valid, or the change cannot be stored.
pub async fn rotate(
    store: &Store,
    id: KeyId,
    old_until: Option<i64>,
) -> Result<(Secret, ClientKey, ClientKey), Problem> {
    let secret = new_secret()?;
    let digest = Digest::of(secret.reveal().as_bytes());
    let rotated = store.rotate_client_key(id, digest, old_until, now_ms()).await?;
    let (old, new) = rotated.ok_or_else(|| no_key(id))?;
    Ok((secret, old, new))
}

fn no_key(id: KeyId) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("there is no key `{id}` that counts"))
        .hint("`pml keys list` shows the keys there are, by their numbers")
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

/// Revokes a key, whoever it belongs to.
///
/// # Errors
/// There is no such key, it was revoked before, or the change cannot be stored.
pub async fn revoke(store: &Store, id: KeyId) -> Result<ClientKey, Problem> {
    let keys = store.client_keys().await?;
    let key = keys.into_iter().find(|key| key.id == id).ok_or_else(|| no_key(id))?;
    store.revoke_client_key(&key.principal, id, now_ms()).await?.ok_or_else(|| no_key(id))
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
        let wanted = |client: &str| KeyRequest { interactive: true, ..KeyRequest::named(client) };
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
        revoke(&store, made.id).await.unwrap();
        assert_eq!(revoke(&store, made.id).await.unwrap_err().code, ErrorCode::NotFound);
        keys.refresh(&store).await.unwrap();
        assert!(keys.find(desk.reveal()).is_none() && keys.get(made.id).is_none());
        assert!(keys.find(editor.reveal()).is_some());
    }

    #[tokio::test]
    async fn a_client_has_a_name_that_can_be_seen() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        for bad in ["", " desk", "de\u{202e}sk", "a\nb", &"x".repeat(NAME_CHARACTERS + 1)] {
            let refused = create(&store, Principal::local(), KeyRequest::named(bad)).await.unwrap_err();
            assert_eq!(refused.code, ErrorCode::InvalidRequest, "{bad:?}");
        }
        assert!(store.client_keys().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn an_expired_key_counts_for_nothing_and_a_replaced_one_until_its_time() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        let keys = ClientKeys::default();
        let lasting = |until| KeyRequest {
            rights: KeyRights { expires_at: Some(until), ..KeyRights::of_role(Role::Agent) },
            ..KeyRequest::named("desk")
        };
        let (over, _) = create(&store, Principal::local(), lasting(now_ms())).await.unwrap();
        let (valid, made) = create(&store, Principal::local(), lasting(now_ms() + 60_000)).await.unwrap();
        keys.refresh(&store).await.unwrap();
        assert!(keys.find(over.reveal()).is_none() && keys.find(valid.reveal()).is_some());
        let (newer, old, new) = rotate(&store, made.id, Some(now_ms() + 30_000)).await.unwrap();
        assert_eq!((old.id, new.rights.role), (made.id, Role::Agent));
        keys.refresh(&store).await.unwrap();
        assert!(keys.find(valid.reveal()).is_some() && keys.find(newer.reveal()).is_some());
        let (newest, _, _) = rotate(&store, new.id, None).await.unwrap();
        keys.refresh(&store).await.unwrap();
        assert!(keys.find(newer.reveal()).is_none() && keys.find(newest.reveal()).is_some());
        assert_eq!(rotate(&store, new.id, None).await.unwrap_err().code, ErrorCode::NotFound);
        let interactive = KeyRequest { interactive: true, ..lasting(now_ms()) };
        let refused = create(&store, Principal::local(), interactive).await.unwrap_err();
        assert!(refused.message.contains("cannot be interactive"), "{refused:?}");
    }
}
