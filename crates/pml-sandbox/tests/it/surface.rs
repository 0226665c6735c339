//! What a program finds, and what it does not find.

use expect_test::{expect, expect_file};

use crate::host::{START_MS, echo, ending_of, play, program, story, value_of};
use crate::tests;
use pml_sandbox::WorkerEvent;

tests![
    everything_within_reach_is_known,
    nothing_makes_code_from_text,
    what_shows_the_outside_is_absent,
    tools_are_fixed,
    names_of_the_surface_can_be_shadowed_but_not_changed,
    only_granted_tools_exist,
    a_program_sees_no_other,
    time_is_the_time_of_the_last_delivery,
    dates_otherwise_work,
    chance_is_seeded,
    timers_fire_in_the_order_of_delivery,
    timers_can_be_cleared,
    timers_take_functions_only,
    the_console_shows_values,
    the_console_formats,
    the_console_is_bounded,
    showing_runs_no_code_of_the_program,
    progress_and_hint_are_told_once_a_turn,
    structured_clone_copies,
    stacks_name_the_program_only,
    changed_prototypes_do_not_reach_us,
];

/// An update of the engine that brings something new changes the file, and somebody has to look at it.
fn everything_within_reach_is_known() {
    let json = value_of(include_str!("globals.js"));
    let text: String = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{json}"));
    expect_file!["globals.txt"].assert_eq(&text);
}

