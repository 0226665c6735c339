//! How each client writes one server.

use crate::tree::{Error, Node, NodeValue, Plain};
use crate::variables::{VariableSyntax, VariableValues};

/// How a client writes one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `command`, `args`, `env`, or `url` and `headers`.
    Plain,
    /// The same with `type`, and variables.
    ClaudeCode,
    /// The same with variables of editors (Cursor).
    Editor,
    /// The same with `type` and `envFile`.
    VsCode,
    /// The same with `serverUrl`.
    Windsurf,
    /// Timeouts in seconds, variables as names of their own.
    Codex,
    /// `httpUrl` beside `url`, a timeout in milliseconds.
    Gemini,
    /// `command` as a text, or as a table with `path` in older files.
    Zed,
    /// `disabled` and a timeout in seconds (Cline, Roo Code).
    Cline,
    /// A list of servers with their names inside.
    Continue,
    /// `command` as a list, `environment`, `enabled`.
    OpenCode,
    /// `cmd`, `envs`, `uri`.
    Goose,
}

/// A server in a client's file. Texts use PML's syntax: `${NAME}` is a variable and `$$` a dollar sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientServer {
    /// Its name there.
    pub name: String,
    /// The command or the URL.
    pub address: ServerAddress,
    /// Whether the client uses it.
    pub enabled: bool,
    /// The timeout of one call, in milliseconds.
    pub call_timeout_ms: Option<u64>,
    /// The time that it may take to start, in milliseconds.
    pub start_timeout_ms: Option<u64>,
    /// What it is for.
    pub description: Option<String>,
    /// The line of its entry, from 1.
    pub line: usize,
}

/// The command or the URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerAddress {
    /// A program to start.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its variables, in the order of the file.
        env: Vec<(String, String)>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// A server to reach.
    Http {
        /// Its URL.
        url: String,
        /// Headers of every request, in the order of the file.
        headers: Vec<(String, String)>,
    },
}

/// An entry that PML cannot use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableServer {
    /// Its name.
    pub name: String,
    /// The line of its entry, from 1.
    pub line: usize,
    /// Why it cannot be used.
    pub reason: String,
}

/// The command that a client is to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its variables; mostly none.
    pub env: Vec<(String, String)>,
}

impl Dialect {
    /// Whether the servers are a list of tables with a `name` each.
    pub(crate) fn is_list(self) -> bool {
        self == Dialect::Continue
    }

    fn variables(self) -> VariableSyntax {
        match self {
            Dialect::Plain | Dialect::Codex | Dialect::Zed | Dialect::Goose => VariableSyntax::Literal,
            Dialect::ClaudeCode => VariableSyntax::Braces,
            Dialect::Editor | Dialect::VsCode | Dialect::Windsurf | Dialect::Cline => VariableSyntax::Editor,
            Dialect::Gemini => VariableSyntax::Shell,
            Dialect::OpenCode => VariableSyntax::Curly,
            Dialect::Continue => VariableSyntax::Secrets,
        }
    }

    /// The entry that starts `launch`.
    pub(crate) fn write(self, name: &str, launch: &LaunchCommand) -> Plain {
        let env =
            Plain::Table(launch.env.iter().map(|(name, value)| (name.clone(), Plain::text(value))).collect());
        let words = || std::iter::once(&launch.command).chain(&launch.args).cloned().collect::<Vec<_>>();
        let command = ("command", Plain::text(&launch.command));
        let args = ("args", Plain::texts(&launch.args));
        let members = match self {
            Dialect::Plain
            | Dialect::Editor
            | Dialect::Windsurf
            | Dialect::Codex
            | Dialect::Gemini
            | Dialect::Cline => vec![command, args, ("env", env)],
            Dialect::ClaudeCode | Dialect::VsCode => {
                vec![("type", Plain::text("stdio")), command, args, ("env", env)]
            }
            Dialect::Zed => vec![("source", Plain::text("custom")), command, args, ("env", env)],
            Dialect::Continue => vec![("name", Plain::text(name)), command, args, ("env", env)],
            Dialect::OpenCode => vec![
                ("type", Plain::text("local")),
                ("command", Plain::texts(&words())),
                ("environment", env),
                ("enabled", Plain::Boolean(true)),
            ],
            Dialect::Goose => vec![
                ("enabled", Plain::Boolean(true)),
                ("type", Plain::text("stdio")),
                ("name", Plain::text(name)),
                ("description", Plain::text("PML")),
                ("cmd", Plain::text(&launch.command)),
                args,
                ("envs", env),
                // Seconds: a run that waits for an answer may take this long.
                ("timeout", Plain::Other("300".to_owned())),
            ],
        };
        // These two take no entry without variables.
        let needs_env = matches!(self, Dialect::Zed | Dialect::Goose);
        let keeps = |value: &Plain| needs_env || *value != Plain::Table(Vec::new());
        let kept = members.into_iter().filter(|(_, value)| keeps(value));
        Plain::Table(kept.map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The server of an entry; `None` where the entry is a part of the client itself.
    pub(crate) fn read(
        self,
        name: &str,
        entry: &Node,
        text: &str,
        values: &VariableValues,
    ) -> Result<Option<ClientServer>, UnreadableServer> {
        let line = match Error::at(text, entry.span.start, "") {
            Error::Broken { line, .. } => line,
            Error::Uneditable(_) => 0,
        };
        EntryReader { dialect: self, entry: inner(self, entry), outer: entry, values }
            .server(name, line)
            .map_err(|reason| UnreadableServer { name: name.to_owned(), line, reason })
    }
}

/// The table with the settings of the server: some versions of Goose keep them one level deeper.
fn inner(dialect: Dialect, entry: &Node) -> &Node {
    let deeper = entry.get("config").filter(|_| dialect == Dialect::Goose);
    deeper.filter(|config| !config.members().is_empty()).unwrap_or(entry)
}

struct EntryReader<'n> {
    dialect: Dialect,
    entry: &'n Node,
    outer: &'n Node,
    values: &'n VariableValues,
}

impl EntryReader<'_> {
    fn server(&self, name: &str, line: usize) -> Result<Option<ClientServer>, String> {
        if !matches!(self.entry.value, NodeValue::Table(_)) {
            return Err(format!("it is {}, not a table", self.entry.kind()));
        }
        if name.is_empty() {
            return Err("it has no name".to_owned());
        }
        if self.is_part_of_client() {
            return Ok(None);
        }
        let (call_timeout_ms, start_timeout_ms) = self.timeouts();
        Ok(Some(ClientServer {
            name: name.to_owned(),
            address: self.address()?,
            enabled: self.enabled(),
            call_timeout_ms,
            start_timeout_ms,
            description: self.entry.get("description").and_then(Node::text).map(str::to_owned),
            line,
        }))
    }

