//! Capabilities that programs call: found by name, pinned, run beside the program, told apart in all that is left.

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Client, Home, eventually};

const WRITING: &str = "[permissions]\n\"fs:*\" = { approval_mode = \"auto\" }\n";
const ASKING: &str = "[permissions]\n\"fs:write\" = { approval_mode = \"hil\" }\n";

fn execute(client: &mut Client, implementation: &Value, context: &Value) -> Value {
    let asked = json!({ "intent": "try", "implementation": implementation, "context": context, "options": { "cache": false } });
    client.call("pml_execute", &asked)["structuredContent"].clone()
}

fn run(client: &mut Client, code: &str) -> Value {
    execute(client, &json!({ "type": "code", "code": code }), &json!({}))
}

/// Runs a program once and gives what was learned of it a name.
#[track_caller]
fn learn(home: &Home, client: &mut Client, name: &str, code: &str, context: &Value) -> String {
    // One that calls nothing is remembered only where it asks for that; it is said on the first line, so that lines stay.
    let asks = ["mcp.", "capabilities.", "pml.hint"].iter().any(|word| code.contains(word));
    let hint = if asks { "" } else { "pml.hint({}); " };
    let code = format!("{hint}{code}");
    let done = execute(client, &json!({ "type": "code", "code": code }), context);
    let id =
        done["capabilityId"].as_str().unwrap_or_else(|| panic!("nothing was learned: {done}")).to_owned();
    rename(home, &id, name);
    id
}

#[track_caller]
fn rename(home: &Home, which: &str, name: &str) {
    let renamed = home.run(&["capabilities", "rename", which, name]);
    assert_eq!(renamed.code, 0, "{renamed:?}");
}

fn shown(home: &Home, which: &str) -> Value {
    let shown = home.run(&["capabilities", "show", which, "--json"]);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
}

/// The parts of a reply that say what went wrong.
fn refusal(reply: &Value) -> String {
    let error = &reply["error"];
    let hint = error["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!(
        "{} line {}: {}{hint}",
        error["code"],
        error["line"],
        error["message"].as_str().unwrap_or_default()
    )
}

const DOUBLE: &str =
    "const { value } = await mcp.math.evaluate({ expression: `${args.n} * 2` });\nreturn value;";

#[test]
fn a_program_calls_what_was_learned_once_twice_and_side_by_side() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let double = learn(&home, &mut client, "double", DOUBLE, &json!({ "n": 1 }));
    let code = "const both = await Promise.all([capabilities.double({ n: 2 }), capabilities.double({ n: 5 })]);\n\
                return [...both, await capabilities.double({ n: both[1] })];";
    let done = run(&mut client, code);
    assert_eq!(done["result"], json!([4, 10, 20]), "{done}");
    let by: Vec<&Value> = done["tasks"].as_array().unwrap().iter().map(|task| &task["capability"]).collect();
    assert_eq!(json!(by), json!(["double", "double", "double"]));
    let outer = shown(&home, done["capabilityId"].as_str().unwrap());
    assert_eq!(outer["dependencies"], json!([double]));
    assert_eq!(outer["toolsUsed"][0]["id"], "math:evaluate", "what it calls by others is what it calls");

    let trace = &outer["recentTraces"][0];
    assert_eq!(trace["executedPath"], json!(["f1", "n1", "n2", "n3"]), "each call is one node");
    let results: Vec<Value> = trace["taskResults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| {
            json!([
                task["nodeId"],
                task["tool"] == double.as_str(),
                task["args"],
                task["result"],
                task["success"]
            ])
        })
        .collect();
    let expected = json!([
        ["n1", true, { "n": 2 }, 4, true],
        ["n2", true, { "n": 5 }, 10, true],
        ["n3", true, { "n": 10 }, 20, true]
    ]);
    assert_eq!(json!(results), expected);

    let inner = shown(&home, "double")["recentTraces"].clone();
    let parts: Vec<&Value> =
        inner.as_array().unwrap().iter().filter(|part| part["parentTraceId"] == trace["id"]).collect();
    assert_eq!(parts.len(), 3, "{inner}");
    for part in parts {
        assert_eq!(
            (&part["status"], &part["executedPath"], &part["intent"]),
            (&json!("success"), &json!(["n1"]), &json!(""))
        );
        assert_eq!(
            (&part["taskResults"][0]["tool"], &part["capabilityId"]),
            (&json!("math:evaluate"), &json!(double))
        );
    }
    eventually("its uses are counted", || shown(&home, "double")["usageCount"] == 4);
}

