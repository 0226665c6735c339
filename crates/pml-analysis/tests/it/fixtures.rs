//! One idea per file: what is seen in each program stands beside it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pml_analysis::{Analysis, ComplaintCode};
use pml_model::structure::{Argument, EdgeBasis, EdgeLink, NodeKind, PathStep};

use crate::{analysed, here};

#[test]
fn every_fixture_is_seen_as_its_snapshot_says() {
    let mut files = Vec::new();
    collect(&here("fixtures"), &mut files);
    files.sort();
    assert!(files.len() >= 150, "only {} fixtures", files.len());
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for file in &files {
        let source = std::fs::read_to_string(file).expect("readable");
        let seen = seen(&source);
        let beside = file.with_extension("seen");
        if update {
            std::fs::write(&beside, &seen).expect("writable");
        } else if std::fs::read_to_string(&beside).unwrap_or_default() != seen {
            wrong.push(format!("{}\n{seen}", file.display()));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differ; UPDATE_EXPECT=1 writes them anew:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("fixtures").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "ts") {
            into.push(path);
        }
    }
}

/// Everything a person would check, as text.
pub(crate) fn seen(source: &str) -> String {
    match analysed(source) {
        Ok(analysis) => text(&analysis),
        Err(error) => {
            let at = error.position().map(|at| format!("{}:{}: ", at.line, at.column)).unwrap_or_default();
            let hint = error.hint().map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
            format!("refused\n{at}{error}\n{hint}")
        }
    }
}

fn text(analysis: &Analysis) -> String {
    let mut out = String::new();
    for node in &analysis.structure.nodes {
        let line = node.at.line;
        let what = match &node.kind {
            NodeKind::Task { tool, arguments, code, pure } => {
                let mut what = format!("{tool} {}", argument(arguments));
                if let Some(code) = code {
                    let kind = if *pure { "pure" } else { "not pure" };
                    write!(what, " ({kind}: {})", one_line(code)).expect("to a string");
                }
                what
            }
            NodeKind::Capability { capability, arguments } => {
                format!("capability {capability} {}", argument(arguments))
            }
            NodeKind::Decision { condition, form } => format!("decision {form:?} {}", one_line(condition)),
            NodeKind::Fork { form } => format!("fork {form:?}"),
            NodeKind::Join => "join".to_owned(),
            NodeKind::Loop { over, form } => format!("loop {form:?} {}", one_line(over)),
            NodeKind::Try => "try".to_owned(),
        };
        writeln!(out, "{} {what} @{line}", node.id).expect("to a string");
        if !node.branches.is_empty() {
            writeln!(out, "   branches {:?}", node.branches).expect("to a string");
        }
    }
    for edge in &analysis.structure.edges {
        let link = match &edge.link {
            EdgeLink::Sequence => "->".to_owned(),
            EdgeLink::Conditional { outcome } => format!("-{outcome}->"),
            EdgeLink::Contains => "contains".to_owned(),
            EdgeLink::Provides { coverage, basis, around } => {
                let basis = if *basis == EdgeBasis::Data { "feeds" } else { "could feed" };
                let around = around.map(|node| format!(" around {node}")).unwrap_or_default();
                format!("{basis} ({coverage:?}{around})").to_lowercase()
            }
        };
        writeln!(out, "{} {link} {}", edge.from, edge.to).expect("to a string");
    }
    parameters(analysis, &mut out);
    let permissions = &analysis.permissions;
    if !permissions.declared.is_empty() || !permissions.capabilities.is_empty() {
        let all: Vec<&str> =
            permissions.declared.iter().chain(&permissions.capabilities).map(String::as_str).collect();
        writeln!(out, "calls {}", all.join(", ")).expect("to a string");
    }
    for remark in &permissions.ambient {
        writeln!(out, "ambient {} @{}:{}", remark.what, remark.at.line, remark.at.column)
            .expect("to a string");
    }
    for complaint in &analysis.complaints {
        let at = complaint.at;
        writeln!(
            out,
            "{:?} {:?} @{}:{}: {}",
            complaint.severity, complaint.code, at.line, at.column, complaint.message
        )
        .expect("to a string");
        if complaint.code == ComplaintCode::Secret {
            writeln!(out, "  | {}", complaint.excerpt).expect("to a string");
        }
        if let Some(hint) = &complaint.hint {
            writeln!(out, "  {hint}").expect("to a string");
        }
    }
    out
}

fn parameters(analysis: &Analysis, out: &mut String) {
    let schema = &analysis.parameters.schema;
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(|name| name.as_str()).collect();
    for (name, described) in schema["properties"].as_object().into_iter().flatten() {
        let must = if required.contains(&name.as_str()) { "" } else { "?" };
        let lifted = analysis.parameters.literals.iter().find(|literal| literal.name == *name);
        let lifted = match lifted.map(|literal| &literal.default) {
            None => "",
            Some(Some(_)) => " (literal)",
            Some(None) => " (secret)",
        };
        writeln!(out, "args.{name}{must}: {described}{lifted}").expect("to a string");
    }
}

fn argument(argument: &Argument) -> String {
    match argument {
        Argument::Literal { value } => value.to_string(),
        Argument::Reference { node, path } => format!("{node}{}", steps(path)),
        Argument::Parameter { name, path } if name.is_empty() => format!("args{}", steps(path)),
        Argument::Parameter { name, path } => format!("args.{name}{}", steps(path)),
        Argument::Item { of, r#loop, path } => format!("item({}, {loop}){}", self::argument(of), steps(path)),
        Argument::Template { parts } => {
            let parts: Vec<String> = parts.iter().map(self::argument).collect();
            format!("`{}`", parts.join(" "))
        }
        Argument::Expression { source, reads } => {
            let reads: Vec<String> = reads.iter().map(self::argument).collect();
            format!("‹{}›[{}]", one_line(source), reads.join(", "))
        }
        Argument::Object { fields, spreads } => {
            let spread = spreads.iter().map(|spread| format!("...{}", self::argument(spread)));
            let fields = fields
                .iter()
                .map(|field| format!("{}: {}", one_line(&field.name), self::argument(&field.value)));
            format!("{{{}}}", spread.chain(fields).collect::<Vec<_>>().join(", "))
        }
        Argument::Array { items } => {
            format!("[{}]", items.iter().map(self::argument).collect::<Vec<_>>().join(", "))
        }
    }
}

fn steps(path: &[PathStep]) -> String {
    path.iter()
        .map(|step| match step {
            PathStep::Key(name) => format!(".{name}"),
            PathStep::Index(index) => format!("[{index}]"),
            PathStep::Any => "[]".to_owned(),
        })
        .collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
