//! Tests of literals, of comparing intents, and of naming capabilities.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn similarity(one: &str, other: &str) -> f64 {
    ReadIntent::new(one).similarity(&ReadIntent::new(other))
}

fn shown(intent: &str) -> String {
    let each = literals(intent).into_iter().map(|literal| match &literal.value {
        Value::String(value) if *value == literal.text => format!("{:?} {}", literal.class, literal.text),
        value => format!("{:?} {} = {}", literal.class, literal.text, value),
    });
    each.collect::<Vec<_>>().join(" | ")
}

#[test]
fn literals_are_found_with_their_class_and_value() {
    for (intent, expected) in [
        ("read ./a/b.txt, then /x/y and ~/notes.", "Path ./a/b.txt | Path /x/y | Path ~/notes"),
        (
            r"open C:\Users\me\a.txt and *.md or src/**/*.rs",
            r"Path C:\Users\me\a.txt | Path *.md | Path src/**/*.rs",
        ),
        ("list docs/ and .env and Makefile", "Path docs/ | Path .env | Name Makefile"),
        ("fetch https://a.example/x?y=1#z.", "Url https://a.example/x?y=1#z"),
        ("ping example.com and 10.0.0.1", "Host example.com | Host 10.0.0.1"),
        ("mail bob.smith+x@example.co.uk", "Email bob.smith+x@example.co.uk"),
        (
            "take 1,000 then 3.5 then 12% and -4",
            "Number 1,000 = 1000 | Number 3.5 = 3.5 | Number 12% = 12 | Number -4 = -4",
        ),
        ("prends 3,5 puis 1 000 puis 50 €", "Number 3,5 = 3.5 | Number 1 000 = 1000 | Number 50 € = 50"),
        ("three files, trois fichiers, two-factor", "Number three = 3 | Number trois = 3"),
        ("the 3rd line, la 2e page", "Ordinal 3rd = 3 | Ordinal 2e = 2"),
        (
            "on 2026-11-16 or 16/11/2026 or 03/04/2026",
            "Date 2026-11-16 | Date 16/11/2026 = \"2026-11-16\" | Date 03/04/2026",
        ),
        ("on November 3, 2026 and 3 novembre", "Date November 3, 2026 = \"2026-11-03\" | Date 3 novembre"),
        (
            "since last week, la semaine dernière, hier, today at 9am",
            "Date last week | Date la semaine dernière | Date hier | Date today | Date 9am",
        ),
        (
            r#"say "hi there" and 'you' and «  toi » and `x`"#,
            "Quoted hi there | Quoted you | Quoted toi | Quoted x",
        ),
        (r#"read "docs/a b.txt" and "docs/a.txt""#, "Quoted docs/a b.txt | Path docs/a.txt"),
        ("l'état d'avancement, don't, it's Bob's", "Name Bob"),
        ("post to #general and @bob, issue #42", "Channel #general | Handle @bob | Id #42 = 42"),
        (
            "ABC-123, 4f2a9c1, 123e4567-e89b-12d3-a456-426614174000",
            "Id ABC-123 | Id 4f2a9c1 | Id 123e4567-e89b-12d3-a456-426614174000",
        ),
        (
            "v1.2.3 and 2.0.1 in Europe/Paris or UTC",
            "Version v1.2.3 | Version 2.0.1 | Zone Europe/Paris | Zone UTC",
        ),
        ("Weather in New York for ACME", "Name New York | Name ACME"),
        ("convert it to JSON in French and/or PDF, e.g. now", ""),
        ("décade added deadbeef facade", ""),
    ] {
        assert_eq!(shown(intent), expected, "{intent}");
    }
}

#[test]
fn a_value_is_mentioned_however_it_is_written() {
    for (intent, value, expected) in [
        ("read notes/a.txt", json!("notes/a.txt"), true),
        ("read ./notes/a.txt", json!("notes/a.txt"), true),
        ("read notes/a.txt.bak", json!("notes/a.txt"), false),
        ("list five files", json!(5), true),
        ("list 15 files", json!(5), false),
        ("a tax of 12%", json!(0.12), true),
        ("in #general", json!("general"), true),
        ("weather in paris", json!("Paris"), true),
        ("comparison", json!("paris"), false),
        ("on 3 novembre 2026", json!("2026-11-03"), true),
        ("merge a.txt and b.txt", json!(["a.txt", "b.txt"]), true),
        ("merge a.txt", json!(["a.txt", "b.txt"]), false),
        ("is it true", json!(true), false),
    ] {
        assert_eq!(mentions(intent, &value), expected, "{intent}: {value}");
    }
}

#[test]
fn the_same_request_in_other_words_is_similar() {
    for (a, b) in [
        ("read notes/a.txt and count the words", "count the words of docs/b.md"),
        ("delete tmp/a.txt", "please remove the file tmp/b.txt"),
        ("liste les 5 derniers commits de a/b", "list the last 10 commits of c/d"),
        ("weather in Paris", "what's the weather in Lyon?"),
        ("crée le dossier build/", "create the folder dist/"),
        ("how many lines are in a.log", "nombre de lignes de b.log"),
    ] {
        assert!(similarity(a, b) >= SURE, "{a} / {b}: {}", similarity(a, b));
        assert!(similarity(b, a) >= SURE, "{b} / {a}: {}", similarity(b, a));
    }
}

#[test]
fn another_request_is_not_similar() {
    for (a, b) in [
        ("read notes/a.txt and count the words", "read notes/a.txt and count the words and email it to Bob"),
        ("read notes/a.txt and count the words", "read notes/a.txt"),
        ("read notes/a.txt", "write notes/a.txt"),
        ("list the first 5 files", "list the last 5 files"),
        ("enable alerts", "disable alerts"),
        ("list files in a/", "do not list files in a/"),
        ("messages from @bob", "messages to @bob"),
        ("convert csv to json", "convert json to csv"),
        ("commits per author", "authors per commit"),
        ("", ""),
        ("the", "a"),
    ] {
        assert!(similarity(a, b) < SURE, "{a} / {b}: {}", similarity(a, b));
        assert!(similarity(b, a) < SURE, "{b} / {a}: {}", similarity(b, a));
    }
    assert!(similarity("enable alerts", "disable alerts") < similarity("enable alerts", "list alerts"));
}

/// The outcome of binding as a line of text.
fn told(procedure: &ReusableProcedure<'_>, intent: &str, context: Value) -> String {
    let context: Map<String, Value> = serde_json::from_value(context).unwrap();
    let binding = bind(procedure, &ReadIntent::new(intent), &context);
    let mut lines: Vec<String> = Vec::new();
    for (name, from) in &binding.sources {
        lines.push(format!("{name} = {} ({from:?})", binding.arguments[name]));
    }
    for missing in &binding.missing {
        lines.push(format!("missing: {} {:?}", missing.reason, missing.candidates));
    }
    lines.extend(binding.unplaced.iter().map(|text| format!("unplaced: {text}")));
    lines.push(format!("runs: {}", binding.is_complete() && binding.similarity >= SURE));
    lines.join("\n")
}

#[test]
fn arguments_say_where_they_are_from_and_what_is_missing() {
    let parameters = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "default": "notes/a.txt"},
            "lines": {"type": "integer", "default": 10},
            "encoding": {"type": "string", "default": "utf-8"},
        },
    });
    let examples = BTreeMap::from([("path".to_owned(), vec![json!("notes/b.txt")])]);
    let intents = [&ReadIntent::new("read the first 10 lines of notes/a.txt")];
    let mut procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    assert_eq!(
        told(&procedure, "read the first 10 lines of c.txt", json!({"encoding": "latin-1"})),
        "encoding = \"latin-1\" (Context)\npath = \"c.txt\" (Intent)\nlines = 10 (RepeatedDefault)\nruns: true"
    );
    assert_eq!(
        told(&procedure, "read the first lines of notes/a.txt", json!({"limit": 3})),
        "path = \"notes/a.txt\" (RepeatedDefault)\nencoding = \"utf-8\" (Default)\n\
         missing: `lines` was `10` in \"read the first 10 lines of notes/a.txt\"; the new intent does not say which [Number(10)]\n\
         unplaced: limit\nruns: false"
    );
    procedure.reads_only = false;
    assert_eq!(
        told(&procedure, "read the first 5 lines", json!({})),
        "lines = 5 (Intent)\nencoding = \"utf-8\" (Default)\n\
         missing: `path` was `notes/a.txt` in \"read the first 10 lines of notes/a.txt\"; the new intent does not say which [String(\"notes/a.txt\"), String(\"notes/b.txt\")]\n\
         runs: false"
    );
}

