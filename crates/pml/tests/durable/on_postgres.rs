//! A part of these tests once more, with homes whose database is on a PostgreSQL server. `PML_TEST_POSTGRES` runs all of
//! them so.

use std::process::Command;

use crate::server;

/// The tests that are run, as parts of their names.
const SOME: &[&str] = crate::ON_POSTGRES;

#[test]
fn some_of_these_tests_hold_on_postgresql() {
    // They run there already.
    if std::env::var_os("PML_TEST_POSTGRES").is_some() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(SOME)
        .args(["--test-threads", "2"])
        .env("PML_TEST_POSTGRES", server::shared_directory())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let ran: Vec<&str> =
        told.lines().filter_map(|line| line.strip_prefix("test ")?.split(" ... ").next()).collect();
    for part in SOME {
        assert!(ran.iter().any(|name| name.contains(part)), "no test has `{part}` in its name: {told}");
    }
}
