//! What memory promises to those who ask for steps, and for the next one.

use pml_graph::next::{NextPrediction, NextReason, predict_next_tools};
use pml_graph::procedure::{
    ProcedureMemory, ProcedureRequest, ProcedureSuggestion, ProcedureTrace, ToolMatch, ToolText,
    catalogue_matches, suggest_procedure,
};

const TOOLS: [(&str, &str); 10] = [
    ("search_flights", "Find flights between two cities"),
    ("book_flight", "Book a flight ticket"),
    ("cancel_flight", "Cancel a booked flight"),
    ("send_email", "Send an email to somebody"),
    ("read_file", "Read a file from disk"),
    ("write_file", "Write text into a file"),
    ("delete_file", "Delete a file from disk"),
    ("set_alarm", "Set an alarm clock"),
    ("translate_text", "Translate text into another language"),
    ("summarize_text", "Summarize a long text"),
];

fn tool(name: &str) -> u32 {
    let at = TOOLS.iter().position(|tool| tool.0 == name);
    u32::try_from(at.expect("a tool of the list")).expect("a small number")
}

fn names(tools: &[u32]) -> String {
    tools.iter().map(|tool| TOOLS[*tool as usize].0).collect::<Vec<_>>().join(" > ")
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() > 2);
    words.map(|word| word.to_lowercase().trim_end_matches('s').to_owned()).collect()
}

/// A vector that is alike for texts with the same words.
fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; 64];
    for word in words(text) {
        let place = word.bytes().fold(7_usize, |sum, byte| (sum * 31 + usize::from(byte)) % 64);
        vector[place] += 1.0;
    }
    vector
}

/// What a catalogue search would say: the share of a tool's name that the request has.
fn offered(text: &str) -> Vec<ToolMatch> {
    let asked = words(text);
    let share = |name: &str| {
        let name = words(&name.replace('_', " "));
        name.iter().filter(|word| asked.contains(word)).count() as f32 / name.len() as f32
    };
    catalogue_matches(&TOOLS.iter().map(|(name, _)| share(name)).collect::<Vec<_>>())
}

fn memory(traces: &[(&str, &str)]) -> ProcedureMemory {
    let mut memory = empty();
    for (intent, steps) in traces {
        let tools: Vec<u32> = steps.split(" > ").map(tool).collect();
        let links: Vec<(usize, usize)> = (1..tools.len()).map(|at| (at - 1, at)).collect();
        learn(&mut memory, intent, &tools, &links);
    }
    memory
}

fn empty() -> ProcedureMemory {
    ProcedureMemory::new(TOOLS.iter().map(|(name, description)| ToolText { name, description }))
}

fn learn(memory: &mut ProcedureMemory, intent: &str, tools: &[u32], links: &[(usize, usize)]) -> usize {
    let (vector, matches) = (vector(intent), offered(intent));
    memory.learn_trace(&ProcedureTrace { intent, vector: Some(&vector), matches: &matches, tools, links })
}

fn ask(memory: &ProcedureMemory, intent: &str) -> ProcedureSuggestion {
    let (vector, matches) = (vector(intent), offered(intent));
    let request = ProcedureRequest { intent, vector: Some(&vector), matches: &matches };
    suggest_procedure(memory, &request).expect("something speaks for a tool")
}

fn after(memory: &ProcedureMemory, intent: &str, used: &[&str]) -> NextPrediction {
    let (vector, matches) = (vector(intent), offered(intent));
    let used: Vec<u32> = used.iter().map(|name| tool(name)).collect();
    predict_next_tools(memory, &ProcedureRequest { intent, vector: Some(&vector), matches: &matches }, &used)
}

const TRAVEL: &[(&str, &str)] = &[
    ("look for flights to Rome and book one", "search_flights > book_flight"),
    ("I want to book a flight to Oslo", "search_flights > book_flight"),
    ("please get me a flight to Paris, book it", "search_flights > book_flight"),
    ("drop my flight to Rome and email my boss", "cancel_flight > send_email"),
    ("translate the letter and email it to Ann", "translate_text > send_email"),
    ("read the report and summarize it", "read_file > summarize_text"),
    ("read the notes, summarize and email them", "read_file > summarize_text > send_email"),
    ("set an alarm for six", "set_alarm"),
];

#[test]
fn what_served_before_serves_again() {
    let memory = memory(TRAVEL);
    let again = ask(&memory, "read the report and summarize it");
    assert_eq!(names(&again.tools), "read_file > summarize_text");
    assert_eq!(again.links, [(0, 1)]);
    assert_eq!(again.repeated_trace, Some(5));
    assert_eq!(again.neighbours[0].trace, 5);
    assert_eq!(again.earlier_procedures[0].trace, 5);
}

#[test]
fn a_similar_request_gets_the_steps_it_did_not_name() {
    let memory = memory(TRAVEL);
    assert_eq!(names(&ask(&memory, "book a flight to Lima").tools), "search_flights > book_flight");
}