#[test]
fn literals_without_a_place_are_told() {
    let parameters = json!({"properties": {"path": {"type": "string", "default": "a.txt"}}});
    let intents = [&ReadIntent::new("check a.txt against the list of 2025")];
    let examples = BTreeMap::new();
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    let unplaced = |intent: &str| bind(&procedure, &ReadIntent::new(intent), &Map::new()).unplaced;
    assert_eq!(unplaced("check b.txt against the list of 2025"), [""; 0]);
    assert_eq!(unplaced("check b.txt against the list of 2025 for @zoe"), ["@zoe"]);
    assert_eq!(unplaced("check b.txt and c.txt against the list of 2025"), ["b.txt", "c.txt"]);
    assert_eq!(unplaced("check b.txt against the list of 2024"), ["2024", "2025"]);
    assert_eq!(unplaced("check b.txt against the list"), ["2025"]);
}

#[test]
fn a_later_intent_is_as_good_as_the_first() {
    let parameters = json!({"properties": {"from": {"default": "a.txt"}, "to": {"default": "b.txt"}}});
    let examples =
        BTreeMap::from([("from".to_owned(), vec![json!("c.txt")]), ("to".to_owned(), vec![json!("d.txt")])]);
    let intents =
        [&ReadIntent::new("copy a.txt to b.txt"), &ReadIntent::new("duplicate c.txt under the name d.txt")];
    let mut procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents[..1],
        examples: &examples,
        reads_only: false,
    };
    let new = "duplicate e.txt under the name f.txt";
    assert!(told(&procedure, new, json!({})).ends_with("runs: false"));
    procedure.intents = &intents;
    assert_eq!(
        told(&procedure, new, json!({})),
        "from = \"e.txt\" (Intent)\nto = \"f.txt\" (Intent)\nruns: true"
    );
}

