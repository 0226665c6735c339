//! The overlay against the real `fs`, for generated sequences of calls.

use std::path::Path;

use pml_model::json::raw;
use serde_json::{Value, json};

use super::OverlayBase;
use crate::builtin::{BuiltinServer, BuiltinSettings, servers};
use crate::config::OwnFiles;

/// Random numbers that follow from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.roll(of.len() as u64)).unwrap()]
    }
}

const PATHS: [&str; 14] = [
    "a.txt",
    "b.txt",
    "d",
    "d/a.txt",
    "d/e",
    "d/e/x.txt",
    "new/deep/y.txt",
    "a.txt/below",
    ".",
    "link",
    "link/a.txt",
    "loop",
    "gone",
    "secret/own.txt",
];

fn call(dice: &mut Dice) -> (&'static str, Value) {
    let path = dice.pick(&PATHS);
    match dice.roll(10) {
        0 => ("create", json!({ "path": path, "content": "created" })),
        1 => ("create", json!({ "path": path })),
        2 => ("write", json!({ "path": path, "content": format!("w{}\nsecond", dice.roll(5)) })),
        3 => ("write", json!({ "path": path, "content": "more é", "append": true })),
        4 => ("delete", json!({ "path": path })),
        5 => ("delete", json!({ "path": path, "recursive": true })),
        6 => ("read", json!({ "path": path, "offset": dice.roll(3), "limit": 1 + dice.roll(9) })),
        7 => ("stat", json!({ "path": path })),
        8 => ("list", json!({ "path": path, "recursive": dice.roll(2) == 0, "limit": 1 + dice.roll(20) })),
        _ => (
            "search",
            json!({ "path": path, "contains": dice.pick(&["w", "second", "old"]), "pattern": dice.pick(&["*.txt", "**/*.txt"]) }),
        ),
    }
}

fn prepare(root: &Path) {
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    std::fs::create_dir_all(root.join("secret")).unwrap();
    std::fs::write(root.join("secret/own.txt"), "PML's").unwrap();
    std::fs::write(root.join("a.txt"), "old a").unwrap();
    std::fs::write(root.join("d/a.txt"), "old d\nsecond").unwrap();
    std::os::unix::fs::symlink("d", root.join("link")).unwrap();
    std::os::unix::fs::symlink("loop", root.join("loop")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("gone")).unwrap();
}

fn server(root: &Path) -> BuiltinServer {
    let own_files = OwnFiles { files: vec![root.join("secret/own.txt")], ..OwnFiles::default() };
    let settings =
        BuiltinSettings { fs_root: Some(root.to_owned()), own_files, ..BuiltinSettings::default() };
    servers(&settings).unwrap().into_iter().find(|server| server.name() == "fs").unwrap()
}

/// A result without what depends on the file system: times, and the sizes of directories and links.
fn comparable(result: &str) -> Value {
    let result: Value = serde_json::from_str(result).unwrap();
    let mut told = match &result["structuredContent"] {
        Value::Null => return json!(result["content"][0]["text"].as_str().unwrap()),
        told => told.clone(),
    };
    if told["type"] != "file" && !told["type"].is_null() {
        told["size"] = Value::Null;
    }
    if let Some(members) = told.as_object_mut() {
        members.remove("modified");
    }
    told
}

fn tree(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(path) = open.pop() {
        for entry in std::fs::read_dir(&path).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let content = if kind.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            found.push(format!("{:?} {kind:?} {content:?}", entry.path().strip_prefix(root).unwrap()));
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn every_sequence_of_calls_has_the_results_of_the_real_files() {
    let mut compared = 0;
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let (real, below) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        prepare(real.path());
        prepare(below.path());
        let before = tree(below.path());
        let (actual, base) = (server(real.path()), server(below.path()));
        let mut overlay = base.overlay(OverlayBase::Root).unwrap();
        let mut history = Vec::new();
        for _ in 0..12 {
            let (tool, arguments) = call(&mut dice);
            let expected = actual.call(tool, &raw(&arguments)).await.unwrap();
            let told = overlay.call(tool, &raw(&arguments)).unwrap().result;
            history.push(format!("{tool} {arguments}"));
            assert_eq!(
                comparable(told.get()),
                comparable(expected.get()),
                "seed {seed}, overlay first, after\n{}",
                history.join("\n")
            );
            compared += 1;
        }
        assert_eq!(tree(below.path()), before, "the files on disk stay as they are");
    }
    assert_eq!(compared, 400 * 12);
}

#[test]
fn over_nothing_only_what_was_written_is_known() {
    let root = tempfile::tempdir().unwrap();
    prepare(root.path());
    let mut overlay = server(root.path()).overlay(OverlayBase::Nothing).unwrap();
    let mut ask = |tool: &str, arguments: Value| {
        overlay.call(tool, &raw(&arguments)).map(|answer| comparable(answer.result.get()))
    };
    assert_eq!(ask("read", json!({ "path": "a.txt" })), None, "nobody knows what is in it");
    assert_eq!(
        ask("write", json!({ "path": "a.txt", "content": "new" })),
        Some(json!({ "path": "a.txt", "size": 3 }))
    );
    assert_eq!(ask("read", json!({ "path": "a.txt" })).unwrap()["content"], "new");
    assert_eq!(ask("list", json!({})).unwrap()["entries"].as_array().unwrap().len(), 1);
    assert_eq!(ask("delete", json!({ "path": "a.txt" })), Some(json!({ "deleted": true })));
    let text = ask("read", json!({ "path": "a.txt" })).unwrap();
    assert_eq!(text, "`a.txt` does not exist; use `list` to see what does");
    let own = ask("write", json!({ "path": "secret/own.txt", "content": "x" })).unwrap();
    assert!(own.as_str().unwrap().contains("one of PML's own files"), "{own}");
    let outside = ask("write", json!({ "path": "../x", "content": "x" })).unwrap();
    assert!(outside.as_str().unwrap().contains("does not start at the root"), "{outside}");
}
