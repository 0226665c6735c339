//! Texts that the scan refuses, and texts that it accepts.

use super::*;

#[track_caller]
fn passes(source: &str) {
    assert_eq!(check_nesting(source, 500), Ok(()), "{source}");
    assert_eq!(find_unpaired_brackets(source), UnpairedBrackets::default(), "{source}");
}

#[test]
fn brackets_in_texts_comments_and_regular_expressions_do_not_count() {
    for source in [
        r#"const a = "((("; const b = '[\'['; const c = `{{ ${ d({ e: `(${f}` }) } ((`;"#,
        "// (((\n/* [[[ */ x = 1 /* { */ / 2",
        r"if (a) /[(/]\(/.test(b); x = a / b / c; y = (a) / (b); return /[)]/g",
        "for await (const a of b) /(/.test(a)",
        "a.if / b; x.return / '('.length; b! / 2; a?.5:1",
        "const f = <T,>(a: T): a is T => /[(]/.test(a as any); a++\n/ 2",
    ] {
        passes(source);
    }
}

#[test]
fn everyday_nesting_passes() {
    let generics =
        "type A = Promise<Array<Map<string, { a: Set<{ b: Record<string, Array<C>> }> }>>>;\n".repeat(200);
    let comparisons = format!("x = [{}]", "a < b, ".repeat(500));
    let callbacks =
        "f(({ a, b = 1 }) => ({ [a]: b.map(c => ({ ...c, d: (c.e ?? (c.f < 1)) })) }));\n".repeat(500);
    for source in [generics, comparisons, callbacks] {
        passes(&source);
    }
}

#[test]
fn what_the_parser_would_read_again_and_again_is_refused() {
    for unit in [
        "((a=f<",
        "(f<{[",
        "({[(a:",
        "([...b:",
        "new f<{a({[",
        "new f<<A>({a=",
        "`${a([...b:",
        "(readonly [...b:f<",
        "(a=",
        "a<",
        "a?(b):c=>",
    ] {
        let source = format!("x={}", unit.repeat(10_000));
        assert!(matches!(check_nesting(&source, usize::MAX), Err(NestingRefusal::Ambiguous(_))), "{unit}");
    }
}

#[test]
fn brackets_too_deep_are_found_where_they_are() {
    assert_eq!(check_nesting("[[[ ]]]", 3), Ok(()));
    assert_eq!(check_nesting("[[ [] {}, [(", 3), Err(NestingRefusal::Deep(11..12)));
    assert_eq!(check_nesting("`${`${`${", 2), Err(NestingRefusal::Deep(7..9)));
}

#[test]
fn a_slash_that_could_be_either_is_refused_only_when_it_matters() {
    passes("if (a) {} /b/.test(c)");
    assert_eq!(check_nesting("if (a) {} /b`/.test(c)", 500), Err(NestingRefusal::Slash(10..11)));
    passes("if (a) {}; /b`/.test(c)");
}

#[test]
fn unmatched_brackets_are_named() {
    let stray = |at, open| UnpairedBrackets { stray: Some(StrayBracket { at, open }), open: None };
    assert_eq!(find_unpaired_brackets("f(1))"), stray(4, None));
    assert_eq!(
        find_unpaired_brackets("f([1)"),
        UnpairedBrackets { stray: Some(StrayBracket { at: 4, open: Some(2) }), open: Some(2) }
    );
    assert_eq!(find_unpaired_brackets("a = { b: [1]"), UnpairedBrackets { stray: None, open: Some(4) });
}