#[test]
fn a_default_that_the_first_intent_contradicts_is_not_run() {
    let parameters = json!({"properties": {"path": {"type": "string", "default": "a.txt"}}});
    let intents = [&ReadIntent::new("read b.txt"), &ReadIntent::new("show c.txt")];
    let examples = BTreeMap::from([("path".to_owned(), vec![json!("b.txt"), json!("c.txt")])]);
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    assert_eq!(
        told(&procedure, "read b.txt", json!({})),
        "missing: `path` was `a.txt` before, though \"read b.txt\" says `b.txt`; it is not known what it is now \
         [String(\"a.txt\"), String(\"b.txt\"), String(\"c.txt\")]\n\
         runs: false"
    );
    assert_eq!(told(&procedure, "show d.txt", json!({})), "path = \"d.txt\" (Intent)\nruns: true");
    assert!(told(&procedure, "read b.txt", json!({"path": "b.txt"})).ends_with("runs: true"));
}

#[test]
fn a_parameter_nobody_spoke_of_can_be_given_by_name() {
    let parameters = json!({
        "properties": {"repo": {"type": "string", "default": "a/b"}, "limit": {"type": "integer", "default": 30}},
    });
    let intents = [&ReadIntent::new("list the issues of a/b")];
    let examples = BTreeMap::new();
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    assert_eq!(
        told(&procedure, "list the issues of c/d, limit 10", json!({})),
        "repo = \"c/d\" (Intent)\nlimit = 10 (Intent)\nruns: true"
    );
    assert!(told(&procedure, "list the issues of c/d, limit many", json!({})).ends_with("runs: false"));
}

