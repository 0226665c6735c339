//! The bearer token of `pml serve`.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::disk::{self, FileCreation};
use super::error::Error;
use super::paths::Paths;
use super::secret::Secret;

/// 256 bits of randomness.
const TOKEN_BYTES: usize = 32;

/// The bearer token that every HTTP request must carry. It is created on first use; processes that start at the same
/// moment get the same one.
///
/// # Errors
/// The file cannot be read or created, holds no token, or is open to other users.
pub fn load_token(paths: &Paths) -> Result<Secret, Error> {
    let path = paths.token();
    if let Some(bytes) = disk::read(&path)? {
        return read_token(paths, bytes);
    }
    let fresh = new_token()?;
    match disk::create(&path, format!("{fresh}\n").as_bytes())? {
        FileCreation::Created => Ok(Secret::new(fresh)),
        FileCreation::Existed => read_token(paths, disk::read(&path)?.unwrap_or_default()),
    }
}

fn read_token(paths: &Paths, bytes: Vec<u8>) -> Result<Secret, Error> {
    let path = paths.token();
    let shown = path.display();
    if disk::open_to_others(&path, 0o077) != 0 {
        // Restricting the mode would not help: another user may already have read the token.
        let message = format!("other users can read or write the token file `{shown}`");
        return Err(Error::refused(
            message,
            format!("delete it to get a new token, or run `chmod 600 {shown}` to keep this one"),
        ));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    match URL_SAFE_NO_PAD.decode(text.trim()) {
        Ok(bytes) if bytes.len() == TOKEN_BYTES => Ok(Secret::new(text.trim().to_owned())),
        Ok(_) | Err(_) => Err(Error::refused(
            format!("the token file `{shown}` does not hold a token of PML"),
            "delete it to get a new token",
        )),
    }
}

fn new_token() -> Result<String, Error> {
    loop {
        let mut bytes = [0; TOKEN_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::refused(
                format!("the system gave no random bytes for a token: {error}"),
                "check that the system's random source works",
            )
        })?;
        let token = URL_SAFE_NO_PAD.encode(bytes);
        // After `--token ` on a command line a leading dash would be parsed as another option.
        if !token.starts_with('-') {
            return Ok(token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::Barrier;

    use super::*;

    fn paths(dir: &tempfile::TempDir) -> Paths {
        Paths { config: dir.path().join("pml.toml"), data: dir.path().join("data") }
    }

    #[test]
    fn threads_that_start_together_agree_on_one_token() {
        for _ in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let paths = paths(&dir);
            let start = Barrier::new(8);
            let tokens: BTreeSet<String> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            start.wait();
                            load_token(&paths).unwrap().reveal().to_owned()
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(tokens.len(), 1);
            assert_eq!(tokens.first().unwrap(), load_token(&paths).unwrap().reveal());
            let left: Vec<_> = std::fs::read_dir(&paths.data).unwrap().collect();
            assert_eq!(left.len(), 1, "no half-made file stays behind");
        }
    }

    #[test]
    fn tokens_differ_between_installations() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_ne!(load_token(&paths(&one)).unwrap(), load_token(&paths(&other)).unwrap());
    }

    #[test]
    fn no_token_looks_like_an_option() {
        assert!((0..2_000).all(|_| !new_token().unwrap().starts_with('-')));
    }

    #[test]
    fn a_file_that_is_no_token_is_refused_and_kept() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(&dir);
        load_token(&paths).unwrap();
        for bad in ["", "short\n", "not base64 !!!"] {
            std::fs::write(paths.token(), bad).unwrap();
            let error = load_token(&paths).unwrap_err().to_string();
            assert!(error.ends_with("does not hold a token of PML\nhint: delete it to get a new token"));
            assert_eq!(std::fs::read_to_string(paths.token()).unwrap(), bad);
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_token_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(&dir);
        load_token(&paths).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&paths.token()), mode(&paths.data)), (0o600, 0o700));

        std::fs::set_permissions(paths.token(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let shown = paths.token().display().to_string();
        assert_eq!(
            load_token(&paths).unwrap_err().to_string(),
            format!(
                "other users can read or write the token file `{shown}`\n\
                 hint: delete it to get a new token, or run `chmod 600 {shown}` to keep this one"
            )
        );
    }
}
