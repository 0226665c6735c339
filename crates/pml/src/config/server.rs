//! A server: as declared in a file, and as it will be started or reached.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pml_model::ServerName;
use pml_model::remote::Routing;
use url::Url;

use super::error::{ConfigComplaint, LeftOutServer, nearest_word};
use super::known_secrets;
use super::node::{ConfigFile, ConfigMember};
use super::paths::Env;
use super::permission::routing;
use super::reference;
use super::secret::Secret;
use super::section::Section;
use super::sign_in::{self, SignInSettings};
use super::variables::{ExpandError, VariableExpander};
use super::{CALL_TIMEOUT, LONGEST_CALL, START_TIMEOUT};
use crate::sanitise::{Certainty, KnownSecret};

/// A downstream server, validated and ready to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// The server part of `server:tool`.
    pub name: ServerName,
    /// The transport, with all variables expanded.
    pub transport: ServerTransport,
    /// The transport as written, with variables unexpanded: safe to show and to hash.
    pub declared: DeclaredTransport,
    /// Whether the server is used at all.
    pub enabled: bool,
    /// When the server is started.
    pub start: StartPolicy,
    /// The idle time after which the server is stopped; `None` means never.
    pub idle_stop: Option<Duration>,
    /// The timeout of one call, which starts anew with every progress report.
    pub call_timeout: Duration,
    /// The timeout of one call, whatever progress is reported.
    pub longest_call: Duration,
    /// How long the server may take to become ready.
    pub start_timeout: Duration,
    /// The purpose of the server, shown to agents.
    pub description: Option<String>,
    /// Whether the annotations of its tools are trusted.
    pub trusts_annotations: bool,
    /// What happens to tools that appear or change after the first listing.
    pub definitions: DefinitionPolicy,
    /// Where the calls of its tools are made, unless a rule says otherwise.
    pub routing: Routing,
    /// How PML signs in to it.
    pub sign_in: SignInSettings,
    /// The file that declares it.
    pub source: PathBuf,
    /// Values in its settings that are or may be secrets.
    pub secrets: Vec<KnownSecret>,
}

impl ServerConfig {
    /// The address that people can sign in to: that of a remote server without credentials in its settings.
    pub fn sign_in_address(&self) -> Option<&Url> {
        match &self.transport {
            ServerTransport::Http { url, headers }
                if !headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) =>
            {
                Some(url)
            }
            ServerTransport::Http { .. } | ServerTransport::Stdio { .. } => None,
        }
    }
}

/// What happens to tools that appear or change after the first listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionPolicy {
    /// They are quarantined until a person accepts them.
    Pinned,
    /// They are used as they are.
    Follow,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartPolicy {
    /// At the first use.
    Lazy,
    /// With PML.
    Eager,
}

/// The transport of a server. Arguments, variables and the query of a URL may contain expanded secrets, so `Debug`
/// leaves them out.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerTransport {
    /// A child process: an argument vector, never a shell.
    Stdio {
        /// The executable.
        command: String,
        /// The arguments, passed on as they are.
        args: Vec<String>,
        /// The declared variables; [`child_env`](super::child_env) gives the complete environment.
        env: BTreeMap<String, String>,
        /// The working directory; `None` means that of PML.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The URL, `http` or `https`, without user or password.
        url: Url,
        /// Headers of every request.
        headers: BTreeMap<String, Secret>,
    },
}

impl fmt::Debug for ServerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerTransport::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("({} hidden)", args.len()))
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            ServerTransport::Http { url, headers } => f
                .debug_struct("Http")
                .field("host", &url.host_str())
                .field("headers", &headers.keys())
                .finish(),
        }
    }
}

