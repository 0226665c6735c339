//! Tests of the configuration from outside: files in, [`Config`] or error out.

mod clashes;
mod complaints;
mod embedding;
mod imports;
mod limits;
mod permissions;
mod prices;
mod projects;
mod reference;
mod starting;
mod store;
mod telemetry;

use std::fs;
use std::path::Path;

use expect_test::expect;

use super::*;

/// A home directory with files in it.
struct Home {
    dir: tempfile::TempDir,
    env: Env,
}

impl Home {
    fn new(files: &[(&str, &str)]) -> Home {
        let dir = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(dir.path()).unwrap();
        let env = Env::from_iter([
            ("HOME", home.to_str().unwrap()),
            ("PML_HOME", home.join("pml").to_str().unwrap()),
            ("PATH", "/usr/bin:/bin"),
            ("LC_TIME", "C"),
            ("TOKEN", "s3cret"),
            ("AWS_SECRET_ACCESS_KEY", "not yours"),
        ]);
        let home = Home { dir, env };
        fs::create_dir_all(home.path("work/sub")).unwrap();
        for (file, text) in files {
            home.write(file, text);
        }
        home
    }

    fn path(&self, below: &str) -> PathBuf {
        fs::canonicalize(self.dir.path()).unwrap().join(below)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn paths(&self) -> Paths {
        Paths::discover(&self.env).unwrap()
    }

    fn load(&self) -> Result<Config, Error> {
        load(&self.paths(), &self.path("work/sub"), &self.env)
    }

    fn shown(&self, path: &Path) -> String {
        self.env.display_path(path)
    }
}

fn user(text: &str) -> Home {
    Home::new(&[("pml/pml.toml", text)])
}

fn names(config: &Config) -> Vec<&str> {
    config.servers.iter().map(|server| server.name.as_str()).collect()
}

fn problems(config: &Config) -> String {
    config.findings.problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn without_files_the_defaults_hold() {
    let config = Home::new(&[]).load().unwrap();
    assert_eq!(config.expose, Expose::Meta);
    assert_eq!(config.serve.listen.to_string(), "127.0.0.1:7717");
    assert_eq!(config.names, ToolNaming::Qualified);
    assert!(
        config.servers.is_empty()
            && config.findings.problems.is_empty()
            && config.findings.warnings.is_empty()
    );
    let looked_for: Vec<_> = config.findings.sources.iter().map(|source| &source.digest).collect();
    assert_eq!(looked_for, [&None, &None, &None], "the user's file, its rules and the list of trusted ones");
    assert_eq!(config.permissions, []);
    assert_eq!((config.limits, config.runs), (LimitSettings::default(), RunSettings::default()));
}

#[test]
fn every_setting_is_read() {
    let home = user(
        r#"
expose = ["fs:read", "report"]
names = "plain"
import = []
[servers.github]
command = "npx"
args = ["-y", "server@1.0.0"]
env = { GITHUB_TOKEN = "${TOKEN}" }
cwd = "~/work"
description = "issues"
start = "eager"
idle_stop = "10m"
call_timeout = 5
start_timeout = "1500ms"
trust = "annotations"
definitions = "follow"
[servers.local]
command = "./bin/server"
enabled = false
[servers.search]
url = "https://example.com/mcp?key=${TOKEN}"
headers = { X-Key = "${file:~/key}" }
bearer = "${TOKEN}"
[builtin.fs]
root = "~/work"
[builtin.http]
hosts = ["*.example.com"]
[builtin.math]
enabled = false
[serve]
listen = "[::1]:8000"
hosts = ["pml.example.com"]
origins = ["https://app.example.com/"]
[clients.claude]
expose = "full"
"#,
    );
    home.write("key", "k3y\n");
    let config = home.load().unwrap();
    assert_eq!(problems(&config), "");
    assert_eq!(config.expose_to("claude"), &Expose::Full);
    assert_eq!(config.expose_to("another"), &Expose::Only(vec!["fs:read".into(), "report".into()]));
    assert_eq!(config.builtin.fs_root, Some(home.path("work")));
    assert_eq!(config.builtin.http_hosts, ["*.example.com"]);
    assert_eq!(config.builtin.disabled, ["math"]);
    assert_eq!(config.serve.listen.to_string(), "[::1]:8000");
    assert_eq!(config.serve.origins, ["https://app.example.com"]);
    assert_eq!(config.names, ToolNaming::Plain);

    let [github, local, search] = &config.servers[..] else { panic!("{:?}", names(&config)) };
    assert_eq!((github.start, github.enabled), (StartPolicy::Eager, true));
    assert_eq!(github.idle_stop, Some(Duration::from_secs(600)));
    assert_eq!(github.call_timeout, Duration::from_secs(5));
    assert_eq!(github.start_timeout, Duration::from_millis(1500));
    assert_eq!(
        github.transport,
        ServerTransport::Stdio {
            command: "npx".into(),
            args: vec!["-y".into(), "server@1.0.0".into()],
            env: BTreeMap::from([("GITHUB_TOKEN".into(), "s3cret".into())]),
            cwd: Some(home.path("work")),
        }
    );
    assert!(github.trusts_annotations && !search.trusts_annotations);
    assert_eq!(
        (github.definitions, search.definitions),
        (DefinitionPolicy::Follow, DefinitionPolicy::Pinned)
    );
    assert!(!local.enabled);
    let ServerTransport::Stdio { command, .. } = &local.transport else { panic!() };
    assert_eq!(Path::new(command), home.path("pml/bin/server"), "found from where the config stands");
    let ServerTransport::Http { url, headers } = &search.transport else { panic!() };
    assert_eq!(url.as_str(), "https://example.com/mcp?key=s3cret");
    assert_eq!(headers["X-Key"].reveal(), "k3y");
    assert_eq!(headers["Authorization"].reveal(), "Bearer s3cret");
    let sources: Vec<_> = config.findings.sources.iter().map(|source| home.shown(&source.path)).collect();
    assert_eq!(sources, ["~/pml/pml.toml", "~/pml/mcp-permissions.yaml", "~/pml/trust.json", "~/key"]);
}

fn trust_all(home: &Home, dir: &str) {
    for project in trust::ProjectConfig::find(&home.path(dir)).unwrap() {
        trust::trust(&home.paths(), &project).unwrap();
    }
}
