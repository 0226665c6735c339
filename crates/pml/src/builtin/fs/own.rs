//! Keeps `fs` away from PML's own files, whatever its root.
//!
//! A file is identified by device and inode, never by the text of a path, so symbolic links, hard links and bind
//! mounts reach no more than the path itself does. A file that does not exist yet is identified by its directory and
//! its name. Each call looks again, because PML replaces its files while it runs. None of PML's files is ever opened
//! for the check: closing it would release the locks that this process holds on the database.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_fs_ext::{DirExt as _, MetadataExt as _};
use cap_std::fs::{Dir, Metadata};

use super::quoted;
use crate::builtin::tool::{BuiltinFailure, StopSignal, failure};
use crate::config::{OwnFiles, is_own_name};

/// The largest number of files PML may have. With more, its directory is evidently shared, and its files could not be
/// told from others.
const MAX_OWN: usize = 100_000;

/// Device and inode.
type FileId = (u64, u64);

/// The directory `fs` is confined to, and the files it must not reach.
pub(in crate::builtin) struct FsRoot {
    pub(in crate::builtin) dir: Dir,
    own: OwnFiles,
    /// The ids of the root and of the directories above it.
    above: HashSet<FileId>,
    /// The device of `/proc`.
    processes: Option<u64>,
}

impl FsRoot {
    pub(super) fn new(path: &Path, dir: Dir, own: &OwnFiles) -> FsRoot {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let above = path.ancestors().filter_map(|dir| ambient(dir).ok()).map(|found| id(&found)).collect();
        let processes = ambient(Path::new("/proc/self")).ok().map(|found| found.dev());
        FsRoot { dir, own: own.clone(), above, processes }
    }

    /// PML's own files as they are now.
    pub(super) fn own_files_now(&self) -> Result<OwnFilesNow<'_>, BuiltinFailure> {
        let mut own = OwnFilesNow {
            root: self,
            looked_at: SystemTime::now(),
            ids: HashSet::new(),
            places: HashSet::new(),
            shared: HashSet::new(),
        };
        let mut whole: Vec<&Path> = Vec::new();
        for directory in &self.own.directories {
            own.places.extend(place(directory));
            match ambient(directory) {
                // The root lies inside this directory, so not all of it is PML's.
                Ok(found) if self.above.contains(&id(&found)) => {
                    own.shared.insert(id(&found));
                    let ours = |path: &PathBuf| path.file_name().is_some_and(is_own_name);
                    for path in entries(directory).into_iter().filter(ours) {
                        own.take(path)?;
                    }
                }
                Ok(_) => {
                    own.take(directory.clone())?;
                    whole.push(directory);
                }
                Err(_) => {}
            }
        }
        // The files in a directory that belongs to PML as a whole are already included.
        for file in self.own.files.iter().filter(|file| !whole.iter().any(|whole| file.starts_with(whole))) {
            own.places.extend(place(file));
            if ambient(file).is_ok_and(|found| !found.is_dir()) {
                own.take(file.clone())?;
            }
        }
        Ok(own)
    }
}

/// PML's own files at one moment.
pub(super) struct OwnFilesNow<'r> {
    root: &'r FsRoot,
    looked_at: SystemTime,
    ids: HashSet<FileId>,
    /// Places where a file of PML's is or would be: the directory, and the name in lower case.
    places: HashSet<(FileId, OsString)>,
    /// Directories in which PML's files are recognised by their names.
    shared: HashSet<FileId>,
}

