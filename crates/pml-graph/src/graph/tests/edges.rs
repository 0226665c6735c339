//! The typed graph: weights, evidence in any order, changes of one tool, and derived results.

use super::super::closeness::closest_nodes;
use super::super::edges::{EdgeSource, EdgeType, GraphNodeKind, TypedGraph};
use super::super::insights::{GraphInsights, capability_groups};
use super::super::provides::ProvidesIndex;
use super::*;

fn with_tools(ids: &[&str]) -> TypedGraph {
    let mut graph = TypedGraph::default();
    ids.iter().for_each(|id| graph.insert_node(id, GraphNodeKind::Tool));
    graph
}

#[test]
fn an_edge_weighs_by_type_and_source() {
    let mut graph = with_tools(&["a", "b"]);
    for (kind, source, expected) in [
        (EdgeType::Dependency, EdgeSource::Inferred, 0.7),
        (EdgeType::Contains, EdgeSource::Inferred, 0.8 * 0.7),
        (EdgeType::Provides, EdgeSource::Inferred, 0.7 * 0.7),
        (EdgeType::Sequence, EdgeSource::Template, 0.25),
    ] {
        graph.suppose_edge("a", "b", kind, source);
        let edges = graph.edges_between("a", "b");
        let edge = edges.iter().find(|edge| edge.kind == kind).expect("it was put in");
        assert!((edge.weight() - expected).abs() < 1e-12, "{edge:?}");
    }
    graph.observe_edge("b", "a", EdgeType::Dependency, 1);
    assert!((graph.edges_between("b", "a")[0].weight() - 1.0).abs() < 1e-12);
}

#[test]
fn a_supposed_edge_is_observed_when_seen_three_times() {
    let mut graph = with_tools(&["a", "b"]);
    graph.suppose_edge("a", "b", EdgeType::Dependency, EdgeSource::Inferred);
    for (times, expected) in [(1, EdgeSource::Inferred), (1, EdgeSource::Inferred), (1, EdgeSource::Observed)]
    {
        graph.observe_edge("a", "b", EdgeType::Dependency, times);
        assert_eq!(graph.edges_between("a", "b")[0].source, expected);
    }
}

#[test]
fn the_order_of_what_is_learned_does_not_matter() {
    let build = |backwards: bool| {
        let mut ids = vec!["c", "a", "b", "x:cap"];
        let mut facts = vec![("a", "b", 1), ("b", "c", 2), ("a", "b", 1), ("x:cap", "a", 0), ("c", "a", 3)];
        if backwards {
            ids.reverse();
            facts.reverse();
        }
        let mut graph = with_tools(&ids);
        graph.insert_node("x:cap", GraphNodeKind::Capability);
        for (from, to, times) in facts {
            match times {
                0 => graph.suppose_edge(from, to, EdgeType::Contains, EdgeSource::Inferred),
                times => graph.observe_edge(from, to, EdgeType::Sequence, times),
            }
        }
        graph
    };
    let (one, other) = (build(false), build(true));
    assert_eq!(one, other);
    assert_eq!(one.snapshot().ids, other.snapshot().ids);
    assert_eq!(one.snapshot().directed, other.snapshot().directed);
    let mut changed = build(true);
    changed.observe_edge("a", "c", EdgeType::Sequence, 1);
    assert_ne!(one, changed);
}

#[test]
fn a_tool_that_changes_changes_its_own_edges_only() {
    let tools = [
        "fs:read(path:string*) -> content:string",
        "json:parse(json:string*) -> data:object",
        "db:find(user_id:string*) -> user_name:string",
        "crm:get_user(email:string*) -> user_id:string",
    ];
    let mut provides = ProvidesIndex::build(tools.map(tool));
    let mut graph = with_tools(&["fs:read", "json:parse", "db:find", "crm:get_user"]);
    let all: Vec<String> = provides.tools().map(|tool| tool.id.clone()).collect();
    graph.update_provides_edges(&provides, &all);
    graph.observe_edge("fs:read", "json:parse", EdgeType::Dependency, 5);
    let before: Vec<String> =
        graph.edges().iter().map(|edge| format!("{} {:?} {}", edge.from, edge.kind, edge.to)).collect();
    assert_eq!(
        before,
        ["crm:get_user Provides db:find", "fs:read Dependency json:parse", "fs:read Provides json:parse"]
    );
    let touched = provides.replace_tool(tool("json:parse(user_id:string*) -> nothing:boolean"));
    graph.update_provides_edges(&provides, &touched);
    let after: Vec<String> =
        graph.edges().iter().map(|edge| format!("{} {:?} {}", edge.from, edge.kind, edge.to)).collect();
    assert_eq!(
        after,
        [
            "crm:get_user Provides db:find",
            "crm:get_user Provides json:parse",
            "fs:read Dependency json:parse"
        ]
    );
    assert!(!touched.contains(&"db:find".to_owned()), "{touched:?}");
}