    /// Extensions that Zed and Goose bring along are no servers of their own.
    fn is_part_of_client(&self) -> bool {
        match self.dialect {
            Dialect::Goose => matches!(
                self.entry.get("type").and_then(Node::text),
                Some("builtin" | "platform" | "frontend" | "inline_python")
            ),
            Dialect::Zed => {
                self.entry.get("source").and_then(Node::text) == Some("extension")
                    || (self.entry.get("command").is_none() && self.entry.get("url").is_none())
            }
            // An entry that only switches a server of a configuration elsewhere on or off.
            Dialect::OpenCode => self.entry.members().iter().all(|member| member.key == "enabled"),
            _ => false,
        }
    }

    fn address(&self) -> Result<ServerAddress, String> {
        let url_keys: &[&str] = match self.dialect {
            Dialect::Goose => &["uri", "url"],
            Dialect::Gemini => &["httpUrl", "url"],
            Dialect::Windsurf => &["serverUrl", "url"],
            _ => &["url", "serverUrl"],
        };
        match url_keys.iter().find(|key| self.entry.get(key).is_some()) {
            Some(key) => {
                Ok(ServerAddress::Http { url: self.text(key)?.unwrap_or_default(), headers: self.headers()? })
            }
            None => self.program(),
        }
    }

    fn program(&self) -> Result<ServerAddress, String> {
        if self.entry.get("envFile").is_some() {
            return Err("it reads variables from a file (`envFile`)".to_owned());
        }
        let nested = self.entry.get("command").filter(|command| !command.members().is_empty());
        let source = EntryReader { entry: nested.unwrap_or(self.entry), ..*self };
        let (command, mut args) = match (self.dialect, nested) {
            (Dialect::Goose, _) => (source.text("cmd")?, Vec::new()),
            (Dialect::OpenCode, _) => {
                let mut words = source.texts("command")?.into_iter();
                (words.next(), words.collect())
            }
            (_, Some(_)) => (source.text("path")?, Vec::new()),
            (_, None) => (source.text("command")?, Vec::new()),
        };
        args.extend(source.texts("args")?);
        let command = command.ok_or("it has neither a command nor a URL")?;
        let is_path = command.contains('/') || command.contains('\\');
        let project = self.values.project.as_deref().map(|project| project.replace('$', "$$"));
        let cwd = source.text("cwd")?.map(|cwd| self.absolute("cwd", cwd)).transpose()?;
        Ok(ServerAddress::Stdio {
            command: if is_path { self.absolute("command", command)? } else { command },
            args,
            env: source.env()?,
            // A server of a project is started in the project.
            cwd: cwd.or(project),
        })
    }

    /// A relative path starts at the project. Without one it starts wherever the client was started, which PML cannot
    /// know.
    fn absolute(&self, key: &str, path: String) -> Result<String, String> {
        let has_drive = path.as_bytes().get(1) == Some(&b':');
        if path.starts_with(['/', '\\', '~', '$']) || has_drive {
            return Ok(path);
        }
        let rest = path.trim_start_matches("./");
        match &self.values.project {
            Some(project) => Ok(format!("{}/{rest}", project.replace('$', "$$"))),
            None => Err(format!("`{key}` is a path relative to where the client was started")),
        }
    }

