//! Reading bounded files, and writing files that are whole or not there at all.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::Error;

/// The largest file read. Clients keep much else in the files that `import` names.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The bytes of `path`; `None` where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if is_pipe(path) {
        // Opening one waits for a writer; a repository could carry one to make PML hang.
        let message = format!("`{}` is a pipe", path.display());
        return Err(Error::refused(message, "name a regular file"));
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let message = format!("`{}` is larger than {} MiB", path.display(), MAX_FILE_BYTES >> 20);
        return Err(Error::refused(message, "name a smaller file"));
    }
    Ok(Some(bytes))
}

/// Makes `dir` and its parents, readable by the user alone; an existing one keeps its mode.
pub(crate) fn private_dir(dir: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(Error::io("create the directory", dir))
}

/// Whether [`create`] made the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Creation {
    Made,
    WasThere,
}

/// Makes `path` with `bytes`, mode 0600, unless it exists. Of several at once exactly one makes it.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<Creation, Error> {
    let staged = stage(path, bytes)?;
    match staged.persist_noclobber(path) {
        Ok(_) => sync_dir(path).map(|()| Creation::Made),
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Ok(Creation::WasThere),
        Err(refused) => Err(Error::io("create", path)(refused.error)),
    }
}

/// Puts `bytes` in place of what `path` holds; a reader sees the old or the new, never a part. A
/// symbolic link stays one and its target is replaced; the file keeps its mode, a new one is 0600.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(Error::io("open", path)(error)),
    };
    let staged = stage(&target, bytes)?;
    if let Ok(metadata) = fs::metadata(&target) {
        staged
            .as_file()
            .set_permissions(metadata.permissions())
            .map_err(Error::io("set the mode of", &target))?;
    }
    staged.persist(&target).map_err(|refused| Error::io("replace", &target)(refused.error))?;
    sync_dir(&target)
}

/// A file of mode 0600 beside `path` whose bytes are on the disk.
fn stage(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, Error> {
    let dir = parent(path);
    private_dir(&dir)?;
    let mut staged = NamedTempFile::new_in(&dir).map_err(Error::io("write into", &dir))?;
    staged.write_all(bytes).map_err(Error::io("write", path))?;
    staged.as_file().sync_all().map_err(Error::io("write", path))?;
    Ok(staged)
}

/// Makes a rename last through a power cut; only Unix can open a directory for that.
fn sync_dir(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let dir = parent(path);
        File::open(&dir).and_then(|dir| dir.sync_all()).map_err(Error::io("write into", &dir))?;
    }
    Ok(())
}

/// The directory `path` is in.
pub(super) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(unix)]
fn is_pipe(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo())
}

#[cfg(not(unix))]
fn is_pipe(_path: &Path) -> bool {
    false
}

/// The bits of `unwanted` in the mode of `path`; 0 where there is no file.
#[cfg(unix)]
pub(crate) fn open_to_others(path: &Path, unwanted: u32) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode() & unwanted)
}

/// 0: this system has no such bits.
#[cfg(not(unix))]
pub(crate) fn open_to_others(_path: &Path, _unwanted: u32) -> u32 {
    0
}