fn nothing_makes_code_from_text() {
    for attempt in [
        "eval('1')",
        "(0, eval)('1')",
        "globalThis.eval('1')",
        "new Function('return 1')()",
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "new (async () => {}).constructor('return 1')()",
        "(function* () {}).constructor('yield 1')()",
        "(async function* () {}).constructor('yield 1')()",
        "mcp.fs.read.constructor('return 1')()",
        "Reflect.construct(Function, ['return 1'])",
        "new (class extends Function {})('return 1')",
        "console.log.constructor('return 1')()",
    ] {
        let js = format!("try {{ {attempt}; return 'ran' }} catch (error) {{ return error.name }}");
        assert_eq!(value_of(&js), r#""EvalError""#, "{attempt}");
    }
    assert_eq!(value_of("return (() => {}) instanceof Function"), "true");
    assert!(value_of("await import('data:text/javascript,1')").starts_with("threw "));
    assert!(value_of("setTimeout('1')").starts_with("threw TypeError"));
    assert!(value_of("require('fs')").starts_with("threw ReferenceError"));
}

fn what_shows_the_outside_is_absent() {
    let names = "SharedArrayBuffer Atomics WeakRef FinalizationRegistry performance process Deno require module \
                 exports std os gc print navigator fetch WebAssembly InternalError DOMException";
    for name in names.split_whitespace() {
        assert_eq!(value_of(&format!("return typeof {name}")), r#""undefined""#, "{name}");
    }
    let js = "Error.prepareStackTrace = () => 'hooked'; Error.stackTraceLimit = 0;
              try { null.x } catch (error) { return [typeof error.stack, error.stack.includes('hooked')] }";
    assert_eq!(value_of(js), r#"["string",false]"#);
}

fn tools_are_fixed() {
    let js = "
        const attempts = {
            tool: () => { mcp.fs.read = () => 'fake' },
            server: () => { mcp.fs = {} },
            added: () => { mcp.fs.more = 1 },
            redefined: () => Object.defineProperty(mcp, 'fs', { value: {} }),
            binding: () => { mcp = {} },
            global: () => { globalThis.mcp = { fs: { read: () => 'x' } } },
            deleted: () => { delete globalThis.mcp },
            replaced: () => Object.defineProperty(globalThis, 'mcp', { value: {} }),
            prototype: () => Object.setPrototypeOf(mcp.fs, { more: 1 }),
            function: () => { mcp.fs.read.call = 1 },
            args: () => { args = 1 },
        };
        return Object.entries(attempts).map(([name, attempt]) => {
            try { attempt(); return `${name}: allowed` } catch (error) { return `${name}: ${error.name}` }
        }).join(', ');";
    expect![[r#""tool: TypeError, server: TypeError, added: TypeError, redefined: TypeError, binding: TypeError, global: TypeError, deleted: TypeError, replaced: TypeError, prototype: TypeError, function: TypeError, args: TypeError""#]]
        .assert_eq(&value_of(js));
}

fn names_of_the_surface_can_be_shadowed_but_not_changed() {
    assert_eq!(value_of("const mcp = 1, args = 2, console = 3; return mcp + args + console"), "6");
    assert_eq!(value_of("function f(mcp) { return mcp } return f(4)"), "4");
    assert_eq!(value_of("console.log = () => {}; console.log('quiet'); return 1"), "1");
}

fn only_granted_tools_exist() {
    let js = "
        return [
            Object.keys(mcp), Object.keys(mcp.fs), mcp.fs['write-file'] === mcp.fs.write_file,
            ...[mcp.danger, mcp.__proto__, mcp.constructor, mcp['fs:read'], mcp.fs.Read, mcp.fs['read\\0'], mcp.fs['reаd']]
                .map((found) => found === undefined),
            Object.keys(capabilities), typeof mcp.fs.read, mcp.fs.read.name, mcp.fs.read.length,
        ];";
    expect![[r#"[["fs","my-server"],["read","write-file","write_file"],true,true,true,true,true,true,true,true,[],"function","read",1]"#]]
        .assert_eq(&value_of(js));
    assert!(value_of("mcp.danger.delete({})").starts_with("threw TypeError"));
    assert!(value_of("new mcp.fs.read({})").starts_with("threw TypeError"));
}

fn a_program_sees_no_other() {
    value_of("globalThis.left = 1; Array.prototype.left = 1; Object.prototype.left = 1");
    assert_eq!(value_of("return [typeof left, [].left ?? 'none']"), r#"["undefined","none"]"#);
}

fn time_is_the_time_of_the_last_delivery() {
    let js = "
        const start = [Date.now(), new Date().getTime(), Date() === new Date().toString()];
        for (let i = 0; i < 100000; i++);
        const same = Date.now();
        await mcp.fs.read({});
        const called = Date.now();
        await new Promise((then) => setTimeout(then, 5000));
        return [...start, same, called, Date.now()].map((time) => typeof time === 'number' ? time - START : time);";
    let js = js.replace("START", &START_MS.to_string());
    assert_eq!(value_of(&js), "[0,0,true,0,10,20]");
}

fn dates_otherwise_work() {
    let js = "
        class Day extends Date { name() { return 'day' } }
        const day = new Day(2020, 1, 29);
        return [
            day instanceof Date, day.name(), day.toISOString(), day.getTimezoneOffset(), Date.length, Date.name,
            new Date(0).toString(), Date.UTC(2020, 0), Date.parse('2020-01-01T00:00:00'), new Date(NaN).getTime() !== 0,
            new Date(0).constructor === Date, Object.prototype.toString.call(new Date()), new Date('2020-06-01').getMonth(),
        ];";
    expect![[r#"[true,"day","2020-02-29T00:00:00.000Z",0,7,"Date","Thu Jan 01 1970 00:00:00 GMT+0000",1577836800000,1577836800000,true,true,"[object Date]",5]"#]]
        .assert_eq(&value_of(js));
}

fn chance_is_seeded() {
    let mut seeded = program("return [Math.random(), Math.random(), Math.random()]");
    let first = ending_of(&seeded);
    assert_eq!(ending_of(&seeded), first);
    seeded.seed += 1;
    assert_ne!(ending_of(&seeded), first);
    let js = "let sum = 0; for (let i = 0; i < 10000; i++) { const x = Math.random(); if (x < 0 || x >= 1) return x; sum += x }
              return Math.abs(sum / 10000 - 0.5) < 0.02";
    assert_eq!(value_of(js), "true");
}

fn timers_fire_in_the_order_of_delivery() {
    let js = "
        const said = [];
        setTimeout((a, b) => said.push(['late', a, b]), 500, 1, 2);
        setTimeout(() => said.push('text'), '7.9');
        setTimeout(() => said.push('negative'), -1);
        const every = setInterval(() => { said.push('every'); if (said.length > 4) clearInterval(every) }, 100);
        queueMicrotask(() => said.push('micro'));
        await new Promise((then) => setTimeout(then, 10000));
        await new Promise((then) => setTimeout(then));
        return said;";
    expect![[r#"
        timer 1 in 500
        timer 2 in 7
        timer 3 in 0
        timer 4 in 100
        timer 5 in 10000
        timer 6 in 0
        ["micro",["late",1,2],"text","negative","every"]
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn timers_can_be_cleared() {
    let js = "
        const said = [];
        const first = setTimeout(() => said.push('never'), 1);
        clearTimeout(first); clearTimeout(first); clearTimeout(99); clearTimeout(undefined); clearInterval('x');
        let turns = 0;
        await new Promise((then) => { const every = setInterval(() => { if (++turns === 3) { clearInterval(every); then() } }, 5) });
        return [said, turns, typeof first];";
    expect![[r#"
        timer 1 in 1
        timer 1 cleared
        timer 2 in 5
        timer 3 in 5
        timer 4 in 5
        [[],3,"number"]
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn timers_take_functions_only() {
    for js in ["setTimeout('mcp.fs.read({})', 1)", "setInterval()", "queueMicrotask('1')"] {
        assert!(value_of(js).starts_with("threw TypeError"), "{js}");
    }
    let js = "for (let i = 0; i < 20000; i++) setTimeout(() => {}, 1e9)";
    assert_eq!(value_of(js).split(" at ").next(), Some("threw RangeError: more than 10000 timers are set"));
}

fn console_of(js: &str) -> String {
    let events = play(&program(js), echo).unwrap();
    let text = events.iter().filter_map(|event| match event {
        WorkerEvent::Console { level, text, .. } => Some(format!("{level:?} {text}\n")),
        WorkerEvent::ConsoleCut => Some("cut\n".to_owned()),
        WorkerEvent::Ended(ending) if !matches!(ending, pml_sandbox::ProgramEnding::Value(_)) => {
            Some(format!("{ending:?}\n"))
        }
        _ => None,
    });
    text.collect()
}

fn the_console_shows_values() {
    let js = r#"
        class Point { constructor() { this.x = 1 } get y() { return 2 } }
        const circle = { name: "c" }; circle.self = circle;
        console.log("text", 1, -0, NaN, 10n, true, null, undefined, Symbol("s"));
        console.info({ a: "x\n", "b-c": [1, , "d"], [Symbol("k")]: 1, nested: { a: { b: { c: { d: 1 } } } } });
        console.warn(new Map([["k", { v: 1 }]]), new Set([1, "a"]), new Date(0), /a+/gi, new Date(NaN));
        console.error(new TypeError("bad"), new Error("outer", { cause: new Error("inner") }), [new RangeError()]);
        console.debug(new Point(), Object.create(null), circle, function f() {}, () => {}, class A {}, Promise.resolve());
        console.log(new Uint8Array([1, 2]), new ArrayBuffer(8), new String("s"), new Proxy({}, {}), Object.assign([1], { x: 2 }));
        console.log(Array.from({ length: 105 }, (_, i) => i).map(String).length, Array(103).fill(0), { get g() { return 1 } });
        console.log(mcp, args);
        console.log();
    "#;
    expect![[r#"
        Log text 1 -0 NaN 10n true null undefined Symbol(s)
        Info { a: "x\n", "b-c": [ 1, <empty>, "d" ], nested: { a: { b: { c: [Object] } } }, [Symbol(k)]: 1 }
        Warn Map(1) { "k" => { v: 1 } } Set(2) { 1, "a" } 1970-01-01T00:00:00.000Z /a+/gi Invalid Date
        Error [TypeError: bad] [Error: outer] { cause: [Error: inner] } [ [RangeError] ]
        Debug Point { x: 1 } [Object: null prototype] {} { name: "c", self: [Circular] } [Function: f] [Function (anonymous)] [Function: A] Promise {}
        Log Uint8Array(2) [ 1, 2 ] ArrayBuffer { byteLength: 8 } [String: "s"] [Proxy] [ 1 ]
        Log 105 [ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, … 3 more ] { g: [Getter] }
        Log [Object: null prototype] { fs: [Object: null prototype] { read: [Function: read], "write-file": [Function: write-file], write_file: [Function: write-file] }, "my-server": [Object: null prototype] { go: [Function: go] } } { dir: "/d", n: 3 }
        Log 
    "#]].assert_eq(&console_of(js));
}

fn the_console_formats() {
    let js = r#"
        console.log("%s is %d and %i, %f, %j %% %c %o", "a", 1.5, 1.5, "2.5", { a: 1 }, "css", [1], "more");
        console.log("100%", 1, "%s");
        console.log("%s");
        console.assert(true, "no"); console.assert(false, "yes", 1); console.assert(false);
        console.count(); console.count(); console.count("x"); console.countReset(); console.count();
        console.group("outer"); console.log("inner"); console.groupEnd(); console.log("after");
        console.time("t"); await mcp.fs.read({}); console.timeEnd("t");
        console.table([{ a: 1 }]); console.dir({ a: 1 }); console.trace("here");
    "#;
    expect![[r#"
        Log a is 1.5 and 1, 2.5, { a: 1 } %  [ 1 ] more
        Log 100% 1 %s
        Log %s
        Error Assertion failed: yes 1
        Error Assertion failed
        Log default: 1
        Log default: 2
        Log x: 1
        Log default: 1
        Log outer
        Log   inner
        Log after
        Log t: 10ms
        Log [ { a: 1 } ]
        Log { a: 1 }
        Debug here
    "#]]
    .assert_eq(&console_of(js));
}

fn the_console_is_bounded() {
    let mut small =
        program("console.log('é'.repeat(30)); console.log('x'.repeat(1e6)); console.log('never'); return 1");
    small.limits.console_bytes = 100;
    expect![[r#"
        Log éééééééééééééééééééééééééééééé
        Log xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        ConsoleCut
        1
    "#]]
    .assert_eq(&story(&small, echo));
    let flood = "for (let i = 0; i < 1e5; i++) console.log(); return 1";
    let lines = play(&program(flood), echo).unwrap().len();
    assert!((65_000..66_000).contains(&lines), "{lines}");
    let deep = "let deep = {}; for (let i = 0; i < 1e4; i++) deep = { deep, wide: Array(20).fill(deep) }; console.log(deep); return 1";
    assert_eq!(value_of(deep), "1");
}

fn showing_runs_no_code_of_the_program() {
    let js = r#"
        let ran = 0;
        const trap = () => { ran++; return "trapped" };
        Object.prototype.toJSON = Array.prototype.toJSON = trap;
        Object.prototype.toString = trap; Array.prototype[Symbol.iterator] = trap; Array.prototype.join = trap;
        console.log({ get a() { ran++; return 1 }, toString: trap, [Symbol.toPrimitive]: trap }, [1, 2], new Proxy({}, { ownKeys: trap, get: trap }));
        return ran;
    "#;
    assert_eq!(value_of(js), "0");
}

fn progress_and_hint_are_told_once_a_turn() {
    let js = r#"
        for (let i = 0; i < 1000; i++) pml.progress(i, 1000, `step ${i}`);
        pml.hint({ name: "first" }); pml.hint({ name: "copy files", description: "d" });
        await mcp.fs.read({});
        pml.progress(1);
        const wrong = [() => pml.progress("1"), () => pml.progress(NaN), () => pml.hint(1), () => pml.hint({ f() {} })];
        return wrong.map((attempt) => { try { attempt(); return "fine" } catch (error) { return error.name } });
    "#;
    expect![[r#"
        call 1 of 1 at 0@0 {}
        Progress { done: 999.0, total: Some(1000.0), message: Some("step 999") }
        Hint { json: "{\"name\":\"copy files\",\"description\":\"d\"}" }
        Progress { done: 1.0, total: None, message: None }
        ["TypeError","TypeError","TypeError","TypeError"]
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn structured_clone_copies() {
    let js = r#"
        const given = { map: new Map([["a", new Set([1])]]), date: new Date(0), bytes: new Uint8Array([1, 2]), list: [1, , 3],
            re: /a/g, big: 1n, error: new TypeError("bad"), ["__proto__"]: 5, boxed: Object("s") };
        given.self = given; given.again = given.date;
        const made = structuredClone(given);
        made.bytes[0] = 9;
        const refused = [() => {}, Symbol("s"), Promise.resolve(), new WeakMap()].map((value) => {
            try { structuredClone(value); return "fine" } catch (error) { return error.name } });
        return [made !== given, made.self === made, made.date === made.again, made.date !== given.date, given.bytes[0],
            made.map.get("a").has(1), made.list.length, 1 in made.list, made.re.source + made.re.flags, made.big === 1n,
            made.error instanceof TypeError, made.error.message, Object.getOwnPropertyDescriptor(made, "__proto__").value,
            typeof made.boxed, refused.join()];
    "#;
    expect![[r#"[true,true,true,true,1,true,3,false,"ag",true,true,"bad",5,"object","DataCloneError,DataCloneError,DataCloneError,DataCloneError"]"#]]
        .assert_eq(&value_of(js));
}

fn stacks_name_the_program_only() {
    let js = "function inner() { return new Error('x').stack }\nreturn [1].map(inner)[0]";
    let stack = value_of(js);
    assert!(stack.contains("program.ts:1"), "{stack}");
    assert!(!stack.contains("/pml"), "{stack}");
    let js = "try { queueMicrotask(1) } catch (error) { return error.stack }";
    assert!(!value_of(js).contains('/'), "{}", value_of(js));
}

/// A program may break its own world as it likes; what is ours goes on.
fn changed_prototypes_do_not_reach_us() {
    let js = r#"
        const { ownKeys, defineProperty } = Reflect, evil = () => { throw "evil" };
        const makers = [Object, Array, Map, Set, WeakMap, String, Number, Date, Promise, RegExp, Error];
        for (let m = 0; m < makers.length; m++) {
            const prototype = makers[m].prototype, keys = ownKeys(prototype);
            for (let k = 0; k < keys.length; k++) try { prototype[keys[k]] = evil } catch {}
        }
        const globals = ownKeys(globalThis);
        for (let k = 0; k < globals.length; k++) if (globals[k] !== "console") try { delete globalThis[globals[k]] } catch {}
        const words = { 0: "get", 1: "set", 2: "value", 3: "writable" };
        for (let i = 0; i < 4; i++) defineProperty(makers[1].prototype, i, { __proto__: null, set: evil, get: evil });
        for (let i = 0; i < 4; i++) defineProperty(makers[0].prototype, words[i], { __proto__: null, value: evil });
        console.log({ a: [1, "b"] }, "c");
        mcp.fs.read({ a: [1] }, ...P.at(5, 6));
        P.is(1, true); P.case(2, 0); P.turn(3);
        return 1;
    "#;
    expect![[r#"
        Log evil { a: [ 1, "b" ] } c
        call 1 of 1 at 5@6 {"a":[1]}
        reached Is 1@0 1 ×1, Case 2@0 0 ×1, Turn 3@0 0 ×1
        1
    "#]]
    .assert_eq(&story(&program(js), echo));
}
