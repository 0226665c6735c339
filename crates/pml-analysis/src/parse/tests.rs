//! Messages for texts that are not programs.

use expect_test::{Expect, expect};

use super::*;

fn understood(source: &str) -> Result<(), Error> {
    on_large_stack(source, |allocator| {
        let lines = SourceLines::new(source);
        let (program, stats) = parse_program(allocator, &lines)?;
        let (_, beside) = resolve_scopes(&lines, &program, stats)?;
        beside.into_iter().next().map_or(Ok(()), Err)
    })?
}

fn render(source: &str) -> String {
    let Err(error) = understood(source) else { return "fine\n".to_owned() };
    let at = error.position().map(|at| format!("{}:{} ", at.line, at.column)).unwrap_or_default();
    let excerpt = error.excerpt().map(|line| format!("  | {line}\n")).unwrap_or_default();
    let hint = error.hint().map(|hint| format!("  = {hint}\n")).unwrap_or_default();
    format!("{at}{error}\n{excerpt}{hint}")
}

#[track_caller]
fn check(sources: &[&str], expected: &Expect) {
    expected.assert_eq(&sources.iter().map(|source| render(source)).collect::<String>());
}

#[track_caller]
fn fine(sources: &[&str]) {
    for source in sources {
        assert_eq!(understood(source), Ok(()), "{source}");
    }
}

