//! Files below one directory.
//!
//! The root is opened once and every path is resolved beneath it by the system, step by step, so that a symbolic
//! link that leads outside is refused even when another process puts it there during the call. Only regular
//! files are read or written: a pipe or a device is refused, never waited for. PML's own files are out of reach.

mod overlay;
mod own;
mod walk;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileType, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::overlay::{FsChange, FsOverlay, OverlayAnswer, OverlayBase};
pub(super) use self::own::FsRoot;
use self::own::OwnFilesNow;
use super::tool::{
    ADDS, BuiltinFailure, BuiltinSpec, BuiltinTool, QuotedName, READS, REMOVES, REPLACES, StopSignal,
    failure, object_schema,
};
use crate::config::OwnFiles;

/// 4 MiB: the most bytes that one call reads or writes.
const MAX_CONTENT_BYTES: usize = 4 * 1024 * 1024;

/// The tools, confined to `root` and never in `own`; and the opened `root`, for checking recorded reads later.
pub(super) fn tools(
    root: &Path,
    own: &OwnFiles,
) -> Result<(Arc<FsRoot>, Vec<BuiltinTool>), super::BuiltinError> {
    let opened = Dir::open_ambient_dir(root, ambient_authority());
    let opened = opened.map_err(|reason| super::BuiltinError::Root { path: root.to_owned(), reason })?;
    let root = Arc::new(FsRoot::new(root, opened, own));
    let tools = vec![
        tool(&root, stat_spec(), stat),
        tool(&root, read_spec(), read),
        tool(&root, walk::list_spec(), walk::list),
        tool(&root, walk::search_spec(), walk::search),
        tool(&root, create_spec(), create),
        tool(&root, write_spec(), write),
        tool(&root, delete_spec(), delete),
    ];
    Ok((root, tools))
}

/// How a symbolic link is treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkTreatment {
    /// The link itself.
    Itself,
    /// The target of the link.
    Followed,
}

impl StopSignal {
    /// Records the state of `path` before it is read.
    fn record_path(&self, path: &Path, link: LinkTreatment, found: Option<&Metadata>) {
        if let Some(witness) = &self.witness {
            witness.record_path(path, link == LinkTreatment::Followed, found);
        }
    }

    /// Records a read that cannot be compared later.
    fn record_unknown(&self) {
        if let Some(witness) = &self.witness {
            witness.record_unknown();
        }
    }
}

fn tool<A, R>(
    root: &Arc<FsRoot>,
    spec: BuiltinSpec,
    run: fn(&FsRoot, &A, &StopSignal) -> Result<R, BuiltinFailure>,
) -> BuiltinTool
where
    A: for<'de> Deserialize<'de> + 'static,
    R: Serialize + 'static,
{
    let root = root.clone();
    BuiltinTool::blocking(spec, move |arguments: &A, stop: &StopSignal| run(&root, arguments, stop))
}

fn path_schema(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn encoding_schema(description: &str) -> Value {
    json!({ "type": "string", "enum": ["utf8", "base64"], "description": description })
}

fn kind_schema() -> Value {
    json!({ "type": "string", "enum": ["file", "directory", "symlink", "other"], "description": "What it is." })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FsStatArguments {
    path: String,
}

#[derive(Serialize)]
struct FsStatAnswer {
    path: String,
    exists: bool,
    r#type: Option<&'static str>,
    size: Option<u64>,
    modified: Option<String>,
}

fn stat_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "stat",
        title: "Look at a path",
        description:
            "Says whether a path exists, what it is, how large it is and when it last changed. A path \
                      that does not exist is no error. Symbolic links are not followed."
                .into(),
        effect: READS,
        input: object_schema(json!({ "path": path_schema("Path from the root.") }), &["path"]),
        output: object_schema(
            json!({
                "path": { "type": "string", "description": "The path that was looked at, from the root." },
                "exists": { "type": "boolean", "description": "Whether there is something at the path." },
                "type": {
                    "type": ["string", "null"],
                    "enum": ["file", "directory", "symlink", "other", null],
                    "description": "What it is; null when it does not exist."
                },
                "size": { "type": ["integer", "null"], "description": "Bytes; null when it does not exist." },
                "modified": {
                    "type": ["string", "null"],
                    "format": "date-time",
                    "description": "Last change, RFC 3339 in UTC; null when unknown."
                },
            }),
            &["path", "exists", "type", "size", "modified"],
        ),
    }
}

