//! A value that a program is written with is never passed off as another.
//!
//! The programs look at `args` as a whole, so that nothing can be lifted out of them.

use pml_model::trace::{Trace, TraceBody, TraceStatus};
use pml_model::{CapabilityId, Principal, RunId, TraceId};
use pml_store::{IntentFit, RunMemory, Urgency};
use serde_json::{Map, Value, json};

use crate::harness::eventually;
use crate::place::{ALL, Place, api};

/// A program with a value written into it, and requests for others.
struct Case {
    intent: &'static str,
    code: &'static str,
    /// What it is fixed to.
    fixed: &'static str,
    /// Requests for another value, and that value.
    others: &'static [(&'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        intent: "average salary of the Engineering department in data/staff.csv",
        code: "const given = { ...args };\n\
               const f = await mcp.fs.read({ path: \"data/staff.csv\" });\n\
               const { rows } = await mcp.csv.parse({ csv: f.content });\n\
               const mine = rows.filter((r) => r.department === \"Engineering\").map((r) => Number(r.salary));\n\
               return (await mcp.math.statistics({ values: mine })).mean;",
        fixed: "Engineering",
        others: &[
            ("average salary of the Sales department in data/staff.csv", "Sales"),
            ("salaire moyen du département Legal dans data/staff.csv", "Legal"),
            ("average salary of the sales department in data/staff.csv", "sales"),
        ],
    },
    Case {
        intent: "the 2 heaviest parcels in data/parcels.json",
        code: "const given = { ...args };\n\
               const f = await mcp.fs.read({ path: 'data/parcels.json' });\n\
               const { data } = await mcp.json.parse({ json: f.content });\n\
               return data.sort((a, b) => b.kg - a.kg).slice(0, 2).map((p) => p.id);",
        fixed: "2",
        others: &[
            ("the 3 heaviest parcels in data/parcels.json", "3"),
            ("the three heaviest parcels in data/parcels.json", "three"),
            ("les 4 colis les plus lourds de data/parcels.json", "4"),
        ],
    },
    Case {
        intent: "which parcels in data/parcels.json are delivered",
        code: "const given = { ...args };\n\
               const f = await mcp.fs.read({ path: 'data/parcels.json' });\n\
               const { data } = await mcp.json.parse({ json: f.content });\n\
               return data.filter((p) => p.state === 'delivered').map((p) => p.id);",
        fixed: "delivered",
        others: &[
            ("which parcels in data/parcels.json are lost", "lost"),
            ("list the returned parcels of data/parcels.json", "returned"),
        ],
    },
    Case {
        intent: "count the lines of logs/app.log with \"timeout\"",
        code: "const given = { ...args };\n\
               const f = await mcp.fs.read({ path: 'logs/app.log' });\n\
               return f.content.split('\\n').filter((l) => l.includes(`timeout`)).length;",
        fixed: "timeout",
        others: &[
            ("count the lines of logs/app.log with \"refused\"", "refused"),
            ("combien de lignes de logs/app.log contiennent \"refused\"", "refused"),
        ],
    },
];

fn place() -> Place {
    let place = Place::start(ALL);
    for directory in ["data", "logs"] {
        std::fs::create_dir(place.home.path(directory)).unwrap();
    }
    let csv = "name,department,salary\nAnn,Engineering,100\nBob,Sales,50\nCid,Legal,70\n";
    std::fs::write(place.home.path("data/staff.csv"), csv).unwrap();
    let parcels = r#"[{"id":"a","kg":1,"state":"lost"},{"id":"b","kg":9,"state":"delivered"},{"id":"c","kg":4,"state":"returned"},{"id":"d","kg":7,"state":"delivered"}]"#;
    std::fs::write(place.home.path("data/parcels.json"), parcels).unwrap();
    std::fs::write(place.home.path("logs/app.log"), "timeout a\nrefused b\nok\ntimeout c\n").unwrap();
    place
}

fn by_id(place: &mut Place, id: &str, intent: &str, context: &Value) -> Value {
    let asked =
        json!({ "intent": intent, "context": context, "implementation": { "type": "capability", "id": id } });
    place.gateway.call("pml_execute", &asked)
}

