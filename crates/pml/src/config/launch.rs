//! The environment of a server's process, the digest its acceptance is bound to, and warnings about risky commands.

use std::collections::BTreeMap;
use std::fmt;

use pml_model::Digest;

use super::paths::Env;
use super::server::{DeclaredTransport, ServerConfig, ServerTransport};

/// The variables that every server process gets besides those declared for it: what programs need to find
/// executables, the user's files and the language. These usually hold no secret. Proxy variables often do, so they
/// must be declared.
pub const BASE_VARIABLES: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "NUMBER_OF_PROCESSORS",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
        "WINDIR",
    ]
} else {
    &["HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"]
};

/// The complete environment of a server process: [`BASE_VARIABLES`], `LC_*`, and the declared variables, which take
/// precedence.
pub fn child_env(server: &ServerConfig, env: &Env) -> BTreeMap<String, String> {
    let base = env.iter().filter(|(name, _)| is_base(name));
    let mut variables: BTreeMap<_, _> =
        base.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if let ServerTransport::Stdio { env: declared, .. } = &server.transport {
        if cfg!(windows) {
            variables.retain(|name, _| !declared.keys().any(|key| key.eq_ignore_ascii_case(name)));
        }
        variables.extend(declared.clone());
    }
    variables
}

fn is_base(name: &str) -> bool {
    if cfg!(windows) {
        return BASE_VARIABLES.iter().any(|base| base.eq_ignore_ascii_case(name));
    }
    BASE_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// The digest that the acceptance of a server is bound to: command and directory as expanded, arguments and URL as
/// written, and the names of its variables. Values of variables are excluded, so a new token changes nothing and no
/// secret can be guessed from the digest.
pub fn launch_digest(server: &ServerConfig) -> Digest {
    let (command, cwd) = match &server.transport {
        ServerTransport::Stdio { command, cwd, .. } => {
            (Some(command), cwd.as_ref().map(|cwd| cwd.to_string_lossy()))
        }
        ServerTransport::Http { .. } => (None, None),
    };
    let (args, names, url) = match &server.declared {
        DeclaredTransport::Stdio { args, env, .. } => (args.as_slice(), env.keys().collect(), None),
        DeclaredTransport::Http { url, .. } => (&[][..], Vec::new(), Some(url)),
    };
    let relied_on =
        serde_json::json!({ "command": command, "args": args, "env": names, "cwd": cwd, "url": url });
    Digest::of(relied_on.to_string().as_bytes())
}

/// A setting that works but deserves a second look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigWarning {
    /// What was found.
    pub message: String,
    /// How to fix it.
    pub hint: String,
}

impl fmt::Display for ConfigWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\nhint: {}", self.message, self.hint)
    }
}

/// The warnings to show before a server is accepted. `name` is used in the texts only.
pub fn launch_warnings(name: &str, declared: &DeclaredTransport) -> Vec<ConfigWarning> {
    match declared {
        DeclaredTransport::Stdio { command, args, env, .. } => {
            let code = runs_code(name, command, args);
            let package = unpinned_package(name, command, args);
            code.into_iter().chain(package).chain(loads_code(name, env)).collect()
        }
        DeclaredTransport::Http { url, headers } => plain_http(name, url, headers).into_iter().collect(),
    }
}

/// Interpreters, each with the short and the long options that take code as an argument.
const INTERPRETERS: &[(&[&str], &[&str], &[&str])] = &[
    (&["sh", "bash", "dash", "zsh", "ksh", "fish", "ash"], &["c"], &["--command"]),
    (&["python", "python2", "python3", "pypy3", "ruby", "perl"], &["c", "e", "E"], &[]),
    (&["node", "bun"], &["e", "p"], &["--eval", "--print"]),
    (&["deno"], &[], &["eval"]),
    (&["php"], &["r"], &["--run"]),
    (&["cmd"], &[], &["/c", "/C", "/k", "/K"]),
    (&["powershell", "pwsh"], &["c"], &["-Command", "-command", "-EncodedCommand", "-enc"]),
];

