//! The settings of the user's `pml.toml` beyond its servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use url::Url;

use super::approvals::{self, Approvals};
use super::disk;
use super::embedding::{self, Embedding};
use super::error::Complaint;
use super::limits::{self, Limits, Runs};
use super::memory::{self, Memory};
use super::node::{self, File, Member, Node, Value};
use super::paths::Env;
use super::permission::{self, Form, Rule};
use super::reference;
use super::section::{Section, wrong};
use super::server::Draft;

/// How tools are named where they are all listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Naming {
    /// `server__tool`, always.
    #[default]
    Qualified,
    /// The tool's own name where no other has it.
    Plain,
}

/// The servers that are part of PML.
pub const BUILT_IN: &[&str] = &["fs", "json", "text", "csv", "http", "time", "math"];

/// Which tools a client sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expose {
    /// PML's own tools, through which all others are reached.
    #[default]
    Meta,
    /// Every downstream tool as well.
    Full,
    /// PML's own tools and these tools and capabilities.
    Only(Vec<String>),
}

/// What is said of one client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientSettings {
    /// Which tools it sees, where that differs.
    pub expose: Option<Expose>,
}

/// Settings of the built-in servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Builtin {
    /// The directory `fs` works in, where the config names one.
    pub fs_root: Option<PathBuf>,
    /// The hosts `http` may reach; without any it is off.
    pub http_hosts: Vec<String>,
    /// The built-in servers that are switched off.
    pub disabled: Vec<String>,
}

/// Settings of `pml serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serve {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Names it may be called by in the `Host` header, besides those of loopback.
    pub hosts: Vec<String>,
    /// The web origins that may call it.
    pub origins: Vec<String>,
}

impl Default for Serve {
    fn default() -> Serve {
        Serve { listen: SocketAddr::from(([127, 0, 0, 1], 7717)), hosts: Vec::new(), origins: Vec::new() }
    }
}

/// A `pml.toml` as read; names and variables of its servers are not checked yet.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) expose: Expose,
    pub(super) clients: BTreeMap<String, ClientSettings>,
    /// Each with the place that names it.
    pub(super) imports: Vec<(PathBuf, Complaint)>,
    pub(super) builtin: Builtin,
    pub(super) serve: Serve,
    pub(super) names: Naming,
    pub(super) permissions: Vec<Rule>,
    pub(super) approvals: Approvals,
    pub(super) memory: Memory,
    pub(super) embedding: Embedding,
    pub(super) limits: Limits,
    pub(super) runs: Runs,
    pub(super) drafts: Vec<Draft>,
    /// What is said and does not count any more.
    pub(super) outdated: Vec<Complaint>,
}

/// Reads the user's file.
pub(super) fn user(file: &File, env: &Env) -> Result<Settings, Complaint> {
    let root = node::toml(file)?;
    let root = Section::strict(file, &root, "", &reference::top_keys())?;
    let base = disk::parent(&file.path);
    let imports = root
        .texts("import")?
        .into_iter()
        .map(|(path, at)| (env.resolve(path, &base), file.complaint(at, "")))
        .collect();
    Ok(Settings {
        expose: expose(&root)?,
        clients: clients(&root)?,
        imports,
        builtin: builtin(&root, env)?,
        serve: serve(&root)?,
        names: names(&root)?,
        permissions: permissions(&root)?,
        approvals: approvals::approvals(&root)?,
        memory: memory::memory(&root)?,
        embedding: embedding::embedding(&root, env, &base)?,
        limits: limits::limits(&root)?,
        runs: limits::runs(&root)?,
        drafts: drafts(&root)?,
        outdated: named_interactive(&root)?,
    })
}

/// Reads a project's file. It may only add servers: what is shown to clients, listened on, permitted or
/// read elsewhere is the user's own affair, and a file it imported could change without its hash changing.
pub(super) fn project(file: &File) -> Result<Vec<Draft>, Complaint> {
    let root = node::toml(file)?;
    let root = Section::strict(file, &root, "", &reference::top_keys())?;
    if let Some(member) = root.members().iter().find(|member| member.key != "servers") {
        return Err(file
            .complaint(member.key_at, format!("a project cannot set `{}`", member.key))
            .hint("move it to your own `pml.toml`; a project may have `servers` only"));
    }
    let drafts = drafts(&root)?;
    let loosened = drafts.iter().find_map(|draft| Some((draft, draft.loosens()?)));
    match loosened {
        None => Ok(drafts),
        Some((draft, setting)) => Err(draft.complaint(
            &format!("a project cannot set `servers.{}.{setting}`", draft.name),
            "remove it; what programs may call is said in your own `pml.toml`",
        )),
    }
}

fn permissions(root: &Section<'_>) -> Result<Vec<Rule>, Complaint> {
    let mut rules = Vec::new();
    if let Some(node) = root.get("permissions") {
        let table = Section::open(root.file, node, "permissions")?;
        permission::read(&table, Form::Toml, &mut rules)?;
    }
    Ok(rules)
}

fn drafts(root: &Section<'_>) -> Result<Vec<Draft>, Complaint> {
    let Some(node) = root.get("servers") else { return Ok(Vec::new()) };
    let servers = Section::open(root.file, node, "servers")?;
    servers.members().iter().map(|member| Draft::from_toml(root.file, member)).collect()
}

