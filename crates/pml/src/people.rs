//! People who sign in beside the operator: each with a name and a passphrase of their own, and a role.
//!
//! The operator, `local`, has the passphrase in the file beside the configuration and may everything. Everybody else is a
//! row of the database, so that all gateways know them. Nobody is looked up by anything but their name.

use std::sync::{Arc, PoisonError, RwLock};

use pml_model::{Digest, Principal, Role};
use pml_store::{Person, SignInAttempt, Store};

use crate::clock::now_ms;
use crate::passphrase;
use crate::problem::{ErrorCode, Problem};

/// The people who may sign in, as last read.
#[derive(Debug, Default)]
pub struct People {
    known: RwLock<Arc<Vec<Arc<Person>>>>,
}

impl People {
    /// The person who acts as `principal`.
    pub fn get(&self, principal: &Principal) -> Option<Arc<Person>> {
        self.current().iter().find(|person| person.principal == *principal).cloned()
    }

    /// The role of somebody who is signed in; `None` if they were removed. The operator may everything.
    pub fn role(&self, principal: &Principal) -> Option<Role> {
        match *principal == Principal::local() {
            true => Some(Role::Admin),
            false => self.get(principal).map(|person| person.role),
        }
    }

    /// Whether anybody but the operator can sign in.
    pub fn is_empty(&self) -> bool {
        self.current().is_empty()
    }

    fn current(&self) -> Arc<Vec<Arc<Person>>> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Loads the stored people.
    pub(crate) async fn refresh(&self, store: &Store) -> Result<(), Problem> {
        let stored = store.people().await?.into_iter().map(Arc::new).collect();
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(stored);
        Ok(())
    }
}

/// A fingerprint that changes each time the person's passphrase is set, and reveals nothing about it.
pub(crate) fn fingerprint(person: &Person) -> Digest {
    Digest::of(person.passphrase.as_bytes())
}

/// Adds a person.
///
/// # Errors
/// There is one of that name, the passphrase is too short or too long, or the change cannot be stored.
pub async fn add(store: &Store, principal: Principal, role: Role, given: &str) -> Result<(), Problem> {
    if principal == Principal::local() {
        return Err(Problem::new(ErrorCode::InvalidRequest, "`local` is the operator of this gateway")
            .hint("`pml passphrase` sets the operator's passphrase; choose another name"));
    }
    let (now, hash) = (now_ms(), passphrase::hash(given).await?);
    let shown = principal.clone();
    let person = Person { principal, role, passphrase: hash, created_at: now, changed_at: now };
    match store.add_person(person).await? {
        true => Ok(()),
        false => Err(Problem::new(ErrorCode::InvalidRequest, format!("there is a person `{shown}` already"))
            .hint(format!("`pml people passphrase {shown}` sets another passphrase"))),
    }
}

/// Sets the passphrase of a person, which ends their sessions.
///
/// # Errors
/// There is nobody of that name, the passphrase is too short or too long, or the change cannot be stored.
pub async fn set_passphrase(store: &Store, principal: &Principal, given: &str) -> Result<(), Problem> {
    let hash = passphrase::hash(given).await?;
    match store.set_person_passphrase(principal, hash, now_ms()).await? {
        true => Ok(()),
        false => Err(nobody(principal)),
    }
}

/// Removes a person: ends their sessions and revokes their keys. What they own stays. Returns how many keys.
///
/// # Errors
/// There is nobody of that name, or the change cannot be stored.
pub async fn remove(store: &Store, principal: &Principal) -> Result<usize, Problem> {
    store.remove_person(principal, now_ms()).await?.ok_or_else(|| nobody(principal))
}

pub(crate) fn nobody(principal: &Principal) -> Problem {
    Problem::new(ErrorCode::NotFound, format!("there is no person `{principal}`"))
        .hint("`pml people list` shows who there is")
}

