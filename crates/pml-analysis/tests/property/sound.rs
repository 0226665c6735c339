//! What is true of every analysis, whatever the program.

use std::collections::{HashMap, HashSet};

use pml_analysis::{Analysis, InstrumentedProgram, Parameters};
use pml_model::structure::{Argument, EdgeLink, NodeId, Position, Structure};

/// Why `analysis` cannot be one of `source`.
pub(crate) fn sound(analysis: &Analysis, source: &str) -> Result<(), String> {
    structure(&analysis.structure, source, Order::Program)?;
    program(&analysis.program, &analysis.structure, source)?;
    let complaints = analysis.complaints.iter().map(|complaint| complaint.at);
    let opaque = analysis.permissions.opaque.iter().map(|remark| remark.at);
    let ambient = analysis.permissions.ambient.iter().map(|remark| remark.at);
    for at in complaints.chain(opaque).chain(ambient) {
        position(at, source)?;
    }
    literals(&analysis.parameters, &analysis.structure, source)?;
    for complaint in &analysis.complaints {
        complaint.node.map_or(Ok(()), |node| exists(&analysis.structure, node))?;
    }
    Ok(())
}

/// Why these literals are not in `source`, or are none of the nodes' arguments.
pub(crate) fn literals(parameters: &Parameters, structure: &Structure, source: &str) -> Result<(), String> {
    for literal in &parameters.literals {
        literal.written.iter().try_for_each(|at| position(*at, source))?;
        literal.fills.iter().try_for_each(|filled| exists(structure, filled.node))?;
    }
    Ok(())
}

/// What the order of nodes means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// What is referred to comes first, unless it flows around a loop.
    Program,
    /// Nothing.
    #[allow(dead_code, reason = "not every test has documents")]
    Document,
}

/// Why `structure` is not one.
pub(crate) fn structure(structure: &Structure, source: &str, meaning: Order) -> Result<(), String> {
    let mut order: HashMap<NodeId, usize> = HashMap::new();
    for (index, node) in structure.nodes.iter().enumerate() {
        if order.insert(node.id, index).is_some() {
            return Err(format!("node `{}` is there twice", node.id));
        }
        position(node.at, source)?;
    }
    let mut later: HashSet<(NodeId, NodeId)> = HashSet::new();
    for edge in &structure.edges {
        exists(structure, edge.from)?;
        exists(structure, edge.to)?;
        if let EdgeLink::Provides { around, .. } = edge.link {
            around.map_or(Ok(()), |round| exists(structure, round))?;
            // A function that is come to again may be given what comes later; the edge says so.
            later.insert((edge.from, edge.to));
        }
    }
    for (index, node) in structure.nodes.iter().enumerate() {
        let mut wrong = None;
        let mut leaf = |argument: &Argument| {
            let fits = match argument {
                Argument::Reference { node: from, .. } => order.get(from).is_some_and(|&at| {
                    at < index || meaning == Order::Document || later.contains(&(*from, node.id))
                }),
                Argument::Item { r#loop, .. } => order.contains_key(r#loop),
                _ => true,
            };
            if !fits {
                wrong = Some(format!("{argument:?}"));
            }
        };
        if let Some(arguments) = node.kind.arguments() {
            arguments.visit_leaves(&mut leaf);
        }
        if let Some(argument) = wrong {
            return Err(format!(
                "`{}` refers to what is not there, or not before it without an edge: {argument}",
                node.id
            ));
        }
    }
    Ok(())
}

fn program(program: &InstrumentedProgram, structure: &Structure, source: &str) -> Result<(), String> {
    if source.contains(&program.probe) {
        return Err(format!("the probe's name `{}` is in the source", program.probe));
    }
    let mut seen = HashSet::new();
    for site in &program.sites {
        exists(structure, site.node)?;
        position(site.at, source)?;
        if !seen.insert((site.point, site.context, &site.tool)) {
            return Err(format!("point {} means two things in context {}", site.point, site.context));
        }
    }
    let mut seen = HashSet::new();
    for entry in &program.entries {
        if !seen.insert((entry.point, entry.context, entry.function)) {
            return Err(format!("point {} enters function {} twice", entry.point, entry.function));
        }
    }
    let last =
        u32::try_from(source.split(['\n', '\r', '\u{2028}', '\u{2029}']).count()).expect("sources are short");
    if program.lines.iter().any(|&line| line > last) {
        return Err("a line comes from beyond the end of the source".to_owned());
    }
    let lines = program.js.lines().count();
    if program.lines.len() < lines {
        return Err(format!("{lines} lines, but only {} are mapped", program.lines.len()));
    }
    Ok(())
}

fn exists(structure: &Structure, id: NodeId) -> Result<(), String> {
    structure.node(id).map(|_| ()).ok_or_else(|| format!("there is no node `{id}`"))
}

fn position(at: Position, source: &str) -> Result<(), String> {
    let (start, end) = (at.start as usize, at.end as usize);
    if start > end || !source.is_char_boundary(start) || !source.is_char_boundary(end) {
        return Err(format!("{at:?} is not a place in the source"));
    }
    let before = &source[..start];
    let line = before.matches('\n').count() + 1;
    if at.line as usize != line && source.is_ascii() && !source.contains('\r') {
        return Err(format!("{at:?} says line {}, but it is {line}", at.line));
    }
    Ok(())
}
