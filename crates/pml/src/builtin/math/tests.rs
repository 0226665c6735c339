//! Tests of the math tools.

use expect_test::{Expect, expect};

use crate::builtin::check::{answer, check, server};

async fn value(expression: &str) -> String {
    let arguments = format!(r#"{{"expression":{}}}"#, serde_json::to_string(expression).unwrap());
    match answer(&server("math"), "evaluate", &arguments).await {
        Ok(answer) => answer.trim_start_matches(r#"{"value":"#).trim_end_matches('}').to_owned(),
        Err(error) => error,
    }
}

#[tokio::test]
async fn expressions_follow_the_rules_of_school() {
    for (expression, expected) in [
        ("1 + 2 * 3", "7"),
        ("(1 + 2) * 3", "9"),
        ("0.1 + 0.2", "0.3"),
        ("1.10 - 1.1", "0"),
        ("10 - 4 - 3", "3"),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ^ 2", "-4"),
        ("2 ^ -2", "0.25"),
        ("--3", "3"),
        ("7 % 4", "3"),
        ("-7 % 4", "-3"),
        ("1 / 3", "0.3333333333333333333333333333"),
        ("sqrt(2) ^ 2 < 3", "the expression at character 13: expected an operator or the end"),
        ("sqrt(16) + abs(-2)", "6"),
        ("max(1, 5, 3) - min(4, 2)", "3"),
        ("round(2.5) + floor(-1.5) + ceil(1.2) + trunc(-1.9)", "2"),
        ("sin(0) + cos(0)", "1"),
        ("ln(e)", "1"),
        ("2e3 + 1.5E-1", "2000.15"),
        ("2 ^ 200", "1.6069380442589903e60"),
        ("79228162514264337593543950335 + 1", "7.922816251426434e28"),
        ("1e-40 * 1", "1e-40"),
        ("99999999999999999999999999 * 1.0000000001", "100000000009999999999999999"),
    ] {
        assert_eq!(value(expression).await, expected, "{expression}");
    }
}

#[tokio::test]
async fn what_cannot_be_evaluated_is_placed_or_named() {
    for (expression, expected) in [
        ("1 / 0", "division by zero"),
        ("5 % (1 - 1)", "division by zero"),
        ("0 ^ -1", "the result is not a finite number"),
        ("sqrt(-1)", "the result is not a finite number"),
        ("9 ^ 9 ^ 9", "the result is not a finite number"),
        ("1 +", "the expression at character 4: expected a number, a name or `(`"),
        ("(1", "the expression at character 3: expected `)`"),
        ("1.2.3", "the expression at character 1: expected a number that can be read"),
        ("x * 2", "`x` has no value; give it in `variables`"),
        ("system(1)", "there is no function `system`"),
        ("sin(1, 2)", "function `sin` takes one argument and got 2"),
        ("é", "`é` has no value; give it in `variables`"),
    ] {
        assert_eq!(value(expression).await, expected, "{expression}");
    }
    for nested in ["(".repeat(5000), "-".repeat(5000), "2^".repeat(2000) + "1"] {
        assert_eq!(value(&nested).await, "the expression nests deeper than 64 levels");
    }
}

#[test]
fn variables_take_part() {
    check(
        &server("math"),
        "evaluate",
        r#"{"expression":"price * (1 + rate)","variables":{"price":19.99,"rate":0.2}}"#,
        &expect![[r#"{"value":23.988}"#]],
    );
}

#[test]
fn statistics_are_exact_where_decimals_are() {
    let server = server("math");
    check(
        &server,
        "statistics",
        r#"{"values":[0.1,0.2,0.3,0.4]}"#,
        &expect![[
            r#"{"count":4,"sum":1,"mean":0.25,"median":0.25,"min":0.1,"max":0.4,"variance":0.0125,"standardDeviation":0.1118033988749894848204586834}"#
        ]],
    );
    check(
        &server,
        "statistics",
        r#"{"values":[1e60]}"#,
        &expect![[
            r#"{"count":1,"sum":1e60,"mean":1e60,"median":1e60,"min":1e60,"max":1e60,"variance":0,"standardDeviation":0}"#
        ]],
    );
    check(
        &server,
        "statistics",
        r#"{"values":[]}"#,
        &expect!["error: `values` has 0 numbers; from 1 to 1000000 are taken"],
    );
    check(&server, "statistics", r#"{"values":[1,"2"]}"#, &expect!["error: value 2 is not a number"]);
}

#[test]
fn rounding_goes_where_it_is_told() {
    #[track_caller]
    fn round(arguments: &str, expected: &Expect) {
        check(&server("math"), "round", arguments, expected);
    }
    round(r#"{"value":1.005,"digits":2}"#, &expect![[r#"{"value":1.01,"text":"1.01"}"#]]);
    round(r#"{"value":-2.5}"#, &expect![[r#"{"value":-3,"text":"-3"}"#]]);
    round(r#"{"value":2.5,"mode":"half-even"}"#, &expect![[r#"{"value":2,"text":"2"}"#]]);
    round(
        r#"{"value":3.14159,"digits":4,"mode":"truncate"}"#,
        &expect![[r#"{"value":3.1415,"text":"3.1415"}"#]],
    );
    round(r#"{"value":7,"digits":2}"#, &expect![[r#"{"value":7,"text":"7.00"}"#]]);
    round(r#"{"value":1e-40,"digits":2}"#, &expect![[r#"{"value":0,"text":"0.00"}"#]]);
}
