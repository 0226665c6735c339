//! How programs end.

use std::time::Duration;

use expect_test::expect;

use crate::host::{echo, ending_of, play, program, story, value_of};
use crate::tests;
use pml_sandbox::{Delivery, DeliveryPayload, ProgramEnding, WorkerEvent, WorkerFault};

tests![
    values,
    what_is_thrown_is_told,
    positions_are_those_of_the_program,
    text_that_is_no_program,
    rejections_nobody_handles,
    a_program_that_waits_for_nothing_is_dead,
    calls_nobody_waits_for_do_not_keep_a_program,
    jobs_run_to_the_end_before_the_end,
    memory_ends_the_run_and_cannot_be_caught,
    too_much_for_the_engine_is_an_error,
    the_stack_is_limited_but_programs_may_be_nested,
    processor_time_ends_the_run,
    the_same_program_tells_the_same,
    what_was_done_before_the_end_is_told_also_where_deliveries_were_sent_ahead,
    deliveries_may_be_sent_ahead,
];

fn values() {
    for (js, value) in [
        ("return 1", "1"),
        ("", "null"),
        ("return", "null"),
        ("return undefined", "null"),
        ("return null", "null"),
        ("return { then(done) { done('awaited once') } }", r#""awaited once""#),
        ("return await Promise.all([1, Promise.resolve(2)])", "[1,2]"),
        ("return typeof this", r#""undefined""#),
        ("return arguments.length", "0"),
        ("return 1 // comment at the end", "1"),
        ("debugger; return 1 <!-- comment", "1"),
        ("return args", r#"{"dir":"/d","n":3}"#),
    ] {
        assert_eq!(value_of(js), value, "{js}");
    }
}

fn what_is_thrown_is_told() {
    let cases = [
        "throw new Error('plain')",
        "null.x",
        "throw null",
        "throw undefined",
        "throw 'text'",
        "throw 42",
        "throw { code: 1 }",
        "throw Symbol('s')",
        "throw () => {}",
        "class Own extends Error { name = 'Own' } throw new Own('mine')",
        "throw new AggregateError([new Error('a')], 'several')",
        "throw Object.defineProperty(new Error('x'), 'message', { get() { throw 1 } })",
        "throw Object.assign(new Error('x'), { name: 5, stack: { toString() { throw 1 } } })",
        "throw new Proxy(new Error('x'), { get() { throw 1 } })",
        "await Promise.reject(new TypeError('rejected'))",
        "let s = 'x'; for (;;) s += s",
    ];
    let table: String = cases.iter().map(|js| format!("{js} → {}\n", value_of(js))).collect();
    expect![[r#"
        throw new Error('plain') → threw Error: plain at 1:11
        null.x → threw TypeError: cannot read property 'x' of null at 1:1
        throw null → threw null: null
        throw undefined → threw undefined: undefined
        throw 'text' → threw string: text
        throw 42 → threw number: 42
        throw { code: 1 } → threw object: { code: 1 }
        throw Symbol('s') → threw symbol: Symbol(s)
        throw () => {} → threw function: [Function (anonymous)]
        class Own extends Error { name = 'Own' } throw new Own('mine') → threw Own: mine at 1:52
        throw new AggregateError([new Error('a')], 'several') → threw AggregateError: several at 1:31
        throw Object.defineProperty(new Error('x'), 'message', { get() { throw 1 } }) → threw Error:  at 1:33
        throw Object.assign(new Error('x'), { name: 5, stack: { toString() { throw 1 } } }) → threw TypeError: Error.prototype.stack setter expects a string at 1:25
        throw new Proxy(new Error('x'), { get() { throw 1 } }) → threw object: [Proxy]
        await Promise.reject(new TypeError('rejected')) → threw TypeError: rejected at 1:26
        let s = 'x'; for (;;) s += s → threw RangeError: string too long at 1:28
    "#]].assert_eq(&table);
    let long = play(&program("throw new Error('é'.repeat(1e5))"), echo).unwrap();
    match long.last() {
        Some(WorkerEvent::Ended(ProgramEnding::Thrown(thrown))) => {
            assert!((16_000..=16_384).contains(&thrown.message.len()));
        }
        other => panic!("{other:?}"),
    }
}

fn positions_are_those_of_the_program() {
    let js = "const a = 1;\nfunction inner() {\n  throw new Error('here');\n}\nawait null;\ninner();";
    let events = play(&program(js), echo).unwrap();
    let Some(WorkerEvent::Ended(ProgramEnding::Thrown(thrown))) = events.last() else { panic!("{events:?}") };
    assert_eq!(thrown.line, 3);
    expect![[r#"
        at inner (program.ts:3:13)
        at <anonymous> (program.ts:6:1)"#]]
    .assert_eq(&thrown.stack);
    assert_eq!(value_of("throw new Error('x')"), "threw Error: x at 1:11");
    // The frames of what is around a program are not told.
    let events = play(&program("queueMicrotask(\n  1)"), echo).unwrap();
    let Some(WorkerEvent::Ended(ProgramEnding::Thrown(thrown))) = events.last() else { panic!("{events:?}") };
    assert_eq!((thrown.line, thrown.stack.contains("pml")), (2, false), "{thrown:?}");
}

fn text_that_is_no_program() {
    for js in ["return (", "with ({}) {}", "let a; let a", "await = 1", "return 1 }", "import x from 'y'"] {
        assert!(value_of(js).starts_with("threw SyntaxError"), "{js}: {}", value_of(js));
    }
    expect!["threw SyntaxError: invalid redefinition of lexical identifier at 2:9"]
        .assert_eq(&value_of("const a = 1;\n  let a = 2;"));
}

fn rejections_nobody_handles() {
    let cases = [
        "Promise.reject(new Error('lost')); return 1",
        "(async () => { throw undefined })(); return 1",
        "(async () => { await null; throw new Error('later') })(); return 1",
        "const p = Promise.reject(1); await null; p.catch(() => {}); return 'handled late'",
        "await Promise.all([Promise.reject(new Error('first')), Promise.reject(new Error('second'))])",
        "setTimeout(() => { throw new Error('in a timer') }, 1); await new Promise((then) => setTimeout(then, 2)); return 1",
        "queueMicrotask(() => { throw new Error('in a job') }); return 1",
        "Promise.reject(new Error('lost')); throw new Error('thrown')",
        "(async () => { throw new Error('the cause') })(); await new Promise(() => {})",
        "mcp.fs.read(5); return 1",
    ];
    let table: String = cases.iter().map(|js| format!("{js} → {}\n", value_of(js))).collect();
    expect![[r#"
        Promise.reject(new Error('lost')); return 1 → unhandled Error: lost at 1:20
        (async () => { throw undefined })(); return 1 → unhandled undefined: undefined
        (async () => { await null; throw new Error('later') })(); return 1 → unhandled Error: later at 1:38
        const p = Promise.reject(1); await null; p.catch(() => {}); return 'handled late' → "handled late"
        await Promise.all([Promise.reject(new Error('first')), Promise.reject(new Error('second'))]) → threw Error: first at 1:39
        setTimeout(() => { throw new Error('in a timer') }, 1); await new Promise((then) => setTimeout(then, 2)); return 1 → unhandled Error: in a timer at 1:30
        queueMicrotask(() => { throw new Error('in a job') }); return 1 → unhandled Error: in a job at 1:34
        Promise.reject(new Error('lost')); throw new Error('thrown') → threw Error: thrown at 1:46
        (async () => { throw new Error('the cause') })(); await new Promise(() => {}) → unhandled Error: the cause at 1:26
        mcp.fs.read(5); return 1 → unhandled TypeError: the arguments of a tool must be one object [INVALID_ARGUMENTS] at 1:8
    "#]].assert_eq(&table);
}

fn a_program_that_waits_for_nothing_is_dead() {
    for js in [
        "await new Promise(() => {})",
        "await mcp.fs.read({}); await new Promise(() => {})",
        "clearTimeout(setTimeout(() => {}, 1)); await new Promise(() => {})",
    ] {
        assert_eq!(value_of(js), "Ended(Deadlock)", "{js}");
    }
}

fn calls_nobody_waits_for_do_not_keep_a_program() {
    expect![[r#"
        call 1 of 1 at 0@0 {}
        timer 1 in 1000
        1
    "#]]
    .assert_eq(&story(&program("mcp.fs.read({}); setTimeout(() => {}, 1000); return 1"), echo));
}

fn jobs_run_to_the_end_before_the_end() {
    let js = "let n = 0; (function more() { if (n++ < 1000) Promise.resolve().then(more); else console.log(n) })(); return 1";
    assert_eq!(story(&program(js), echo), "Log 1001\n1\n");
}

fn memory_ends_the_run_and_cannot_be_caught() {
    for js in [
        "const a = []; for (;;) a.push({ x: 1 })",
        "const a = []; try { for (;;) a.push(new Array(1000)) } catch { return 'caught' } finally { return 'finally' }",
        "const a = []; for (;;) a.push(new ArrayBuffer(1 << 24))",
        "return 'x'.repeat(5e8)",
        "return JSON.parse('[' + '{\"a\":1},'.repeat(5e6) + '0]').length",
    ] {
        assert_eq!(value_of(js), "Ended(Limit(Memory))", "{js}");
    }
    let mut small = program("console.log('before'); mcp.fs.read({}); const a = []; for (;;) a.push({})");
    small.limits.heap_bytes = 8 << 20;
    assert_eq!(story(&small, echo), "Log before\ncall 1 of 1 at 0@0 {}\nEnded(Limit(Memory))\n");
}

fn too_much_for_the_engine_is_an_error() {
    for js in [
        "new ArrayBuffer(2 ** 40)",
        "new Float64Array(2 ** 28)",
        "2n ** 30000000n",
        "let s = 'x'; for (;;) s += s",
        "[].length = -1",
    ] {
        let js =
            format!("try {{ {js} }} catch (error) {{ return [error.name, error instanceof RangeError] }}");
        assert_eq!(value_of(&js), r#"["RangeError",true]"#, "{js}");
    }
}

fn the_stack_is_limited_but_programs_may_be_nested() {
    let js = "let depth = 0; try { (function f() { depth++; f() })() } catch (error) { return [error.name, depth > 500] }";
    assert_eq!(value_of(js), r#"["RangeError",true]"#);
    for (open, close) in [("(", ")"), ("[", "]"), ("{ a: ", "}"), ("!", ""), ("(() => ", ")")] {
        let nested = format!("const x = {}1{}; return 1", open.repeat(500), close.repeat(500));
        assert_eq!(value_of(&nested), "1", "{open}");
    }
    assert_eq!(value_of(&format!("{}return 1{}", "if (true) {".repeat(500), "}".repeat(500))), "1");
}

fn processor_time_ends_the_run() {
    for js in [
        "for (;;) {}",
        "for (;;) { try { for (;;) {} } catch {} }",
        "new Array(4294967295).join('')",
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
        "(function f() { Promise.resolve().then(f) })()",
        "await mcp.fs.read({}); for (;;) {}",
        "return { get a() { for (;;) {} } }",
    ] {
        let mut short = program(js);
        short.limits.cpu = Duration::from_millis(50);
        assert_eq!(play(&short, echo).err(), Some(WorkerFault::Cpu), "{js}");
    }
}

fn the_same_program_tells_the_same() {
    let js = r#"
        const all = await Promise.all([1, 2, 3].map((n) => mcp.fs.read({ n, r: Math.random(), t: Date.now() }, ...P.at(n))));
        for (const key in { b: 1, a: 2 }) console.log(key, new Map(Object.entries(all)), Math.random());
        setTimeout(() => console.log(new Date().toISOString(), new Error("x").stack), 5);
        await new Promise((then) => setTimeout(then, 10));
        P.is(4, Math.random() > 0.5);
        try { await mcp.fs.read(NaN) } catch (error) { console.log(error) }
        return [...new Set([Math.random(), Symbol("s").toString()])];
    "#;
    let first = play(&program(js), echo).unwrap();
    for _ in 0..5 {
        assert_eq!(play(&program(js), echo).unwrap(), first);
    }
}

/// Whether its deliveries come one by one or all at once, what a program did before its last is told.
fn what_was_done_before_the_end_is_told_also_where_deliveries_were_sent_ahead() {
    let mut endless =
        program("const a = await mcp.fs.read({}); console.log(a); await mcp.fs.read({}); for (;;);");
    endless.limits.cpu = Duration::from_millis(200);
    let answers = [1, 2].map(|call| DeliveryPayload::Result { call, json: call.to_string() });
    let told = |ahead: usize| {
        crate::host::block_on(async {
            let mut worker = crate::host::pool().take_worker().await.unwrap();
            worker.begin_program(&endless);
            let mut given = (1..).zip(answers.iter().cloned());
            let mut deliver = |worker: &mut pml_sandbox::Worker| {
                if let Some((now_ms, what)) = given.next() {
                    worker.deliver(&Delivery { now_ms, what });
                }
            };
            (0..ahead).for_each(|_| deliver(&mut worker));
            let mut events = Vec::new();
            loop {
                match worker.next_event().await {
                    Ok(event) => {
                        if let WorkerEvent::Quiet { .. } = event {
                            deliver(&mut worker);
                        }
                        events.push(event);
                    }
                    Err(fault) => return (events, fault),
                }
            }
        })
    };
    let (one_by_one, fault) = told(0);
    assert_eq!(fault, WorkerFault::Cpu);
    assert!(
        one_by_one.iter().any(|event| matches!(event, WorkerEvent::Call { call: 2, .. })),
        "{one_by_one:?}"
    );
    assert_eq!(told(2), (one_by_one, fault));
}

fn deliveries_may_be_sent_ahead() {
    let js = "const a = await mcp.fs.read({ a: 1 }); await new Promise((then) => setTimeout(then, 5)); const b = await mcp.fs.read({}); return [a, b, Date.now()]";
    let ahead = crate::host::block_on(async {
        let mut worker = crate::host::pool().take_worker().await.unwrap();
        worker.begin_program(&program(js));
        let what = [
            DeliveryPayload::Result { call: 1, json: "\"first\"".to_owned() },
            DeliveryPayload::Timer { timer: 1 },
            DeliveryPayload::Result { call: 2, json: "\"second\"".to_owned() },
        ];
        for (now_ms, what) in (1..).zip(what) {
            worker.deliver(&Delivery { now_ms, what });
        }
        let mut events = Vec::new();
        loop {
            events.push(worker.next_event().await.unwrap());
            if let Some(WorkerEvent::Ended(ending)) = events.last() {
                assert_eq!(ending, &ProgramEnding::Value(r#"["first","second",3]"#.to_owned()));
                return events.len();
            }
        }
    });
    // Two calls, a timer, three times quiet and the end: as if each had been waited for.
    assert_eq!(ahead, 7);
    assert_eq!(ending_of(&program("return 1")), "1");
}
