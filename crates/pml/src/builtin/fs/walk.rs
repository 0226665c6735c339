//! Walking directories: `list` and `search`.
//!
//! Symbolic links are listed and never followed, so no walk runs in circles. Names come in order. Every walk ends: at
//! the requested limit, at the number of visited entries, or at its time limit.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cap_std::fs::{Metadata, OpenOptions};
use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::own::{FsRoot, OwnFilesNow};
use super::{
    LinkTreatment, MAX_CONTENT_BYTES, kind, kind_schema, open, part, path_schema, problem, relative_path,
};
use crate::builtin::tool::{
    BuiltinFailure, BuiltinSpec, QuotedName, READS, StopSignal, failure, object_schema,
};

/// The largest number of entries in one result.
const MAX_ENTRIES: usize = 10_000;
/// The largest number of entries one call visits.
const MAX_VISITED: usize = 200_000;
/// The longest line that `search` returns, in characters.
const MAX_LINE_CHARACTERS: usize = 400;
/// The number of leading bytes that are searched for a sign of a binary file.
const BINARY_PROBE_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FsListArguments {
    #[serde(default = "root")]
    pub(super) path: String,
    #[serde(default)]
    recursive: bool,
    limit: Option<usize>,
}

fn root() -> String {
    ".".to_owned()
}

#[derive(Serialize)]
pub(super) struct FsListAnswer {
    entries: Vec<FsListEntry>,
    truncated: bool,
    skipped: usize,
}

#[derive(Serialize)]
struct FsListEntry {
    path: String,
    r#type: &'static str,
    size: Option<u64>,
}

pub(super) fn list_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "list",
        title: "List a directory",
        description: "Lists a directory in order of name, or with `recursive` everything below it. Symbolic \
                      links are shown and not followed."
            .into(),
        effect: READS,
        input: object_schema(
            json!({
                "path": path_schema("Path of the directory from the root; the root unless told."),
                "recursive": { "type": "boolean", "description": "Go into directories; false unless told." },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_ENTRIES,
                    "description": "Most entries to give; 1000 unless told."
                },
            }),
            &[],
        ),
        output: object_schema(
            json!({
                "entries": {
                    "type": "array",
                    "description": "What was found.",
                    "items": object_schema(
                        json!({
                            "path": { "type": "string", "description": "Path from the root." },
                            "type": kind_schema(),
                            "size": { "type": ["integer", "null"], "description": "Bytes, for files." },
                        }),
                        &["path", "type", "size"],
                    ),
                },
                "truncated": { "type": "boolean", "description": "Whether there is more than was given." },
                "skipped": {
                    "type": "integer",
                    "description": "How many were left out: directories that could not be read, and PML's own files."
                },
            }),
            &["entries", "truncated", "skipped"],
        ),
    }
}

pub(super) fn list(
    root: &FsRoot,
    arguments: &FsListArguments,
    stop: &StopSignal,
) -> Result<FsListAnswer, BuiltinFailure> {
    list_in(&RealFiles { root, own: root.own_files_now()?, stop }, arguments, stop)
}

/// As `list`, of the files in `view`.
pub(super) fn list_in(
    view: &impl FileView,
    arguments: &FsListArguments,
    stop: &StopSignal,
) -> Result<FsListAnswer, BuiltinFailure> {
    let start = relative_path(&arguments.path)?;
    let limit = arguments.limit.unwrap_or(1000).clamp(1, MAX_ENTRIES);
    let depth = if arguments.recursive { WalkDepth::All } else { WalkDepth::One };
    let mut entries = Vec::new();
    let walk = walk(view, &start, depth, stop, |path, found| {
        if entries.len() == limit {
            return ControlFlow::Break(());
        }
        if let (true, Some(metadata)) = (found.is_file(), &found.metadata) {
            stop.record_path(path, LinkTreatment::Itself, Some(metadata));
        }
        let size = found.is_file().then_some(found.size);
        entries.push(FsListEntry { path: slash_path(path), r#type: found.kind, size });
        ControlFlow::Continue(())
    })?;
    Ok(FsListAnswer { entries, truncated: walk.truncated, skipped: walk.skipped })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct FsSearchArguments {
    pattern: Option<String>,
    contains: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default = "root")]
    pub(super) path: String,
    limit: Option<usize>,
}

#[derive(Serialize)]
pub(super) struct FsSearchAnswer {
    matches: Vec<FsSearchMatch>,
    truncated: bool,
    skipped: usize,
}

#[derive(Serialize)]
struct FsSearchMatch {
    path: String,
    line: Option<usize>,
    text: Option<String>,
}

pub(super) fn search_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "search",
        title: "Search files",
        description: "Finds files by a glob pattern on their path, by text they contain, or both. With \
                      `contains`, every matching line is given with its number; binary files and files over \
                      4 MiB are skipped. Symbolic links are not followed."
            .into(),
        effect: READS,
        input: object_schema(
            json!({
                "pattern": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1000,
                    "description": "Glob such as `*.md` or `src/**/*.rs`. Without `/` it is compared with the file \
                                    name, with `/` with the path from the root."
                },
                "contains": { "type": "string", "minLength": 1, "description": "Text a line must contain." },
                "ignoreCase": { "type": "boolean", "description": "Take upper and lower case as equal; false unless told." },
                "path": path_schema("Directory to search, from the root; the root unless told."),
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_ENTRIES,
                    "description": "Most matches to give; 200 unless told."
                },
            }),
            &[],
        ),
        output: object_schema(
            json!({
                "matches": {
                    "type": "array",
                    "description": "One per matching line, or per file when only a pattern was given.",
                    "items": object_schema(
                        json!({
                            "path": { "type": "string", "description": "Path of the file from the root." },
                            "line": { "type": ["integer", "null"], "description": "Number of the line, from 1." },
                            "text": { "type": ["string", "null"], "description": "The line, at most 400 characters." },
                        }),
                        &["path", "line", "text"],
                    ),
                },
                "truncated": { "type": "boolean", "description": "Whether the search ended early." },
                "skipped": {
                    "type": "integer",
                    "description": "How many files and directories were not searched: binary, too large, unreadable or PML's own."
                },
            }),
            &["matches", "truncated", "skipped"],
        ),
    }
}

