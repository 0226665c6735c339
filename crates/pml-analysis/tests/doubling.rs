//! Programs of forty lines whose values or calls double with each of them: each gets an answer of bounded size, or is
//! refused as too complex. Without bounds, none of them would end.

use pml_analysis::{Analysis, AnalysisCatalogue, ComplaintCode, Error, analyse};

const LINES: usize = 40;
/// The largest answer to a program of forty lines, in JSON.
const MAX_ANSWER_BYTES: usize = 32 * 1024 * 1024;

/// A way to double: the first line, a line made from the one before (`I` is its number, `J` that of the one before), and
/// the last.
struct Kind {
    name: &'static str,
    first: &'static str,
    line: &'static str,
    last: &'static str,
}

impl Kind {
    fn program(&self, lines: usize) -> String {
        let numbered = |text: &str, number: usize| {
            let before = number.saturating_sub(1).to_string();
            text.replace('I', &number.to_string()).replace('J', &before)
        };
        let mut program = format!("{}\n", self.first);
        for number in 1..lines {
            program.push_str(&numbered(self.line, number));
            program.push('\n');
        }
        program + &numbered(self.last, lines - 1)
    }
}

const fn kind(name: &'static str, [first, line, last]: [&'static str; 3]) -> Kind {
    Kind { name, first, line, last }
}

const GIVE: &str = "return mcp.s.t({data: aI});";
const CALL: &str = "return mcp.s.t({data: await fI(args.x)});";

/// Values that hold the one before twice: all of them are understood.
const VALUES: &[Kind] = &[
    kind("arrays", ["const a0 = args.x;", "const aI = [aJ, aJ];", GIVE]),
    kind("objects", ["const a0 = args.x;", "const aI = {l: aJ, r: aJ};", GIVE]),
    kind("a dozen", ["const a0 = args.x;", "const aI = [[aJ,aJ,aJ,aJ],[aJ,aJ,aJ,aJ],[aJ,aJ,aJ,aJ]];", GIVE]),
    kind("spreads", ["const a0 = {x: args.x};", "const aI = {...aJ, ...aJ, kI: aJ};", GIVE]),
    kind("unknown spreads", ["const a0 = {...args.x};", "const aI = {...aJ, ...aJ, ...args.yI};", GIVE]),
    kind("spread lists", ["const a0 = [args.x, 'y'];", "const aI = [...aJ, ...aJ];", GIVE]),
    kind("texts", ["const a0 = args.x;", "const aI = `${aJ}${aJ}`;", GIVE]),
    kind("literal texts", ["const a0 = 'abc';", "const aI = aJ + aJ;", GIVE]),
    kind("literal templates", ["const a0 = 'abc';", "const aI = `${aJ}${aJ}`;", GIVE]),
    kind("ternaries", ["const a0 = args.x;", "const aI = args.b ? [aJ] : {z: aJ};", GIVE]),
    kind("branches", ["let a = args.x;", "if (args.b) a = [a, a]; else a = {p: a, q: a};", "mcp.s.t({a});"]),
    kind(
        "else if",
        [
            "let a = args.x;",
            "if (args.b) a = [a, a]; else if (args.c) a = {a, b: a}; else a = [[a], a];",
            "mcp.s.t({a});",
        ],
    ),
    kind(
        "switches",
        [
            "let a = args.x;",
            "switch (args.k) { case 1: a = [a, a]; case 2: a = {a, b: a}; break; default: a = [a]; }",
            "mcp.s.t({a});",
        ],
    ),
    kind(
        "assigned",
        ["const a0 = {x: args.x};", "const aI = Object.assign({}, aJ, {l: aJ, r: aJ}, aJ);", GIVE],
    ),
    kind(
        "entries",
        [
            "const a0 = {x: args.x};",
            "const aI = Object.fromEntries(Object.entries(aJ).map(([k, v]) => [k, [v, v, aJ]]));",
            GIVE,
        ],
    ),
    kind("concatenated", ["const a0 = await mcp.s.r({});", "const aI = [aJ, aJ].concat(aJ);", GIVE]),
    kind("mapped", ["const a0 = [1];", "const aI = aJ.map(x => [x, aJ]);", GIVE]),
    kind("sets", ["const a0 = new Set([args.x]);", "const aI = new Set([aJ, aJ]); aI.add([aJ, aJ]);", GIVE]),
    kind("maps", ["const a0 = new Map();", "const aI = new Map(); aI.set('l', aJ); aI.set('r', aJ);", GIVE]),
    kind("reduced", ["const a0 = args.x;", "const aI = aJ.reduce((s, x) => [s, x, s, aJ], [aJ, aJ]);", GIVE]),
    kind(
        "promises",
        ["const a0 = mcp.s.r({});", "const aI = Promise.all([aJ, aJ]);", "return mcp.s.t({data: await aI});"],
    ),
    kind(
        "promises of either",
        [
            "const a0 = mcp.s.r({});",
            "const aI = args.c ? Promise.resolve(args.d ? aJ : 1) : Promise.resolve(args.d ? aJ : 2);",
            "return mcp.s.t({data: await aI});",
        ],
    ),
    kind(
        "parents",
        [
            "const a0 = {c: []};",
            "const aI = {p: aJ, c: [aJ, aJ]}; aJ.c.push(aI, aI);",
            "return mcp.s.t({data: a0});",
        ],
    ),
    kind(
        "itself",
        ["const a0 = [];", "a0.push(a0, [a0]);", "await Promise.all(a0); return mcp.s.t({data: a0});"],
    ),
];