#[test]
fn steps_come_in_the_order_the_request_speaks_of_them() {
    let memory = memory(&[
        ("delete the file old.txt", "delete_file"),
        ("write the file new.txt", "write_file"),
        ("delete the file a.txt and write the file b.txt", "delete_file > write_file"),
        ("write the file c.txt and delete the file d.txt", "write_file > delete_file"),
        ("summarize the text", "summarize_text"),
    ]);
    for (request, expected) in [
        ("delete the file x.txt, afterwards write the file y.txt", "delete_file > write_file"),
        ("write the file x.txt, afterwards delete the file y.txt", "write_file > delete_file"),
    ] {
        assert_eq!(names(&ask(&memory, request).tools), expected, "{request}");
    }
}

#[test]
fn steps_that_never_came_together_are_put_together() {
    let memory = memory(&[
        ("translate the text, then send an email", "translate_text > send_email"),
        ("summarize the text, then send an email", "summarize_text > send_email"),
        ("read the file, then set an alarm", "read_file > set_alarm"),
        ("read the file, then write the file", "read_file > write_file"),
    ]);
    let new = ask(&memory, "read the file, then translate the text");
    assert_eq!(names(&new.tools), "read_file > translate_text");
    assert_eq!((new.links.as_slice(), new.repeated_trace), ([(0, 1)].as_slice(), None));
}

#[test]
fn a_tool_that_was_offered_and_not_used_is_not_offered_again() {
    let flights =
        |memory: &ProcedureMemory| names(&ask(memory, "book flight cancel protection to Oslo").tools);
    assert!(flights(&empty()).contains("cancel_flight"));
    let memory = memory(&[
        ("book flight cancel protection to Rome", "book_flight"),
        ("book flight cancel protection to Lima", "book_flight"),
        ("book flight cancel protection to Paris", "book_flight"),
    ]);
    assert_eq!(flights(&memory), "book_flight");
}

#[test]
fn many_copies_of_one_trace_do_not_outvote_a_nearer_one() {
    let mut traces = vec![("email a summary of the plan", "summarize_text > send_email"); 30];
    traces.push(("email the translation of the flight plan", "translate_text > send_email"));
    let memory = memory(&traces);
    let steps = ask(&memory, "email the translation of the flight plan");
    assert_eq!(names(&steps.tools), "translate_text > send_email");
}

#[test]
fn branches_are_kept() {
    let mut memory = memory(TRAVEL);
    let tools = [tool("read_file"), tool("summarize_text"), tool("translate_text"), tool("send_email")];
    let links = [(0, 1), (0, 2), (1, 3), (2, 3)];
    let intent = "read the contract, summarize and translate it, email both";
    for _ in 0..2 {
        learn(&mut memory, intent, &tools, &links);
    }
    let again = ask(&memory, intent);
    assert_eq!((again.tools.as_slice(), again.links.as_slice()), (tools.as_slice(), links.as_slice()));
}

#[test]
fn where_nothing_is_linked_nothing_gets_linked() {
    let mut memory = empty();
    for (intent, tools) in [
        ("set an alarm and send an email", ["set_alarm", "send_email"]),
        ("set an alarm and translate the text", ["set_alarm", "translate_text"]),
        ("read the file and translate the text", ["read_file", "translate_text"]),
    ] {
        learn(&mut memory, intent, &tools.map(tool), &[]);
    }
    let new = ask(&memory, "send an email and read the file");
    assert_eq!(new.repeated_trace, None);
    assert!(new.tools.contains(&tool("send_email")) && new.tools.contains(&tool("read_file")), "{new:?}");
    assert!(new.links.is_empty());
}

#[test]
fn confidence_comes_with_experience() {
    let memory = memory(TRAVEL);
    let intent = "look for flights to Rome and book one";
    let (unknown, known) = (ask(&empty(), intent).confidence, ask(&memory, intent).confidence);
    let strange = ask(&memory, "delete the file that is read at six").confidence;
    assert!(unknown < 0.5 && strange < 0.5 && known > 0.7, "{unknown} {strange} {known}");
}

#[test]
fn without_a_model_what_the_catalogue_offers_is_enough() {
    let mut memory = empty();
    for (intent, steps) in TRAVEL {
        let tools: Vec<u32> = steps.split(" > ").map(tool).collect();
        memory.learn_trace(&ProcedureTrace {
            intent,
            vector: None,
            matches: &offered(intent),
            tools: &tools,
            links: &[],
        });
    }
    let intent = "please book a flight to Madrid";
    let request = ProcedureRequest { intent, vector: None, matches: &offered(intent) };
    let steps = suggest_procedure(&memory, &request).expect("flights were booked before");
    assert_eq!(names(&steps.tools), "search_flights > book_flight");
}

