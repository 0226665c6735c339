//! Which entries of clients are PML itself, and how a program that a package runner started is started again.

use crate::dialect::{ClientServer, ServerAddress};

/// The name of the packages that carry the program.
const PACKAGE: &str = "procedural-memory-layer";
/// The port that `pml serve` listens on unless it is told otherwise.
const USUAL_PORT: &str = "7717";
/// Programs whose arguments name the program that they start.
const LAUNCHERS: [&str; 15] = [
    "npx", "bunx", "bun", "pnpm", "pnpx", "yarn", "node", "uvx", "uv", "pipx", "cmd", "env", "wsl", "docker",
    "podman",
];

impl ClientServer {
    /// Whether this is PML itself: its program or package with `stdio`, or the address of a gateway.
    pub fn is_pml(&self) -> bool {
        match &self.address {
            ServerAddress::Stdio { command, args, .. } => is_own_command(command, args),
            ServerAddress::Http { url, .. } => is_own_url(&self.name, url),
        }
    }
}

fn is_own_command(command: &str, args: &[String]) -> bool {
    let serves = |words: &[String]| words.iter().any(|word| word == "stdio");
    if is_own_program(command) {
        return serves(args);
    }
    let launched = args.iter().position(|word| is_own_program(word));
    is_launcher(command) && launched.is_some_and(|at| serves(&args[at + 1..]))
}

/// `/usr/bin/pml`, `pml.exe`, `procedural-memory-layer@1.2`, `procedural-memory-layer==1.2`, an image of that name.
fn is_own_program(word: &str) -> bool {
    let file = file_name(word);
    let bare = file.split(['@', '=', ':', '[']).next().unwrap_or_default();
    matches!(bare, "pml" | "pml.exe" | "pml.js" | PACKAGE)
}

fn is_launcher(command: &str) -> bool {
    let file = file_name(command).to_ascii_lowercase();
    let bare = file.strip_suffix(".exe").or_else(|| file.strip_suffix(".cmd")).unwrap_or(&file);
    LAUNCHERS.contains(&bare)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or_default()
}

/// The endpoint of a gateway: on its usual port of this machine, or anywhere under its own name.
fn is_own_url(name: &str, url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let here = ["127.0.0.1", "localhost", "[::1]"];
    let is_usual =
        host.rsplit_once(':').is_some_and(|(host, port)| here.contains(&host) && port == USUAL_PORT);
    path == "mcp" && (is_usual || name.eq_ignore_ascii_case("pml"))
}

/// The words that start the package again whose program is at `path`, where a package runner fetched it into a cache
/// that may be emptied; `None` for a program that is installed.
pub fn package_command(path: &str, is_windows: bool) -> Option<Vec<String>> {
    let parts: Vec<&str> = path.split(['/', '\\']).collect();
    let has = |name: &str| parts.contains(&name);
    let runner: &[&str] = match () {
        () if has("_npx") => &["npx", "-y"],
        () if parts.iter().any(|part| part.starts_with("bunx-")) => &["bunx"],
        () if has("pnpm") && has("dlx") => &["pnpm", "dlx"],
        () if has("uv") && parts.iter().any(|part| is_uv_cache(part)) => &["uvx"],
        () if has("pipx") && (has(".cache") || has("Caches")) => &["pipx", "run"],
        () => return None,
    };
    // Of these runners, Node's are scripts on Windows, which only the command interpreter starts.
    let is_script = is_windows && matches!(runner[0], "npx" | "pnpm");
    let shell: &[&str] = if is_script { &["cmd", "/c"] } else { &[] };
    Some([shell, runner, &[PACKAGE]].concat().into_iter().map(str::to_owned).collect())
}

/// The directories of uv's cache that environments of `uvx` lie in, such as `archive-v0`.
fn is_uv_cache(part: &str) -> bool {
    ["archive-v", "environments-v", "builds-v"].iter().any(|start| part.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> (String, Vec<String>) {
        let mut words = text.split(' ').map(str::to_owned);
        (words.next().unwrap(), words.collect())
    }

    #[test]
    fn commands_of_pml_are_recognised_and_others_are_not() {
        for own in [
            "pml stdio",
            "/usr/local/bin/pml stdio --expose full",
            r"C:\tools\pml.exe stdio",
            "npx procedural-memory-layer stdio",
            "npx -y procedural-memory-layer@0.9.1 stdio",
            "/opt/node/bin/npx --yes procedural-memory-layer@latest stdio",
            "cmd /c npx -y procedural-memory-layer stdio",
            "npx.cmd -y -p procedural-memory-layer pml stdio",
            "bunx procedural-memory-layer stdio",
            "pnpm dlx procedural-memory-layer stdio",
            "node /opt/lib/node_modules/procedural-memory-layer/pml.js stdio",
            "uvx procedural-memory-layer stdio",
            "uvx --from procedural-memory-layer==0.9 pml stdio",
            "uv tool run procedural-memory-layer stdio",
            "pipx run procedural-memory-layer stdio",
            "env PML_HOME=/x pml stdio",
            "docker run -i --rm ghcr.io/team/pml:1 stdio",
        ] {
            let (command, args) = words(own);
            assert!(is_own_command(&command, &args), "{own}");
        }
        for other in [
            "pml serve",
            "notes-mcp --dir /srv/pml stdio",
            "npx some-server stdio",
            "uvx pmlx stdio",
            "npx -y stdio procedural-memory-layer",
            "pml-notes stdio",
        ] {
            let (command, args) = words(other);
            assert!(!is_own_command(&command, &args), "{other}");
        }
    }

    #[test]
    fn addresses_of_gateways_are_recognised_and_others_are_not() {
        assert!(is_own_url("pml", "http://127.0.0.1:7717/mcp"));
        assert!(is_own_url("memory", "http://localhost:7717/mcp/"));
        assert!(is_own_url("PML", "https://pml.example/mcp?x=1"));
        assert!(!is_own_url("memory", "https://pml.example/mcp"));
        assert!(!is_own_url("pml", "https://notes.example/sse"));
        assert!(!is_own_url("other", "http://127.0.0.1:9000/mcp"));
    }

    #[test]
    fn a_program_in_a_cache_is_started_by_its_package_runner() {
        let command =
            |path: &str, is_windows: bool| package_command(path, is_windows).map(|words| words.join(" "));
        let npx = "/home/a/.npm/_npx/3f2c/node_modules/@procedural-memory-layer/pml-linux-x64/pml";
        assert_eq!(command(npx, false).as_deref(), Some("npx -y procedural-memory-layer"));
        let npx = r"C:\Users\a\AppData\Local\npm-cache\_npx\3f2c\node_modules\@procedural-memory-layer\pml-win32-x64\pml.exe";
        assert_eq!(command(npx, true).as_deref(), Some("cmd /c npx -y procedural-memory-layer"));
        let uvx = "/home/a/.cache/uv/archive-v0/Xk3/bin/pml";
        assert_eq!(command(uvx, false).as_deref(), Some("uvx procedural-memory-layer"));
        let installed = [
            "/usr/local/bin/pml",
            "/home/a/.local/share/uv/tools/procedural-memory-layer/bin/pml",
            "/home/a/.local/share/pipx/venvs/procedural-memory-layer/bin/pml",
            "/opt/node/lib/node_modules/@procedural-memory-layer/pml-linux-x64/pml",
        ];
        assert!(installed.iter().all(|path| package_command(path, false).is_none()));
    }
}
