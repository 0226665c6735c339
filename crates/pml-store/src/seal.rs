//! Seals the content of runs, so that the database alone reveals nothing of it.
//!
//! Every run has its own key, wrapped by a master key that is kept in a file beside the database. Destroying the
//! wrapped key destroys all bodies of a run at once. The context of a body is authenticated with it, so bodies cannot
//! be exchanged. Keys never leave this module and are never printed.

mod file;
mod mark;
mod sign;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pml_model::{Principal, RunId};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};

pub(crate) use mark::{AuthenticatedData, MarkKey};
pub(crate) use sign::{PackageKey, is_signed};

use crate::Error;

const KEY_BYTES: usize = 32;

/// The master key beside the database: read when it is first needed, then cached.
pub(crate) struct MasterKey {
    path: PathBuf,
    keys: Mutex<Option<Arc<DerivedKeys>>>,
}

/// The keys derived from the master key, one for each purpose.
pub(crate) struct DerivedKeys {
    /// Wraps the keys of runs.
    wrapping: SealKey,
    /// Seals the arguments that people approved.
    pub(crate) allowed: SealKey,
    /// Seals the sign-ins to servers.
    pub(crate) sign_ins: SealKey,
    /// Chains the entries of the audit log.
    pub(crate) audit: MarkKey,
    /// Marks the approval rules.
    pub(crate) rules: MarkKey,
    /// Marks the client keys.
    pub(crate) clients: MarkKey,
    /// Marks the rows that decide what the program does.
    pub(crate) rows: MarkKey,
    /// Marks the state that clients carry from one request to the next.
    pub(crate) requests: MarkKey,
    /// Signs the packages that are given to others.
    pub(crate) packages: PackageKey,
    /// Tells one master key from another, and nothing else about it.
    pub(crate) fingerprint: String,
}

/// A key that seals and opens bodies.
pub(crate) struct SealKey {
    key: LessSafeKey,
    /// Path of the master key file, for error messages.
    file: PathBuf,
}

/// What a sealed body belongs to. Parts are encoded with their lengths, so that no two contexts have the same
/// encoding.
pub(crate) struct SealContext {
    what: &'static str,
    run: RunId,
    words: AuthenticatedData,
}

impl SealContext {
    pub(crate) fn new(what: &'static str, run: &RunId) -> SealContext {
        SealContext { what, run: run.clone(), words: AuthenticatedData::new() }.text(what).text(run.as_str())
    }

    /// The kind of body and its run, for error messages.
    pub(crate) fn describe(&self) -> (&'static str, RunId) {
        (self.what, self.run.clone())
    }

    pub(crate) fn text(self, word: &str) -> SealContext {
        SealContext { words: self.words.text(word), ..self }
    }

    pub(crate) fn number(self, number: i64) -> SealContext {
        SealContext { words: self.words.number(number), ..self }
    }

    /// Adds a text or number that may be missing.
    pub(crate) fn optional<T>(
        mut self,
        value: Option<T>,
        put: impl FnOnce(SealContext, T) -> SealContext,
    ) -> SealContext {
        self.words.0.push(u8::from(value.is_some()));
        match value {
            Some(value) => put(self, value),
            None => self,
        }
    }
}

impl MasterKey {
    pub(crate) fn beside(database: &Path) -> MasterKey {
        MasterKey { path: database.with_file_name("seal.key"), keys: Mutex::new(None) }
    }

