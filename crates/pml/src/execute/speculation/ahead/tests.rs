//! What is read ahead of programs, as they advance.

use pml_model::ServerName;
use serde_json::json;

use super::*;
use crate::epoch::WriteReach;
use crate::execute::speculation::outlook::{CallEffects, CalledTool};

/// Tools by name: `read…` reads, `web…` reaches a network, `get…` only reads and is left alone, all others may change
/// something. Those of the server `alone` change nothing elsewhere.
struct ByName {
    servers: [ServerName; 2],
    effects: [ToolEffect; 5],
}

impl ByName {
    fn new() -> ByName {
        let servers = ["s", "alone"].map(|name| ServerName::new(name).unwrap());
        let effects = [
            ToolEffect::ReadsClosed,
            ToolEffect::ReadsOpen,
            ToolEffect::ReadsOnly,
            ToolEffect::MayChange(WriteReach::Everywhere),
            ToolEffect::MayChange(WriteReach::Only(servers[1].clone())),
        ];
        ByName { servers, effects }
    }
}

impl CallEffects for ByName {
    fn tool(&self, tool: &str) -> Option<CalledTool<'_>> {
        let (server, name) = tool.split_once(':')?;
        let server = self.servers.iter().find(|known| known.as_str() == server)?;
        let effect = match name {
            name if name.starts_with("read") => 0,
            name if name.starts_with("web") => 1,
            name if name.starts_with("get") => 2,
            _ if server.as_str() == "s" => 3,
            _ => 4,
        };
        Some(CalledTool { handle: effect, server, effect: &self.effects[effect as usize] })
    }

    fn capability_writes(&self, name: &str) -> Vec<WriteReach> {
        match name {
            name if name.starts_with("read") => Vec::new(),
            name if name.starts_with("alone") => vec![WriteReach::Only(self.servers[1].clone())],
            _ => vec![WriteReach::Everywhere],
        }
    }
}

/// A program that is followed step by step.
struct Followed(RunAhead);

impl Followed {
    fn new(source: &str, arguments: &Value) -> Option<Followed> {
        let catalogue = pml_analysis::AnalysisCatalogue::default();
        let structure = pml_analysis::analyse(source, &catalogue).unwrap().structure;
        let arguments = pml_model::json::raw(arguments);
        Outlook::new(&structure, &ByName::new())
            .map(|outlook| Followed(RunAhead::new(outlook, &arguments, 8, OutcomeShares::default())))
    }

    fn issue(mut self, node: &str, arguments: &Value) -> Followed {
        self.held_by(node, arguments);
        self
    }

    /// Issues a call, and gives the call for which it was not made ahead.
    fn held_by(&mut self, node: &str, arguments: &Value) -> Option<String> {
        self.0.on_issued(id(node), &arguments.to_string()).map(|node| node.to_string())
    }

    fn give(mut self, node: &str, result: &Value) -> Followed {
        self.0.on_result(id(node), &result.to_string());
        self
    }

    fn decide(mut self, node: &str, outcome: &str) -> Followed {
        self.0.on_decided(id(node), outcome);
        self
    }

    /// The arguments of the reads to make now; those of undecided branches with a question mark.
    fn reads(&mut self) -> Vec<String> {
        self.reads_of(100)
    }

    fn reads_of(&mut self, most: usize) -> Vec<String> {
        let shown = |read: ReadAhead| match read.confidence >= CERTAIN {
            true => read.arguments,
            false => format!("{}?", read.arguments),
        };
        self.take_reads(most, |_| true).into_iter().map(shown).collect()
    }

    fn take_reads(&mut self, most: usize, admitted: impl Fn(f64) -> bool) -> Vec<ReadAhead> {
        let mut reads = Vec::new();
        self.0.offer_reads(|read| {
            if reads.len() == most {
                return ReadOffer::Full;
            }
            if !admitted(read.confidence) {
                return ReadOffer::NotNow;
            }
            reads.push(read.clone());
            ReadOffer::Taken
        });
        reads
    }

    /// The arguments of the reads that were made and are for nothing.
    fn passed(&mut self) -> Vec<String> {
        self.0.take_passed().into_iter().map(|(_, arguments)| arguments).collect()
    }
}

fn id(node: &str) -> NodeId {
    NodeId::try_from(node.to_owned()).unwrap()
}