/// Functions that call the one before twice, and what is made in loops: understood or refused.
const CALLS: &[Kind] = &[
    kind("calls", ["const f0 = x => x + 1;", "const fI = x => fJ(fJ(x));", CALL]),
    kind(
        "calls of tools",
        [
            "const f0 = async x => mcp.s.r({x});",
            "const fI = async x => { await fJ(x); return fJ(x); };",
            CALL,
        ],
    ),
    kind(
        "calls with records",
        [
            "const f0 = async x => mcp.s.r({x: [x, {y: x}]});",
            "const fI = async x => { await fJ({x}); return fJ([x, x]); };",
            CALL,
        ],
    ),
    kind("closures", ["const f0 = () => args.x;", "const fI = g => [fJ(g), fJ(() => g)];", CALL]),
    kind(
        "loops",
        [
            "const f0 = async x => { for (const y of x) await mcp.s.r({y}); };",
            "const fI = async x => { for (const y of x) { await fJ(y); await fJ(x); } };",
            CALL,
        ],
    ),
    kind(
        "callbacks",
        [
            "const f0 = async x => mcp.s.r({x});",
            "const fI = async x => { await Promise.all(x.map(fJ)); return x.map(fJ); };",
            CALL,
        ],
    ),
    kind(
        "forks",
        [
            "const f0 = async x => mcp.s.r({x});",
            "const fI = async x => Promise.all([fJ(x), fJ([x, x])]);",
            CALL,
        ],
    ),
    kind("defaults", ["const f0 = x => x;", "const fI = (x, y = fJ(x), z = fJ(y)) => [y, z];", CALL]),
    kind("rest", ["const f0 = (...x) => [...x, ...x];", "const fI = (...x) => fJ(...x, ...fJ(...x));", CALL]),
    kind(
        "generators",
        [
            "async function* f0(x) { yield await mcp.s.r({x}); }",
            "async function* fI(x) { yield* fJ(x); yield* fJ([x, x]); }",
            "for await (const x of fI(args.x)) await mcp.s.t({x});",
        ],
    ),
    kind(
        "fields",
        [
            "class C0 { x = args.x }",
            "class CI { a = new CJ(); b = new CJ() }",
            "return mcp.s.t({data: new CI()});",
        ],
    ),
    kind(
        "constructors",
        [
            "class C0 { constructor(x) { this.x = x } }",
            "class CI { constructor(x) { this.a = new CJ(x); this.b = new CJ(this.a) } }",
            "return mcp.s.t({data: new CI(args.x)});",
        ],
    ),
    kind(
        "parents of classes",
        [
            "class C0 { async m(x) { return mcp.s.r({x}) } }",
            "class CI extends CJ { async m(x) { await super.m(x); return super.m([x, x]) } }",
            "return mcp.s.t({data: await new CI().m(args.x)});",
        ],
    ),
    kind(
        "getters",
        [
            "const o0 = { get v() { return mcp.s.r({}) } };",
            "const oI = { get v() { return [oJ.v, oJ.v] } };",
            "return mcp.s.t({data: await Promise.all(oI.v)});",
        ],
    ),
    kind(
        "setters",
        [
            "const o0 = { set v(x) { mcp.s.t({x}) } };",
            "const oI = { set v(x) { oJ.v = x; oJ.v = [x, x] } };",
            "oI.v = args.x;",
        ],
    ),
    kind(
        "lists of functions",
        [
            "const f0 = [x => mcp.s.t({x}), x => mcp.s.r({x})];",
            "const fI = [async x => fJ[args.i](await fJ[args.j](x)), async x => fJ[1](await fJ[0](x))];",
            "return fI[args.i](args.x);",
        ],
    ),
    kind(
        "functions that find each other",
        [
            "const fs = [async x => mcp.s.t({x})];",
            "fs.push(async x => { await fs[args.i](x); return fs[args.j]([x, await mcp.s.r({x})]); });",
            "return fs[0](args.x);",
        ],
    ),
    kind(
        "timers",
        [
            "const f0 = () => mcp.s.t({});",
            "const fI = () => { setTimeout(fJ); setTimeout(() => fJ()); };",
            "fI();",
        ],
    ),
    kind(
        "destructured",
        [
            "const a0 = {l: args.x, r: args.x};",
            "const {l: lI, r: rI} = aJ; const aI = {l: [lI, rI], r: [rI, lI]};",
            GIVE,
        ],
    ),
    kind(
        "caught",
        ["const a0 = args.x;", "let aI; try { aI = [aJ, aJ]; throw aI } catch (e) { aI = {e, aJ} }", GIVE],
    ),
    kind("either part", ["const a0 = await mcp.s.r({});", "const aI = args.c ? aJ.lI : aJ.rI;", GIVE]),
    kind(
        "async accumulators",
        [
            "const a0 = args.x;",
            "const aI = await aJ.reduce(async (s, x) => [await s, x, await mcp.s.r({s: [aJ, s]})], [aJ, aJ]);",
            GIVE,
        ],
    ),
    kind(
        "async lists",
        [
            "const a0 = args.x;",
            "const aI = await Promise.all(aJ.map(async x => [x, aJ, await mcp.s.r({x, a: aJ})]));",
            GIVE,
        ],
    ),
];

