//! Programs and documents that follow from a seed. What they return does not depend on which of their calls ends first.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::dice::Dice;
use crate::documents::{Document, document};

/// Something to run.
pub enum Work {
    Program { code: String, arguments: Value },
    Document { document: Document, arguments: Value },
}

/// In which order the journal of a work has its entries each time it is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalOrder {
    /// One call is under way at a time.
    Sequential,
    /// Several calls are under way at a time; they are issued in the same order each time.
    Issued,
    /// What is issued next depends on what ends first.
    None,
}

impl Work {
    pub fn journal_order(&self) -> JournalOrder {
        match self {
            Work::Program { code, .. } if !code.contains("Promise.all") => JournalOrder::Sequential,
            Work::Program { .. } => JournalOrder::Issued,
            Work::Document { document, .. } if document.is_in_order() => JournalOrder::Issued,
            Work::Document { .. } => JournalOrder::None,
        }
    }

    /// For whoever has to find out what went wrong.
    pub fn shown(&self) -> String {
        match self {
            Work::Program { code, arguments } => format!("{code}\n{arguments}"),
            Work::Document { document: Document { tasks, paused }, arguments } => {
                format!("{tasks:#}\n{arguments}, paused: {paused}")
            }
        }
    }
}

/// The capabilities that programs may call, each with its program and arguments to learn it with.
pub const CAPABILITIES: [(&str, &str); 3] = [
    (
        "readsTwo",
        "const one = await mcp.a.read({ key: args.key });\n\
         return [one, await mcp.b.read({ key: `t${args.key}`, wait: 1 })];",
    ),
    (
        "writesBetween",
        "const one = await mcp.a.read({ key: args.key });\n\
         await mcp.b.write({ key: args.key });\n\
         return [one, await mcp.a.read({ key: 'k1' }), await mcp.b.read({ key: one.given.key })];",
    ),
    (
        "decides",
        "const out = [];\n\
         for (const key of ['a', args.key]) { out.push(await mcp.b.read({ key })); }\n\
         if (out[1].writes % 2 === 0) { out.push(await mcp.a.read({ key: 'even' })); return out; }\n\
         out.push(...await capabilities.readsTwo({ key: args.key }));\n\
         return out;",
    ),
];

/// A program, or sometimes a document.
pub fn work(dice: &mut Dice) -> Work {
    let arguments = json!({ "x": "ax", "list": ["a", "b", "c", "d"], "flag": dice.roll(2) == 0, "pairs": [{ "key": "p" }, { "key": "q" }] });
    match dice.roll(6) {
        0 | 1 => Work::Document { document: document(dice), arguments },
        _ => Work::Program { code: program(dice), arguments },
    }
}

/// A program that collects all that it reads in `out`.
fn program(dice: &mut Dice) -> String {
    let mut writer = Writer { dice, text: String::new(), names: 0, known: Vec::new(), item: None, depth: 0 };
    writer.line("const out = [];");
    writer.line("const fetch1 = async (key) => { const r = await mcp.a.read({ key, wait: 1 }); return r; };");
    writer.line("async function both(key) { const r = await mcp.b.read({ key }); await mcp.a.write({ key: r.given.key }); return mcp.b.read({ key }); }");
    writer.read();
    let statements = 2 + writer.dice.roll(6);
    for _ in 0..statements {
        writer.statement();
    }
    writer.line("return out;");
    writer.text
}

/// A program with loops or called capabilities, or a document, and how many of its reads can be foreseen: all but the
/// first, whose result none of them needs.
pub fn foreseeable(dice: &mut Dice) -> (Work, u64) {
    let count = 2 + dice.roll(6);
    let keys: Vec<String> = (0..count).map(|number| format!("k{number}")).collect();
    let arguments = json!({ "keys": keys, "groups": [{ "keys": keys }, { "keys": ["g0", "g1"] }] });
    let first = "await mcp.b.read({ key: 'first', wait: 2 });\n";
    let program = |rest: &str| Work::Program {
        code: format!("{first}const out = [];\n{rest}\nreturn out.length;"),
        arguments: arguments.clone(),
    };
    match dice.roll(5) {
        0 => (program("for (const key of args.keys) { out.push(await mcp.a.read({ key })); }"), count),
        1 => {
            let groups = "for (const group of args.groups) {\n\
                            for (const key of group.keys) { out.push(await mcp.b.read({ key: `in ${key}` })); }\n\
                          }";
            (program(groups), count + 2)
        }
        2 => (program("out.push(await capabilities.readsTwo({ key: args.keys[0] }));"), 2),
        3 => {
            let each = "for (const key of args.keys) { out.push(await capabilities.readsTwo({ key })); }";
            (program(each), 2 * count)
        }
        _ => {
            let mut tasks =
                vec![json!({ "id": "first", "tool": "b:read", "arguments": { "key": "first", "wait": 2 } })];
            for (number, key) in keys.iter().enumerate() {
                // At most two steps from the first: what is further away is less certain.
                let before = if number % 2 == 1 { keys[number - 1].as_str() } else { "first" };
                tasks.push(json!({ "id": key, "tool": "a:read", "arguments": { "key": key }, "dependsOn": [before] }));
            }
            let document = Document { tasks: Value::Array(tasks), paused: dice.roll(2) == 0 };
            (Work::Document { document, arguments }, count)
        }
    }
}

