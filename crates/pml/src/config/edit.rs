//! Changes the user's `pml.toml` for them, and leaves every other byte of it as it was.
//!
//! An edit is done on the text, at places that the parser tells, and the result is read as [`load`](super::load)
//! would before it replaces the file in one step: what cannot be read is never written.

mod rules;

use std::ops::Range;
use std::path::Path;

use pml_model::ServerName;
use pml_model::name::look_alike;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, value};

use super::disk::{self, Creation};
use super::error::Error;
use super::node::File;
use super::paths::Env;
use super::server::Declared;
use super::settings::{self, BUILT_IN, Settings};

pub use rules::{NewRule, add_rules};

/// Whether [`init`] wrote a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Init {
    /// There was none.
    Created,
    /// There was one; it is untouched.
    AlreadyThere,
}

/// A server to write down. Texts are in the language of the config: `${VAR}` is a variable and `$$`
/// a dollar sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewServer {
    /// Its name.
    pub name: ServerName,
    /// How it is reached.
    pub declared: Declared,
    /// What it is for.
    pub description: Option<String>,
}

/// What [`add_server`] does where the config has a server of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse.
    Keep,
    /// Write the new one in its place.
    Replace,
}

/// What a new user finds: every setting they may want, explained, and nothing switched on.
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

/// Writes a commented first config, mode 0600, unless there is one.
///
/// # Errors
/// The file cannot be made.
pub fn init(path: &Path) -> Result<Init, Error> {
    Ok(match disk::create(path, STARTER.as_bytes())? {
        Creation::Made => Init::Created,
        Creation::WasThere => Init::AlreadyThere,
    })
}

/// Writes `server` into the config at `path`, making it first where there is none.
///
/// # Errors
/// The config is broken, has a server of that or a confusable name, or cannot be written.
pub fn add_server(path: &Path, server: &NewServer, existing: Existing) -> Result<(), Error> {
    let text = match disk::read(path)? {
        Some(bytes) => File::new(path, bytes, &Env::default())?.text,
        None => STARTER.to_owned(),
    };
    let name = server.name.as_str();
    let has = check_name(path, name, &read(path, &text)?)?;
    let edited = match (has, existing) {
        (true, Existing::Keep) => {
            return Err(Error::refused(
                format!("`{}` already has a server `{name}`", path.display()),
                "choose another name, or replace it",
            ));
        }
        (true, Existing::Replace) => replace(path, &text, server)?,
        (false, Existing::Keep | Existing::Replace) => append(path, &text, server)?,
    };
    save(path, &text, &edited)
}

/// Takes the server `name` and the rules that [`add_rules`] wrote for it out of the config at `path`; says whether it was
/// there.
///
/// # Errors
/// The config is broken or cannot be written.
pub fn remove_server(path: &Path, name: &str) -> Result<bool, Error> {
    let Some(bytes) = disk::read(path)? else { return Ok(false) };
    let text = File::new(path, bytes, &Env::default())?.text;
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
    save(path, &text, &rules::without(path, &edited, name)?).map(|()| true)
}

fn read(path: &Path, text: &str) -> Result<Settings, Error> {
    let env = Env::default();
    let file = File::new(path, text.as_bytes().to_vec(), &env)?;
    Ok(settings::user(&file, &env)?)
}

/// Whether the config has a server `name`; complains where another one could be taken for it.
fn check_name(path: &Path, name: &str, settings: &Settings) -> Result<bool, Error> {
    let form = look_alike(name);
    let built_in = BUILT_IN.iter().find(|built_in| look_alike(built_in) == form);
    if let Some(taken) = built_in.filter(|taken| !settings.builtin.disabled.iter().any(|off| off == *taken)) {
        return Err(Error::refused(
            format!("`{name}` could be taken for the built-in server `{taken}`"),
            format!("choose another name, or set `enabled = false` in `[builtin.{taken}]`"),
        ));
    }
    let alike = settings.drafts.iter().find(|draft| draft.name != name && look_alike(&draft.name) == form);
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
        // `servers = { … }` can only be added to between its braces.
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
    // Later blocks go first, so that the place of the first one stays right.
    let mut edited = cut(text, &blocks);
    edited.replace_range(first.table, &lines_as_in(text, &block(server)));
    Ok(edited)
}

/// The lines of one `[servers.name…]` table.
struct Block {
    /// From its header to the end of its last value's line.
    table: Range<usize>,
    /// The same with the comment lines right above it and the blank lines below.
    whole: Range<usize>,
}

/// Where the tables of the server stand, in order; `None` where it is not written with a header.
fn blocks(path: &Path, text: &str, name: &str) -> Result<Option<Vec<Block>>, Error> {
    let document = parse(path, text)?;
    let server = document.get("servers").and_then(Item::as_table).and_then(|servers| servers.get(name));
    let mut headers = Vec::new();
    if let Some(Item::Table(table)) = server {
        collect_tables(table, &mut headers);
    }
    headers.sort_by_key(|range| range.start);
    let blocks: Vec<Block> = headers.into_iter().map(|table| block_around(text, table)).collect();
    Ok((!blocks.is_empty()).then_some(blocks))
}

/// From the header of each table to its last value; tables that have no header of their own are left
/// out, and their values belong to the table that has one.
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

fn block_around(text: &str, table: Range<usize>) -> Block {
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
    Block { table, whole }
}

fn cut(text: &str, blocks: &[Block]) -> String {
    let mut out = text.to_owned();
    for block in blocks.iter().rev() {
        out.replace_range(block.whole.clone(), "");
    }
    out
}

/// `[servers.name]` and its keys.
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
    match &server.declared {
        Declared::Stdio { command, args, env, cwd } => {
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
        Declared::Http { url, headers } => {
            table.insert("url", value(url));
            if !headers.is_empty() {
                table.insert("headers", value(headers.iter().collect::<InlineTable>()));
            }
        }
    }
    table
}

/// `addition` with the line ends that `text` has.
fn lines_as_in(text: &str, addition: &str) -> String {
    if text.contains("\r\n") { addition.replace('\n', "\r\n") } else { addition.to_owned() }
}

fn parse<'t>(path: &Path, text: &'t str) -> Result<Document<&'t str>, Error> {
    Document::parse(text).map_err(|error| unwritable(path, &error.to_string()))
}

fn editable(path: &Path, text: &str) -> Result<DocumentMut, Error> {
    Ok(parse(path, text)?.into_mut())
}

/// Writes `edited`, which was `text`, if it can be read.
fn save(path: &Path, text: &str, edited: &str) -> Result<(), Error> {
    let edited = lines_kept(text, edited);
    read(path, &edited).map_err(|error| unwritable(path, &error.to_string()))?;
    disk::replace(path, edited.as_bytes())
}

/// The editor of documents writes plain line feeds; a file that had only the other kind gets them back.
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
