//! A program behaves the same with and without probes.

use super::{ProbePlace, emitted, mark_all, plain, run};

/// Runs `source` without probes, with all of them, and with many subsets.
#[track_caller]
fn check(source: &str, expected: &str) {
    let before = run(&plain(source));
    let last = before.did.lines().last().unwrap_or_default();
    assert_eq!(last, expected, "{source}\n{}", before.did);
    for choice in 0..24 {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(choice);
        let wanted = |place: ProbePlace| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match choice {
                0 => true,
                1 => place != ProbePlace::Operation,
                2 => matches!(place, ProbePlace::Operation | ProbePlace::Optional),
                3 => matches!(place, ProbePlace::Operation),
                _ => state >> 62 != 0,
            }
        };
        let probed = emitted(source, |program| mark_all(program, wanted)).expect("it can be emitted");
        let after = run(&probed);
        assert_eq!(after.did, before.did, "choice {choice} of\n{source}\n\n{}", probed.js);
    }
}

#[test]
fn values_and_exceptions() {
    check("return args.n + 1", "returned 4");
    check("return", "returned undefined");
    check("throw new TypeError('no')", "threw TypeError: no");
    check("const f = () => { throw 1 }; try { f() } catch { return 'caught' }", r#"returned "caught""#);
    check("try { null.x } catch (e) { return e }", "returned TypeError: cannot read property 'x' of null");
    check("try { return log(1) } finally { log(2) }", "returned 1");
    check("try { throw 1 } catch (e) { try { throw e + 1 } catch (e) { return e } }", "returned 2");
    check("try { throw { a: 1 } } catch ({ a, b = log(a) }) { return [a, b] }", "returned [1, 1]");
    check("return (() => { try { return 1 } finally { return 2 } })()", "returned 2");
    check("x; let x = 1", "threw ReferenceError: x is not initialized");
    check(
        "const f = () => y; const g = () => f(); try { g() } catch (e) { log(e) } let y = 2; return g()",
        "returned 2",
    );
    check(
        "return [1e3, 0xff, 'a\\n\"b\\'', -0, 10n, `a${1}b`, /a\\/b/g.source, '</script>']",
        r#"returned [1000, 255, "a\n\"b'", -0, 10, "a1b", "a\\/b", "</script>"]"#,
    );
    check("'just a text'; return 1", "returned 1");
    check("('use strict'); return (function () { return this })()", "returned undefined");
    check("return undefinedFunction(log(1))", "threw ReferenceError: undefinedFunction is not defined");
    check("return typeof undefinedName === 'undefined' && typeof log(1)", r#"returned "number""#);
}

#[test]
fn order_of_evaluation() {
    check("return log(1) + log(2) * log(3)", "returned 7");
    check("return log(0) && log(1) || log(2) && log(3)", "returned 3");
    check("return log(null) ?? log(undefined) ?? log(0)", "returned 0");
    check("return (log(1), log(0)) ? log(2) : log(3) ? log(4) : log(5)", "returned 4");
    check(
        "const o = { get a() { log('get'); return (x) => log(x) } }; return o.a(log(1), log(2))",
        "returned 1",
    );
    check(
        "const o = { [log('k')]: log('v'), ...(log(1) && { z: log(2) }) }; return o",
        r#"returned {k: "v", z: 2}"#,
    );
    check("let a = null; a ??= log(1); a &&= log(2); a ||= log(3); return a", "returned 2");
    check("let i = 0; const o = [1, 2]; o[i++] += log(i) && log(5); return [o, i]", "returned [[6, 2], 1]");
    check(
        "const { a = log(1), b = log(2) && log(3), ...c } = { a: null, d: 4 }; return [a, b, c]",
        "returned [null, 3, {d: 4}]",
    );
    check("if (log(1)) if (log(0)) log('a'); else log('b'); return 'end'", r#"returned "end""#);
    check("return log('x') in { x: 1 } ? log(1) : log(2)", "returned 1");
    check(
        "return [(-1) ** 2, 2 ** (1 + 1), (1, 2), -(-1), (args.nothing ?? 0) || 1, (1 || 0) ?? 2]",
        "returned [1, 4, 2, 1, 1, 1]",
    );
    check("for (let x = ('n' in args) ? 1 : 2; x < 3; x++) log(x); return 1", "returned 1");
    check(
        "return [(() => ({}).x)(), (() => (1, 2))(), (function () { return 3 })(), (class { static y = 4 }).y]",
        "returned [undefined, 2, 3, 4]",
    );
    check(
        "({ a: log(1) }).a; (function () { log(2) })(); (async () => log(3))(); [log(4)]; return 5",
        "returned 5",
    );
    check(
        "return { 'a-b': 1, 'c': 2, 3: 4, [5]: 6, 'd'() { return 7 } }",
        r#"returned {3: 4, 5: 6, a-b: 1, c: 2, d: function d/0}"#,
    );
    check(
        "return typeof (() => {}) + void 0 + (await 1) + !(args.n > 2) + (new Date(0)).getTime()",
        r#"returned "functionundefined1false0""#,
    );
}

#[test]
fn calls_keep_their_arguments_and_this() {
    check(
        "function f() { return arguments.length } return [f(), f(1), f(1, undefined), f(...[1, 2, 3])]",
        "returned [0, 1, 2, 3]",
    );
    check(
        "const f = (a, ...rest) => rest; return [f(1), f(1, 2), f(...args.list)]",
        "returned [[], [2], [2, 3]]",
    );
    check(
        "const f = (a, b = 2) => [a, b]; return [f(), f(undefined, undefined), f(1, null)]",
        "returned [[undefined, 2], [undefined, 2], [1, null]]",
    );
    check(
        "const o = { v: 1, m() { return this?.v } }; const m = o.m; return [o.m(), o['m'](), (o.m)(), (0, o.m)(), m()]",
        "returned [1, 1, 1, undefined, undefined]",
    );
    check(
        "function F(a) { this.a = a; this.n = arguments.length; this.t = new.target === F } return [new F, new F(1), new F(...[1, 2])]",
        "returned [{a: undefined, n: 0, t: true}, {a: 1, n: 1, t: true}, {a: 1, n: 2, t: true}]",
    );
    check("return new (args.list.map(() => Map))[0]([[1, 2]]).get(1)", "returned 2");
    check("return Math.max(...args.list.map((x) => x * 2))", "returned 6");
    check("return ((f) => f(f, 5))((f, n) => n ? n * f(f, n - 1) : 1)", "returned 120");
    check("return [1, 2, 3].reduce((sum, x) => sum + x, 0)", "returned 6");
    check("return args.list.map(String).join()", r#"returned "1,2,3""#);
    check("return log.call(null, 1) + log.apply(null, [2])", "returned 3");
    check(
        "const tag = (s, ...v) => [s.raw.join('|'), v.length]; return tag`a${1}\\n${2}</script>`",
        r#"returned ["a|\\n|</script>", 2]"#,
    );
    check(
        "const o = { p: '>', tag(s, v) { return this.p + s[0] + v } }; return o.tag`x${log(1)}`",
        r#"returned ">x1""#,
    );
    check("return String.raw`<\\/script></SCRIPT>`", r#"returned "<\\/script></SCRIPT>""#);
}

#[test]
fn functions_keep_name_and_length() {
    check(
        "const f = () => 1, g = function () {}, h = async (a, b) => {}; return [f, g, h]",
        "returned [function f/0, function g/0, function h/2]",
    );
    check(
        "return [function (a, b = 1) {}, (...r) => r, function* g(a) {}, async function* h(a, b) {}]",
        "returned [function /1, function /0, function g/1, function h/2]",
    );
    check(
        "const o = { m(a) {}, get x() { return 1 }, ['c' + 1]: () => {}, async *n() {} }; return o",
        "returned {m: function m/1, x: 1, c1: function c1/0, n: function n/0}",
    );
    check(
        "class A { static s = () => 1; f = (x) => x; static m(a) {} } return [A, A.s, A.m, new A().f]",
        "returned [function A/0, function s/0, function m/1, function f/1]",
    );
    check(
        "let f; f = () => {}; let { g = () => {} } = {}; f ||= 1; return [f, g]",
        "returned [function f/0, function g/0]",
    );
    check("const f = args.n ? () => 1 : () => 2; return f", "returned function /0");
    check("return (() => ({ a: 1 }))()", "returned {a: 1}");
    check("return (() => ({}))()", "returned {}");
    check("const f = () => () => () => args.n; return f()()()", "returned 3");
    check("function f() { 'use strict'; 'other'; return this } return f()", "returned undefined");
    check("return f(); function f() { return g() } function g() { return 7 }", "returned 7");
    check(
        "const f = (a, b = g(a), c = () => b) => c(); function g(x) { return x + 1 } return f(1)",
        "returned 2",
    );
}

#[test]
fn loops_and_labels() {
    check("let s = 0; for (let i = 0; i < 3; i++) s += i; return s", "returned 3");
    check(
        "const f = []; for (let i = 0; i < 3; i++) f.push(() => i); return f.map((g) => g())",
        "returned [0, 1, 2]",
    );
    check(
        "const f = []; for (var i = 0; i < 3; i++) f.push(() => i); return f.map((g) => g())",
        "returned [3, 3, 3]",
    );
    check(
        "outer: for (const a of [1, 2, 3]) { for (const b of [1, 2, 3]) { if (b === 2) continue outer; if (a === 3) break outer; log(a, b) } } return 'end'",
        r#"returned "end""#,
    );
    check(
        "a: b: c: for (const x of [1, 2, 3]) { log(x); for (;;) { if (x === 1) continue a; if (x === 2) continue b; break c } } return 1",
        "returned 1",
    );
    check("if (args.n) a: for (;;) { break a } else for (;;); return 1", "returned 1");
    check("a: { log(1); if (args.n) break a; log(2) } return 3", "returned 3");
    check("for (const k in { a: 1, b: 2 }) for (const c of k) log(k, c); return 1", "returned 1");
    check("let n = 0; do n++; while (n < 3 && log(n)); return n", "returned 3");
    check("let n = 3; while (n --> 0) if (n === 1) continue; else log(n); return n", "returned -1");
    check("for (var i = 0; i < 2; i++); return i", "returned 2");
    check(
        "for (const [k, v = log(k)] of Object.entries({ a: undefined, b: 1 })) log(k, v); return 1",
        "returned 1",
    );
    check("for (x of [1]) { let x = 1 } var x; return x", "returned 1");
    check(
        "for (const x of (function* () { try { yield 1; yield 2 } finally { log('closed') } })()) { log(x); break } return 1",
        "returned 1",
    );
    check("for (const x of [x]) {} ", "threw ReferenceError: x is not initialized");
    check(
        "let i = 0; for (;;) { if (i++ > 2) break; switch (i) { case 1: continue; default: log(i) } } return i",
        "returned 4",
    );
}

#[test]
fn switches() {
    let walk = |body: &str| format!("const f = (x) => {{ {body} }}; return [0, 1, 2, 3, 4].map(f)");
    check(
        &walk("switch (x) { case 1: return 'a'; case 2: return 'b' } return 'c'"),
        r#"returned ["c", "a", "b", "c", "c"]"#,
    );
    check(
        &walk(
            "let s = ''; switch (x) { case 1: s += 'a'; case 2: s += 'b'; break; default: s += 'd'; case 3: s += 'c' } return s",
        ),
        r#"returned ["dc", "ab", "b", "c", "dc"]"#,
    );
    check(
        &walk("switch (log(x)) { case log(1): case log(2): { return 1 } case log(3): } return 2"),
        "returned [2, 1, 1, 2, 2]",
    );
    check(
        &walk(
            "switch (x) { case 1: let y = 1; return y; case 2: try { y } catch (e) { return e.name } break; case 3: y = 5; } return 0",
        ),
        r#"threw ReferenceError: y is not initialized"#,
    );
    check(
        &walk("a: switch (x) { case 1: for (;;) { break a } default: return 'd' } return 'e'"),
        r#"returned ["d", "e", "d", "d", "d"]"#,
    );
    check(
        &walk("switch (true) { case x > 2: return 'big'; case x > 0: return 'small' }"),
        r#"returned [undefined, "small", "small", "big", "big"]"#,
    );
    check(&walk("switch (x) {} return x"), "returned [0, 1, 2, 3, 4]");
    check(&walk("switch (x) { default: return 9 }"), "returned [9, 9, 9, 9, 9]");
    check(
        "const f = (n) => { switch (n) { case 0: return 'z'; default: return f(n - 1) + n; case 2: log(f(1)) } return 'two' }; return f(4)",
        r#"returned "two34""#,
    );
    check(
        "if (args.n) switch (args.n) { case 3: function g() { return 3 } return g() } return 0",
        "returned 3",
    );
    check(
        "switch (1) { case 1: switch (2) { case 1: log('no'); case 2: log('yes') } case 3: log('on') } return 1",
        "returned 1",
    );
    check(
        "async function f(x) { switch (await x) { case 1: await null; log(1); case 2: log(2) } } await Promise.all([f(1), f(2), f(3)]); return 1",
        "returned 1",
    );
}

#[test]
fn optional_chains() {
    check(
        "return [args?.n, args.nothing?.n, args.nothing?.n.m.k, args.none?.[log(1)]]",
        "returned [3, undefined, undefined, undefined]",
    );
    check("const a = null; return a?.b.c(log(1)).d", "returned undefined");
    check("const a = { b: { c: (x) => ({ d: x }) } }; return a?.b.c(log(1)).d", "returned 1");
    check("const a = {}; return a?.b.c(log(1)).d", "threw TypeError: cannot read property 'c' of undefined");
    check(
        "const o = { v: 1, m() { return this.v } }; return [o.m?.(), o?.m(), o?.m?.(), o['m']?.(), o?.['m']?.(), o.x?.(), o.x?.(log(1)).y.z]",
        "returned [1, 1, 1, 1, 1, undefined, undefined]",
    );
    check(
        "const o = { a: { m(x) { return [this === o.a, x, arguments.length] } } }; return o?.a?.m?.(1, 2)",
        "returned [true, 1, 2]",
    );
    check("const o = { m: 1 }; return o.m?.()", "threw TypeError: not a function");
    check("return args.nothing?.m?.(log(1))?.[log(2)]?.x", "returned undefined");
    check(
        "const o = { a: undefined }; return o?.a.m?.(log(1))",
        "threw TypeError: cannot read property 'm' of undefined",
    );
    check("const o = null; return o?.a.m?.(log(1))", "returned undefined");
    check("const o = null; return o?.[log('k')]?.(log(1))", "returned undefined");
    check("const o = { k() { return this.z }, z: 4 }; return o?.[log('k')]?.(log(1))", "returned 4");
    check("const o = null; return o?.a[log('k')]?.(log(1))", "returned undefined");
    check(
        "const o = { a: { b: 1 } }; return [delete o?.a.b, delete o.x?.y, delete o?.a?.b, o]",
        "returned [true, true, true, {a: {}}]",
    );
    check("const o = null; return delete o?.a?.b", "returned true");
    check(
        "const o = null; try { (o?.a).b } catch (e) { return e.message }",
        r#"returned "cannot read property 'b' of undefined""#,
    );
    check(
        "const o = { f() { return this === o } }; return [(o?.f)(), (o?.f)?.(), (o.f)?.()]",
        "returned [true, true, true]",
    );
    check(
        "const f = null, g = () => 2; return [f?.(log(1)), g?.(log(1)), f?.(1).x.y, g?.()?.toFixed?.(1)]",
        r#"returned [undefined, 2, undefined, "2.0"]"#,
    );
    check(
        "class A { #p = { q: 1 }; #m() { return this.#p } static t(a) { return [a?.#p.q, a?.#p?.q, a?.#m?.(), a?.#m().q?.toFixed()] } } return [A.t(new A()), A.t(null)]",
        r#"returned [[1, 1, {q: 1}, "1"], [undefined, undefined, undefined, undefined]]"#,
    );
    check(
        "class A { m() { return this.v } } class B extends A { v = 1; t() { return [super.m?.(), super.x?.(), super['m']?.(), super.m?.()?.y] } } return new B().t()",
        "returned [1, undefined, 1, undefined]",
    );
    check("return args.list?.filter((x) => x > 1).map((x) => x * 2)?.[0]?.toFixed?.(1)", r#"returned "4.0""#);
    check("return args.nothing?.filter((x) => x > 1).map(log(1)).length", "returned undefined");
    check("return args.list.find((x) => x > 5)?.toFixed(1).length ?? 'none'", r#"returned "none""#);
    check(
        "const o = { get a() { log('a'); return null } }; return [o.a?.b, o.a?.b.c, o.a ?? 1]",
        "returned [undefined, undefined, 1]",
    );
    check("const o = {}; o.f = (n) => n ? o?.f?.(n - 1)?.x?.y ?? n : null; return o.f(3)", "returned 3");
    check(
        "const p = new Proxy({}, { get: (t, k) => { log(k); return undefined } }); return [p?.a?.b, p.c?.(), p?.d?.e?.f]",
        "returned [undefined, undefined, undefined]",
    );
    check("return mcp.gone?.tool({ a: log(1) })", "returned undefined");
    check("return (await mcp?.fs?.read?.({ a: 1 }))?.given", "returned 1");
    check(
        "const s = 'abc'; return [s?.length, s.at?.(-1), s.none?.(), (5).toFixed?.(1)]",
        r#"returned [3, "c", undefined, "5.0"]"#,
    );
}

#[test]
fn generators_and_async() {
    check(
        "function* g(a) { const x = yield a; log(x); yield* [1, 2]; return 3 } const i = g(0); return [i.next(), i.next('x'), i.next(), i.next(), i.next()].map((r) => r.value)",
        "returned [0, 1, 2, 3, undefined]",
    );
    check("function* g(n) { if (n) { yield n; yield* g(n - 1) } } return [...g(3)]", "returned [3, 2, 1]");
    check(
        "function* g() { log(yield log(1) && (yield 2) ? yield 3 : yield 4) } const i = g(); return [...Array(5)].map((_, k) => i.next(k).value)",
        "returned [2, 3, 2, undefined, undefined]",
    );
    check(
        "function* g(a, ...r) { yield arguments.length; yield r } return [...g(1, 2, 3)]",
        "returned [3, [2, 3]]",
    );
    check(
        "function* g(a) { yield arguments.length; yield a } return [g.length, ...g(), ...g(1, 2)]",
        "returned [1, 0, undefined, 2, 1]",
    );
    check(
        "async function* g() { for (let i = 0; i < 3; i++) yield i } const r = []; for await (const x of g()) r.push(x); return r",
        "returned [0, 1, 2]",
    );
    check(
        "const r = []; for await (const x of [Promise.resolve(1), 2]) { if (x === 1) continue; r.push(x) } return r",
        "returned [2]",
    );
    check(
        "const f = async (x) => { log('a' + x); await null; log('b' + x); return x }; return await Promise.all([f(1), f(2)])",
        "returned [1, 2]",
    );
    check("const t = (n) => n ? Promise.resolve().then(() => { log(n); return t(n - 1) }) : 0;
        const f = async (n) => { for (let i = 0; i < n; i++) { log('x' + i); await (i % 2 ? null : undefined) ?? 1; } };
        await Promise.all([t(4), f(5), (async () => { const r = await args?.list?.map(async (x) => log(await x)); await Promise.all(r) })()]); return 1", "returned 1");
    check(
        "const f = async () => { throw new Error('x') }; try { await f() } catch (e) { return e.message }",
        r#"returned "x""#,
    );
    check(
        "return await Promise.allSettled([mcp.fs.read({ fail: true }), mcp.fs.read({})])",
        r#"returned [{status: "rejected", reason: Error: read failed}, {status: "fulfilled", value: {ok: true, given: 1, items: [1, 2, 3]}}]"#,
    );
    check(
        "const r = await Promise.race([mcp.fs.read({ a: 1 }), mcp.fs.write({ b: 2 })]); return r.given",
        "returned 1",
    );
    check(
        "return (await Promise.all(args.list.map(async (x) => (await mcp.fs.read({ x })).given + x)))",
        "returned [2, 3, 4]",
    );
    check(
        "const read = mcp.fs.read; return [(await read()).given, (await read({}, 1)).given]",
        "returned [0, 2]",
    );
    check(
        "return await (async () => { if (await 0) return 1; return (await 1) ? await 2 : await 3 })()",
        "returned 2",
    );
    check(
        "await Promise.all([1, 2].map(async function f(x) { if (x > 3) return; log(x); await f(x + 2) })); return 1",
        "returned 1",
    );
}

#[test]
fn classes() {
    check(
        "class A { constructor(a) { this.a = a } static of(...r) { return new this(...r) } } class B extends A { constructor() { log('b'); super(log(1)); log(this.a) } } return B.of()",
        "returned {a: 1}",
    );
    check(
        "class A { static #n = 0; static { log('block'); if (log(1)) for (let i = 0; i < 2; i++) A.#n += i } static get n() { return A.#n } } return A.n",
        "returned 1",
    );
    check(
        "class A { x = log('x') && 1; [log('k')] = log('v'); static y = log('y') ?? 1; m() { return super.toString?.call(this) } } return [new A(), new A().m()]",
        r#"returned [{x: 1, k: "v"}, "[object Object]"]"#,
    );
    check(
        "class A { #p = 1; has(o) { return #p in o ? o.#p++ : log('no') } } const a = new A(); return [a.has(a), a.has({}), a.has(a)]",
        r#"returned [1, "no", 2]"#,
    );
    check(
        "class A { get v() { return this.w ?? 5 } set v(x) { this.w = x > 1 ? x : 0 } } const a = new A(); const b = a.v; a.v = 3; return [b, a.v]",
        "returned [5, 3]",
    );
    check(
        "class A extends (log(1) ? Array : Map) { constructor(...a) { super(...a) } } return new A(1, 2).length",
        "returned 2",
    );
    check("const A = class { static name2 = this.name }; return A.name2", r#"returned "A""#);
    check("class A { constructor() { return { other: 1 } } } return new A()", "returned {other: 1}");
    check(
        "class A { m() { return 1 } } class B extends A { m() { return (() => super.m() + (super['m']?.() ?? 0))() } } return new B().m()",
        "returned 2",
    );
    check(
        "class B extends Object { constructor() { try { this } catch (e) { log(e.name) } super() } } new B(); return 1",
        "returned 1",
    );
}

#[test]
fn typescript() {
    check(
        "enum A { One, Two = 5, Three, S = 's', L = 'abc'.length, M = One | Two } return [A.One, A[5], A.Three, A.S, A.L, A.M]",
        r#"returned [0, "M", 6, "s", 3, 5]"#,
    );
    check(
        "const enum A { One = 1 } function f() { enum B { X = 3 } return B.X + A.One } return f()",
        "returned 4",
    );
    check(
        "class A { constructor(public a: number, private readonly b = a + 1, protected c?: string) { log(this.b) } } return new A(1)",
        "returned {a: 1, b: 2, c: undefined}",
    );
    check(
        "class A { x!: number; declare y: string; z?: number; [k: string]: unknown } return new A()",
        "returned {x: undefined, z: undefined}",
    );
    check(
        "class A { constructor(public a: number) {} } class B extends A { constructor(readonly b: number) { super(b ? 2 : 3); log(this.b) } } return new B(1)",
        "returned {a: 2, b: 1}",
    );
    check(
        "namespace N { export const a = 1; export function f() { return a ? g() : 0 } function g() { return a + 1 } } return [N.a, N.f()]",
        "returned [1, 2]",
    );
    check(
        "function f(this: unknown, a?: number, ...r: string[]): number; function f(a?: any) { return a! + 1 } return f(1 as any) satisfies number",
        "returned 2",
    );
    check(
        "import type { X } from 'x'; import { Y } from 'y'; const a: X | Y = <any>1; return a!",
        "returned 1",
    );
    check(
        "abstract class A<T> implements Iterable<T> { abstract m(): T; *[Symbol.iterator](): Iterator<T> { yield this.m() } } class B extends A<number> { m() { return 4 } } return [...new B()]",
        "returned [4]",
    );
    check(
        "type F = () => void; interface I { a: string } declare const nothing: F; const o = { a: '1' } as const; return (o as I).a!.length",
        "returned 1",
    );
    check("const a = args!.list![0]!.toFixed!(1)!; return a", r#"returned "1.0""#);
    check("return (args as any)?.nothing?.x!.y?.z", "returned undefined");
    check(
        "let v: number | undefined; for (const x of args.list as number[]) { v = (v ?? 0) + (x as number) } return v",
        "returned 6",
    );
    check("const f = <T,>(x: T): T => x; return f<number>(2)", "returned 2");
}

#[test]
fn names_that_look_like_ours() {
    check("const __pml = 1, __pml_ = 2, __pml_c1 = 3; return __pml + __pml_ + __pml_c1", "returned 6");
    check("const \\u005f_pml = (x) => x; return __pml(log(1))", "returned 1");
    check("try { return __pml.at } catch (e) { return e.name }", r#"returned "ReferenceError""#);
    assert_eq!(plain("return 1").probe, "__pml");
    assert_eq!(plain("const __pml = 1").probe, "__pml_");
    assert_eq!(plain("\\u005f_pml_x()").probe, "__pml__");
    assert_eq!(plain("return { __pml: args.__pml }").probe, "__pml");
}
