//! One server: as written in a file, and as it will be started or reached.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pml_model::ServerName;
use url::Url;

use super::error::{Complaint, Problem, nearest};
use super::node::{File, Member};
use super::paths::Env;
use super::reference;
use super::secret::{self, Secret};
use super::section::Section;
use super::variables::{Unexpanded, Variables};
use super::{CALL_TIMEOUT, START_TIMEOUT};
use crate::sanitise::KnownSecret;

/// A downstream server, ready to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// What tools of it are called by.
    pub name: ServerName,
    /// How it is reached, with all variables expanded.
    pub transport: Transport,
    /// The same as the config writes it, with the variables still in place: safe to show and to hash.
    pub declared: Declared,
    /// Whether it is used at all.
    pub enabled: bool,
    /// When it is started.
    pub start: Start,
    /// After how long without a call it is stopped; never where absent.
    pub idle_stop: Option<Duration>,
    /// How long one call may take.
    pub call_timeout: Duration,
    /// How long it may take to be ready.
    pub start_timeout: Duration,
    /// What it is for, shown to agents.
    pub description: Option<String>,
    /// Whether what it says of its own tools is believed.
    pub trusts_annotations: bool,
    /// What becomes of tools that appear or change after it was first met.
    pub definitions: Definitions,
    /// The file that configures it.
    pub source: PathBuf,
    /// What of its settings is secret, or may be.
    pub secrets: Vec<KnownSecret>,
}

/// What becomes of tools that appear or change after their server was first met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definitions {
    /// They wait until a person accepts them.
    Pinned,
    /// They are used as they come.
    Follow,
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// When it is first needed.
    Lazy,
    /// With PML.
    Eager,
}

/// How a server is reached. Arguments, variables and the query of an address may hold expanded
/// secrets, so `Debug` leaves them out.
#[derive(Clone, PartialEq, Eq)]
pub enum Transport {
    /// A child process: an argument vector, never a shell.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments, each exactly one.
        args: Vec<String>,
        /// The variables declared for it; see [`child_env`](super::child_env) for the whole.
        env: BTreeMap<String, String>,
        /// Where it runs; PML's own directory where absent.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address, `http` or `https`, without user or password.
        url: Url,
        /// Sent with every request.
        headers: BTreeMap<String, Secret>,
    },
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", &format_args!("({} hidden)", args.len()))
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Transport::Http { url, headers } => f
                .debug_struct("Http")
                .field("host", &url.host_str())
                .field("headers", &headers.keys())
                .finish(),
        }
    }
}

/// A transport as a config writes it. Literal values of variables and headers may be secrets, so
/// `Debug` leaves them out.
#[derive(Clone, PartialEq, Eq)]
pub enum Declared {
    /// A child process.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables.
        env: BTreeMap<String, String>,
        /// Where it runs.
        cwd: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Sent with every request.
        headers: BTreeMap<String, String>,
    },
}

impl fmt::Debug for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Declared::Stdio { command, args, env, cwd } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &env.keys())
                .field("cwd", cwd)
                .finish(),
            Declared::Http { url, headers } => {
                f.debug_struct("Http").field("url", url).field("headers", &headers.keys()).finish()
            }
        }
    }
}

/// A server read from a file whose name and variables are not checked yet.
pub(super) struct Draft {
    pub(super) name: String,
    /// Where its name stands; a complaint without words.
    here: Complaint,
    declared: Declared,
    enabled: bool,
    start: Start,
    idle_stop: Option<Duration>,
    call_timeout: Duration,
    start_timeout: Duration,
    description: Option<String>,
    trusts_annotations: bool,
    definitions: Definitions,
}

impl Draft {
    /// Reads a `[servers.name]` table of a `pml.toml`.
    pub(super) fn from_toml(file: &File, member: &Member) -> Result<Draft, Complaint> {
        let table = Section::strict(
            file,
            &member.node,
            &format!("servers.{}", member.key),
            &reference::keys("servers.NAME"),
        )?;
        Ok(Draft {
            enabled: table.flag("enabled")?.unwrap_or(true),
            start: start(&table)?,
            idle_stop: table.duration("idle_stop")?,
            call_timeout: table.duration("call_timeout")?.unwrap_or(CALL_TIMEOUT),
            start_timeout: table.duration("start_timeout")?.unwrap_or(START_TIMEOUT),
            trusts_annotations: trusts_annotations(&table)?,
            definitions: definitions(&table)?,
            ..Draft::new(file, member, &table, declared(&table, "url")?)?
        })
    }

    /// Reads a member of another program's `mcpServers`. Keys that only that program knows are left alone.
    pub(super) fn from_json(file: &File, member: &Member) -> Result<Draft, Complaint> {
        let table = Section::open(file, &member.node, &format!("mcpServers.{}", member.key))?;
        let url = if table.get("url").is_none() { "serverUrl" } else { "url" };
        let declared = declared(&table, url)?;
        check_type(&table, &declared)?;
        let enabled = !table.flag("disabled")?.unwrap_or(false);
        Ok(Draft { enabled, ..Draft::new(file, member, &table, declared)? })
    }

