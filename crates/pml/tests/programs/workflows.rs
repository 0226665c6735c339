//! The programs of `tests/programs`, each with what it must do; its `README.md` tells the form.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::gateway::{Gateway, Reply};
use crate::harness::{material, node, npm_server};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    args: Value,
    #[serde(default)]
    files: Files,
    /// All of them are configured for every program.
    #[serde(default, rename = "servers")]
    _servers: Vec<String>,
    expect: Outcome,
    #[serde(default)]
    files_after: BTreeMap<String, Option<String>>,
    calls: Option<Vec<String>>,
    calls_unordered: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Outcome {
    Result(Value),
    Error { name: String, message: String, line: Option<u64> },
}

type Files = BTreeMap<String, String>;

#[test]
fn programs_do_what_users_want() {
    let mut gateway = Gateway::start(&config());
    let names = programs();
    assert!(names.len() >= 100, "programs are missing");
    let wrong: Vec<String> = names
        .iter()
        .filter_map(|name| check(&mut gateway, name).err().map(|why| format!("{name}: {why}")))
        .collect();
    assert!(wrong.is_empty(), "{} of {} programs:\n{}", wrong.len(), names.len(), wrong.join("\n"));
}

fn config() -> String {
    let filesystem = material("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    format!(
        "[permissions]\n\"*\" = {{ approval_mode = \"auto\" }}\n\
         [servers.everything]\n{}\n\
         [servers.memory]\n{}\nenv = {{ MEMORY_FILE_PATH = \"{{home}}/memory.json\" }}\n\
         [servers.filesystem]\ncommand = {:?}\nargs = [{:?}, \"{{home}}/root\"]\ncwd = \"{{home}}/root\"\n",
        npm_server("server-everything"),
        npm_server("server-memory"),
        node(),
        filesystem.display().to_string(),
    )
}

fn programs() -> Vec<String> {
    let entries = std::fs::read_dir(material("programs")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".ts").map(str::to_owned)).collect();
    names.sort();
    names
}

fn check(gateway: &mut Gateway, name: &str) -> Result<(), String> {
    let read = |end: &str| std::fs::read_to_string(material(&format!("programs/{name}.{end}"))).unwrap();
    let expected: Expected = serde_json::from_str(&read("json")).map_err(|error| error.to_string())?;
    let root = gateway.path("root");
    empty(&root);
    std::fs::remove_file(gateway.path("memory.json")).ok();
    for (path, text) in &expected.files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let reply = gateway.run_with(&read("ts"), &expected.args);
    same_outcome(&reply, &expected.expect)?;
    same_calls(&reply, &expected)?;
    same_files(&files(&root), expected)
}

fn empty(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => std::fs::remove_dir_all(entry.path()).unwrap(),
            false => std::fs::remove_file(entry.path()).unwrap(),
        }
    }
}

fn same_outcome(reply: &Reply, expected: &Outcome) -> Result<(), String> {
    match expected {
        Outcome::Result(value) => match reply.result() {
            Some(result) if same(result, value) => Ok(()),
            Some(result) => Err(format!("its result is {result} and should be {value}")),
            None => Err(format!("it should return {value}: {}", reply.body)),
        },
        Outcome::Error { name, message, line } => {
            let named = match name.as_str() {
                "ToolError" => reply.code() == "TOOL_ERROR",
                name => reply.code() == "PROGRAM_ERROR" && reply.message().starts_with(name),
            };
            let placed = line.is_none_or(|line| reply.body["error"]["line"] == line);
            if named && reply.message().contains(message) && placed {
                return Ok(());
            }
            Err(format!("it should end with {name}: {message} at {line:?}: {}", reply.body))
        }
    }
}

/// Numbers are numbers, however they are written.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, value)| right.get(key).is_some_and(|other| same(value, other)))
        }
        (left, right) => left == right,
    }
}

fn same_calls(reply: &Reply, expected: &Expected) -> Result<(), String> {
    let mut calls = reply.calls();
    let wanted = match (&expected.calls, &expected.calls_unordered) {
        (Some(calls), None) => calls,
        (None, Some(sorted)) => {
            calls.sort_unstable();
            sorted
        }
        _ => return Err("it says which calls it makes twice, or not at all".to_owned()),
    };
    match calls == *wanted {
        true => Ok(()),
        false => Err(format!("it calls {calls:?} and should call {wanted:?}")),
    }
}

fn same_files(found: &Files, expected: Expected) -> Result<(), String> {
    let mut wanted = expected.files;
    for (path, text) in expected.files_after {
        match text {
            Some(text) => wanted.insert(path, text),
            None => wanted.remove(&path),
        };
    }
    match *found == wanted {
        true => Ok(()),
        false => Err(format!("it leaves the files {found:?} and should leave {wanted:?}")),
    }
}

fn files(root: &Path) -> Files {
    let (mut open, mut found) = (vec![root.to_owned()], Files::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let below = path.strip_prefix(root).unwrap().display().to_string();
            found.insert(below, std::fs::read_to_string(path).unwrap());
        }
    }
    found
}
