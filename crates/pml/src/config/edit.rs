//! Edits the user's `pml.toml` and leaves every other byte of it unchanged.
//!
//! An edit works on the text, at byte ranges from the parser. The result is parsed as [`load`](super::load) would
//! before it replaces the file atomically, so an invalid file is never written.

mod rules;

use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use pml_model::ServerName;
use pml_model::name::confusable_skeleton;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, value};

use super::disk::{self, FileCreation};
use super::error::Error;
use super::node::ConfigFile;
use super::paths::Env;
use super::server::DeclaredTransport;
use super::settings::{self, BUILT_IN, UserSettings};

pub use rules::{NewPermissionRule, add_rules};

/// Whether [`init`] wrote a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitOutcome {
    /// There was none, and it was written.
    Created,
    /// There was one, which is unchanged.
    AlreadyThere,
}

/// A server to be added. Texts use the syntax of the configuration: `${VAR}` is a variable and `$$` a dollar sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServer {
    /// The name of the server.
    pub name: ServerName,
    /// The command or the URL, as written.
    pub declared: DeclaredTransport,
    /// The purpose of the server, shown to agents.
    pub description: Option<String>,
    /// Whether it is used at once.
    pub enabled: bool,
    /// The timeout of one call, where it is not the default.
    pub call_timeout: Option<Duration>,
    /// The time to become ready, where it is not the default.
    pub start_timeout: Option<Duration>,
}

impl NewServer {
    /// A server with the usual settings.
    pub fn new(name: ServerName, declared: DeclaredTransport) -> NewServer {
        NewServer {
            name,
            declared,
            description: None,
            enabled: true,
            call_timeout: None,
            start_timeout: None,
        }
    }
}

/// What [`add_server`] does where the configuration has a server of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingServer {
    /// Fail and keep the existing one.
    Keep,
    /// Replace the existing one.
    Replace,
}

/// The first configuration of a new user: every common setting, explained, with nothing enabled.
const STARTER: &str = r#"# PML's settings. `pml doctor` checks them; changes are picked up while PML runs.

# Which tools clients see: "meta" (PML's own, through which all others are reached),
# "full" (every tool of every server as well), or a list such as ["fs:read"].
expose = "meta"

# Files of other programs whose `mcpServers` are used too.
# import = ["~/.config/other/mcp.json"]

# A server that PML starts. ${VAR} and ${file:path} are filled in; $$ is a dollar sign.
# [servers.github]
# command = "npx"
# args = ["-y", "@modelcontextprotocol/server-github@2025.4.8"]
# env = { GITHUB_PERSONAL_ACCESS_TOKEN = "${GITHUB_TOKEN}" }

# A server that PML reaches.
# [servers.search]
# url = "https://example.com/mcp"
# bearer = "${file:~/.secrets/search}"

# The directory the built-in file tools work in.
# [builtin.fs]
# root = "~/work"

# The hosts the built-in web tools may reach; without any they are off.
# [builtin.http]
# hosts = ["api.example.com"]

# Which tools programs may call without a person being asked. Built-in tools that only read need no rule.
# [permissions]
# "fs:write" = { approval_mode = "auto" }
# "*:delete*" = { deny = true }
"#;

/// Writes a commented first configuration, mode 0600, unless there is one.
///
/// # Errors
/// The file cannot be created.
pub fn init(path: &Path) -> Result<InitOutcome, Error> {
    Ok(match disk::create(path, STARTER.as_bytes())? {
        FileCreation::Created => InitOutcome::Created,
        FileCreation::Existed => InitOutcome::AlreadyThere,
    })
}