    fn env(&self) -> Result<Vec<(String, String)>, String> {
        let key = match self.dialect {
            Dialect::OpenCode => "environment",
            Dialect::Goose => "envs",
            _ => "env",
        };
        let mut env = self.pairs(key)?;
        let passed_on = match self.dialect {
            Dialect::Codex => "env_vars",
            Dialect::Goose => "env_keys",
            _ => return Ok(env),
        };
        let names = self.entry.get(passed_on).map(Node::items).unwrap_or_default();
        for name in names {
            let name = name.text().or_else(|| name.get("name").and_then(Node::text));
            let name = name.ok_or_else(|| format!("`{passed_on}` is no list of names"))?;
            if !env.iter().any(|(known, _)| known == name) {
                env.push((name.to_owned(), format!("${{{name}}}")));
            }
        }
        Ok(env)
    }

    fn headers(&self) -> Result<Vec<(String, String)>, String> {
        if self.dialect == Dialect::Continue {
            let options = self.entry.get("requestOptions").unwrap_or(self.entry);
            return EntryReader { entry: options, ..*self }.pairs("headers");
        }
        if self.dialect != Dialect::Codex {
            return self.pairs("headers");
        }
        let mut headers = self.pairs("http_headers")?;
        for (header, variable) in self.pairs("env_http_headers")? {
            headers.push((header, format!("${{{variable}}}")));
        }
        if let Some(variable) = self.entry.get("bearer_token_env_var").and_then(Node::text) {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{{variable}}}")));
        }
        Ok(headers)
    }

    fn enabled(&self) -> bool {
        let flag = |key: &str| {
            let node = self.outer.get(key).or_else(|| self.entry.get(key))?;
            match node.value {
                NodeValue::Boolean(flag) => Some(flag),
                _ => None,
            }
        };
        flag("enabled").unwrap_or(true) && !flag("disabled").unwrap_or(false)
    }

    /// The timeouts of a call and of the start, in milliseconds.
    fn timeouts(&self) -> (Option<u64>, Option<u64>) {
        let number = |key: &str, factor: f64| {
            let NodeValue::Other(raw) = &self.entry.get(key)?.value else { return None };
            let value = raw.parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1e9)?;
            Some((value * factor).round() as u64)
        };
        match self.dialect {
            Dialect::Codex => (
                number("tool_timeout_sec", 1_000.0),
                number("startup_timeout_sec", 1_000.0).or_else(|| number("startup_timeout_ms", 1.0)),
            ),
            Dialect::Gemini => (number("timeout", 1.0), None),
            Dialect::Cline | Dialect::Goose => (number("timeout", 1_000.0), None),
            // The time to list the tools.
            Dialect::OpenCode => (None, number("timeout", 1.0)),
            Dialect::Continue => (None, number("connectionTimeout", 1.0)),
            Dialect::Plain
            | Dialect::ClaudeCode
            | Dialect::Editor
            | Dialect::VsCode
            | Dialect::Windsurf
            | Dialect::Zed => (None, None),
        }
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let Some(node) = self.entry.get(key) else { return Ok(None) };
        let text = node.text().ok_or_else(|| format!("`{key}` is {}, not a text", node.kind()))?;
        self.translate(text).map(Some)
    }

    fn texts(&self, key: &str) -> Result<Vec<String>, String> {
        let Some(node) = self.entry.get(key) else { return Ok(Vec::new()) };
        let wrong = || format!("`{key}` is no list of texts");
        if !matches!(node.value, NodeValue::List(_)) {
            return Err(wrong());
        }
        node.items()
            .iter()
            .map(|item| match &item.value {
                NodeValue::Text(text) => self.translate(text),
                NodeValue::Other(raw) if !raw.starts_with('*') => Ok(raw.clone()),
                _ => Err(wrong()),
            })
            .collect()
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, String> {
        let Some(node) = self.entry.get(key) else { return Ok(Vec::new()) };
        let wrong = || format!("`{key}` is no table of texts");
        if !matches!(node.value, NodeValue::Table(_)) {
            return Err(wrong());
        }
        node.members()
            .iter()
            .map(|member| {
                let value = match &member.node.value {
                    NodeValue::Text(text) => self.translate(text)?,
                    NodeValue::Other(raw) if !raw.starts_with('*') => raw.clone(),
                    NodeValue::Boolean(flag) => flag.to_string(),
                    // An empty variable, as some clients write it.
                    NodeValue::Null => String::new(),
                    _ => return Err(wrong()),
                };
                Ok((member.key.clone(), value))
            })
            .collect()
    }

    fn translate(&self, text: &str) -> Result<String, String> {
        let translated = self.dialect.variables().translate(text, self.values);
        translated.map_err(|variable| format!("`{variable}` is a variable that only the client can fill in"))
    }
}
