//! Several people at one gateway: what was read for one is never given to another, and the budget of a key counts what
//! its programs ask for.

use pml_model::{KeyBudget, KeyRights, Role, ToolScope};
use serde_json::{Value, json};

use crate::door::{call, key, key_with_budget, request};
use crate::harness::{Home, Served, eventually};
use crate::place::{configure, ledger_of};

const RULES: &str = "[permissions]\n\"*\" = { approval_mode = \"auto\", cache_ttl = \"1h\" }\n";

/// Runs a program for the holder of a key.
#[track_caller]
fn run(served: &Served, key: &str, intent: &str, code: &str, context: &Value, cache: bool) -> Value {
    let asked = json!({
        "intent": intent, "implementation": { "type": "code", "code": code }, "context": context,
        "options": { "cache": cache },
    });
    let told = call(served, key, "pml_execute", &asked)["structuredContent"].clone();
    assert_eq!(told["status"], "success", "{told}");
    told
}

fn keys_of(home: &Home, tool: &str) -> Vec<Value> {
    let calls = ledger_of(home, "begin").into_iter().filter(|call| call.tool == tool);
    calls.map(|call| call.given["key"].clone()).collect()
}

const FIRST: &str = "return (await mcp.b.read({ key: `first ${args.name}` })).given.key;";
const NEXT: &str = "return (await mcp.a.read({ key: `next ${args.name}` })).given.key;";

#[test]
fn a_prepared_result_is_served_to_its_owner_only() {
    let home = Home::new("");
    configure(&home, "[speculation]\npreset = \"eager\"\n", RULES);
    let [ann, bob] = ["ann", "bob"].map(|person| key(&home, person, Role::Member));
    let served = home.serve(&[]);
    // Both expect the second program after the first one.
    for turn in 0..12 {
        for owner in [&ann, &bob] {
            let name = json!({ "name": format!("n{turn}"), "sessionId": "one" });
            run(&served, owner, "first of all", FIRST, &name, false);
            run(&served, owner, "then that", NEXT, &name, false);
        }
    }
    let last = json!({ "name": "last", "sessionId": "one" });
    run(&served, &ann, "first of all", FIRST, &last, false);
    let ended = || ledger_of(&home, "end").iter().filter(|call| call.given["key"] == "next last").count();
    eventually("the result is prepared for Ann", || ended() == 1);
    let others = run(&served, &bob, "then that", NEXT, &last, true);
    assert!(others.get("cacheHit").is_none(), "{others}");
    assert_eq!(ended(), 2, "it was read for Bob");
    eventually("it is kept for Ann", || {
        run(&served, &ann, "then that", NEXT, &last, true).get("cacheHit").is_some()
    });
}

#[test]
fn a_slow_prediction_for_one_does_not_hold_back_those_of_another() {
    let home = Home::new("");
    configure(&home, "[speculation]\npreset = \"eager\"\n", RULES);
    let [ann, bob] = ["ann", "bob"].map(|person| key(&home, person, Role::Member));
    let served = home.serve(&[]);
    // The file named `go` is there, the one named `held` is not.
    std::fs::write(home.path("go"), "").unwrap();
    let next = "return (await mcp.a.read({ key: `next ${args.name}`, until: args.until })).given.key;";
    let context = |name: &str, until: &str| json!({ "name": name, "until": until, "sessionId": name });
    for turn in 0..12 {
        for owner in [&ann, &bob] {
            let name = json!({ "name": format!("n{turn}"), "until": "go", "sessionId": "one" });
            run(&served, owner, "first of all", FIRST, &name, false);
            run(&served, owner, "then that", next, &name, false);
        }
    }
    for session in ["slow 1", "slow 2", "slow 3", "slow 4"] {
        run(&served, &ann, "first of all", FIRST, &context(session, "held"), false);
    }
    eventually("Ann's are under way", || keys_of(&home, "a:read").contains(&json!("next slow 1")));
    run(&served, &bob, "first of all", FIRST, &context("quick", "go"), false);
    let ended = || ledger_of(&home, "end").iter().any(|call| call.given["key"] == "next quick");
    eventually("Bob's is made meanwhile", ended);
    let held = ledger_of(&home, "end").into_iter().any(|call| call.given["until"] == "held");
    assert!(!held, "nobody has let Ann's go on");
}