    fn new(
        file: &File,
        member: &Member,
        table: &Section<'_>,
        declared: Declared,
    ) -> Result<Draft, Complaint> {
        Ok(Draft {
            name: member.key.clone(),
            here: file.complaint(member.key_at, ""),
            declared,
            enabled: true,
            start: Start::Lazy,
            idle_stop: None,
            call_timeout: CALL_TIMEOUT,
            start_timeout: START_TIMEOUT,
            description: table.text("description")?.map(ToOwned::to_owned),
            trusts_annotations: false,
            definitions: Definitions::Pinned,
        })
    }

    /// The setting by which it lets the server do more than others.
    pub(super) fn loosens(&self) -> Option<&'static str> {
        let trust = self.trusts_annotations.then_some("trust");
        trust.or((self.definitions == Definitions::Follow).then_some("definitions"))
    }

    /// The file it stands in.
    pub(super) fn file(&self) -> &Path {
        &self.here.file
    }

    /// The file and line it stands in, for complaints about others.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.here.shown, self.here.line)
    }

    /// A complaint about the whole server.
    pub(super) fn complaint(&self, message: &str, hint: impl Into<String>) -> Complaint {
        let message = pml_model::name::printable(message).replace('\n', "\\n");
        Complaint { message, ..self.here.clone() }.hint(hint)
    }

    /// Why this server is left out.
    pub(super) fn problem(&self, message: &str, hint: impl Into<String>) -> Problem {
        Problem { server: self.name.clone(), complaint: Box::new(self.complaint(message, hint)) }
    }

    /// The server with its variables expanded; relative paths are below `base`.
    pub(super) fn resolve(
        self,
        name: ServerName,
        variables: &mut Variables<'_>,
        env: &Env,
        base: &Path,
    ) -> Result<Server, Problem> {
        let transport = transport(&self.declared, variables, env, base).map_err(|error| {
            self.problem(&format!("server `{name}` is left out: {}", error.message), error.hint)
        })?;
        let mut secrets = std::mem::take(&mut variables.put_in);
        secrets.extend(secret::in_transport(&transport));
        Ok(Server {
            name,
            secrets,
            transport,
            declared: self.declared,
            enabled: self.enabled,
            start: self.start,
            idle_stop: self.idle_stop,
            call_timeout: self.call_timeout,
            start_timeout: self.start_timeout,
            description: self.description,
            trusts_annotations: self.trusts_annotations,
            definitions: self.definitions,
            source: self.here.file,
        })
    }
}

fn start(table: &Section<'_>) -> Result<Start, Complaint> {
    match (table.text("start")?, table.get("start")) {
        (Some("eager"), _) => Ok(Start::Eager),
        (Some(other), Some(node)) if other != "lazy" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.path("start")))
            .hint("write \"lazy\" or \"eager\"")),
        (_, _) => Ok(Start::Lazy),
    }
}

fn definitions(table: &Section<'_>) -> Result<Definitions, Complaint> {
    match (table.text("definitions")?, table.get("definitions")) {
        (Some("follow"), _) => Ok(Definitions::Follow),
        (Some(other), Some(node)) if other != "pinned" => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.path("definitions")))
            .hint("write \"pinned\" (tools that appear or change wait for `pml accept`) or \"follow\"")),
        (_, _) => Ok(Definitions::Pinned),
    }
}

fn trusts_annotations(table: &Section<'_>) -> Result<bool, Complaint> {
    match (table.text("trust")?, table.get("trust")) {
        (Some("annotations"), _) => Ok(true),
        (Some(other), Some(node)) => Err(table
            .file
            .complaint(node.at, format!("`{}` is `{other}`", table.path("trust")))
            .hint("write \"annotations\" to believe what the server says of its tools, or leave it out")),
        (_, _) => Ok(false),
    }
}

