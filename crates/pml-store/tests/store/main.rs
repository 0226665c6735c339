//! The store on real files, from one handle, from several, and from several processes.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

mod catalogue;
mod opening;
mod processes;
mod state;

use std::path::PathBuf;

use pml_model::{Definition, Digest, Principal, ServerName};
use pml_store::{Listing, ServerAbout, Store};
use serde_json::value::RawValue;

/// A store in a directory of its own, which goes with it.
struct Fixture {
    store: Store,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    Fixture { store: Store::open(&path).unwrap(), path, _directory: directory }
}

fn me() -> Principal {
    Principal::local()
}

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn definition(text: &str) -> Definition {
    Definition::parse(raw(text)).unwrap()
}

/// A tool with a name and a description.
fn tool(name: &str, description: &str) -> Definition {
    definition(&serde_json::json!({ "name": name, "description": description }).to_string())
}

fn listing(name: &str, tools: Vec<Definition>) -> Listing {
    Listing { server: server(name), launch: Digest::of(b"launch"), about: ServerAbout::default(), tools }
}
