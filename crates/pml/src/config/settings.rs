//! The settings of the user's `pml.toml` other than its servers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::approvals::{self, ApprovalSettings};
use super::disk;
use super::embedding::{self, EmbeddingSettings};
use super::error::ConfigComplaint;
use super::limits::{self, LimitSettings, RunSettings};
use super::memory::{self, MemorySettings};
use super::node::{self, ConfigFile, ConfigMember, ConfigNode, ConfigValue};
use super::paths::Env;
use super::permission::{self, PermissionRule, RuleFormat};
use super::prices::{self, PriceRule};
use super::reference;
use super::section::{Section, wrong_type};
use super::server::ServerDraft;
use super::speculation::{self, SpeculationSettings};
use super::store::{self, StoreAddress};
use super::telemetry::{self, TelemetryCollector};

/// How tools are named where all of them are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolNaming {
    /// Always `server__tool`.
    #[default]
    Qualified,
    /// The tool's own name where it is unique.
    Plain,
}

/// The names of the built-in servers.
pub const BUILT_IN: &[&str] = &["fs", "json", "text", "csv", "http", "time", "math"];

/// The tools that a client sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Expose {
    /// PML's own tools only; all others are reached through them.
    #[default]
    Meta,
    /// Every downstream tool as well.
    Full,
    /// PML's own tools plus these tools and capabilities.
    Only(Vec<String>),
}

/// The settings of one client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientSettings {
    /// The tools that the client sees; `None` means the general setting.
    pub expose: Option<Expose>,
    /// How long the client waits for a reply; `None` means the general setting.
    pub client_wait: Option<Duration>,
}

/// Settings of the built-in servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BuiltinConfig {
    /// The root of `fs`; `None` where the configuration names none.
    pub fs_root: Option<PathBuf>,
    /// The hosts that `http` may reach; an empty list disables `http`.
    pub http_hosts: Vec<String>,
    /// The names of disabled built-in servers.
    pub disabled: Vec<String>,
}

/// Settings of `pml serve`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSettings {
    /// The address and port to listen on.
    pub listen: SocketAddr,
    /// Accepted names in the `Host` header, besides those of loopback.
    pub hosts: Vec<String>,
    /// Accepted web origins.
    pub origins: Vec<String>,
}

