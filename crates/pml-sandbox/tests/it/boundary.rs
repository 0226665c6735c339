//! Values that leave the program and values that come in.

use expect_test::expect;

use crate::host::{echo, ending_of, play, program, story, value_of};
use crate::tests;
use pml_sandbox::{DeliveryPayload, ToolCallError, WorkerEvent};

tests![
    conversions,
    what_has_no_json_is_refused_by_name,
    arguments_are_one_object,
    the_true_members_are_sent,
    members_are_read_once,
    no_tool_is_called_while_arguments_are_read,
    sizes_are_limited,
    results_are_data,
    failed_calls_are_tool_errors,
    an_error_of_the_host_cannot_be_forged,
    a_call_ends_once,
    calls_are_numbered_in_the_order_they_are_made,
];

/// What arrives for a member `v` of the arguments, and for the same as the value of the program.
fn sent(value: &str) -> String {
    let call = format!("await mcp.fs.read({{ v: {value} }})");
    let events = play(&program(&call), echo).unwrap();
    let arguments = events.iter().find_map(|event| match event {
        WorkerEvent::Call { arguments, .. } => Some(arguments.clone()),
        _ => None,
    });
    let arguments = arguments.unwrap_or_else(|| value_of(&call));
    let returned = value_of(&format!("return {{ v: {value} }}"));
    if returned != arguments {
        return format!("{arguments} | {returned}");
    }
    arguments
}