fn stat(
    root: &FsRoot,
    arguments: &FsStatArguments,
    stop: &StopSignal,
) -> Result<FsStatAnswer, BuiltinFailure> {
    let path = relative_path(&arguments.path)?;
    let own = root.own_files_now()?;
    own.check(&path)?;
    let found = root.dir.symlink_metadata(&path);
    stop.record_path(&path, LinkTreatment::Itself, found.as_ref().ok());
    match found {
        Ok(found) if own.contains(&found) => Err(own::refusal(&path)),
        Ok(found) => Ok(FsStatAnswer {
            path: walk::slash_path(&path),
            exists: true,
            r#type: Some(kind(&found.file_type())),
            size: Some(found.len()),
            modified: modified(&found),
        }),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let path = walk::slash_path(&path);
            Ok(FsStatAnswer { path, exists: false, r#type: None, size: None, modified: None })
        }
        Err(error) => Err(problem("look at", &path, &error)),
    }
}

fn modified(found: &Metadata) -> Option<String> {
    let time = found.modified().ok()?.into_std();
    jiff::Timestamp::try_from(time).ok().map(|time| time.to_string())
}

fn kind(file_type: &FileType) -> &'static str {
    if file_type.is_file() {
        "file"
    } else if file_type.is_dir() {
        "directory"
    } else if file_type.is_symlink() {
        "symlink"
    } else {
        "other"
    }
}

#[derive(Deserialize, Serialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum FsEncoding {
    #[default]
    Utf8,
    Base64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FsReadArguments {
    path: String,
    #[serde(default)]
    encoding: FsEncoding,
    #[serde(default)]
    offset: u64,
    limit: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FsReadAnswer {
    content: String,
    size: u64,
    encoding: FsEncoding,
    truncated: bool,
    next_offset: Option<u64>,
}

fn read_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "read",
        title: "Read a file",
        description:
            "Reads a file, or a part of it, as text or as base64. At most 4 MiB per call; `nextOffset` \
                      says where to go on."
                .into(),
        effect: READS,
        input: object_schema(
            json!({
                "path": path_schema("Path of the file from the root."),
                "encoding": encoding_schema("How to give the content; `utf8` unless told."),
                "offset": { "type": "integer", "minimum": 0, "description": "First byte to read; 0 unless told." },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_CONTENT_BYTES,
                    "description": "Most bytes to read; 4 MiB unless told."
                },
            }),
            &["path"],
        ),
        output: object_schema(
            json!({
                "content": { "type": "string", "description": "The content in the encoding asked for." },
                "size": { "type": "integer", "description": "Bytes in the whole file." },
                "encoding": encoding_schema("The encoding of `content`."),
                "truncated": { "type": "boolean", "description": "Whether the file goes on after this." },
                "nextOffset": {
                    "type": ["integer", "null"],
                    "description": "The `offset` at which the rest begins; null at the end."
                },
            }),
            &["content", "size", "encoding", "truncated", "nextOffset"],
        ),
    }
}