/// The person with this name and this passphrase, read from the store itself. A wrong name takes as long as a wrong
/// passphrase, so that nobody finds out who there is.
///
/// # Errors
/// There were too many wrong attempts for that name, or the store cannot be read.
pub async fn verify(store: &Store, name: &str, given: &str) -> Result<Option<Person>, Problem> {
    let known = store.people().await?.into_iter().find(|person| person.principal.0 == name);
    let door = door_of(name);
    if let SignInAttempt::Wait(wait_ms) = store.attempt_sign_in(&door, now_ms(), passphrase::delay_ms).await?
    {
        return Err(passphrase::too_many_attempts(wait_ms));
    }
    let right = passphrase::matches_hash(known.as_ref().map(|person| person.passphrase.clone()), given).await;
    if right {
        store.clear_failed_sign_ins(&door).await?;
    }
    Ok(known.filter(|_| right))
}

/// Where wrong attempts for a name are counted. Names share 65,536 doors, whether anybody has them or not: a refusal
/// tells nothing of who there is, and guessing names fills no table.
fn door_of(name: &str) -> String {
    format!("web:{}", &Digest::of(name.as_bytes()).as_str()[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_signs_in_with_their_own_passphrase_until_it_is_changed_or_they_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        let (ann, bob) = (Principal("ann".to_owned()), Principal("bob".to_owned()));
        add(&store, ann.clone(), Role::Member, "correct horse").await.unwrap();
        add(&store, bob.clone(), Role::Approver, "battery staple").await.unwrap();
        assert!(add(&store, ann.clone(), Role::Admin, "correct horse").await.is_err(), "once");
        assert!(add(&store, Principal::local(), Role::Admin, "correct horse").await.is_err());
        assert!(add(&store, Principal("eve".to_owned()), Role::Admin, "short").await.is_err());
        let who = async |name: &str, given: &str| {
            verify(&store, name, given).await.unwrap().map(|person| (person.principal.0, person.role))
        };
        assert_eq!(who("ann", "correct horse").await, Some(("ann".to_owned(), Role::Member)));
        assert_eq!(who("bob", "correct horse").await, None, "it is another's");
        assert_eq!(who("eve", "correct horse").await, None);
        assert_eq!(who("local", "correct horse").await, None);
        set_passphrase(&store, &ann, "another horse").await.unwrap();
        assert_eq!(who("ann", "correct horse").await, None);
        assert!(who("ann", "another horse").await.is_some());
        assert_eq!(remove(&store, &ann).await.unwrap(), 0);
        assert_eq!(who("ann", "another horse").await, None);
        assert_eq!(remove(&store, &ann).await.unwrap_err().code, ErrorCode::NotFound);
    }

    #[tokio::test]
    async fn refusals_do_not_tell_whether_there_is_somebody_of_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        add(&store, Principal("ann".to_owned()), Role::Member, "correct horse").await.unwrap();
        let guess = async |name: &str| verify(&store, name, "wrong guess").await.is_err();
        let mut waits = Vec::new();
        for name in ["zoe", "eve", "ann"] {
            let mut of_name = Vec::new();
            for _ in 0..5 {
                of_name.push(guess(name).await);
            }
            waits.push(of_name);
        }
        assert!(waits[0].contains(&true) && !waits[0][0], "{waits:?}");
        assert!(waits.iter().all(|of_name| *of_name == waits[0]), "{waits:?}");
    }

    #[tokio::test]
    async fn guessing_for_one_delays_only_that_one() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        for name in ["ann", "bob"] {
            add(&store, Principal(name.to_owned()), Role::Member, "correct horse").await.unwrap();
        }
        let refused = async |name: &str| verify(&store, name, "wrong guess").await.is_err();
        for _ in 0..3 {
            refused("ann").await;
        }
        assert!(refused("ann").await);
        assert!(verify(&store, "bob", "correct horse").await.unwrap().is_some());
    }
}