fn runs_code(name: &str, command: &str, args: &[String]) -> Option<ConfigWarning> {
    // `env sh -c …` and `sudo sh -c …` start the program that an argument names.
    let words = || std::iter::once(command).chain(args.iter().map(String::as_str)).enumerate();
    let wrapped =
        matches!(program(command).as_str(), "env" | "sudo" | "nohup" | "nice" | "timeout" | "busybox");
    words().take(if wrapped { usize::MAX } else { 1 }).find_map(|(index, word)| {
        let program = program(word);
        let (_, short, long) = INTERPRETERS.iter().find(|(names, _, _)| names.contains(&program.as_str()))?;
        let option = words().skip(index + 1).map(|(_, arg)| arg).find(|arg| takes_code(arg, short, long))?;
        Some(ConfigWarning {
            message: format!("server `{name}` runs code given as an argument: `{program} {option}`"),
            hint: "read that code before you accept it, or name the server's own program".to_owned(),
        })
    })
}

/// Whether an argument passes code: `-c`, a group of short options with it (`-lc`), `--eval`, `--eval=…`.
fn takes_code(arg: &str, short: &[&str], long: &[&str]) -> bool {
    let option = arg.split('=').next().unwrap_or_default();
    if long.contains(&option) {
        return true;
    }
    match option.strip_prefix('-') {
        Some(letters) if !letters.starts_with('-') && letters.len() <= 4 => {
            short.iter().any(|letter| letters.contains(letter))
        }
        Some(_) | None => false,
    }
}

/// The name of a program without directory, version and `.exe`.
fn program(command: &str) -> String {
    let name = command.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name = [".exe", ".cmd", ".bat"].iter().fold(name.as_str(), |name, end| name.trim_end_matches(end));
    match name.split_once('.') {
        Some((stem, version)) if version.bytes().all(|b| b.is_ascii_digit()) => stem.to_owned(),
        Some(_) | None => name.to_owned(),
    }
}

fn unpinned_package(name: &str, command: &str, args: &[String]) -> Option<ConfigWarning> {
    let runner = program(command);
    let skip = match (runner.as_str(), args.first().map(String::as_str)) {
        ("npx" | "bunx" | "uvx" | "pipx", _) => 0,
        ("npm", Some("exec" | "x")) | ("pnpm" | "yarn", Some("dlx")) | ("uv", Some("tool")) => 1,
        _ => return None,
    };
    let package = args.iter().skip(skip).find(|arg| !arg.starts_with('-') && *arg != "run")?;
    if is_pinned(package) {
        return None;
    }
    Some(ConfigWarning {
        message: format!("server `{name}` runs whatever version of `{package}` is newest when it starts"),
        hint: format!("name a version, such as `{}@1.2.3`", package.trim_end_matches("@latest")),
    })
}

/// Whether a package has a fixed version: `name@1.2.3`, `@scope/name@1.2.3`, `name==1.2.3`, or a path.
fn is_pinned(package: &str) -> bool {
    if package.starts_with(['.', '/', '~']) {
        return true;
    }
    let unscoped = package.strip_prefix('@').unwrap_or(package);
    let version = unscoped.split_once("==").or_else(|| unscoped.split_once('@')).map(|(_, version)| version);
    version.is_some_and(|version| {
        version.starts_with(|c: char| c.is_ascii_digit()) && !version.contains(['x', '*'])
    })
}

/// Variables that make a process load code before its own.
const LOADING_VARIABLES: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "BASH_ENV",
    "ENV",
    "PATH",
];

fn loads_code<'e>(
    name: &'e str,
    env: &'e BTreeMap<String, String>,
) -> impl Iterator<Item = ConfigWarning> + 'e {
    env.keys().filter(|key| LOADING_VARIABLES.contains(&key.as_str())).map(move |key| ConfigWarning {
        message: format!("server `{name}` sets `{key}`, which decides what code its process loads"),
        hint: "check where its value points, or remove it".to_owned(),
    })
}