/// A transport as a configuration writes it. Literal values of variables and headers may be secrets, so `Debug`
/// leaves them out.
#[derive(Clone, PartialEq, Eq)]
pub enum DeclaredTransport {
    /// A child process.
    Stdio {
        /// The executable.
        command: String,
        /// The arguments.
        args: Vec<String>,
        /// The declared variables.
        env: BTreeMap<String, String>,
        /// The working directory.
        cwd: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// The URL.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for DeclaredTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeclaredTransport::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            DeclaredTransport::Http { url, headers } => {
                f.debug_struct("Http").field("url", url).field("headers", &headers.keys()).finish()
            }
        }
    }
}

/// A server read from a file, before its name and variables are checked.
pub(super) struct ServerDraft {
    pub(super) name: String,
    /// The position of its name, as an error without a message.
    name_place: ConfigComplaint,
    declared: DeclaredTransport,
    enabled: bool,
    start: StartPolicy,
    idle_stop: Option<Duration>,
    call_timeout: Duration,
    longest_call: Duration,
    start_timeout: Duration,
    description: Option<String>,
    trusts_annotations: bool,
    definitions: DefinitionPolicy,
    routing: Routing,
    sign_in: SignInSettings,
}

impl ServerDraft {
    /// Reads a `[servers.name]` table of a `pml.toml`.
    pub(super) fn from_toml(
        file: &ConfigFile,
        member: &ConfigMember,
    ) -> Result<ServerDraft, ConfigComplaint> {
        let table = Section::open_strict(
            file,
            &member.node,
            &format!("servers.{}", member.key),
            &reference::keys("servers.NAME"),
        )?;
        let call_timeout = table.duration("call_timeout")?.unwrap_or(CALL_TIMEOUT);
        Ok(ServerDraft {
            enabled: table.flag("enabled")?.unwrap_or(true),
            start: start(&table)?,
            idle_stop: table.duration("idle_stop")?,
            call_timeout,
            longest_call: longest_call(&table, call_timeout)?,
            start_timeout: table.duration("start_timeout")?.unwrap_or(START_TIMEOUT),
            trusts_annotations: trusts_annotations(&table)?,
            definitions: definitions(&table)?,
            routing: routing(&table)?.unwrap_or_default(),
            sign_in: sign_in::read(&table)?,
            ..ServerDraft::new(file, member, &table, declared(&table, "url")?)?
        })
    }

    /// Reads a member of another program's `mcpServers`. Keys specific to that program are ignored.
    pub(super) fn from_json(
        file: &ConfigFile,
        member: &ConfigMember,
    ) -> Result<ServerDraft, ConfigComplaint> {
        let table = Section::open(file, &member.node, &format!("mcpServers.{}", member.key))?;
        let url = if table.get("url").is_none() { "serverUrl" } else { "url" };
        let declared = declared(&table, url)?;
        check_type(&table, &declared)?;
        let enabled = !table.flag("disabled")?.unwrap_or(false);
        Ok(ServerDraft { enabled, ..ServerDraft::new(file, member, &table, declared)? })
    }

    fn new(
        file: &ConfigFile,
        member: &ConfigMember,
        table: &Section<'_>,
        declared: DeclaredTransport,
    ) -> Result<ServerDraft, ConfigComplaint> {
        Ok(ServerDraft {
            name: member.key.clone(),
            name_place: file.complaint(member.key_at, ""),
            declared,
            enabled: true,
            start: StartPolicy::Lazy,
            idle_stop: None,
            call_timeout: CALL_TIMEOUT,
            longest_call: LONGEST_CALL,
            start_timeout: START_TIMEOUT,
            description: table.text("description")?.map(ToOwned::to_owned),
            trusts_annotations: false,
            definitions: DefinitionPolicy::Pinned,
            routing: Routing::default(),
            sign_in: SignInSettings::default(),
        })
    }