fn read(
    root: &FsRoot,
    arguments: &FsReadArguments,
    stop: &StopSignal,
) -> Result<FsReadAnswer, BuiltinFailure> {
    let path = relative_path(&arguments.path)?;
    let limit = arguments.limit.unwrap_or(MAX_CONTENT_BYTES).clamp(1, MAX_CONTENT_BYTES);
    let own = root.own_files_now()?;
    own.check(&path)?;
    let (mut file, found) = open(&root.dir, &own, &path, OpenOptions::new().read(true))?;
    stop.record_path(&path, LinkTreatment::Followed, Some(&found));
    let size = found.len();
    let (mut bytes, truncated) =
        part(&mut file, arguments.offset, limit).map_err(|error| problem("read", &path, &error))?;
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

/// At most `limit` bytes from `offset` on, and whether there are more.
fn part(file: &mut File, offset: u64, limit: usize) -> io::Result<(Vec<u8>, bool)> {
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    let more = bytes.len() > limit;
    bytes.truncate(limit);
    Ok((bytes, more))
}

/// Removes an incomplete character at the end, unless nothing else would be left.
fn drop_split_character(bytes: &mut Vec<u8>) {
    if let Err(error) = std::str::from_utf8(bytes)
        && error.error_len().is_none()
        && error.valid_up_to() > 0
    {
        bytes.truncate(error.valid_up_to());
    }
}

fn not_text(path: &Path) -> BuiltinFailure {
    failure!("{} is not UTF-8 text from this offset on; read it with `encoding: \"base64\"`", quoted(path))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FsCreateArguments {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: FsEncoding,
}

#[derive(Serialize)]
struct FsWriteAnswer {
    path: String,
    size: u64,
}

fn written_schema() -> Value {
    object_schema(
        json!({
            "path": { "type": "string", "description": "Path of the file from the root." },
            "size": { "type": "integer", "description": "Bytes in the file now." },
        }),
        &["path", "size"],
    )
}

fn create_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "create",
        title: "Create a file",
        description:
            "Creates a new file with the given content, or an empty one, and the directories it needs. \
                      Fails when something is there already."
                .into(),
        effect: ADDS,
        input: object_schema(
            json!({
                "path": path_schema("Path of the new file from the root."),
                "content": { "type": "string", "description": "What to put in, nothing unless told; at most 4 MiB." },
                "encoding": encoding_schema("How `content` is given; `utf8` unless told."),
            }),
            &["path"],
        ),
        output: written_schema(),
    }
}

fn create(
    root: &FsRoot,
    arguments: &FsCreateArguments,
    _: &StopSignal,
) -> Result<FsWriteAnswer, BuiltinFailure> {
    let path = relative_path(&arguments.path)?;
    let content = decode(&arguments.content, arguments.encoding)?;
    let mut own = root.own_files_now()?;
    own.check(&path)?;
    let directory = make_parents(root, &mut own, &path)?;
    let file = add(&directory, &own, &path, OpenOptions::new().write(true))?;
    fill(file.map_err(|error| problem("open", &path, &error))?, &path, &content)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FsWriteArguments {
    path: String,
    content: String,
    #[serde(default)]
    encoding: FsEncoding,
    #[serde(default)]
    append: bool,
}

fn write_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "write",
        title: "Write a file",
        description:
            "Replaces the content of a file, or adds to its end with `append`. Creates the file and the \
                      directories it needs when they are not there."
                .into(),
        effect: REPLACES,
        input: object_schema(
            json!({
                "path": path_schema("Path of the file from the root."),
                "content": { "type": "string", "description": "What to write; at most 4 MiB." },
                "encoding": encoding_schema("How `content` is given; `utf8` unless told."),
                "append": { "type": "boolean", "description": "Add to the end instead of replacing; false unless told." },
            }),
            &["path", "content"],
        ),
        output: written_schema(),
    }
}

fn write(
    root: &FsRoot,
    arguments: &FsWriteArguments,
    _: &StopSignal,
) -> Result<FsWriteAnswer, BuiltinFailure> {
    let path = relative_path(&arguments.path)?;
    let content = decode(&arguments.content, arguments.encoding)?;
    let mut own = root.own_files_now()?;
    own.check(&path)?;
    let mut options = OpenOptions::new();
    if arguments.append {
        options.append(true)
    } else {
        options.write(true)
    };
    let file = open_or_add(root, &mut own, &path, &options)?;
    if !arguments.append {
        // Only now is it known to be a regular file, so only now may it be truncated.
        file.set_len(0).map_err(|error| problem("empty", &path, &error))?;
    }
    fill(file, &path, &content)
}

