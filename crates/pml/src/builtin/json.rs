//! Parsing and printing JSON, selecting values from it, and checking it against a schema.
//!
//! Values are passed through as text: a number keeps all of its digits, whatever its size.

mod layout;
mod path;
mod schema;

use pml_model::json::{MAX_DEPTH, nesting_depth, raw};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::tool::{BuiltinFailure, BuiltinSpec, BuiltinTool, READS, StopSignal, failure, object_schema};
pub(super) use layout::compact;

/// The tools of the server.
pub(super) fn tools() -> Vec<BuiltinTool> {
    vec![
        BuiltinTool::blocking(parse_spec(), parse),
        BuiltinTool::blocking(stringify_spec(), stringify),
        BuiltinTool::blocking(query_spec(), query),
        BuiltinTool::blocking(schema::validate_spec(), schema::validate),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonParseArguments {
    json: String,
}

#[derive(Serialize)]
struct JsonParseAnswer {
    data: Box<RawValue>,
}

fn parse_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "parse",
        title: "Parse JSON",
        description: "Turns JSON text into the value it describes. Numbers keep every digit.".into(),
        effect: READS,
        input: object_schema(json!({ "json": { "type": "string", "description": "JSON text." } }), &["json"]),
        output: object_schema(json!({ "data": { "description": "The value." } }), &["data"]),
    }
}

fn parse(arguments: &JsonParseArguments, _: &StopSignal) -> Result<JsonParseAnswer, BuiltinFailure> {
    let deepest = nesting_depth(&arguments.json);
    // The result itself adds two levels.
    if deepest > MAX_DEPTH - 2 {
        return Err(failure!(
            "the JSON text nests {deepest} levels deep; at most {} are taken",
            MAX_DEPTH - 2
        ));
    }
    let text = arguments.json.trim_start_matches('\u{feff}');
    let value: &RawValue =
        serde_json::from_str(text).map_err(|error| failure!("the text is not JSON: {error}"))?;
    Ok(JsonParseAnswer { data: compact(value) })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonStringifyArguments {
    data: Box<RawValue>,
    #[serde(default)]
    indent: usize,
}

#[derive(Serialize)]
struct JsonStringifyAnswer {
    json: String,
}

fn stringify_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "stringify",
        title: "Write JSON",
        description: "Turns a value into JSON text, on one line or indented.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "data": { "description": "The value." },
                "indent": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 8,
                    "description": "Spaces per level; 0, which is unless told, writes one line."
                },
            }),
            &["data"],
        ),
        output: object_schema(
            json!({ "json": { "type": "string", "description": "JSON text." } }),
            &["json"],
        ),
    }
}

fn stringify(
    arguments: &JsonStringifyArguments,
    _: &StopSignal,
) -> Result<JsonStringifyAnswer, BuiltinFailure> {
    let json = match arguments.indent.min(8) {
        0 => compact(&arguments.data).get().to_owned(),
        indent => layout::indented(&arguments.data, indent),
    };
    Ok(JsonStringifyAnswer { json })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonQueryArguments {
    data: Box<RawValue>,
    path: String,
}

#[derive(Serialize)]
struct JsonQueryAnswer<'a> {
    matches: Vec<&'a RawValue>,
}

fn query_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "query",
        title: "Query JSON",
        description: "Picks values by a JSON Pointer (`/items/0/name`, or empty for the whole) or a JSONPath \
                      (`$.items[*].name`, `$..price`, `$.items[?@.price < 10 && @.stock]`, `$.list[-1]`, \
                      `$.list[1:3]`). Functions such as `length()` are not there. Nothing found is an empty list.".into(),
        effect: READS,
        input: object_schema(
            json!({
                "data": { "description": "The value to look into." },
                "path": {
                    "type": "string",
                    "maxLength": path::MAX_PATH_BYTES,
                    "description": "JSON Pointer or JSONPath."
                },
            }),
            &["data", "path"],
        ),
        output: object_schema(
            json!({ "matches": { "type": "array", "description": "The values found, in order." } }),
            &["matches"],
        ),
    }
}