    /// The setting, if any, that gives the server more trust than usual.
    pub(super) fn loosening_setting(&self) -> Option<&'static str> {
        let trust = self.trusts_annotations.then_some("trust");
        trust.or((self.definitions == DefinitionPolicy::Follow).then_some("definitions"))
    }

    /// The transport as written.
    pub(super) fn declared(&self) -> &DeclaredTransport {
        &self.declared
    }

    /// The file that declares it.
    pub(super) fn file(&self) -> &Path {
        &self.name_place.file
    }

    /// File and line, for messages about other servers.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.name_place.shown_path, self.name_place.line)
    }

    /// An error about the whole server.
    pub(super) fn complaint(&self, message: &str, hint: impl Into<String>) -> ConfigComplaint {
        let message = pml_model::name::printable(message).replace('\n', "\\n");
        ConfigComplaint { message, ..self.name_place.clone() }.hint(hint)
    }

    /// The server as a left-out one, with the reason.
    pub(super) fn problem(&self, message: &str, hint: impl Into<String>) -> LeftOutServer {
        LeftOutServer { server: self.name.clone(), complaint: Box::new(self.complaint(message, hint)) }
    }

    /// The server with its variables expanded; relative paths are resolved against `base`.
    pub(super) fn resolve(
        self,
        name: ServerName,
        variables: &mut VariableExpander<'_>,
        env: &Env,
        base: &Path,
    ) -> Result<ServerConfig, LeftOutServer> {
        let left_out = |error: ExpandError| {
            self.problem(&format!("server `{name}` is left out: {}", error.message), error.hint)
        };
        let transport = transport(&self.declared, variables, env, base).map_err(left_out)?;
        let sign_in = self.sign_in.clone().resolve(variables).map_err(left_out)?;
        let mut secrets = std::mem::take(&mut variables.inserted_secrets);
        secrets.extend(match &transport {
            ServerTransport::Stdio { args, env, .. } => known_secrets::of_command(args, env),
            ServerTransport::Http { url, headers } => known_secrets::of_address(url, headers),
        });
        let secret = sign_in.client_secret.as_ref().map(Secret::reveal);
        secrets.extend(secret.map(|secret| KnownSecret::new(Certainty::Certain, secret)));
        Ok(ServerConfig {
            name,
            secrets,
            transport,
            declared: self.declared,
            enabled: self.enabled,
            start: self.start,
            idle_stop: self.idle_stop,
            call_timeout: self.call_timeout,
            longest_call: self.longest_call,
            start_timeout: self.start_timeout,
            description: self.description,
            trusts_annotations: self.trusts_annotations,
            definitions: self.definitions,
            routing: self.routing,
            sign_in,
            source: self.name_place.file,
        })
    }
}

fn start(table: &Section<'_>) -> Result<StartPolicy, ConfigComplaint> {
    match (table.text("start")?, table.get("start")) {
        (Some("eager"), _) => Ok(StartPolicy::Eager),
        (Some(other), Some(node)) if other != "lazy" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.member_path("start")))
            .hint("write \"lazy\" or \"eager\"")),
        (_, _) => Ok(StartPolicy::Lazy),
    }
}

fn longest_call(table: &Section<'_>, call_timeout: Duration) -> Result<Duration, ConfigComplaint> {
    match (table.duration("longest_call")?, table.get("longest_call")) {
        (Some(longest), Some(node)) if longest < call_timeout => Err(table
            .file
            .complaint(
                node.at,
                format!("`{}` is shorter than `call_timeout`", table.member_path("longest_call")),
            )
            .hint("give it a longer time, or `call_timeout` a shorter one")),
        (Some(longest), _) => Ok(longest),
        (None, _) => Ok(LONGEST_CALL.max(call_timeout)),
    }
}

fn definitions(table: &Section<'_>) -> Result<DefinitionPolicy, ConfigComplaint> {
    match (table.text("definitions")?, table.get("definitions")) {
        (Some("follow"), _) => Ok(DefinitionPolicy::Follow),
        (Some(other), Some(node)) if other != "pinned" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.member_path("definitions")))
            .hint("write \"pinned\" (tools that appear or change wait for `pml accept`) or \"follow\"")),
        (_, _) => Ok(DefinitionPolicy::Pinned),
    }
}