#[test]
fn another_value_is_refused_by_id_with_the_constant_and_the_value() {
    for case in CASES {
        let mut place = place();
        let first = place.run(case.intent, case.code, &json!({}));
        assert_eq!(first["status"], "success", "{first}");
        let id = first["capabilityId"].as_str().unwrap();
        for (intent, value) in case.others {
            let offered = place.wish(intent);
            assert_eq!(offered["status"], "suggestions", "{intent}: {offered}");
            let candidates = offered["suggestions"]["candidates"].as_array().unwrap();
            let candidate = candidates.iter().find(|candidate| candidate["id"] == id);
            let context = candidate.map_or(json!({}), |candidate| candidate["arguments"].clone());
            if let Some(candidate) = candidate {
                let named = &candidate["contradiction"];
                assert_eq!(
                    (&named["constant"], &named["intentSays"]),
                    (&json!(case.fixed), &json!(value)),
                    "{offered}"
                );
            }
            let refused = by_id(&mut place, id, intent, &context);
            assert_eq!(
                (refused["status"].as_str(), refused.get("result")),
                (Some("suggestions"), None),
                "{intent}: {refused}"
            );
            let because = refused["suggestions"]["because"].as_str().unwrap();
            for part in [&format!("`{}`", case.fixed), &format!("`{value}`"), "send the program"] {
                assert!(because.contains(part), "{intent}: {because}");
            }
            assert_eq!(refused["suggestions"]["candidates"][0]["program"], case.code, "{refused}");
            place.settled();
            let again = place.wish(intent);
            assert_eq!(again["status"], "suggestions", "{intent} was not learned: {again}");
        }
        let same = place.wish(case.intent);
        assert_eq!((same["status"].as_str(), &same["result"]), (Some("success"), &first["result"]), "{same}");
        assert_eq!(place.capability_of(id).intents.len(), 1);
    }
}

#[test]
fn programs_that_differ_in_a_constant_serve_each_its_own_value() {
    let mut place = place();
    std::fs::write(
        place.home.path("data/berlin.csv"),
        "name,department,salary\nDan,Engineering,80\nEve,Sales,60\n",
    )
    .unwrap();
    let sales = "average salary of the Sales department in data/staff.csv";
    for (intent, department) in [(CASES[0].intent, "Engineering"), (sales, "Sales")] {
        let code = CASES[0].code.replace("Engineering", department);
        assert_eq!(place.run(intent, &code, &json!({}))["status"], "success");
    }
    place.settled();
    for (intent, result) in [
        (CASES[0].intent, 100),
        (sales, 50),
        ("average salary of the Sales department in data/berlin.csv", 60),
        ("average salary of the Engineering department in data/berlin.csv", 80),
    ] {
        let told = place.wish(intent);
        assert_eq!(
            (told["status"].as_str(), &told["result"]),
            (Some("success"), &json!(result)),
            "{intent}: {told}"
        );
    }
    let other = place.wish("average salary of the Legal department in data/staff.csv");
    assert_eq!(other["status"], "suggestions", "{other}");
}

