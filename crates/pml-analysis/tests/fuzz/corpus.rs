//! What mutation starts from: the test programs of this package, generated ones, and oddities.

use std::path::{Path, PathBuf};

use crate::generate::generate;
use crate::print::{Language, Look, print};

/// Programs.
pub(crate) fn programs(seed: u64) -> Vec<String> {
    let mut found: Vec<String> = files("ts").map(|path| read(&path)).collect();
    found
        .extend((seed..seed + 60).map(|seed| print(&generate(seed).text, Language::TypeScript, Look::Plain)));
    // One construct at a time is the best start for a small change.
    found.retain(|text| text.len() < 20_000);
    found.extend(ODD.iter().map(|&text| text.to_owned()));
    found.extend(deep());
    found
}

/// DAG documents.
pub(crate) fn documents() -> Vec<String> {
    let mut found: Vec<String> = files("json").map(|path| read(&path)).collect();
    found.retain(|text| text.contains("\"tasks\""));
    found.extend(DOCUMENTS.iter().map(|&text| text.to_owned()));
    found
}

fn files(extension: &'static str) -> impl Iterator<Item = PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut found = Vec::new();
    for folder in ["fixtures", "gold"] {
        walk(&tests.join(folder), &mut found);
    }
    // Folders are read in no order; the same seed must mean the same run.
    found.sort();
    found.into_iter().filter(move |path| path.extension().is_some_and(|found| found == extension))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("the test files can be listed").path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).expect("the test files can be read")
}

/// Nesting of every kind, on both sides of the limit.
fn deep() -> impl Iterator<Item = String> {
    const KINDS: &[(&str, &str, &str)] = &[
        ("(", "1", ")"),
        ("[", "", "]"),
        ("({a:", "1", "})"),
        ("!", "1", ""),
        ("- ", "1", ""),
        ("await ", "1", ""),
        ("()=>", "1", ""),
        ("(async()=>{return ", "1", "})()"),
        ("`${", "1", "}`"),
        ("f(", "1", ")"),
        ("1+(", "1", ")"),
        ("x?", "1", ":2"),
        ("if(args)", ";", ""),
        ("{", "", "}"),
        ("for(;;){break;", "", "}"),
        ("try{", "", "}finally{}"),
        ("class A{static x=", "1", "}"),
        ("function f(){", "", "}"),
        ("mcp.fs.read({path:", "1", "})"),
        ("x.y[", "1", "]"),
    ];
    KINDS.iter().flat_map(|(open, middle, close)| {
        [20, 90, 130, 480, 520, 5_000]
            .map(|times| format!("{}{middle}{}", open.repeat(times), close.repeat(times)))
    })
}

const DOCUMENTS: &[&str] = &[
    r#"{"tasks":[{"id":"t1","tool":"fs:read","arguments":{"path":"a"}},{"id":"t2","tool":"fs:write","arguments":{"path":"b","text":{"$ref":"t1.name"}},"dependsOn":["t1"]}]}"#,
    r#"{"tasks":[{"id":"a","tool":"db:query","arguments":{"sql":"x"}},{"id":"b","code":"return tasks.a.map((r) => r.id)","type":"code_execution","dependsOn":["a"]},{"id":"c","capability":"summarise","arguments":{"text":"{{b.0}} and {{a[1].name}}","raw":{"$literal":{"$ref":"x"}}},"dependsOn":["b"],"sideEffects":true,"safeToFail":true,"timeoutMs":10,"retries":2}]}"#,
    r#"{"tasks":[{"id":"a","tool":"fs:read","dependsOn":["b"]},{"id":"b","tool":"fs:read","dependsOn":["a"]}]}"#,
    r#"{"tasks":[]}"#,
    r#"{"tasks":[{"id":"a","tool":"fs:read"},{"id":"a","tool":"no:such"}]}"#,
    "[]",
    "null",
    "{\"tasks\":[{\"id\":\"\\ud800\",\"tool\":\"fs:read\",\"arguments\":{\"__proto__\":1e999}}]}",
];

