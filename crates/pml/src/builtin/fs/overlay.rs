//! What a dry run writes: files in memory over those on disk.
//!
//! An [`FsOverlay`] answers the calls of `fs` as if every earlier call had been carried out, with the same results and
//! the same errors, and changes nothing on disk. It reaches no more than `fs` itself: paths are resolved step by step
//! beneath the root, and PML's own files are refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cap_std::fs::OpenOptions;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;

use super::own::{self, FsRoot};
use super::walk::{self, FileView, FoundEntry};
use super::{
    FsCreateArguments, FsDeleteAnswer, FsDeleteArguments, FsEncoding, FsReadAnswer, FsReadArguments,
    FsStatAnswer, FsStatArguments, FsWriteAnswer, FsWriteArguments, MAX_CONTENT_BYTES, decode,
    drop_split_character, is_directory, kind, modified, not_text, open, part, problem, quoted, relative_path,
};
use crate::builtin::tool::{BuiltinAnswer, BuiltinFailure, StopSignal, arguments, failed, failure, success};

/// 64 MiB: everything that one dry run may write.
const MAX_WRITTEN_BYTES: usize = 64 << 20;
/// The most symbolic links on one path.
const MAX_LINKS: u32 = 40;

/// What an overlay lies over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlayBase {
    /// The files on disk.
    Root,
    /// Nothing: only what was written is known.
    Nothing,
}

/// A change that a call would make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FsChange {
    /// A file gets this content size.
    Written {
        /// Path from the root.
        path: String,
        /// Bytes in the file then.
        size: u64,
        /// Whether the file is new.
        created: bool,
    },
    /// A file or directory is removed.
    Deleted {
        /// Path from the root.
        path: String,
    },
}

/// The answer of an overlay.
#[derive(Debug)]
pub struct OverlayAnswer {
    /// The MCP result, which may be marked as an error.
    pub result: Box<RawValue>,
    /// The change that the call would make.
    pub change: Option<FsChange>,
    /// Whether the answer is exactly what the real tool would give now.
    pub is_real: bool,
}

#[derive(Debug, Clone)]
enum Change {
    File(Arc<Vec<u8>>),
    /// A directory that hides what is on disk below it.
    Directory,
    Deleted,
}

/// What is at a path.
enum PathTarget {
    Directory,
    Written(Arc<Vec<u8>>),
    OnDisk,
    Link,
    Other,
}

/// Files in memory over those on disk.
pub struct FsOverlay {
    root: Arc<FsRoot>,
    base: OverlayBase,
    /// By path from the root, with symbolic links resolved.
    changes: BTreeMap<PathBuf, Change>,
    written_bytes: usize,
}

impl FsOverlay {
    pub(in crate::builtin) fn new(root: Arc<FsRoot>, base: OverlayBase) -> FsOverlay {
        FsOverlay { root, base, changes: BTreeMap::new(), written_bytes: 0 }
    }

    /// Whether the files on disk show where nothing was written.
    pub fn is_over_root(&self) -> bool {
        self.base == OverlayBase::Root
    }

    /// Answers a call of `tool`; `None` if that depends on files of which nothing is known. Blocks on the file system.
    pub fn call(&mut self, tool: &str, given: &RawValue) -> Option<OverlayAnswer> {
        let stop = StopSignal::default_limit();
        let mut change = None;
        let is_real = self.is_untouched(given);
        let answer = self.answer(tool, given.get(), &stop, &mut change)?;
        let result = match &answer {
            Ok(structured) => success(structured),
            Err(failure) => failed(failure),
        };
        Some(OverlayAnswer { result, is_real: is_real && change.is_none(), change })
    }

