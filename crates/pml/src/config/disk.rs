//! Reads files up to a size limit, and writes files atomically.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::Error;

/// 16 MiB: the largest file that is read. Clients keep much else in the files that `import` names.
pub(super) const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// The bytes of `path`; `None` where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    if is_pipe(path) {
        // Opening a pipe waits for a writer; a repository could carry one to make PML hang.
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

/// The directories above `path` that do not exist, the outermost first.
pub(crate) fn missing_directories(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty());
    let mut missing: Vec<PathBuf> = above.take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes directories, the innermost last in the list, as far as they are empty.
pub(crate) fn remove_empty(directories: &[PathBuf]) {
    for dir in directories.iter().rev() {
        if let Err(error) = fs::remove_dir(dir) {
            tracing::debug!(%error, dir = %dir.display(), "a directory stays");
            return;
        }
    }
}

/// Creates `dir` and its parents, readable by the user alone; an existing one keeps its mode.
pub(crate) fn create_private_dir(dir: &Path) -> Result<(), Error> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(Error::io("create the directory", dir))
}

/// Whether [`create`] created the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileCreation {
    Created,
    Existed,
}

/// Creates `path` with `bytes`, mode 0600, unless it exists. Of several concurrent callers exactly one creates it.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<FileCreation, Error> {
    let staged = stage(path, bytes)?;
    match staged.persist_noclobber(path) {
        Ok(_) => sync_dir(path).map(|()| FileCreation::Created),
        Err(refused) if refused.error.kind() == ErrorKind::AlreadyExists => Ok(FileCreation::Existed),
        Err(refused) => Err(Error::io("create", path)(refused.error)),
    }
}

/// Replaces the content of `path` atomically: a reader sees the old or the new content, never a part. A symbolic link
/// stays one and its target is replaced. The file keeps its mode; a new one gets 0600.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let target = target(path)?;
    persist(stage_like(&target, bytes)?, &target)
}

/// Replaces the content of a file of another program, as [`replace`] does, if it still is `expected`; `None` means that
/// there is no such file. A read-only file is left alone, although its directory would let it be replaced.
pub(crate) fn replace_unchanged(path: &Path, expected: Option<&[u8]>, bytes: &[u8]) -> Result<(), Error> {
    let target = target(path)?;
    if fs::metadata(&target).is_ok_and(|metadata| metadata.permissions().readonly()) {
        let message = format!("`{}` is read-only and was not touched", path.display());
        return Err(Error::refused(message, "make it writable, or edit it by hand"));
    }
    let staged = stage_like(&target, bytes)?;
    // Compared as late as possible: only the rename follows.
    if read(&target)?.as_deref() != expected {
        let message = format!("`{}` changed meanwhile and was not touched", path.display());
        return Err(Error::refused(message, "run the command again"));
    }
    match expected {
        Some(_) => persist(staged, &target),
        None => match staged.persist_noclobber(&target) {
            Ok(_) => sync_dir(&target),
            Err(refused) => Err(Error::io("create", &target)(refused.error)),
        },
    }
}

/// Removes a file of another program if its content still is `expected`.
pub(crate) fn remove_unchanged(path: &Path, expected: &[u8]) -> Result<(), Error> {
    if read(path)?.as_deref() != Some(expected) {
        let message = format!("`{}` changed meanwhile and was not touched", path.display());
        return Err(Error::refused(message, "run the command again"));
    }
    fs::remove_file(path).map_err(Error::io("remove", path))
}

/// The file that `path` leads to, through symbolic links.
fn target(path: &Path) -> Result<PathBuf, Error> {
    match fs::canonicalize(path) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(Error::io("open", path)(error)),
    }
}

/// A temporary file beside `target` with the mode and, where that is possible, the owner of `target`.
fn stage_like(target: &Path, bytes: &[u8]) -> Result<NamedTempFile, Error> {
    let staged = stage(target, bytes)?;
    if let Ok(metadata) = fs::metadata(target) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            // Only root may give files away, and only for root there is a difference to keep.
            let owner = (Some(metadata.uid()), Some(metadata.gid()));
            if let Err(error) = std::os::unix::fs::fchown(staged.as_file(), owner.0, owner.1) {
                tracing::debug!(%error, "the owner of a replaced file is not kept");
            }
        }
        staged
            .as_file()
            .set_permissions(metadata.permissions())
            .map_err(Error::io("set the mode of", target))?;
    }
    Ok(staged)
}

fn persist(staged: NamedTempFile, target: &Path) -> Result<(), Error> {
    staged.persist(target).map_err(|refused| Error::io("replace", target)(refused.error))?;
    sync_dir(target)
}

/// A temporary file of mode 0600 beside `path`, with `bytes` synced to the disk.
fn stage(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, Error> {
    let dir = parent(path);
    create_private_dir(&dir)?;
    let mut staged = NamedTempFile::new_in(&dir).map_err(Error::io("write into", &dir))?;
    staged.write_all(bytes).map_err(Error::io("write", path))?;
    staged.as_file().sync_all().map_err(Error::io("write", path))?;
    Ok(staged)
}

/// Syncs the directory of `path`, so that a rename survives a power cut; only Unix can open a directory for that.
fn sync_dir(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        let dir = parent(path);
        File::open(&dir).and_then(|dir| dir.sync_all()).map_err(Error::io("write into", &dir))?;
    }
    Ok(())
}

/// The parent directory of `path`.
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

/// Always 0: this system has no such bits.
#[cfg(not(unix))]
pub(crate) fn open_to_others(_path: &Path, _unwanted: u32) -> u32 {
    0
}
