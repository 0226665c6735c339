//! Tests of queries on schemas.

use expect_test::{Expect, expect};
use pml_model::structure::{Argument, ArgumentField, Coverage, NodeId, NodeLetter, PathStep};
use serde_json::{Value, json};

use super::check::ArgumentFinding;
use super::*;

/// The argument tree of a JSON text in which `"$"` is a computed value, `"$text"` a template and the member `"..."` a
/// spread.
fn tree(value: Value) -> Argument {
    match value {
        Value::String(text) if text == "$" => {
            Argument::Reference { node: NodeId { letter: NodeLetter::N, number: 1 }, path: Vec::new() }
        }
        Value::String(text) if text == "$text" => Argument::Template { parts: Vec::new() },
        Value::Array(items) => Argument::Array { items: items.into_iter().map(tree).collect() },
        Value::Object(map) => {
            let (spreads, fields): (Vec<_>, Vec<_>) = map.into_iter().partition(|(name, _)| name == "...");
            Argument::Object {
                fields: fields
                    .into_iter()
                    .map(|(name, value)| ArgumentField { name, value: tree(value) })
                    .collect(),
                spreads: spreads.into_iter().map(|(_, value)| tree(value)).collect(),
            }
        }
        value => Argument::Literal { value },
    }
}

/// Each case on a line of its own, with its findings below.
#[track_caller]
fn check(schema: &Value, cases: &[Value], expected: &Expect) {
    let mut text = String::new();
    for case in cases {
        text += &format!("{case}\n");
        for ArgumentFinding { code, severity, message, hint, .. } in
            check_arguments(schema, &tree(case.clone()))
        {
            let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
            text += &format!("  {severity:?} {code:?}: {message}{hint}\n");
        }
    }
    expected.assert_eq(&text);
}

