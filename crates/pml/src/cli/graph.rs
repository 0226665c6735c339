//! `pml graph`: prints the graph of tools and capabilities.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use pml_model::name::printable;
use pml_model::trace::is_operation;
use serde_json::json;

use super::{CommandContext, out};
use crate::app::ProcessRole;
use crate::flow;
use crate::knowledge::graph::{GraphView, GraphViewEdge, GraphViewNode, GraphViewPath};
use crate::problem::Problem;

/// The number of members of a community that are named.
const NAMED: usize = 8;

/// Arguments of `pml graph`.
#[derive(Debug, Args)]
pub(super) struct GraphArgs {
    /// Show paths from this tool or capability
    #[arg(long, requires = "to")]
    from: Option<String>,
    /// Show paths to this tool or capability
    #[arg(long, requires = "from")]
    to: Option<String>,
    /// The number of communities and edges
    #[arg(long, default_value_t = 10)]
    limit: usize,
}

pub(super) async fn graph(here: &CommandContext, graph: GraphArgs) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let told = match (&graph.from, &graph.to) {
        (Some(from), Some(to)) => {
            flow::find_graph_paths(&app, &app.principal, from, to).await.map(GraphOutput::Ways)
        }
        _ => flow::graph(&app, &app.principal).await.map(GraphOutput::Whole),
    };
    app.close().await;
    match told? {
        GraphOutput::Ways(ways) if here.json => out::json(&json!({ "ways": ways })),
        GraphOutput::Whole(view) if here.json => out::json(&view),
        GraphOutput::Ways(ways) => print_ways(&ways),
        GraphOutput::Whole(view) => print_graph(&view, graph.limit),
    }
    Ok(ExitCode::SUCCESS)
}

enum GraphOutput {
    Whole(GraphView),
    Ways(Vec<GraphViewPath>),
}

fn print_ways(ways: &[GraphViewPath]) {
    if ways.is_empty() {
        out::note("nothing leads from the one to the other");
    }
    for way in ways {
        let through: Vec<String> = way.through.iter().map(|name| printable(name)).collect();
        out::line(format!("{} {}{:.2}{}", through.join(" → "), out::DIM, way.cost, out::RESET));
        for edge in &way.edges {
            let ends = format!("{} → {}", printable(&edge.from), printable(&edge.to));
            out::line(format!("  {ends} {}{}{}{}", out::DIM, edge.kind, out::RESET, mapped(edge)));
        }
    }
}

fn print_graph(view: &GraphView, limit: usize) {
    let number = |kind: &str| view.nodes.iter().filter(|node| node.kind == kind).count();
    let (tools, capabilities, operations) = (number("tool"), number("capability"), number("operation"));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in &view.edges {
        *kinds.entry(edge.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    let computed = if operations == 0 { String::new() } else { format!(", {operations} pure operations") };
    out::line(format!("{tools} tools, {capabilities} capabilities{computed}; edges: {}", none_or(&kinds)));
    let mut communities: BTreeMap<usize, Vec<&GraphViewNode>> = BTreeMap::new();
    for node in &view.nodes {
        if let Some(community) = node.community {
            communities.entry(community).or_default().push(node);
        }
    }
    let mut communities: Vec<Vec<&GraphViewNode>> =
        communities.into_values().filter(|of| of.len() > 1).collect();
    communities.sort_by_key(|of| std::cmp::Reverse(of.len()));
    for mut of in communities.into_iter().take(limit) {
        of.sort_by(|one, other| other.importance.total_cmp(&one.importance));
        let mut names: Vec<String> = of.iter().take(NAMED).map(|node| printable(&node.name)).collect();
        if of.len() > NAMED {
            names.push(format!("and {} more", of.len() - NAMED));
        }
        out::line(format!("{}together{} {}", out::BOLD, out::RESET, names.join(", ")));
    }
    let mut edges: Vec<_> = view.edges.iter().collect();
    // Edges between tools come before edges of operations that programs compute in between.
    let computed = |edge: &GraphViewEdge| is_operation(&edge.from) || is_operation(&edge.to);
    edges.sort_by(|one, other| {
        let by_weight = other.weight.total_cmp(&one.weight).then(other.count.cmp(&one.count));
        computed(one).cmp(&computed(other)).then(by_weight)
    });
    for edge in edges.into_iter().take(limit) {
        out::line(format!(
            "{} → {} {}{} {:.2}{}{}",
            name(view, &edge.from),
            name(view, &edge.to),
            out::DIM,
            edge.kind,
            edge.weight,
            out::RESET,
            mapped(edge)
        ));
    }
}

/// The mapping from result fields to arguments, in brackets.
fn mapped(edge: &GraphViewEdge) -> String {
    let mapped: Vec<String> = edge
        .mapping
        .iter()
        .map(|mapping| {
            let from = if mapping.from.is_empty() { "the result" } else { &mapping.from };
            format!("{} → {}", printable(from), printable(&mapping.to))
        })
        .collect();
    if mapped.is_empty() { String::new() } else { format!(" ({})", mapped.join(", ")) }
}

fn name(view: &GraphView, id: &str) -> String {
    let node = view.nodes.iter().find(|node| node.id == id);
    printable(node.map_or(id, |node| &node.name))
}

fn none_or(kinds: &[String]) -> String {
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}
