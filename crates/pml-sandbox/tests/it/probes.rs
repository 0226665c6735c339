//! What programs report about the way they take.

use expect_test::expect;

use crate::host::{echo, play, program, story};
use crate::tests;
use pml_sandbox::{ProbeEntry, ProbeKind, WorkerEvent};

tests![
    every_probe_reports,
    probes_give_back_what_they_get,
    calls_know_where_they_come_from,
    a_place_that_called_nothing_is_forgotten,
    chains_end_where_nothing_is_found,
    calls_of_functions_enter_contexts,
    visits_are_counted_and_told_once_a_turn,
    operations_tell_what_they_gave,
    previews_run_nothing_of_the_program,
    previews_are_short_whatever_the_value,
    the_first_operations_of_a_place_are_told,
    operations_are_told_in_the_order_they_end,
    an_operation_that_threw_gave_nothing,
    programs_cannot_see_that_they_are_looked_at,
];

fn every_probe_reports() {
    let js = "
        P.is(1, true); P.is(1, 0, 5); P.is(1, 'x');
        P.has(2, null); P.has(2, 0);
        P.case(3, 0); P.case(3, 7, 2);
        P.loop(4); P.turn(4); P.turn(4);
        P.caught(5); P.did(6, 1); P.doing(6); P.fork(7, [1]);";
    expect![[r#"
        reached Is 1@0 1 ×2, Is 1@5 0 ×1, Has 2@0 0 ×1, Has 2@0 1 ×1, Case 3@0 0 ×1, Case 3@2 7 ×1, Loop 4@0 0 ×1, Turn 4@0 0 ×2, Caught 5@0 0 ×1, Did 6@0 0 ×2, Fork 7@0 0 ×1
        null
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn probes_give_back_what_they_get() {
    let js = "
        const given = (...all) => all.length;
        const o = { m(x) { return [this === o, x] }, n: null };
        return [P.is(1, 'v'), P.has(2, 0), P.did(3, 4), P.fork(4, [5]), P.case(5, 0) ?? 'nothing', P.loop(6) ?? 'nothing',
            given(...P.at(1), ...P.enter(2), ...P.doing(3)), P.bound(7, o, 'm')?.(1), P.bound(7, o, 'n')?.(2) ?? 'none',
            Object.isFrozen(P), Object.getPrototypeOf(P), 'P' in globalThis];";
    let told = story(&program(js), echo);
    let value = told.lines().last().unwrap();
    expect![[r#"["v",0,4,[5],"nothing","nothing",0,[true,1],"none",true,null,false]"#]].assert_eq(value);
}

fn calls_know_where_they_come_from() {
    let js = "
        const read = mcp.fs.read;
        await Promise.all([1, 2].map((n) => read({ n }, ...P.at(10, n))));
        await read({ unknown: true });
        const nested = await read({ inner: await read({}, ...P.at(11)) }, ...P.at(12));";
    expect![[r#"
        call 1 of 1 at 10@1 {"n":1}
        call 2 of 1 at 10@2 {"n":2}
        call 3 of 1 at 0@0 {"unknown":true}
        call 4 of 1 at 11@0 {}
        call 5 of 1 at 12@0 {"inner":{}}
        null
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn a_place_that_called_nothing_is_forgotten() {
    let js = "
        const other = () => {};
        other(1, ...P.at(10)); await null; await mcp.fs.read({ after: 'a job' });
        setTimeout(() => other(1, ...P.at(11)), 1); await new Promise((then) => setTimeout(then, 2));
        await mcp.fs.read({ after: 'a timer' });
        try { undefined(1, ...P.at(12)) } catch {} 
        await null;
        return mcp.fs.read({ after: 'an exception' });";
    let told = story(&program(js), echo);
    assert_eq!(told.matches("at 0@0").count(), 3, "{told}");
}

fn chains_end_where_nothing_is_found() {
    // `a?.b?.c` where `a` is nothing: only the inner test is told; then a chain that goes through.
    let js = "
        let a = null;
        P.has(2, P.has(1, a, 0, true)?.b)?.c;
        a = { b: { c: 1 } };
        P.has(2, P.has(1, a, 0, true)?.b)?.c;
        P.bound(4, P.has(3, null, 0, true), 'm')?.();
        P.has(null, undefined, 0, true); P.has(5, undefined);
        P.has(6, 1);";
    expect![[r#"
        reached Has 1@0 0 ×1, Has 1@0 1 ×1, Has 2@0 1 ×1, Has 3@0 0 ×1, Has 6@0 1 ×1
        null
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn calls_of_functions_enter_contexts() {
    let js = "
        function f(x) { const C = P.take(1, 0); if (P.is(7, x, C)) g(x, ...P.enter(8, C)); }
        function g(x) { const C = P.take(2, 0); P.did(9, x, C); }
        f(1, ...P.enter(5)); f(1, ...P.enter(6)); f(0); g(1);";
    let mut entered = program(js);
    entered.entries = [(5, 0, 1, 1), (6, 0, 1, 2), (8, 1, 2, 3), (8, 2, 2, 4)]
        .map(|(point, context, function, enters)| ProbeEntry { point, context, function, enters })
        .to_vec();
    expect![[r#"
        reached Is 7@1 1 ×1, Did 9@3 0 ×1, Is 7@2 1 ×1, Did 9@4 0 ×1, Is 7@0 0 ×1, Did 9@0 0 ×1
        null
    "#]]
    .assert_eq(&story(&entered, echo));
}

fn visits_are_counted_and_told_once_a_turn() {
    let js = "
        P.loop(1);
        for (let i = 0; i < 10000; i++) P.turn(1);
        await mcp.fs.read({});
        for (let i = 0; i < 5; i++) P.turn(1);
        await mcp.fs.read({});
        await mcp.fs.read({});";
    let events = play(&program(js), echo).unwrap();
    let reached: Vec<Vec<(ProbeKind, u64)>> = events
        .iter()
        .filter_map(|event| match event {
            WorkerEvent::Reached { places, .. } => {
                Some(places.iter().map(|it| (it.kind, it.count)).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(reached, [vec![(ProbeKind::Loop, 1), (ProbeKind::Turn, 10000)], vec![(ProbeKind::Turn, 5)]]);
}

/// What is told of the operations of a program, in words.
fn told(js: &str) -> Vec<String> {
    let all = story(&program(js), echo);
    all.lines().filter(|line| line.contains(" gave ")).map(str::to_owned).collect()
}

/// What is told of a value.
fn shown(value: &str) -> String {
    let told = told(&format!("P.did(1, (P.does(1), {value}));"));
    told.first().map(|line| line.trim_start_matches("1@0 gave ").to_owned()).unwrap_or_default()
}

fn operations_tell_what_they_gave() {
    for (value, expected) in [
        ("[1, 'a', null, true, 1.5, -0]", r#"[1,"a",null,true,1.5,0]"#),
        ("({ a: { b: [] }, gone: undefined })", r#"{"a":{"b":[]}}"#),
        ("[undefined, , 3]", "[null,null,3]"),
        ("'\"\\n'", r#""\"\n""#),
        ("new Date(0)", r#""1970-01-01T00:00:00.000Z""#),
        ("undefined", r#"in part {"_type":"undefined"}"#),
        ("NaN", r#"in part {"_type":"NaN"}"#),
        ("12n", r#"in part {"_type":"bigint"}"#),
        ("() => 1", r#"in part {"_type":"function"}"#),
        ("new Date(NaN)", r#"in part {"_type":"Date"}"#),
        ("/x/g", r#"in part {"_type":"RegExp"}"#),
        ("new Map([[1, 2]])", r#"in part {"_type":"Map","_size":1}"#),
        (
            "[new Set([1, 2]), new Uint8Array(3)]",
            r#"in part [{"_type":"Set","_size":2},{"_type":"Uint8Array","_size":3}]"#,
        ),
        ("[[[[[1]]]]]", r#"in part [[[[{"_type":"array","_size":1}]]]]"#),
        ("'x'.repeat(1000)", r#"in part {"_type":"string","_size":1000}"#),
    ] {
        assert_eq!(shown(value), expected, "{value}");
    }
}

fn previews_run_nothing_of_the_program() {
    let js = "
        const ran = [];
        const trap = (name) => { ran[ran.length] = name };
        const handler = new Proxy({}, { get: (_, name) => trap('proxy ' + String(name)) });
        const getter = (object, name) =>
            Object.defineProperty(object, name, { __proto__: null, get: () => trap(name), enumerable: true, configurable: true });
        class Sly { get inherited() { trap('inherited') } toJSON() { trap('toJSON') } toString() { trap('toString') } }
        const sly = getter(new Sly(), 'own'), list = getter([1, 2], 0);
        list.toJSON = () => trap('toJSON');
        const all = [
            new Proxy({ a: 1 }, handler), sly, list, [1, , ,], new Map(), new Date(5),
            { inner: new Proxy([], handler), f: new Proxy(trap, handler) }, new Error('e'),
        ];
        Array.prototype[Symbol.iterator] = Map.prototype.forEach = Date.prototype.toISOString = Date.prototype.getTime = trap;
        getter(Map.prototype, 'size');
        getter(Array.prototype, 2);
        getter(Object.prototype, 'get');
        getter(Object.prototype, 'value');
        for (let i = 0; i < 8; i++) P.did(i + 1, P.does(i + 1, all[i]));
        return ran;";
    expect![[r#"
        1@0 gave in part {"_type":"Proxy"}
        2@0 gave in part {"own":{"_type":"getter"}}
        3@0 gave in part [{"_type":"getter"},2]
        4@0 gave [1,null,null]
        5@0 gave in part {"_type":"Map","_size":0}
        6@0 gave "1970-01-01T00:00:00.005Z"
        7@0 gave in part {"inner":{"_type":"Proxy"},"f":{"_type":"function"}}
        8@0 gave in part {"_type":"Error"}
        reached Did 1@0 0 ×1, Did 2@0 0 ×1, Did 3@0 0 ×1, Did 4@0 0 ×1, Did 5@0 0 ×1, Did 6@0 0 ×1, Did 7@0 0 ×1, Did 8@0 0 ×1
        []
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn previews_are_short_whatever_the_value() {
    let rows =
        shown("Array.from({ length: 1000 }, (_, id) => ({ id, name: 'row ' + id, text: 'x'.repeat(500) }))");
    assert_eq!(
        rows,
        "in part {\"_truncated\":true,\"_type\":\"array\",\"_size\":1000,\"_preview\":[{\"id\":0,\"name\":\"row 0\",\"text\":\
         {\"_type\":\"string\",\"_size\":500}},{\"id\":1,\"name\":\"row 1\",\"text\":{\"_type\":\"string\",\"_size\":500}}]}"
    );
    let page =
        shown("({ id: 7, html: 'x'.repeat(5000), tags: Array(99).fill('tag'), ['k'.repeat(300)]: 1 })");
    assert_eq!(
        page,
        "in part {\"_truncated\":true,\"_type\":\"object\",\"_size\":4,\"_preview\":{\"id\":7,\"html\":{\"_type\":\"string\",\
         \"_size\":5000},\"tags\":{\"_type\":\"array\",\"_size\":99}}}"
    );
    for huge in [
        "Array(4294967295)",
        "'é'.repeat(1000000)",
        "Array(100).fill('😀😀😀😀')",
        "Object.fromEntries(Array.from({ length: 50000 }, (_, i) => ['key' + i, i]))",
        "Object.fromEntries([['k'.repeat(1000000), 1]])",
        "(() => { const a = []; a.push(a, a); return a })()",
        "Array(100).fill(Array(1000).fill({ a: 1 }))",
    ] {
        let told = shown(huge);
        let json = told.trim_start_matches("in part ");
        assert!(json.len() <= pml_sandbox::PREVIEW_BYTES, "{huge}: {json}");
        assert!(serde_json::from_str::<serde_json::Value>(json).is_ok(), "{huge}: {json}");
    }
    // Listing what objects have costs as much as they have: a run does that so often and no more.
    let large = "const o = Object.fromEntries(Array.from({ length: 90000 }, (_, i) => ['k' + i, i]));
        for (let i = 0; i < 10; i++) P.did(1, P.does(1, o));";
    let told = told(large);
    assert!(told[0].contains("\"_size\":90000"), "{told:?}");
    assert_eq!(told.last().unwrap(), "1@0 gave in part {\"_type\":\"object\"}", "{told:?}");
}

fn the_first_operations_of_a_place_are_told() {
    let told =
        told("for (let i = 0; i < 1000; i++) { P.did(1, P.does(1, i)); P.did(1, P.does(1, i, 5), 5); }");
    assert_eq!(told.len(), 40, "{told:?}");
    assert_eq!((told[0].as_str(), told[39].as_str()), ("1@0 gave 0", "1@5 gave 19"));
    let many = (1..=200).map(|point| format!("P.did({point}, P.does({point}, 0));")).collect::<String>();
    assert_eq!(
        self::told(&format!("for (let i = 0; i < 20; i++) {{ {many} }}")).len(),
        1000,
        "of all places together"
    );
}

fn operations_are_told_in_the_order_they_end() {
    let js = "
        const rows = await mcp.fs.read({ a: 1 }, ...P.at(1));
        const few = P.did(2, [1, 2].map(P.does(2, (x) => P.did(3, P.does(3, x) + 1))));
        const sent = mcp.fs.read({ few }, ...P.at(4));
        P.got(P.may(5), null?.at(0, ...P.doing(5)));
        P.got(P.may(5), few?.at(0, ...P.doing(5)));
        return sent;";
    expect![[r#"
        call 1 of 1 at 1@0 {"a":1}
        3@0 gave 2
        3@0 gave 3
        2@0 gave [2,3]
        call 2 of 1 at 4@0 {"few":[2,3]}
        5@0 gave 2
        reached Did 3@0 0 ×2, Did 2@0 0 ×1, Did 5@0 0 ×1
        {"few":[2,3]}
    "#]]
    .assert_eq(&story(&program(js), echo));
}

fn an_operation_that_threw_gave_nothing() {
    let js = "
        for (const text of ['{', '1']) try { P.did(1, JSON.parse(P.does(1, text))) } catch {}
        const sly = () => { throw 1 };
        for (const list of [[1], null]) try { P.got(P.may(2), list?.map(sly, ...P.doing(2))) } catch {}";
    assert_eq!(told(js), ["1@0 gave 1"]);
}

fn programs_cannot_see_that_they_are_looked_at() {
    // The same program with and without probes that look at values, and twice with them.
    let plain = "const o = { n: 1 }; const l = [3, 1, 2]; l.sort(); Object.freeze(o); return [o, l, Object.keys(l), Date.now(), Math.random()];";
    let probed = plain
        .replace("l.sort()", "P.did(1, P.does(1, l).sort())")
        .replace("Object.freeze(o)", "P.did(2, Object.freeze(P.does(2, o)))")
        .replace("Date.now()", "P.did(3, P.does(3, Date).now())");
    let events = || play(&program(&probed), echo).unwrap();
    let (mut first, mut second) = (events(), events());
    assert_eq!(first.last(), play(&program(plain), echo).unwrap().last());
    // Only how long it took may differ.
    for event in first.iter_mut().chain(&mut second) {
        if let WorkerEvent::Operation { took, .. } = event {
            *took = std::time::Duration::ZERO;
        }
    }
    assert_eq!(first, second);
    assert_eq!(first.iter().filter(|event| matches!(event, WorkerEvent::Operation { .. })).count(), 3);
}