#[test]
fn nothing_is_suggested_where_nothing_is_known() {
    let nothing = ProcedureRequest { intent: "", vector: None, matches: &[] };
    assert_eq!(suggest_procedure(&empty(), &nothing), None);
    assert_eq!(suggest_procedure(&ProcedureMemory::default(), &nothing), None);
    let none = predict_next_tools(&empty(), &nothing, &[]);
    assert_eq!(none, NextPrediction { tools: Vec::new(), done_probability: 1.0 });
}

#[test]
fn odd_input_is_survived() {
    let memory = memory(TRAVEL);
    for vector in [vec![], vec![f32::NAN; 64], vec![0.0; 64], vec![1.0; 3]] {
        let request = ProcedureRequest { intent: "🙂 \u{0} flight", vector: Some(&vector), matches: &[] };
        let confidence = suggest_procedure(&memory, &request).map_or(0.0, |steps| steps.confidence);
        assert!((0.0..=1.0).contains(&confidence));
        assert!(predict_next_tools(&memory, &request, &[9, 9, 9]).done_probability.is_finite());
    }
    assert_eq!(catalogue_matches(&[]), []);
    assert_eq!(catalogue_matches(&[f32::NAN, -1.0, 0.0]), []);
    assert_eq!(catalogue_matches(&[0.1, f32::NAN, 3.0])[0].tool, 2);
    assert_eq!(catalogue_matches(&vec![1.0; 2000]).len(), 16);
}

#[test]
fn what_followed_for_similar_intents_comes_next() {
    let memory = memory(TRAVEL);
    let found = after(&memory, "read the minutes and summarize them", &["read_file"]);
    assert_eq!(found.tools[0].tool, tool("summarize_text"));
    assert!(matches!(found.tools[0].reason, NextReason::SimilarRequests { trace: 5 | 6 }), "{found:?}");
    let first = after(&memory, "book a flight to Bonn", &[]);
    assert_eq!((first.tools[0].tool, first.done_probability), (tool("search_flights"), 0.0));
}

#[test]
fn what_follows_in_general_takes_over_where_nothing_is_similar() {
    let mut traces = vec![("translate the text and email it", "translate_text > send_email"); 3];
    traces.extend([("set an alarm", "set_alarm"); 110]);
    let memory = memory(&traces);
    let found = after(&memory, "set an alarm", &["set_alarm", "translate_text"]);
    let email = found.tools.iter().find(|next| next.tool == tool("send_email")).expect("it followed before");
    assert_eq!(email.reason, NextReason::FollowsOften { times: 3 });
}

#[test]
fn what_the_request_asks_for_comes_next_where_nothing_was_learned() {
    let found = after(&empty(), "read the file and translate the text", &["read_file"]);
    assert_eq!(
        (found.tools[0].tool, found.tools[0].reason),
        (tool("translate_text"), NextReason::MatchesRequest)
    );
}

#[test]
fn a_tool_comes_next_again_where_it_usually_does() {
    let mut often = empty();
    let mut once = empty();
    for name in ["ann", "bob", "eve", "joe"] {
        let intent = format!("collect the notes of {name}");
        let steps: Vec<u32> =
            ["read_file", "read_file", "read_file", "write_file"].into_iter().map(tool).collect();
        learn(&mut often, &intent, &steps, &[(0, 3), (1, 3), (2, 3)]);
        learn(&mut once, &intent, &steps[2..], &[(0, 1)]);
    }
    let first = |memory: &ProcedureMemory, used: &[&str]| {
        TOOLS[after(memory, "collect the notes of sue", used).tools[0].tool as usize].0
    };
    assert_eq!(first(&often, &["read_file"]), "read_file");
    assert_eq!(first(&often, &["read_file", "read_file", "read_file"]), "write_file");
    assert_eq!(first(&once, &["read_file"]), "write_file");
}

#[test]
fn the_end_is_seen() {
    let memory = memory(TRAVEL);
    let intent = "look for flights to Bern and book one";
    let going = after(&memory, intent, &["search_flights"]).done_probability;
    let done = after(&memory, intent, &["search_flights", "book_flight"]).done_probability;
    assert!(going < 0.4 && done > 0.6, "{going} {done}");
    let all = after(&memory, intent, &["search_flights"]);
    let sum: f32 = all.done_probability + all.tools.iter().map(|next| next.confidence).sum::<f32>();
    assert!((sum - 1.0).abs() < 1e-4, "{sum}");
}

#[test]
fn the_same_memory_always_answers_the_same() {
    let (one, other) = (memory(TRAVEL), memory(TRAVEL));
    for intent in ["book a flight and email it", "summarize the text", "file"] {
        assert_eq!(ask(&one, intent), ask(&other, intent));
        assert_eq!(after(&one, intent, &["send_email"]), after(&other, intent, &["send_email"]));
    }
}
