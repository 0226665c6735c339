//! The packages: made from the built program, installed from file as users do, and started through what they install.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Home, material};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const FOREIGN_TARGET: &str = "aarch64-unknown-linux-gnu";
const NAME: &str = "procedural-memory-layer";
const THIRD_PARTY: &str = "THIRD-PARTY-LICENSES.txt";

/// Runs a command to its end; gives its standard output.
#[track_caller]
fn output(command: &mut Command) -> String {
    let done = command.stdin(Stdio::null()).output().unwrap();
    let [stdout, stderr] = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(done.status.success(), "{command:?}: {stdout}{stderr}");
    stdout
}

/// Makes the packages of the built program below `home`, beside those of a program for another processor.
fn make(home: &Home) -> PathBuf {
    let (own, foreign) = (home.path("packages"), home.path("foreign"));
    let pml = Path::new(env!("CARGO_BIN_EXE_pml"));
    let program = home.path("foreign-pml");
    std::fs::write(&program, "no program of this machine").unwrap();
    let making = |program: &Path, target: &str, out: &Path| {
        let mut making = Command::new("python3");
        making.arg(material("../packaging/package.py")).args(["--level", "1", "--target", target]);
        making.arg("--program").arg(program).arg("--out").arg(out);
        making
    };
    output(making(&program, FOREIGN_TARGET, &foreign).arg("--foreign").arg(pml));
    output(making(pml, TARGET, &own).arg("--also").arg(&foreign));
    own
}