pub(super) fn search(
    root: &FsRoot,
    arguments: &FsSearchArguments,
    stop: &StopSignal,
) -> Result<FsSearchAnswer, BuiltinFailure> {
    search_in(&RealFiles { root, own: root.own_files_now()?, stop }, arguments, stop)
}

/// As `search`, of the files in `view`.
pub(super) fn search_in(
    view: &impl FileView,
    arguments: &FsSearchArguments,
    stop: &StopSignal,
) -> Result<FsSearchAnswer, BuiltinFailure> {
    if arguments.pattern.is_none() && arguments.contains.is_none() {
        return Err(failure!("a search needs `pattern`, `contains` or both"));
    }
    let start = relative_path(&arguments.path)?;
    let limit = arguments.limit.unwrap_or(200).clamp(1, MAX_ENTRIES);
    let wanted = arguments
        .pattern
        .as_deref()
        .map(|pattern| PathGlob::new(pattern, arguments.ignore_case))
        .transpose()?;
    let needle = arguments.contains.as_deref().map(|text| LineNeedle::new(text, arguments.ignore_case));
    let (mut matches, mut unsearched) = (Vec::new(), 0);
    let walk = walk(view, &start, WalkDepth::All, stop, |path, found| {
        if !found.is_file() || wanted.as_ref().is_some_and(|wanted| !wanted.fits(path)) {
            return ControlFlow::Continue(());
        }
        match &needle {
            None => matches.push(FsSearchMatch { path: slash_path(path), line: None, text: None }),
            Some(needle) => match view.text_of(path) {
                // One match more than the limit shows that there are more.
                Some(text) => matches.extend(needle.lines(path, &text).take(limit + 1 - matches.len())),
                None => unsearched += 1,
            },
        }
        if matches.len() > limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    matches.truncate(limit);
    Ok(FsSearchAnswer { matches, truncated: walk.truncated, skipped: walk.skipped + unsearched })
}

/// A glob; without `/` it matches the file name alone.
struct PathGlob {
    glob: GlobMatcher,
    whole_path: bool,
}

impl PathGlob {
    fn new(pattern: &str, ignore_case: bool) -> Result<PathGlob, BuiltinFailure> {
        let glob =
            GlobBuilder::new(pattern).literal_separator(true).case_insensitive(ignore_case).build().map_err(
                |error| failure!("`pattern` {} is no glob: {}", QuotedName(pattern), error.kind()),
            )?;
        Ok(PathGlob { glob: glob.compile_matcher(), whole_path: pattern.contains('/') })
    }

    fn fits(&self, path: &Path) -> bool {
        if self.whole_path {
            self.glob.is_match(path)
        } else {
            path.file_name().is_some_and(|name| self.glob.is_match(name))
        }
    }
}

struct LineNeedle {
    text: String,
    ignore_case: bool,
}

impl LineNeedle {
    fn new(text: &str, ignore_case: bool) -> LineNeedle {
        LineNeedle { text: if ignore_case { text.to_lowercase() } else { text.to_owned() }, ignore_case }
    }

    fn lines(&self, path: &Path, text: &str) -> impl Iterator<Item = FsSearchMatch> {
        text.lines().enumerate().filter(|(_, line)| self.is_in(line)).map(|(index, line)| FsSearchMatch {
            path: slash_path(path),
            line: Some(index + 1),
            text: Some(line.chars().take(MAX_LINE_CHARACTERS).collect()),
        })
    }

    fn is_in(&self, line: &str) -> bool {
        if self.ignore_case { line.to_lowercase().contains(&self.text) } else { line.contains(&self.text) }
    }
}

/// The text of a file with these first bytes; `None` where it is binary or too large.
pub(super) fn searchable_text(bytes: &[u8], more: bool) -> Option<String> {
    let binary = bytes.iter().take(BINARY_PROBE_BYTES).any(|&byte| byte == 0);
    (!more && !binary).then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// The files that `list` and `search` look through.
pub(super) trait FileView {
    /// Refuses a path that is out of reach.
    fn check(&self, path: &Path) -> Result<(), BuiltinFailure>;

    /// The entries of one directory in reverse order, so that a stack pops them in order. Those that are PML's own are
    /// counted in `skipped`.
    fn entries(&self, path: &Path, skipped: &mut usize) -> io::Result<Vec<(PathBuf, FoundEntry)>>;

    /// The text of a file; `None` where it is binary, too large or unreadable.
    fn text_of(&self, path: &Path) -> Option<String>;
}

/// An entry of a directory; a symbolic link is not followed.
pub(super) struct FoundEntry {
    pub(super) kind: &'static str,
    pub(super) size: u64,
    /// The metadata of the system, where it is on disk.
    pub(super) metadata: Option<Metadata>,
}

impl FoundEntry {
    pub(super) fn real(metadata: Metadata) -> FoundEntry {
        FoundEntry { kind: kind(&metadata.file_type()), size: metadata.len(), metadata: Some(metadata) }
    }

    fn is_file(&self) -> bool {
        self.kind == "file"
    }
}

/// The files on disk.
pub(super) struct RealFiles<'r> {
    pub(super) root: &'r FsRoot,
    pub(super) own: OwnFilesNow<'r>,
    pub(super) stop: &'r StopSignal,
}

impl FileView for RealFiles<'_> {
    fn check(&self, path: &Path) -> Result<(), BuiltinFailure> {
        self.own.check(path)
    }

    fn entries(&self, path: &Path, skipped: &mut usize) -> io::Result<Vec<(PathBuf, FoundEntry)>> {
        let (root, own, stop) = (self.root, &self.own, self.stop);
        let directory = root.dir.open_dir(path)?;
        // The path may lead elsewhere than when it was checked.
        let opened = directory.dir_metadata()?;
        if own.contains(&opened) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        stop.record_path(path, LinkTreatment::Followed, Some(&opened));
        let mut entries = Vec::new();
        for entry in directory.entries()?.take(MAX_VISITED + 1) {
            let name = entry?.file_name();
            let found = match directory.symlink_metadata(&name) {
                // Removed since the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                found => found?,
            };
            if own.contains(&found) || own.contains_place(&opened, &name) {
                *skipped += 1;
                continue;
            }
            entries.push((entry_path(path, name.as_os_str()), FoundEntry::real(found)));
        }
        entries.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(entries)
    }

    fn text_of(&self, path: &Path) -> Option<String> {
        let Ok((mut file, found)) = open(&self.root.dir, &self.own, path, OpenOptions::new().read(true))
        else {
            self.stop.record_unknown();
            return None;
        };
        self.stop.record_path(path, LinkTreatment::Followed, Some(&found));
        let (bytes, more) = part(&mut file, 0, MAX_CONTENT_BYTES).ok()?;
        searchable_text(&bytes, more)
    }
}

/// The path of an entry of the directory `path`.
pub(super) fn entry_path(path: &Path, name: &OsStr) -> PathBuf {
    if path == Path::new(".") { PathBuf::from(name) } else { path.join(name) }
}

#[derive(Clone, Copy)]
enum WalkDepth {
    One,
    All,
}

struct WalkSummary {
    truncated: bool,
    skipped: usize,
}

/// Visits the entries below `start` in path order until `visit` breaks. PML's own files are skipped.
fn walk(
    view: &impl FileView,
    start: &Path,
    depth: WalkDepth,
    stop: &StopSignal,
    mut visit: impl FnMut(&Path, &FoundEntry) -> ControlFlow<()>,
) -> Result<WalkSummary, BuiltinFailure> {
    view.check(start)?;
    let (mut visited, mut skipped) = (0, 0);
    let mut open = view.entries(start, &mut skipped).map_err(|error| problem("list", start, &error))?;
    while let Some((path, found)) = open.pop() {
        visited += 1;
        if visited > MAX_VISITED || stop.should_stop() {
            // How far the walk came depends on the machine, so the result cannot be checked later.
            stop.record_unknown();
            return Ok(WalkSummary { truncated: true, skipped });
        }
        if visit(&path, &found).is_break() {
            return Ok(WalkSummary { truncated: true, skipped });
        }
        if found.kind == "directory" && matches!(depth, WalkDepth::All) {
            match view.entries(&path, &mut skipped) {
                Ok(below) => open.extend(below),
                Err(_) => {
                    stop.record_unknown();
                    skipped += 1;
                }
            }
        }
    }
    Ok(WalkSummary { truncated: false, skipped })
}

/// The path as callers write it: with `/` as the separator.
pub(super) fn slash_path(path: &Path) -> String {
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}