/// Programs that are strange in one way each.
const ODD: &[&str] = &[
    "",
    " ",
    ";",
    "\u{feff}return 1",
    "#!/usr/bin/env node\nreturn 1",
    "return",
    "return 1\u{2028}+2",
    "// only a comment",
    "/* not closed",
    "'use strict'; 'other'; return 1",
    "\"use strict\"; with (args) {}",
    "a\\u0062c = 1",
    "const \\u{61}bc = 1; return abc",
    "const mc\\u0070 = 1; return mcp",
    "return '\\ud800' + '\\udc00' + '\\u{10ffff}' + '\\0'",
    "return 1e400 + 0x1p3",
    "return 123456789012345678901234567890n",
    "return 0.1 + .5e-324 + 08",
    "return /[/]\\/(?<=a)(?<n>b)\\k<n>/dgimsuy",
    "return /(/",
    "return /[\\p{L}--[a-z]]/v",
    "<!-- html\nreturn 1",
    "--> html",
    "x = <div>{mcp}</div>",
    "return <any>mcp.fs.read({ path: 'a' })",
    "import x from 'y'",
    "import('y')",
    "import.meta",
    "export const a = 1",
    "export default mcp",
    "declare module 'x' {}",
    "namespace N { export const a = mcp.fs }",
    "@dec class A { @dec m() {} accessor x = 1 }",
    "using x = mcp; await using y = null",
    "enum E { A = mcp.fs.read({}) , B = A.length }",
    "const enum E { A = 1 << 2, B = `${A}` } return E.B",
    "abstract class A { abstract x: number; constructor(private y = mcp) { super() } }",
    "let x!: number; return x! as unknown as string satisfies string",
    "type A = { [K in keyof typeof mcp]: A[K] }; interface B extends A<B> {}",
    "function f<const T extends readonly unknown[]>(this: T, ...x: T): asserts x is T { return }",
    "return await (await (await mcp))['fs']?.['read']?.({ path: args?.x?.[0]?.y })",
    "return delete mcp?.fs.read, void mcp, typeof mcp",
    "mcp = 1; args = 2; [mcp, args] = [1, 2]; ({ mcp } = {}); mcp++",
    "for (mcp of []) ; for (args.x in {}) ; for (const mcp of [mcp]) ;",
    "label: label2: for (;;) { continue label; }",
    "label: { label: ; }",
    "break; continue; yield; await; super(); new.target",
    "function f() { await 1 }",
    "async function f(x = await 1) {}",
    "function* g(x = yield) {}",
    "let let = 1",
    "const x; var y = x; let x",
    "var arguments = 1; eval = 2",
    "return eval('mcp') + new Function('return mcp')() + (0, eval)('1')",
    "return globalThis.mcp.fs.read({}) + window.x + process.env.Y + require('z')",
    "return Reflect.get(mcp, 'fs')['re' + 'ad']({})",
    "const { fs: { read, ...rest }, ...others } = mcp; return read(rest, others)",
    "class A { static { await 1 } #x; #x; get #y() {} set #y(v) {} m() { return #z in this } }",
    "class A extends (await mcp.fs.read({})) { constructor() { super(...arguments) } }",
    "switch (1) { default: default: case 1: }",
    "try {} catch ([a, a]) {} finally {}",
    "return `${`${`${mcp.fs.read({})}`}`}`",
    "return tag`\\unicode and \\xerxes`",
    "({ __proto__: 1, __proto__: 2, '__proto__': 3 })",
    "({ get a() {}, set a(v) {}, async *[b]() {}, 1n: 2, .5: 3 })",
    "if (args.a) function f() {}",
    "async () => { for await (const x of mcp.fs.list({})) yield x }",
    "return a ?? b || c",
    "return -1 ** 2",
    "return x?.`a`",
    "new x?.y()",
    "return ((a, b, ...c) => {})(...[], ...mcp)",
    "return { ...mcp, ...args, ...null }",
    "return async x => async y => async z => mcp.fs.read({ x, y, z })",
    "const f = () => f(); return f()",
    "function f() { return g() } function g() { return f() } return f()",
    "const f = (g) => g(g); return f(f)",
    "const f = () => () => f; return f()()()()()()",
    "let x = mcp; while (args.x) { x = x.fs; x = mcp; } return x.fs.read({})",
    "return mcp.fs.read(mcp.fs.read(mcp.fs.read({ path: 'a' })))",
    "return Promise.all([Promise.all([Promise.race([mcp.fs.read({})])])])",
    "// @pml-depends: [\nawait mcp.fs.read({}) // @pml-branches: ]",
    "// @pml-depends: [fs:read, n1, \"x\"]\nawait mcp.fs.write({ path: 'a', text: 'b' })",
    "await mcp.fs.read({ path: 'sk-ant-api03-0123456789abcdefghij', password: 'hunter2' })",
    "const é = 1, 𝒳 = 2, ゴ = 3; return é + 𝒳 + ゴ",
    "return '😀'.length /* 😀 */ + mcp.fs.read({ path: '😀' })",
    "\r\n\r\nreturn\rmcp\u{2029}.fs.nope({})",
    "return \u{0}",
    "\u{202e}return 1",
    "let \u{200c}a = 1",
    "a\u{200d}b: 1",
];
