//! What comes next on a path from the results at hand, and that it overtakes nothing.

use pml_graph::graph::fields::{FieldsDefinition, ToolFields};
use pml_graph::graph::provides::ProvidesIndex;
use pml_graph::next::paths::{CallableTools, NextOnPath, next_on_paths};
use pml_graph::next::{NextPrediction, NextReason, NextToolCandidate};
use pml_language::Reading;
use serde_json::{Value, json};

/// Tools with their required parameters and result fields; all are texts.
const TOOLS: [(&str, &[&str], &[&str]); 6] = [
    ("find_customer", &["name"], &["customer_id"]),
    ("get_account", &["customer_id"], &["iban"]),
    ("send_invoice", &["iban"], &["invoice_number"]),
    ("close_account", &["iban", "signature"], &[]),
    ("list_currencies", &[], &["currency"]),
    ("delete_customer", &["customer_id"], &[]),
];

fn tool(name: &str) -> u32 {
    (0..).zip(TOOLS).find(|(_, tool)| tool.0 == name).expect("a tool of the list").0
}

fn schema(fields: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "type": "object", "properties": properties, "required": fields })
}

fn provides() -> ProvidesIndex {
    ProvidesIndex::build(TOOLS.iter().map(|(name, inputs, outputs)| {
        ToolFields::from_definition(&FieldsDefinition {
            id: name,
            name,
            description: "",
            input_schema: &schema(inputs),
            output_schema: Some(&schema(outputs)),
        })
    }))
}

fn candidate(name: &str, confidence: f32, reason: NextReason) -> NextToolCandidate {
    NextToolCandidate { tool: tool(name), confidence, reason }
}

/// A prediction of tools that only match the request.
fn asked_for(tools: &[(&str, f32)]) -> NextPrediction {
    let tools: Vec<NextToolCandidate> = tools
        .iter()
        .map(|(name, confidence)| candidate(name, *confidence, NextReason::MatchesRequest))
        .collect();
    let all: f32 = tools.iter().map(|next| next.confidence).sum();
    NextPrediction { tools, done_probability: 1.0 - all }
}

fn find(prediction: &NextPrediction, request: &str, used: &[&str]) -> Vec<NextOnPath> {
    let provides = provides();
    let tools = CallableTools {
        provides: &provides,
        id_of: &|tool| TOOLS[tool as usize].0.to_owned(),
        index_of: &|id| Some(tool(id)),
    };
    let used: Vec<u32> = used.iter().map(|name| tool(name)).collect();
    next_on_paths(prediction, &Reading::of(request), &used, tools)
}

/// `tool < from > towards` of each, best first.
fn render(found: &[NextOnPath]) -> Vec<String> {
    let name = |tool: u32| TOOLS[tool as usize].0;
    let one =
        |next: &NextOnPath| format!("{} < {} > {}", name(next.tool), name(next.from), name(next.towards));
    found.iter().map(one).collect()
}

#[test]
fn a_tool_that_takes_a_result_comes_next() {
    let found = find(&asked_for(&[("send_invoice", 0.6)]), "send the invoice", &["get_account"]);
    assert_eq!(render(&found), ["send_invoice < get_account > send_invoice"]);
    assert!(found[0].fit > 0.3 && found[0].fit < 1.0, "{found:?}");
}

#[test]
fn the_first_call_of_a_longer_path_comes_next() {
    let asked = asked_for(&[("send_invoice", 0.6)]);
    let found = find(&asked, "send the invoice", &["find_customer"]);
    assert_eq!(render(&found), ["get_account < find_customer > send_invoice"]);
    let direct = find(&asked, "send the invoice", &["get_account"]);
    assert!(found[0].fit < direct[0].fit, "a longer path fits less: {found:?} {direct:?}");
}

#[test]
fn a_tool_comes_next_only_if_all_it_requires_is_reached() {
    assert_eq!(render(&find(&asked_for(&[("close_account", 0.6)]), "close it", &["get_account"])), [""; 0]);
}

#[test]
fn a_tool_that_takes_nothing_at_hand_is_on_no_path() {
    let asked = asked_for(&[("list_currencies", 0.6), ("find_customer", 0.2)]);
    assert_eq!(render(&find(&asked, "list the currencies", &["get_account"])), [""; 0]);
    assert_eq!(render(&find(&asked, "list the currencies", &[])), [""; 0]);
}

#[test]
fn a_path_is_a_reason_and_changes_no_order() {
    let observed = NextReason::FollowsOften { times: 1 };
    let tools = vec![
        candidate("list_currencies", 0.5, NextReason::MatchesRequest),
        candidate("delete_customer", 0.12, observed),
        candidate("send_invoice", 0.1, NextReason::MatchesRequest),
    ];
    let before = NextPrediction { tools, done_probability: 0.28 };
    let mut prediction = before.clone();
    prediction.add_paths(&find(&before, "send the invoice", &["get_account", "find_customer"]));
    let told: Vec<(u32, f32)> = prediction.tools.iter().map(|next| (next.tool, next.confidence)).collect();
    assert_eq!(told, before.tools.iter().map(|next| (next.tool, next.confidence)).collect::<Vec<_>>());
    let path = NextReason::Path { from: tool("get_account"), towards: tool("send_invoice") };
    let reasons: Vec<NextReason> = prediction.tools.iter().map(|next| next.reason).collect();
    assert_eq!(reasons, [NextReason::MatchesRequest, observed, path]);
}

#[test]
fn a_tool_that_only_leads_to_another_comes_last() {
    let mut prediction = asked_for(&[("list_currencies", 0.4), ("send_invoice", 0.3)]);
    prediction.add_paths(&find(&prediction, "send the invoice", &["find_customer"]));
    let last = prediction.tools[2];
    let path = NextReason::Path { from: tool("find_customer"), towards: tool("send_invoice") };
    assert_eq!((last.tool, last.reason), (tool("get_account"), path), "{prediction:?}");
    assert!(last.confidence > 0.0 && last.confidence < prediction.tools[1].confidence, "{prediction:?}");
    let all: f32 = prediction.tools.iter().map(|next| next.confidence).sum();
    assert!((all - 0.7).abs() < 1e-6, "{prediction:?}");
}