#[test]
fn a_value_made_of_what_was_said_follows_it_or_is_missing() {
    let parameters = json!({"properties": {
        "url": {"type": "string", "default": "https://api.example.com/repos/a/bee"},
        "files": {"type": "array", "default": ["x.txt", "y.txt"]},
    }});
    let intents = [&ReadIntent::new("check x.txt and y.txt of a/bee")];
    let examples = BTreeMap::new();
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    assert!(told(&procedure, "check x.txt and y.txt of a/bee", json!({})).ends_with("runs: true"));
    assert!(told(&procedure, "check x.txt and z.txt of a/bee", json!({})).ends_with("runs: false"));
    assert!(told(&procedure, "check x.txt and y.txt of c/dee", json!({})).ends_with("runs: false"));
}

#[test]
fn required_parameters_without_a_value_are_missing() {
    let parameters = json!({"properties": {"query": {"type": "string"}, "page": {"type": "integer"}}, "required": ["query"]});
    let intents = [&ReadIntent::new("search the archive")];
    let examples = BTreeMap::new();
    let procedure = ReusableProcedure {
        parameters: &parameters,
        intents: &intents,
        examples: &examples,
        reads_only: true,
    };
    assert_eq!(
        told(&procedure, "search the archive", json!({})),
        "missing: `query` has no value yet []\nruns: false"
    );
    assert!(told(&procedure, "search the archive", json!({"query": "x"})).ends_with("runs: true"));
}

#[test]
fn names_can_be_written_after_a_dot() {
    for (hint, intent, tools, expected) in [
        (Some("Count words!"), "x", &[][..], "countWords"),
        (Some("résumé d'été"), "x", &[], "resumeDEte"),
        (Some("readFile"), "x", &[], "readFile"),
        (Some("delete"), "x", &[], "deleteIt"),
        (Some("42"), "read notes/a.txt and count the words", &[], "readFileAndCountWords"),
        (None, "read notes/a.txt and count the words", &[], "readFileAndCountWords"),
        (None, "Liste les 5 derniers commits de rust-lang/rust", &[], "listeDerniersCommits"),
        (None, "crée le dossier « build »", &[], "creeDossier"),
        (None, "what's the weather in Paris?", &[], "weatherInParis"),
        (None, "show me the weather in Paris", &[], "showWeatherInParis"),
        (None, "a.txt", &["fs:read", "json:parse"], "fsReadJsonParse"),
        (None, "", &["fs:read_file", "fs:write_file"], "fsReadFileWriteFile"),
        (None, "", &[], "procedure"),
        (None, "你好", &["3d:x"], "procedure"),
        (
            None,
            "synchronise incomprehensible internationalization dependencies everywhere",
            &[],
            "synchroniseIncomprehensible",
        ),
    ] {
        assert_eq!(name_for(hint, intent, &Value::Null, tools), expected, "{hint:?} {intent:?} {tools:?}");
    }
}

/// A schema with these defaults.
fn with_defaults(defaults: &Value) -> Value {
    let members = defaults.as_object().unwrap().iter();
    let members: Map<String, Value> =
        members.map(|(name, value)| (name.clone(), json!({ "default": value }))).collect();
    json!({ "type": "object", "properties": members })
}