fn plain_http(name: &str, url: &str, headers: &BTreeMap<String, String>) -> Option<ConfigWarning> {
    let parsed = url::Url::parse(url).ok()?;
    let here = match parsed.host()? {
        url::Host::Domain(domain) => domain == "localhost",
        url::Host::Ipv4(address) => address.is_loopback(),
        url::Host::Ipv6(address) => address.is_loopback(),
    };
    (parsed.scheme() == "http" && !here && !headers.is_empty()).then(|| ConfigWarning {
        message: format!("server `{name}` is sent its headers without encryption"),
        hint: "use an `https` address".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(line: &[&str]) -> DeclaredTransport {
        DeclaredTransport::Stdio {
            command: line[0].to_owned(),
            args: line[1..].iter().map(ToString::to_string).collect(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    #[test]
    fn commands_that_run_code_or_float_are_flagged() {
        let code = |what: &str| Some(format!("server `s` runs code given as an argument: `{what}`"));
        let floats = |what: &str| {
            Some(format!("server `s` runs whatever version of `{what}` is newest when it starts"))
        };
        for (line, expected) in [
            (&["sh", "-c", "curl x | sh"][..], code("sh -c")),
            (&["/bin/bash", "-lc", "x"], code("bash -lc")),
            (&["env", "A=1", "sh", "-c", "x"], code("sh -c")),
            (&["python3.12", "-c", "print()"], code("python3 -c")),
            (&["node", "-e", "1"], code("node -e")),
            (&["node", "--eval=1"], code("node --eval=1")),
            (&["deno", "eval", "1"], code("deno eval")),
            (&["cmd.exe", "/c", "x"], code("cmd /c")),
            (&["npx", "-y", "@scope/server"], floats("@scope/server")),
            (&["npx", "-y", "server@latest"], floats("server@latest")),
            (&["uvx", "mcp-server-time"], floats("mcp-server-time")),
            (&["npm", "exec", "server"], floats("server")),
            (&["npx", "-y", "@scope/server@1.2.3"], None),
            (&["uvx", "mcp-server-time==2026.1.1"], None),
            (&["npx", "./local"], None),
            (&["node", "server.js", "--port", "1"], None),
            (&["python", "-m", "server"], None),
            (&["sh", "script.sh"], None),
            (&["my-server", "-c", "config.json"], None),
        ] {
            let found: Vec<String> =
                launch_warnings("s", &stdio(line)).into_iter().map(|w| w.message).collect();
            assert_eq!(found, Vec::from_iter(expected), "{line:?}");
        }
    }

    #[test]
    fn code_loading_variables_and_bare_headers_are_flagged() {
        let declared = DeclaredTransport::Stdio {
            command: "x".to_owned(),
            args: Vec::new(),
            env: BTreeMap::from([("LD_PRELOAD".into(), "x.so".into()), ("TOKEN".into(), "t".into())]),
            cwd: None,
        };
        assert_eq!(
            launch_warnings("s", &declared)[0].to_string(),
            "server `s` sets `LD_PRELOAD`, which decides what code its process loads\n\
             hint: check where its value points, or remove it"
        );
        assert_eq!(launch_warnings("s", &declared).len(), 1);
        let http = |url: &str| DeclaredTransport::Http {
            url: url.to_owned(),
            headers: BTreeMap::from([("X-Key".to_owned(), "k".to_owned())]),
        };
        assert_eq!(launch_warnings("s", &http("http://example.com/mcp")).len(), 1);
        for fine in
            ["https://example.com/mcp", "http://127.0.0.1:1/mcp", "http://[::1]/mcp", "http://localhost"]
        {
            assert_eq!(launch_warnings("s", &http(fine)), [], "{fine}");
        }
    }
}
