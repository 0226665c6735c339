//! Generated programs: a lifted program with its defaults as arguments does what the program did.
//!
//! Both run in the engine with a tool that records its calls. Values of the intent stand wherever a model would write
//! them, beside the same values that stand there for another reason.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::Config;
use rquickjs::{CatchResultExt, Context, Ctx, Runtime};
use serde_json::{Map, Value};

use super::lift;

const NAMES: &[&str] = &["Sales", "Nadia", "Paris", "Lyon", "Orion", "New York"];
const WORDS: &[&str] = &["accent", "team", "harvest", "chess", "flour", "darkMode"];
const PATHS: &[&str] = &["data/sales.csv", "notes/monday.md", "tickets/open.csv", "out/low.txt"];
const TEXTS: &[&str] = &["call Bob", "buy `milk`", "50 % off ${now}", "a\\b", "it's late"];
const NUMBERS: &[&str] = &["2", "3", "5", "10", "12", "100", "250", "1001", "4.5", "0.75"];

/// A request: its sentence has the places `{n}` (name), `{w}` (word), `{p}` (path), `{t}` (text), `{a}` and `{b}`
/// (numbers).
const INTENTS: &[&str] = &[
    "top {a} rows of the {n} department in {p}",
    "add \"{t}\" for {n} to {p}",
    "which {w} is in {p} since version {a}",
    "split {a} euros between {b} people",
    "the {w} plan of {n} with {a} percent and {b} seats",
    "mark parcel {n} as {w} in {p}",
    "change from {a} to {b} for {n}",
];

/// Statements of a program; `call` is the tool.
const STATEMENTS: &[&str] = &[
    "out.push(rows.filter((r) => r.department === \"{n}\").length);",
    "out.push(rows.slice(0, {a}).map((r) => r.n));",
    "out.push(rows.slice(-{a}).length);",
    "call({ path: \"{p}\" });",
    "call({ path: \"{p}\", content: \"{n}: {w}\\n\", weeks: -{a} });",
    "call({ names: [\"{n}\"], values: [{a}, {b}], digits: {b} });",
    "call({ expression: \"{a} * (1 - {b} / 100)\" });",
    "call({ query: \"{w}\", pattern: \"--{w}: (\\\\d+)\" });",
    "out.push(`${rows.length} of {n} in {p}`);",
    "out.push('{n},{w},{a},held\\n');",
    "out.push((100 - {a}) / {a} * 100);",
    "out.push(parseInt('17', 10) >= {a} ? \"{w}\" : \"other\");",
    "out.push(/^to {n}: (.*)$/m.test(\"to {n}: x\"));",
    "out.push(typeof rows === \"{w}\");",
    "switch (\"{w}\") { case \"{w}\": out.push(1); break; default: out.push({b}); }",
    "const f{i} = (x, by = {b}) => x * by; out.push(f{i}({a}));",
    "out.push({ \"{w}\": {a}, x: rows[1].n, [\"{w}\"]: \"{n}\" });",
    "out.push(({a} * 1.19).toFixed(2));",
    "out.push(\"{w}\".toUpperCase() + '{n}'.length);",
    "if (rows.length > {b}) call({ to: '{n}' }); else call({ to: \"nobody\" });",
    "for (const part of \"{p}\".split(\"/\")) out.push(part);",
];

const ENDINGS: &[&str] =
    &["return out;", "return \"{p}\";", "return { out, who: \"{n}\" };", "return 'done';"];

#[derive(Debug)]
struct Values {
    name: &'static str,
    word: &'static str,
    path: &'static str,
    text: &'static str,
    numbers: (&'static str, &'static str),
}

impl Values {
    fn fill(&self, template: &str, number: usize) -> String {
        template
            .replace("{n}", self.name)
            .replace("{w}", self.word)
            .replace("{p}", self.path)
            .replace("{t}", self.text)
            .replace("{a}", self.numbers.0)
            .replace("{b}", self.numbers.1)
            .replace("{i}", &number.to_string())
    }
}

fn values() -> impl Strategy<Value = Values> {
    let of = |list: &'static [&'static str]| prop::sample::select(list);
    (of(NAMES), of(WORDS), of(PATHS), of(TEXTS), of(NUMBERS), of(NUMBERS)).prop_map(
        |(name, word, path, text, one, other)| Values { name, word, path, text, numbers: (one, other) },
    )
}

/// What a program did: its calls and its result, as JSON.
fn run(context: &Context, source: &str, arguments: &Map<String, Value>) -> String {
    let arguments = Value::from(arguments.clone());
    let program = format!(
        "(() => {{ const calls = [], out = []; const call = (given) => {{ calls.push(given); }};
            const rows = [...Array(12).keys()].map((n) => ({{ n, department: n % 2 ? 'Sales' : 'Paris' }}));
            const result = ((args) => {{ 'use strict'; {source} }})({arguments});
            return JSON.stringify({{ calls, result }}); }})()"
    );
    context.with(|engine: Ctx<'_>| match engine.eval::<String, _>(program).catch(&engine) {
        Ok(done) => done,
        Err(error) => format!("error: {error}"),
    })
}

proptest! {
    #![proptest_config(Config { cases: 10_000, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_lifted_program_with_its_defaults_is_the_same_program(
        values in values(),
        said in values(),
        intent in prop::sample::select(INTENTS),
        statements in prop::collection::vec(prop::sample::select(STATEMENTS), 1..6),
        ending in prop::sample::select(ENDINGS),
        mixes in any::<bool>(),
    ) {
        // Half of the intents name what the program contains; the others name some of it by chance.
        let intent = if mixes { said.fill(intent, 0) } else { values.fill(intent, 0) };
        let mut source: Vec<String> =
            statements.iter().enumerate().map(|(at, statement)| values.fill(statement, at)).collect();
        source.push(values.fill(ending, 0));
        let source = source.join("\n");
        let sites = pml_analysis::find_literal_sites(&source).expect("the pieces are programs");
        let Some(lifted) = lift(&source, &sites, &[], &BTreeSet::new(), &intent) else { return Ok(()) };
        let defaults = lifted.parameters.iter().map(|it| (it.name.clone(), it.default.clone())).collect();
        let runtime = Runtime::new().expect("an engine");
        let context = Context::full(&runtime).expect("a realm");
        let (before, after) = (run(&context, &source, &Map::new()), run(&context, &lifted.source, &defaults));
        prop_assert!(!before.starts_with("error"), "{}\n{}", source, before);
        prop_assert_eq!(before, after, "{}\n{}\n{}", intent, source, lifted.source);
    }
}