impl Default for ServeSettings {
    fn default() -> ServeSettings {
        ServeSettings {
            listen: SocketAddr::from(([127, 0, 0, 1], 7717)),
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }
}

/// A parsed `pml.toml`, before the names and variables of its servers are checked.
#[derive(Default)]
pub(super) struct UserSettings {
    pub(super) expose: Expose,
    pub(super) client_wait: Option<Duration>,
    pub(super) clients: BTreeMap<String, ClientSettings>,
    /// The imported files, each with the position that names it.
    pub(super) imports: Vec<(PathBuf, ConfigComplaint)>,
    pub(super) builtin: BuiltinConfig,
    pub(super) serve: ServeSettings,
    pub(super) names: ToolNaming,
    pub(super) permissions: Vec<PermissionRule>,
    pub(super) prices: Vec<PriceRule>,
    pub(super) approvals: ApprovalSettings,
    pub(super) memory: MemorySettings,
    pub(super) speculation: SpeculationSettings,
    pub(super) embedding: EmbeddingSettings,
    pub(super) store: Option<StoreAddress>,
    pub(super) telemetry: Option<TelemetryCollector>,
    pub(super) limits: LimitSettings,
    pub(super) runs: RunSettings,
    pub(super) drafts: Vec<ServerDraft>,
    /// Settings that no longer have an effect.
    pub(super) outdated_settings: Vec<ConfigComplaint>,
}

/// Reads the user's `pml.toml`.
pub(super) fn read_user(file: &ConfigFile, env: &Env) -> Result<UserSettings, ConfigComplaint> {
    let root = node::parse_toml(file)?;
    let root = Section::open_strict(file, &root, "", &reference::top_keys())?;
    let base = disk::parent(&file.path);
    let imports = root
        .texts("import")?
        .into_iter()
        .map(|(path, at)| (env.resolve(path, &base), file.complaint(at, "")))
        .collect();
    Ok(UserSettings {
        expose: expose(&root)?,
        client_wait: client_wait(&root)?,
        clients: clients(&root)?,
        imports,
        builtin: builtin(&root, env)?,
        serve: serve(&root)?,
        names: names(&root)?,
        permissions: permissions(&root)?,
        prices: prices::prices(&root)?,
        approvals: approvals::approvals(&root)?,
        memory: memory::memory(&root)?,
        speculation: speculation::speculation(&root)?,
        embedding: embedding::embedding(&root, env, &base)?,
        store: store::store(&root, env, &base)?,
        telemetry: telemetry::telemetry(&root, env, &base)?,
        limits: limits::limits(&root)?,
        runs: limits::runs(&root)?,
        drafts: drafts(&root)?,
        outdated_settings: named_interactive(&root)?,
    })
}

/// Reads a project's file. It may only add servers: exposure, listening, permissions and imports are the user's own
/// decisions, and an imported file could change without changing the trusted digest.
pub(super) fn read_project(file: &ConfigFile) -> Result<Vec<ServerDraft>, ConfigComplaint> {
    let root = node::parse_toml(file)?;
    let root = Section::open_strict(file, &root, "", &reference::top_keys())?;
    if let Some(member) = root.members().iter().find(|member| member.key != "servers") {
        return Err(file
            .complaint(member.key_at, format!("a project cannot set `{}`", member.key))
            .hint("move it to your own `pml.toml`; a project may have `servers` only"));
    }
    let drafts = drafts(&root)?;
    let loosened = drafts.iter().find_map(|draft| Some((draft, draft.loosening_setting()?)));
    match loosened {
        None => Ok(drafts),
        Some((draft, setting)) => Err(draft.complaint(
            &format!("a project cannot set `servers.{}.{setting}`", draft.name),
            "remove it; what programs may call is said in your own `pml.toml`",
        )),
    }
}

fn permissions(root: &Section<'_>) -> Result<Vec<PermissionRule>, ConfigComplaint> {
    let mut rules = Vec::new();
    if let Some(node) = root.get("permissions") {
        let table = Section::open(root.file, node, "permissions")?;
        permission::read_rules(&table, RuleFormat::Toml, &mut rules)?;
    }
    Ok(rules)
}

fn drafts(root: &Section<'_>) -> Result<Vec<ServerDraft>, ConfigComplaint> {
    let Some(node) = root.get("servers") else { return Ok(Vec::new()) };
    let servers = Section::open(root.file, node, "servers")?;
    servers.members().iter().map(|member| ServerDraft::from_toml(root.file, member)).collect()
}

fn expose(table: &Section<'_>) -> Result<Expose, ConfigComplaint> {
    let Some(node) = table.get("expose") else { return Ok(Expose::Meta) };
    match &node.value {
        ConfigValue::Text(text) if text == "meta" => Ok(Expose::Meta),
        ConfigValue::Text(text) if text == "full" => Ok(Expose::Full),
        ConfigValue::List(_) => {
            Ok(Expose::Only(table.texts("expose")?.into_iter().map(|(tool, _)| tool.to_owned()).collect()))
        }
        ConfigValue::Text(text) => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{text}`", table.member_path("expose")))
            .hint("write \"meta\", \"full\", or a list such as [\"fs:read\"]")),
        ConfigValue::Integer(_) | ConfigValue::Boolean(_) | ConfigValue::Table(_) | ConfigValue::Other(_) => {
            Err(wrong_type(table.file, node, &table.member_path("expose"), "a text or a list of texts"))
        }
    }
}

fn names(root: &Section<'_>) -> Result<ToolNaming, ConfigComplaint> {
    let (Some(text), Some(ConfigNode { at, .. })) = (root.text("names")?, root.get("names")) else {
        return Ok(ToolNaming::default());
    };
    match text {
        "qualified" => Ok(ToolNaming::Qualified),
        "plain" => Ok(ToolNaming::Plain),
        _ => Err(root
            .file
            .complaint(*at, format!("`names` is `{text}`"))
            .hint("write \"qualified\" (`server__tool`) or \"plain\" (the tool's own name where it is the only one)")),
    }
}

/// How long a client waits for a reply.
fn client_wait(table: &Section<'_>) -> Result<Option<Duration>, ConfigComplaint> {
    table.duration_in("client_wait", Duration::from_millis(100)..=Duration::from_secs(24 * 3_600))
}

fn clients(root: &Section<'_>) -> Result<BTreeMap<String, ClientSettings>, ConfigComplaint> {
    let Some(node) = root.get("clients") else { return Ok(BTreeMap::new()) };
    let clients = Section::open(root.file, node, "clients")?;
    clients
        .members()
        .iter()
        .map(|ConfigMember { key, node, .. }| {
            let client = Section::open_strict(
                root.file,
                node,
                &clients.member_path(key),
                &reference::keys("clients.NAME"),
            )?;
            let settings = ClientSettings {
                expose: client.get("expose").map(|_| expose(&client)).transpose()?,
                client_wait: client_wait(&client)?,
            };
            Ok((key.clone(), settings))
        })
        .collect()
}

/// Complaints about clients that are declared interactive by name. Any client can give itself any name, so the
/// setting has no effect; only a key shows that a person uses the client.
fn named_interactive(root: &Section<'_>) -> Result<Vec<ConfigComplaint>, ConfigComplaint> {
    let Some(node) = root.get("clients") else { return Ok(Vec::new()) };
    let clients = Section::open(root.file, node, "clients")?;
    let mut found = Vec::new();
    for ConfigMember { key, node, .. } in clients.members() {
        let client = Section::open(root.file, node, &clients.member_path(key))?;
        client.flag("interactive")?;
        let Some(setting) = client.get("interactive") else { continue };
        let name = pml_model::name::printable(key);
        let text = format!(
            "`{}` counts for nothing: any client can call itself `{name}`",
            client.member_path("interactive")
        );
        let hint = format!(
            "take it out, run `pml keys create --client {name} --interactive` in a terminal, and give that client the key"
        );
        found.push(root.file.complaint(setting.at, text).hint(hint));
    }
    Ok(found)
}

fn builtin(root: &Section<'_>, env: &Env) -> Result<BuiltinConfig, ConfigComplaint> {
    let Some(table) = root.section("builtin", BUILT_IN)? else { return Ok(BuiltinConfig::default()) };
    let mut builtin = BuiltinConfig::default();
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

fn serve(root: &Section<'_>) -> Result<ServeSettings, ConfigComplaint> {
    let Some(table) = root.section("serve", &reference::keys("serve"))? else {
        return Ok(ServeSettings::default());
    };
    Ok(ServeSettings {
        listen: listen(&table)?,
        hosts: hosts(&table, "hosts")?,
        origins: table
            .texts("origins")?
            .into_iter()
            .map(|(text, at)| origin(&table, text, at))
            .collect::<Result<_, _>>()?,
    })
}

fn listen(table: &Section<'_>) -> Result<SocketAddr, ConfigComplaint> {
    let (Some(text), Some(ConfigNode { at, .. })) = (table.text("listen")?, table.get("listen")) else {
        return Ok(ServeSettings::default().listen);
    };
    text.parse().map_err(|_| {
        table
            .file
            .complaint(*at, format!("`serve.listen` is `{text}`"))
            .hint("give an IP address and a port, such as \"127.0.0.1:7717\"")
    })
}

fn hosts(table: &Section<'_>, key: &str) -> Result<Vec<String>, ConfigComplaint> {
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]_".contains(c);
    table
        .texts(key)?
        .into_iter()
        .map(|(host, at)| {
            if host.is_empty() || !host.chars().all(is_host) {
                return Err(table
                    .file
                    .complaint(at, format!("`{host}` in `{}` is no host name", table.member_path(key)))
                    .hint("write it without scheme, path or `*`, such as \"api.example.com\""));
            }
            Ok(host.to_ascii_lowercase())
        })
        .collect()
}

/// The origin, normalised to the form that browsers send.
fn origin(table: &Section<'_>, text: &str, at: usize) -> Result<String, ConfigComplaint> {
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
