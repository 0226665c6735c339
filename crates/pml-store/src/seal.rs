//! Seals what runs leave behind, so that the database alone tells nobody what they saw.
//!
//! Every run has a key of its own, wrapped by one that is kept in a file beside the database; with
//! the wrapped key all bodies of a run are gone at once. What a body belongs to is sealed in with it,
//! so bodies cannot change places. Keys never leave this module, and are never printed.

mod file;
mod mark;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pml_model::{Principal, RunId};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};

pub(crate) use mark::{Marks, Words};

use crate::Error;

const KEY_BYTES: usize = 32;

/// The key beside the database: read when it is first needed, then kept.
pub(crate) struct Master {
    path: PathBuf,
    keys: Mutex<Option<Arc<Keys>>>,
}

/// What is made of the key beside the database.
pub(crate) struct Keys {
    /// Wraps the keys of runs.
    wrapping: Key,
    /// Seals what people allowed tools to be called with.
    pub(crate) allowed: Key,
    /// Chains the entries of the audit log.
    pub(crate) audit: Marks,
    /// Marks the rules that people left standing.
    pub(crate) rules: Marks,
    /// Marks the keys of clients.
    pub(crate) clients: Marks,
    /// Marks the rows that decide what the program does.
    pub(crate) rows: Marks,
    /// Marks what clients carry from one request to the next.
    pub(crate) requests: Marks,
}

/// What seals and opens.
pub(crate) struct Key {
    key: LessSafeKey,
    /// The file with the key that wraps this one, which complaints name.
    file: PathBuf,
}

/// What a sealed body belongs to. Names are written with their lengths, so that no two places are
/// spelled alike.
pub(crate) struct Place {
    what: &'static str,
    run: RunId,
    words: Words,
}

impl Place {
    pub(crate) fn new(what: &'static str, run: &RunId) -> Place {
        Place { what, run: run.clone(), words: Words::new() }.word(what).word(run.as_str())
    }

    /// What it is and whose, for complaints.
    pub(crate) fn of(&self) -> (&'static str, RunId) {
        (self.what, self.run.clone())
    }

    pub(crate) fn word(self, word: &str) -> Place {
        Place { words: self.words.word(word), ..self }
    }

    pub(crate) fn number(self, number: i64) -> Place {
        Place { words: self.words.number(number), ..self }
    }

    /// A word or number that may be missing.
    pub(crate) fn maybe<T>(mut self, value: Option<T>, put: impl FnOnce(Place, T) -> Place) -> Place {
        self.words.0.push(u8::from(value.is_some()));
        match value {
            Some(value) => put(self, value),
            None => self,
        }
    }
}

impl Master {
    pub(crate) fn beside(database: &Path) -> Master {
        Master { path: database.with_file_name("seal.key"), keys: Mutex::new(None) }
    }