/// The file at `path`, created where there is none. An existing one may be reached through a symbolic link. A new one
/// is created in a directory that is held open, so that nobody can make it appear elsewhere.
fn open_or_add<'r>(
    root: &'r FsRoot,
    own: &mut OwnFilesNow<'r>,
    path: &Path,
    options: &OpenOptions,
) -> Result<File, BuiltinFailure> {
    let directory = make_parents(root, own, path)?;
    // Another process may create or remove the file in between.
    for _ in 0..3 {
        match root.dir.open_with(path, options.clone().nonblock(true)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let file = opened.map_err(|error| problem("open", path, &error))?;
                return regular(own, path, file).map(|(file, _)| file);
            }
        }
        match add(&directory, own, path, &mut options.clone())? {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map_err(|error| problem("open", path, &error)),
        }
    }
    Err(failure!("{} is a symbolic link to what does not exist; name the file itself", quoted(path)))
}

/// Creates the file of `path` in its directory; fails where something exists there, even a link.
fn add(
    directory: &Dir,
    own: &OwnFilesNow<'_>,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<io::Result<File>, BuiltinFailure> {
    let name = path.file_name().unwrap_or(OsStr::new("."));
    own.check_place(path, directory, name)?;
    Ok(directory.open_with(name, options.create_new(true).follow(FollowSymlinks::No).nonblock(true)))
}

fn fill(mut file: File, path: &Path, content: &[u8]) -> Result<FsWriteAnswer, BuiltinFailure> {
    let filled = file.write_all(content).and_then(|()| file.metadata());
    let size = filled.map_err(|error| problem("write", path, &error))?.len();
    Ok(FsWriteAnswer { path: walk::slash_path(path), size })
}

/// The directory of `path`, created with its parents where missing.
fn make_parents<'r>(root: &'r FsRoot, own: &mut OwnFilesNow<'r>, path: &Path) -> Result<Dir, BuiltinFailure> {
    match own::parent(&root.dir, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found.map_err(|error| problem("create", path.parent().unwrap_or(path), &error)),
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    let mut directory = root.dir.try_clone().map_err(|error| problem("open", parent, &error))?;
    let mut above = PathBuf::new();
    for name in parent {
        above.push(name);
        let cannot = |error: io::Error| problem("create", &above, &error);
        own.check_place(path, &directory, name)?;
        directory = match root.dir.open_dir(&above) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match directory.create_dir(name) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    made => made.map_err(cannot)?,
                }
                // A path of PML's in the new directory has an identity only now that the directory exists.
                *own = root.own_files_now()?;
                root.dir.open_dir(&above).map_err(cannot)?
            }
            found => found.map_err(cannot)?,
        };
    }
    Ok(directory)
}

fn decode(content: &str, encoding: FsEncoding) -> Result<Cow<'_, [u8]>, BuiltinFailure> {
    let bytes = match encoding {
        FsEncoding::Utf8 => Cow::Borrowed(content.as_bytes()),
        FsEncoding::Base64 => BASE64
            .decode(content)
            .map(Cow::Owned)
            .map_err(|_| failure!("`content` is not base64 with its padding"))?,
    };
    if bytes.len() > MAX_CONTENT_BYTES {
        return Err(failure!(
            "`content` is {} bytes; at most {MAX_CONTENT_BYTES} are written at a time, so append the rest",
            bytes.len()
        ));
    }
    Ok(bytes)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FsDeleteArguments {
    path: String,
    #[serde(default)]
    recursive: bool,
}

#[derive(Serialize)]
struct FsDeleteAnswer {
    deleted: bool,
}

fn delete_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "delete",
        title: "Delete a path",
        description: "Deletes a file, a symbolic link (not what it points to) or an empty directory; with \
                      `recursive` also a directory and everything in it. A path that does not exist is no error.".into(),
        effect: REMOVES,
        input: object_schema(
            json!({
                "path": path_schema("Path from the root; not the root itself."),
                "recursive": { "type": "boolean", "description": "Delete a directory with its content; false unless told." },
            }),
            &["path"],
        ),
        output: object_schema(
            json!({ "deleted": { "type": "boolean", "description": "False when there was nothing at the path." } }),
            &["deleted"],
        ),
    }
}

