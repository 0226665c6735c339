//! The clients: which files they read on each system, and where servers stand in them.

use crate::dialect::Dialect;
use crate::edit::{FileShape, Format};
use crate::variables::VariableValues;

/// A program that uses MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// Other names that people type.
    aliases: &'static [&'static str],
    /// Its files. Of each scope, the first that exists is written to; where none does, the first is created.
    pub locations: &'static [ConfigLocation],
}

/// A file of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigLocation {
    /// What the file counts for.
    pub scope: Scope,
    /// How it is written.
    pub format: Format,
    dialect: Dialect,
    /// The keys that lead to the servers; [`PROJECT`] stands for the project's directory.
    keys: &'static [&'static str],
    /// The path on Linux and macOS.
    unix: &'static str,
    /// The path on Windows, where it has another form.
    windows: Option<&'static str>,
    /// What a new file starts with.
    starter: &'static str,
    /// Whether new entries may go here; older shapes are only read.
    pub current: bool,
}

/// What a file counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything that the user does.
    User,
    /// One project, for everybody who works on it.
    Project,
    /// One project, for this user alone.
    Local,
}

impl Scope {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Project => "project",
            Scope::Local => "local",
        }
    }
}

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    /// Linux and other free systems.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The directories that paths of files start with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    /// The system.
    pub system: System,
    /// The user's home directory.
    pub home: String,
    /// `XDG_CONFIG_HOME`, or `.config` below the home directory.
    pub config: String,
    /// Where graphical programs keep their settings: the same on Linux, `Library/Application Support` on macOS,
    /// `APPDATA` on Windows.
    pub app_data: String,
    /// `CODEX_HOME`, where it is set.
    pub codex: Option<String>,
    /// `CLAUDE_CONFIG_DIR`, where it is set.
    pub claude: Option<String>,
    /// The project's directory, where there is one.
    pub project: Option<String>,
}

impl Directories {
    /// The directories of a user with this home directory who has set no variable.
    pub fn below(home: &str, system: System) -> Directories {
        let app_data = match system {
            System::Linux => format!("{home}/.config"),
            System::MacOs => format!("{home}/Library/Application Support"),
            System::Windows => format!("{home}\\AppData\\Roaming"),
        };
        let slash = if system == System::Windows { '\\' } else { '/' };
        Directories {
            system,
            home: home.to_owned(),
            config: format!("{home}{slash}.config"),
            app_data,
            codex: None,
            claude: None,
            project: None,
        }
    }
}

/// A file of a client on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedLocation {
    /// The path of the file.
    pub path: String,
    /// What the file counts for.
    pub scope: Scope,
    /// How it is written and where the servers stand.
    pub shape: FileShape,
    /// What a new file starts with.
    pub starter: &'static str,
    /// Whether new entries may go here.
    pub current: bool,
}

impl Client {
    /// The files of this client below `directories`; project files only where there is a project.
    pub fn resolve(&self, directories: &Directories) -> Vec<ResolvedLocation> {
        self.locations.iter().filter_map(|location| location.resolve(directories)).collect()
    }
}

impl ConfigLocation {
    fn resolve(&self, directories: &Directories) -> Option<ResolvedLocation> {
        let is_windows = directories.system == System::Windows;
        let template = self.windows.filter(|_| is_windows).unwrap_or(self.unix);
        let (start, rest) = template.split_once('/')?;
        let below_home = |name: &str| format!("{}/{name}", directories.home);
        let start = match start {
            "{home}" => directories.home.clone(),
            "{config}" => directories.config.clone(),
            "{appdata}" => directories.app_data.clone(),
            "{codex}" => directories.codex.clone().unwrap_or_else(|| below_home(".codex")),
            "{claude}" => directories.claude.clone().unwrap_or_else(|| directories.home.clone()),
            _ => directories.project.clone()?,
        };
        let path = format!("{start}/{rest}");
        let project = directories.project.as_deref();
        let keys = self.keys.iter().map(|key| if *key == PROJECT { project } else { Some(*key) });
        Some(ResolvedLocation {
            path: if is_windows { path.replace('/', "\\") } else { path },
            scope: self.scope,
            shape: FileShape {
                format: self.format,
                path: keys.map(|key| key.map(str::to_owned)).collect::<Option<_>>()?,
                dialect: self.dialect,
                values: VariableValues {
                    home: directories.home.clone(),
                    project: (self.scope != Scope::User).then(|| directories.project.clone()).flatten(),
                },
            },
            starter: self.starter,
            current: self.current,
        })
    }
}

