//! The conformance suites, played against the gateway and compared with `tests/conformance/table.md`, and against PML as
//! a client.

use std::process::Command;

use crate::harness::{material, node};

/// Both eras with a server reached over HTTP, and the stateful one with a server that is a child process.
const SETUPS: &str = "modern-http,legacy-stdio-newest";

#[test]
fn the_suites_say_of_the_gateway_what_the_table_says() {
    let output = Command::new(node())
        .arg(material("conformance/compare.mjs"))
        .args(["--pml", env!("CARGO_BIN_EXE_pml"), "--check", SETUPS])
        .output()
        .unwrap();
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}{}\nif the gateway is right, write the table anew: `cargo xtask conformance`",
        told(&output.stdout),
        told(&output.stderr)
    );
    assert!(told(&output.stdout).contains("modern-http: 131 scenarios"), "{}", told(&output.stdout));
}

#[test]
fn the_suite_for_signing_in_finds_nothing_wrong() {
    let results = tempfile::tempdir().unwrap();
    let client = format!("{} {}", node(), material("conformance/client.mjs").display());
    let output = Command::new(node())
        .arg(material("node_modules/@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--suite", "auth", "--timeout", "120000", "--command", &client, "--output-dir"])
        .arg(results.path())
        .env("PML", env!("CARGO_BIN_EXE_pml"))
        .output()
        .unwrap();
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let total = told.lines().find(|line| line.starts_with("Total: ")).unwrap_or(&told);
    assert!(total.contains(" 0 failed, 0 warnings"), "{told}");
    assert_eq!(told.lines().filter(|line| line.starts_with("✓ auth/")).count(), 14, "{told}");
}
