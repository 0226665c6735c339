//! Development tasks: `cargo xtask` lists them.
//!
//! Installs everything the tests need beyond a Rust toolchain, from package registries by package name, into `tests/`.

mod graph;
mod model;
mod modules;
mod soak;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const USAGE: &str = "cargo xtask CHORE

  test [ARGS]   install what the tests need, then run all of them (ARGS go to the test binaries)
  install       install what the tests need
  soak [NAME [COUNT]]
                try what the tests try a sample of in full, or so many times
  lint          check formatting and lints
  conformance   measure the conformance table anew and write it
  graph         draw which module imports which, into docs/modules.md
  dist          build what is shipped, target/dist/pml, and check how large it is
  package       make the packages of what is shipped, into target/packages
  deny          check licences, sources and bans of the dependencies with cargo-deny
  model         make the weights of the embedding model (--check: compare them with those that are there;
                --from DIR: pack a trained model into target/model)";

type Done = Result<(), String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => test(&rest),
        Some("install") => install(),
        Some("soak") => soak::soak(&rest),
        Some("lint") => lint(),
        Some("conformance") => conformance(),
        Some("graph") => graph::draw(&root()),
        Some("dist") => dist(),
        Some("package") => package(),
        Some("deny") => deny(),
        Some("model") if rest.is_empty() => model::make(model::Then::Write),
        Some("model") if rest == ["--check"] => model::make(model::Then::Compare),
        Some("model") if rest.len() == 2 && rest[0] == "--from" => model::pack_trained(Path::new(rest[1])),
        Some("model") => Err(format!("`model` takes `--check`, or `--from` with a directory\n\n{USAGE}")),
        Some(other) => Err(format!("there is no chore `{other}`\n\n{USAGE}")),
        None => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            say(&reason);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "a chore talks to the one who runs it")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_owned(), Path::to_owned)
}

fn test(arguments: &[&str]) -> Done {
    install()?;
    lint()?;
    let mut cargo = cargo();
    cargo.args(["test", "--workspace", "--quiet", "--no-fail-fast"]);
    if std::env::var_os("CI").is_some() {
        cargo.env("PML_FUZZ_SECONDS", "60");
    }
    if !arguments.is_empty() {
        cargo.arg("--").args(arguments);
    }
    run(&mut cargo)
}

fn lint() -> Done {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
}

fn conformance() -> Done {
    install()?;
    run(cargo().args(["build", "--quiet", "--package", "pml"]))?;
    let tests = root().join("tests");
    let program = target().join("debug/pml");
    let mut compare = Command::new(node(&tests));
    compare.arg("conformance/compare.mjs").arg("--pml").arg(program).arg("--write").current_dir(&tests);
    run(&mut compare)
}

/// Maximum size of the shipped program; 22 MiB of it are the weights of the embedding model.
const SHIPPED_MIB: f64 = 48.0;

fn dist() -> Done {
    let mut build = cargo();
    build.args(["rustc", "--profile", "dist", "--package", "pml", "--bin", "pml", "--"]);
    // Only this target is known to use the linker that comes with Rust. It merges identical functions, except for those
    // of the C libraries, which compare addresses of functions.
    if cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        build.arg("-Clink-arg=-Wl,--icf=safe");
    }
    run(&mut build)?;
    let program = target().join("dist").join(format!("pml{}", std::env::consts::EXE_SUFFIX));
    let bytes = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?.len();
    let size = bytes as f64 / f64::from(1 << 20);
    say(&format!("{}: {size:.1} MiB", program.display()));
    if size > SHIPPED_MIB {
        Err(format!("it is larger than {SHIPPED_MIB} MiB: find out why"))
    } else {
        Ok(())
    }
}

/// Makes the packages for this machine's target.
fn package() -> Done {
    dist()?;
    let host = host_target()?;
    let program = target().join("dist").join(format!("pml{}", std::env::consts::EXE_SUFFIX));
    let mut make = Command::new("python3");
    make.arg(root().join("packaging/package.py")).arg("--program").arg(program);
    make.args(["--target", &host, "--out"]).arg(target().join("packages"));
    run(&mut make)
}

/// Installs cargo-deny into the target directory, which takes minutes, and runs what needs no advisory database.
fn deny() -> Done {
    let tools = target().join("tools");
    let program = tools.join("bin").join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        run(cargo().args(["install", "--locked", "--quiet", "cargo-deny", "--root"]).arg(&tools))?;
    }
    run(Command::new(program)
        .args(["--all-features", "check", "bans", "licenses", "sources"])
        .current_dir(root()))
}

/// The target that Rust builds for here, such as `x86_64-unknown-linux-gnu`.
fn host_target() -> Result<String, String> {
    let said = Command::new("rustc").arg("-vV").output().map_err(|error| format!("rustc: {error}"))?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` names no host".to_owned())
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Installs the Node packages and the Python environment unless the pinned versions are installed.
fn install() -> Done {
    let tests = root().join("tests");
    have("npm", &["nodejs", "npm"])?;
    have("python3", &["python3", "python3-venv", "python3-pip"])?;
    have("git", &["git"])?;
    have("curl", &["curl"])?;
    have("chromium", &["chromium"])?;
    // The server itself is not on the path; the tests find it by its directory.
    if !Path::new("/usr/lib/postgresql").exists() {
        have("postgresql", &["postgresql"])?;
    }
    once(&tests.join("package.json"), &tests.join("node_modules"), || {
        run(Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(&tests))?;
        // Newer npm versions run no install scripts by default; this one selects the binary for this machine.
        if Command::new(node(&tests)).arg("--version").output().is_ok_and(|out| out.status.success()) {
            return Ok(());
        }
        run(Command::new("node")
            .arg("installArchSpecificPackage")
            .current_dir(tests.join("node_modules/node")))
    })?;
    once(&tests.join("requirements.txt"), &tests.join(".venv"), || {
        run(Command::new("python3").args(["-m", "venv", ".venv"]).current_dir(&tests))?;
        run(Command::new(tests.join(".venv/bin/pip"))
            .args(["install", "--quiet", "-r", "requirements.txt"])
            .current_dir(&tests))
    })
}

fn node(tests: &Path) -> PathBuf {
    tests.join("node_modules/node/bin/node")
}

/// Runs `make` unless `made` was made from the current `from`; a stamp file inside `made` records that.
fn once(from: &Path, made: &Path, make: impl FnOnce() -> Done) -> Done {
    let wanted = std::fs::read_to_string(from).map_err(|error| format!("{}: {error}", from.display()))?;
    let stamp = made.join(".pml-installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    say(&format!("installing {} for the tests", made.display()));
    make()?;
    std::fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Ensures that a program is installed; installs the Debian packages where possible.
fn have(program: &str, packages: &[&str]) -> Done {
    if Command::new(program).arg("--version").output().is_ok() {
        return Ok(());
    }
    let missing = format!("`{program}` is needed by the tests; install it ({})", packages.join(", "));
    say(&format!("installing {}", packages.join(", ")));
    run(Command::new("apt-get").arg("update")).map_err(|_| missing.clone())?;
    run(Command::new("apt-get").args(["install", "--yes"]).args(packages)).map_err(|_| missing)
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

fn run(command: &mut Command) -> Done {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed with {status}")) }
}
