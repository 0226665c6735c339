//! Signatures of packages, and whose packages a principal has taken capabilities from.

use crate::sql::{Connection, OptionalExtension as _, params};
use pml_model::Principal;

use crate::seal::is_signed;
use crate::vouch::vouched_condition;
use crate::{BlockingStore, Error};

/// Precedes what is signed, so that a signature of a package is one of nothing else.
const PURPOSE: &[u8] = b"pml package\n";

/// A signature, and who made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSignature {
    /// The signer's public key, as 64 hexadecimal digits.
    pub signer: String,
    /// The signature, as 128 hexadecimal digits.
    pub signature: String,
}

/// Whether `signature` was made for this content by `signer`.
pub fn is_signed_by(signature: &PackageSignature, content: &[u8]) -> bool {
    let (Some(public), Some(made)) = (from_hex(&signature.signer), from_hex(&signature.signature)) else {
        return false;
    };
    is_signed(&public, &[PURPOSE, content].concat(), &made)
}

impl BlockingStore {
    /// Signs the content of a package with the key of this database.
    ///
    /// # Errors
    /// The key file cannot be used.
    pub fn sign_package(&self, content: &[u8]) -> Result<PackageSignature, Error> {
        let keys = self.inner.authenticator.master.keys(|| self.is_key_in_use())?;
        let made = keys.packages.sign(&[PURPOSE, content].concat());
        Ok(PackageSignature { signer: to_hex(keys.packages.public()), signature: to_hex(&made) })
    }

    /// Who signed the package that the capability of this name was imported from, if one was.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn package_signer(&self, principal: &Principal, name: &str) -> Result<Option<String>, Error> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT signer FROM package_signer WHERE principal = ?1 AND name = ?2 AND {}",
                    vouched_condition("package_signer", "package_signer")
                ))?
                .query_row(params![principal.0, name], |row| row.get(0))
                .optional()
        })
    }

    /// Remembers who signed the package that the capability of this name was imported from.
    ///
    /// # Errors
    /// The change could not be stored.
    pub fn remember_package_signer(
        &self,
        principal: &Principal,
        name: &str,
        signer: &str,
        now: i64,
    ) -> Result<(), Error> {
        let (principal, name, signer) = (principal.clone(), name.to_owned(), signer.to_owned());
        self.write(move |connection| remember_signer(connection, &principal, &name, &signer, now))
    }
}

pub(crate) fn remember_signer(
    connection: &Connection,
    principal: &Principal,
    name: &str,
    signer: &str,
    now: i64,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO package_signer (principal, name, signer, at) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (principal, name) DO UPDATE SET signer = excluded.signer, at = excluded.at",
        )?
        .execute(params![principal.0, name, signer, now])
        .map(drop)
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).ok();
    (0..text.len()).step_by(2).map(byte).collect()
}