fn understood(kind: &Kind, program: &str) -> Result<Analysis, Error> {
    let answer = analyse(program, &AnalysisCatalogue::default());
    if let Ok(analysis) = &answer {
        let size = serde_json::to_string(analysis).expect("an analysis is JSON").len();
        assert!(size <= MAX_ANSWER_BYTES, "{}: {size} bytes", kind.name);
        assert!(analysis.permissions.declared.contains("s:t"), "{}: the tool is declared", kind.name);
    }
    answer
}

#[test]
fn values_that_double_are_understood() {
    for kind in VALUES {
        let analysis =
            understood(kind, &kind.program(LINES)).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        let calls = analysis.structure.nodes.iter();
        assert!(calls.map(|node| node.id.to_string()).any(|id| id.starts_with('n')), "{}", kind.name);
    }
}

#[test]
fn what_doubles_by_calls_is_understood_or_refused() {
    for kind in CALLS {
        match understood(kind, &kind.program(LINES)) {
            Ok(_) => {}
            Err(error @ Error::TooComplex { .. }) => {
                assert!(error.hint().is_some() && error.position().is_some(), "{}", kind.name);
            }
            Err(error) => panic!("{}: {error}", kind.name),
        }
    }
}

#[test]
fn a_few_lines_of_every_kind_are_understood() {
    for kind in VALUES.iter().chain(CALLS) {
        understood(kind, &kind.program(4)).unwrap_or_else(|error| panic!("{}: {error}", kind.name));
    }
}

