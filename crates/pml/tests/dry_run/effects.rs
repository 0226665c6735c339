//! The effects that a dry run tells, against those of the real run afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

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
        let touched = |effect: &&Value| {
            let changed = effect["path"].as_str().map(|path| {
                before.get(path) != after.get(path) || !after.contains_key(path) || before.contains_key(path)
            });
            changed.unwrap_or(calls > 0)
        };
        told += effects.len();
        assert_eq!(effects.iter().filter(touched).count(), effects.len(), "{report:#}\n{code}");
    }
    println!("{found} of {happened} effects were told; {told} told in all");
    assert!(happened > 60 && found * 100 >= happened * 95, "{found} of {happened}");
}
