//! Programs that are called by programs: each in a realm of its own, with nothing between them but text.

use expect_test::expect;

use crate::host::{echo, ending_of, play, program, story};
use crate::tests;
use pml_sandbox::{DeliveryPayload, NestedProgram, SandboxProgram, WorkerEvent};

tests![
    values_cross_as_text,
    defaults_are_filled_in,
    what_has_no_json_does_not_cross,
    each_sees_its_own_tools,
    realms_share_no_object,
    a_broken_realm_breaks_no_other,
    failures_can_be_caught_and_tell_where_they_come_from,
    frames_run_side_by_side,
    probes_and_console_tell_their_frame,
    programs_call_programs_eight_deep,
    what_was_not_waited_for_is_given_up,
    a_realm_that_is_over_has_no_effect,
    timers_of_others_cannot_be_cleared,
    limits_are_for_the_whole,
    realms_that_are_over_take_no_room,
    the_same_deliveries_give_the_same_events,
];

fn nested(name: &str, js: &str) -> NestedProgram {
    NestedProgram {
        name: name.to_owned(),
        js: js.to_owned(),
        probe: "P".to_owned(),
        entries: Vec::new(),
        defaults: Vec::new(),
        tools: program("").tools.into_iter().take(1).collect(),
        sees: Vec::new(),
    }
}

/// A program that sees `others`, of which none sees another.
fn with(js: &str, others: Vec<NestedProgram>) -> SandboxProgram {
    let sees = (0..).take(others.len()).collect();
    SandboxProgram { nested: others, sees, ..program(js) }
}

/// What comes of a program that calls `inner` by the name `inner`.
fn called(js: &str, inner: &str) -> String {
    ending_of(&with(js, vec![nested("inner", inner)]))
}