/// Adds `server` to the configuration at `path`, which is created where missing.
///
/// # Errors
/// The configuration is invalid, has a server of that or a confusable name, or cannot be written.
pub fn add_server(path: &Path, server: &NewServer, existing: ExistingServer) -> Result<(), Error> {
    let text = match disk::read(path)? {
        Some(bytes) => ConfigFile::new(path, bytes, &Env::default())?.text,
        None => STARTER.to_owned(),
    };
    let name = server.name.as_str();
    let has = check_name(path, name, &read(path, &text)?)?;
    let edited = match (has, existing) {
        (true, ExistingServer::Keep) => {
            return Err(Error::refused(
                format!("`{}` already has a server `{name}`", path.display()),
                "choose another name, or replace it",
            ));
        }
        (true, ExistingServer::Replace) => replace(path, &text, server)?,
        (false, ExistingServer::Keep | ExistingServer::Replace) => append(path, &text, server)?,
    };
    save(path, &text, &edited)
}

/// The servers that the configuration at `path` declares, usable or not, with their transports as written.
///
/// # Errors
/// The configuration is invalid.
pub fn declared_servers(path: &Path) -> Result<Vec<(String, DeclaredTransport)>, Error> {
    let Some(bytes) = disk::read(path)? else { return Ok(Vec::new()) };
    let settings = read(path, &ConfigFile::new(path, bytes, &Env::default())?.text)?;
    Ok(settings.drafts.iter().map(|draft| (draft.name.clone(), draft.declared().clone())).collect())
}

/// A configuration before and after an edit that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChange {
    /// The bytes of the file; `None` where there is none.
    pub before: Option<Vec<u8>>,
    /// Its new text.
    pub after: String,
}

/// The configuration at `path` with `servers` added.
///
/// # Errors
/// The configuration is invalid, or has a server of one of the names or of a confusable one.
pub fn preview_servers(path: &Path, servers: &[NewServer]) -> Result<ConfigChange, Error> {
    let before = disk::read(path)?;
    let mut text = match &before {
        Some(bytes) => ConfigFile::new(path, bytes.clone(), &Env::default())?.text,
        None => STARTER.to_owned(),
    };
    for server in servers {
        if check_name(path, server.name.as_str(), &read(path, &text)?)? {
            let message = format!("`{}` already has a server `{}`", path.display(), server.name);
            return Err(Error::refused(message, "choose another name"));
        }
        text = lines_kept(&text, &append(path, &text, server)?);
    }
    read(path, &text).map_err(|error| unwritable(path, &error.to_string()))?;
    Ok(ConfigChange { before, after: text })
}

/// Writes a change, if the file still is what it was made from.
///
/// # Errors
/// The file changed meanwhile, is read-only or cannot be written.
pub fn write_change(path: &Path, change: &ConfigChange) -> Result<(), Error> {
    disk::replace_unchanged(path, change.before.as_deref(), change.after.as_bytes())
}

/// Removes the server `name` and the rules that [`add_rules`] wrote for it from the configuration at `path`; returns
/// whether it was there.
///
/// # Errors
/// The configuration is invalid or cannot be written.
pub fn remove_server(path: &Path, name: &str) -> Result<bool, Error> {
    let Some(bytes) = disk::read(path)? else { return Ok(false) };
    let text = ConfigFile::new(path, bytes, &Env::default())?.text;
    if !read(path, &text)?.drafts.iter().any(|draft| draft.name == name) {
        return Ok(false);
    }
    let edited = match blocks(path, &text, name)? {
        Some(blocks) => cut(&text, &blocks),
        None => {
            let mut document = editable(path, &text)?;
            if let Some(servers) = document.get_mut("servers").and_then(Item::as_table_like_mut) {
                servers.remove(name);
            }
            document.to_string()
        }
    };
    save(path, &text, &rules::without_rules(path, &edited, name)?).map(|()| true)
}

fn read(path: &Path, text: &str) -> Result<UserSettings, Error> {
    let env = Env::default();
    let file = ConfigFile::new(path, text.as_bytes().to_vec(), &env)?;
    Ok(settings::read_user(&file, &env)?)
}