impl OwnFilesNow<'_> {
    /// Whether this is a file or a directory of PML's.
    pub(super) fn contains(&self, found: &Metadata) -> bool {
        self.ids.contains(&id(found))
    }

    /// Whether `name` in that directory is PML's, whether or not it exists.
    pub(super) fn contains_place(&self, directory: &Metadata, name: &OsStr) -> bool {
        let directory = id(directory);
        self.ids.contains(&directory)
            || self.places.contains(&(directory, name.to_ascii_lowercase()))
            || (self.shared.contains(&directory) && is_own_name(name))
    }

    /// Refuses a path that is PML's, lies within what is PML's, or leads there.
    pub(super) fn check(&self, path: &Path) -> Result<(), BuiltinFailure> {
        let root = &self.root.dir;
        let leads_to_own = || root.metadata(path).is_ok_and(|found| self.contains(&found));
        let Some(name) = path.file_name() else {
            return if leads_to_own() { Err(refusal(path)) } else { Ok(()) };
        };
        let directory = match parent(root, path) {
            Ok(directory) => directory,
            // A path inside a directory of PML's that does not exist yet is PML's too.
            Err(_) => {
                let above = path.parent().unwrap_or(Path::new("."));
                return self.check(above).map_err(|_| refusal(path));
            }
        };
        let is_own = directory.dir_metadata().is_ok_and(|found| self.contains_place(&found, name))
            || directory.symlink_metadata(name).is_ok_and(|found| self.contains(&found))
            || leads_to_own();
        if is_own { Err(refusal(path)) } else { Ok(()) }
    }

    /// Refuses an opened file that is PML's: the path may lead elsewhere than when it was checked.
    pub(super) fn check_opened(&self, path: &Path, opened: &Metadata) -> Result<(), BuiltinFailure> {
        if Some(opened.dev()) == self.root.processes && opened.is_file() {
            // PML's own memory and environment are visible there, and they hold its keys.
            return Err(failure!("{} is the system's view of a process, which is refused", quoted(path)));
        }
        let is_own = self.contains(opened)
            || (self.may_be_newer(opened) && self.root.own_files_now()?.contains(opened));
        if is_own { Err(refusal(path)) } else { Ok(()) }
    }

    /// Whether a file may have come to its place after PML's files were listed: PML replaces its files by new ones.
    /// Every rename and link updates the change time of the inode, which the system keeps to some milliseconds.
    #[cfg(unix)]
    fn may_be_newer(&self, found: &Metadata) -> bool {
        use cap_std::fs::MetadataExt as _;
        let looked_at = self.looked_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        u64::try_from(found.ctime()).is_ok_and(|changed| changed + 1 >= looked_at)
    }

    #[cfg(not(unix))]
    fn may_be_newer(&self, _: &Metadata) -> bool {
        true
    }

    /// Refuses to create or remove `name` in `directory` if it is PML's.
    pub(super) fn check_place(
        &self,
        path: &Path,
        directory: &Dir,
        name: &OsStr,
    ) -> Result<(), BuiltinFailure> {
        let found = directory.dir_metadata().map_err(|error| super::problem("look at", path, &error))?;
        if self.contains_place(&found, name) { Err(refusal(path)) } else { Ok(()) }
    }

    /// Refuses to remove the directory `name` recursively if something in it is PML's.
    pub(super) fn check_below(
        &self,
        path: &Path,
        directory: &Dir,
        name: &OsStr,
        stop: &StopSignal,
    ) -> Result<(), BuiltinFailure> {
        let cannot = |error: io::Error| super::problem("look through", path, &error);
        let mut open = vec![PathBuf::from(name)];
        while let Some(below) = open.pop() {
            let dir = directory.open_dir_nofollow(&below).map_err(cannot)?;
            self.check_opened(path, &dir.dir_metadata().map_err(cannot)?)?;
            for entry in dir.entries().map_err(cannot)? {
                if stop.should_stop() {
                    return Err(failure!("{} has too much in it; delete its parts one by one", quoted(path)));
                }
                let name = entry.map_err(cannot)?.file_name();
                self.check_place(path, &dir, &name)?;
                let found = match dir.symlink_metadata(&name) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    found => found.map_err(cannot)?,
                };
                self.check_opened(path, &found)?;
                if found.is_dir() {
                    open.push(below.join(name));
                }
            }
        }
        Ok(())
    }

    /// Refuses to remove a symbolic link on the path to PML's files.
    pub(super) fn check_link(
        &self,
        path: &Path,
        directory: &Dir,
        name: &OsStr,
    ) -> Result<(), BuiltinFailure> {
        let found = directory.dir_metadata().map_err(|error| super::problem("look at", path, &error))?;
        let here = (id(&found), name.to_ascii_lowercase());
        let own = &self.root.own;
        let ways = own.directories.iter().chain(&own.files).flat_map(|path| path.ancestors());
        if ways.filter_map(place).any(|way| way == here) { Err(refusal(path)) } else { Ok(()) }
    }

    /// Adds a path of PML's: the entry itself, its target, and everything below it.
    fn take(&mut self, path: PathBuf) -> Result<(), BuiltinFailure> {
        let mut open = vec![path];
        while let Some(path) = open.pop() {
            // An entry removed since the directory was read belongs to nobody.
            let Ok(mut found) = ambient_link(&path) else { continue };
            if found.is_symlink() {
                self.ids.insert(id(&found));
                let Ok(target) = ambient(&path) else { continue };
                found = target;
            }
            if self.ids.insert(id(&found)) && found.is_dir() {
                open.extend(entries(&path));
            }
            if self.ids.len() > MAX_OWN {
                return Err(failure!(
                    "PML's own directory has more than {MAX_OWN} files, so they cannot be told from others; move \
                     what is not PML's elsewhere"
                ));
            }
        }
        Ok(())
    }
}

/// The parent directory of `path`, held open.
pub(super) fn parent(root: &Dir, path: &Path) -> io::Result<Dir> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => root.open_dir(parent),
        Some(_) | None => root.try_clone(),
    }
}

/// The failure for a path that is out of reach.
pub(super) fn refusal(path: &Path) -> BuiltinFailure {
    failure!(
        "{} is one of PML's own files, which `fs` never reaches, whatever its root; a person changes them outside of PML",
        quoted(path)
    )
}

fn id(found: &Metadata) -> FileId {
    (found.dev(), found.ino())
}

/// The parent directory of `path` and the name in lower case, because some file systems ignore case.
fn place(path: &Path) -> Option<(FileId, OsString)> {
    let directory = ambient(path.parent()?).ok()?;
    Some((id(&directory), path.file_name()?.to_ascii_lowercase()))
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .collect()
}

/// The metadata of what `path`, outside any root, leads to.
#[cfg(unix)]
fn ambient(path: &Path) -> io::Result<Metadata> {
    std::fs::metadata(path).map(Metadata::from_just_metadata)
}

/// The metadata of `path` itself, links not followed.
#[cfg(unix)]
fn ambient_link(path: &Path) -> io::Result<Metadata> {
    std::fs::symlink_metadata(path).map(Metadata::from_just_metadata)
}

/// The metadata of what `path`, outside any root, leads to. On this system only an opened file has an identity.
#[cfg(not(unix))]
fn ambient(path: &Path) -> io::Result<Metadata> {
    let path = std::fs::canonicalize(path)?;
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => {
            Dir::open_ambient_dir(parent, cap_std::ambient_authority())?.metadata(name)
        }
        _ => Dir::open_ambient_dir(&path, cap_std::ambient_authority())?.dir_metadata(),
    }
}

/// The metadata of `path` itself, links not followed.
#[cfg(not(unix))]
fn ambient_link(path: &Path) -> io::Result<Metadata> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return ambient(path) };
    Dir::open_ambient_dir(parent, cap_std::ambient_authority())?.symlink_metadata(name)
}