#[test]
fn nodes_go_with_their_edges() {
    let mut graph = with_tools(&["a", "b", "c"]);
    graph.observe_edge("a", "b", EdgeType::Sequence, 1);
    graph.observe_edge("b", "c", EdgeType::Sequence, 1);
    let version = graph.version();
    assert!(graph.remove_node("b"));
    assert!(!graph.remove_node("b"));
    assert!(graph.edges().is_empty());
    assert_ne!(graph.version(), version);
    graph.observe_edge("a", "b", EdgeType::Sequence, 1);
    assert!(graph.edges().is_empty(), "an edge to nobody is none");
    graph.insert_node("b", GraphNodeKind::Tool);
    assert!(graph.edges().is_empty());
}

#[test]
fn insights_are_made_again_when_the_graph_changed() {
    let mut graph = with_tools(&["a", "b", "c"]);
    graph.observe_edge("a", "b", EdgeType::Dependency, 1);
    let mut insights = GraphInsights::compute(&graph);
    assert!(!insights.refresh(&graph));
    let before = insights.importance("c");
    graph.observe_edge("b", "c", EdgeType::Dependency, 1);
    assert!(insights.refresh(&graph));
    assert!(insights.importance("c") > before);
    assert_eq!(insights.community("a"), insights.community("b"));
    assert!(insights.importance("nobody").abs() < 1e-12);
}

#[test]
fn what_follows_is_close_and_says_why() {
    let mut graph = with_tools(&["fs:read", "json:parse", "http:post", "fs:write", "mail:send"]);
    graph.observe_edge("fs:read", "json:parse", EdgeType::Dependency, 4);
    graph.observe_edge("json:parse", "http:post", EdgeType::Sequence, 1);
    graph.suppose_edge("fs:read", "mail:send", EdgeType::Provides, EdgeSource::Inferred);
    graph.observe_edge("fs:write", "json:parse", EdgeType::Sequence, 2);
    let found: Vec<String> = closest_nodes(&graph, &graph.snapshot(), &["fs:read"])
        .into_iter()
        .map(|close| format!("{} {:.2} {}", close.id, close.score, close.reason))
        .collect();
    assert_eq!(
        found,
        [
            "json:parse 1.00 used results of `fs:read` (4 times)",
            "mail:send 0.24 can take what `fs:read` gives",
            "fs:write 0.16 has much in common with `fs:read`",
            "http:post 0.16 has much in common with `fs:read`",
        ]
    );
    assert!(closest_nodes(&graph, &graph.snapshot(), &["nobody"]).is_empty());
}

#[test]
fn what_came_oftener_is_closer() {
    let mut graph = with_tools(&["a", "rare", "often"]);
    graph.observe_edge("a", "rare", EdgeType::Sequence, 1);
    graph.observe_edge("a", "often", EdgeType::Sequence, 9);
    let score = |graph: &TypedGraph, id: &str| {
        let close = closest_nodes(graph, &graph.snapshot(), &["a"]).into_iter().find(|close| close.id == id);
        close.map_or(0.0, |close| close.score)
    };
    assert!((score(&graph, "often") - 0.5).abs() < 1e-9 && score(&graph, "rare") < 0.25);
    graph.observe_edge("a", "rare", EdgeType::Sequence, 8);
    assert!((score(&graph, "rare") - score(&graph, "often")).abs() < 1e-9);
}

#[test]
fn the_most_recent_counts_most_and_scores_are_bounded() {
    let mut graph = with_tools(&["a", "b", "x", "y"]);
    graph.observe_edge("a", "x", EdgeType::Sequence, 1);
    graph.observe_edge("b", "y", EdgeType::Sequence, 1);
    let ids: Vec<String> =
        closest_nodes(&graph, &graph.snapshot(), &["a", "b"]).into_iter().map(|close| close.id).collect();
    assert_eq!(ids, ["y", "x"]);
    for seed in 0..10 {
        let mut random = Random(seed);
        let ids: Vec<String> = (0..12).map(|id| format!("t{id}")).collect();
        let mut graph = with_tools(&ids.iter().map(String::as_str).collect::<Vec<_>>());
        for _ in 0..60 {
            let (from, to) = (random.below(12) as usize, random.below(12) as usize);
            graph.observe_edge(&ids[from], &ids[to], EdgeType::Dependency, 1);
        }
        for close in closest_nodes(&graph, &graph.snapshot(), &["t0", "t1", "t2"]) {
            assert!((0.0..=1.0).contains(&close.score), "{close:?}");
        }
    }
}

#[test]
fn capabilities_that_share_tools_are_grouped() {
    let mut graph = with_tools(&["fs:read", "fs:write", "fs:list", "mail:send", "mail:read", "mail:find"]);
    for (number, server) in [(0, "fs"), (1, "fs"), (2, "fs"), (3, "mail"), (4, "mail"), (5, "mail")] {
        let id = format!("cap{number}");
        graph.insert_node(&id, GraphNodeKind::Capability);
        let third = if server == "fs" { "list" } else { "find" };
        let second = if server == "fs" { "write" } else { "send" };
        for part in ["read", second, third].into_iter().skip(number % 2) {
            graph.suppose_edge(&id, &format!("{server}:{part}"), EdgeType::Contains, EdgeSource::Inferred);
        }
    }
    let (ids, groups) = capability_groups(&graph);
    assert_eq!(ids, ["cap0", "cap1", "cap2", "cap3", "cap4", "cap5"]);
    assert_eq!(groups.of_node, [0, 0, 0, 1, 1, 1]);
}