fn declared(table: &Section<'_>, url_key: &str) -> Result<Declared, Complaint> {
    match (table.text("command")?, table.text(url_key)?) {
        (Some(command), None) => {
            refuse(table, &["headers", "bearer"], "url")?;
            Ok(Declared::Stdio {
                command: command.to_owned(),
                args: table.texts("args")?.into_iter().map(|(arg, _)| arg.to_owned()).collect(),
                env: table.text_map("env")?,
                cwd: table.text("cwd")?.map(ToOwned::to_owned),
            })
        }
        (None, Some(url)) => {
            refuse(table, &["args", "env", "cwd"], "command")?;
            Ok(Declared::Http { url: url.to_owned(), headers: headers(table)? })
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

fn neither(table: &Section<'_>) -> Complaint {
    let misspelled = table.members().iter().find_map(|member| nearest(&member.key, &["command", "url"]));
    let hint = match misspelled {
        Some(near) => format!("did you mean `{near}`?"),
        None => "give a `command` to start, or a `url` to reach".to_owned(),
    };
    table.file.complaint(table.at, format!("`{}` has neither `command` nor `url`", table.name())).hint(hint)
}

/// Complains about the first of `keys` that is there, because it means something only beside `partner`.
fn refuse(table: &Section<'_>, keys: &[&str], partner: &str) -> Result<(), Complaint> {
    // Other programs write empty ones into every entry.
    let misplaced =
        keys.iter().filter_map(|key| table.member(key)).find(|member| !member.node.value.is_empty());
    match misplaced {
        None => Ok(()),
        Some(member) => Err(table
            .file
            .complaint(member.key_at, format!("`{}` needs `{partner}`", table.path(&member.key)))
            .hint(format!("remove `{}`, or give `{partner}`", member.key))),
    }
}

fn headers(table: &Section<'_>) -> Result<BTreeMap<String, String>, Complaint> {
    let mut headers = table.text_map("headers")?;
    if let Some(bearer) = table.text("bearer")? {
        if headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
            let at = table.member("bearer").map_or(table.at, |member| member.key_at);
            return Err(table
                .file
                .complaint(at, format!("`{}` repeats the `Authorization` header", table.path("bearer")))
                .hint("keep one of them"));
        }
        headers.insert("Authorization".to_owned(), format!("Bearer {bearer}"));
    }
    Ok(headers)
}

/// Clients also write what kind of server it is. `sse` is an older way to speak HTTP; which one a
/// server speaks shows when it is reached.
fn check_type(table: &Section<'_>, declared: &Declared) -> Result<(), Complaint> {
    let (Some(kind), Some(node)) = (table.text("type")?, table.get("type")) else { return Ok(()) };
    let (fits, hint) = match declared {
        Declared::Stdio { .. } => (kind == "stdio", "a server with `command` is of type \"stdio\""),
        Declared::Http { .. } => (
            matches!(kind, "http" | "streamable-http" | "streamableHttp" | "sse"),
            "a server with `url` is of type \"http\", \"streamable-http\" or \"sse\"",
        ),
    };
    if fits {
        return Ok(());
    }
    Err(table.file.complaint(node.at, format!("`{}` is `{kind}`", table.path("type"))).hint(hint))
}

fn transport(
    declared: &Declared,
    variables: &mut Variables<'_>,
    env: &Env,
    base: &Path,
) -> Result<Transport, Unexpanded> {
    match declared {
        Declared::Stdio { command, args, env: declared, cwd } => {
            let command = one_line("the command", variables.expand(command)?)?;
            let args = args.iter().map(|arg| one_line("an argument", variables.expand(arg)?));
            Ok(Transport::Stdio {
                args: args.collect::<Result<_, _>>()?,
                command: program(command, env, base)?,
                env: child_variables(declared, variables)?,
                cwd: cwd
                    .as_ref()
                    .map(|cwd| Ok(env.resolve(&one_line("`cwd`", variables.expand(cwd)?)?, base)))
                    .transpose()?,
            })
        }
        Declared::Http { url, headers } => Ok(Transport::Http {
            url: address(&variables.expand(url)?)?,
            headers: headers
                .iter()
                .map(|(name, value)| header(name, variables.expand(value)?))
                .collect::<Result<_, _>>()?,
        }),
    }
}

/// A command with a path is found from where its config stands, not from where PML was started.
fn program(command: String, env: &Env, base: &Path) -> Result<String, Unexpanded> {
    if command.trim().is_empty() {
        return Err(refused("the command is empty", "give a program to start"));
    }
    let has_path = command.contains('/') || (cfg!(windows) && command.contains('\\'));
    Ok(if has_path { env.resolve(&command, base).to_string_lossy().into_owned() } else { command })
}

fn child_variables(
    declared: &BTreeMap<String, String>,
    variables: &mut Variables<'_>,
) -> Result<BTreeMap<String, String>, Unexpanded> {
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

fn one_line(what: &str, text: String) -> Result<String, Unexpanded> {
    match text.chars().find(|c| matches!(c, '\0' | '\n' | '\r')) {
        None => Ok(text),
        Some(c) => {
            let name = if c == '\0' { "a NUL character" } else { "a line break" };
            Err(refused(&format!("{what} has {name}"), "put longer scripts into a file and name that"))
        }
    }
}

fn address(text: &str) -> Result<Url, Unexpanded> {
    // The address itself is not repeated: it may hold an expanded secret.
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

fn header(name: &str, value: String) -> Result<(String, Secret), Unexpanded> {
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

fn refused(message: &str, hint: &str) -> Unexpanded {
    Unexpanded { message: message.to_owned(), hint: hint.to_owned() }
}
