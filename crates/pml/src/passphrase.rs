//! The passphrase by which people prove that they are people, at the dashboard and on the terminal.
//!
//! An agent can run commands, read the bearer token and send requests, but it does not know the passphrase. Only an
//! Argon2id hash is stored, in a file that only the user can read, or in the database that several gateways share. The passphrase itself is never stored, never logged,
//! and read from nowhere but a terminal and the sign-in form.

use std::io::Write as _;

use argon2::Argon2;
use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use pml_model::Digest;
use pml_store::{SignInAttempt, Store};

use crate::clock::now_ms;
use crate::config::{Paths, Secret, disk};
use crate::problem::{ErrorCode, Problem};
use crate::runtime::run_blocking;

/// The least number of characters of a passphrase.
pub const LEAST_CHARACTERS: usize = 10;
/// Bytes: the longest passphrase, more than anybody types and quick to hash.
const MOST_BYTES: usize = 1024;

/// Where a passphrase is entered. Each place has its own delay, so that guessing at one does not lock people out of the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInDoor {
    /// The sign-in form of the dashboard.
    Web,
    /// A command in a terminal.
    Terminal,
}

impl SignInDoor {
    fn name(self) -> &'static str {
        match self {
            SignInDoor::Web => "web",
            SignInDoor::Terminal => "terminal",
        }
    }
}

/// Checks the passphrase `given`. Too many wrong attempts delay everybody at that door, in all processes.
///
/// # Errors
/// No passphrase is set, its file cannot be used, or there were too many wrong attempts just now.
pub async fn verify(paths: &Paths, store: &Store, door: SignInDoor, given: &str) -> Result<bool, Problem> {
    let hash = known(paths, store)?.ok_or_else(not_set)?;
    let now = now_ms();
    match store.attempt_sign_in(door.name(), now, delay_ms).await? {
        SignInAttempt::Allowed => {}
        SignInAttempt::Wait(wait_ms) => return Err(too_many_attempts(wait_ms)),
    }
    let given = given.to_owned();
    let right = run_blocking(move || matches(&hash, &given)).await;
    if right {
        store.clear_failed_sign_ins(door.name()).await?;
    }
    Ok(right)
}

/// The error for an attempt that is not checked, because there were too many wrong ones.
pub(crate) fn too_many_attempts(wait_ms: i64) -> Problem {
    let wait_s = (wait_ms + 999) / 1000;
    Problem::new(ErrorCode::RateLimited, "there were too many wrong passphrases")
        .hint(format!("try again after {wait_s} s"))
        .retry_after(u64::try_from(wait_s).unwrap_or(1))
}

/// Whether `given` has this hash. Without a hash it takes as long, and is not.
pub(crate) async fn matches_hash(hash: Option<String>, given: &str) -> bool {
    /// The hash of a passphrase that nobody knows, made with the same settings as all others.
    static NOBODYS: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let given = given.to_owned();
    run_blocking(move || match hash {
        Some(hash) => matches(&hash, &given),
        None => {
            let nobodys = NOBODYS.get_or_init(|| hashed("nobody has this").unwrap_or_default());
            std::hint::black_box(matches(nobodys, &given));
            false
        }
    })
    .await
}

/// The hash of a new passphrase.
///
/// # Errors
/// It is too short or too long.
pub(crate) async fn hash(new: &str) -> Result<String, Problem> {
    check_length(new)?;
    let new = new.to_owned();
    run_blocking(move || hashed(&new)).await
}

fn hashed(new: &str) -> Result<String, Problem> {
    let hash: PasswordHash = Argon2::default().hash_password(new.as_bytes()).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("the passphrase cannot be hashed: {error}"))
            .hint("check that the system's random source works")
    })?;
    Ok(hash.to_string())
}

/// The number of wrong attempts in a row without a delay: people mistype.
const FREE: u32 = 3;
/// 30 s in milliseconds: the longest delay.
const LONGEST_MS: i64 = 30_000;

/// The delay after this many wrong attempts in a row, in milliseconds.
pub(crate) fn delay_ms(wrong: u32) -> i64 {
    match wrong.checked_sub(FREE) {
        Some(over) => (1000_i64 << over.min(10)).min(LONGEST_MS),
        None => 0,
    }
}

