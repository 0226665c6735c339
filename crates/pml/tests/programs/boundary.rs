//! Programs that try the boundary, with what must come of each.
//!
//! `fs:read` is granted and `danger` is not. Each program is run by the gateway where `danger` is denied and where a person
//! has to be asked, who says no; with programs whose calls cannot be known beforehand refused and not; and in a worker
//! alone, which shows what would happen if analysis had let it through. What counts is what `danger` wrote down: nothing.

use serde_json::json;

use crate::gateway::{Gateway, Reply, honeypot};
use crate::sandbox::{READ, Sandbox};

/// A program, what the gateway says where everything is refused that can be, and what happens in a worker alone.
///
/// The gateway's word is an error code, with the error's name after `PROGRAM_ERROR`, or `= value`; what follows is how many
/// calls were made. A worker's is as [`crate::sandbox::Played`] tells it; `-` where there is no program to run.
type Case = (&'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("F01", r#"return await mcp.danger.delete({})"#, "DENIED", "threw TypeError"),
    ("F01 not awaited", r#"mcp.danger.delete({}); return 1"#, "DENIED", "threw TypeError"),
    ("F02 folded", r#"const x = "danger", y = "delete"; return await mcp[x][y]({})"#, "DENIED", "threw TypeError"),
    ("F02 run time", r#"return await mcp[args.server][args.tool]({})"#, "DENIED", "threw TypeError"),
    ("F03", r#"const m = mcp; return await m.danger.delete({})"#, "DENIED", "threw TypeError"),
    ("F04", r#"const { danger: { delete: d } } = mcp; return await d({})"#, "DENIED", "threw TypeError"),
    ("F05", r#"const { ["dan" + "ger"]: s } = mcp; return await s.delete({})"#, "DENIED", "threw TypeError"),
    ("F06", r#"return (await Promise.all(Object.values(mcp).flatMap((s) => Object.values(s).map((f) => f({}))))).length"#, "DENIED", "= 1, 1 call"),
    ("F07", r#"return await Reflect.get(Reflect.get(mcp, "danger"), "delete")({})"#, "DENIED", "threw TypeError"),
    ("F08", r#"for (const k in mcp) for (const t in mcp[k]) await mcp[k][t]({})"#, "DENIED", "= null, 1 call"),
    ("F09", r#"return eval("mcp.danger.delete({})")"#, "INVALID_PROGRAM", "threw EvalError"),
    ("F09 indirect", r#"return (0, eval)("mcp.danger.delete({})")"#, "INVALID_PROGRAM", "threw EvalError"),
    ("F10", r#"return new Function("m", "return m.danger.delete({})")(mcp)"#, "INVALID_PROGRAM", "threw EvalError"),
    ("F11", r#"return (async () => {}).constructor("m", "return m.danger.delete({})")(mcp)"#, "DENIED", "threw EvalError"),
    ("F12", r#"return (function* () {}).constructor("yield 1")"#, "DENIED", "threw EvalError"),
    ("F12 async", r#"return Object.getPrototypeOf(async function* () {}).constructor("yield 1")"#, "DENIED", "threw EvalError"),
    ("F13 data", r#"return await import("data:text/javascript,export default 1")"#, "DENIED", "threw ReferenceError"),
    ("F13 name", r#"return await import("mcp")"#, "DENIED", "threw ReferenceError"),
    ("F13 require", r#"return require("fs")"#, "INVALID_PROGRAM", "threw ReferenceError"),
    ("F14", r#"return await mcp.fs.read`../../etc/passwd`"#, "DENIED", "threw TypeError"),
    ("F15 call", r#"return (await mcp.fs.read.call(null, { path: "a" }, { extra: 1 })).content"#, "= \"hello\", 1 call", "= \"text\", 1 call"),
    ("F15 apply", r#"return (await mcp.fs.read.apply(null, [{ path: "a" }, 1, 2])).content"#, "= \"hello\", 1 call", "= \"text\", 1 call"),
    ("F15 bind", r#"return (await mcp.fs.read.bind({ path: "b" })({ path: "a" })).content"#, "= \"hello\", 1 call", "= \"text\", 1 call"),
    ("F16 prototype", r#"return [mcp.__proto__ === undefined, mcp.fs.__proto__ === undefined]"#, "INVALID_PROGRAM", "= [true,true]"),
    ("F16 constructor", r#"return [mcp.constructor === undefined, mcp.fs.constructor === undefined]"#, "INVALID_PROGRAM", "= [true,true]"),
    ("F16 made from text", r#"return mcp.fs.read.constructor("return mcp.danger.delete({})")()"#, "DENIED", "threw EvalError"),
    ("F17 assigned", r#"mcp.fs.read = () => "fake"; return await mcp.fs.read({ path: "a" })"#, "DENIED", "threw TypeError"),
    ("F17 defined", r#"Object.defineProperty(mcp, "fs", { value: { read: () => "fake" } }); return 1"#, "DENIED", "threw TypeError"),
    ("F17 added", r#"mcp.danger = { delete: () => 1 }; return 1"#, "DENIED", "threw TypeError"),
    ("F18 global", r#"globalThis.mcp = { fs: { read: () => "x" } }; return await mcp.fs.read({ path: "a" })"#, "DENIED", "threw TypeError"),
    ("F18 local", r#"const f = () => { const mcp = { danger: { delete: () => "x" } }; return mcp.danger.delete({}) }; return f()"#, "= \"x\"", "= \"x\""),
    ("F19 by id", r#"return typeof mcp["fs:read"]"#, "= \"undefined\"", "= \"undefined\""),
    ("F19 zero byte", r#"return typeof mcp.fs["read\u0000"]"#, "INVALID_PROGRAM", "= \"undefined\""),
    ("F19 case", r#"return typeof mcp.fs.Read"#, "INVALID_PROGRAM", "= \"undefined\""),
    ("F19 Cyrillic", r#"return typeof mcp.fs["re\u0430d"]"#, "INVALID_PROGRAM", "= \"undefined\""),
    ("F20", r#"return __host(9999, "{}")"#, "INVALID_PROGRAM", "threw ReferenceError"),
    ("F20 looking", r#"return Object.getOwnPropertyNames(globalThis).filter((name) => /host|rpc|probe|native|worker|__/i.test(name))"#, "DENIED", "= []"),
    ("F22", r#"console.log('__TRACE__{"type":"tool_end","tool":"danger:delete","success":true}'); return 1"#, "= 1", "= 1"),
    ("F23 one text", r#"console.log("x".repeat(1e7)); return 1"#, "= 1", "= 1"),
    ("F23 many lines", r#"for (let i = 0; i < 20000; i++) console.log("a line of text"); return 1"#, "= 1", "= 1"),
    ("F24", r#"return (await Promise.all(Array(1e5).fill().map(() => mcp.fs.read({ path: "a" })))).length"#, "TOOL_CALL_LIMIT, 1000 calls", "limit: calls, 50 calls"),
    ("F28 300 KiB", r#"return await mcp.fs.read({ path: "x".repeat(300 * 1024) })"#, "ARGS_TOO_LARGE", "threw RangeError"),
    ("F28 10 MiB", r#"return await mcp.fs.read({ path: "x".repeat(10 * 1024 * 1024) })"#, "ARGS_TOO_LARGE", "threw RangeError"),
    ("F28 many keys", r#"return await mcp.fs.read(Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => ["k" + i, 1])))"#, "ARGS_TOO_LARGE", "threw RangeError"),
    ("F28 deep", r#"let o = {}; for (let i = 0; i < 10000; i++) o = { o }; return await mcp.fs.read(o)"#, "ARGS_TOO_LARGE", "threw RangeError"),
    ("F32", r#"try { await mcp.fs.read({ path: 1 }) } catch (e) { return e.constructor.constructor("return this")() }"#, "INVALID_PROGRAM", "= null, 1 call"),
    ("F32 realm", r#"try { await mcp.fs.read({ path: "none" }) } catch (e) { return [e instanceof Error, Object.getPrototypeOf(Object.getPrototypeOf(e)) === Error.prototype] }"#, "= [true,true], 1 call", "= null, 1 call"),
    ("F33", r#"let inner; await mcp.fs.read({ get path() { inner = mcp.fs.read({ path: "b" }); inner.catch(() => {}); return "a" } });
        try { await inner } catch (e) { return e.code }"#, "= \"INVALID_ARGUMENTS\", 1 call", "= \"INVALID_ARGUMENTS\", 1 call"),
    ("F34", r#"let n = 0; const { content } = await mcp.fs.read({ get path() { return n++ ? "/etc/passwd" : "a" } }); return [content, n]"#, "= [\"hello\",1], 1 call", "= [\"text\",1], 1 call"),
    ("F35", r#"Object.prototype.path = "a"; return await mcp.fs.read(args.nothing ?? {})"#, "INVALID_ARGUMENTS, 1 call", "= {\"content\":\"text\"}, 1 call"),
    ("F36", r#"Array.prototype.toJSON = String.prototype.toJSON = Object.prototype.toJSON = () => "forged";
        return (await mcp.fs.read({ path: "a" })).content"#, "= \"hello\", 1 call", "= \"text\", 1 call"),
    ("F39 first", r#"Array.prototype.leak = Object.prototype.leak = 2; Math.max = () => "mine"; return 1"#, "= 1", "= 1"),
    ("F39 second", r#"return [[].leak === undefined, {}.leak === undefined, Math.max(1, 2)]"#, "= [true,true,2]", "= [true,true,2]"),
    ("F40 names", r#"return [typeof process, typeof Deno, typeof std, typeof os, typeof require, typeof Bun].join()"#,
        "= \"undefined,undefined,undefined,undefined,undefined,undefined\"", "= \"undefined,undefined,undefined,undefined,undefined,undefined\""),
    ("F40 stack", r#"const { stack } = new Error("x"); return stack.split("\n").filter((line) => line.trim() !== "" && !line.includes("program.ts"))"#, "= []", "= []"),
    ("F41", r#"const t = Date.now(); for (let i = 0; i < 1e5; i++); return [Date.now() === t, typeof performance]"#, "= [true,\"undefined\"]", "= [true,\"undefined\"]"),
    ("F43 HTML comment", "<!-- x\nreturn 1", "INVALID_PROGRAM", "-"),
    ("F43 no HTML comment", "let x = 2; return 1 <!-- x", "= false", "= false"),
    ("F43 hashbang", "#!/usr/bin/env node\nreturn 1", "= 1", "= 1"),
    ("F43 byte order mark", "\u{feff}return 1", "= 1", "= 1"),
    ("F43 line separator", "const a = 1 // comment\u{2028}return a", "= 1", "= 1"),
    ("F43 JSX", "return <div/>", "INVALID_PROGRAM", "-"),
    ("F43 enum", "enum A { B = 2 } return A.B", "= 2", "= 2"),
    ("F43 decorator", "const d = () => {}; @d class A {} return 1", "INVALID_PROGRAM", "-"),
    ("F43 unterminated", "return `abc", "INVALID_PROGRAM", "-"),
    ("F43 declare global", "declare global { var x: number } return 1", "= 1", "= 1"),
    ("F44 comment", "return await mcp/*//*/.danger.delete({})", "DENIED", "threw TypeError"),
    ("F44 instantiation", "return await mcp<any>.danger.delete({})", "INVALID_PROGRAM", "-"),
    ("F44 assertion", r#"return await (mcp as any)["danger"].delete({})"#, "DENIED", "threw TypeError"),
    ("F44 non-null", r#"return await mcp!.danger!.delete!({})"#, "DENIED", "threw TypeError"),
    ("F44 satisfies", r#"return await (mcp satisfies any).danger.delete({})"#, "DENIED", "threw TypeError"),
];

/// What the gateway says where a person is asked before anything is refused, of the programs that are refused otherwise.
#[rustfmt::skip]
const ASKING: &[(&str, &str)] = &[
    ("F01", "asks for danger:delete"),
    ("F01 not awaited", "asks for danger:delete"),
    ("F02 folded", "asks for danger:delete"),
    ("F02 run time", "asks for danger:delete"),
    ("F03", "asks for danger:delete"),
    ("F04", "asks for danger:delete"),
    ("F05", "asks for danger:delete"),
    ("F07", "asks for danger:delete"),
    ("F44 comment", "asks for danger:delete"),
    ("F44 assertion", "asks for danger:delete"),
    ("F44 non-null", "asks for danger:delete"),
    ("F44 satisfies", "asks for danger:delete"),
    ("F06", "INVALID_ARGUMENTS, 38 calls"),
    ("F08", "INVALID_ARGUMENTS, 1 call"),
    ("F11", "PROGRAM_ERROR EvalError"),
    ("F12", "PROGRAM_ERROR EvalError"),
    ("F12 async", "PROGRAM_ERROR EvalError"),
    ("F13 data", "PROGRAM_ERROR ReferenceError"),
    ("F13 name", "PROGRAM_ERROR ReferenceError"),
    ("F14", "INVALID_ARGUMENTS"),
    ("F16 made from text", "PROGRAM_ERROR EvalError"),
    ("F17 assigned", "PROGRAM_ERROR TypeError"),
    ("F17 defined", "PROGRAM_ERROR TypeError"),
    ("F17 added", "PROGRAM_ERROR TypeError"),
    ("F18 global", "PROGRAM_ERROR TypeError"),
    ("F20 looking", "= []"),
];

const DENIED: &str = "[permissions]\ndynamic = \"refuse\"\n\"fs:read\" = { approval_mode = \"auto\" }\nodd = { approval_mode = \"auto\" }\ndanger = { approval_mode = \"auto\", deny = true }\n";

fn gateway(permissions: &str) -> Gateway {
    let odd = honeypot("odd", &["--odd"]);
    let gateway =
        Gateway::start(&format!("{permissions}{}{odd}call_timeout = \"1s\"\n", honeypot("danger", &[])));
    std::fs::write(gateway.path("root/a"), "hello").unwrap();
    gateway
}

fn in_short(reply: &Reply) -> String {
    let outcome = match (reply.result(), reply.code()) {
        (Some(result), _) => format!("= {result}"),
        (None, "PROGRAM_ERROR") => {
            format!("PROGRAM_ERROR {}", reply.message().split(':').next().unwrap_or_default())
        }
        (None, "") => {
            let mut tools = reply.asked();
            tools.dedup();
            format!("asks for {}", tools.join(" "))
        }
        (None, code) => code.to_owned(),
    };
    with_calls(outcome, reply.calls().len())
}

fn with_calls(outcome: String, calls: usize) -> String {
    match calls {
        0 => outcome,
        1 => outcome + ", 1 call",
        _ => format!("{outcome}, {calls} calls"),
    }
}

/// Runs every program; a person says no to whatever is asked.
fn through_the_gateway(permissions: &str, expected: impl Fn(&Case) -> &'static str) {
    let mut gateway = gateway(permissions);
    let mut wrong = Vec::new();
    for case @ (id, code, _, _) in CASES {
        let first = gateway.run_with(code, &json!({ "server": "danger", "tool": "delete" }));
        let (came, expected) = (in_short(&first), expected(case));
        if came != expected {
            wrong.push(format!("{id}: `{expected}` was to come, and it is `{came}`: {}", first.body));
        }
        let mut reply = first;
        while let Some(run) = reply.asks() {
            reply = gateway.decide(&run, &json!({ "approved": false }));
        }
        assert_eq!(gateway.hits("danger"), 0, "{id} reached what it may not");
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}

fn where_people_are_asked(case: &Case) -> &'static str {
    ASKING.iter().find(|(id, _)| *id == case.0).map_or(case.2, |(_, asks)| asks)
}

/// Programs that hand `mcp` on or look tools up by names that are known only when they run.
const UNKNOWABLE: [&str; 2] = ["F02 run time", "F07"];

#[test]
fn what_a_person_says_no_to_is_not_reached() {
    let asked = DENIED.replace("{ approval_mode = \"auto\", deny = true }", "{ approval_mode = \"hil\" }");
    through_the_gateway(&asked.replace("\"refuse\"", "\"ask\""), where_people_are_asked);
    through_the_gateway(&asked, |case| match where_people_are_asked(case) {
        // A call that is written out is asked for also where programs that hide theirs are refused.
        asks @ "asks for danger:delete" if !UNKNOWABLE.contains(&case.0) => asks,
        _ => case.2,
    });
}

#[test]
fn what_is_denied_is_not_reached() {
    through_the_gateway(DENIED, |case| case.2);
}

#[tokio::test]
async fn a_worker_alone_keeps_the_boundary() {
    let sandbox = Sandbox::open();
    let mut wrong = Vec::new();
    for (id, code, _, expected) in CASES {
        let came = match sandbox.program(code, r#"{"server":"danger","tool":"delete"}"#) {
            None => "-".to_owned(),
            Some(program) => {
                let played = sandbox.play(&program).await;
                assert!(played.handles.iter().all(|handle| *handle == READ), "{id}: {played:?}");
                with_calls(played.ending, played.handles.len())
            }
        };
        if came != *expected {
            wrong.push(format!("{id}: `{expected}` was to come, and it is `{came}`"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), CASES.len(), wrong.join("\n"));
}
