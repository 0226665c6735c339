//! `pml graph`: how tools and capabilities hang together.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;
use pml_model::name::printable;
use pml_model::trace::is_operation;
use serde_json::json;

use super::{Here, out};
use crate::app::Role;
use crate::flow;
use crate::knowledge::graph::{Edge, Node, View, Way};
use crate::problem::Problem;

/// How many members of a community are named.
const NAMED: usize = 8;

/// Arguments of `pml graph`.
#[derive(Debug, Args)]
pub(super) struct Graph {
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

pub(super) async fn graph(here: &Here, graph: Graph) -> Result<ExitCode, Problem> {
    let app = here.open(Role::Command).await?;
    let told = match (&graph.from, &graph.to) {
        (Some(from), Some(to)) => flow::ways(&app, &app.principal, from, to).await.map(Told::Ways),
        _ => flow::graph(&app, &app.principal).await.map(Told::All),
    };
    app.close().await;
    match told? {
        Told::Ways(ways) if here.json => out::json(&json!({ "ways": ways })),
        Told::All(view) if here.json => out::json(&view),
        Told::Ways(ways) => tell_ways(&ways),
        Told::All(view) => tell(&view, graph.limit),
    }
    Ok(ExitCode::SUCCESS)
}

enum Told {
    All(View),
    Ways(Vec<Way>),
}

fn tell_ways(ways: &[Way]) {
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

fn tell(view: &View, limit: usize) {
    let number = |kind: &str| view.nodes.iter().filter(|node| node.kind == kind).count();
    let (tools, capabilities, operations) = (number("tool"), number("capability"), number("operation"));
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for edge in &view.edges {
        *kinds.entry(edge.kind).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    let computed = if operations == 0 { String::new() } else { format!(", {operations} pure operations") };
    out::line(format!("{tools} tools, {capabilities} capabilities{computed}; edges: {}", none_or(&kinds)));
    let mut communities: BTreeMap<usize, Vec<&Node>> = BTreeMap::new();
    for node in &view.nodes {
        if let Some(community) = node.community {
            communities.entry(community).or_default().push(node);
        }
    }
    let mut communities: Vec<Vec<&Node>> = communities.into_values().filter(|of| of.len() > 1).collect();
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
    // What tools have to do with each other comes before what programs compute in between.
    let computed = |edge: &Edge| is_operation(&edge.from) || is_operation(&edge.to);
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

/// What becomes what, in brackets.
fn mapped(edge: &Edge) -> String {
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

fn name(view: &View, id: &str) -> String {
    let node = view.nodes.iter().find(|node| node.id == id);
    printable(node.map_or(id, |node| &node.name))
}

fn none_or(kinds: &[String]) -> String {
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}