/// The client and scope that `name` means: `cursor`, or `cursor:project`.
pub fn find(name: &str) -> Option<(&'static Client, Scope)> {
    let (id, scope) = name.split_once(':').unwrap_or((name, "user"));
    let wanted = id.to_ascii_lowercase().replace([' ', '_'], "-");
    let client =
        CLIENTS.iter().find(|client| client.id == wanted || client.aliases.contains(&wanted.as_str()))?;
    let scope = match scope.to_ascii_lowercase().as_str() {
        "user" | "global" => Scope::User,
        "project" | "workspace" => Scope::Project,
        "local" => Scope::Local,
        _ => return None,
    };
    client.locations.iter().any(|location| location.scope == scope).then_some((client, scope))
}

/// The name on the command line that is most like `name`; `None` where none is near.
pub fn nearest(name: &str) -> Option<String> {
    let (id, scope) = name.split_once(':').unwrap_or((name, ""));
    let id = id.to_ascii_lowercase();
    let names = CLIENTS.iter().flat_map(|client| {
        std::iter::once(client.id).chain(client.aliases.iter().copied()).map(move |name| (name, client))
    });
    let (_, client) = names
        .map(|(known, client)| (distance(&id, known), client))
        .filter(|(distance, _)| *distance <= id.len().div_ceil(3).max(1))
        .min_by_key(|(distance, _)| *distance)?;
    let with_scope = format!("{}:{scope}", client.id);
    Some(if find(&with_scope).is_some() { with_scope } else { client.id.to_owned() })
}

/// The number of letters to insert, remove or replace between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, a) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in b.iter().enumerate() {
            let replaced = corner + usize::from(a != *b);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// Stands for the project's directory in the keys of a location.
const PROJECT: &str = "{project}";

const fn json(
    scope: Scope,
    unix: &'static str,
    keys: &'static [&'static str],
    dialect: Dialect,
) -> ConfigLocation {
    let format = Format::Json;
    ConfigLocation { scope, format, dialect, keys, unix, windows: None, starter: "{}\n", current: true }
}

const fn user(unix: &'static str, dialect: Dialect) -> ConfigLocation {
    json(Scope::User, unix, &["mcpServers"], dialect)
}

const fn project(unix: &'static str, dialect: Dialect) -> ConfigLocation {
    json(Scope::Project, unix, &["mcpServers"], dialect)
}

/// A location of an older shape, which is read but not written to.
const fn older(location: ConfigLocation) -> ConfigLocation {
    ConfigLocation { current: false, ..location }
}

const fn on_windows(location: ConfigLocation, windows: &'static str) -> ConfigLocation {
    ConfigLocation { windows: Some(windows), ..location }
}