#[test]
fn arguments_that_cannot_be_right_are_told() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "timeout": {"type": "number", "minimum": 0, "exclusiveMaximum": 100},
            "head": {"type": "integer"},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "recursive": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "options": {
                "type": "object",
                "properties": {"depth": {"type": "integer"}, "mode": {"const": "fast"}},
                "required": ["depth"]
            }
        },
        "required": ["path"],
        "additionalProperties": false
    });
    check(
        &schema,
        &[
            json!({}),
            json!({"path": "a"}),
            json!({"path": "$", "timeout": "$", "tags": "$", "options": "$"}),
            json!({"...": "$"}),
            json!("$"),
            json!([]),
            json!({"path": ""}),
            json!({"pth": "a"}),
            json!({"path": "a", "colour": 1}),
            json!({"path": "a", "timeout": "5"}),
            json!({"path": "a", "timeout": "$text"}),
            json!({"path": "a", "timeout": -1, "head": 1.5}),
            json!({"path": "a", "timeout": 100, "head": 2.0}),
            json!({"path": null, "recursive": "true"}),
            json!({"path": "a", "unit": "celcius"}),
            json!({"path": "a", "unit": 5}),
            json!({"path": "a", "unit": "$text"}),
            json!({"path": "a", "tags": ["x", 1, "$", {"y": 1}]}),
            json!({"path": "a", "tags": "x"}),
            json!({"path": "a", "options": {"mode": "slow", "dpeth": 1}}),
            json!({"path": 1, "...": "$"}),
        ],
        &expect![[r#"
            {}
              Error MissingArgument: `path` is required (give `path`: text)
            {"path":"a"}
            {"path":"$","timeout":"$","tags":"$","options":"$"}
            {"...":"$"}
            "$"
            []
              Error WrongType: the arguments must be an object with `path`, not a list
            {"path":""}
              Error WrongType: `path` must be text of at least 1 character, not the text ""
            {"pth":"a"}
              Error MissingArgument: `path` is required (give `path`: text)
              Error UnknownArgument: `pth` is not an argument (did you mean `path`?)
            {"path":"a","colour":1}
              Error UnknownArgument: `colour` is not an argument (it takes `path`, `timeout`, `head`, `unit`, `recursive`, `tags`, `options`)
            {"path":"a","timeout":"5"}
              Error WrongType: `timeout` must be a number, not the text "5" (write `5` without quotes)
            {"path":"a","timeout":"$text"}
              Error WrongType: `timeout` must be a number, not text
            {"path":"a","timeout":-1,"head":1.5}
              Error WrongType: `timeout` must be a number of at least 0, not the number -1
              Error WrongType: `head` must be a whole number, not the number 1.5
            {"path":"a","timeout":100,"head":2.0}
              Error WrongType: `timeout` must be a number below 100, not the number 100
            {"path":null,"recursive":"true"}
              Error WrongType: `path` must be text, not null
              Error WrongType: `recursive` must be true or false, not the text "true" (write `true` without quotes)
            {"path":"a","unit":"celcius"}
              Error WrongType: `unit` must be one of `celsius`, `fahrenheit`, not the text "celcius" (did you mean `celsius`?)
            {"path":"a","unit":5}
              Error WrongType: `unit` must be one of `celsius`, `fahrenheit`, not the number 5
            {"path":"a","unit":"$text"}
            {"path":"a","tags":["x",1,"$",{"y":1}]}
              Error WrongType: `tags[1]` must be text, not the number 1
              Error WrongType: `tags[3]` must be text, not an object with `y`
            {"path":"a","tags":"x"}
              Error WrongType: `tags` must be a list, not the text "x"
            {"path":"a","options":{"mode":"slow","dpeth":1}}
              Error MissingArgument: `options.depth` is required (give `options.depth`: a whole number)
              Error WrongType: `options.mode` must be `fast`, not the text "slow"
              Warning UnknownArgument: `options.dpeth` is not a member of `options` (did you mean `depth`?)
            {"path":1,"...":"$"}
              Warning WrongType: `path` must be text, not the number 1
        "#]],
    );
}

#[test]
fn members_nobody_names_are_told_where_the_schema_names_others() {
    let member = json!({"path": {"type": "string"}});
    for (schema, expected) in [
        (
            json!({"properties": member}),
            expect![[r#"
                {"pathh":"a"}
                  Warning UnknownArgument: `pathh` is not an argument (did you mean `path`?)
                {"zebra":"a"}
                  Warning UnknownArgument: `zebra` is not an argument (it takes `path`)
            "#]],
        ),
        (
            json!({"properties": member, "additionalProperties": true}),
            expect![[r#"
            {"pathh":"a"}
              Warning UnknownArgument: `pathh` is not an argument (did you mean `path`?)
            {"zebra":"a"}
        "#]],
        ),
        (
            json!({"properties": member, "additionalProperties": {"type": "number"}}),
            expect![[r#"
            {"pathh":"a"}
              Error WrongType: `pathh` must be a number, not the text "a"
            {"zebra":"a"}
              Error WrongType: `zebra` must be a number, not the text "a"
        "#]],
        ),
        (
            json!({"properties": member, "patternProperties": {"^x-": {}}}),
            expect![[r#"
            {"pathh":"a"}
            {"zebra":"a"}
        "#]],
        ),
        (
            json!({"properties": {}, "additionalProperties": false}),
            expect![[r#"
            {"pathh":"a"}
              Error UnknownArgument: `pathh` is not an argument (it takes no arguments)
            {"zebra":"a"}
              Error UnknownArgument: `zebra` is not an argument (it takes no arguments)
        "#]],
        ),
        (
            json!({"type": "object"}),
            expect![[r#"
            {"pathh":"a"}
            {"zebra":"a"}
        "#]],
        ),
        (
            json!({"$ref": "https://elsewhere.example/schema", "properties": member}),
            expect![[r#"
            {"pathh":"a"}
            {"zebra":"a"}
        "#]],
        ),
        (
            json!({"allOf": [{"properties": member}, {"properties": {"other": {}}}], "unevaluatedProperties": false}),
            expect![[r#"
                {"pathh":"a"}
                  Error UnknownArgument: `pathh` is not an argument (did you mean `path`?)
                {"zebra":"a"}
                  Error UnknownArgument: `zebra` is not an argument (it takes `path`, `other`)
            "#]],
        ),
    ] {
        check(&schema, &[json!({"pathh": "a"}), json!({"zebra": "a"})], &expected);
    }
}

#[test]
fn references_and_alternatives_are_followed() {
    let schema = json!({
        "$defs": {
            "place": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "a/b": {"type": "number"},
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}, "leaf": {"type": "number"}}}
        },
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/place"},
            "odd": {"$ref": "#/$defs/a~1b"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "where": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}]},
            "tree": {"$ref": "#/$defs/tree"},
            "both": {"allOf": [{"type": "string"}, {"enum": ["x", "y"]}]},
            "shape": {"oneOf": [
                {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]},
                {"properties": {"kind": {"const": "box"}, "width": {"type": "number"}}, "required": ["kind", "width"]}
            ]},
            "older": {"type": "string", "nullable": true},
            "several": {"type": ["string", "null", "integer"]},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
            "never": false,
            "filled": {"type": "string", "default": null},
            "strange": {"type": "file", "enum": "none"}
        }
    });
    check(
        &schema,
        &[
            json!({"place": {"city": 5}, "odd": "x"}),
            json!({"maybe": null, "where": null, "older": null, "several": null}),
            json!({"maybe": 5, "where": {}, "older": 5, "several": true}),
            json!({"where": 5}),
            json!({"tree": {"left": {"left": {"leaf": "x"}}}}),
            json!({"both": "z"}),
            json!({"both": "x", "shape": {"kind": "circle", "radius": 1}, "strange": [1]}),
            json!({"shape": {"kind": "box"}}),
            json!({"shape": {"kind": "$"}}),
            json!({"shape": {"kind": "line"}}),
            json!({"pair": ["x", 1]}),
            json!({"pair": [1, "x", 2]}),
            json!({"pair": ["$", "x"]}),
            json!({"never": 1}),
            json!({"filled": null}),
            json!({"filled": 5}),
        ],
        &expect![[r#"
            {"place":{"city":5},"odd":"x"}
              Error WrongType: `place.city` must be text, not the number 5
              Error WrongType: `odd` must be a number, not the text "x"
            {"maybe":null,"where":null,"older":null,"several":null}
            {"maybe":5,"where":{},"older":5,"several":true}
              Error WrongType: `maybe` must be text or null, not the number 5
              Error MissingArgument: `where.city` is required (give `where.city`: text)
              Error WrongType: `older` must be text or null, not the number 5
              Error WrongType: `several` must be text, null or a whole number, not true
            {"where":5}
              Error WrongType: `where` must be an object with `city` or null, not the number 5
            {"tree":{"left":{"left":{"leaf":"x"}}}}
              Error WrongType: `tree.left.left.leaf` must be a number, not the text "x"
            {"both":"z"}
              Error WrongType: `both` must be one of `x`, `y`, not the text "z"
            {"both":"x","shape":{"kind":"circle","radius":1},"strange":[1]}
            {"shape":{"kind":"box"}}
              Error MissingArgument: `shape.width` is required (give `shape.width`: a number)
            {"shape":{"kind":"$"}}
              Error WrongType: `shape` must be an object with `kind`, `radius` or an object with `kind`, `width`, not an object with `kind`
            {"shape":{"kind":"line"}}
              Error WrongType: `shape` must be an object with `kind`, `radius` or an object with `kind`, `width`, not an object with `kind`
            {"pair":["x",1]}
            {"pair":[1,"x",2]}
              Error WrongType: `pair[0]` must be text, not the number 1
              Error WrongType: `pair[1]` must be a number, not the text "x"
              Error WrongType: `pair[2]` must be left out, not the number 2
            {"pair":["$","x"]}
            {"never":1}
              Error WrongType: `never` must be left out, not the number 1
            {"filled":null}
            {"filled":5}
              Error WrongType: `filled` must be text, not the number 5
        "#]],
    );
}

#[test]
fn schemas_without_end_are_answered() {
    let endless = json!({"$ref": "#"});
    let pair = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": {"$ref": "#"}}});
    let wide = json!({"allOf": (0..400).map(|_| json!({"$ref": "#"})).collect::<Vec<_>>()});
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!({"a": deep});
    }
    for schema in [endless, pair, wide] {
        assert!(check_arguments(&schema, &tree(deep.clone())).is_empty());
        assert!(required(&schema, &schema).is_empty());
        assert!(!is_enum(&schema, &schema));
        assert!(!matches!(property(&schema, &schema, "b"), MemberLookup::Found(_)));
        assert!(parameter_schema(&schema, &schema).to_string().len() < 200);
        assert_eq!(provides(&schema, &schema), None);
    }
}

#[test]
fn up_to_draft_7_what_stands_beside_a_reference_does_not_count() {
    let beside = |version: &str| {
        json!({"$schema": version, "definitions": {"n": {"type": "number"}},
               "properties": {"n": {"$ref": "#/definitions/n", "enum": [1]}}})
    };
    let old = beside("http://json-schema.org/draft-07/schema#");
    let new = beside("https://json-schema.org/draft/2020-12/schema");
    assert!(check_arguments(&old, &tree(json!({"n": 2}))).is_empty());
    assert!(!check_arguments(&new, &tree(json!({"n": 2}))).is_empty());
}

#[test]
fn paths_into_results() {
    let schema = json!({
        "$defs": {"route": {"type": "object", "properties": {"distance": {"type": "number"}, "name": {"type": "string"}}}},
        "type": "object",
        "properties": {
            "route": {"$ref": "#/$defs/route"},
            "routes": {"type": "array", "items": {"$ref": "#/$defs/route"}},
            "pair": {"type": "array", "items": [{"type": "string"}, {"type": "number"}]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "closed": {"type": "object", "properties": {"a": {}}, "additionalProperties": false},
            "any": {},
            "either": {"anyOf": [{"properties": {"x": {"type": "string"}}}, {"properties": {"x": {"type": "number"}, "y": {}}}]}
        }
    });
    let mut text = String::new();
    for path in [
        json!(["route", "distance"]),
        json!(["route", "distnace"]),
        json!(["routes", 0, "distance"]),
        json!(["routes", null, "distnace"]),
        json!(["routes", "length"]),
        json!(["pair", 1]),
        json!(["pair", null]),
        json!(["counts", "x"]),
        json!(["closed", "b"]),
        json!(["any", "x", "y"]),
        json!(["either", "x"]),
        json!(["either", "z"]),
        json!(["route", "toString"]),
    ] {
        let steps: Vec<PathStep> = serde_json::from_value(path.clone()).expect("paths are steps");
        let answer = match follow(&schema, &schema, &steps) {
            Ok(Some(found)) => found.to_string(),
            Ok(None) => "?".to_owned(),
            Err(missing) => format!("{missing:?}"),
        };
        text += &format!("{path} {answer}\n");
    }
    expect![[r#"
        ["route","distance"] {"type":"number"}
        ["route","distnace"] MissingMember { taken: 1, closed: false, known: ["distance", "name"] }
        ["routes",0,"distance"] {"type":"number"}
        ["routes",null,"distnace"] MissingMember { taken: 2, closed: false, known: ["distance", "name"] }
        ["routes","length"] ?
        ["pair",1] {"type":"number"}
        ["pair",null] ?
        ["counts","x"] {"type":"integer"}
        ["closed","b"] MissingMember { taken: 1, closed: true, known: ["a"] }
        ["any","x","y"] ?
        ["either","x"] ?
        ["either","z"] MissingMember { taken: 1, closed: false, known: ["x", "y"] }
        ["route","toString"] ?
    "#]]
    .assert_eq(&text);
}

#[test]
fn enums_in_their_many_spellings() {
    let root = json!({"$defs": {"unit": {"enum": ["a", "b"]}}});
    for (schema, expected) in [
        (json!({"enum": ["a"]}), true),
        (json!({"const": "a"}), true),
        (json!({"$ref": "#/$defs/unit"}), true),
        (json!({"allOf": [{"$ref": "#/$defs/unit"}]}), true),
        (json!({"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}]}), true),
        (json!({"oneOf": [{"const": "a"}, {"const": "b"}]}), true),
        (json!({"anyOf": [{"const": "a"}, {"type": "string"}]}), false),
        (json!({"type": "string"}), false),
        (json!(true), false),
    ] {
        assert_eq!(is_enum(&root, &schema), expected, "{schema}");
    }
}

#[test]
fn copies_for_parameters_stand_alone_and_stay_small() {
    let root =
        json!({"$defs": {"unit": {"type": "string", "enum": ["a", "b"], "description": "which unit"}}});
    let long = "x".repeat(500);
    let mut text = String::new();
    for schema in [
        json!({"type": "string", "description": long, "title": "T", "default": "x", "format": "uri"}),
        json!({"$ref": "#/$defs/unit"}),
        json!({"anyOf": [{"$ref": "#/$defs/unit"}, {"type": "null"}], "default": null}),
        json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        json!({"type": ["integer", "null"]}),
        json!({"type": "array", "items": {"$ref": "#/$defs/unit"}}),
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        json!({"properties": {"deep": {"type": "object"}}}),
        json!({"type": "integer", "enum": (0..100).collect::<Vec<_>>()}),
        json!(true),
    ] {
        text += &format!("{}\n", parameter_schema(&root, &schema));
    }
    expect![[r#"
        {"type":"string","format":"uri","description":"x*200…"}
        {"type":"string","enum":["a","b"],"description":"which unit"}
        {"type":["string","null"],"enum":["a","b",null],"description":"which unit"}
        {"type":["string","number"]}
        {"type":["integer","null"]}
        {"type":"array","items":{"type":"string","enum":["a","b"]}}
        {"type":"array","items":{"type":"array"}}
        {"type":"object"}
        {"type":"integer"}
        {}
    "#]]
    .assert_eq(&text.replace(&"x".repeat(200), "x*200"));
}

#[test]
fn outputs_that_could_fill_inputs() {
    let object = |members: Value, required: &[&str]| json!({"type": "object", "properties": members, "required": required});
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let user = object(
        json!({"user_id": text, "limit": number, "verbose": {"type": "boolean"}}),
        &["user_id", "limit"],
    );
    for (output, input, expected) in [
        (object(json!({"userId": text, "limit": {"type": "number"}}), &[]), &user, Some(Coverage::Strict)),
        (object(json!({"userId": text}), &[]), &user, Some(Coverage::Partial)),
        (object(json!({"data": object(json!({"user-id": text}), &[])}), &[]), &user, Some(Coverage::Partial)),
        (object(json!({"nested": object(json!({"user_id": text}), &[])}), &[]), &user, None),
        (object(json!({"user_id": number}), &[]), &user, None),
        (object(json!({"user_id": {}}), &[]), &user, None),
        (object(json!({"limit": number}), &[]), &user, None),
        (object(json!({"verbose": {"type": "boolean"}}), &[]), &user, None),
        (object(json!({"path": text}), &[]), &object(json!({"path": text}), &[]), Some(Coverage::Optional)),
        (object(json!({"unit": text}), &[]), &object(json!({"unit": {"enum": ["a", "b"]}}), &["unit"]), None),
        (
            object(json!({"unit": {"enum": ["a"]}}), &[]),
            &object(json!({"unit": {"enum": ["a", "b"]}}), &["unit"]),
            Some(Coverage::Strict),
        ),
        (text.clone(), &user, None),
    ] {
        assert_eq!(provides(&output, input), expected, "{output} → {input}");
    }
}

#[test]
fn nearest_names() {
    let tools = ["fs:read_file", "fs:write_file", "git:log", "everything:get-sum", "web:search_files"];
    let members = ["path", "file_path", "userId", "timeout", "url", "id", "max_results"];
    let mut text = String::new();
    for (wanted, known) in [
        ("fs:raed_file", &tools[..]),
        ("fs:readFile", &tools),
        ("fs:file_read", &tools),
        ("fs:read", &tools),
        ("fss:read_file", &tools),
        ("disk:read_file", &tools),
        ("get_sum", &tools),
        ("everything:unlike", &tools),
        ("zzz", &tools),
        ("pth", &members),
        ("filepath", &members),
        ("user_id", &members),
        ("uri", &members),
        ("time_out", &members),
        ("maxResult", &members),
        ("colour", &members),
        ("", &members),
        ("x", &members),
    ] {
        text += &format!("{wanted}: {}\n", closest_names(wanted, known.iter().copied()).join(" "));
    }
    expect![[r#"
        fs:raed_file: fs:read_file
        fs:readFile: fs:read_file
        fs:file_read: fs:read_file
        fs:read: fs:read_file
        fss:read_file: fs:read_file
        disk:read_file: fs:read_file
        get_sum: everything:get-sum
        everything:unlike: 
        zzz: 
        pth: path
        filepath: file_path
        user_id: userId
        uri: url
        time_out: timeout
        maxResult: max_results
        colour: 
        : 
        x: 
    "#]]
    .assert_eq(&text);
}
