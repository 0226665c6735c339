//! The effects that a dry run tells, against those of the real run afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use pml_model::trace::{TaskResult, Trace};
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::place::Place;

/// A program that works on files `f0`… and calls a server that can be written to.
fn program(dice: &mut Dice) -> String {
    let mut code = String::from("let seen = 0;\n");
    for step in 0..3 + dice.roll(5) {
        let file = format!("w/f{}.txt", dice.roll(4));
        let written = match dice.roll(9) {
            0 => writeln!(code, "await mcp.fs.write({{ path: '{file}', content: 'c{step}' }});"),
            1 => writeln!(code, "await mcp.fs.write({{ path: '{file}', content: 'more', append: true }});"),
            2 => writeln!(
                code,
                "try {{ await mcp.fs.create({{ path: '{file}', content: 'new' }}); }} catch {{ seen++; }}"
            ),
            3 => writeln!(code, "await mcp.fs.delete({{ path: '{file}' }});"),
            4 => writeln!(
                code,
                "if ((await mcp.fs.stat({{ path: '{file}' }})).exists) await mcp.fs.write({{ path: 'w/copy{step}.txt', content: (await mcp.fs.read({{ path: '{file}' }})).content }});"
            ),
            5 => writeln!(
                code,
                "for (const one of (await mcp.fs.list({{ path: 'w' }})).entries) seen += one.size ?? 0;"
            ),
            6 => writeln!(
                code,
                "for (let i = 0; i < {}; i++) await mcp.a.write({{ key: `k${{i}}` }});",
                dice.roll(4)
            ),
            7 => writeln!(
                code,
                "if ((await mcp.a.read({{ key: 'r' }})).given.key === 'r') await mcp.fs.write({{ path: 'w/r{step}.txt', content: String(seen) }});"
            ),
            _ => writeln!(
                code,
                "seen += (await mcp.fs.search({{ path: 'w', contains: 'c' }})).matches.length;"
            ),
        };
        written.expect("text takes more text");
    }
    code.push_str("return seen;");
    code
}

fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(root).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            (format!("w/{}", entry.file_name().to_string_lossy()), std::fs::read(entry.path()).unwrap())
        })
        .collect()
}

/// A call of a real run that changed something: its tool, and the path if it has one.
type Change = (String, Option<String>);

/// What a real run changed, in order.
fn changes(real: &Trace, calls_of_server: u64) -> Vec<Change> {
    let changed = |task: &&TaskResult| {
        let result = task.result.as_ref().map(|result| result.get()).unwrap_or_default();
        let changes = matches!(task.tool.as_str(), "fs:write" | "fs:create" | "fs:delete");
        changes && task.success && !result.contains(r#""deleted":false"#)
    };
    let path = |task: &TaskResult| serde_json::from_str::<Value>(task.args.get()).unwrap()["path"].clone();
    let files = real.body.task_results.iter().filter(changed);
    let files = files.map(|task| (task.tool.clone(), path(task).as_str().map(str::to_owned)));
    // Traces keep loops in part, so the server itself counts.
    let served = (0..calls_of_server).map(|_| ("a:write".to_owned(), None));
    files.chain(served).collect()
}

/// Whether the real run had this effect, as often, and left a file as it says.
fn is_real(effect: &Value, done: &[Change], after: &BTreeMap<String, Vec<u8>>) -> bool {
    let change: Change =
        (effect["tool"].as_str().unwrap().to_owned(), effect["path"].as_str().map(str::to_owned));
    let times = done.iter().filter(|one| **one == change).count() as u64;
    if times == 0 || effect["calls"].as_u64() != Some(times) {
        return false;
    }
    let Some(path) = &change.1 else { return true };
    // What an earlier effect left is not there any more.
    let is_last = done.iter().rfind(|one| one.1.as_ref() == Some(path)) == Some(&change);
    let text = effect["text"].as_str().unwrap();
    !is_last
        || match after.get(path) {
            None => text.starts_with("would delete"),
            Some(content) => text.contains(&format!("({} byte", content.len())),
        }
}

#[test]
fn they_are_the_effects_of_the_real_run() {
    let rules = "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n";
    let (mut told, mut happened, mut found) = (0, 0, 0);
    let mut place = Place::with_servers(
        &|home| {
            std::fs::create_dir_all(home.path("root/w")).unwrap();
            format!("[builtin.fs]\nroot = {}\n", json!(home.path("root")))
        },
        rules,
    );
    for seed in 1..=45 {
        let root = place.home.path("root/w");
        std::fs::remove_dir_all(&root).unwrap();
        std::fs::create_dir_all(&root).unwrap();
        for name in ["f0", "f1"] {
            std::fs::write(root.join(format!("{name}.txt")), format!("old {name}")).unwrap();
        }
        let code = program(&mut Dice(seed));
        let (before, writes) = (files(&root), place.writes());
        let report = crate::report(&mut place, &code, &json!({}), &json!(true));
        assert_eq!(files(&root), before, "a dry run writes nothing\n{code}");
        assert_eq!(place.writes(), writes, "{code}");
        let real = place.run(&code, &json!({}));
        assert_eq!(real["status"], "success", "{real}\n{code}");
        assert_eq!(real["result"], report["result"], "{report:#}\n{code}");
        let after = files(&root);
        let mut expected: Vec<String> = Vec::new();
        for (path, content) in &after {
            if before.get(path) != Some(content) {
                expected.push(format!("{path} {}", content.len()));
            }
        }
        expected.extend(
            before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("{path} gone")),
        );
        let calls = place.writes() - writes;
        if calls > 0 {
            expected.push(format!("a:write {calls}"));
        }
        let effects = report["effects"].as_array().unwrap();
        let covers = |expected: &String| {
            let (what, how) = expected.split_once(' ').unwrap();
            effects.iter().any(|effect| {
                let text = effect["text"].as_str().unwrap();
                match how {
                    "gone" => effect["path"] == what && text.starts_with("would delete"),
                    _ if what.contains(':') => {
                        effect["tool"] == what && effect["calls"] == how.parse::<u64>().unwrap()
                    }
                    size => effect["path"] == what && text.contains(&format!("({size} byte")),
                }
            })
        };
        happened += expected.len();
        found += expected.iter().filter(|one| covers(one)).count();
        // Nothing was made up but the answers of `a:write`, which no program looks at: so nothing may be invented.
        let done = changes(&place.trace(&real), calls);
        let invented: Vec<&Value> = effects.iter().filter(|effect| !is_real(effect, &done, &after)).collect();
        assert!(invented.is_empty(), "{invented:?} of {done:?}\n{code}");
        told += effects.len();
    }
    println!("{found} of {happened} effects were told; {told} told in all");
    assert!(happened > 60 && found * 100 >= happened * 95, "{found} of {happened}");
}