#[test]
fn capabilities_call_capabilities_and_failures_name_them() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    learn(&home, &mut client, "double", DOUBLE, &json!({ "n": 1 }));
    let twice = "if (args.n > 100) throw new RangeError('too much');\nreturn capabilities.double({ n: await capabilities.double({ n: args.n }) });";
    let twice = learn(&home, &mut client, "four_times", twice, &json!({ "n": 1 }));
    let done = run(&mut client, "return capabilities.four_times({ n: 3 })");
    assert_eq!(done["result"], 12, "{done}");

    let caught = run(
        &mut client,
        "try { await capabilities.four_times({ n: 1000 }) } catch (error) { return [error.name, error.code, error.capability, error.message] }",
    );
    assert_eq!(
        caught["result"],
        json!([
            "CapabilityError",
            "CAPABILITY_FAILED",
            "four_times",
            "`four_times` failed: RangeError: too much"
        ])
    );
    let failed = run(&mut client, "\n\nconst n = 'nonsense (';\nreturn capabilities.four_times({ n });");
    let error = &failed["error"];
    expect![[r#""TOOL_ERROR" "n1" 4 `four_times` failed: `double` failed: the expression at character 12: expected a number, a name or `(`"#]].assert_eq(&format!(
        "{} {} {} {}",
        error["code"],
        error["nodeId"],
        error["line"],
        error["message"].as_str().unwrap_or_default()
    ));
    let told: Vec<String> = failed["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| format!("{} {} {} {}", task["nodeId"], task["tool"], task["capability"], task["status"]))
        .collect();
    expect![[r#""n1" "math:evaluate" "double" "error""#]].assert_eq(&told.join("\n"));
    let failures = shown(&home, &twice)["recentTraces"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|trace| trace["status"] != "success")
        .count();
    assert_eq!(failures, 2);
}

#[test]
fn what_cannot_be_called_is_refused_before_anything_runs() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    learn(&home, &mut client, "double", DOUBLE, &json!({ "n": 1 }));
    let unknown = run(
        &mut client,
        "await mcp.math.evaluate({ expression: '1' });\nreturn capabilities.duoble({ n: 1 })",
    );
    expect![[r#""INVALID_PROGRAM" line 2: there is no capability `duoble` (did you mean `double`?)"#]]
        .assert_eq(&refusal(&unknown));
    let wrong = run(&mut client, "return capabilities.double({ m: 1 })");
    expect![[r#""INVALID_PROGRAM" line 1: `double`: `n` is required (give `n`: text)"#]]
        .assert_eq(&refusal(&wrong));

    // `middle` calls `leaf`; what is called `leaf` from now on calls `middle`.
    learn(&home, &mut client, "leaf", "return 1", &json!({}));
    learn(&home, &mut client, "middle", "return capabilities.leaf({})", &json!({}));
    learn(&home, &mut client, "top", "return [await capabilities.middle({})]", &json!({}));
    rename(&home, "leaf", "former_leaf");
    rename(&home, "top", "leaf");
    expect![[r#""INVALID_PROGRAM" line 2: capabilities call each other in a circle: middle → leaf → middle (take one of the calls out, or `pml capabilities rename` what is called by mistake)"#]].assert_eq(&refusal(&run(&mut client, "const x = 1;\nreturn capabilities.middle({})")));

    // Nine levels are one too many, however they are reached.
    learn(&home, &mut client, "level1", "return 'bottom'", &json!({}));
    for level in 2..=8 {
        let code = format!("return (await capabilities.level{}({{}})) + {level}", level - 1);
        learn(&home, &mut client, &format!("level{level}"), &code, &json!({}));
    }
    assert_eq!(run(&mut client, "return capabilities.level8({})")["result"], "bottom2345678");
    let deep = run(&mut client, "return capabilities.level8({})");
    let deep = deep["capabilityId"].as_str().unwrap_or_else(|| panic!("{deep}"));
    rename(&home, deep, "level9");
    expect![[r#""INVALID_PROGRAM" line 1: capabilities call each other more than 8 levels deep: level9 → level8 → level7 → level6 → level5 → level4 → level3 → level2 → level1 (write one of them out)"#]].assert_eq(&refusal(&run(
        &mut client,
        "return [await capabilities.level1({}), await capabilities.level9({})]",
    )));

    // One that fails three times in a row is degraded.
    let shaky = "pml.hint({}); if (args.fail) throw new Error('no');\nreturn 'yes';";
    let id = learn(&home, &mut client, "shaky", shaky, &json!({ "fail": false }));
    for _ in 0..3 {
        execute(&mut client, &json!({ "type": "code", "code": shaky }), &json!({ "fail": true }));
    }
    eventually("it is degraded", || shown(&home, &id)["state"] == "degraded");
    expect![[r#""INVALID_PROGRAM" line 1: capability `shaky` is degraded and cannot be called (run it by itself until it works; `pml capabilities show shaky` tells more)"#]].assert_eq(&refusal(&run(&mut client, "return capabilities.shaky({ fail: false })")));

    // What a document says of how its tasks are tried holds where it is run by itself.
    let dag = json!({ "type": "dag", "dagStructure": { "tasks": [{ "id": "a", "tool": "math:evaluate", "arguments": { "expression": "1" }, "retries": 2 }] } });
    let done = execute(&mut client, &dag, &json!({}));
    rename(&home, done["capabilityId"].as_str().unwrap_or_else(|| panic!("{done}")), "tasks");
    expect![[r#""INVALID_PROGRAM" line 1: capability `tasks`: its task `a` has `retries`, which holds only where the document is run by itself (run it by itself, and give its result to the program in `context`)"#]].assert_eq(&refusal(&run(&mut client, "return capabilities.tasks({})")));
}

#[test]
fn defaults_and_single_tools_serve_like_programs() {
    let home = Home::new(WRITING);
    let mut client = home.stdio(&[]);
    std::fs::write(home.path("in.txt"), "ink").unwrap();
    learn(
        &home,
        &mut client,
        "read_it",
        "return (await mcp.fs.read({ path: 'in.txt' })).content",
        &json!({}),
    );
    let made = home.run(&[
        "capabilities",
        "create",
        "calculate",
        "--name",
        "calculate",
        "--tool",
        "math:evaluate",
        "--defaults",
        r#"{"expression":"6 * 7"}"#,
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    std::fs::write(home.path("other.txt"), "other ink").unwrap();
    let code = "return [await capabilities.read_it(), await capabilities.read_it({ path: 'other.txt' }), await capabilities.calculate(), await capabilities.calculate({ expression: '1 + 1' })]";
    let done = run(&mut client, code);
    assert_eq!(done["result"], json!(["ink", "other ink", { "value": 42 }, { "value": 2 }]), "{done}");
}

#[test]
fn arguments_that_are_no_data_do_not_arrive() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    learn(
        &home,
        &mut client,
        "look",
        "return [Object.keys(args), args.admin ?? null, typeof args.mcp, Object.getPrototypeOf(args) === Object.prototype]",
        &json!({}),
    );
    let code = r#"
        const said = [];
        const round = {};
        round.round = round;
        const gifts: any[] = [JSON.parse('{"__proto__":{"admin":true}}'), { mcp: Object(1), f: () => 1 }, round, { x: { toJSON() { return 1 } } }];
        for (const gift of gifts) try { said.push(await capabilities.look(gift)) } catch (error) { said.push(error.message) }
        return said;
    "#;
    let done = run(&mut client, code);
    expect![[r#"[[["__proto__","admin"],null,"undefined",true],"the argument `$.f` is a function","the argument `$.round` is a circle: it contains itself","the argument `$.x.toJSON` is a function"]"#]].assert_eq(&done["result"].to_string());
}

#[test]
fn a_person_is_asked_for_what_a_capability_calls() {
    let home = Home::new(ASKING);
    let mut client = home.stdio(&[]);
    let file = home.path("note.ts");
    std::fs::write(&file, "return mcp.fs.write({ path: args.path, content: 'noted' })").unwrap();
    let made = home.run(&[
        "capabilities",
        "create",
        "write a note",
        "--name",
        "note",
        "--code",
        file.to_str().unwrap(),
    ]);
    assert_eq!(made.code, 0, "{made:?}");
    let asked = run(&mut client, "const path = 'a.txt';\nreturn capabilities.note({ path })");
    assert_eq!(asked["status"], "approval_required", "{asked}");
    let text = asked.to_string();
    assert!(text.contains("capability `note` calls it") && text.contains("fs:write"), "{text}");
    assert!(!home.path("a.txt").exists());
}

#[test]
fn tasks_of_a_document_can_be_capabilities() {
    let home = Home::new("");
    let mut client = home.stdio(&[]);
    let double = learn(&home, &mut client, "double", DOUBLE, &json!({ "n": 1 }));
    let document = json!({ "tasks": [
        { "id": "a", "capability": "double", "arguments": { "n": 3 } },
        { "id": "b", "code": "return capabilities.double({ n: args.n })", "arguments": { "n": { "$ref": "a" } }, "dependsOn": ["a"] },
    ] });
    let done = execute(&mut client, &json!({ "type": "dag", "dagStructure": document }), &json!({}));
    assert_eq!(done["result"], json!({ "b": 12 }), "{done}");
    let learned = shown(&home, done["capabilityId"].as_str().unwrap());
    assert_eq!(learned["dependencies"], json!([double]));
    let unknown = json!({ "tasks": [{ "id": "a", "capability": "duoble", "arguments": {} }] });
    let refused = execute(&mut client, &json!({ "type": "dag", "dagStructure": unknown }), &json!({}));
    expect![[r#""INVALID_PROGRAM" line 1: there is no capability `duoble` (did you mean `double`?)"#]]
        .assert_eq(&refusal(&refused));
}