fn trusts_annotations(table: &Section<'_>) -> Result<bool, ConfigComplaint> {
    match (table.text("trust")?, table.get("trust")) {
        (Some("annotations"), _) => Ok(true),
        (Some(other), Some(node)) => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.member_path("trust")))
            .hint("write \"annotations\" to believe what the server says of its tools, or leave it out")),
        (_, _) => Ok(false),
    }
}

fn declared(table: &Section<'_>, url_key: &str) -> Result<DeclaredTransport, ConfigComplaint> {
    match (table.text("command")?, table.text(url_key)?) {
        (Some(command), None) => {
            refuse(table, &["headers", "bearer"], "url")?;
            refuse(table, sign_in::KEYS, "url")?;
            Ok(DeclaredTransport::Stdio {
                command: command.to_owned(),
                args: table.texts("args")?.into_iter().map(|(arg, _)| arg.to_owned()).collect(),
                env: table.text_map("env")?,
                cwd: table.text("cwd")?.map(ToOwned::to_owned),
            })
        }
        (None, Some(url)) => {
            refuse(table, &["args", "env", "cwd"], "command")?;
            Ok(DeclaredTransport::Http { url: url.to_owned(), headers: headers(table)? })
        }
        (Some(_), Some(_)) => {
            let at = table.member(url_key).map_or(table.at, |member| member.key_at);
            Err(table
                .file
                .complaint(at, format!("`{}` has both `command` and `{url_key}`", table.name()))
                .hint("keep `command` for a program to start, or `url` for a server to reach"))
        }
        (None, None) => Err(neither(table)),
    }
}

fn neither(table: &Section<'_>) -> ConfigComplaint {
    let misspelled = table.members().iter().find_map(|member| nearest_word(&member.key, &["command", "url"]));
    let hint = match misspelled {
        Some(near) => format!("did you mean `{near}`?"),
        None => "give a `command` to start, or a `url` to reach".to_owned(),
    };
    table.file.complaint(table.at, format!("`{}` has neither `command` nor `url`", table.name())).hint(hint)
}

/// An error for the first of `keys` that is present, because it needs `partner` beside it.
fn refuse(table: &Section<'_>, keys: &[&str], partner: &str) -> Result<(), ConfigComplaint> {
    // Other programs write empty values into every entry.
    let misplaced =
        keys.iter().filter_map(|key| table.member(key)).find(|member| !member.node.value.is_empty());
    match misplaced {
        None => Ok(()),
        Some(member) => Err(table
            .file
            .complaint(member.key_at, format!("`{}` needs `{partner}`", table.member_path(&member.key)))
            .hint(format!("remove `{}`, or give `{partner}`", member.key))),
    }
}

fn headers(table: &Section<'_>) -> Result<BTreeMap<String, String>, ConfigComplaint> {
    let mut headers = table.text_map("headers")?;
    if let Some(bearer) = table.text("bearer")? {
        if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            let at = table.member("bearer").map_or(table.at, |member| member.key_at);
            return Err(table
                .file
                .complaint(
                    at,
                    format!("`{}` repeats the `Authorization` header", table.member_path("bearer")),
                )
                .hint("keep one of them"));
        }
        headers.insert("Authorization".to_owned(), format!("Bearer {bearer}"));
    }
    Ok(headers)
}

/// Checks the `type` that clients write. `sse` is an older HTTP transport; which one a server speaks is detected when
/// it is reached.
fn check_type(table: &Section<'_>, declared: &DeclaredTransport) -> Result<(), ConfigComplaint> {
    let (Some(kind), Some(node)) = (table.text("type")?, table.get("type")) else { return Ok(()) };
    let (fits, hint) = match declared {
        DeclaredTransport::Stdio { .. } => (kind == "stdio", "a server with `command` is of type \"stdio\""),
        DeclaredTransport::Http { .. } => (
            matches!(kind, "http" | "streamable-http" | "streamableHttp" | "sse"),
            "a server with `url` is of type \"http\", \"streamable-http\" or \"sse\"",
        ),
    };
    if fits {
        return Ok(());
    }
    Err(table.file.complaint(node.at, format!("`{}` is `{kind}`", table.member_path("type"))).hint(hint))
}

