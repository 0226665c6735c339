//! The conformance suites, played against the gateway and compared with `tests/conformance/table.md`.

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
