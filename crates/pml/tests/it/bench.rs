//! `pml bench` hands everything to the `pml-bench` beside it, or says how to build one.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with a `pml` of its own, which may or may not have a `pml-bench` beside it.
struct Installed {
    dir: tempfile::TempDir,
}

impl Installed {
    fn new() -> Installed {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(env!("CARGO_BIN_EXE_pml"), dir.path().join("pml")).unwrap();
        Installed { dir }
    }

    fn pml(&self) -> PathBuf {
        self.dir.path().join("pml")
    }

    /// Puts a script in the place of the benchmarks.
    fn with_pml_bench(self, script: &str) -> Installed {
        let program = self.dir.path().join("pml-bench");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    fn run(&self, arguments: &[&str]) -> Output {
        command(&self.pml(), self.dir.path()).args(arguments).output().unwrap()
    }
}

fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PML_HOME", home).env("NO_COLOR", "1").current_dir(home);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn without_pml_bench_it_says_how_to_build_it() {
    let installed = Installed::new();
    let refused = installed.run(&["bench", "gateway", "--calls", "20"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.starts_with("error: there is no program `pml-bench` beside this `pml`"), "{said}");
    assert!(said.contains("cargo build --release --package pml-bench"), "{said}");
    let json = installed.run(&["--json", "bench", "gateway"]);
    assert_eq!(json.status.code(), Some(2));
    let error: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(error["error"]["code"], "CONFIG", "{error}");
}

#[test]
fn help_is_there_without_pml_bench() {
    let installed = Installed::new();
    for arguments in [&["bench", "--help"][..], &["bench", "-h"], &["help", "bench"]] {
        let help = installed.run(arguments);
        assert_eq!(help.status.code(), Some(0), "{arguments:?}");
        let said = text(&help.stdout);
        assert!(said.contains("Usage: pml bench"), "{arguments:?}: {said}");
        assert!(
            said.contains("cargo build --release --package pml --package pml-bench"),
            "{arguments:?}: {said}"
        );
    }
}

#[test]
fn arguments_and_the_exit_code_pass_through() {
    let script = r#"for argument in "$@"; do echo "[$argument]"; done; exit 7"#;
    let installed = Installed::new().with_pml_bench(script);
    for (given, passed) in [
        (&["bench", "gateway", "--calls", "20"][..], "[gateway]\n[--calls]\n[20]\n"),
        (&["bench", "--help"], "[--help]\n"),
        (&["bench", "gateway", "--help"], "[gateway]\n[--help]\n"),
        (
            &["--json", "-vv", "bench", "ingest", "--data", "a b"],
            "[--json]\n[-v]\n[-v]\n[ingest]\n[--data]\n[a b]\n",
        ),
        (&["bench", "dag", "--json"], "[dag]\n[--json]\n"),
        (&["bench"], ""),
    ] {
        let ended = installed.run(given);
        assert_eq!((ended.status.code(), text(&ended.stdout).as_str()), (Some(7), passed), "{given:?}");
    }
}

#[test]
fn it_becomes_pml_bench_so_that_signals_reach_it() {
    let installed = Installed::new().with_pml_bench("echo $$; kill -TERM $$");
    let mut started = command(&installed.pml(), installed.dir.path());
    let started = started.arg("bench").arg("gateway").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let id = started.id();
    let ended = started.wait_with_output().unwrap();
    assert_eq!(text(&ended.stdout).trim(), id.to_string());
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended.status), Some(15));
}