fn query(arguments: &JsonQueryArguments, stop: &StopSignal) -> Result<Box<RawValue>, BuiltinFailure> {
    let data = compact(&arguments.data);
    let tree = path::JsonPathNode::parse(&data).map_err(|error| failure!("`data` is not JSON: {error}"))?;
    let matches = path::query(&tree, &arguments.path, stop)?;
    Ok(raw(&JsonQueryAnswer { matches: matches.into_iter().map(path::JsonPathNode::raw).collect() }))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::builtin::check::{check, server};

    #[test]
    fn numbers_survive_with_every_digit() {
        let server = server("json");
        check(
            &server,
            "parse",
            r#"{"json":"\ufeff [ 10e110 , -0.10, 1234567890123456789012345678901234567890,\n \" a \\\" ] \" ] "}"#,
            &expect![[r#"{"data":[10e110,-0.10,1234567890123456789012345678901234567890," a \" ] "]}"#]],
        );
        check(
            &server,
            "stringify",
            r#"{"data":{"b":10e110, "a":1234567890123456789012345678901234567890}}"#,
            &expect![[r#"{"json":"{\"b\":10e110,\"a\":1234567890123456789012345678901234567890}"}"#]],
        );
        check(
            &server,
            "query",
            r#"{"data":{"a":[1.0, 10e110]},"path":"/a"}"#,
            &expect![[r#"{"matches":[[1.0,10e110]]}"#]],
        );
    }

    #[test]
    fn what_is_not_json_is_placed() {
        check(
            &server("json"),
            "parse",
            r#"{"json":"{\"a\": tru}"}"#,
            &expect!["error: the text is not JSON: expected ident at line 1 column 10"],
        );
        let bomb = format!(r#"{{"json":"{}"}}"#, "[".repeat(1_000_000));
        check(
            &server("json"),
            "parse",
            &bomb,
            &expect!["error: the JSON text nests 1000000 levels deep; at most 126 are taken"],
        );
    }

    #[test]
    fn indentation_is_as_asked() {
        check(
            &server("json"),
            "stringify",
            r#"{"data":{"a":[],"b":[1,{"c":"x, {y}"}],"d":{}},"indent":2}"#,
            &expect![[
                r#"{"json":"{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"c\": \"x, {y}\"\n    }\n  ],\n  \"d\": {}\n}"}"#
            ]],
        );
        check(&server("json"), "stringify", r#"{"data":null,"indent":4}"#, &expect![[r#"{"json":"null"}"#]]);
    }

    const STORE: &str = r#"{"store":{"book":[
        {"category":"reference","title":"Sayings","price":8.95},
        {"category":"fiction","title":"Sword","price":12.99,"isbn":"0-553"},
        {"category":"fiction","title":"Moby","price":8.99,"isbn":null}],
        "bicycle":{"color":"red","price":399}},"a/b":{"~":1},"max":9}"#;

    #[track_caller]
    fn check_query(path: &str, expected: &Expect) {
        let path = serde_json::to_string(path).unwrap();
        check(&server("json"), "query", &format!(r#"{{"data":{STORE},"path":{path}}}"#), expected);
    }

    #[test]
    fn pointers_pick_one_value() {
        check_query("/store/book/1/title", &expect![[r#"{"matches":["Sword"]}"#]]);
        check_query("/a~1b/~0", &expect![[r#"{"matches":[1]}"#]]);
        check_query("/store/book/01", &expect![[r#"{"matches":[]}"#]]);
        check_query("/store/nothing", &expect![[r#"{"matches":[]}"#]]);
    }

    #[test]
    fn paths_pick_many() {
        check_query("$.store.book[*].title", &expect![[r#"{"matches":["Sayings","Sword","Moby"]}"#]]);
        check_query("$..price", &expect![[r#"{"matches":[8.95,12.99,8.99,399]}"#]]);
        check_query("$['store'][\"bicycle\"].color", &expect![[r#"{"matches":["red"]}"#]]);
        check_query("$.store.book[-1].title", &expect![[r#"{"matches":["Moby"]}"#]]);
        check_query("$.store.book[::2].title", &expect![[r#"{"matches":["Sayings","Moby"]}"#]]);
        check_query("$.store.book[::-1].title", &expect![[r#"{"matches":["Moby","Sword","Sayings"]}"#]]);
        check_query("$.store.book[0,2].title", &expect![[r#"{"matches":["Sayings","Moby"]}"#]]);
        check_query("$.store.*.color", &expect![[r#"{"matches":["red"]}"#]]);
        check_query("$.max", &expect![[r#"{"matches":[9]}"#]]);
    }

    #[test]
    fn filters_compare_and_test() {
        check_query("$.store.book[?@.price < 10].title", &expect![[r#"{"matches":["Sayings","Moby"]}"#]]);
        check_query("$.store.book[?(@.price<$.max)].title", &expect![[r#"{"matches":["Sayings","Moby"]}"#]]);
        check_query("$.store.book[?@.isbn].title", &expect![[r#"{"matches":["Sword","Moby"]}"#]]);
        check_query("$.store.book[?!@.isbn].title", &expect![[r#"{"matches":["Sayings"]}"#]]);
        check_query("$.store.book[?@.isbn==null].title", &expect![[r#"{"matches":["Moby"]}"#]]);
        check_query(
            "$..[?@.category=='fiction' && (@.price>10 || @.price<1)].title",
            &expect![[r#"{"matches":["Sword"]}"#]],
        );
    }

    #[test]
    fn a_bad_path_is_placed() {
        check_query(
            "store",
            &expect!["error: `path` at character 1: expected `$`; a JSON Pointer starts with `/`"],
        );
        check_query(
            "$.store[",
            &expect![
                "error: `path` at character 9: expected a name in quotes, `*`, `?`, an index or a slice"
            ],
        );
        check_query(
            "$.a[?length(@.x)>1]",
            &expect!["error: `path` at character 6: expected a value, or a path that starts with `@` or `$`"],
        );
        check_query(
            "$[?@.a[*]==1]",
            &expect![
                "error: `path` at character 4: expected a comparison of paths that pick one value each, without `*`, `..` and slices"
            ],
        );
        let nested = format!("$[?{}@.a{}]", "(".repeat(100), ")".repeat(100));
        check_query(
            &nested,
            &expect!["error: `path` at character 20: expected less nesting; at most 16 levels are taken"],
        );
    }

    #[test]
    fn a_query_that_multiplies_is_stopped() {
        let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
        for path in ["[0,0]".repeat(90), "..*".repeat(8), "[?$..*]..*".repeat(8)] {
            check(
                &server("json"),
                "query",
                &format!(r#"{{"data":{nested},"path":"${path}"}}"#),
                &expect![
                    "error: the query looked at more than 1000000 values; use a path with fewer `..` and `*`"
                ],
            );
        }
    }
}