fn expose(table: &Section<'_>) -> Result<Expose, Complaint> {
    let Some(node) = table.get("expose") else { return Ok(Expose::Meta) };
    match &node.value {
        Value::Text(text) if text == "meta" => Ok(Expose::Meta),
        Value::Text(text) if text == "full" => Ok(Expose::Full),
        Value::List(_) => {
            Ok(Expose::Only(table.texts("expose")?.into_iter().map(|(tool, _)| tool.to_owned()).collect()))
        }
        Value::Text(text) => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{text}`", table.path("expose")))
            .hint("write \"meta\", \"full\", or a list such as [\"fs:read\"]")),
        Value::Whole(_) | Value::Flag(_) | Value::Table(_) | Value::Other(_) => {
            Err(wrong(table.file, node, &table.path("expose"), "a text or a list of texts"))
        }
    }
}

fn names(root: &Section<'_>) -> Result<Naming, Complaint> {
    let (Some(text), Some(Node { at, .. })) = (root.text("names")?, root.get("names")) else {
        return Ok(Naming::default());
    };
    match text {
        "qualified" => Ok(Naming::Qualified),
        "plain" => Ok(Naming::Plain),
        _ => Err(root
            .file
            .complaint(*at, format!("`names` is `{text}`"))
            .hint("write \"qualified\" (`server__tool`) or \"plain\" (the tool's own name where it is the only one)")),
    }
}

fn clients(root: &Section<'_>) -> Result<BTreeMap<String, ClientSettings>, Complaint> {
    let Some(node) = root.get("clients") else { return Ok(BTreeMap::new()) };
    let clients = Section::open(root.file, node, "clients")?;
    clients
        .members()
        .iter()
        .map(|Member { key, node, .. }| {
            let client =
                Section::strict(root.file, node, &clients.path(key), &reference::keys("clients.NAME"))?;
            let settings =
                ClientSettings { expose: client.get("expose").map(|_| expose(&client)).transpose()? };
            Ok((key.clone(), settings))
        })
        .collect()
}

/// Clients that are said to be interactive by the names they give themselves. Any client can give itself any name, so
/// that counts for nothing; a client shows by a key of its own that a person sits in front of it.
fn named_interactive(root: &Section<'_>) -> Result<Vec<Complaint>, Complaint> {
    let Some(node) = root.get("clients") else { return Ok(Vec::new()) };
    let clients = Section::open(root.file, node, "clients")?;
    let mut found = Vec::new();
    for Member { key, node, .. } in clients.members() {
        let client = Section::open(root.file, node, &clients.path(key))?;
        client.flag("interactive")?;
        let Some(setting) = client.get("interactive") else { continue };
        let name = pml_model::name::printable(key);
        let text = format!(
            "`{}` counts for nothing: any client can call itself `{name}`",
            client.path("interactive")
        );
        let hint = format!(
            "take it out, run `pml keys create --client {name} --interactive` in a terminal, and give that client the key"
        );
        found.push(root.file.complaint(setting.at, text).hint(hint));
    }
    Ok(found)
}

fn builtin(root: &Section<'_>, env: &Env) -> Result<Builtin, Complaint> {
    let Some(table) = root.section("builtin", BUILT_IN)? else { return Ok(Builtin::default()) };
    let mut builtin = Builtin::default();
    for name in BUILT_IN {
        let keys = match *name {
            "fs" => reference::keys("builtin.fs"),
            "http" => reference::keys("builtin.http"),
            _ => reference::keys("builtin.NAME"),
        };
        let Some(server) = table.section(name, &keys)? else { continue };
        if !server.flag("enabled")?.unwrap_or(true) {
            builtin.disabled.push((*name).to_owned());
        }
        if let Some(root) = server.text("root")? {
            builtin.fs_root = Some(env.resolve(root, &disk::parent(&table.file.path)));
        }
        builtin.http_hosts.extend(server.texts("hosts")?.into_iter().map(|(host, _)| host.to_owned()));
    }
    Ok(builtin)
}

fn serve(root: &Section<'_>) -> Result<Serve, Complaint> {
    let Some(table) = root.section("serve", &reference::keys("serve"))? else {
        return Ok(Serve::default());
    };
    Ok(Serve {
        listen: listen(&table)?,
        hosts: hosts(&table, "hosts")?,
        origins: table
            .texts("origins")?
            .into_iter()
            .map(|(text, at)| origin(&table, text, at))
            .collect::<Result<_, _>>()?,
    })
}

fn listen(table: &Section<'_>) -> Result<SocketAddr, Complaint> {
    let (Some(text), Some(Node { at, .. })) = (table.text("listen")?, table.get("listen")) else {
        return Ok(Serve::default().listen);
    };
    text.parse().map_err(|_| {
        table
            .file
            .complaint(*at, format!("`serve.listen` is `{text}`"))
            .hint("give an IP address and a port, such as \"127.0.0.1:7717\"")
    })
}

fn hosts(table: &Section<'_>, key: &str) -> Result<Vec<String>, Complaint> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    table
        .texts(key)?
        .into_iter()
        .map(|(host, at)| {
            if host.is_empty() || !host.chars().all(is_host) {
                return Err(table
                    .file
                    .complaint(at, format!("`{host}` in `{}` is no host name", table.path(key)))
                    .hint("write it without scheme, path or `*`, such as \"api.example.com\""));
            }
            Ok(host.to_ascii_lowercase())
        })
        .collect()
}

/// Kept in the form in which browsers send it.
fn origin(table: &Section<'_>, text: &str, at: usize) -> Result<String, Complaint> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    match url {
        Some(url) if url.path() == "/" && url.query().is_none() && url.fragment().is_none() => {
            Ok(url.origin().ascii_serialization())
        }
        Some(_) | None => Err(table
            .file
            .complaint(at, format!("`{text}` in `serve.origins` is no origin"))
            .hint("write scheme and host, such as \"https://app.example.com\"")),
    }
}