fn values_cross_as_text() {
    let js = r#"
        const given = { list: [1, , 3], when: new Date(0), map: new Map([["a", 1]]), ["__proto__"]: { admin: true }, no: undefined };
        const got = await capabilities.inner(given);
        got.args.list.push(4);
        return [got, await capabilities.inner(), given.list.length, got instanceof Object, Object.getPrototypeOf(got) === Object.prototype];
    "#;
    let inner = r#"
        const own = Object.getOwnPropertyDescriptor(args, "__proto__");
        return { args, polluted: args.admin, own: own && own.value, made: new Set([1]) };
    "#;
    expect![[r#"[{"args":{"list":[1,null,3,4],"when":"1970-01-01T00:00:00.000Z","map":{"a":1},"__proto__":{"admin":true}},"own":{"admin":true},"made":[1]},{"args":{},"made":[1]},3,true,true]"#]]
        .assert_eq(&called(js, inner));
}

fn defaults_are_filled_in() {
    let mut inner = nested("inner", "return args");
    inner.defaults = vec![("a".to_owned(), "1".to_owned()), ("b \"c\"".to_owned(), "[2]".to_owned())];
    let js = "return [await capabilities.inner(), await capabilities.inner({ a: null }), await capabilities.inner({ 'b \"c\"': 0, d: 1 })]";
    expect![[r#"[{"a":1,"b \"c\"":[2]},{"a":null,"b \"c\"":[2]},{"b \"c\"":0,"d":1,"a":1}]"#]]
        .assert_eq(&ending_of(&with(js, vec![inner])));
}

fn what_has_no_json_does_not_cross() {
    let js = r#"
        const round = { a: {} };
        round.a.b = round;
        const said = [];
        for (const given of [{ f() {} }, round, { x: 1n }, [1], "text", { get a() { return capabilities.inner({}).catch((error) => error) } },
            { get a() { throw new RangeError("mine") } }, { long: "x".repeat(300000) }])
            try { await capabilities.inner(given); said.push("fine") } catch (error) { said.push(`${error.name} ${error.code}: ${error.message}`) }
        return said.join("\n");
    "#;
    let said: String = serde_json::from_str(&called(js, "return 1")).unwrap();
    expect![[r#"
        TypeError INVALID_ARGUMENTS: the argument `$.f` is a function
        TypeError INVALID_ARGUMENTS: the argument `$.a.b` is a circle: it contains itself
        TypeError INVALID_ARGUMENTS: the argument `$.x` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`
        TypeError INVALID_ARGUMENTS: the arguments of a capability must be one object
        TypeError INVALID_ARGUMENTS: the arguments of a capability must be one object
        TypeError INVALID_ARGUMENTS: the argument `$.a` is a promise; did you forget `await`?
        RangeError undefined: mine
        RangeError ARGS_TOO_LARGE: the arguments have more than 262144 bytes (limits.arguments)"#]].assert_eq(&said);
    let results =
        ["return () => 1", "const a = {}; a.a = a; return a", "return 'x'.repeat(5000000)", "return 10n"];
    let said: Vec<String> = results
        .iter()
        .map(|inner| called("try { return await capabilities.inner() } catch (error) { return error.code + ' ' + error.message }", inner))
        .collect();
    expect![[r#"
        "RESULT_NOT_JSON `inner` failed: TypeError: the result `$` is a function"
        "RESULT_NOT_JSON `inner` failed: TypeError: the result `$.a` is a circle: it contains itself"
        "RESULT_TOO_LARGE `inner` failed: it returned more than 4194304 bytes (limits.result)"
        "RESULT_NOT_JSON `inner` failed: TypeError: the result `$` is a BigInt, which JSON has not; pass it as a string, or as a number with `Number(…)`""#]].assert_eq(&said.join("\n"));
}

fn each_sees_its_own_tools() {
    let js = r#"
        const seen = await capabilities.inner({});
        return [seen, Object.keys(mcp), Object.keys(capabilities), Object.isFrozen(capabilities), typeof capabilities.inner, capabilities.inner.name];
    "#;
    let inner = r#"
        const seen = [Object.keys(mcp), Object.keys(mcp.fs), Object.keys(capabilities)];
        try { await mcp.fs.write_file({}) } catch (error) { seen.push(error.message) }
        seen.push(await mcp.fs.read({ of: "inner" }));
        return seen;
    "#;
    expect![[r#"
        frame 1 of 0 at 0@0 {}
        [1] call 1 of 1 at 0@0 {"of":"inner"}
        frame 1 gave [["fs"],["read"],[],"not a function",{"of":"inner"}]
        [[["fs"],["read"],[],"not a function",{"of":"inner"}],["fs","my-server"],["inner"],true,"function","inner"]
    "#]].assert_eq(&story(&with(js, vec![nested("inner", inner)]), echo));
}

/// Marks everything one realm can reach, and looks for marks in the other, in both directions.
fn realms_share_no_object() {
    let reach = r#"
        const all = new Set(), queue = [globalThis, mcp, mcp.fs.read, capabilities, capabilities.inner, pml, setTimeout, P, P.at(1), args,
            async () => {}, function* () {}, async function* () {}, [][Symbol.iterator](), new Map()[Symbol.iterator](), "".matchAll(/a/g),
            Promise.resolve(), new Error("x")];
        try { await mcp.fs.read({ x: 1n }) } catch (error) { queue.push(error) }
        while (queue.length > 0) {
            const value = queue.pop();
            if ((typeof value !== "object" && typeof value !== "function") || value === null || all.has(value)) continue;
            all.add(value);
            queue.push(Object.getPrototypeOf(value));
            for (const key of Reflect.ownKeys(value)) {
                const how = Object.getOwnPropertyDescriptor(value, key);
                queue.push(how.value, how.get, how.set);
            }
        }
    "#;
    // Frozen things cannot be marked, and are looked for by what they hold.
    let mark = "let marked = 0; for (const value of all) try { value.marked = 1; marked++ } catch {}";
    let look = "const found = [...all].filter((value) => Object.hasOwn(value, 'marked')).length;";
    let first = format!(
        "{reach} {mark} const inside = await capabilities.inner({{}});\
         const found = [...all].filter((value) => Object.hasOwn(value, 'inside')).length;\
         return [marked > 500, inside, found]"
    );
    let inner = format!(
        "{reach} {look} for (const value of all) try {{ value.inside = 1 }} catch {{}} return [all.size > 500, found]"
    );
    let mut program = with(&first, vec![nested("inner", &inner)]);
    program.nested[0].sees = vec![0];
    expect!["[true,[true,0],0]"].assert_eq(&ending_of(&program));
}

fn a_broken_realm_breaks_no_other() {
    let inner = r#"
        const evil = () => { throw "evil" };
        const { ownKeys, defineProperty, getPrototypeOf } = Reflect;
        const prototypes = [Object, Array, Map, Promise, String, Error].map((maker) => maker.prototype);
        prototypes.push(getPrototypeOf(evil));
        for (let p = 0; p < prototypes.length; p++) {
            const keys = ownKeys(prototypes[p]);
            for (let k = 0; k < keys.length; k++) try { defineProperty(prototypes[p], keys[k], { __proto__: null, value: evil }) } catch {}
        }
        delete globalThis.JSON;
        Math.random = () => 4;
        return { n: 1 };
    "#;
    let js = r#"
        const got = await capabilities.inner({});
        return [got, [1, 2].map((x) => x + 1), JSON.stringify({}), Math.random() < 1, `${got.n}`, await Promise.all([1])];
    "#;
    expect![[r#"[{"n":1},[2,3],"{}",true,"1",[1]]"#]].assert_eq(&called(js, inner));
}

fn failures_can_be_caught_and_tell_where_they_come_from() {
    let inner = r#"
        switch (args.how) {
            case "error": throw new TypeError("bad");
            case "coded": throw Object.assign(new Error("made up"), { code: "DENIED" });
            case "text": throw "words";
            case "tool": return mcp.fs.read({ fail: true });
            case "deadlock": return new Promise(() => {});
            case "unhandled": Promise.reject(new Error("lost")); return 1;
            case "deep": { let deep = {}; for (let i = 0; i < 200; i++) deep = { deep }; return deep }
        }
    "#;
    let js = r#"
        const said = [];
        for (const how of ["error", "coded", "text", "tool", "deadlock", "unhandled", "deep"])
            try { await capabilities.inner({ how }); said.push("fine") }
            catch (error) { said.push(`${error.name} ${error.code} ${error.capability}: ${error.message}; ${error instanceof Error}`) }
        try { await capabilities.broken() } catch (error) { said.push(error.message) }
        return said.join("\n");
    "#;
    let fails = |event: &WorkerEvent| match event {
        WorkerEvent::Call { call, .. } => {
            let (code, message) = (pml_model::ErrorCode::ToolError, "no such file".to_owned());
            Some(DeliveryPayload::Error {
                call: *call,
                error: pml_sandbox::ToolCallError { code, message, hint: None, data: None },
            })
        }
        _ => None,
    };
    let program = with(js, vec![nested("inner", inner), nested("broken", "return }")]);
    let events = play(&program, fails).unwrap();
    let Some(WorkerEvent::Ended(pml_sandbox::ProgramEnding::Value(json))) = events.last() else {
        panic!("{events:?}")
    };
    expect![[r#"
        CapabilityError CAPABILITY_FAILED inner: `inner` failed: TypeError: bad; true
        CapabilityError CAPABILITY_FAILED inner: `inner` failed: made up; true
        CapabilityError CAPABILITY_FAILED inner: `inner` failed: words; true
        CapabilityError TOOL_ERROR inner: `inner` failed: no such file; true
        CapabilityError DEADLOCK inner: `inner` failed: it waits for something that cannot come: no call and no timer is left; true
        CapabilityError CAPABILITY_FAILED inner: `inner` failed: nobody handled an error: lost; true
        CapabilityError RESULT_NOT_JSON inner: `inner` failed: TypeError: the result has more than 128 levels (limits.nesting); true
        `broken` failed: SyntaxError: Unexpected token '}'"#]].assert_eq(&serde_json::from_str::<String>(json).unwrap());
    // What nobody catches names the frame and the call.
    let uncaught = with("\nreturn capabilities.inner({ how: 'tool' })", vec![nested("inner", inner)]);
    expect![[r#"
        frame 1 of 0 at 0@0 {"how":"tool"}
        [1] call 1 of 1 at 0@0 {"fail":true}
        frame 1 threw ToolError: no such file [TOOL_ERROR] call 1
        threw CapabilityError: `inner` failed: no such file [TOOL_ERROR] call 1 frame 1
    "#]]
    .assert_eq(&story(&uncaught, fails));
}

fn frames_run_side_by_side() {
    let js = "return Promise.all([capabilities.inner({ n: 1 }), mcp.fs.read({ own: true }), capabilities.inner({ n: 2 })])";
    let inner = "const got = await mcp.fs.read({ n: args.n }); await new Promise((then) => setTimeout(then, args.n)); return got.n * 10";
    expect![[r#"
        frame 1 of 0 at 0@0 {"n":1}
        call 1 of 1 at 0@0 {"own":true}
        frame 2 of 0 at 0@0 {"n":2}
        [1] call 2 of 1 at 0@0 {"n":1}
        [2] call 3 of 1 at 0@0 {"n":2}
        timer 1 in 1
        timer 2 in 2
        frame 1 gave 10
        frame 2 gave 20
        [10,{"own":true},20]
    "#]]
    .assert_eq(&story(&with(js, vec![nested("inner", inner)]), echo));
}

fn probes_and_console_tell_their_frame() {
    let js = r#"
        P.is(1, true);
        console.log("out");
        pml.hint({ name: "outer" });
        return capabilities.inner({}, ...P.at(4, 5));
    "#;
    let inner = r#"
        P.is(2, false);
        console.warn("in");
        pml.hint({ name: "inner" });
        pml.progress(1);
        await mcp.fs.read({}, ...P.at(7));
        P.case(3, 1);
    "#;
    expect![[r#"
        Log out
        frame 1 of 0 at 4@5 {}
        [1] Warn in
        [1] call 1 of 1 at 7@0 {}
        Hint { json: "{\"name\":\"outer\"}" }
        reached Is 1@0 1 ×1
        [1] reached Is 2@0 0 ×1
        [1] reached Case 3@0 1 ×1
        frame 1 gave null
        null
    "#]]
    .assert_eq(&story(&with(js, vec![nested("inner", inner)]), echo));
}

fn programs_call_programs_eight_deep() {
    let js = "try { return await capabilities.down({ n: 1 }) } catch (error) { return error.code + ' ' + error.message }";
    let down =
        "return args.n === args.most ? 'bottom' : capabilities.down({ n: args.n + 1, most: args.most })";
    let to = |most: u32| {
        let mut program =
            with(&js.replace("n: 1", &format!("n: 1, most: {most}")), vec![nested("down", down)]);
        program.nested[0].sees = vec![0];
        ending_of(&program)
    };
    expect![[r#""bottom""#]].assert_eq(&to(8));
    expect![[r#""TOO_DEEP `down` failed: `down` failed: `down` failed: `down` failed: `down` failed: `down` failed: `down` failed: `down` failed: RangeError: `down` is called more than 8 levels deep""#]].assert_eq(&to(9));
}

fn what_was_not_waited_for_is_given_up() {
    let inner = r#"
        mcp.fs.read({ late: true }).then(() => console.log("never"));
        setTimeout(() => console.log("never"), 5);
        setInterval(() => console.log("never"), 5);
        capabilities.other({});
        return "early";
    "#;
    let js = "const got = await capabilities.inner({}); await new Promise((then) => setTimeout(then, 50)); return got";
    let mut program = with(js, vec![nested("inner", inner), nested("other", "return mcp.fs.read({})")]);
    program.nested[0].sees = vec![1];
    expect![[r#"
        frame 1 of 0 at 0@0 {}
        [1] call 1 of 1 at 0@0 {"late":true}
        timer 1 in 5
        timer 2 in 5
        [1] frame 2 of 1 at 0@0 {}
        [2] call 2 of 1 at 0@0 {}
        frame 1 gave "early"
        timer 1 cleared
        timer 2 cleared
        timer 3 in 50
        "early"
    "#]]
    .assert_eq(&story(&program, echo));
}

/// Reading a result may run code of the program, and that may leave something to be done when its realm is over.
fn a_realm_that_is_over_has_no_effect() {
    let inner = r#"
        return { get late() {
            Promise.resolve().then(() => {
                console.log({ late: 1 });
                mcp.fs.read({}).then(() => {});
                capabilities.inner({});
                setTimeout(() => {}, 1);
                pml.hint({});
                pml.progress(1);
                structuredClone(new Map());
                queueMicrotask(() => { throw new Error("late") });
                return Promise.reject(new Error("later"));
            });
            return 1;
        } };
    "#;
    let mut program = with(
        "return [await capabilities.inner({}), await mcp.fs.read({ a: 1 })]",
        vec![nested("inner", inner)],
    );
    program.nested[0].sees = vec![0];
    expect![[r#"
        frame 1 of 0 at 0@0 {}
        frame 1 gave {"late":1}
        call 1 of 1 at 0@0 {"a":1}
        [{"late":1},{"a":1}]
    "#]]
    .assert_eq(&story(&program, echo));
}

fn timers_of_others_cannot_be_cleared() {
    let js = "const tick = new Promise((then) => setTimeout(() => then('tick'), 5)); await capabilities.inner({}); return tick";
    expect![[r#""tick""#]].assert_eq(&called(js, "for (let id = 0; id < 100; id++) clearTimeout(id)"));
}

fn limits_are_for_the_whole() {
    let js = "for (let i = 0; i < 3; i++) await capabilities.inner({}); return 'fine'";
    let mut program = with(
        js,
        vec![nested("inner", "await mcp.fs.read({}); await mcp.fs.read({}); console.log('x'.repeat(30))")],
    );
    program.limits.calls = 6;
    expect![[r#""fine""#]].assert_eq(&ending_of(&program));
    program.limits.calls = 5;
    expect![["Ended(Limit(Calls))"]].assert_eq(&ending_of(&program));
    program.limits.calls = 100;
    program.limits.console_bytes = 50;
    let cut =
        play(&program, echo).unwrap().iter().filter(|event| matches!(event, WorkerEvent::ConsoleCut)).count();
    assert_eq!(cut, 1);
    let memory = with(
        "return capabilities.inner({})",
        vec![nested("inner", "const all = []; for (;;) all.push(new Array(10000).fill(1))")],
    );
    expect![["Ended(Limit(Memory))"]].assert_eq(&ending_of(&memory));
    let endless = with("return capabilities.inner({})", vec![nested("inner", "for (;;);")]);
    expect![["fault Cpu"]].assert_eq(&ending_of(&SandboxProgram {
        limits: pml_sandbox::SandboxLimits { cpu: std::time::Duration::from_millis(300), ..program.limits },
        ..endless
    }));
    let mut many = with("for (;;) await capabilities.inner({})", vec![nested("inner", "")]);
    many.limits.calls = 10;
    expect![["Ended(Limit(Calls))"]].assert_eq(&ending_of(&many));
}

fn realms_that_are_over_take_no_room() {
    let js = "let sum = 0; for (let i = 0; i < 400; i++) sum += await capabilities.inner({ i }); return sum";
    let mut program =
        with(js, vec![nested("inner", "globalThis.kept = new Array(1000).fill(args); return 1")]);
    program.limits.heap_bytes = 12 << 20;
    expect![["400"]].assert_eq(&ending_of(&program));
}

fn the_same_deliveries_give_the_same_events() {
    let inner = r#"
        const got = await Promise.race([mcp.fs.read({ r: Math.random() }), new Promise((then) => setTimeout(then, 1, { r: 0 }))]);
        console.log(args.n, got.r, Date.now());
        return [got.r, ...(args.n > 0 ? await Promise.all([capabilities.inner({ n: args.n - 1 }), capabilities.inner({ n: 0 })]) : [])];
    "#;
    let js = "return Promise.all([capabilities.inner({ n: 3 }), capabilities.inner({ n: 2 }), mcp.fs.read({ r: Math.random() })])";
    let mut program = with(js, vec![nested("inner", inner)]);
    program.nested[0].sees = vec![0];
    let first = play(&program, echo).unwrap();
    assert!(first.len() > 60, "{}", first.len());
    for _ in 0..3 {
        assert_eq!(play(&program, echo).unwrap(), first);
    }
}
