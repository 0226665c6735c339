//! The file with the master key.
//!
//! The file appears complete or not at all, so processes that start together agree on one key. A file that other users
//! can read is refused.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use super::KEY_BYTES;
use crate::Error;

/// The key in the file; `None` if there is no file.
pub(super) fn read_key(path: &Path) -> Result<Option<[u8; KEY_BYTES]>, Error> {
    let refuse = |why: String| Error::KeyUnusable { path: path.to_owned(), why };
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refuse(error.to_string())),
    };
    if !found.is_file() {
        return Err(refuse("it is not a file; move it away".to_owned()));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 != 0 {
        return Err(refuse("others may use it too; take their permissions away with `chmod 600`".to_owned()));
    }
    let mut secret = Vec::with_capacity(KEY_BYTES + 1);
    File::open(path)
        .and_then(|file| file.take(KEY_BYTES as u64 + 1).read_to_end(&mut secret))
        .map_err(|error| refuse(error.to_string()))?;
    <[u8; KEY_BYTES]>::try_from(secret).map(Some).map_err(|_| {
        refuse(format!("it does not have {KEY_BYTES} bytes; put the right one back from a backup"))
    })
}

/// Creates the file and returns its key, which is another process's if that process was quicker. `draft` is random.
pub(super) fn create_key(
    path: &Path,
    secret: &[u8; KEY_BYTES],
    draft: u64,
) -> Result<[u8; KEY_BYTES], Error> {
    let refuse = |error: io::Error| Error::KeyUnusable { path: path.to_owned(), why: error.to_string() };
    let draft = path.with_extension(format!("{draft:016x}"));
    let linked = write(&draft, secret).and_then(|()| link(&draft, path));
    // The draft holds a key: it must be removed, whether or not linking it succeeded.
    let removed = fs::remove_file(&draft);
    linked.map_err(refuse)?;
    removed.map_err(refuse)?;
    read_key(path)?.ok_or_else(|| Error::KeyMissing { path: path.to_owned() })
}

fn write(draft: &Path, secret: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(draft)?;
    file.write_all(secret)?;
    file.sync_all()
}

/// Links the draft to its final name, unless the file exists by now. Once this returns, the name survives a loss of
/// power: sealed data must not outlive its key.
fn link(draft: &Path, path: &Path) -> io::Result<()> {
    match fs::hard_link(draft, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    #[cfg(unix)]
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}
