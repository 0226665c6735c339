//! Reports of probes, their emitted form, and the line mapping.

use std::collections::HashSet;

use oxc_ast::ast::Program;
use oxc_span::Span;

use super::{EmitError, ProbeMarks, ProbePlace, emitted, mark_all, plain, run};
use crate::marks::FunctionTable;

fn marked(places: &'static [ProbePlace]) -> impl Fn(&Program<'_>) -> ProbeMarks {
    move |program| {
        let mut marks = mark_all(program, |place| places.contains(&place));
        // Renumbered from 1 without gaps, for readability.
        let mut points: Vec<u32> = marks.points.values().copied().collect();
        points.sort_unstable();
        for point in marks.points.values_mut() {
            *point = points.binary_search(point).expect("it is one of them") as u32 + 1;
        }
        marks
    }
}

/// Runs `source` with all places of some kinds marked; points count from 1 in the order of the tree.
#[track_caller]
fn check(places: &'static [ProbePlace], source: &str, expected: &[&str]) {
    let emitted = emitted(source, marked(places)).expect("it can be emitted");
    assert_eq!(run(&emitted).reports, expected, "{source}\n\n{}", emitted.js);
}

#[test]
fn conditions_report_their_truth() {
    use ProbePlace::{Nullish, Test};
    check(
        &[Test],
        "if (args.n > 5) { return 1 } else if (args.n) { return 2 }",
        &["is 1 false 0", "is 2 true 0"],
    );
    check(&[Test], "return args.n ? 0 : 1", &["is 1 true 0"]);
    check(&[Test], "return 0 || (1 && 2)", &["is 1 false 0", "is 2 true 0"]);
    check(&[Nullish], "return args.nothing ?? args.none ?? 1", &["has 2 false 0", "has 1 false 0"]);
    check(&[Nullish], "return args.n ?? 1", &["has 1 true 0"]);
}

#[test]
fn a_switch_reports_once() {
    use ProbePlace::Switch;
    let source = |x: &str| {
        format!("switch ({x}) {{ case 1: log(1); case 2: log(2); break; default: log('d'); case 3: log(3) }}")
    };
    for (x, report) in [("1", "case 1 0 0"), ("2", "case 1 1 0"), ("9", "case 1 2 0"), ("3", "case 1 3 0")] {
        check(&[Switch], &source(x), &[report]);
    }
    check(&[Switch], "switch (7) { case 1: log(1); case 2: log(2) }", &["case 1 2 0"]);
    check(&[Switch], "switch (2) { case 1: log(1); case 2: log(2) }", &["case 1 1 0"]);
    check(
        &[Switch],
        "const f = (n) => { switch (n) { case 0: return; case 1: f(0); case 2: } }; f(1)",
        &["case 1 1 0", "case 1 0 0"],
    );
}

/// Runs `source` with its `t[k]` marked as a table.
#[track_caller]
fn check_table(source: &str, optional: bool, expected: &[&str]) {
    let emitted = emitted(source, |program| {
        let at = program.source_text.find("t[k]").expect("it is called") as u32;
        let (span, mut marks) = (Span::new(at, at + 4), ProbeMarks::default());
        marks.points.insert((ProbePlace::Switch, span), 1);
        let keys = vec!["a".to_owned(), "b c".to_owned()];
        marks.tables.insert(span, FunctionTable { keys, optional });
        marks
    })
    .expect("it can be emitted");
    let ran = run(&emitted);
    assert_eq!(ran.reports, expected, "{}", emitted.js);
    assert_eq!(ran.did, run(&plain(source)).did);
}

#[test]
fn a_table_reports_the_key_that_is_asked_for() {
    let table =
        "const t = { a: () => 1, 'b c': () => 2 }; const sly = { toString: () => (log('once'), 'a') };";
    let called =
        "for (const k of ['b c', 'a', 'none', sly]) try { log(t[k]()) } catch { log('none') }".to_owned();
    check_table(&format!("{table} {called}"), false, &["case 1 1 0", "case 1 0 0"]);
    let optional = called.replace("t[k]()", "t[k]?.().constructor?.name");
    check_table(&format!("{table} {optional}"), true, &["case 1 1 0", "case 1 0 0", "case 1 2 0"]);
}