    fn answer(
        &mut self,
        tool: &str,
        given: &str,
        stop: &StopSignal,
        change: &mut Option<FsChange>,
    ) -> Option<BuiltinAnswer> {
        // The shape was validated before, so a failure to parse is reported like any other.
        let parsed = |path: Result<PathBuf, BuiltinFailure>| path.ok();
        match tool {
            "stat" => {
                let arguments: FsStatArguments = match arguments(given) {
                    Ok(arguments) => arguments,
                    Err(failure) => return Some(Err(failure)),
                };
                self.knows(parsed(relative_path(&arguments.path)))?;
                Some(self.stat(&arguments).map(|answer| raw(&answer)))
            }
            "read" => {
                let arguments: FsReadArguments = match arguments(given) {
                    Ok(arguments) => arguments,
                    Err(failure) => return Some(Err(failure)),
                };
                self.knows(parsed(relative_path(&arguments.path)))?;
                Some(self.read(&arguments).map(|answer| raw(&answer)))
            }
            "list" => {
                let arguments: walk::FsListArguments = match arguments(given) {
                    Ok(arguments) => arguments,
                    Err(failure) => return Some(Err(failure)),
                };
                self.knows_of(parsed(relative_path(&arguments.path)))?;
                Some(walk::list_in(&*self, &arguments, stop).map(|answer| raw(&answer)))
            }
            "search" => {
                let arguments: walk::FsSearchArguments = match arguments(given) {
                    Ok(arguments) => arguments,
                    Err(failure) => return Some(Err(failure)),
                };
                self.knows_of(parsed(relative_path(&arguments.path)))?;
                Some(walk::search_in(&*self, &arguments, stop).map(|answer| raw(&answer)))
            }
            "create" => {
                Some(arguments(given).and_then(|arguments| self.create(&arguments)).map(|(answer, made)| {
                    *change = Some(made);
                    raw(&answer)
                }))
            }
            "write" => {
                Some(arguments(given).and_then(|arguments| self.write(&arguments)).map(|(answer, made)| {
                    *change = Some(made);
                    raw(&answer)
                }))
            }
            "delete" => Some(arguments(given).and_then(|arguments| self.delete(&arguments, stop)).map(
                |(answer, made)| {
                    *change = made;
                    raw(&answer)
                },
            )),
            _ => None,
        }
    }

    /// Whether nothing at, above or below the path of a call was changed.
    fn is_untouched(&self, given: &RawValue) -> bool {
        let path: Option<String> = Fields::parse(given.get()).ok().and_then(|fields| fields.read("path"));
        let path = relative_path(path.as_deref().unwrap_or(".")).unwrap_or_else(|_| PathBuf::from("."));
        let related = |changed: &PathBuf| {
            path == Path::new(".") || changed.starts_with(&path) || path.starts_with(changed)
        };
        self.base == OverlayBase::Root && !self.changes.keys().any(related)
    }

    /// Whether anything is known of a path. A path that cannot be used is refused like any other.
    fn knows(&self, path: Option<PathBuf>) -> Option<()> {
        let Some(path) = path else { return Some(()) };
        let known =
            self.base == OverlayBase::Root || path.ancestors().any(|above| self.changes.contains_key(above));
        known.then_some(())
    }

    /// Whether anything is known of a directory or of what is in it.
    fn knows_of(&self, path: Option<PathBuf>) -> Option<()> {
        let below = path.clone().is_some_and(|path| {
            self.changes.keys().any(|changed| path == Path::new(".") || changed.starts_with(&path))
        });
        if below { Some(()) } else { self.knows(path) }
    }

    /// What is at `path`, and its path without symbolic links. The last link is followed if `follow`.
    fn locate(&self, path: &Path, follow: bool) -> io::Result<(PathBuf, PathTarget)> {
        self.locate_after(path, follow, 0)
    }

