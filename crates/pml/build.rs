//! Puts the commit into `pml --version`, where there is one to be known.

use std::process::Command;

fn main() {
    let commit = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let commit =
        commit.ok().filter(|out| out.status.success()).and_then(|out| String::from_utf8(out.stdout).ok());
    let version = match commit {
        Some(commit) => format!("{} ({})", env!("CARGO_PKG_VERSION"), commit.trim()),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    };
    println!("cargo::rustc-env=PML_VERSION={version}");
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/refs");
}