#[test]
fn optional_links_report_until_the_chain_ends() {
    use ProbePlace::{Operation, Optional};
    check(&[Optional], "return args?.list", &["has 1 true 0"]);
    check(&[Optional], "return mcp.gone?.a?.b?.(1)", &["has 3 false 0"]);
    check(&[Optional], "return mcp?.gone?.b?.(1)", &["has 3 true 0", "has 2 false 0"]);
    check(&[Optional], "return mcp.fs?.none?.(1)", &["has 2 true 0", "has 1 false 0"]);
    check(&[Optional], "return mcp.gone?.a.b.c?.d", &["has 2 false 0"]);
    check(
        &[Optional],
        "const o = { f: (n) => n ? o?.f?.(n - 1)?.x : null }; return o.f(1)",
        &["has 3 true 0", "has 2 true 0", "has 1 false 0"],
    );
    check(&[Operation], "return args.nothing?.map((x) => x).flat()", &[]);
    check(&[Operation], "return args.list?.map((x) => x).flat()", &["did 2 0", "did 1 0", "got 1 0"]);
    check(&[Operation], "return args.list.map((x) => x).flat()", &["did 2 0", "did 1 0"]);
}

#[test]
fn operations_begin_when_all_that_they_work_on_is_there() {
    let shows = |source: &str, expected: &str| {
        let emitted = emitted(source, marked(&[ProbePlace::Operation])).expect("it can be emitted");
        let js = emitted.js.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(js.contains(expected), "{source}\n\n{js}");
        assert_eq!(run(&emitted).did, run(&plain(source)).did, "{js}");
    };
    shows("return args.list.at(0, 1)", ".at(0, __pml.does(1, 1))");
    shows("return Math.max(...args.list)", "Math.max(...__pml.does(1, args.list))");
    shows("return args.list.flat()", "__pml.did(1, __pml.does(1, args.list).flat())");
    shows("return String()", "__pml.did(1, __pml.does(1, String)())");
    shows("return args.list?.flat()", "__pml.got(__pml.may(1), args.list?.flat(...__pml.doing(1)))");
    // An operation that threw never ended, and one that did not happen has no result.
    check(
        &[ProbePlace::Operation],
        "for (const t of ['{', '1']) try { JSON.parse(t) } catch { } for (const l of [[1], null]) l?.at(0)",
        &["did 1 0", "did 2 0", "got 2 0"],
    );
}

#[test]
fn an_unmarked_link_ends_a_chain_too() {
    let source = "return [mcp.gone?.a?.b, mcp.none?.()?.b]";
    let emitted = emitted(source, |program| {
        let mut outermost = false;
        mark_all(program, |place| {
            outermost ^= place == ProbePlace::Optional;
            place == ProbePlace::Optional && outermost
        })
    })
    .expect("it can be emitted");
    assert_eq!(run(&emitted).reports, [""; 0], "{}", emitted.js);
}

#[test]
fn loops_callbacks_and_handlers() {
    use ProbePlace::{Catch, Fork, Loop, Turn};
    check(&[Loop], "for (const x of [1, 2]) log(x)", &["loop 1 0", "turn 1 0", "turn 1 0"]);
    check(
        &[Loop],
        "a: while (true) { do { break a } while (1) }",
        &["loop 1 0", "turn 1 0", "loop 2 0", "turn 2 0"],
    );
    check(&[Turn], "[1, 2].map((x) => x)", &["turn 1 0", "turn 1 0"]);
    check(&[Catch], "try { throw 1 } catch { } try { } catch { }", &["caught 1 0"]);
    check(&[Fork], "await Promise.all([1])", &["fork 1 0"]);
}

#[test]
fn tools_know_where_they_are_called() {
    check(
        &[ProbePlace::Call],
        "if (args.n) { await mcp.fs.read({ a: 1 }) } else { await mcp.fs.read({ a: 1 }) } await mcp.fs?.write?.()",
        &["call read 1@0", "call write 3@0"],
    );
}