/// Whether the configuration has a server `name`; an error where it has a confusable one.
fn check_name(path: &Path, name: &str, settings: &UserSettings) -> Result<bool, Error> {
    let form = confusable_skeleton(name);
    let built_in = BUILT_IN.iter().find(|built_in| confusable_skeleton(built_in) == form);
    if let Some(taken) = built_in.filter(|taken| !settings.builtin.disabled.iter().any(|off| off == *taken)) {
        return Err(Error::refused(
            format!("`{name}` could be taken for the built-in server `{taken}`"),
            format!("choose another name, or set `enabled = false` in `[builtin.{taken}]`"),
        ));
    }
    let alike =
        settings.drafts.iter().find(|draft| draft.name != name && confusable_skeleton(&draft.name) == form);
    match alike {
        Some(draft) => Err(Error::refused(
            format!("`{name}` could be taken for the server `{}` of `{}`", draft.name, path.display()),
            "choose another name",
        )),
        None => Ok(settings.drafts.iter().any(|draft| draft.name == name)),
    }
}

fn append(path: &Path, text: &str, server: &NewServer) -> Result<String, Error> {
    let mut document = editable(path, text)?;
    match document.get_mut("servers") {
        // An inline table `servers = { … }` can only be extended between its braces.
        Some(Item::Value(servers)) => {
            if let Some(servers) = servers.as_inline_table_mut() {
                servers.insert(server.name.as_str(), table(server).into_inline_table().into());
            }
            Ok(document.to_string())
        }
        _ => {
            let gap =
                if text.is_empty() || text.ends_with("\n\n") || text.ends_with("\n\r\n") { "" } else { "\n" };
            let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            Ok(format!("{text}{}", lines_as_in(text, &format!("{end}{gap}{}", block(server)))))
        }
    }
}

fn replace(path: &Path, text: &str, server: &NewServer) -> Result<String, Error> {
    let Some(mut blocks) = blocks(path, text, server.name.as_str())? else {
        let mut document = editable(path, text)?;
        if let Some(servers) = document.get_mut("servers").and_then(Item::as_table_like_mut) {
            servers.insert(server.name.as_str(), value(table(server).into_inline_table()));
        }
        return Ok(document.to_string());
    };
    let first = blocks.remove(0);
    // The blocks are cut from the end, so that the range of the first one stays valid.
    let mut edited = cut(text, &blocks);
    edited.replace_range(first.table, &lines_as_in(text, &block(server)));
    Ok(edited)
}

/// The byte ranges of one `[servers.name…]` table.
struct ServerBlock {
    /// From the header to the end of the last value's line.
    table: Range<usize>,
    /// The same with the comment lines right above and the blank lines below.
    whole: Range<usize>,
}

/// The tables of the server, in order; `None` where it is not written with a header.
fn blocks(path: &Path, text: &str, name: &str) -> Result<Option<Vec<ServerBlock>>, Error> {
    let document = parse(path, text)?;
    let server = document.get("servers").and_then(Item::as_table).and_then(|servers| servers.get(name));
    let mut headers = Vec::new();
    if let Some(Item::Table(table)) = server {
        collect_tables(table, &mut headers);
    }
    headers.sort_by_key(|range| range.start);
    let blocks: Vec<ServerBlock> = headers.into_iter().map(|table| block_around(text, table)).collect();
    Ok((!blocks.is_empty()).then_some(blocks))
}

/// Adds the range from the header of each table to its last value. Tables without a header of their own are left out;
/// their values belong to the table that has one.
fn collect_tables(table: &Table, out: &mut Vec<Range<usize>>) {
    if let Some(header) = table.span().filter(|_| !table.is_dotted()) {
        out.push(header.start..last_value(table).max(header.end));
    }
    for (_, item) in table.iter() {
        if let Item::Table(inner) = item
            && !inner.is_dotted()
        {
            collect_tables(inner, out);
        }
    }
}