#[test]
fn the_refusal_is_readable_as_text() {
    let mut place = place();
    let first = place.run(CASES[0].intent, CASES[0].code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap();
    let text = place.text(
        "pml_execute",
        &json!({ "intent": "average salary of the Sales department in data/staff.csv", "context": { "path": "data/staff.csv" },
            "implementation": { "type": "capability", "id": id } }),
    );
    for part in ["fixed to `Engineering`", "`Sales`", "send the program"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("Run one with"), "{text}");
}

#[test]
fn an_intent_whose_values_have_their_places_is_remembered_and_any_other_is_not() {
    let mut place = place();
    std::fs::write(place.home.path("data/berlin.csv"), "name,department,salary\nDan,Engineering,80\n")
        .unwrap();
    let first = place.run(CASES[0].intent, CASES[0].code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let berlin = json!({ "path": "data/berlin.csv" });
    let said = "what do people in Engineering earn on average, as of data/berlin.csv";
    let told = by_id(&mut place, &id, said, &berlin);
    assert_eq!(told["result"], 80, "{told}");
    let vague = by_id(&mut place, &id, "average salary in data/berlin.csv", &berlin);
    assert_eq!(vague["result"], 80, "who names it without naming the department means it: {vague}");
    let more = by_id(&mut place, &id, "average salary of Engineering in data/berlin.csv since 2019", &berlin);
    assert_eq!(more["result"], 80, "{more}");
    let mut intents: Vec<String> =
        place.capability_of(&id).intents.into_iter().map(|intent| intent.text).collect();
    intents.sort();
    assert_eq!(intents, [CASES[0].intent, said]);
    assert_eq!(place.home.run(&["learn", "rebuild"]).code, 0);
    assert_eq!(place.capability_of(&id).intents.len(), 2, "nor does learning it all anew bring them back");
    let alone = place.wish("average salary in data/berlin.csv");
    assert_eq!(alone["status"], "suggestions", "{alone}");
}

/// Stores a run of a capability as an earlier version of the program would have.
fn learned_before(place: &Place, id: &str, intent: &str, number: u128) {
    let run = RunId::new(number);
    let trace = Trace {
        id: TraceId::of(&run),
        workflow_id: run,
        principal: Principal::local(),
        session: "earlier".to_owned(),
        capability_id: Some(CapabilityId::parse(id).unwrap()),
        plan_hash: "x".to_owned(),
        intent: intent.to_owned(),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 1,
        created_at: 4_000_000_000_000 + i64::try_from(number).unwrap(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: false,
        exploratory: false,
        approved: false,
        body: TraceBody::default(),
    };
    let memory = RunMemory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: Map::from_iter([("path".to_owned(), json!("data/staff.csv"))]),
        result: None,
        golden: false,
        intent: IntentFit::Unchecked,
        excluded_from_learning: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    let (tell, told) = std::sync::mpsc::channel();
    place.store().store_memory(memory, Urgency::Soon, move |stored| tell.send(stored).unwrap());
    told.recv().unwrap().unwrap();
}

#[test]
fn intents_that_were_learned_wrongly_before_are_dropped_in_the_background() {
    let mut place = place();
    let first = place.run(CASES[0].intent, CASES[0].code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let right = "mean salary of Engineering according to data/staff.csv";
    learned_before(&place, &id, right, 1);
    let wrong = "average salary of the Sales department in data/staff.csv";
    learned_before(&place, &id, wrong, 2);
    learned_before(&place, &id, "average salary in data/staff.csv", 3);
    place.restart();
    let intents = |place: &Place| -> Vec<String> {
        let mut intents: Vec<String> =
            place.capability_of(&id).intents.into_iter().map(|intent| intent.text).collect();
        intents.sort();
        intents
    };
    eventually("what contradicts is dropped", || intents(&place) == [CASES[0].intent, right]);
    assert_eq!(
        place.store().capabilities_with_unchecked_intents(pml_analysis::ANALYSIS_VERSION, 10).unwrap(),
        []
    );
    let told = place.wish(wrong);
    assert_eq!(told["status"], "suggestions", "{told}");
    assert_eq!(place.home.run(&["learn", "rebuild"]).code, 0);
    assert_eq!(intents(&place), [CASES[0].intent, right], "nor does learning it all anew bring them back");
    let told = place.wish(right);
    assert_eq!(told["result"], 100, "{told}");
}

#[test]
fn what_was_learned_wrongly_is_taken_back_by_hand() {
    let mut place = place();
    let first = place.run(CASES[1].intent, CASES[1].code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let wrong = "biggest 2 in data/parcels.json";
    let context = json!({ "path": "data/parcels.json" });
    assert_eq!(by_id(&mut place, &id, wrong, &context)["status"], "success");
    place.settled();
    assert_eq!(place.wish(wrong)["status"], "success");
    let forgotten = place.home.run(&["capabilities", "forget-intent", &id, wrong]);
    assert_eq!(forgotten.code, 0, "{}", forgotten.stderr);
    assert!(forgotten.stdout.contains("no longer serves"), "{}", forgotten.stdout);
    assert_eq!(place.wish(wrong)["status"], "suggestions");
    assert_eq!(by_id(&mut place, &id, wrong, &context)["status"], "success", "it can still be named");
    assert_eq!(place.home.run(&["learn", "rebuild"]).code, 0);
    assert_eq!(place.wish(wrong)["status"], "suggestions", "what was taken back stays away");
    let unknown = place.home.run(&["capabilities", "forget-intent", &id, "something else"]);
    assert!(unknown.code == 1 && unknown.stderr.contains(CASES[1].intent), "{}", unknown.stderr);
}

#[test]
fn an_intent_is_taken_back_over_http_too() {
    let mut place = place();
    let first = place.run(CASES[0].intent, CASES[0].code, &json!({}));
    let id = first["capabilityId"].as_str().unwrap().to_owned();
    let served = place.home.serve(&[]);
    let path = format!("/api/capabilities/{id}/forget-intent");
    let (status, told) = api(&served, "POST", &path, Some(json!({ "intent": CASES[0].intent })));
    assert_eq!((status, &told["capability"]["intents"]), (200, &json!([])), "{told}");
    let (status, told) = api(&served, "POST", &path, Some(json!({ "intent": CASES[0].intent })));
    assert_eq!((status, told["error"]["code"].as_str()), (404, Some("NOT_FOUND")), "{told}");
}

#[test]
fn a_question_is_not_taken_for_an_order() {
    let mut place = place();
    let code = "const f = await mcp.fs.read({ path: 'logs/app.log' }); return f.content.includes('ok');";
    assert_eq!(place.run("is the log logs/app.log clean", code, &json!({}))["status"], "success");
    assert_eq!(place.wish("is the log logs/app.log clean")["status"], "success");
    let order = place.wish("clean the log logs/app.log");
    assert_eq!(order["status"], "suggestions", "{order}");
}
