//! Honest programs that use tools in unusual ways. Where their tools are granted, none of them is refused or fails.

use serde_json::{Value, json};

use crate::gateway::{Gateway, honeypot};

/// A program and its result. `fs:read`, `fs:stat`, `text:case`, `math:evaluate`, `json:parse` and `odd:echo` may be
/// called; the files `a` and `b` hold `hello` and `worlds!`.
type Case = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    // Other names for tools, servers and `mcp`.
    ("a tool by another name", r#"const read = mcp.fs.read; return (await read({ path: "a" })).content"#, r#""hello""#),
    ("mcp by another name", r#"const tools = mcp; return (await tools.fs.read({ path: "a" })).size"#, "5"),
    ("a server by another name", r#"const files = mcp.fs; return (await files.read({ path: "b" })).size"#, "7"),
    ("an alias of an alias", r#"const m = mcp; const f = m.fs; const r = f.read; return (await r({ path: "a" })).size"#, "5"),
    ("a variable assigned twice", r#"let tool = mcp.fs.read; tool = mcp.fs.stat; return (await tool({ path: "a" })).exists"#, "true"),
    ("a typed alias", r#"const m: any = mcp; return (await (m as any).fs.read({ path: "a" })).size"#, "5"),
    ("a constant name", r#"const name = "read"; return (await mcp.fs[name]({ path: "a" })).size"#, "5"),
    ("a name of two parts", r#"return (await mcp["f" + "s"][`re${"ad"}`]({ path: "a" })).size"#, "5"),
    ("optional chaining", r#"return (await mcp?.fs?.read?.({ path: "a" }))?.size"#, "5"),
    // Destructuring.
    ("servers taken out of mcp", r#"const { fs, text } = mcp; return (await text.case({ text: (await fs.read({ path: "a" })).content, to: "upper" })).text"#, r#""HELLO""#),
    ("tools taken out of mcp", r#"const { fs: { read, stat } } = mcp; return [(await read({ path: "a" })).size, (await stat({ path: "b" })).size]"#, "[5,7]"),
    ("renamed while taken out", r#"const { fs: { read: get } } = mcp; return (await get({ path: "a" })).size"#, "5"),
    ("a computed key that is constant", r#"const { ["f" + "s"]: { read } } = mcp; return (await read({ path: "a" })).size"#, "5"),
    ("a tool as a parameter's default", r#"const size = async (path, read = mcp.fs.read) => (await read({ path })).size; return await size("a")"#, "5"),
    // Tools as values.
    ("a tool passed on", r#"const call = (tool, given) => tool(given); return (await call(mcp.fs.read, { path: "a" })).size"#, "5"),
    ("a tool returned", r#"const pick = (quick) => (quick ? mcp.fs.stat : mcp.fs.read); return (await pick(false)({ path: "a" })).content"#, r#""hello""#),
    ("tools in an array", r#"const sizes = []; for (const tool of [mcp.fs.read, mcp.fs.stat]) sizes.push((await tool({ path: "a" })).size); return sizes"#, "[5,5]"),
    ("tools in an object", r#"const by = { read: mcp.fs.read, stat: mcp.fs.stat }; return (await by[args.how]({ path: "a" })).size"#, "5"),
    ("tools in a map", r#"const by = new Map([["r", mcp.fs.read], ["s", mcp.fs.stat]]); return (await by.get("r")({ path: "a" })).size"#, "5"),
    ("a tool in a set", r#"const [tool] = new Set([mcp.fs.read]); return (await tool({ path: "a" })).size"#, "5"),
    ("a tool for map", r#"return (await Promise.all([{ path: "a" }, { path: "b" }].map(mcp.fs.read))).map((r) => r.size)"#, "[5,7]"),
    ("a tool for then", r#"return await Promise.resolve({ path: "a" }).then(mcp.fs.read).then(({ size }) => size)"#, "5"),
    ("call", r#"return (await mcp.fs.read.call(null, { path: "a" })).size"#, "5"),
    ("apply", r#"return (await mcp.fs.read.apply(null, [{ path: "a" }])).size"#, "5"),
    ("bind", r#"const readA = mcp.fs.read.bind(null, { path: "a" }); return (await readA()).size"#, "5"),
    ("Reflect.apply", r#"return (await Reflect.apply(mcp.fs.read, undefined, [{ path: "a" }])).size"#, "5"),
    ("spread arguments", r#"const given = [{ path: "a" }]; return (await mcp.fs.read(...given)).size"#, "5"),
    ("a proxy that counts", r#"let n = 0; const read = new Proxy(mcp.fs.read, { apply: (tool, self, given) => { n++; return Reflect.apply(tool, self, given) } });
        await read({ path: "a" }); await read({ path: "b" }); return n"#, "2"),
    ("a tool known by its place", r#"const same = mcp.fs.read === mcp.fs.read; return [same, typeof mcp.fs.read]"#, r#"[true,"function"]"#),
    // Functions.
    ("a helper", r#"async function size(path: string) { return (await mcp.fs.read({ path })).size } return (await size("a")) + (await size("b"))"#, "12"),
    ("currying", r#"const on = (tool) => (path) => tool({ path }); return (await on(mcp.fs.read)("a")).size"#, "5"),
    ("composition", r#"const pipe = (...steps) => (x) => steps.reduce((p, step) => p.then(step), Promise.resolve(x));
        return await pipe((path) => mcp.fs.read({ path }), (r) => mcp.text.case({ text: r.content, to: "upper" }), (r) => r.text)("a")"#, r#""HELLO""#),
    ("a retry", r#"const again = async (tool, given, n) => { for (;;) try { return await tool(given) } catch (e) { if (!--n) throw e } };
        return (await again(mcp.fs.read, { path: "a" }, 3)).size"#, "5"),
    ("a retry that gives up", r#"const tries = []; const again = async (work, n) => { try { tries.push(n); return await work() } catch (e) { return n > 1 ? again(work, n - 1) : e.name } };
        return [await again(() => mcp.fs.read({ path: "none" }), 3), tries]"#, r#"["ToolError",[3,2,1]]"#),
    ("memoised", r#"const seen = new Map(); const once = (path) => { if (!seen.has(path)) seen.set(path, mcp.fs.read({ path })); return seen.get(path) };
        return [(await once("a")).size, (await once("a")).size, seen.size]"#, "[5,5,1]"),
    ("recursion", r#"const sum = async ([path, ...rest]) => (path === undefined ? 0 : (await mcp.fs.read({ path })).size + (await sum(rest))); return await sum(["a", "b", "a"])"#, "17"),
    ("mutual recursion", r#"const even = async (n) => (n === 0 ? (await mcp.fs.read({ path: "a" })).size : odd(n - 1)); const odd = async (n) => even(n - 1); return await even(4)"#, "5"),
    ("a closure that counts", r#"const counter = () => { let n = 0; return async (path) => { n += (await mcp.fs.read({ path })).size; return n } }; const add = counter(); await add("a"); return await add("b")"#, "12"),
    ("a function that hands out functions", r#"const api = (() => { const read = (path) => mcp.fs.read({ path }); return { size: async (p) => (await read(p)).size, text: async (p) => (await read(p)).content } })();
        return [await api.size("a"), await api.text("a")]"#, r#"[5,"hello"]"#),
    ("called at once", r#"return await (async () => (await mcp.fs.read({ path: "a" })).size)()"#, "5"),
    ("a named parameter object", r#"const at = async ({ path, tool = mcp.fs.read }: { path: string; tool?: any }) => (await tool({ path })).size; return await at({ path: "b" })"#, "7"),
    // Classes.
    ("a class with a tool", r#"class Reader { constructor(private read: any) {} async size(path: string) { return (await this.read({ path })).size } } return await new Reader(mcp.fs.read).size("a")"#, "5"),
    ("a private field", r#"class Reader { #read = mcp.fs.read; async size(path) { return (await this.#read({ path })).size } } return await new Reader().size("a")"#, "5"),
    ("a static method", r#"class Files { static async size(path) { return (await mcp.fs.read({ path })).size } } return await Files.size("b")"#, "7"),
    ("inheritance", r#"class Base { async go(path) { return this.run({ path }) } run(_) { return null } } class Sized extends Base { async run(given) { return (await mcp.fs.read(given)).size } } return await new Sized().go("a")"#, "5"),
    ("a getter", r#"const files = { get first() { return mcp.fs.read({ path: "a" }) } }; return (await files.first).size"#, "5"),
    ("a static block", r#"class Tools { static read; static { this.read = mcp.fs.read } } return (await Tools.read({ path: "a" })).size"#, "5"),
    // Loops and control.
    ("for of", r#"let n = 0; for (const path of ["a", "b"]) n += (await mcp.fs.read({ path })).size; return n"#, "12"),
    ("for with an index", r#"const paths = ["a", "b"]; let n = 0; for (let i = 0; i < paths.length; i++) n += (await mcp.fs.read({ path: paths[i] })).size; return n"#, "12"),
    ("while", r#"const paths = ["a", "b"]; let n = 0; while (paths.length > 0) n += (await mcp.fs.read({ path: paths.pop() })).size; return n"#, "12"),
    ("labels", r#"let n = 0; outer: for (const x of ["a", "b"]) { for (const path of ["a", "b"]) { if (path === "b") continue outer; n += (await mcp.fs.read({ path })).size } } return n"#, "10"),
    ("switch", r#"switch (args.how) { case "read": return (await mcp.fs.read({ path: "a" })).size; case "stat": return (await mcp.fs.stat({ path: "a" })).size; default: return 0 }"#, "5"),
    ("a conditional", r#"return (await (args.how === "read" ? mcp.fs.read : mcp.fs.stat)({ path: "a" })).content"#, r#""hello""#),
    ("short circuit", r#"const r = args.how === "stat" && (await mcp.fs.stat({ path: "a" })); return [r, (args.none ?? (await mcp.fs.read({ path: "a" }))).size]"#, "[false,5]"),
    ("try and finally", r#"let done = 0; try { return [(await mcp.fs.read({ path: "a" })).size, done] } finally { done = (await mcp.fs.read({ path: "b" })).size }"#, "[5,0]"),
    ("an error that is expected", r#"try { await mcp.fs.read({ path: "none" }) } catch (error) { return [error.name, error instanceof Error] }"#, r#"["ToolError",true]"#),
    // At the same time.
    ("Promise.all", r#"const all = await Promise.all([mcp.fs.read({ path: "a" }), mcp.fs.read({ path: "b" })]); return all.map((r) => r.size)"#, "[5,7]"),
    ("Promise.allSettled", r#"const all = await Promise.allSettled(["a", "none"].map((path) => mcp.fs.read({ path }))); return all.map((r) => r.status)"#, r#"["fulfilled","rejected"]"#),
    ("Promise.any", r#"return (await Promise.any([mcp.fs.read({ path: "none" }), mcp.fs.read({ path: "a" })])).size"#, "5"),
    ("reduce", r#"return await ["a", "b"].reduce(async (n, path) => (await n) + (await mcp.fs.read({ path })).size, Promise.resolve(0))"#, "12"),
    ("a limit of its own", r#"const paths = ["a", "b", "a", "b"]; let n = 0; const work = async () => { for (let path; (path = paths.shift()); ) { const { size } = await mcp.fs.read({ path }); n += size } }; await Promise.all([work(), work()]); return n"#, "24"),
    ("Array.fromAsync", r#"return await Array.fromAsync(["a", "b"], async (path) => (await mcp.fs.read({ path })).size)"#, "[5,7]"),
    // Generators and iterators.
    ("a generator of calls", r#"function* calls() { for (const path of ["a", "b"]) yield mcp.fs.read({ path }) } let n = 0; for (const call of calls()) n += (await call).size; return n"#, "12"),
    ("an async generator", r#"async function* sizes() { for (const path of ["a", "b"]) yield (await mcp.fs.read({ path })).size } const all = []; for await (const size of sizes()) all.push(size); return all"#, "[5,7]"),
    ("an iterator of its own", r#"const paths = { *[Symbol.iterator]() { yield "a"; yield "b" } }; let n = 0; for (const path of paths) n += (await mcp.fs.read({ path })).size; return n"#, "12"),
    ("iterator helpers", r#"const calls = ["a", "b", "none"].values().take(2).map((path) => mcp.fs.read({ path })); return (await Promise.all(calls)).map((r) => r.size)"#, "[5,7]"),
    // Values.
    ("one result in the next", r#"const { content } = await mcp.fs.read({ path: "a" }); const { text } = await mcp.text.case({ text: content, to: "upper" }); return text"#, r#""HELLO""#),
    ("spread members", r#"const base = { path: "b" }; return (await mcp.fs.read({ ...base, path: "a" })).size"#, "5"),
    ("members left out", r#"return await mcp.odd.echo({ a: 1, b: undefined, c: null, d: [undefined, 1] })"#, r#"{"a":1,"c":null,"d":[null,1]}"#),
    ("dates, maps and sets", r#"return await mcp.odd.echo({ date: new Date(0), map: new Map([["k", 1]]), set: new Set([1, 2]) })"#, r#"{"date":"1970-01-01T00:00:00.000Z","map":{"k":1},"set":[1,2]}"#),
    ("a member called then", r#"return (await mcp.odd.echo({ then: 1, constructor: 2 })).then"#, "1"),
    ("a local called mcp", r#"const inner = (mcp) => mcp.fs; return inner({ fs: 5 }) + (await mcp.fs.read({ path: "a" })).size"#, "10"),
    ("timers between calls", r#"await new Promise((done) => setTimeout(done, 1)); return (await mcp.fs.read({ path: "a" })).size"#, "5"),
    ("numbers from elsewhere", r#"const { value } = await mcp.math.evaluate({ expression: `${(await mcp.fs.read({ path: "a" })).size} * 2` }); return value"#, "10"),
];

#[test]
fn what_may_be_done_can_be_done() {
    let config = format!(
        "[permissions]\nodd = {{ approval_mode = \"auto\" }}\n{}{}",
        honeypot("odd", &["--odd"]),
        honeypot("danger", &[])
    );
    let mut gateway = Gateway::start(&config);
    std::fs::write(gateway.path("root/a"), "hello").unwrap();
    std::fs::write(gateway.path("root/b"), "worlds!").unwrap();
    assert!(CASES.len() >= 50);
    let mut wrong = Vec::new();
    for (name, code, expected) in CASES {
        let reply = gateway.run_with(code, &json!({ "how": "read" }));
        let expected: Value = serde_json::from_str(expected).unwrap();
        if reply.result() != Some(&expected) {
            wrong.push(format!("{name}: {expected} was to come: {}", reply.body));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
    assert_eq!(gateway.hits("danger"), 0);
}