fn delete(
    root: &FsRoot,
    arguments: &FsDeleteArguments,
    stop: &StopSignal,
) -> Result<FsDeleteAnswer, BuiltinFailure> {
    let path = relative_path(&arguments.path)?;
    let Some(name) = path.file_name() else {
        return Err(failure!("the root itself cannot be deleted; name a path below it"));
    };
    let own = root.own_files_now()?;
    own.check(&path)?;
    let cannot = |error: io::Error| problem("delete", &path, &error);
    let found = own::parent(&root.dir, &path)
        .and_then(|directory| directory.symlink_metadata(name).map(|found| (directory, found)));
    let (directory, found) = match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(FsDeleteAnswer { deleted: false });
        }
        found => found.map_err(cannot)?,
    };
    own.check_place(&path, &directory, name)?;
    own.check_opened(&path, &found)?;
    let removed = if !found.is_dir() {
        own.check_link(&path, &directory, name)?;
        directory.remove_file(name)
    } else if arguments.recursive {
        own.check_below(&path, &directory, name, stop)?;
        directory.remove_dir_all(name)
    } else {
        directory.remove_dir(name)
    };
    match removed {
        Ok(()) => Ok(FsDeleteAnswer { deleted: true }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FsDeleteAnswer { deleted: false }),
        Err(error) => Err(cannot(error)),
    }
}

/// The path as passed to the system: relative, without `.` and `..`.
fn relative_path(path: &str) -> Result<PathBuf, BuiltinFailure> {
    if path.contains('\0') {
        return Err(failure!(
            "path {} contains a NUL character; no file can be called that",
            QuotedName(path)
        ));
    }
    let mut kept = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => kept.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(failure!(
                    "path {} does not start at the root of this server; give it from there, without `..` and \
                     without a leading `/`",
                    QuotedName(path)
                ));
            }
        }
    }
    Ok(if kept.as_os_str().is_empty() { PathBuf::from(".") } else { kept })
}

/// Opens a regular file and returns its metadata. Non-blocking, because opening a pipe waits for its other end.
fn open(
    root: &Dir,
    own: &OwnFilesNow<'_>,
    path: &Path,
    options: &mut OpenOptions,
) -> Result<(File, Metadata), BuiltinFailure> {
    let file = root.open_with(path, options.nonblock(true)).map_err(|error| problem("open", path, &error))?;
    regular(own, path, file)
}

/// The opened file and its metadata, if it is a regular file and not PML's.
fn regular(own: &OwnFilesNow<'_>, path: &Path, file: File) -> Result<(File, Metadata), BuiltinFailure> {
    let found = file.metadata().map_err(|error| problem("look at", path, &error))?;
    if found.is_dir() {
        return Err(is_directory(path));
    }
    if !found.is_file() {
        return Err(failure!("{} is not a regular file; pipes and devices are not touched", quoted(path)));
    }
    own.check_opened(path, &found)?;
    Ok((file, found))
}

fn is_directory(path: &Path) -> BuiltinFailure {
    failure!("{} is a directory; use `list` to see what is in it", quoted(path))
}

fn problem(verb: &str, path: &Path, error: &io::Error) -> BuiltinFailure {
    let path_shown = quoted(path);
    match error.kind() {
        io::ErrorKind::NotFound => failure!("{path_shown} does not exist; use `list` to see what does"),
        io::ErrorKind::AlreadyExists => failure!("{path_shown} exists already; use `write` to replace it"),
        io::ErrorKind::IsADirectory => is_directory(path),
        io::ErrorKind::NotADirectory => failure!("{path_shown} is not a directory, or lies below a file"),
        io::ErrorKind::DirectoryNotEmpty => {
            failure!("directory {path_shown} is not empty; set `recursive` to delete what is in it too")
        }
        // A refusal by the system has an error number; the one without comes from the path resolution.
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
            failure!("{path_shown} leads outside the root through a symbolic link, which is refused")
        }
        _ => failure!("cannot {verb} {path_shown}: {error}"),
    }
}

fn quoted(path: &Path) -> String {
    QuotedName(&walk::slash_path(path)).to_string()
}
