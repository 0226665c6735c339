//! Tests of the text tools.

use expect_test::{Expect, expect};

use crate::builtin::check::{answer, server};

#[track_caller]
fn check(tool: &str, arguments: &str, expected: &Expect) {
    crate::builtin::check::check(&server("text"), tool, arguments, expected);
}

#[test]
fn split_and_join_are_each_others_opposite() {
    check("split", r#"{"text":"a, b,,c","separator":","}"#, &expect![[r#"{"parts":["a"," b","","c"]}"#]]);
    check(
        "split",
        r#"{"text":"a, b,,c ","separator":",","trim":true}"#,
        &expect![[r#"{"parts":["a","b","c"]}"#]],
    );
    check("split", r#"{"text":"né","separator":""}"#, &expect![[r#"{"parts":["n","é"]}"#]]);
    check("join", r#"{"parts":["a"," b","","c"],"separator":","}"#, &expect![[r#"{"text":"a, b,,c"}"#]]);
    check("join", r#"{"parts":[]}"#, &expect![[r#"{"text":""}"#]]);
}

#[test]
fn replace_is_literal_unless_told() {
    check(
        "replace",
        r#"{"text":"a.b.c","find":".","with":"$0"}"#,
        &expect![[r#"{"text":"a$0b$0c","replaced":2}"#]],
    );
    check(
        "replace",
        r#"{"text":"aAa","find":"a","with":"-","limit":1}"#,
        &expect![[r#"{"text":"-Aa","replaced":1}"#]],
    );
    check(
        "replace",
        r#"{"text":"Ada Lovelace","find":"(\\w+) (?<last>\\w+)","with":"${last}, $1$$","regex":true}"#,
        &expect![[r#"{"text":"Lovelace, Ada$","replaced":1}"#]],
    );
    check(
        "replace",
        r#"{"text":"xX","find":"x","with":"","ignoreCase":true}"#,
        &expect![[r#"{"text":"","replaced":2}"#]],
    );
}

#[test]
fn match_gives_groups_and_character_positions() {
    check(
        "match",
        r#"{"text":"né 2024-05, 2025","pattern":"(?<year>\\d{4})(?:-(\\d\\d))?"}"#,
        &expect![[
            r#"{"matches":[{"text":"2024-05","start":3,"end":10,"groups":["2024","05"],"named":{"year":"2024"}},{"text":"2025","start":12,"end":16,"groups":["2025",null],"named":{"year":"2025"}}],"truncated":false}"#
        ]],
    );
    check(
        "match",
        r#"{"text":"aaa","pattern":"A","ignoreCase":true,"limit":1}"#,
        &expect![[r#"{"matches":[{"text":"a","start":0,"end":1,"groups":[],"named":{}}],"truncated":true}"#]],
    );
}

#[test]
fn bad_and_costly_patterns_are_refused() {
    check(
        "match",
        r#"{"text":"x","pattern":"(((a{1000}){1000}){1000})"}"#,
        &expect![
            "error: pattern `(((a{1000}){1000}){1000})` is too large once compiled; at most 1048576 bytes are taken, so use smaller repetitions"
        ],
    );
    check(
        "match",
        r#"{"text":"x","pattern":"(?=x)"}"#,
        &expect![[r#"
            error: pattern `(?=x)` is no regular expression: regex parse error:
                (?=x)
                ^^^
            error: look-around, including look-ahead and look-behind, is not supported"#]],
    );
}

#[tokio::test]
async fn a_pattern_that_makes_others_exponential_is_linear() {
    let arguments = format!(r#"{{"text":"{}!","pattern":"^(a+)+$"}}"#, "a".repeat(100_000));
    assert_eq!(
        answer(&server("text"), "match", &arguments).await.unwrap(),
        r#"{"matches":[],"truncated":false}"#
    );
}

#[tokio::test]
async fn replacements_that_explode_are_refused() {
    let arguments =
        format!(r#"{{"text":"{}","find":"a","with":"{}"}}"#, "a".repeat(10_000), "b".repeat(10_000));
    let error = answer(&server("text"), "replace", &arguments).await.unwrap_err();
    assert_eq!(error, "the changed text would be larger than 8388608 bytes, which is the limit");
}

#[test]
fn slice_counts_characters_from_both_ends() {
    check("slice", r#"{"text":"héllo","start":1,"end":3}"#, &expect![[r#"{"text":"él"}"#]]);
    check("slice", r#"{"text":"héllo","start":-2}"#, &expect![[r#"{"text":"lo"}"#]]);
    check("slice", r#"{"text":"héllo","start":4,"end":2}"#, &expect![[r#"{"text":""}"#]]);
    check(
        "slice",
        r#"{"text":"héllo","start":-9223372036854775808,"end":9223372036854775807}"#,
        &expect![[r#"{"text":"héllo"}"#]],
    );
}

#[test]
fn case_knows_words() {
    let cases = [
        ("upper", "straße", r#"{"text":"STRASSE"}"#),
        ("lower", "ÀB", r#"{"text":"àb"}"#),
        ("title", "it's a new day", r#"{"text":"It's A New Day"}"#),
        ("camel", "get HTTP-status code", r#"{"text":"getHttpStatusCode"}"#),
        ("snake", "getHTTPStatus2Code", r#"{"text":"get_http_status2_code"}"#),
        ("kebab", "  Already-kebab_case ", r#"{"text":"already-kebab-case"}"#),
    ];
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (to, text, expected) in cases {
        let arguments = format!(r#"{{"text":"{text}","to":"{to}"}}"#);
        assert_eq!(runtime.block_on(answer(&server("text"), "case", &arguments)).unwrap(), expected);
    }
}

#[test]
fn diff_is_unified() {
    check(
        "diff",
        r#"{"before":"a\nb\nc\n","after":"a\nB\nc\nd\n","context":1}"#,
        &expect![[r#"{"diff":"@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n","added":2,"removed":1}"#]],
    );
    check("diff", r#"{"before":"same","after":"same"}"#, &expect![[r#"{"diff":"","added":0,"removed":0}"#]]);
    let long = format!(r#"{{"before":"{}","after":""}}"#, "\\n".repeat(20_001));
    check("diff", &long, &expect!["error: `before` has 20001 lines; at most 20000 are compared"]);
}

#[test]
fn count_counts() {
    check(
        "count",
        r#"{"text":"né 🙂\nb\n"}"#,
        &expect![[r#"{"characters":7,"words":3,"lines":2,"bytes":11}"#]],
    );
}