/// Calls are no longer followed at some point; nothing is then said of what was not looked at.
#[test]
fn calls_that_are_not_followed_are_not_complained_about() {
    let kind = CALLS.iter().find(|kind| kind.name == "calls of tools").expect("it is in the list");
    let analysis = understood(kind, &kind.program(LINES)).expect("understood");
    let wrong = |code: ComplaintCode| matches!(code, ComplaintCode::Unreachable | ComplaintCode::NotAwaited);
    let said: Vec<_> = analysis.complaints.iter().filter(|complaint| wrong(complaint.code)).collect();
    assert!(said.is_empty(), "{said:?}");
    assert!(analysis.program.sites.iter().any(|site| site.tool.as_deref() == Some("s:r")));
}

/// A chain of calls longer than what is followed still shows the tool at its end.
#[test]
fn a_long_chain_of_calls_reaches_its_tool() {
    let chain = kind("chain", ["const f0 = async x => mcp.s.r({x});", "const fI = async x => fJ(x);", CALL]);
    let analysis = understood(&chain, &chain.program(120)).expect("understood");
    assert!(analysis.program.sites.iter().any(|site| site.tool.as_deref() == Some("s:r")));
    assert!(!analysis.complaints.iter().any(|complaint| complaint.code == ComplaintCode::Unreachable));
}

/// What is too large to be written out keeps which calls it comes from.
#[test]
fn a_value_that_is_cut_keeps_where_it_comes_from() {
    let kind = kind("results", ["const a0 = await mcp.s.r({});", "const aI = [aJ, {l: aJ, r: aJ}];", GIVE]);
    let analysis = understood(&kind, &kind.program(LINES)).expect("understood");
    let json = serde_json::to_value(&analysis.structure).expect("a structure is JSON");
    let edges = json["edges"].as_array().expect("edges");
    let provides = edges.iter().filter(|edge| edge.to_string().contains("provides"));
    assert_eq!(provides.count(), 1, "{edges:?}");
}

/// The largest sources, each made of one line over and over: changes that are kept for every line, wide branches, long
/// lists. Understood or refused, and never more than that.
#[test]
fn the_longest_sources_are_understood_or_refused() {
    let lines: &[(&str, &str, &str)] = &[
        ("const a = [];", "a.push(1);", "return mcp.s.t({a});"),
        ("let x = 0;", "if (args.a) x = mcp.s.t({});", ""),
        ("let x = 0; for (;;) {", "let xI = 1; if (x) break;", "}"),
        ("let x = args;", "x = x.a;", "return mcp.s.t({x});"),
        ("", "args.aI;", ""),
        ("const o = {", "aI: 1,", "}; return mcp.s.t({o});"),
        ("let a = [];", "a = [...a, await mcp.s.t({a})];", ""),
        ("let a = {};", "a = {...a, kI: await mcp.s.t({a})};", ""),
        ("let x = 0; try {", "if (args.a) throw x; x = mcp.s.t();", "} catch (e) { mcp.s.t({x, e}) }"),
        ("await Promise.all([", "mcp.s.t(),", "]);"),
        ("", "qI;", ""),
        ("const fs = [];", "fs.push(async x => mcp.s.t({x}));", "return fs[args.i](1);"),
        ("const f = async x => mcp.s.t({x});", "await f(I);", ""),
        ("const x = [];", "for (const y of args.l) x.push(await mcp.s.t({x}));", ""),
        ("class C0 { x = mcp.s.t() }", "class CI { a = new CJ() }", "return new CI();"),
    ];
    for (first, line, last) in lines {
        let longest = Kind { name: line, first, line, last };
        let count = (256 * 1024 - first.len() - last.len()) / (line.len() + 10);
        match analyse(&longest.program(count), &AnalysisCatalogue::default()) {
            Ok(_) | Err(Error::TooComplex { .. }) => {}
            Err(error) => panic!("{line}: {error}"),
        }
    }
}