/// A program without branches and loops, and which of its calls can be foreseen.
pub struct StraightLine {
    pub code: String,
    pub arguments: Value,
    /// For each call, whether it can be read while the call before it is under way: that one only reads too, and nothing
    /// of its result is needed.
    pub eligible: Vec<bool>,
}

/// Reads, some of which take parts of earlier results, with a write now and then.
pub fn straight_line(dice: &mut Dice) -> StraightLine {
    let mut code = String::new();
    let mut eligible = Vec::new();
    // The calls that changed nothing, and the last call if it was one.
    let (mut reads, mut last): (Vec<usize>, Option<usize>) = (Vec::new(), None);
    for call in 0..4 + dice.roll(12) as usize {
        if dice.roll(8) == 0 {
            writeln!(code, "const r{call} = await mcp.b.write({{ key: 'w' }});")
                .expect("text takes more text");
            eligible.push(false);
            last = None;
            continue;
        }
        let from =
            (!reads.is_empty() && dice.roll(3) == 0).then(|| reads[dice.roll(reads.len() as u64) as usize]);
        let (key, known) = match (from, dice.roll(5)) {
            (Some(from), 0) => (format!("'computed ' + r{from}.given.key"), false),
            (Some(from), 1) => (format!("`in ${{r{from}.given.key}}`"), last != Some(from)),
            (Some(from), _) => (format!("r{from}.given.key"), last != Some(from)),
            (None, 0) => ("args.x".to_owned(), true),
            (None, _) => (format!("'k{call}'"), true),
        };
        let server = ["a", "b"][dice.roll(2) as usize];
        let wait = dice.roll(6);
        writeln!(code, "const r{call} = await mcp.{server}.read({{ key: {key}, wait: {wait} }});")
            .expect("text takes more text");
        eligible.push(known && last.is_some());
        reads.push(call);
        last = Some(call);
    }
    code.push_str("return 'done';");
    StraightLine { code, arguments: json!({ "x": "ax" }), eligible }
}