/// The only file of a package directory whose name starts and ends like this.
fn find(packages: &Path, start: &str, end: &str) -> PathBuf {
    let entries = std::fs::read_dir(packages).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut found = entries.filter(|path| name(path).starts_with(start) && name(path).ends_with(end));
    let one = found.next().unwrap_or_else(|| panic!("{start}…{end}"));
    assert_eq!(found.next(), None);
    one
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn every_package_brings_a_program_that_starts() {
    let home = Home::new("");
    let version = home.run(&["--version"]).stdout;
    let packages = make(&home);
    let number = env!("CARGO_PKG_VERSION");

    output(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&packages));

    // What was made elsewhere is checked by the same sums.
    let sums = std::fs::read_to_string(packages.join("SHA256SUMS")).unwrap();
    for foreign in [
        format!("pml-{number}-{FOREIGN_TARGET}.tar.gz"),
        format!("{}-{number}-py3-none-manylinux_2_17_aarch64.whl", NAME.replace('-', "_")),
        format!("{NAME}-pml-linux-arm64-{number}.tgz"),
    ] {
        assert!(sums.contains(&foreign), "{foreign}: {sums}");
    }
    let foreign = packages.join(format!("pml-{number}-{FOREIGN_TARGET}.tar.gz"));
    let inside = output(Command::new("tar").arg("-tzf").arg(foreign));
    for installed in ["pml", "pml.1", "completions/pml.bash", "completions/_pml", "completions/pml.fish"] {
        assert!(inside.lines().any(|line| line.ends_with(&format!("/{installed}"))), "{installed}: {inside}");
    }

    let unpacked = home.path("unpacked");
    std::fs::create_dir(&unpacked).unwrap();
    let folder = format!("pml-{number}-{TARGET}");
    let archive = packages.join(format!("{folder}.tar.gz"));
    output(Command::new("tar").arg("-xzf").arg(&archive).current_dir(&unpacked));
    let unpacked = unpacked.join(folder);
    assert_eq!(output(Command::new(unpacked.join("pml")).arg("--version")), version);
    let completions = ["completions/pml.bash", "completions/_pml", "completions/pml.fish"];
    for document in ["README.md", "LICENSE", "pml.1"].iter().chain(&completions) {
        assert!(std::fs::metadata(unpacked.join(document)).unwrap().len() > 100, "{document}");
    }
    let licences = std::fs::read_to_string(unpacked.join(THIRD_PARTY)).unwrap();
    // A crate with a licence file, one without, C code in a crate, a module of the pages, and the model.
    for carried in ["tokio 1.", "oxc_parser ", "Fabrice Bellard", "preact ", "all-MiniLM-L6-v2"] {
        assert!(licences.contains(carried), "{carried}");
    }

    // Without the registry: the other platforms' packages are optional and cannot be had here.
    let project = home.path("node");
    std::fs::create_dir(&project).unwrap();
    std::fs::write(project.join("package.json"), "{}").unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--omit=optional", "--no-audit", "--no-fund", "--cache"]);
    npm.arg(home.path("npm-cache")).current_dir(&project);
    npm.arg(find(&packages, &format!("{NAME}-{number}"), ".tgz"));
    npm.arg(find(&packages, &format!("{NAME}-pml-linux-x64"), ".tgz"));
    output(&mut npm);
    let installed = project.join("node_modules/.bin/pml");
    assert_eq!(output(Command::new(&installed).arg("--version")), version);
    // The launcher passes the status on, and says what is missing.
    assert_eq!(
        Command::new(&installed).arg("nonsense").stderr(Stdio::null()).status().unwrap().code(),
        Some(2)
    );
    std::fs::remove_dir_all(project.join(format!("node_modules/@{NAME}"))).unwrap();
    let without = Command::new(&installed).arg("--version").output().unwrap();
    assert_eq!(without.status.code(), Some(2));
    let told = String::from_utf8(without.stderr).unwrap();
    assert!(told.contains("pml-linux-x64 is not installed"), "{told}");

    let environment = home.path("venv");
    output(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    let wheel =
        find(&packages, &format!("{}-{number}-py3-none-manylinux_2_", NAME.replace('-', "_")), "_x86_64.whl");
    let mut pip = Command::new(environment.join("bin/pip"));
    output(pip.args(["install", "--quiet", "--no-index", "--disable-pip-version-check"]).arg(&wheel));
    assert_eq!(output(Command::new(environment.join("bin/pml")).arg("--version")), version);
    // What `uvx` starts for the entry of the registry.
    let launcher = environment.join("bin").join(NAME);
    assert_eq!(output(Command::new(&launcher).arg("--version")), version);
    assert_eq!(
        Command::new(&launcher).arg("nonsense").stderr(Stdio::null()).status().unwrap().code(),
        Some(2)
    );
    let about = output(Command::new(environment.join("bin/python")).args([
        "-c",
        "import importlib.metadata as m; print(m.metadata('procedural-memory-layer').get_payload())",
    ]));

    let formula = std::fs::read_to_string(packages.join("pml.rb")).unwrap();
    let sum = output(Command::new("sha256sum").arg(&archive));
    assert!(formula.contains(sum.split(' ').next().unwrap()), "{formula}");
    assert!(formula.contains("on_arm") && formula.contains("on_intel"), "{formula}");
    let entry: Value = serde_json::from_slice(&std::fs::read(packages.join("server.json")).unwrap()).unwrap();
    let name = entry["name"].as_str().unwrap();
    assert!(about.contains(&format!("mcp-name: {name}")), "{name}");
    for package in entry["packages"].as_array().unwrap() {
        assert_eq!(package["identifier"], NAME);
        assert_eq!(package["version"], number);
    }
}

#[test]
fn an_installation_checks_itself_and_leaves_nothing() {
    let home = Home::new("");
    let before = std::fs::read_dir(home.path("")).unwrap().count();
    let checked = home.run(&["--json", "self-check"]);
    assert_eq!(checked.code, 0, "{checked:?}");
    let findings: Vec<Value> = serde_json::from_str(&checked.stdout).unwrap();
    let said = |words: &str| findings.iter().any(|found| found["what"].as_str().unwrap().contains(words));
    for words in ["a program called a tool and returned 42", "a sandbox was ready", "has read all tools"] {
        assert!(said(words), "{words}: {findings:?}");
    }
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), before);
}