fn conversions() {
    let cases = [
        "null",
        "true",
        "'text'",
        "'\\ud800a\\u0000\\n\\\\\"\\u2028é😀'",
        "0",
        "-0",
        "1.5",
        "1e21",
        "1e-7",
        "5e-324",
        "9007199254740993",
        "0.1 + 0.2",
        "undefined",
        "[undefined, , 1]",
        "{ a: undefined, b: 1 }",
        "new Date(0)",
        "new Date(8.64e15)",
        "new Map([['a', 1], ['__proto__', 2]])",
        "new Set([1, 'a', [2]])",
        "new Uint8Array([1, 255])",
        "new Float64Array([0.5])",
        "new TypeError('bad')",
        "new (class A { x = 1; #y = 2; get z() { return 3 } })",
        "Object.create({ inherited: 1 })",
        "Object('s')",
        "Object(1)",
        "Object(false)",
        "(function () { return arguments })(1, 2)",
        "Object.assign([1], { extra: 2 })",
        "{ [Symbol('s')]: 1, 2: 3, 1: 4 }",
        "JSON.parse('{\"__proto__\":{\"x\":1}}')",
        "Object.defineProperty({}, 'hidden', { value: 1 })",
        "new Proxy([1, 2], {})",
        "new Proxy(new Proxy([], {}), {})",
        "new Proxy({ a: 1 }, { get: () => 5 })",
        "Object.freeze({ a: 1 })",
        "(() => { const a = {}; return [a, a] })()",
        "{ toJSON: 1 }",
        "{ then: 1 }",
    ];
    let table: String = cases.iter().map(|case| format!("{case} → {}\n", sent(case))).collect();
    expect![[r#"
        null → {"v":null}
        true → {"v":true}
        'text' → {"v":"text"}
        '\ud800a\u0000\n\\"\u2028é😀' → {"v":"�a\u0000\n\\\" é😀"}
        0 → {"v":0}
        -0 → {"v":0}
        1.5 → {"v":1.5}
        1e21 → {"v":1e+21}
        1e-7 → {"v":1e-7}
        5e-324 → {"v":5e-324}
        9007199254740993 → {"v":9007199254740992}
        0.1 + 0.2 → {"v":0.30000000000000004}
        undefined → {}
        [undefined, , 1] → {"v":[null,null,1]}
        { a: undefined, b: 1 } → {"v":{"b":1}}
        new Date(0) → {"v":"1970-01-01T00:00:00.000Z"}
        new Date(8.64e15) → {"v":"+275760-09-13T00:00:00.000Z"}
        new Map([['a', 1], ['__proto__', 2]]) → {"v":{"a":1,"__proto__":2}}
        new Set([1, 'a', [2]]) → {"v":[1,"a",[2]]}
        new Uint8Array([1, 255]) → {"v":[1,255]}
        new Float64Array([0.5]) → {"v":[0.5]}
        new TypeError('bad') → {"v":{"name":"TypeError","message":"bad"}}
        new (class A { x = 1; #y = 2; get z() { return 3 } }) → {"v":{"x":1}}
        Object.create({ inherited: 1 }) → {"v":{}}
        Object('s') → {"v":"s"}
        Object(1) → {"v":1}
        Object(false) → {"v":false}
        (function () { return arguments })(1, 2) → {"v":{"0":1,"1":2}}
        Object.assign([1], { extra: 2 }) → {"v":[1]}
        { [Symbol('s')]: 1, 2: 3, 1: 4 } → {"v":{"1":4,"2":3}}
        JSON.parse('{"__proto__":{"x":1}}') → {"v":{"__proto__":{"x":1}}}
        Object.defineProperty({}, 'hidden', { value: 1 }) → {"v":{}}
        new Proxy([1, 2], {}) → {"v":[1,2]}
        new Proxy(new Proxy([], {}), {}) → {"v":[]}
        new Proxy({ a: 1 }, { get: () => 5 }) → {"v":{"a":5}}
        Object.freeze({ a: 1 }) → {"v":{"a":1}}
        (() => { const a = {}; return [a, a] })() → {"v":[{},{}]}
        { toJSON: 1 } → {"v":{"toJSON":1}}
        { then: 1 } → {"v":{"then":1}}
    "#]]
    .assert_eq(&table);
}

fn what_has_no_json_is_refused_by_name() {
    let cases = [
        "NaN",
        "[1, -Infinity]",
        "() => 1",
        "class {}",
        "Symbol('s')",
        "Promise.resolve(1)",
        "mcp.fs.read({})",
        "new WeakMap()",
        "/a/",
        "new ArrayBuffer(2)",
        "(function* () {})()",
        "2n ** 53n",
        "10n",
        "new BigInt64Array([5n])",
        "Object(2n)",
        "new Date(NaN)",
        "new Map([[1, 2]])",
        "new Map([['k', () => 1]])",
        "{ 'a b': [{ c: NaN }] }",
        "new Set([NaN])",
        "new Float32Array([NaN])",
        "(() => { const a = { b: {} }; a.b.c = a; return a })()",
        "new Proxy(() => {}, {})",
        "{ get g() { throw new RangeError('from a getter') } }",
        "[][Symbol.iterator]()",
    ];
    let one = |case: &str| {
        let js = format!(
            "try {{ await mcp.fs.write_file({{ v: {case} }}) }} catch (error) {{ return `${{error.name}} ${{error.code}} ${{error.message}}` }}"
        );
        format!("{case} → {}\n", value_of(&js))
    };
    let table: String = cases.iter().map(|case| one(case)).collect();
    expect![[r#"
        NaN → "TypeError INVALID_ARGUMENTS the argument `$.v` is NaN"
        [1, -Infinity] → "TypeError INVALID_ARGUMENTS the argument `$.v[1]` is -Infinity"
        () => 1 → "TypeError INVALID_ARGUMENTS the argument `$.v` is a function"
        class {} → "TypeError INVALID_ARGUMENTS the argument `$.v` is a function"
        Symbol('s') → "TypeError INVALID_ARGUMENTS the argument `$.v` is a symbol"
        Promise.resolve(1) → "TypeError INVALID_ARGUMENTS the argument `$.v` is a promise; did you forget `await`?"
        mcp.fs.read({}) → "TypeError INVALID_ARGUMENTS the argument `$.v` is a promise; did you forget `await`?"
        new WeakMap() → "TypeError INVALID_ARGUMENTS the argument `$.v` is an object of kind WeakMap"
        /a/ → "TypeError INVALID_ARGUMENTS the argument `$.v` is an object of kind RegExp"
        new ArrayBuffer(2) → "TypeError INVALID_ARGUMENTS the argument `$.v` is an object of kind ArrayBuffer"
        (function* () {})() → "TypeError INVALID_ARGUMENTS the argument `$.v` is an object of kind Generator"
        2n ** 53n → "TypeError INVALID_ARGUMENTS the argument `$.v` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`"
        10n → "TypeError INVALID_ARGUMENTS the argument `$.v` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`"
        new BigInt64Array([5n]) → "TypeError INVALID_ARGUMENTS the argument `$.v[0]` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`"
        Object(2n) → "TypeError INVALID_ARGUMENTS the argument `$.v` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`"
        new Date(NaN) → "TypeError INVALID_ARGUMENTS the argument `$.v` is an invalid date"
        new Map([[1, 2]]) → "TypeError INVALID_ARGUMENTS the argument `$.v` is a Map with a key that is not a string"
        new Map([['k', () => 1]]) → "TypeError INVALID_ARGUMENTS the argument `$.v.k` is a function"
        { 'a b': [{ c: NaN }] } → "TypeError INVALID_ARGUMENTS the argument `$.v[\"a b\"][0].c` is NaN"
        new Set([NaN]) → "TypeError INVALID_ARGUMENTS the argument `$.v[0]` is NaN"
        new Float32Array([NaN]) → "TypeError INVALID_ARGUMENTS the argument `$.v[0]` is NaN"
        (() => { const a = { b: {} }; a.b.c = a; return a })() → "TypeError INVALID_ARGUMENTS the argument `$.v.b.c` is a circle: it contains itself"
        new Proxy(() => {}, {}) → "TypeError INVALID_ARGUMENTS the argument `$.v` is a function"
        { get g() { throw new RangeError('from a getter') } } → "RangeError undefined from a getter"
        [][Symbol.iterator]() → "TypeError INVALID_ARGUMENTS the argument `$.v` is an object of kind Array Iterator"
    "#]].assert_eq(&table);
    expect!["threw TypeError: the result `$.a[0]` is a function [RESULT_NOT_JSON]"]
        .assert_eq(&value_of("return { a: [() => 1] }"));
    expect![[r#"threw object: [Object: null prototype] { fs: [Object: null prototype] { read: [Function: read], "write-file": [Function: write-file], write_file: [Function: write-file] }, "my-server": [Object: null prototype] { go: [Function: go] } }"#]].assert_eq(&value_of("return new Promise(() => {}).constructor.reject(mcp)"));
}

fn arguments_are_one_object() {
    for ok in ["", "undefined", "{}", "{}, { more: 1 }", "Object.create(null)", "new Map()"] {
        assert_eq!(value_of(&format!("return await mcp.fs.read({ok})")), "{}", "{ok}");
    }
    for wrong in ["null", "1", "'text'", "[1, 2]", "new Set()", "new Date()", "() => 1", "Object('s')"] {
        let ended = value_of(&format!("return await mcp.fs.read({wrong})"));
        assert!(ended.contains("[INVALID_ARGUMENTS]"), "{wrong}: {ended}");
    }
    let ended = value_of("return await mcp.fs.read`../../etc/passwd`");
    expect!["threw TypeError: the arguments of a tool must be one object [INVALID_ARGUMENTS] at 1:21"]
        .assert_eq(&ended);
    assert_eq!(value_of("return await mcp.fs.read.call(null, { a: 1 }, { b: 2 })"), r#"{"a":1}"#);
    assert_eq!(value_of("return await mcp.fs.read.bind({ a: 2 })({ a: 1 })"), r#"{"a":1}"#);
    assert_eq!(value_of("return await mcp.fs.read.apply(null, [{ a: 1 }])"), r#"{"a":1}"#);
    // Like an async function it never throws at once.
    assert_eq!(
        value_of("const made = mcp.fs.read(null); made.catch(() => {}); return made instanceof Promise"),
        "true"
    );
}

fn the_true_members_are_sent() {
    let js = r#"
        Object.prototype.toJSON = function () { return { forged: true } };
        Object.prototype.path = "/etc/shadow";
        String.prototype.toJSON = Array.prototype.toJSON = Number.prototype.toJSON = BigInt.prototype.toJSON = () => "forged";
        JSON.stringify = () => '{"forged":1}'; JSON.parse = () => ({ forged: 1 });
        const c = new Map([["d", new Date(0)]]);
        Array.prototype[Symbol.iterator] = Map.prototype[Symbol.iterator] = Map.prototype.forEach = function* () { yield "evil" };
        Date.prototype.toISOString = Date.prototype.valueOf = () => "evil";
        const result = await mcp.fs.read({ a: [1, "b", 2], c });
        return result;
    "#;
    assert_eq!(value_of(js), r#"{"a":[1,"b",2],"c":{"d":"1970-01-01T00:00:00.000Z"}}"#);
}

fn members_are_read_once() {
    let js = r#"
        const reads = [];
        let n = 0;
        await mcp.fs.read({ get path() { return n++ ? "/etc/passwd" : "/ok" } });
        await mcp.fs.read(new Proxy({ a: 1, b: 2 }, { get(target, key) { reads.push(key); return target[key] } }));
        return [n, reads];
    "#;
    expect![[r#"
        call 1 of 1 at 0@0 {"path":"/ok"}
        call 2 of 1 at 0@0 {"a":1,"b":2}
        [1,["a","b"]]
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn no_tool_is_called_while_arguments_are_read() {
    let js = r#"
        let inner;
        await mcp.fs.read({ get a() { inner = mcp.fs.write_file({}); inner.catch(() => {}); return 1 } });
        try { await inner } catch (error) { return [error.code, error.message] }
    "#;
    expect![[r#"
        call 1 of 1 at 0@0 {"a":1}
        ["INVALID_ARGUMENTS","a tool cannot be called while the arguments of another call are read"]
    "#]]
    .assert_eq(&story(&program(js), echo));
    let js = "return { get a() { mcp.fs.read({}).catch(() => {}); return 1 } }";
    assert_eq!(story(&program(js), echo), "{\"a\":1}\n");
    let js = "throw Object.defineProperty(new Error('x'), 'message', { get() { mcp.fs.read({}).catch(() => {}); return 'late' } })";
    assert!(!story(&program(js), echo).contains("call"));
}

fn sizes_are_limited() {
    let too_large = "[ARGS_TOO_LARGE]";
    for js in [
        "await mcp.fs.read({ a: 'x'.repeat(300 * 1024) })",
        "await mcp.fs.read({ a: 'x'.repeat(1e7) })",
        "await mcp.fs.read({ a: 'é'.repeat(140000) })",
        "await mcp.fs.read(Object.fromEntries(Array.from({ length: 1e5 }, (_, i) => [i, i])))",
        "await mcp.fs.read({ a: new Array(4294967295) })",
        "await mcp.fs.read({ a: new Uint8Array(1e6) })",
        "let deep = {}; for (let i = 0; i < 128; i++) deep = { deep }; await mcp.fs.read(deep)",
        "let deep = []; for (let i = 0; i < 10000; i++) deep = [deep]; await mcp.fs.read({ deep })",
    ] {
        let told = story(&program(js), echo);
        assert!(told.contains(too_large) && !told.contains("call"), "{js}: {told}");
    }
    expect!["threw RangeError: the arguments have more than 262144 bytes (limits.arguments) [ARGS_TOO_LARGE] at 1:28"].assert_eq(&value_of("await mcp.fs.read({ a: 'x'.repeat(1e7) })"));
    assert!(
        value_of(
            "let deep = {}; for (let i = 0; i < 127; i++) deep = { deep }; return await mcp.fs.read(deep)"
        )
        .starts_with("{")
    );
    assert_eq!(value_of("return 'x'.repeat(5e6)"), "Ended(Limit(Result))");
    assert_eq!(value_of("return 'x'.repeat(4e6)").len(), 4_000_002);
    let mut few = program("for (;;) mcp.fs.read({})");
    few.limits.calls = 3;
    let events = play(&few, echo).unwrap();
    assert_eq!(events.len(), 4, "{events:?}");
    assert_eq!(ending_of(&few), "Ended(Limit(Calls))");
}

fn results_are_data() {
    let asks = program(
        "const r = await mcp.fs.read({});
         return [r.hasOwnProperty('__proto__'), Object.getPrototypeOf(r) === Object.prototype, r.then, r.big, Object.keys(r)];",
    );
    let answer = |event: &WorkerEvent| match event {
        WorkerEvent::Call { call, .. } => Some(DeliveryPayload::Result {
            call: *call,
            json: r#"{"__proto__":{"x":1},"constructor":1,"toJSON":2,"then":3,"big":12345678901234567890}"#
                .to_owned(),
        }),
        _ => None,
    };
    expect![[r#"
        call 1 of 1 at 0@0 {}
        [true,true,3,12345678901234567000,["__proto__","constructor","toJSON","then","big"]]
    "#]]
    .assert_eq(&story(&asks, answer));
    for (json, seen) in [("[1,null]", "[1,null]"), ("null", "null"), ("\"t\"", "\"t\""), ("1e400", "threw")] {
        let answer = |event: &WorkerEvent| match event {
            WorkerEvent::Call { call, .. } => {
                Some(DeliveryPayload::Result { call: *call, json: json.to_owned() })
            }
            _ => None,
        };
        let told = story(&program("return await mcp.fs.read({})"), answer);
        assert!(told.lines().nth(1).unwrap().starts_with(seen), "{json}: {told}");
    }
}

fn fail(event: &WorkerEvent) -> Option<DeliveryPayload> {
    match event {
        WorkerEvent::Call { call, .. } => Some(DeliveryPayload::Error {
            call: *call,
            error: ToolCallError {
                code: pml_model::ErrorCode::ToolError,
                message: "no such file".to_owned(),
                hint: Some("look elsewhere".to_owned()),
                data: Some(r#"{"isError":true}"#.to_owned()),
            },
        }),
        other => echo(other),
    }
}

fn failed_calls_are_tool_errors() {
    let js = r#"
        try { await mcp.fs.write_file({}) } catch (e) {
            return [e instanceof Error, e.name, e.message, e.code, e.hint, e.data, e.tool, e.constructor.name, `${e}`,
                Object.keys(e), (() => { try { e.constructor.constructor("return this")() } catch (x) { return x.name } })()];
        }
    "#;
    expect![[r#"
        call 1 of 2 at 0@0 {}
        [true,"ToolError","no such file","TOOL_ERROR","look elsewhere",{"isError":true},"fs:write-file","ToolError","ToolError: no such file",["code","hint","data","tool"],"EvalError"]
    "#]].assert_eq(&story(&program(js), fail));
    expect![[r#"
        call 1 of 1 at 0@0 {}
        threw ToolError: no such file [TOOL_ERROR] call 1
    "#]]
    .assert_eq(&story(&program("await mcp.fs.read({});\n\nawait 1"), fail));
    expect![[r#"
        call 1 of 1 at 0@0 {}
        call 2 of 1 at 0@0 {}
        unhandled ToolError: no such file [TOOL_ERROR] call 1
    "#]]
    .assert_eq(&story(&program("mcp.fs.read({}); await mcp.fs.read({}).catch(() => {}); return 1"), fail));
}

fn an_error_of_the_host_cannot_be_forged() {
    let js = r#"
        try { await mcp.fs.read({}) } catch (error) {
            throw Object.assign(new error.constructor("forged"), { code: "DENIED", call: 7 });
        }
    "#;
    expect![[r#"
        call 1 of 1 at 0@0 {}
        threw ToolError: forged at 3:37
    "#]]
    .assert_eq(&story(&program(js), fail));
    assert_eq!(value_of("throw Object.assign(new Error('x'), { code: 'DENIED' })"), "threw Error: x at 1:25");
}

fn a_call_ends_once() {
    let twice = |event: &WorkerEvent| match event {
        WorkerEvent::Timer { .. } => Some(DeliveryPayload::Result { call: 1, json: "\"again\"".to_owned() }),
        other => echo(other),
    };
    let js = "const a = await mcp.fs.read({ a: 1 }); setTimeout(() => {}, 1); const b = await mcp.fs.read({}); return [a, b]";
    let events = play(&program(js), twice).unwrap();
    let taken: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            WorkerEvent::Quiet { taken, .. } => Some(*taken),
            _ => None,
        })
        .collect();
    assert_eq!(taken, [0, 1, 2]);
    assert!(
        matches!(events.last(), Some(WorkerEvent::Ended(pml_sandbox::ProgramEnding::Value(json))) if json == "[{\"a\":1},{}]")
    );
}

fn calls_are_numbered_in_the_order_they_are_made() {
    let js = "const all = await Promise.all([3, 1, 2].map(async (n) => { await null; return mcp.fs.read({ n }) }));
              return all.map((r) => r.n)";
    expect![[r#"
        call 1 of 1 at 0@0 {"n":3}
        call 2 of 1 at 0@0 {"n":1}
        call 3 of 1 at 0@0 {"n":2}
        [3,1,2]
    "#]]
    .assert_eq(&story(&program(js), echo));
}