/// Shows a code on the terminal that has to be typed there. A program that answers without reading the terminal does
/// not know it. The code is written to the terminal device itself, so it appears in no pipe, file or log.
///
/// # Errors
/// There is no terminal, or something else was typed.
pub async fn confirm_on_terminal() -> Result<(), Problem> {
    let code = one_time_code()?;
    let shown = format!("To show that you read this terminal, type this code: {code}\n");
    run_blocking(move || write_to_terminal(&shown)).await.map_err(|error| no_terminal(&error))?;
    let typed = ask_on_terminal("Code: ").await?;
    if typed.reveal().trim() == code {
        return Ok(());
    }
    Err(Problem::new(ErrorCode::Denied, "that is not the code")
        .hint("nothing was changed; run the command again for another code"))
}

/// Eight unpredictable digits.
fn one_time_code() -> Result<String, Problem> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| {
        Problem::new(ErrorCode::Config, format!("no code can be made: {error}"))
            .hint("check that the system's random source works")
    })?;
    let number = u64::from_le_bytes(random) % 100_000_000;
    Ok(format!("{:04}-{:04}", number / 10_000, number % 10_000))
}

fn write_to_terminal(text: &str) -> std::io::Result<()> {
    let device = if cfg!(windows) { "CONOUT$" } else { "/dev/tty" };
    let mut terminal = std::fs::OpenOptions::new().write(true).open(device)?;
    terminal.write_all(text.as_bytes())
}

/// Whether a passphrase is set.
///
/// # Errors
/// Its file exists and cannot be used.
pub fn is_set(paths: &Paths, store: &Store) -> Result<bool, Problem> {
    known(paths, store).map(|hash| hash.is_some())
}

/// A fingerprint that changes each time the passphrase is set, and reveals nothing about it; `None` if none is set.
///
/// # Errors
/// Its file exists and cannot be used.
pub fn passphrase_fingerprint(paths: &Paths, store: &Store) -> Result<Option<Digest>, Problem> {
    known(paths, store).map(|hash| hash.map(|hash| Digest::of(hash.as_bytes())))
}

/// Sets the passphrase, whatever it was before: in the database if gateways share it, else in a file.
///
/// # Errors
/// It is too short or too long, or cannot be stored.
pub async fn set_for_all(paths: &Paths, store: &Store, new: &str) -> Result<(), Problem> {
    if !store.is_shared() {
        return set(paths, new).await;
    }
    Ok(store.set_operator_passphrase(hash(new).await?, now_ms()).await?)
}

/// Sets the passphrase in the file of this gateway, whatever it was before.
///
/// # Errors
/// It is too short or too long, or cannot be stored.
pub async fn set(paths: &Paths, new: &str) -> Result<(), Problem> {
    let (path, hash) = (paths.passphrase(), hash(new).await?);
    run_blocking(move || Ok(disk::replace(&path, format!("{hash}\n").as_bytes())?)).await
}

fn check_length(new: &str) -> Result<(), Problem> {
    if new.chars().count() >= LEAST_CHARACTERS && new.len() <= MOST_BYTES {
        return Ok(());
    }
    let text =
        format!("a passphrase has {LEAST_CHARACTERS} characters at least and {MOST_BYTES} bytes at most");
    Err(Problem::new(ErrorCode::InvalidRequest, text).hint("a few random words are easy to remember"))
}

/// Reads hidden input from the terminal. It reads the terminal device itself: input piped into the program does not
/// count.
///
/// # Errors
/// There is no terminal.
pub async fn ask_on_terminal(prompt: &str) -> Result<Secret, Problem> {
    let prompt = prompt.to_owned();
    let typed = run_blocking(move || rpassword::prompt_password(prompt)).await;
    typed.map(Secret::new).map_err(|error| no_terminal(&error))
}

fn no_terminal(error: &std::io::Error) -> Problem {
    Problem::new(
        ErrorCode::Denied,
        format!("a passphrase has to be typed, and there is no terminal: {error}"),
    )
    .hint("run the command in a terminal of your own, or answer at the dashboard of `pml serve`")
}

/// The hash of the passphrase. Gateways that share a database share the one that is stored there; the file of a gateway
/// counts only where none is.
fn known(paths: &Paths, store: &Store) -> Result<Option<String>, Problem> {
    let shared = if store.is_shared() { store.operator_passphrase()? } else { None };
    match shared {
        Some(hash) => Ok(Some(hash)),
        None => stored(paths),
    }
}

