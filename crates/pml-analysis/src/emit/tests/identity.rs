//! Which programs have the same identity.

use oxc_ast::ast::*;
use oxc_ast_visit::VisitJs;
use oxc_span::GetSpan;

use super::{ProbeMarks, emitted};

/// Lifts the literals that are values of members, like arguments of a tool.
#[derive(Default)]
struct Lift(ProbeMarks);

impl<'a> VisitJs<'a> for Lift {
    fn visit_object_property(&mut self, it: &ObjectProperty<'a>) {
        if it.value.is_literal() || matches!(it.value, Expression::ParenthesizedExpression(_)) {
            let index = self.0.lifted.len() as u32;
            self.0.lifted.insert(it.value.span(), index);
        }
        oxc_ast_visit::walk_js::walk_object_property(self, it);
    }
}

fn canonical(source: &str) -> String {
    emitted(source, |_| ProbeMarks::default()).expect("it can be emitted").canonical
}

fn lifted(source: &str) -> String {
    let mark = |program: &Program<'_>| {
        let mut lift = Lift::default();
        lift.visit_program(program);
        lift.0
    };
    emitted(source, mark).expect("it can be emitted").canonical
}

#[test]
fn wording_does_not_count() {
    let pairs = [
        ("const a = 1; return a", "const other = 1; return other"),
        ("const a = 'x'; return a", "const a = \"x\"; return a"),
        ("return 'it\\'s'", "return \"it's\""),
        ("return '\\x41\\u0042\\n'", "return 'AB\\u000a'"),
        ("return 1e3", "return 1000"),
        ("return 0xff + 1_000 + .5", "return 255 + 1000 + 0.50"),
        ("const a = 1; return { a }", "const b = 1; return { a: b }"),
        ("return { args }", "return { args: args }"),
        ("const { a } = args; return a", "const { a: b } = args; return b"),
        ("const { a = 1, ...r } = args; return [a, r]", "const { a: x = 1, ...y } = args; return [x, y]"),
        ("let a; ({ a } = args); return a", "let b; ({ a: b } = args); return b"),
        ("let a; ({ a = 2 } = args); return a", "let b; ({ a: b = 2 } = args); return b"),
        ("return (((args)))", "return args"),
        ("return (args.a).b", "return args.a.b"),
        ("return args.x * (2 + 1)", "return (args.x) * ((2) + 1);"),
        ("let a = 1\nlet b = 2\nreturn a + b", "let a=1;;let b=2;;;return a+b;"),
        ("'use strict'; return 1", "return 1"),
        ("function f() { 'use strict'; return 1 } return f()", "function f() { return 1 } return f()"),
        ("// a comment\nreturn /* here */ 1", "return 1"),
        ("const a: number = 1; return a as unknown as string", "const a = 1; return a"),
        (
            "interface T { a: string } type U = T; function f<X>(x: X): x is X { return !!x } return f(1)",
            "function f(x) { return !!x } return f(1)",
        ),
        (
            "import type { T } from 'x'; import { U } from 'y'; const a: T & U = 1; return a",
            "const a = 1; return a",
        ),
        ("return args.map(x => x.name)", "return args.map((item) => (item.name))"),
        (
            "function f(a) { return g(a) } function g(b) { return b } return f(1)",
            "function x(y) { return z(y) } function z(w) { return w } return x(1)",
        ),
        ("class A { m() { return A } } return new A()", "class B { m() { return B } } return new B()"),
        ("try { args.f() } catch (e) { return e }", "try { args.f() } catch (problem) { return problem }"),
        (
            "outer: for (const a of args) { for (;;) { continue outer } }",
            "x: for (const b of args) { for (;;) { continue x } }",
        ),
        ("enum A { One, Two = 5 } return A.Two", "enum B { One, Two = 5 } return B.Two"),
        ("namespace N { export const a = 1 } return N.a", "namespace M { export const a = 1 } return M.a"),
        ("const f = function g() { return g }; return f", "const a = function b() { return b }; return a"),
        ("for (let i = 0; i < 3; i++) args.f(i)", "for (let index = 0; index < 3; index++) args.f(index)"),
        (
            "const r = (a, b = a, ...c) => [a, b, c]; return r(1)",
            "const q = (x, y = x, ...z) => [x, y, z]; return q(1)",
        ),
        ("enum A { x = args.f(), y = x + 1 } return A.y", "enum B { x = args.f(), y = x + 1 } return B.y"),
        ("return { 'a-b': 1 }", "return { \"a-b\": 1 }"),
        ("#!/usr/bin/env pml\nreturn 1", "return 1"),
        ("declare const mcp: any; return mcp.a.b()", "return mcp.a.b()"),
        ("const a\\u0062 = 1; return ab", "const c = 1; return c"),
    ];
    for (one, other) in pairs {
        assert_eq!(canonical(one), canonical(other), "{one}\n{other}");
    }
}