fn transport(
    declared: &DeclaredTransport,
    variables: &mut VariableExpander<'_>,
    env: &Env,
    base: &Path,
) -> Result<ServerTransport, ExpandError> {
    match declared {
        DeclaredTransport::Stdio { command, args, env: declared, cwd } => {
            let command = one_line("the command", variables.expand(command)?)?;
            let args = args.iter().map(|arg| one_line("an argument", variables.expand(arg)?));
            Ok(ServerTransport::Stdio {
                args: args.collect::<Result<_, _>>()?,
                command: program(command, env, base)?,
                env: child_variables(declared, variables)?,
                cwd: cwd
                    .as_ref()
                    .map(|cwd| Ok(env.resolve(&one_line("`cwd`", variables.expand(cwd)?)?, base)))
                    .transpose()?,
            })
        }
        DeclaredTransport::Http { url, headers } => Ok(ServerTransport::Http {
            url: address(&variables.expand(url)?)?,
            headers: headers
                .iter()
                .map(|(name, value)| header(name, variables.expand(value)?))
                .collect::<Result<_, _>>()?,
        }),
    }
}

/// Resolves a command with a path against the directory of its configuration, not the directory PML was started in.
fn program(command: String, env: &Env, base: &Path) -> Result<String, ExpandError> {
    if command.trim().is_empty() {
        return Err(refused("the command is empty", "give a program to start"));
    }
    let has_path = command.contains('/') || (cfg!(windows) && command.contains('\\'));
    Ok(if has_path { env.resolve(&command, base).to_string_lossy().into_owned() } else { command })
}

fn child_variables(
    declared: &BTreeMap<String, String>,
    variables: &mut VariableExpander<'_>,
) -> Result<BTreeMap<String, String>, ExpandError> {
    declared
        .iter()
        .map(|(name, value)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                let message = format!("`{name}` cannot be the name of a variable");
                return Err(refused(&message, "use letters, digits and `_`"));
            }
            let value = variables.expand(value)?;
            if value.contains('\0') {
                let message = format!("the variable `{name}` has a NUL character");
                return Err(refused(&message, "remove the character"));
            }
            Ok((name.clone(), value))
        })
        .collect()
}

fn one_line(what: &str, text: String) -> Result<String, ExpandError> {
    match text.chars().find(|c| matches!(c, '\0' | '\n' | '\r')) {
        None => Ok(text),
        Some(c) => {
            let name = if c == '\0' { "a NUL character" } else { "a line break" };
            Err(refused(&format!("{what} has {name}"), "put longer scripts into a file and name that"))
        }
    }
}

fn address(text: &str) -> Result<Url, ExpandError> {
    // The URL itself is not repeated: it may contain an expanded secret.
    let example = "write it as `https://host/path`";
    let url = Url::parse(text).map_err(|error| refused(&format!("`url` is no address: {error}"), example))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(&format!("`url` has the scheme `{}`", url.scheme()), example));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("`url` holds a user or password", "send them with `headers` or `bearer`"));
    }
    Ok(url)
}

fn header(name: &str, value: String) -> Result<(String, Secret), ExpandError> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        return Err(refused(
            &format!("`{name}` cannot be the name of a header"),
            "use letters, digits and `-`",
        ));
    }
    if value.chars().any(|c| c.is_control() && c != '\t') {
        return Err(refused(&format!("the header `{name}` has a control character"), "remove the character"));
    }
    Ok((name.to_owned(), Secret::new(value)))
}

fn refused(message: &str, hint: &str) -> ExpandError {
    ExpandError { message: message.to_owned(), hint: hint.to_owned() }
}