fn last_value(table: &Table) -> usize {
    table.get_values().iter().filter_map(|(_, value)| value.span()).map(|span| span.end).max().unwrap_or(0)
}

fn block_around(text: &str, table: Range<usize>) -> ServerBlock {
    let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1);
    let table = line_start(table.start)..line_end(table.end);
    let mut whole = table.clone();
    while whole.start > 0 && text[line_start(whole.start - 1)..whole.start].trim_start().starts_with('#') {
        whole.start = line_start(whole.start - 1);
    }
    while whole.end < text.len() && text[whole.end..line_end(whole.end)].trim().is_empty() {
        whole.end = line_end(whole.end);
    }
    ServerBlock { table, whole }
}

fn cut(text: &str, blocks: &[ServerBlock]) -> String {
    let mut out = text.to_owned();
    for block in blocks.iter().rev() {
        out.replace_range(block.whole.clone(), "");
    }
    out
}

/// The text of `[servers.name]` and its keys.
fn block(server: &NewServer) -> String {
    let mut servers = Table::new();
    servers.set_implicit(true);
    servers.insert(server.name.as_str(), Item::Table(table(server)));
    let mut document = DocumentMut::new();
    document.insert("servers", Item::Table(servers));
    document.to_string()
}

fn table(server: &NewServer) -> Table {
    let mut table = Table::new();
    if let Some(description) = &server.description {
        table.insert("description", value(description));
    }
    if !server.enabled {
        table.insert("enabled", value(false));
    }
    match &server.declared {
        DeclaredTransport::Stdio { command, args, env, cwd } => {
            table.insert("command", value(command));
            if !args.is_empty() {
                table.insert("args", value(args.iter().collect::<Array>()));
            }
            if !env.is_empty() {
                table.insert("env", value(env.iter().collect::<InlineTable>()));
            }
            if let Some(cwd) = cwd {
                table.insert("cwd", value(cwd));
            }
        }
        DeclaredTransport::Http { url, headers } => {
            table.insert("url", value(url));
            if !headers.is_empty() {
                table.insert("headers", value(headers.iter().collect::<InlineTable>()));
            }
        }
    }
    for (key, time) in [("call_timeout", server.call_timeout), ("start_timeout", server.start_timeout)] {
        if let Some(time) = time {
            table.insert(key, value(duration_text(time)));
        }
    }
    table
}

fn duration_text(time: Duration) -> String {
    match time.as_millis() {
        ms if ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

/// `addition` with the line endings of `text`.
fn lines_as_in(text: &str, addition: &str) -> String {
    if text.contains("\r\n") { addition.replace('\n', "\r\n") } else { addition.to_owned() }
}

fn parse<'t>(path: &Path, text: &'t str) -> Result<Document<&'t str>, Error> {
    Document::parse(text).map_err(|error| unwritable(path, &error.to_string()))
}

fn editable(path: &Path, text: &str) -> Result<DocumentMut, Error> {
    Ok(parse(path, text)?.into_mut())
}

/// Writes `edited`, the new version of `text`, if it is valid.
fn save(path: &Path, text: &str, edited: &str) -> Result<(), Error> {
    let edited = lines_kept(text, edited);
    read(path, &edited).map_err(|error| unwritable(path, &error.to_string()))?;
    disk::replace(path, edited.as_bytes())
}

/// Restores CRLF line endings, because the document editor writes plain line feeds.
fn lines_kept(text: &str, edited: &str) -> String {
    let all_crlf = text.contains("\r\n") && text.matches('\n').count() == text.matches("\r\n").count();
    if all_crlf { edited.replace("\r\n", "\n").replace('\n', "\r\n") } else { edited.to_owned() }
}

fn unwritable(path: &Path, why: &str) -> Error {
    Error::refused(
        format!("`{}` cannot be edited without breaking it: {why}", path.display()),
        "edit it by hand",
    )
}

#[cfg(test)]
mod tests;