    fn locate_after(&self, path: &Path, follow: bool, links: u32) -> io::Result<(PathBuf, PathTarget)> {
        if links > MAX_LINKS {
            return Err(io::Error::from_raw_os_error(40));
        }
        let mut here = PathBuf::new();
        let mut target = PathTarget::Directory;
        let mut names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        while let Some(name) = names.next() {
            if !matches!(target, PathTarget::Directory) {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            let parent = here.clone();
            here.push(name);
            target = match self.changes.get(&here) {
                Some(Change::Deleted) => return Err(io::ErrorKind::NotFound.into()),
                Some(Change::Directory) => PathTarget::Directory,
                Some(Change::File(content)) => PathTarget::Written(Arc::clone(content)),
                None if !self.shows_disk(&parent) => return Err(io::ErrorKind::NotFound.into()),
                None => {
                    let found = self.root.dir.symlink_metadata(&here)?;
                    let rest: PathBuf = names.clone().collect();
                    if found.is_symlink() && (follow || !rest.as_os_str().is_empty()) {
                        let next = self.link_target(&here)?.join(rest);
                        return self.locate_after(&next, follow, links + 1);
                    }
                    match kind(&found.file_type()) {
                        "directory" => PathTarget::Directory,
                        "file" => PathTarget::OnDisk,
                        "symlink" => PathTarget::Link,
                        _ => PathTarget::Other,
                    }
                }
            };
        }
        Ok((here, target))
    }

    /// The path that the link at `here` leads to, from the root.
    fn link_target(&self, here: &Path) -> io::Result<PathBuf> {
        // As the resolution beneath the root refuses it: without an error number of the system.
        let outside =
            || io::Error::new(io::ErrorKind::PermissionDenied, "a path led outside of the filesystem");
        let mut resolved = here.parent().unwrap_or(Path::new("")).to_owned();
        for part in self.root.dir.read_link_contents(here)?.components() {
            match part {
                Component::Normal(name) => resolved.push(name),
                Component::CurDir => {}
                Component::ParentDir if resolved.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(resolved)
    }

    /// Whether what is on disk in the directory `here` shows through.
    fn shows_disk(&self, here: &Path) -> bool {
        self.base == OverlayBase::Root && here.ancestors().all(|above| !self.changes.contains_key(above))
    }

    fn stat(&self, arguments: &FsStatArguments) -> Result<FsStatAnswer, BuiltinFailure> {
        let path = relative_path(&arguments.path)?;
        self.root.own_files_now()?.check(&path)?;
        let told = |kind, size, modified| FsStatAnswer {
            path: walk::slash_path(&path),
            exists: true,
            r#type: Some(kind),
            size: Some(size),
            modified,
        };
        let now = || Some(jiff::Timestamp::now().to_string());
        match self.locate(&path, false) {
            Ok((_, PathTarget::Written(content))) => Ok(told("file", content.len() as u64, now())),
            Ok((here, PathTarget::Directory)) if !self.shows_disk(&here) => {
                Ok(told("directory", DIRECTORY_BYTES, now()))
            }
            Ok((here, _)) => {
                let here = if here.as_os_str().is_empty() { Path::new(".") } else { here.as_path() };
                let found = self.root.dir.symlink_metadata(here);
                let found = found.map_err(|error| problem("look at", &path, &error))?;
                Ok(told(kind(&found.file_type()), found.len(), modified(&found)))
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                let path = walk::slash_path(&path);
                Ok(FsStatAnswer { path, exists: false, r#type: None, size: None, modified: None })
            }
            Err(error) => Err(problem("look at", &path, &error)),
        }
    }

    fn read(&self, arguments: &FsReadArguments) -> Result<FsReadAnswer, BuiltinFailure> {
        let path = relative_path(&arguments.path)?;
        let limit = arguments.limit.unwrap_or(MAX_CONTENT_BYTES).clamp(1, MAX_CONTENT_BYTES);
        let own = self.root.own_files_now()?;
        own.check(&path)?;
        let located = self.locate(&path, true).map_err(|error| problem("open", &path, &error))?;
        let (mut bytes, truncated, size) = match located {
            (_, PathTarget::Written(content)) => {
                let from = usize::try_from(arguments.offset).unwrap_or(usize::MAX).min(content.len());
                let rest = &content[from..];
                let truncated = rest.len() > limit;
                (rest[..rest.len().min(limit)].to_vec(), truncated, content.len() as u64)
            }
            (here, PathTarget::OnDisk) => {
                let (mut file, found) = open(&self.root.dir, &own, &here, OpenOptions::new().read(true))?;
                let (bytes, truncated) = part(&mut file, arguments.offset, limit)
                    .map_err(|error| problem("read", &path, &error))?;
                (bytes, truncated, found.len())
            }
            (_, PathTarget::Directory) => return Err(is_directory(&path)),
            (_, PathTarget::Link | PathTarget::Other) => return Err(not_regular(&path)),
        };
        let content = match arguments.encoding {
            FsEncoding::Base64 => BASE64.encode(&bytes),
            FsEncoding::Utf8 => {
                if truncated {
                    drop_split_character(&mut bytes);
                }
                String::from_utf8(bytes.clone()).map_err(|_| not_text(&path))?
            }
        };
        let next_offset = truncated.then(|| arguments.offset + bytes.len() as u64);
        Ok(FsReadAnswer { content, size, encoding: arguments.encoding, truncated, next_offset })
    }

    fn create(&mut self, arguments: &FsCreateArguments) -> Result<(FsWriteAnswer, FsChange), BuiltinFailure> {
        let path = relative_path(&arguments.path)?;
        let content = decode(&arguments.content, arguments.encoding)?.into_owned();
        self.root.own_files_now()?.check(&path)?;
        let directory = self.make_parents(&path)?;
        let exists = || problem("open", &path, &io::ErrorKind::AlreadyExists.into());
        let Some(name) = path.file_name() else { return Err(exists()) };
        let place = directory.join(name);
        match self.locate(&place, false) {
            Ok(_) => Err(exists()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.put(&path, place, content, true),
            Err(error) => Err(problem("open", &path, &error)),
        }
    }

    fn write(&mut self, arguments: &FsWriteArguments) -> Result<(FsWriteAnswer, FsChange), BuiltinFailure> {
        let path = relative_path(&arguments.path)?;
        let mut content = decode(&arguments.content, arguments.encoding)?.into_owned();
        self.root.own_files_now()?.check(&path)?;
        let directory = self.make_parents(&path)?;
        let before = |old: &[u8], content: Vec<u8>| match arguments.append {
            true => [old, &content].concat(),
            false => content,
        };
        match self.locate(&path, true) {
            Ok((place, PathTarget::Written(old))) => {
                content = before(&old, content);
                self.put(&path, place, content, false)
            }
            Ok((place, PathTarget::OnDisk)) => {
                let old = if arguments.append { self.whole_file(&path, &place)? } else { Vec::new() };
                content = before(&old, content);
                self.put(&path, place, content, false)
            }
            Ok((_, PathTarget::Directory)) => Err(is_directory(&path)),
            Ok((_, PathTarget::Link | PathTarget::Other)) => Err(not_regular(&path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let place = directory.join(path.file_name().unwrap_or(OsStr::new(".")));
                if self.locate(&place, false).is_ok() {
                    return Err(failure!(
                        "{} is a symbolic link to what does not exist; name the file itself",
                        quoted(&path)
                    ));
                }
                self.put(&path, place, content, true)
            }
            Err(error) => Err(problem("open", &path, &error)),
        }
    }

    /// The content of a file on disk that is appended to.
    fn whole_file(&self, path: &Path, place: &Path) -> Result<Vec<u8>, BuiltinFailure> {
        let own = self.root.own_files_now()?;
        let (mut file, _) = open(&self.root.dir, &own, place, OpenOptions::new().read(true))?;
        let (bytes, more) =
            part(&mut file, 0, MAX_WRITTEN_BYTES).map_err(|error| problem("read", path, &error))?;
        if more {
            return Err(too_much(path));
        }
        Ok(bytes)
    }

    fn put(
        &mut self,
        path: &Path,
        place: PathBuf,
        content: Vec<u8>,
        created: bool,
    ) -> Result<(FsWriteAnswer, FsChange), BuiltinFailure> {
        self.root.own_files_now()?.check(&place)?;
        self.written_bytes += content.len();
        if self.written_bytes > MAX_WRITTEN_BYTES {
            return Err(too_much(path));
        }
        let (path, size) = (walk::slash_path(path), content.len() as u64);
        self.changes.insert(place, Change::File(Arc::new(content)));
        Ok((FsWriteAnswer { path: path.clone(), size }, FsChange::Written { path, size, created }))
    }

    /// The directory of `path` without symbolic links, created with its parents where missing.
    fn make_parents(&mut self, path: &Path) -> Result<PathBuf, BuiltinFailure> {
        let parent = path.parent().unwrap_or(Path::new("")).to_owned();
        let no_directory = |path: &Path| problem("create", path, &io::ErrorKind::NotADirectory.into());
        match self.locate(&parent, true) {
            Ok((here, PathTarget::Directory)) => return Ok(here),
            Ok(_) => return Err(no_directory(&parent)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(problem("create", &parent, &error)),
        }
        let (mut above, mut here) = (PathBuf::new(), PathBuf::new());
        for name in &parent {
            above.push(name);
            let own = self.root.own_files_now()?;
            own.check(&above).map_err(|_| own::refusal(path))?;
            here = match self.locate(&above, true) {
                Ok((found, PathTarget::Directory)) => found,
                Ok(_) => return Err(no_directory(&above)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let made = here.join(name);
                    if self.locate(&made, false).is_ok() {
                        return Err(problem("create", &above, &error));
                    }
                    self.changes.insert(made.clone(), Change::Directory);
                    made
                }
                Err(error) => return Err(problem("create", &above, &error)),
            };
        }
        Ok(here)
    }

    fn delete(
        &mut self,
        arguments: &FsDeleteArguments,
        stop: &StopSignal,
    ) -> Result<(FsDeleteAnswer, Option<FsChange>), BuiltinFailure> {
        let path = relative_path(&arguments.path)?;
        let Some(name) = path.file_name() else {
            return Err(failure!("the root itself cannot be deleted; name a path below it"));
        };
        self.root.own_files_now()?.check(&path)?;
        let change = FsChange::Deleted { path: walk::slash_path(&path) };
        if self.knows(Some(path.clone())).is_none() {
            // Nothing is known of it; a program that deletes something expects that it is there.
            self.changes.insert(path, Change::Deleted);
            return Ok((FsDeleteAnswer { deleted: true }, Some(change)));
        }
        let cannot = |error: io::Error| problem("delete", &path, &error);
        let found =
            self.locate(path.parent().unwrap_or(Path::new("")), true).and_then(
                |(here, target)| match target {
                    PathTarget::Directory => self.locate(&here.join(name), false),
                    _ => Err(io::ErrorKind::NotADirectory.into()),
                },
            );
        let (place, target) = match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((FsDeleteAnswer { deleted: false }, None));
            }
            found => found.map_err(cannot)?,
        };
        self.check_removal(&path, &place, &target, stop)?;
        if matches!(target, PathTarget::Directory) && !arguments.recursive {
            let held = self.entries(&place, &mut 0).map_err(cannot)?;
            if !held.is_empty() {
                return Err(cannot(io::ErrorKind::DirectoryNotEmpty.into()));
            }
        }
        self.changes.retain(|changed, _| !changed.starts_with(&place));
        self.changes.insert(place, Change::Deleted);
        Ok((FsDeleteAnswer { deleted: true }, Some(change)))
    }

    /// Refuses to remove what is PML's, or contains or leads to it.
    fn check_removal(
        &self,
        path: &Path,
        place: &Path,
        target: &PathTarget,
        stop: &StopSignal,
    ) -> Result<(), BuiltinFailure> {
        let own = self.root.own_files_now()?;
        own.check(place)?;
        let on_disk = own::parent(&self.root.dir, place).ok().zip(place.file_name());
        let Some((directory, name)) = on_disk.filter(|_| self.shows_disk(place)) else { return Ok(()) };
        own.check_place(path, &directory, name)?;
        match target {
            PathTarget::Directory => own.check_below(path, &directory, name, stop),
            PathTarget::OnDisk | PathTarget::Link | PathTarget::Other => {
                own.check_link(path, &directory, name)
            }
            PathTarget::Written(_) => Ok(()),
        }
    }
}

impl FileView for FsOverlay {
    fn check(&self, path: &Path) -> Result<(), BuiltinFailure> {
        self.root.own_files_now()?.check(path)
    }

    fn entries(&self, path: &Path, skipped: &mut usize) -> io::Result<Vec<(PathBuf, FoundEntry)>> {
        let (here, target) = self.locate(path, true)?;
        if !matches!(target, PathTarget::Directory) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let mut entries = Vec::new();
        if self.shows_disk(&here) {
            let shown = if here.as_os_str().is_empty() { Path::new(".") } else { here.as_path() };
            let stop = StopSignal::default_limit();
            let own = self.root.own_files_now().map_err(|error| io::Error::other(error.to_string()))?;
            let on_disk = walk::RealFiles { root: &self.root, own, stop: &stop };
            for (below, found) in on_disk.entries(shown, skipped)? {
                let name = below.file_name().unwrap_or(OsStr::new("."));
                if !self.changes.contains_key(&here.join(name)) {
                    entries.push((walk::entry_path(path, name), found));
                }
            }
        }
        for (changed, change) in self.changes.range(here.clone()..) {
            if changed.parent() != Some(here.as_path()) {
                if !changed.starts_with(&here) {
                    break;
                }
                continue;
            }
            let (kind, size) = match change {
                Change::File(content) => ("file", content.len() as u64),
                Change::Directory => ("directory", DIRECTORY_BYTES),
                Change::Deleted => continue,
            };
            let name = changed.file_name().unwrap_or(OsStr::new("."));
            entries.push((walk::entry_path(path, name), FoundEntry { kind, size, metadata: None }));
        }
        entries.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(entries)
    }

    fn text_of(&self, path: &Path) -> Option<String> {
        match self.locate(path, true).ok()? {
            (_, PathTarget::Written(content)) => {
                let more = content.len() > MAX_CONTENT_BYTES;
                walk::searchable_text(&content[..content.len().min(MAX_CONTENT_BYTES)], more)
            }
            (here, PathTarget::OnDisk) => {
                let (stop, own) = (StopSignal::default_limit(), self.root.own_files_now().ok()?);
                walk::RealFiles { root: &self.root, own, stop: &stop }.text_of(&here)
            }
            (_, PathTarget::Directory | PathTarget::Link | PathTarget::Other) => None,
        }
    }
}

#[cfg(test)]
mod tests;

/// The size that a directory which is not on disk is said to have; on disk it depends on the file system.
const DIRECTORY_BYTES: u64 = 4096;

fn not_regular(path: &Path) -> BuiltinFailure {
    failure!("{} is not a regular file; pipes and devices are not touched", quoted(path))
}

fn too_much(path: &Path) -> BuiltinFailure {
    failure!("a dry run keeps at most {MAX_WRITTEN_BYTES} bytes, and {} is beyond that", quoted(path))
}