#[test]
fn followed_functions_take_their_context() {
    use ProbePlace::{Call, Enter, Test};
    let entered = "const f = (x) => { if (x) g(1) }; function g() { if (0); } f(1); g()";
    let emitted_js = emitted(entered, marked(&[Enter, Test])).expect("it can be emitted");
    let reports = run(&emitted_js).reports;
    let shape: Vec<usize> = reports.iter().map(|report| report.matches('<').count()).collect();
    assert_eq!(shape, [1, 2, 1], "{reports:?}\n{}", emitted_js.js);

    // A generator begins when its first value is requested.
    let generator = "function* f(x) { if (x) yield x } for (const x of f(1)) log(...f(0))";
    let emitted_js = emitted(generator, |program| {
        let mut marks = marked(&[Enter, Test])(program);
        marks.points.retain(|(place, span), _| {
            *place == Test || span.source_text(program.source_text).starts_with('f')
        });
        marks
    })
    .expect("it can be emitted");
    let reports = run(&emitted_js).reports;
    let contexts: HashSet<&str> =
        reports.iter().filter_map(|report| report.split_once('<')).map(|it| it.1).collect();
    assert_eq!(contexts.len(), 2, "{reports:?}\n{}", emitted_js.js);

    // Passed on by name, it has the context of that place in every turn.
    let handed = "const f = (x) => { if (x); }; [1].map(f); log([2, 3].map(f).length, f.length)";
    let emitted_js = emitted(handed, |program| {
        let mut marks = marked(&[Enter, Test])(program);
        marks.points.retain(|(place, _), _| *place == Test);
        let name = program.source_text.rfind("f)").expect("it is handed on") as u32;
        marks.points.insert((Enter, Span::new(name, name + 1)), 9);
        marks
    })
    .expect("it can be emitted");
    let reports = run(&emitted_js).reports;
    let entered: Vec<bool> = reports.iter().map(|report| report.contains("<9")).collect();
    assert_eq!(entered, [false, true, true], "{reports:?}\n{}", emitted_js.js);
    assert_eq!(run(&emitted_js).did, run(&plain(handed)).did);

    // A function that was entered in an unknown way has the context of the surrounding code.
    let called_by_the_engine = "const f = () => [1].map((x) => mcp.fs.read({ x })); await Promise.all(f())";
    let emitted_js = emitted(called_by_the_engine, |program| {
        let mut marks = marked(&[Call, Enter])(program);
        marks.points.retain(|(place, span), _| {
            *place == Call || program.source_text[span.start as usize..].starts_with("f()")
        });
        marks
    })
    .expect("it can be emitted");
    let reports = run(&emitted_js).reports;
    assert!(reports[0].contains('<'), "{reports:?}\n{}", emitted_js.js);
}

#[test]
fn the_program_stays_readable() {
    use ProbePlace::*;
    let source = "// finds and reads
const found: string[] = await mcp.fs.read({ name: 'x' });
enum Level { Low, High }
next: for (const path of found)
  if (path?.length && path !== 'y') {
    switch (path) {
      case 'a':
        continue next;
    }
  }
const all = await Promise.all(found.map(async (path) => mcp.fs.read({ path })));
try { return all } catch { return `several
lines ${Level.Low}` }";
    let emitted = emitted(source, |program| {
        let mut marks = marked(&[Test, Optional, Switch, Loop, Turn, Catch])(program);
        marks.points.retain(|(place, span), _| {
            *place != Turn || program.source_text[span.start as usize..].starts_with("async")
        });
        marks
    })
    .expect("it can be emitted");
    let table: Vec<String> = emitted
        .js
        .lines()
        .zip(&emitted.lines)
        .map(|(text, line)| format!("{line:2} {}", text.replace('\t', "  ")))
        .collect();
    assert_eq!(table.join("\n"), EXPECTED, "\n{}", table.join("\n"));
}

const EXPECTED: &str = r#" 2 const found = await mcp.fs.read({ name: "x" });
 3 var Level = function(Level) {
 3   Level[Level["Low"] = 0] = "Low";
 3   Level[Level["High"] = 1] = "High";
 0   return Level;
 3 }(Level || {});
 0 __pml.loop(1);
 4 next: for (const path of found) {
 0   __pml.turn(1);
 5   if (__pml.is(2, __pml.is(3, __pml.has(4, path)?.length) && path !== "y")) {
 0     let __pml_s5 = true;
 6     switch (path) {
 7       case "a":
 0         __pml_s5 &&= __pml.case(5, 0);
 8         continue next;
 0       default: __pml_s5 &&= __pml.case(5, 1);
 9     }
10   }
 0 }
11 const all = await Promise.all(found.map(async (path) => {
 0   __pml.turn(6);
11   return mcp.fs.read({ path });
11 }));
12 try {
12   return all;
12 } catch {
 0   __pml.caught(7);
12   return `several
13 lines ${Level.Low}`;
13 }"#;

#[test]
fn what_cannot_be_run_is_refused() {
    let refused = |source: &str| match emitted(source, |_| ProbeMarks::default()) {
        Err(EmitError::Unsupported { what, .. }) => what.to_owned(),
        Err(EmitError::Types { .. }) => "types".to_owned(),
        Ok(emitted) => panic!("{}", emitted.js),
    };
    assert_eq!(refused("import x from 'x'; return x"), "import");
    assert_eq!(refused("import 'x'"), "import");
    assert_eq!(refused("export const a = 1"), "export");
    assert_eq!(refused("export default 1"), "export");
    assert_eq!(refused("@dec class A {}"), "@");
    assert_eq!(refused("class A { accessor x = 1 }"), "accessor");
    assert_eq!(refused("return import.meta"), "import.meta");
    assert_eq!(refused("namespace N { export let a = 1 }"), "types");
    assert_eq!(plain("export {}; return 1").js, "return 1;\n");
}