#[test]
fn everything_else_counts() {
    let pairs = [
        ("return args.map(x => x.name)", "return args.map(x => x.id)"),
        ("return { a: args }", "return { b: args }"),
        ("return mcp.fs.read({})", "return mcp.fs.write({})"),
        ("return mcp.fs.read({})", "return capabilities.fs.read({})"),
        ("const mcp = args; return mcp.a", "return mcp.a"),
        ("const a = args, b = 1; return a", "const a = args, b = 1; return b"),
        ("return 'a'", "return 'b'"),
        ("return 1", "return 2"),
        ("return 1", "return '1'"),
        ("return -0", "return 0"),
        ("return 10n", "return 10"),
        ("return args?.a", "return args.a"),
        ("return (args?.a).b", "return args?.a.b"),
        ("return args.a || 1", "return args.a ?? 1"),
        ("let a = 1; return a", "const a = 1; return a"),
        ("await args.f()", "args.f()"),
        ("return `a${args}`", "return `b${args}`"),
        ("return /a/g", "return /a/i"),
        ("const { a } = args; return a", "const { b } = args; return b"),
        ("let a; ({ a } = args); return a", "let b; ({ b } = args); return b"),
        ("if (args) { return 1 }", "if (!args) { return 1 }"),
        ("enum A { One, Two } return A.Two", "enum A { One, Three } return A.Three"),
        ("enum A { One, Two } return A.Two", "enum A { One, Two = 3 } return A.Two"),
        ("a: for (;;) { b: for (;;) { break a } }", "a: for (;;) { b: for (;;) { break b } }"),
        ("const f = async () => 1; return f()", "const f = () => 1; return f()"),
        ("function f() { return 1 } return f()", "function* f() { return 1 } return f()"),
        ("declare const a: any; return a.f()", "declare const b: any; return b.f()"),
        ("const x = 1; return y", "const x = 1; return x"),
        ("return '@0'", "const a = '@0'; return a"),
        ("class A { static x = 1 } return A", "class A { x = 1 } return A"),
        ("enum args { x = f(), y = x } return 1", "enum A { x = f(), y = args.x } return 1"),
        ("return { 'a-b': 1 }", "return { 'a-c': 1 }"),
        ("return args.a.b", "return args['a']['c']"),
    ];
    for (one, other) in pairs {
        assert_ne!(canonical(one), canonical(other), "{one}\n{other}");
    }
}

#[test]
fn lifted_literals_do_not_count_but_their_parameters_do() {
    let same = [
        ("return mcp.fs.read({ path: 'a' })", "return mcp.fs.read({ path: 'b' })"),
        ("return mcp.fs.read({ path: 'a', n: 1 })", "return mcp.fs.read({ path: ('b'), n: 2e4 })"),
        ("const p = 1; return mcp.fs.read({ p: 'a' })", "const q = 1; return mcp.fs.read({ p: 'literal0' })"),
    ];
    for (one, other) in same {
        assert_eq!(lifted(one), lifted(other), "{one}\n{other}");
    }
    let different = [
        ("return mcp.fs.read({ path: 'a' })", "return mcp.fs.read({ file: 'a' })"),
        ("return mcp.fs.read({ path: 'a' })", "return mcp.fs.read({ path: args })"),
        ("return mcp.fs.read({ path: 'a' }, 1)", "return mcp.fs.read({ path: 'a' }, 2)"),
    ];
    for (one, other) in different {
        assert_ne!(lifted(one), lifted(other), "{one}\n{other}");
    }
}

#[test]
fn the_canonical_form_can_be_read() {
    let source = "const found = await mcp.fs.find({ name: 'x' });
        next: for (const { path } of found) { if (!path) continue next; await mcp.fs.read({ path }) }";
    assert_eq!(
        lifted(source),
        "const @0=await mcp.fs.find({name:@literal0});@label0:for(const{path:@1}of @0){\
         if(!@1)continue @label0;await mcp.fs.read({path:@1})}"
    );
}