struct Writer<'d> {
    dice: &'d mut Dice,
    text: String,
    names: usize,
    /// The results in scope.
    known: Vec<String>,
    /// The item of the loop around.
    item: Option<&'static str>,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(self.depth);
        writeln!(self.text, "{indent}{text}").expect("text takes more text");
    }

    fn name(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.dice.roll(of.len() as u64) as usize]
    }

    fn known(&mut self) -> String {
        let place = self.dice.roll(self.known.len() as u64) as usize;
        self.known[place].clone()
    }

    /// The value of a `key`.
    fn key(&mut self) -> String {
        let known = (!self.known.is_empty()).then(|| self.known());
        match (self.dice.roll(12), known, self.item) {
            (0, Some(r), _) => format!("{r}.given.key"),
            (1, Some(r), _) => format!("`t${{{r}.given.key}}`"),
            (2, Some(r), _) => format!("`w${{{r}.writes}}`"),
            (3, Some(r), _) => format!("'e' + {r}.writes"),
            (4, Some(r), _) => format!("{r}.writes"),
            (5, _, _) => "args.x".to_owned(),
            (6, _, _) => "args.list[1]".to_owned(),
            (7 | 8, _, Some(item)) => item.to_owned(),
            (9, _, Some(item)) => format!("`i${{{item}}}`"),
            _ => format!("'k{}'", self.dice.roll(5)),
        }
    }

    fn given(&mut self) -> String {
        let key = self.key();
        match self.dice.roll(5) {
            0 => format!("{{ key: {key}, wait: {} }}", self.dice.roll(4)),
            1 => format!("{{ wait: 0, key: {key}, more: [1, 2.5, null, {{ deep: {key} }}] }}"),
            _ => format!("{{ key: {key} }}"),
        }
    }

    fn read(&mut self) {
        let (server, tool) = (self.pick(&["a", "b"]), self.pick(&["read", "read", "read", "web"]));
        let (given, name) = (self.given(), self.name("r"));
        self.line(&format!("const {name} = await mcp.{server}.{tool}({given}); out.push({name});"));
        self.known.push(name);
    }

    fn statement(&mut self) {
        match self.dice.roll(if self.depth < 2 { 22 } else { 8 }) {
            0..=4 => self.read(),
            5 => {
                let (server, tool, given) =
                    (self.pick(&["a", "b"]), self.pick(&["write", "write", "look"]), self.given());
                self.line(&format!("await mcp.{server}.{tool}({given});"));
            }
            6 => {
                let (helper, key) = (self.pick(&["fetch1", "both"]), self.key());
                self.line(&format!("out.push(await {helper}({key}));"));
            }
            7 => self.ends(),
            8..=10 => self.loops(),
            11..=13 => self.branches(),
            14 => self.handles(),
            15 | 16 => self.at_once(),
            17 => self.switches(),
            18 => self.counts(),
            19 | 20 => {
                let (name, key) = (self.pick(&CAPABILITIES.map(|(name, _)| name)), self.key());
                self.line(&format!("out.push(await capabilities.{name}({{ key: {key} }}));"));
            }
            _ => self.filters(),
        }
    }

    /// Some statements in a scope of their own.
    fn block(&mut self) {
        self.depth += 1;
        let known = self.known.len();
        for _ in 0..1 + self.dice.roll(2) {
            self.statement();
        }
        self.known.truncate(known);
        self.depth -= 1;
    }

    /// An end before the end.
    fn ends(&mut self) {
        let how = match (self.dice.roll(4), self.item) {
            (0, Some(_)) => "break",
            (1, Some(_)) => "continue",
            (2, _) => "throw new Error('enough')",
            _ => "return out",
        };
        let test = self.test();
        self.line(&format!("if ({test}) {how};"));
    }

    fn test(&mut self) -> String {
        let known = (!self.known.is_empty()).then(|| self.known());
        match (self.dice.roll(6), known, self.item) {
            (0 | 1, _, Some(item)) => format!("{item} === 'c'"),
            (0..=2, Some(r), _) => format!("{r}.writes % 3 === {}", self.dice.roll(3)),
            (3, Some(r), _) => format!("{r}.given.key === 'k1'"),
            (4, _, _) => "args.flag".to_owned(),
            _ => format!("out.length > {}", self.dice.roll(6)),
        }
    }

    fn loops(&mut self) {
        let list = match (self.dice.roll(4), !self.known.is_empty()) {
            (0, _) => "['a', 'b', 'c']".to_owned(),
            (1, true) => {
                let list = self.name("r");
                self.line(&format!("const {list} = await mcp.a.read({{ items: ['c', 'd', 'e'] }});"));
                format!("{list}.given.items")
            }
            _ => "args.list".to_owned(),
        };
        let item = ["x", "y", "z"][self.depth.min(2)];
        let outer = self.item.replace(item);
        self.line(&format!("for (const {item} of {list}) {{"));
        if self.dice.roll(2) == 0 {
            self.depth += 1;
            self.line(&format!("const v{item} = await mcp.b.read({{ key: {item} }}); out.push(v{item});"));
            self.depth -= 1;
        }
        self.block();
        self.line("}");
        self.item = outer;
    }

    fn branches(&mut self) {
        let test = self.test();
        self.line(&format!("if ({test}) {{"));
        self.block();
        if self.dice.roll(2) == 0 {
            self.line("} else {");
            self.block();
        }
        self.line("}");
    }

    fn handles(&mut self) {
        self.line("try {");
        self.block();
        if self.dice.roll(2) == 0 {
            let key = self.key();
            self.line(&format!("  await mcp.a.fail({{ key: {key} }});"));
        }
        self.block();
        self.line("} catch (error) {");
        self.line("  out.push(String(error.code ?? error.message));");
        self.block();
        let also = self.dice.roll(3) == 0;
        if also {
            self.line("} finally {");
            self.line("  out.push(await mcp.b.read({ key: 'finally' }));");
        }
        self.line("}");
    }

    /// Reads whose order nobody can tell, and nothing else meanwhile.
    fn at_once(&mut self) {
        if self.dice.roll(2) == 0 {
            let server = self.pick(&["a", "b"]);
            self.line(&format!(
                "out.push(...await Promise.all(args.list.map((m) => mcp.{server}.read({{ key: m }}))));"
            ));
            return;
        }
        let members: Vec<String> = (0..2 + self.dice.roll(3))
            .map(|_| {
                let (server, given) = (self.pick(&["a", "b"]), self.given());
                format!("mcp.{server}.read({given})")
            })
            .collect();
        self.line(&format!("out.push(...await Promise.all([{}]));", members.join(", ")));
    }

    fn switches(&mut self) {
        let test =
            if self.known.is_empty() { "args.x".to_owned() } else { format!("{}.writes % 3", self.known()) };
        self.line(&format!("switch ({test}) {{"));
        self.line("case 0: {");
        self.block();
        self.line("break; }");
        self.line("case 1: {");
        self.block();
        self.line("}");
        self.line("default: {");
        self.block();
        self.line("} }");
    }

    fn counts(&mut self) {
        let (name, body) = (self.name("n"), self.pick(&["a.read", "b.read", "a.write"]));
        self.line(&format!(
            "for (let {name} = 0; {name} < 3; {name}++) {{ out.push(await mcp.{body}({{ key: {name} }})); }}"
        ));
    }

    fn filters(&mut self) {
        let name = self.name("f");
        let how = self.pick(&[
            "args.list.filter((m) => m !== 'b')",
            "args.pairs.map((m) => m.key)",
            "args.list.slice(1)",
        ]);
        self.line(&format!("const {name} = {how};"));
        let outer = self.item.replace("w");
        self.line(&format!("for (const w of {name}) {{"));
        self.line("  out.push(await mcp.a.read({ key: w }));");
        self.block();
        self.line("}");
        self.item = outer;
    }
}