    /// A key for a new run, and how it is stored. About `needed` see [`Master::keys`].
    pub(crate) fn new_key(
        &self,
        run: &RunId,
        principal: &Principal,
        needed: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<(Key, Vec<u8>), Error> {
        let mut secret = [0; KEY_BYTES];
        self.random(&mut secret)?;
        let wrapped = self.keys(needed)?.wrapping.seal(&wrapping(run, principal), &secret)?;
        Ok((self.of_bytes(&secret), wrapped))
    }

    /// The key of a run that is stored.
    pub(crate) fn unwrap(&self, run: &RunId, principal: &Principal, wrapped: Vec<u8>) -> Result<Key, Error> {
        let place = wrapping(run, principal);
        let keys = self.keys(|| Ok(true))?;
        let secret = keys.wrapping.open(&place, wrapped)?;
        let secret = <[u8; KEY_BYTES]>::try_from(secret).map_err(|_| keys.wrapping.unsealed(&place))?;
        Ok(self.of_bytes(&secret))
    }

    /// The keys. `needed` says whether anything is stored that an earlier file was used for: only
    /// where there is nothing is a missing file made.
    pub(crate) fn keys(&self, needed: impl FnOnce() -> Result<bool, Error>) -> Result<Arc<Keys>, Error> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*keys {
            return Ok(keys.clone());
        }
        let secret = match file::read(&self.path)? {
            Some(secret) => secret,
            // Another process may have made the file and stored a key since we looked.
            None if needed()? => {
                file::read(&self.path)?.ok_or_else(|| Error::KeyMissing { path: self.path.clone() })?
            }
            None => {
                let mut secret = [0; KEY_BYTES];
                self.random(&mut secret)?;
                let mut draft = [0; 8];
                self.random(&mut draft)?;
                file::create(&self.path, &secret, u64::from_le_bytes(draft))?
            }
        };
        let audit = Marks::derive(&secret, "audit log");
        let rules = Marks::derive(&secret, "approval rule");
        let clients = Marks::derive(&secret, "client key");
        let requests = Marks::derive(&secret, "request");
        let rows = Marks::derive(&secret, "row");
        let (wrapping, allowed) = (self.of_bytes(&secret), self.derived(&secret, "allowed arguments"));
        let made = Keys { wrapping, allowed, audit, rules, clients, rows, requests };
        Ok(keys.insert(Arc::new(made)).clone())
    }

    fn of_bytes(&self, secret: &[u8; KEY_BYTES]) -> Key {
        let key = UnboundKey::new(&AES_256_GCM, secret).expect("the algorithm takes keys of this length");
        Key { key: LessSafeKey::new(key), file: self.path.clone() }
    }

    /// A key that tells nothing of the one it is made of, nor of what is made of that for other purposes.
    fn derived(&self, secret: &[u8; KEY_BYTES], purpose: &'static str) -> Key {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"pml").extract(secret);
        let purpose = [purpose.as_bytes()];
        let key = secret.expand(&purpose, &AES_256_GCM).expect("a key is shorter than what can be made");
        Key { key: LessSafeKey::new(key.into()), file: self.path.clone() }
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), Error> {
        fill(bytes, &self.path)
    }
}

fn wrapping(run: &RunId, principal: &Principal) -> Place {
    Place::new("the key", run).word(&principal.0)
}

fn fill(bytes: &mut [u8], file: &Path) -> Result<(), Error> {
    SystemRandom::new().fill(bytes).map_err(|_| Error::Key {
        path: file.to_owned(),
        why: "the system gives no random numbers".to_owned(),
    })
}

impl Key {
    /// The body sealed for its place: a random nonce, what is sealed, and its tag.
    pub(crate) fn seal(&self, place: &Place, body: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal_words(&place.words, body)
    }

    /// As [`Key::seal`], for what belongs to no run.
    pub(crate) fn seal_words(&self, place: &Words, body: &[u8]) -> Result<Vec<u8>, Error> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce, &self.file)?;
        let mut sealed = Vec::with_capacity(NONCE_LEN + body.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(body);
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(&place.0));
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, aad, &mut sealed[NONCE_LEN..])
            .expect("bodies are far below the limit of the algorithm");
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }

    /// The body that was sealed for this place.
    pub(crate) fn open(&self, place: &Place, sealed: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.open_words(&place.words, sealed).ok_or_else(|| self.unsealed(place))
    }

    /// As [`Key::open`], for what belongs to no run.
    pub(crate) fn open_words(&self, place: &Words, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_first_chunk_mut::<NONCE_LEN>()?;
        let (nonce, aad) = (Nonce::assume_unique_for_key(*nonce), Aad::from(&place.0));
        let length = self.key.open_in_place(nonce, aad, body).ok()?.len();
        sealed.copy_within(NONCE_LEN..NONCE_LEN + length, 0);
        sealed.truncate(length);
        Some(sealed)
    }

    /// The complaint that what is at this place is not what was put there.
    pub(crate) fn unsealed(&self, place: &Place) -> Error {
        Error::Unsealed { run: place.run.clone(), what: place.what, key: self.file.clone() }
    }
}
