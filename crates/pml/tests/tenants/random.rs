//! Two people do things at random at one gateway; nothing of one is ever seen by the other.
//!
//! Everything that a person makes carries their word, and every id that is told to one of them is remembered as theirs.
//! No reply to the other may contain either.

use std::collections::BTreeSet;

use pml_model::Role;
use serde_json::{Value, json};

use crate::door::{ALL, call, key, status_of};
use crate::harness::{Home, Served};

/// SplitMix64: the same steps for the same seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % most as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        (!all.is_empty()).then(|| &all[self.below(all.len())])
    }
}

struct Person {
    word: &'static str,
    key: String,
    /// Everything with an id that was told to this person.
    ids: BTreeSet<String>,
    /// The same, to choose from; and questions as `run/question`.
    known: Vec<String>,
    made: usize,
}

/// The ids in a reply.
fn ids(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for prefix in ["run_", "cap_", "trace_", "mock_", "dry_"] {
        for (at, _) in text.match_indices(prefix) {
            let digits: String =
                text[at + prefix.len()..].chars().take_while(char::is_ascii_hexdigit).collect();
            if digits.len() >= 16 {
                found.push(format!("{prefix}{digits}"));
            }
        }
    }
    found
}

impl Person {
    fn learn(&mut self, reply: &str) {
        for id in ids(reply) {
            if self.ids.insert(id.clone()) {
                self.known.push(id);
            }
        }
    }

    fn program(&mut self, random: &mut Random) -> Value {
        self.made += 1;
        let (word, number) = (self.word, random.below(6));
        let code = match random.below(4) {
            0 => format!("return (await mcp.fs.read({{ path: '{word}.txt' }})).content;"),
            1 => format!(
                "const n = (await mcp.math.evaluate({{ expression: '{number} + 1' }})).result; return '{word}' + n;"
            ),
            2 => {
                format!("await mcp.fs.write({{ path: '{word}-{number}.out', content: '{word}' }}); return 1;")
            }
            _ => format!("console.log('{word}'); throw new Error('{word} {number}');"),
        };
        json!({"intent": format!("do {word} thing {number}"), "implementation": {"type": "code", "code": code},
            "options": {"cache": number % 2 == 0, "waitMs": 2000}})
    }
}

/// One step: what was asked, and the reply.
fn step(served: &Served, random: &mut Random, who: &mut Person, other: &Person) -> (String, String) {
    let mine = random.of(&who.known).cloned().unwrap_or_else(|| "run_0".to_owned());
    // Half of the time something of the other is asked for.
    let id = match random.below(2) {
        0 => mine,
        _ => random.of(&other.known).cloned().unwrap_or(mine),
    };
    let tool = |tool: &str, arguments: &Value| {
        (format!("{tool} {arguments}"), call(served, &who.key, tool, arguments).to_string())
    };
    let ask = |method: &str, path: String, body: Value| {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, told) = status_of(served, &who.key, method, &path, &text);
        assert!(status < 500, "{method} {path}: {status} {told}");
        (format!("{method} {path} {text}"), told)
    };
    match random.below(26) {
        0..=3 => {
            let program = who.program(random);
            (program.to_string(), call(served, &who.key, "pml_execute", &program).to_string())
        }
        4 => tool("pml_execute", &json!({"intent": format!("do {} thing {}", who.word, random.below(6))})),
        5 => tool(
            "pml_execute",
            &json!({"intent": "do thing 3", "implementation": {"type": "capability", "id": id}}),
        ),
        6 => tool("pml_discover", &json!({"intent": "do thing 2"})),
        7 => tool("pml_continue", &json!({"workflow_id": id, "approved": random.below(2) == 0})),
        8 => tool("pml_abort", &json!({"workflow_id": id})),
        9 => tool("pml_get_task_result", &json!({"workflow_id": id, "task_id": "n1"})),
        10 => tool("pml_execute", &json!({"explorePath": id, "confirm": true})),
        11 => {
            let mut dry = who.program(random);
            dry["options"] = json!({"dryRun": true});
            (dry.to_string(), call(served, &who.key, "pml_execute", &dry).to_string())
        }
        12 => ask("GET", format!("/api/runs/{id}"), Value::Null),
        13 => ask("GET", format!("/api/runs/{id}/calls"), Value::Null),
        14 => ask("GET", format!("/api/capabilities/{id}"), Value::Null),
        15 => ask("GET", format!("/api/trace/{id}"), Value::Null),
        16 => ask("GET", format!("/api/traces/{id}"), Value::Null),
        17 => ask("GET", format!("/api/mocks/{id}"), Value::Null),
        18 => ask("POST", format!("/api/runs/{id}/abort"), json!({"reason": who.word})),
        19 => ask("DELETE", format!("/api/capabilities/{id}"), Value::Null),
        20 => ask(
            "POST",
            format!("/api/capabilities/{id}/rename"),
            json!({"name": format!("{}{}", who.word, who.made)}),
        ),
        21 => ask("POST", "/api/execute".to_owned(), json!({"capability": id})),
        22 => ask("DELETE", "/api/cache".to_owned(), Value::Null),
        _ => {
            let lists = [
                "/api/runs?limit=200",
                "/api/approvals",
                "/api/capabilities?limit=200",
                "/api/traces?limit=100",
                "/api/mocks",
                "/api/rules",
                "/api/audit?limit=200",
                "/api/cache",
                "/api/savings",
                "/api/graph",
                "/api/graph/layout?expand=all",
                "/api/graph/search?q=thing",
                "/api/speculation",
                "/api/learning",
                "/api/servers",
            ];
            ask("GET", lists[random.below(lists.len())].to_owned(), Value::Null)
        }
    }
}

#[test]
fn two_people_never_see_what_is_the_others() {
    let steps: usize = std::env::var("PML_TENANT_STEPS").map_or(2_000, |steps| steps.parse().unwrap());
    let home = Home::new(&format!("{ALL}[approvals]\nby = \"client\"\n"));
    let person = |name: &'static str, word: &'static str| {
        std::fs::write(home.path(&format!("{word}.txt")), word).unwrap();
        let key = key(&home, name, Role::Admin);
        Person { word, key, ids: BTreeSet::new(), known: Vec::new(), made: 0 }
    };
    let mut people = [person("ann", "zebrafish"), person("bob", "quartzite")];
    let served = home.serve(&[]);
    let seed = std::env::var("PML_TENANT_SEED").map_or(7, |seed| seed.parse().unwrap());
    let mut random = Random(seed);
    let mut told_ids = 0;
    for number in 0..steps {
        let turn = random.below(2);
        let [ann, bob] = &mut people;
        let (who, other) = if turn == 0 { (ann, &*bob) } else { (bob, &*ann) };
        let (asked, reply) = step(&served, &mut random, who, other);
        let place = || format!("seed {seed}, step {number}: {asked}\n{reply}");
        assert!(!reply.contains(other.word), "{}", place());
        for id in ids(&reply) {
            // An error names what it was asked for; that tells nobody anything.
            assert!(!other.ids.contains(&id) || asked.contains(&id), "{id} is the other's; {}", place());
            told_ids += 1;
        }
        if !ids(&asked).iter().any(|id| other.ids.contains(id)) {
            who.learn(&reply);
        }
    }
    assert!(told_ids > steps / 10, "{told_ids} ids were told: the steps do something");
    for person in &people {
        assert!(person.ids.len() > 20, "{} has {} things", person.word, person.ids.len());
    }
}
