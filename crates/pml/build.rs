//! Puts the commit into `pml --version`, where there is one to be known, and the files of the dashboard into the binary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// The folder with the files of the dashboard.
const PAGE: &str = "src/dashboard/page";

fn main() -> io::Result<()> {
    embed_page()?;
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
    Ok(())
}

/// Writes a table of all files of the dashboard: name below [`PAGE`], content.
fn embed_page() -> io::Result<()> {
    println!("cargo::rerun-if-changed={PAGE}");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join(PAGE);
    let mut files = Vec::new();
    collect(&root, "", &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for name in &files {
        let path = root.join(name);
        writeln!(table, "    ({name:?}, include_bytes!({path:?}).as_slice()),")
            .expect("a text takes all that is written");
    }
    table.push(']');
    fs::write(PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("page.rs"), table)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{name}/"), files)?;
        } else {
            files.push(name);
        }
    }
    Ok(())
}
