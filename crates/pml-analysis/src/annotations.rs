//! Annotations of the structure in comments.
//!
//! `// @pml-depends: ["fs:read", n1]` above a statement says that its first node follows these nodes, given by tool or
//! by id. `// @pml-branches: ["ok", "retry"]` names the outcomes of that node.

use oxc_ast::ast::{Program, Statement};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use pml_model::structure::{Edge, EdgeLink, NodeId, NodeKind, Structure};

use crate::analysis::{Complaint, ComplaintCode, Severity};
use crate::lines::SourceLines;

/// Adds the annotations of `program` to `structure`; complains about those that cannot be applied.
pub(crate) fn apply_annotations(
    program: &Program<'_>,
    source: &str,
    lines: &SourceLines<'_>,
    structure: &mut Structure,
) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for annotation in annotations(program, source) {
        if let Err((message, hint)) = apply_one(program, &annotation, structure) {
            let at = lines.position(annotation.span);
            complaints.push(Complaint {
                severity: Severity::Warning,
                code: ComplaintCode::Annotation,
                message,
                hint,
                at,
                excerpt: lines.excerpt(at),
                node: None,
            });
        }
    }
    complaints
}

/// The annotations in canonical form: they shape the structure, so they are part of a program's identity.
pub(crate) fn canonical_annotations(program: &Program<'_>, source: &str) -> String {
    let mut text = String::new();
    for annotation in annotations(program, source) {
        if let Ok(names) = names(annotation.list) {
            text.push_str(&format!("\n@{} {names:?}", annotation.kind));
        }
    }
    text
}

struct Annotation<'s> {
    kind: &'s str,
    list: &'s str,
    span: Span,
}

type RefusedAnnotation = (String, Option<String>);

fn annotations<'s>(program: &Program<'_>, source: &'s str) -> Vec<Annotation<'s>> {
    let mut found = Vec::new();
    for comment in program.comments.iter() {
        let text = &source[comment.span.start as usize..comment.span.end as usize];
        let text = text.trim_start_matches(['/', '*', ' ', '\t']).trim_end_matches(['/', '*', ' ', '\t']);
        if let Some((kind, list)) = text.strip_prefix("@pml-").and_then(|rest| rest.split_once(':')) {
            found.push(Annotation { kind, list: list.trim(), span: comment.span });
        }
    }
    found
}

fn apply_one(
    program: &Program<'_>,
    annotation: &Annotation<'_>,
    structure: &mut Structure,
) -> Result<(), RefusedAnnotation> {
    let names = names(annotation.list)?;
    let statement = next_statement(program, annotation.span.end)
        .ok_or_else(|| (format!("`@pml-{}` stands before nothing", annotation.kind), None))?;
    let target = structure
        .nodes
        .iter()
        .position(|node| node.at.start >= statement.start && node.at.start < statement.end)
        .ok_or_else(|| {
            (format!("`@pml-{}` stands before a statement that does nothing", annotation.kind), None)
        })?;
    match annotation.kind {
        "depends" => {
            let mut unknown = Vec::new();
            for name in &names {
                let Some(from) = provider(structure, target, name) else {
                    unknown.push(format!("`{name}`"));
                    continue;
                };
                let edge = Edge { from, to: structure.nodes[target].id, link: EdgeLink::Sequence };
                if !structure.edges.contains(&edge) {
                    structure.edges.push(edge);
                }
            }
            match unknown.is_empty() {
                true => Ok(()),
                false => Err((
                    format!("`@pml-depends` names {}: nothing like that comes before", unknown.join(", ")),
                    None,
                )),
            }
        }
        "branches" => {
            structure.nodes[target].branches = names;
            Ok(())
        }
        other => Err((
            format!("there is no annotation `@pml-{other}`"),
            Some("`@pml-depends` and `@pml-branches` are known".to_owned()),
        )),
    }
}

/// The last node before `target` with that id or tool.
fn provider(structure: &Structure, target: usize, name: &str) -> Option<NodeId> {
    let id = NodeId::try_from(name.to_owned()).ok();
    structure.nodes[..target]
        .iter()
        .rev()
        .find(|node| {
            Some(node.id) == id
                || match &node.kind {
                    NodeKind::Task { tool, .. } => tool == name,
                    NodeKind::Capability { capability, .. } => capability == name,
                    _ => false,
                }
        })
        .map(|node| node.id)
}

/// Parses `["a", b]`: a list of names, quoted or not.
fn names(list: &str) -> Result<Vec<String>, RefusedAnnotation> {
    let inner = list.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).ok_or_else(|| {
        (format!("`{list}` is not a list of names"), Some("write `[\"a\", \"b\"]`".to_owned()))
    })?;
    let names: Vec<String> = inner
        .split(',')
        .map(|name| name.trim().trim_matches(['"', '\'', '`']).to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    if names.is_empty() {
        return Err(("the list of names is empty".to_owned(), None));
    }
    Ok(names)
}

/// The first statement after `from`.
fn next_statement(program: &Program<'_>, from: u32) -> Option<Span> {
    let mut next = NextStatement { from, found: None };
    next.visit_program(program);
    next.found
}

struct NextStatement {
    from: u32,
    found: Option<Span>,
}

impl<'a> Visit<'a> for NextStatement {
    fn visit_statement(&mut self, it: &Statement<'a>) {
        // Types are erased from the program: an annotation above them concerns the statement after them.
        if matches!(it, Statement::TSInterfaceDeclaration(_) | Statement::TSTypeAliasDeclaration(_)) {
            return;
        }
        let span = it.span();
        if span.start >= self.from {
            if self.found.is_none_or(|found| span.start < found.start) {
                self.found = Some(span);
            }
            return;
        }
        if span.end > self.from {
            walk::walk_statement(self, it);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{AnalysisCatalogue, analyse};

    /// The outcomes of a program's nodes, by node id, and the complaints.
    fn branches(source: &str) -> (Vec<String>, Vec<String>) {
        let analysis = analyse(source, &AnalysisCatalogue::default()).unwrap();
        let annotated = analysis.structure.nodes.iter().filter(|node| !node.branches.is_empty());
        let complaints =
            analysis.complaints.iter().filter(|one| one.code == super::ComplaintCode::Annotation);
        (
            annotated.map(|node| format!("{}: {}", node.id, node.branches.join(" "))).collect(),
            complaints.map(|one| one.message.clone()).collect(),
        )
    }

    #[test]
    fn types_between_an_annotation_and_its_statement_are_passed_over() {
        let call = "await mcp.a.b({});";
        for types in [
            "interface Issue { id: number }",
            "type Id = string | number;",
            "interface A { x: 1 }\ntype B = A['x'];\ninterface C extends A { y: B }",
        ] {
            let source =
                format!("await mcp.z.z({{}});\n// @pml-branches: [\"ok\", \"retry\"]\n{types}\n{call}");
            assert_eq!(branches(&source), (vec!["n2: ok retry".to_owned()], Vec::new()), "{types}");
        }
        let within = "if (args.x) {\n/* @pml-branches: [a] */\ntype T = 1;\nawait mcp.a.b({}); }";
        assert_eq!(branches(within), (vec!["n1: a".to_owned()], Vec::new()));
        let nothing = branches("await mcp.a.b({});\n// @pml-branches: [a]\ninterface A { x: 1 }");
        assert_eq!(nothing.1, ["`@pml-branches` stands before nothing"]);
    }
}
