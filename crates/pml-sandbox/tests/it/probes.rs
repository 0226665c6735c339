//! What programs report about the way they take.

use expect_test::expect;

use crate::host::{echo, play, program, story};
use crate::tests;
use pml_sandbox::{Entry, Event, Kind};

tests![
    every_probe_reports,
    probes_give_back_what_they_get,
    calls_know_where_they_come_from,
    a_place_that_called_nothing_is_forgotten,
    chains_end_where_nothing_is_found,
    calls_of_functions_enter_contexts,
    visits_are_counted_and_told_once_a_turn,
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
        .map(|(point, context, function, enters)| Entry { point, context, function, enters })
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
    let reached: Vec<Vec<(Kind, u64)>> = events
        .iter()
        .filter_map(|event| match event {
            Event::Reached { places, .. } => Some(places.iter().map(|it| (it.kind, it.count)).collect()),
            _ => None,
        })
        .collect();
    assert_eq!(reached, [vec![(Kind::Loop, 1), (Kind::Turn, 10000)], vec![(Kind::Turn, 5)]]);
}