#[test]
fn names_and_descriptions_are_those_that_people_would_give() {
    for (intent, defaults, name, description) in [
        (
            "average salary of the Engineering department in data/employees.csv",
            json!({"department": "Engineering", "path": "data/employees.csv"}),
            "averageSalaryByDepartment",
            "average salary of the {department} department in {path}",
        ),
        (
            "count the words in notes/monday.md",
            json!({"path": "notes/monday.md"}),
            "countWordsInFile",
            "count the words in {path}",
        ),
        (
            "how many words does notes/monday.md have?",
            json!({"path": "notes/monday.md"}),
            "countWords",
            "how many words does {path} have?",
        ),
        (
            "the length of the file a.txt, or 0 if it is empty",
            json!({"path": "a.txt"}),
            "lengthOfFile",
            "the length of the file {path}, or 0 if it is empty",
        ),
        (
            "convert 98.6 degrees Fahrenheit to Celsius",
            json!({"value": 98.6}),
            "convertFahrenheitToCelsius",
            "convert {value} degrees Fahrenheit to Celsius",
        ),
        (
            "how many days are there between 2026-03-01 and 2026-05-20",
            json!({"from": "2026-03-01", "to": "2026-05-20"}),
            "countDaysBetweenDates",
            "how many days are there between {from} and {to}",
        ),
        (
            "add the line \"call Bob\" to inbox/home.md",
            json!({"text": "call Bob", "path": "inbox/home.md"}),
            "addLineToFile",
            "add the line {text} to {path}",
        ),
        (
            "what is the weather in Chicago",
            json!({"city": "Chicago"}),
            "weatherInCity",
            "what is the weather in {city}",
        ),
        (
            "top 3 products by units in data/sales.csv",
            json!({"limit": 3, "path": "data/sales.csv"}),
            "topProductsByUnits",
            "top {limit} products by units in {path}",
        ),
        (
            "which functions does src/main.py define",
            json!({"path": "src/main.py"}),
            "functionsDefine",
            "which functions does {path} define",
        ),
        (
            "set server.port to 9090 in env/one.json",
            json!({"key": "server.port", "value": 9090, "path": "env/one.json"}),
            "setInFile",
            "set {key} to {value} in {path}",
        ),
        (
            "compare a.json and b.json",
            json!({"path": "a.json", "path2": "b.json"}),
            "compareFiles",
            "compare {path} and {path2}",
        ),
        (
            "list the branches of the repository repos/alpha",
            json!({"repo": "repos/alpha"}),
            "listBranchesOfRepository",
            "list the branches of the repository {repo}",
        ),
        (
            "is the working tree of repos/alpha clean",
            json!({"repo": "repos/alpha"}),
            "isWorkingTreeClean",
            "is the working tree of {repo} clean",
        ),
        (
            "list the open issues of rust-lang/rust",
            json!({"owner": "rust-lang", "repo": "rust"}),
            "listOpenIssues",
            "list the open issues of {owner}/{repo}",
        ),
        (
            "convert data/customers.csv to JSON and save it as out/customers.json",
            json!({"path": "data/customers.csv", "path2": "out/customers.json"}),
            "convertFileToJsonAndSave",
            "convert {path} to JSON and save it as {path2}",
        ),
        (
            "salaire moyen du département Legal dans data/staff.csv",
            json!({"department": "Legal", "path": "data/staff.csv"}),
            "salaireMoyenDepartement",
            "salaire moyen du département {department} dans {path}",
        ),
    ] {
        let schema = with_defaults(&defaults);
        let made = (name_for(None, intent, &schema, &[]), describe(intent, &schema));
        assert_eq!(made, (name.to_owned(), description.to_owned()));
    }
}

proptest! {
    #[test]
    fn any_text_can_be_read(a in "\\PC{0,60}", b in r#"[a-z@#/.:'"«»0-9 éà-]{0,50}"#) {
        for text in [&a, &b] {
            let mut end = 0;
            for literal in literals(text) {
                prop_assert!(literal.span.start >= end && text.get(literal.span.clone()).is_some());
                end = literal.span.end;
            }
        }
        let similar = similarity(&a, &b);
        prop_assert!((0.0..=1.0).contains(&similar));
        let parameters = json!({"properties": {"x": {"type": "string", "default": b}}});
        let intents = [&ReadIntent::new(&b)];
        let examples = BTreeMap::new();
        let procedure = ReusableProcedure { parameters: &parameters, intents: &intents, examples: &examples, reads_only: true };
        bind(&procedure, &ReadIntent::new(&a), &Map::new());
        let name = name_for(Some(&a), &b, &parameters, &[]);
        describe(&a, &parameters);
        prop_assert!((3..=40).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric()), "{}", name);
        prop_assert!(!name.starts_with(|c: char| c.is_ascii_digit()));
    }
}