fn follow(source: &str) -> Followed {
    Followed::new(source, &json!({})).expect("there is something to read ahead")
}

#[test]
fn independent_reads_are_made_at_once_and_only_once() {
    let mut run = follow("await mcp.s.read({p: 1}); await mcp.s.read({p: 2}); await mcp.s.read({p: 3});")
        .issue("n1", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":2}"#, r#"{"p":3}"#]);
    assert!(run.reads().is_empty());
}

#[test]
fn a_reference_is_resolved_when_its_result_is_there() {
    let source = "const a = await mcp.s.read({p: 1}); await mcp.s.read({p: 2}); await mcp.s.read({p: a.next, q: `x${a.next}`});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":2}"#]);
    let mut run = run.give("n1", &json!({"next": 7})).issue("n2", &json!({"p": 2}));
    assert_eq!(run.reads(), [r#"{"p":7,"q":"x7"}"#]);
}

#[test]
fn nothing_is_read_past_a_call_that_may_change_it() {
    let source = "await mcp.s.read({p: 1}); await mcp.s.write({p: 2}); await mcp.s.read({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert!(run.reads().is_empty());
    let mut run = run.issue("n2", &json!({"p": 2}));
    assert_eq!(run.reads(), [r#"{"p":3}"#], "the driver waits for the call to end");
}

#[test]
fn a_capability_that_may_change_something_is_a_barrier_and_one_that_reads_is_not() {
    let source = |name: &str| {
        format!("await mcp.s.read({{p: 1}}); await capabilities.{name}({{}}); await mcp.s.read({{p: 3}});")
    };
    let mut writes = follow(&source("doIt")).issue("n1", &json!({"p": 1}));
    assert!(writes.reads().is_empty());
    writes.0.on_reached(id("n2"));
    assert!(writes.reads().is_empty(), "what it does is not over when it begins");
    let mut reads = follow(&source("readIt")).issue("n1", &json!({"p": 1}));
    assert_eq!(reads.reads(), [r#"{"p":3}"#]);
}

#[test]
fn what_an_isolated_server_changes_is_a_barrier_for_its_own_reads_alone() {
    let source = "await mcp.s.read({p: 1}); await mcp.alone.write({}); await mcp.s.read({p: 2}); await mcp.alone.read({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":2}"#]);
    let mut run = run.issue("n2", &json!({}));
    assert_eq!(run.reads(), [r#"{"p":3}"#]);
    let source = "await mcp.s.read({p: 1}); await capabilities.aloneWrites({}); await mcp.alone.read({p: 2}); await mcp.s.read({p: 3});";
    assert_eq!(follow(source).issue("n1", &json!({"p": 1})).reads(), [r#"{"p":3}"#]);
}

#[test]
fn a_barrier_in_a_branch_that_was_not_taken_is_no_barrier() {
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) { await mcp.s.write({}); } await mcp.s.read({p: 2}); await mcp.s.read({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert!(run.reads().is_empty());
    let mut run = run.decide("d1", "false").issue("n3", &json!({"p": 2}));
    assert_eq!(run.reads(), [r#"{"p":3}"#]);
}

#[test]
fn the_items_of_a_known_list_are_read_in_order_up_to_the_limit() {
    let source = "for (const p of args.paths) { await mcp.s.read({p}); }";
    let mut run = Followed::new(source, &json!({"paths": ["a", "b", "c", "d"]}))
        .unwrap()
        .issue("n1", &json!({"p": "a"}));
    assert_eq!(run.reads_of(2), [r#"{"p":"b"}"#, r#"{"p":"c"}"#]);
    let mut run = run.issue("n1", &json!({"p": "b"}));
    assert_eq!(run.reads_of(2), [r#"{"p":"d"}"#]);
    assert!(run.reads().is_empty());
}

#[test]
fn items_that_were_skipped_are_not_read_later() {
    let source = "for (const p of args.paths) { await mcp.s.read({p}); }";
    let mut run = Followed::new(source, &json!({"paths": ["a", "b", "c", "d"]})).unwrap();
    assert_eq!(run.reads_of(1), [r#"{"p":"a"}"#]);
    let mut run = run.issue("n1", &json!({"p": "c"}));
    assert_eq!(run.reads(), [r#"{"p":"d"}"#]);
}

#[test]
fn a_loop_that_changes_something_is_not_read_ahead() {
    let source = "for (const p of args.paths) { await mcp.s.read({p}); await mcp.s.write({p}); }";
    let run = Followed::new(source, &json!({"paths": ["a", "b"]})).unwrap();
    assert!(run.issue("n1", &json!({"p": "a"})).reads().is_empty());
}

#[test]
fn an_undecided_branch_is_less_certain_and_a_decided_one_is_certain_or_over() {
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) { await mcp.s.read({p: 2}); } else { await mcp.s.read({p: 3}); }";
    let mut undecided = follow(source).issue("n1", &json!({"p": 1}));
    assert_eq!(undecided.reads(), [r#"{"p":2}?"#, r#"{"p":3}?"#]);
    let mut decided = follow(source).issue("n1", &json!({"p": 1})).decide("d1", "false");
    assert_eq!(decided.reads(), [r#"{"p":3}"#]);
}

#[test]
fn a_branch_within_a_branch_is_less_likely_and_one_that_was_always_taken_is_likely() {
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) { if (a.y) { await mcp.s.read({p: 2}); } }";
    let confidence = |mut run: Followed| {
        run.0.on_issued(id("n1"), r#"{"p":1}"#);
        run.take_reads(1, |_| true)[0].confidence
    };
    assert!((confidence(follow(source)) - 0.25).abs() < 1e-9);
    let mut run = follow(source);
    for decision in ["d1", "d2"] {
        run.0.shares.add(id(decision), &always_true(id(decision), 96));
    }
    assert!((confidence(run) - CERTAIN).abs() < 1e-9);
}

fn always_true(node: NodeId, count: u64) -> pml_model::learning::DecisionStats {
    let seen = pml_model::learning::OutcomeStats { count, success_rate: 1.0 };
    let outcomes = std::iter::once(("true".to_owned(), seen)).collect();
    pml_model::learning::DecisionStats { node_id: node, condition: String::new(), outcomes }
}

#[test]
fn a_read_that_was_not_sure_enough_is_made_once_it_is() {
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) return; await mcp.s.read({p: 2}); await mcp.s.read({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert!(run.take_reads(100, |confidence| confidence >= CERTAIN).is_empty());
    let mut run = run.decide("d1", "false").issue("n2", &json!({"p": 2}));
    assert_eq!(run.reads(), [r#"{"p":3}"#]);
}

#[test]
fn a_capability_that_may_change_something_is_a_barrier_until_it_returns() {
    let source = "await capabilities.doIt({}); await mcp.s.read({p: 1}); await mcp.s.read({p: 2});";
    let mut run = follow(source);
    run.0.on_reached(id("n1"));
    assert!(run.reads().is_empty(), "its calls are not in the structure");
    let mut run = run.issue("n2", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":2}"#]);
}

#[test]
fn a_tool_that_reaches_a_network_is_not_called_for_undecided_branches_or_with_results() {
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) { await mcp.s.web({p: 2}); } await mcp.s.web({p: a.url}); await mcp.s.web({p: 4});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":4}"#]);
    let mut run =
        run.give("n1", &json!({"x": 1, "url": "u"})).decide("d1", "true").issue("n2", &json!({"p": 2}));
    assert!(run.reads().is_empty());
}

#[test]
fn at_most_so_many_reads_are_made_for_undecided_branches() {
    let branch = |n: usize| format!("if (a.x{n}) {{ await mcp.s.read({{p: {n}}}); }}");
    let source: String = std::iter::once("const a = await mcp.s.read({p: 0});".to_owned())
        .chain((1..20).map(branch))
        .collect();
    let mut run = follow(&source).issue("n1", &json!({"p": 0}));
    assert_eq!(run.reads().len(), 8);
    assert!(run.reads().is_empty());
}

#[test]
fn handlers_and_loops_without_known_items_are_left_alone() {
    for source in [
        "try { await mcp.s.write({}); } catch { await mcp.s.read({p: 1}); }",
        "let more = true; while (more) { more = (await mcp.s.read({p: 1})).more; }",
        "await mcp.s.get({p: 1}); await mcp.s.get({p: 2});",
        "await mcp.s.read({p: 1});",
        "const a = await mcp.s.write({}); await mcp.s.read({p: a.x + 1});",
    ] {
        let nothing = Followed::new(source, &json!({})).is_none_or(|mut run| run.reads().is_empty());
        assert!(nothing, "{source}");
    }
}

#[test]
fn what_the_program_passed_by_is_over() {
    let source =
        "const a = await mcp.s.read({p: 1}); if (a.x) { await mcp.s.read({p: 2}); } await mcp.s.get({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1})).issue("n3", &json!({"p": 3}));
    assert!(run.reads().is_empty());
}

#[test]
fn reads_that_the_program_has_passed_or_will_not_reach_are_for_nothing() {
    let source = "for (const p of args.paths) { const r = await mcp.s.read({p}); if (r.hit) break; } await mcp.s.get({q: 1}); await mcp.s.read({q: 2});";
    let mut run =
        Followed::new(source, &json!({"paths": ["a", "b", "c"]})).unwrap().issue("n1", &json!({"p": "a"}));
    assert_eq!(run.reads(), [r#"{"p":"b"}"#, r#"{"p":"c"}"#, r#"{"q":2}"#]);
    assert!(run.passed().is_empty(), "the loop may go on");
    let mut run = run.issue("n1", &json!({"p": "b"})).issue("n2", &json!({"q": 1}));
    assert_eq!(run.passed(), [r#"{"p":"c"}"#]);
    assert!(run.passed().is_empty() && run.reads().is_empty());
    let source = "const a = await mcp.s.read({p: 1}); if (a.x) { await mcp.s.read({p: 2}); } else { await mcp.s.read({p: 3}); }";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert_eq!(run.reads(), [r#"{"p":2}?"#, r#"{"p":3}?"#]);
    let mut run = run.decide("d1", "false");
    assert_eq!(run.passed(), [r#"{"p":2}"#]);
}

#[test]
fn a_read_for_which_there_is_no_room_is_offered_again() {
    let source = "await mcp.s.read({p: 1}); await mcp.s.read({p: 2}); await mcp.s.read({p: 3}); await mcp.s.read({p: 4});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert!(run.take_reads(100, |_| false).is_empty());
    assert_eq!(run.reads_of(1), [r#"{"p":2}"#]);
    assert_eq!(run.reads(), [r#"{"p":3}"#, r#"{"p":4}"#]);
    assert!(run.reads().is_empty());
}

#[test]
fn after_a_sleep_reads_are_made_again_once_and_in_loops_not_at_all() {
    let source =
        "await mcp.s.read({p: 1}); await mcp.s.get({}); await mcp.s.read({p: 2}); await mcp.s.read({p: 3});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    let both = [r#"{"p":2}"#, r#"{"p":3}"#];
    assert_eq!(run.reads(), both);
    run.0.on_slept();
    assert_eq!(run.reads(), both);
    run.0.on_slept();
    assert!(run.reads().is_empty(), "it sleeps again and again");
    let source = "for (const p of args.paths) { await mcp.s.read({p}); } await mcp.s.read({p: 'after'});";
    let mut run =
        Followed::new(source, &json!({"paths": ["a", "b"]})).unwrap().issue("n1", &json!({"p": "a"}));
    assert_eq!(run.reads(), [r#"{"p":"b"}"#, r#"{"p":"after"}"#]);
    run.0.on_slept();
    assert_eq!(run.reads(), [r#"{"p":"after"}"#]);
}

#[test]
fn a_read_that_was_held_back_names_the_call_before_it() {
    let source = "await mcp.s.read({p: 1}); await mcp.s.write({p: 2}); await mcp.s.read({p: 3}); await mcp.s.read({p: 4});";
    let mut run = follow(source).issue("n1", &json!({"p": 1}));
    assert!(run.reads().is_empty());
    assert_eq!(run.held_by("n2", &json!({"p": 2})), None);
    assert_eq!(run.held_by("n3", &json!({"p": 3})), Some("n2".to_owned()));
    assert_eq!(run.reads(), [r#"{"p":4}"#]);
    assert_eq!(run.held_by("n4", &json!({"p": 4})), None, "it was made ahead");
    let mut first =
        follow("await mcp.s.write({p: 1}); await mcp.s.read({p: 2});").issue("n1", &json!({"p": 1}));
    first.0.on_changes_under_way(&[id("n1")]);
    assert_eq!(first.held_by("n2", &json!({"p": 2})), Some("n1".to_owned()));
}