    /// Path of the key file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A key for a new run, and its wrapped form. About `needed` see [`MasterKey::keys`].
    pub(crate) fn new_run_key(
        &self,
        run: &RunId,
        principal: &Principal,
        needed: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<(SealKey, Vec<u8>), Error> {
        let mut secret = [0; KEY_BYTES];
        self.random(&mut secret)?;
        let wrapped = self.keys(needed)?.wrapping.seal(&wrapping(run, principal), &secret)?;
        Ok((self.of_bytes(&secret), wrapped))
    }

    /// Unwraps the stored key of a run.
    pub(crate) fn unwrap_run_key(
        &self,
        run: &RunId,
        principal: &Principal,
        wrapped: Vec<u8>,
    ) -> Result<SealKey, Error> {
        let place = wrapping(run, principal);
        let keys = self.keys(|| Ok(true))?;
        let secret = keys.wrapping.open(&place, wrapped)?;
        let secret = <[u8; KEY_BYTES]>::try_from(secret).map_err(|_| keys.wrapping.unsealed_error(&place))?;
        Ok(self.of_bytes(&secret))
    }

    /// The derived keys. `needed` tells whether the database holds data that needs an existing key file. A missing
    /// file is created only if it does not.
    pub(crate) fn keys(
        &self,
        needed: impl FnOnce() -> Result<bool, Error>,
    ) -> Result<Arc<DerivedKeys>, Error> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(keys) = &*keys {
            return Ok(keys.clone());
        }
        let secret = match file::read_key(&self.path)? {
            Some(secret) => secret,
            // Another process may have created the file and stored a key since the first read.
            None if needed()? => {
                file::read_key(&self.path)?.ok_or_else(|| Error::KeyMissing { path: self.path.clone() })?
            }
            None => {
                let mut secret = [0; KEY_BYTES];
                self.random(&mut secret)?;
                let mut draft = [0; 8];
                self.random(&mut draft)?;
                file::create_key(&self.path, &secret, u64::from_le_bytes(draft))?
            }
        };
        let audit = MarkKey::derive(&secret, "audit log");
        let rules = MarkKey::derive(&secret, "approval rule");
        let clients = MarkKey::derive(&secret, "client key");
        let requests = MarkKey::derive(&secret, "request");
        let rows = MarkKey::derive(&secret, "row");
        let packages = PackageKey::derive(&secret);
        let (wrapping, allowed) = (self.of_bytes(&secret), self.derived(&secret, "allowed arguments"));
        let sign_ins = self.derived(&secret, "server sign-in");
        let fingerprint = MarkKey::derive(&secret, "fingerprint").mark(&AuthenticatedData::new());
        let made = DerivedKeys {
            wrapping,
            allowed,
            sign_ins,
            audit,
            rules,
            clients,
            rows,
            requests,
            packages,
            fingerprint,
        };
        Ok(keys.insert(Arc::new(made)).clone())
    }

    fn of_bytes(&self, secret: &[u8; KEY_BYTES]) -> SealKey {
        let key = UnboundKey::new(&AES_256_GCM, secret).expect("the algorithm takes keys of this length");
        SealKey { key: LessSafeKey::new(key), file: self.path.clone() }
    }

    /// Derives a key for one purpose. It reveals nothing about the secret or about the keys for other purposes.
    fn derived(&self, secret: &[u8; KEY_BYTES], purpose: &'static str) -> SealKey {
        let secret = hkdf::Salt::new(hkdf::HKDF_SHA256, b"pml").extract(secret);
        let purpose = [purpose.as_bytes()];
        let key = secret.expand(&purpose, &AES_256_GCM).expect("a key is shorter than what can be made");
        SealKey { key: LessSafeKey::new(key.into()), file: self.path.clone() }
    }

    fn random(&self, bytes: &mut [u8]) -> Result<(), Error> {
        fill(bytes, &self.path)
    }
}

fn wrapping(run: &RunId, principal: &Principal) -> SealContext {
    SealContext::new("the key", run).text(&principal.0)
}

fn fill(bytes: &mut [u8], file: &Path) -> Result<(), Error> {
    SystemRandom::new().fill(bytes).map_err(|_| Error::KeyUnusable {
        path: file.to_owned(),
        why: "the system gives no random numbers".to_owned(),
    })
}

impl SealKey {
    /// Seals a body for its context. The result is a random nonce, the ciphertext and its tag.
    pub(crate) fn seal(&self, place: &SealContext, body: &[u8]) -> Result<Vec<u8>, Error> {
        self.seal_data(&place.words, body)
    }

    /// As [`SealKey::seal`], for data that belongs to no run.
    pub(crate) fn seal_data(&self, place: &AuthenticatedData, body: &[u8]) -> Result<Vec<u8>, Error> {
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

    /// Opens a body that was sealed for this context.
    pub(crate) fn open(&self, place: &SealContext, sealed: Vec<u8>) -> Result<Vec<u8>, Error> {
        self.open_data(&place.words, sealed).ok_or_else(|| self.unsealed_error(place))
    }

    /// As [`SealKey::open`], for data that belongs to no run.
    pub(crate) fn open_data(&self, place: &AuthenticatedData, mut sealed: Vec<u8>) -> Option<Vec<u8>> {
        let (nonce, body) = sealed.split_first_chunk_mut::<NONCE_LEN>()?;
        let (nonce, aad) = (Nonce::assume_unique_for_key(*nonce), Aad::from(&place.0));
        let length = self.key.open_in_place(nonce, aad, body).ok()?.len();
        sealed.copy_within(NONCE_LEN..NONCE_LEN + length, 0);
        sealed.truncate(length);
        Some(sealed)
    }

    /// The error for a body that is not the one that was sealed for this context.
    pub(crate) fn unsealed_error(&self, place: &SealContext) -> Error {
        Error::Unsealed { run: place.run.clone(), what: place.what, key: self.file.clone() }
    }
}