/// All clients that PML knows.
pub const CLIENTS: &[Client] = &[
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        aliases: &["claude-app"],
        locations: &[user("{appdata}/Claude/claude_desktop_config.json", Dialect::Plain)],
    },
    Client {
        id: "claude-code",
        title: "Claude Code",
        aliases: &["claude"],
        locations: &[
            user("{claude}/.claude.json", Dialect::ClaudeCode),
            project("{project}/.mcp.json", Dialect::ClaudeCode),
            json(
                Scope::Local,
                "{claude}/.claude.json",
                &["projects", PROJECT, "mcpServers"],
                Dialect::ClaudeCode,
            ),
        ],
    },
    Client {
        id: "cursor",
        title: "Cursor",
        aliases: &["cursor-agent"],
        locations: &[
            user("{home}/.cursor/mcp.json", Dialect::Editor),
            project("{project}/.cursor/mcp.json", Dialect::Editor),
        ],
    },
    Client {
        id: "vscode",
        title: "VS Code",
        aliases: &["vs-code", "code", "copilot"],
        locations: &[
            json(Scope::User, "{appdata}/Code/User/mcp.json", &["servers"], Dialect::VsCode),
            json(Scope::User, "{appdata}/Code - Insiders/User/mcp.json", &["servers"], Dialect::VsCode),
            older(json(
                Scope::User,
                "{appdata}/Code/User/settings.json",
                &["mcp", "servers"],
                Dialect::VsCode,
            )),
            json(Scope::Project, "{project}/.vscode/mcp.json", &["servers"], Dialect::VsCode),
            older(json(
                Scope::Project,
                "{project}/.vscode/settings.json",
                &["mcp", "servers"],
                Dialect::VsCode,
            )),
        ],
    },
    Client {
        id: "windsurf",
        title: "Windsurf",
        aliases: &["codeium"],
        locations: &[user("{home}/.codeium/windsurf/mcp_config.json", Dialect::Windsurf)],
    },
    Client {
        id: "codex",
        title: "Codex",
        aliases: &["codex-cli", "openai-codex"],
        locations: &[
            ConfigLocation {
                format: Format::Toml,
                starter: "",
                ..json(Scope::User, "{codex}/config.toml", &["mcp_servers"], Dialect::Codex)
            },
            ConfigLocation {
                format: Format::Toml,
                starter: "",
                ..json(Scope::Project, "{project}/.codex/config.toml", &["mcp_servers"], Dialect::Codex)
            },
        ],
    },
    Client {
        id: "gemini",
        title: "Gemini CLI",
        aliases: &["gemini-cli"],
        locations: &[
            user("{home}/.gemini/settings.json", Dialect::Gemini),
            project("{project}/.gemini/settings.json", Dialect::Gemini),
        ],
    },
    Client {
        id: "zed",
        title: "Zed",
        aliases: &[],
        locations: &[
            on_windows(
                json(Scope::User, "{config}/zed/settings.json", &["context_servers"], Dialect::Zed),
                "{appdata}/Zed/settings.json",
            ),
            json(Scope::Project, "{project}/.zed/settings.json", &["context_servers"], Dialect::Zed),
        ],
    },
    Client {
        id: "cline",
        title: "Cline",
        aliases: &[],
        locations: &[
            user(
                "{appdata}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                Dialect::Cline,
            ),
            user("{home}/.cline/data/settings/cline_mcp_settings.json", Dialect::Cline),
        ],
    },
    Client {
        id: "roo",
        title: "Roo Code",
        aliases: &["roo-code", "roo-cline"],
        locations: &[
            user(
                "{appdata}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
                Dialect::Cline,
            ),
            project("{project}/.roo/mcp.json", Dialect::Cline),
        ],
    },
    Client {
        id: "continue",
        title: "Continue",
        aliases: &["continue-dev"],
        locations: &[ConfigLocation {
            format: Format::Yaml,
            starter: "name: Local Config\nversion: 1.0.0\nschema: v1\n",
            ..user("{home}/.continue/config.yaml", Dialect::Continue)
        }],
    },
    Client {
        id: "junie",
        title: "JetBrains Junie",
        aliases: &["jetbrains", "intellij"],
        locations: &[
            user("{home}/.junie/mcp/mcp.json", Dialect::Plain),
            project("{project}/.junie/mcp/mcp.json", Dialect::Plain),
        ],
    },
    Client {
        id: "opencode",
        title: "opencode",
        aliases: &["open-code"],
        locations: &[
            json(Scope::User, "{config}/opencode/opencode.json", &["mcp"], Dialect::OpenCode),
            json(Scope::User, "{config}/opencode/opencode.jsonc", &["mcp"], Dialect::OpenCode),
            json(Scope::Project, "{project}/opencode.json", &["mcp"], Dialect::OpenCode),
            json(Scope::Project, "{project}/opencode.jsonc", &["mcp"], Dialect::OpenCode),
        ],
    },
    Client {
        id: "goose",
        title: "Goose",
        aliases: &["block-goose"],
        locations: &[ConfigLocation {
            format: Format::Yaml,
            starter: "",
            ..on_windows(
                json(Scope::User, "{config}/goose/config.yaml", &["extensions"], Dialect::Goose),
                "{appdata}/Block/goose/config/config.yaml",
            )
        }],
    },
];
