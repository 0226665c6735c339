//! What the report of a dry run says.

use serde_json::{Value, json};

use crate::harness::{Home, python};
use crate::place::Place;
use crate::{dry, effects_of};

/// A report without what differs from run to run.
pub fn without_times(mut report: Value) -> Value {
    let members = report.as_object_mut().unwrap();
    members.retain(|name, _| name != "id" && name != "executionTimeMs");
    for call in members["capturedCalls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().retain(|name, _| name != "timestamp" && name != "durationMs");
    }
    report
}

const PROGRAM: &str = "const seen = await mcp.a.read({ key: 'k' });\n\
    const made = await mcp.a.write({ key: seen.given.key });\n\
    await mcp.b.write({ key: made.reason });\n\
    if (made._mocked) await mcp.b.write({ key: 'x' }); else await mcp.b.look({});\n\
    return made;";

#[test]
fn it_tells_calls_effects_made_up_values_and_branches() {
    let mut place = Place::start("");
    let report = crate::report(&mut place, PROGRAM, &json!({}), &json!(true));
    let calls = report["capturedCalls"].as_array().unwrap();
    let shown: Vec<Value> = calls
        .iter()
        .map(|call| {
            json!([call["server"], call["tool"], call["args"], call["origin"], call["line"], call["nodeId"]])
        })
        .collect();
    assert_eq!(shown[0], json!(["a", "read", { "key": "k" }, "real", 1, "n1"]), "{report:#}");
    assert_eq!(shown[1], json!(["a", "write", { "key": "k" }, "placeholder", 2, "n2"]), "{report:#}");
    assert_eq!(calls[0]["response"]["given"]["key"], "k");
    assert_eq!(calls[1]["mockResponse"]["_mocked"], true);
    assert_eq!(effects_of(&report), ["would call `a:write`", "would call `b:write` 2 times"]);
    assert_eq!(report["effects"][0]["tainted"], Value::Null, "its arguments are real: {report:#}");
    assert_eq!(report["effects"][1]["tainted"], true, "{report:#}");
    let warnings: Vec<&str> =
        report["warnings"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert!(
        warnings.contains(&"line 3: the arguments of `b:write` depend on the made-up result of `a:write`"),
        "{warnings:#?}"
    );
    assert!(
        warnings.contains(&"line 4: `made._mocked` is decided by the made-up result of `a:write`"),
        "{warnings:#?}"
    );
    assert!(warnings.contains(&"the result depends on the made-up result of `a:write`"), "{warnings:#?}");
    let branches = &report["branches"];
    assert_eq!(branches["covered"][0]["outcome"], "true", "{branches}");
    assert_eq!(branches["uncovered"][0]["outcome"], "false", "{branches}");
    assert_eq!(report["estimatedApiCalls"], json!({ "a": 2, "b": 2 }));
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let mut place = Place::start("");
    let how = json!({ "seed": 7, "explore": true, "maxBranches": 10 });
    let code = format!("const r = Math.random(); {PROGRAM}");
    let one = without_times(crate::report(&mut place, &code, &json!({}), &how));
    let other = without_times(crate::report(&mut place, &code, &json!({}), &how));
    assert_eq!(one, other);
}

#[test]
fn nothing_is_kept_of_it() {
    let mut place = Place::start("");
    crate::report(&mut place, PROGRAM, &json!({}), &json!(true));
    let runs = place.home.run(&["runs", "list", "--json"]);
    let runs: Value = serde_json::from_str(&runs.stdout).unwrap_or_else(|_| panic!("{runs:?}"));
    let listed = runs.as_array().or(runs["runs"].as_array()).unwrap_or_else(|| panic!("{runs}"));
    assert!(listed.is_empty(), "{runs}");
    let learned = place.home.run(&["capabilities", "list", "--json"]);
    assert!(!learned.stdout.contains("cap_"), "{learned:?}");
}

#[test]
fn timers_take_no_time_and_fire_in_order() {
    let mut place = Place::start("");
    let code = "const order = []; const start = Date.now();\n\
        const sleep = (ms, name) => new Promise((done) => setTimeout(() => { order.push(name); done(); }, ms));\n\
        await Promise.all([sleep(86400000, 'day'), sleep(1000, 'second'), sleep(3600000, 'hour')]);\n\
        return [order, Date.now() - start];";
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    assert_eq!(report["result"], json!([["second", "hour", "day"], 86_400_000]), "{report}");
}

#[test]
fn given_mocks_answer_and_steer() {
    let mut place = Place::start("");
    let code = "const r = await mcp.a.read({ key: args.key }); if (r.ok) await mcp.a.write({}); return [r.ok, args.key];";
    let told = dry(
        &mut place,
        code,
        &json!({ "key": "k" }),
        &json!({ "dryRun": true, "mocks": { "tools": { "a:read": { "ok": true } }, "args": { "key": "other" } } }),
    );
    assert_eq!(told["result"], json!([true, "other"]), "{told}");
    assert_eq!(told["report"]["capturedCalls"][0]["origin"], "given");
    assert!(place.begun().is_empty(), "{:?}", place.begun());
    let flat = dry(
        &mut place,
        "return await mcp.a.flaky({});",
        &json!({}),
        &json!({ "dryRun": true, "mocks": { "a:flaky": { "$error": "no" } } }),
    );
    assert_eq!(flat["error"]["message"], "`a:flaky` failed: no", "{flat}");
}

#[test]
fn a_given_argument_may_be_a_member_of_another() {
    let mut place = Place::start("");
    let code = "return [args.config.env, args.config.kept];";
    let options = json!({ "dryRun": true, "mocks": { "tools": {}, "args": { "config.env": "test" } } });
    let config = json!({ "config": { "env": "live", "kept": 1 } });
    let told = dry(&mut place, code, &config, &options);
    assert_eq!(told["result"], json!(["test", 1]), "{told}");
    let told = dry(&mut place, code, &json!({ "config": "live" }), &options);
    assert!(told.to_string().contains("`config` is no object"), "{told}");
}

/// A server of the kind that a connector knows: its tools declare no results.
const GITHUB: &str = r#"
import json, sys
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ["create_issue", "get_issue", "merge_pull_request"]]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    told = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        told["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "github", "version": "1"}}
    elif message["method"] == "tools/list":
        told["result"] = {"tools": TOOLS}
    else:
        if message["method"] == "tools/call":
            open("called", "w").write(line)
        told["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(told), flush=True)
"#;

#[test]
fn a_known_service_is_answered_by_its_connector() {
    let settings = |home: &Home| {
        std::fs::write(home.path("github.py"), GITHUB).unwrap();
        format!(
            "[servers.github]\ncommand = {}\nargs = {}\ncwd = {}\n",
            json!(python("python3")),
            json!(["-I", "-S", home.path("github.py")]),
            json!(home.path(""))
        )
    };
    let mut place = Place::with_servers(&settings, "[permissions]\n\"*\" = { approval_mode = \"auto\" }\n");
    let code = "const issue = await mcp.github.create_issue({ owner: 'acme', repo: 'shop', title: 'Broken' });\n\
        const again = await mcp.github.get_issue({ owner: 'acme', repo: 'shop', issue_number: issue.number });\n\
        return [issue.title, typeof issue.number, issue.html_url.includes('acme/shop'), again.html_url.includes('acme/shop')];";
    let how = json!({ "seed": 3 });
    let report = crate::report(&mut place, code, &json!({}), &how);
    assert_eq!(report["result"], json!(["Broken", "number", true, true]), "{report:#}");
    assert_eq!(report["capturedCalls"][0]["origin"], "connector", "{report:#}");
    assert_eq!(effects_of(&report)[0], "would call `github:create_issue`");
    let again = crate::report(&mut place, code, &json!({}), &how);
    assert_eq!(
        report["capturedCalls"][0]["mockResponse"], again["capturedCalls"][0]["mockResponse"],
        "the same seed gives the same values"
    );
    assert!(!place.home.path("called").exists(), "no tool was called");
}

#[test]
fn bad_options_are_refused_with_a_hint() {
    let mut place = Place::start("");
    let mut refused = |options: Value| {
        let told = dry(&mut place, "return 1", &json!({}), &options);
        let error = if told["error"].is_null() { &told } else { &told["error"] };
        format!(
            "{} {}",
            error["message"].as_str().unwrap_or_default(),
            error["hint"].as_str().unwrap_or_default()
        )
    };
    let unknown = refused(json!({ "dryRun": true, "mocks": { "tools": { "a:raed": {} } } }));
    assert!(unknown.contains("there is no tool `a:raed`") && unknown.contains("`a:read`"), "{unknown}");
    let broken = refused(
        json!({ "dryRun": true, "mocks": { "fs:stat": { "path": 5, "exists": true, "type": "file", "size": 1, "modified": null } } }),
    );
    assert!(broken.contains("breaks its output schema") && broken.contains("/path"), "{broken}");
    let many = refused(json!({ "dryRun": { "maxBranches": 100_000 } }));
    assert!(many.contains("`maxBranches` is 100000"), "{many}");
    let real = refused(json!({ "mocks": {} }));
    assert!(real.contains("dry runs only"), "{real}");
}

#[test]
fn a_capability_that_the_program_calls_runs_dry_too() {
    let mut place = Place::start("");
    let made = place.run("const r = await mcp.a.read({ key: args.key }); await mcp.a.write({ key: args.key }); return r.given.key;", &json!({ "key": "x" }));
    let id = made["capabilityId"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
    assert_eq!(place.home.run(&["capabilities", "rename", &id, "copyOver"]).code, 0);
    let (writes, code) = (place.writes(), "return await capabilities.copyOver({ key: 'inner' });");
    let report = crate::report(&mut place, code, &json!({}), &json!(true));
    assert_eq!(report["result"], "inner", "{report:#}");
    assert_eq!(effects_of(&report), ["would call `a:write`"]);
    assert_eq!(report["capturedCalls"][1]["capability"], "copyOver");
    assert_eq!(place.writes(), writes);
}

#[test]
fn a_thing_that_was_created_is_read_back_and_other_reads_are_marked() {
    let mut place = Place::start("");
    let code = "const made = await mcp.a.write({ title: 'T' });\n\
        const back = await mcp.a.read({ id: made.id });\n\
        const other = await mcp.a.read({ key: 'else' });\n\
        return [back.title, other.given.key];";
    let options = json!({ "dryRun": true, "mocks": { "a:write": { "id": "i-1" } } });
    let told = dry(&mut place, code, &json!({}), &options);
    let calls = &told["report"]["capturedCalls"];
    assert_eq!(told["report"]["result"], json!(["T", "else"]), "{told:#}");
    assert_eq!(calls[1]["origin"], "overlay", "{calls:#}");
    assert_eq!(calls[2]["unknownState"], true, "{calls:#}");
    assert_eq!(place.sorted_keys("a:read"), ["else"], "the server is asked for nothing that was made up");
    assert_eq!((place.begun().len(), place.writes()), (1, 0));
}

#[test]
fn an_id_that_was_made_up_is_sent_to_no_server() {
    let mut place = Place::start("");
    let code = "const made = await mcp.a.write({ title: 'T' });\n\
        const orders = await mcp.b.orders({ user_id: made.user.id });\n\
        const real = await mcp.b.orders({ user_id: 'u-k' });\n\
        return [typeof orders.count, real.count];";
    let options = json!({ "dryRun": true, "mocks": { "a:write": { "user": { "id": "c-831" } } } });
    let told = dry(&mut place, code, &json!({}), &options);
    assert_eq!(told["report"]["result"], json!(["number", 3]), "{told:#}");
    let calls = &told["report"]["capturedCalls"];
    assert_eq!((&calls[1]["origin"], &calls[2]["origin"]), (&json!("schema"), &json!("real")), "{calls:#}");
    let sent: Vec<Value> = place.begun().into_iter().map(|call| call.given["user_id"].clone()).collect();
    assert_eq!(sent, ["u-k"]);
}

#[test]
fn a_file_whose_write_has_a_given_result_is_written_all_the_same() {
    let mut place = Place::start("");
    let code = "const made = await mcp.fs.write({ path: 'total.txt', content: 'seven' });\n\
        const back = await mcp.fs.read({ path: 'total.txt' });\nreturn [made.size, back.content];";
    let options = json!({ "dryRun": true, "mocks": { "fs:write": { "path": "total.txt", "size": 99 } } });
    let told = dry(&mut place, code, &json!({}), &options);
    assert_eq!(told["report"]["result"], json!([99, "seven"]), "{told:#}");
    assert_eq!(effects_of(&told["report"]), ["would create `total.txt` (5 bytes)"]);
    assert!(!place.home.path("total.txt").exists());
}

#[test]
fn a_limit_is_told_as_the_one_that_was_reached() {
    let mut place = Place::start("");
    let code = "await mcp.a.read({ key: 'first' }); await mcp.a.read({ key: 'second', until: 'never' });";
    let told = dry(&mut place, code, &json!({}), &json!({ "dryRun": true, "timeoutMs": 1500 }));
    let error = &told["report"]["error"];
    assert_eq!(error["code"], "TIMEOUT", "{told:#}");
    assert!(error["message"].as_str().unwrap().contains("at most 1500 ms"), "{error}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("`timeoutMs`") && !hint.contains("limits.wall"), "{error}");
    let calls = &told["report"]["capturedCalls"];
    assert_eq!(calls[0]["response"]["given"]["key"], "first", "what was read is there: {calls:#}");
    assert!(calls[1]["response"].is_null() && calls[1]["error"].is_null(), "{calls:#}");
    place.allow("never");
}