#[test]
fn a_key_that_is_limited_to_some_tools_causes_no_read_of_others() {
    let home = Home::new("");
    configure(&home, "[speculation]\npreset = \"eager\"\n", RULES);
    let tools = ToolScope::parse(["b:*".to_owned()]).unwrap();
    let rights = KeyRights { tools, ..KeyRights::of_role(Role::Member) };
    let narrow = home.key_of("ann", request("narrow", rights));
    let whole = key(&home, "ann", Role::Member);
    let served = home.serve(&[]);
    let context = |name: &str| json!({ "name": name, "sessionId": name });
    for turn in 0..12 {
        let name = json!({ "name": format!("n{turn}"), "sessionId": "one" });
        run(&served, &whole, "first of all", FIRST, &name, false);
        run(&served, &whole, "then that", NEXT, &name, false);
    }
    // What the key with all tools has prepared after that shows that the prediction before it is over or under way.
    for turn in 0..3 {
        run(&served, &narrow, "first of all", FIRST, &context(&format!("narrow {turn}")), false);
        run(&served, &whole, "first of all", FIRST, &context(&format!("whole {turn}")), false);
        let whole = json!(format!("next whole {turn}"));
        eventually("the other key's is prepared", || keys_of(&home, "a:read").contains(&whole));
    }
    let read = keys_of(&home, "a:read");
    let narrow = read.iter().filter(|key| key.as_str().is_some_and(|key| key.starts_with("next narrow")));
    assert_eq!(narrow.count(), 0, "{read:?}");
}

#[test]
fn the_results_of_a_session_are_arguments_of_nobody_else() {
    const ORDERS: &str = "return (await mcp.a.orders({ user_id: args.user_id })).count;";
    const USER: &str = "return (await mcp.b.find_user({ key: args.name })).user.id;";
    let home = Home::new("");
    configure(&home, "[speculation]\npreset = \"eager\"\n", RULES);
    let [ann, bob] = ["ann", "bob"].map(|person| key(&home, person, Role::Member));
    let served = home.serve(&[]);
    // Both name their sessions alike, and both expect the orders to be asked for.
    let learned = |turn: usize| json!({ "name": format!("n{turn}"), "sessionId": "where it was learned" });
    for turn in 0..12 {
        for owner in [&ann, &bob] {
            run(&served, owner, "first of all", FIRST, &learned(turn), false);
            let orders = json!({ "user_id": format!("taught {turn}"), "sessionId": "where it was learned" });
            run(&served, owner, "count orders", ORDERS, &orders, false);
        }
    }
    let orders = || {
        let calls = ledger_of(&home, "begin").into_iter().filter(|call| call.tool == "a:orders");
        calls.map(|call| call.given["user_id"].clone()).collect::<Vec<_>>()
    };
    let taught = orders().len();
    let session = |name: &str| json!({ "name": name, "sessionId": "mine" });
    run(&served, &ann, "who is it", USER, &session("ann"), false);
    let told = run(&served, &bob, "first of all", FIRST, &session("there"), false);
    assert!(told["next"].to_string().contains("cap_"), "{told}");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(orders().len(), taught, "Bob's session knows no user: {:?}", orders());
    run(&served, &ann, "first of all", FIRST, &session("here"), false);
    eventually("the orders of Ann's user are counted", || orders().last() == Some(&json!("u-ann")));
}

#[test]
fn a_key_pays_for_what_its_programs_ask_for() {
    let home = Home::new("");
    configure(&home, "", RULES);
    let budget = KeyBudget { calls_per_minute: Some(1_000), ..KeyBudget::default() };
    let ann = key_with_budget(&home, "ann", budget);
    let served = home.serve(&[]);
    // Two reads ahead are used, and two are not.
    let code = "const first = await mcp.b.read({ key: 'first', wait: 100 });\n\
                await mcp.a.read({ key: 'second' });\n\
                await mcp.a.read({ key: 'third' });\n\
                if (first.writes === 0) return 'early';\n\
                await mcp.a.read({ key: 'fourth' });\n\
                return 'late';";
    let told = run(&served, &ann, "four reads", code, &json!({}), false);
    assert_eq!((&told["result"], &told["speculated"]["calls"]), (&json!("early"), &json!(2)), "{told}");
    assert!(keys_of(&home, "a:read").len() >= 2);
    let mut used = Value::Null;
    eventually("the calls are counted", || {
        let listed: Value = serde_json::from_str(&home.run(&["keys", "list", "--json"]).stdout).unwrap();
        used = listed[0]["use"].clone();
        used["callsToday"].as_u64().is_some_and(|calls| calls > 0)
    });
    assert_eq!(
        used["callsToday"], 3,
        "hits count as any call, and reads that nobody asked for do not: {used}"
    );
}