/// The stored hash; `None` if there is no file.
fn stored(paths: &Paths) -> Result<Option<String>, Problem> {
    let path = paths.passphrase();
    let Some(bytes) = disk::read(&path)? else { return Ok(None) };
    let shown = path.display();
    let anew = format!("delete `{shown}` and run `pml passphrase`");
    if disk::open_to_others(&path, 0o077) != 0 {
        let text = format!("other users can read or write the passphrase file `{shown}`");
        return Err(Problem::new(ErrorCode::Config, text).hint(anew));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    if PasswordHash::new(text.trim()).is_err() {
        let text = format!("the file `{shown}` holds no passphrase of PML");
        return Err(Problem::new(ErrorCode::Config, text).hint(anew));
    }
    Ok(Some(text.trim().to_owned()))
}

fn matches(hash: &str, given: &str) -> bool {
    // The comparison takes the same time wherever the two differ.
    given.len() <= MOST_BYTES
        && PasswordHash::new(hash)
            .is_ok_and(|hash| Argon2::default().verify_password(given.as_bytes(), &hash).is_ok())
}

fn not_set() -> Problem {
    Problem::new(ErrorCode::Denied, "no passphrase is set").hint("run `pml passphrase` in a terminal")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Paths) {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { config: dir.path().join("pml.toml"), data: dir.path().join("data") };
        (dir, paths)
    }

    fn store(paths: &Paths) -> Store {
        Store::from(pml_store::BlockingStore::open(&paths.database()).unwrap())
    }

    async fn verify(paths: &Paths, given: &str) -> Result<bool, Problem> {
        let store = store(paths);
        super::verify(paths, &store, SignInDoor::Web, given).await
    }

    #[tokio::test]
    async fn only_the_passphrase_that_was_set_last_is_right() {
        let (_dir, paths) = home();
        assert!(!is_set(&paths, &store(&paths)).unwrap());
        assert_eq!(verify(&paths, "").await.unwrap_err(), not_set());
        set(&paths, "correct horse").await.unwrap();
        let first = passphrase_fingerprint(&paths, &store(&paths)).unwrap();
        assert!(is_set(&paths, &store(&paths)).unwrap());
        assert!(verify(&paths, "correct horse").await.unwrap());
        assert!(!verify(&paths, "correct horse ").await.unwrap());
        set(&paths, "battery staple").await.unwrap();
        assert_ne!(passphrase_fingerprint(&paths, &store(&paths)).unwrap(), first);
        assert!(!verify(&paths, "correct horse").await.unwrap());
        assert!(verify(&paths, "battery staple").await.unwrap());
    }

    #[tokio::test]
    async fn the_same_passphrase_has_another_hash_each_time_and_stands_nowhere() {
        let (_dir, paths) = home();
        set(&paths, "correct horse").await.unwrap();
        let first = std::fs::read_to_string(paths.passphrase()).unwrap();
        set(&paths, "correct horse").await.unwrap();
        let second = std::fs::read_to_string(paths.passphrase()).unwrap();
        assert!(first.starts_with("$argon2id$v=19$"), "{first}");
        assert_ne!(first, second);
        assert!(!first.contains("horse"));
    }

    #[tokio::test]
    async fn short_and_endless_ones_are_refused() {
        let (_dir, paths) = home();
        for bad in ["", "ninechars", &"x".repeat(MOST_BYTES + 1)] {
            assert_eq!(set(&paths, bad).await.unwrap_err().code, ErrorCode::InvalidRequest, "{}", bad.len());
        }
        assert!(!is_set(&paths, &store(&paths)).unwrap());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_others_can_change_or_that_is_something_else_counts_for_nothing() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_dir, paths) = home();
        set(&paths, "correct horse").await.unwrap();
        let mode = std::fs::metadata(paths.passphrase()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        std::fs::set_permissions(paths.passphrase(), std::fs::Permissions::from_mode(0o620)).unwrap();
        assert!(verify(&paths, "correct horse").await.unwrap_err().message.starts_with("other users can"));
        std::fs::set_permissions(paths.passphrase(), std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::write(paths.passphrase(), "correct horse").unwrap();
        assert!(
            verify(&paths, "correct horse")
                .await
                .unwrap_err()
                .message
                .ends_with("holds no passphrase of PML")
        );
    }

    #[test]
    fn guessing_gets_slower_and_slower_up_to_half_a_minute() {
        let delays: Vec<i64> = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50, u32::MAX].map(delay_ms).into();
        let seconds = [0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30, 30];
        assert_eq!(delays, seconds.map(|seconds| seconds * 1000));
    }

    #[test]
    fn codes_are_digits_and_differ() {
        let (one, other) = (one_time_code().unwrap(), one_time_code().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 9 && one.replace('-', "").bytes().all(|byte| byte.is_ascii_digit()), "{one}");
    }
}