#[test]
fn what_is_not_closed_is_shown_where_it_opens() {
    check(
        &[
            "const x = {a: 1",
            "if (a) {\n  foo()\n",
            "foo(1, [2)",
            "foo())",
            "async function f() {\n}}",
            "const s = \"hello\nworld\"",
            "const s = `hello\nworld",
            "/* comment",
            "let x = 1 +",
            "x = a ? b",
        ],
        &expect![[r#"
            1:16 expected `}` but found the end of the program
              | const x = {a: 1
              = the `{` at line 1, column 11 is never closed
            3:1 expected `}` but found the end of the program
              | 
              = the `{` at line 1, column 8 is never closed
            1:10 expected `,` or `]` but found `)`
              | foo(1, [2)
              = the `[` at line 1, column 8 is still open here
            1:6 expected `;` or a new line before `)`
              | foo())
              = no bracket is open here: remove this `)`
            2:2 unexpected `}`
              | }}
              = no bracket is open here: remove this `}`
            1:11 unterminated string
              | const s = "hello
              = a string ends on the line it begins; write `\n`, or a template in backticks
            1:11 unterminated template
              | const s = `hello
              = a template ends with a backtick; one inside it is written \`
            1:1 unterminated multiline comment
              | /* comment
            1:12 the program ends too early
              | let x = 1 +
            1:10 expected `:` but found the end of the program
              | x = a ? b
              = the `?` at line 1, column 7 needs a second value: `condition ? value : other`
        "#]],
    );
}

#[test]
fn habits_of_other_languages_get_a_hint() {
    check(
        &[
            "```ts\nreturn 1;\n```",
            "Here is the code:\n```ts\nreturn 1;\n```",
            "return 1;\n```",
            "const s = “hello”",
            "const x := 1",
            "def foo(a):\n  return 1",
            "if (a) {} elif (b) {}",
            "# a comment\nreturn 1",
            "let mut x = 1",
            "const s = f\"hello {x}\"",
            "if (a and b) {}",
            "const c = a or b",
            "for x in items {}",
            "const a = 'it's'",
            "const o = {a = 1}",
            "const o = {a: 1 b: 2}",
        ],
        &expect![[r#"
            1:1 the program is wrapped in a Markdown code fence
              | ```ts
              = send the code alone, without lines of backticks or text around it
            1:6 expected `;` or a new line before `is`
              | Here is the code:
              = send the code alone, without lines of backticks or text around it
            2:3 unterminated template
              | ```
              = send the code alone, without lines of backticks or text around it
            1:11 unexpected character `“`
              | const s = “hello”
              = use straight quotes: `"`
            1:10 unexpected `=`
              | const x := 1
              = write `=`, not `:=`
            1:5 expected `;` or a new line before `foo`
              | def foo(a):
              = functions are declared with `function`
            1:20 expected `;` or a new line before `{`
              | if (a) {} elif (b) {}
              = write `else if`
            1:2 unexpected character ` `
              | # a comment
              = comments begin with `//`
            1:9 expected `;` or a new line before `x`
              | let mut x = 1
              = leave out `mut`: what `let` declares can change
            1:12 expected `;` or a new line before `"`
              | const s = f"hello {x}"
              = write text with values in it as a template: `Hello ${name}` in backticks
            1:7 expected `)` but found `and`
              | if (a and b) {}
              = write `&&` for `and`
            1:13 expected `;` or a new line before `or`
              | const c = a or b
              = write `||` for `or`
            1:5 expected `(` but found `x`
              | for x in items {}
              = what follows this word stands in parentheses
            1:15 expected `;` or a new line before `s`
              | const a = 'it's'
              = a quote inside the text ends it: escape it with `\`, or use other quotes around the text
            1:12 invalid assignment in object literal
              | const o = {a = 1}
              = write `:` between a name and its value
            1:17 expected `,` or `}` but found `b`
              | const o = {a: 1 b: 2}
        "#]],
    );
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    check(
        &[
            "import fs from \"fs\"",
            "import x = require(\"x\")",
            "export default async function main() {}",
            "export const x = 1",
            "namespace N { if (args) export const a = 1 }",
            "return import.meta.url",
            "return new.target",
            "return arguments[0]",
            "const f = () => arguments",
            "@dec class A {}",
            "class A { accessor x = 1 }",
            "using x = foo()",
            "function<T>(id: T) { return id }",
            "return <div>hello</div>",
            "return (\n  <ul>\n    {items.map(i => <li>{i}</li>)}\n  </ul>\n)",
            "<!-- comment",
            "with (a) {}",
            "namespace N { export const x = await mcp.a.b({}) }",
            "enum E { A = await 1 }",
            "namespace N { return 1 }",
        ],
        &expect![[r#"
            1:1 a program cannot `import`: it has no modules
              | import fs from "fs"
              = everything there is has a name already: `args`, `mcp`, `capabilities`, `pml`, `console` and standard JavaScript; types can come from `import type`
            1:1 a program cannot `import`: it has no modules
              | import x = require("x")
              = everything there is has a name already: `args`, `mcp`, `capabilities`, `pml`, `console` and standard JavaScript; types can come from `import type`
            1:1 a program cannot `export`
              | export default async function main() {}
              = a program is the body of an async function: write its statements, call tools as `await mcp.server.tool({…})` and `return` the result
            1:1 a program cannot `export`
              | export const x = 1
              = a program is the body of an async function: write its statements, call tools as `await mcp.server.tool({…})` and `return` the result
            1:25 `import` and `export` cannot stand in a block
              | namespace N { if (args) export const a = 1 }
              = a program is the body of an async function: write its statements, call tools as `await mcp.server.tool({…})` and `return` the result
            1:8 `import.meta` does not exist here: a program is not a module
              | return import.meta.url
              = hand in what it needs through `args`
            1:8 unexpected new.target expression
              | return new.target
              = new.target is only allowed in constructors, functions, and class field initializers
            1:8 `arguments` means nothing here
              | return arguments[0]
              = what the program is given is called `args`
            1:17 `arguments` means nothing here
              | const f = () => arguments
              = what the program is given is called `args`
            1:1 decorators are not supported
              | @dec class A {}
              = call the function on the class or method yourself
            1:11 `accessor` fields are not supported
              | class A { accessor x = 1 }
              = write a `get` and a `set` method
            1:1 `using` declarations are not supported
              | using x = foo()
              = declare it with `const` and release it in a `finally` block
            1:1 a function that is declared needs a name
              | function<T>(id: T) { return id }
              = write `function name(…)`
            1:8 JSX is not supported
              | return <div>hello</div>
              = build markup as text: a template in backticks with `${…}` for the values
            2:3 JSX is not supported
              |   <ul>
              = build markup as text: a template in backticks with `${…}` for the values
            1:1 HTML comments are not allowed
              | <!-- comment
              = comments begin with `//`
            1:1 `with` statements are not allowed
              | with (a) {}
            1:32 `await` is only allowed in async functions and outside of functions
              | namespace N { export const x = await mcp.a.b({}) }
            1:14 `await` is only allowed in async functions and outside of functions
              | enum E { A = await 1 }
            1:15 a namespace cannot `return`
              | namespace N { return 1 }
              = write the `return` after the namespace, or in a function
        "#]],
    );
}

#[test]
fn rules_of_strict_functions_hold() {
    check(
        &[
            "function f() { await mcp.a.b({}) }",
            "[1].map(x => await mcp.a.b({x}))",
            "let a = 1;\nlet a = 2",
            "{ function f() {} function f() {} }",
            "class f {}\nfunction f<T>() {}",
            "{ function f() {} class f {} }",
            "function f(a, a) {}",
            "for (const i = 0; i < 3; i++) {}",
            "break",
            "for (;;) { continue outer }",
            "x = 010",
            "delete x",
            "const a;",
            "var await = 1",
            "x = /(/",
            "x = /a/gg",
            "obj?.a = 1",
        ],
        &expect![[r#"
            1:16 `await` is only allowed in async functions and outside of functions
              | function f() { await mcp.a.b({}) }
              = make the function around it `async`
            1:14 `await` is only allowed in async functions and outside of functions
              | [1].map(x => await mcp.a.b({x}))
              = make the function around it `async`
            2:5 identifier `a` has already been declared
              | let a = 2
              = it is first declared at line 1, column 5; use another name
            1:28 identifier `f` has already been declared
              | { function f() {} function f() {} }
              = it is first declared at line 1, column 12; use another name
            2:10 identifier `f` has already been declared
              | function f<T>() {}
              = it is first declared at line 1, column 7; use another name
            1:25 identifier `f` has already been declared
              | { function f() {} class f {} }
              = it is first declared at line 1, column 12; use another name
            1:15 identifier `a` has already been declared
              | function f(a, a) {}
              = it is first declared at line 1, column 12; use another name
            1:26 cannot assign to `i`: it is a constant
              | for (const i = 0; i < 3; i++) {}
              = declare `i` with `let`
            1:1 illegal break statement
              | break
              = a `break` statement can only be used within an enclosing iteration or switch statement
            1:21 use of undefined label
              | for (;;) { continue outer }
            1:5 `0`-prefixed octal literals and octal escape sequences are deprecated
              | x = 010
              = for octal literals use the `0o` prefix instead
            1:8 delete of an unqualified identifier in strict mode
              | delete x
            1:7 missing initializer in const declaration
              | const a;
              = add an initializer (e.g. ` = undefined`) here
            1:5 cannot use `await` as an identifier in an async context
              | var await = 1
            1:6 invalid regular expression: unterminated capturing group
              | x = /(/
              = add the missing closing delimiter
            1:9 flag g is mentioned twice in regular expression literal
              | x = /a/gg
              = remove the duplicated flag here
            1:1 cannot assign to this expression
              | obj?.a = 1
        "#]],
    );
}

#[test]
fn types_are_never_an_error() {
    fine(&[
        "interface A { a: string; b?: number }\ntype B<T> = T extends infer U ? U : never;\nconst x: A = <any>1 satisfies unknown as A; return x!",
        "enum A { B, C = 'c' }\nconst enum D { E = 1 }\ndeclare const z: number;\ndeclare global { interface Window {} }\ndeclare module 'm' {}",
        "abstract class F<T> { constructor(private x: T, readonly y = 1) {} abstract m(): void; declare z: string }",
        "function g(a: string): void;\nfunction g(a: number): void;\nfunction g(a: any) {}",
        "namespace N { export const x = 1; export namespace O { export type P = string } }\nreturn N.x",
        "import type { A } from 'a';\nimport { type B, type C } from 'b';\nexport type D = string;\nexport interface E {}\nexport type { A };\nexport {};\nreturn 1",
        "namespace N { export const f = async () => { return await 1 } }\nreturn N.f()",
        "function isText(value: unknown): value is string { return typeof value === 'string' }",
    ]);
}

#[test]
fn forms_a_file_may_have_are_read() {
    fine(&[
        "",
        "\u{feff}return 1",
        "#!/usr/bin/env node\nreturn 1",
        "return \"a\u{2028}b\"",
        "const x = await mcp.fs.read({ path: args.path });\r\nif (!x) return null;\r\nreturn x",
        "function f() { return arguments.length + new.target }\nfunction f() {}",
        "for await (const x of y) { outer: for (;;) continue outer }",
    ]);
}

#[test]
fn the_tree_has_no_module_left() {
    let allocator = Allocator::default();
    let source = "#!/usr/bin/env node\nimport type { A } from 'a'; export {}; return 1";
    let (program, _) = parse_program(&allocator, &SourceLines::new(source)).unwrap();
    assert_eq!((program.body.len(), program.hashbang.is_none()), (1, true));
}

#[test]
fn limits_are_named() {
    let deep = format!("x = {}1{}", "[".repeat(498), "]".repeat(498));
    let chain = format!("x = a{}", " + a".repeat(500));
    check(
        &[&deep, &chain],
        &expect![[r#"
        1:502 the program is nested more than 500 levels deep
          | …[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]…
          = name the inner parts with `const`, or build long chains in a loop
        1:5 the program is nested more than 500 levels deep
          | x = a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a + a +…
          = name the inner parts with `const`, or build long chains in a loop
    "#]],
    );
    fine(&[&format!("x = {}1{}", "[".repeat(400), "]".repeat(400))]);
    let large = " ".repeat(MAX_SOURCE_BYTES + 1);
    check(
        &[&large],
        &expect![[r#"
        the program has 262145 bytes; at most 262144 are allowed
          = hand large data in through `args`, or split the work into several programs
    "#]],
    );
}

#[test]
fn a_panic_of_the_analysis_is_an_error() {
    let result = on_large_stack("", |_| -> u32 { panic!("no such node") });
    assert_eq!(result, Err(Error::Crashed { reason: "internal error: no such node".to_owned() }));
    assert_eq!(on_large_stack("", |_| 1), Ok(1));
}
