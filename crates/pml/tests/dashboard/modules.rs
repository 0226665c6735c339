//! The modules of the pages: those that need no browser in Node, and all of them in a browser on a made-up gateway.

use std::process::Command;

use crate::harness::{material, node};

/// Bytes of all files that a browser may load, uncompressed.
const BUNDLE_BYTES: u64 = 1_000_000;

/// Runs a file of tests by Node's own runner.
#[track_caller]
fn tests_pass(file: &str) {
    let output = Command::new(node())
        .args(["--test", "--test-reporter=spec"])
        .arg(material(&format!("dashboard/{file}")))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn parts_that_need_no_browser() {
    tests_pass("parts.test.mjs");
    tests_pass("views.test.mjs");
}

#[test]
fn every_page_on_a_made_up_gateway() {
    tests_pass("pages.test.mjs");
}

#[test]
fn the_libraries_are_those_of_the_packages() {
    let output = Command::new(node()).arg(material("dashboard/vendor.mjs")).arg("--check").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_pages_are_small() {
    let page = material("../crates/pml/src/dashboard/page");
    let (mut folders, mut bytes) = (vec![page], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => bytes += entry.metadata().unwrap().len(),
            }
        }
    }
    assert!(bytes <= BUNDLE_BYTES, "{bytes} bytes");
}
