//! Makes the template of a program or document: its literals come from `args`.
//!
//! The source is edited at the literals and analysed again. The template is used only if it turns out to be the same
//! program, node by node, with exactly those arguments coming from parameters.

use pml_analysis::AnalysisCatalogue;
use pml_analysis::dag::{Reference, ReferenceRoot};
use pml_model::structure::{Argument, EdgeLink, Node, NodeKind, PathStep, Structure};
use serde_json::{Value, json};

use crate::plan::PlanLiteral;

/// The language of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceForm {
    Code,
    Dag,
}

impl SourceForm {
    /// The expression for the argument `name`.
    fn argument(self, name: &str) -> String {
        match self {
            SourceForm::Code => format!("args[{}]", Value::from(name)),
            SourceForm::Dag => {
                let path = vec![PathStep::Key(name.to_owned())];
                let reference = Reference { of: ReferenceRoot::Arguments, path };
                json!({ "$ref": reference.to_string() }).to_string()
            }
        }
    }

    fn structure(self, text: &str, catalogue: &AnalysisCatalogue) -> Option<Structure> {
        match self {
            SourceForm::Code => Some(pml_analysis::analyse(text, catalogue).ok()?.structure),
            SourceForm::Dag => Some(pml_analysis::analyse_dag(text, catalogue).ok()?.structure),
        }
    }
}

/// The text of the template and its structure; `None` if there is none.
pub(super) fn of(
    form: SourceForm,
    source: &str,
    literals: &[PlanLiteral],
    structure: &Structure,
    catalogue: &AnalysisCatalogue,
) -> Option<(String, Structure)> {
    if literals.is_empty() {
        return None;
    }
    let text = replaced(form, source, literals)?;
    let found = form.structure(&text, catalogue)?;
    let same = is_same_structure(&found, structure);
    let given = literals.iter().all(|literal| {
        literal.fills.iter().all(|(node, path)| {
            let arguments = found.node(*node).and_then(|node| node.kind.arguments());
            matches!(arguments.and_then(|arguments| at(arguments, path)),
                Some(Argument::Parameter { name, path }) if *name == literal.name && path.is_empty())
        })
    });
    (same && given).then_some((text, found))
}

fn replaced(form: SourceForm, source: &str, literals: &[PlanLiteral]) -> Option<String> {
    let places =
        literals.iter().flat_map(|literal| literal.written.iter().map(move |at| (*at, &literal.name)));
    let mut places: Vec<((u32, u32), &String)> = places.collect();
    places.sort_unstable();
    let mut text = String::with_capacity(source.len() + 16 * places.len());
    let mut done = 0;
    for ((start, end), name) in places {
        let (start, end) = (start as usize, end as usize);
        // If one literal lies within another, `start` is before `done`: then there is no template.
        text.push_str(source.get(done..start)?);
        text.push_str(&form.argument(name));
        done = end;
    }
    text.push_str(source.get(done..)?);
    Some(text)
}

/// Whether two programs make the same calls under the same conditions, whatever the arguments of the calls.
pub(crate) fn is_same_structure(one: &Structure, other: &Structure) -> bool {
    // What a literal could come from instead depends on the arguments.
    let control = |structure: &Structure| {
        structure.edges.iter().filter(|edge| !matches!(edge.link, EdgeLink::Provides { .. })).count()
    };
    one.nodes.len() == other.nodes.len()
        && control(one) == control(other)
        && one.nodes.iter().zip(&other.nodes).all(|(one, other)| alike(one, other))
}

/// Whether two programs do the same with the same values. Their data flow follows from the arguments of the calls; how much
/// of a tool's input it covers depends on the definitions that are there.
pub(crate) fn is_same_program(one: &Structure, other: &Structure) -> bool {
    let control = |structure: &Structure| {
        let edges = structure.edges.iter().filter(|edge| !matches!(edge.link, EdgeLink::Provides { .. }));
        edges.map(|edge| (edge.from, edge.to, edge.link.clone())).collect::<Vec<_>>()
    };
    one.nodes.len() == other.nodes.len()
        && control(one) == control(other)
        && one.nodes.iter().zip(&other.nodes).all(|(one, other)| one.id == other.id && one.kind == other.kind)
}

/// Whether two nodes do the same, apart from their arguments.
fn alike(one: &Node, other: &Node) -> bool {
    one.id == other.id
        && match (&one.kind, &other.kind) {
            (NodeKind::Task { tool: one, .. }, NodeKind::Task { tool: other, .. })
            | (
                NodeKind::Capability { capability: one, .. },
                NodeKind::Capability { capability: other, .. },
            ) => one == other,
            (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
        }
}

/// The part of an argument at `path`.
fn at<'a>(argument: &'a Argument, path: &[PathStep]) -> Option<&'a Argument> {
    let Some((first, rest)) = path.split_first() else { return Some(argument) };
    match (argument, first) {
        (Argument::Object { fields, .. }, PathStep::Key(key)) => {
            at(&fields.iter().rfind(|field| field.name == *key)?.value, rest)
        }
        (Argument::Array { items }, PathStep::Index(index)) => {
            at(items.get(usize::try_from(*index).ok()?)?, rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pml_analysis::AnalysisTool;
    use pml_model::ToolId;
    use pml_model::json::raw;
    use serde_json::json;

    use super::*;

    fn catalogue() -> AnalysisCatalogue {
        let mut catalogue = AnalysisCatalogue::default();
        for (id, identifier) in [("fs:read", "read"), ("fs:write", "write"), ("web:get", "get")] {
            let schema = raw(&json!({ "type": "object" }));
            catalogue.add_tool(AnalysisTool::new(
                ToolId::parse(id).unwrap(),
                identifier.to_owned(),
                schema,
                None,
                false,
            ));
        }
        catalogue
    }

    #[track_caller]
    fn template(source: &str) -> Option<String> {
        let catalogue = catalogue();
        let analysis = pml_analysis::analyse(source, &catalogue).unwrap();
        let literals: Vec<PlanLiteral> = analysis.parameters.literals.iter().map(PlanLiteral::from).collect();
        of(SourceForm::Code, source, &literals, &analysis.structure, &catalogue).map(|(text, _)| text)
    }

    #[track_caller]
    fn template_of_document(tasks: &str) -> Option<String> {
        let (catalogue, source) = (catalogue(), format!("{{\"tasks\":[{tasks}]}}"));
        let analysis = pml_analysis::analyse_dag(&source, &catalogue).unwrap();
        let literals: Vec<PlanLiteral> = analysis.parameters.literals.iter().map(PlanLiteral::from).collect();
        let (text, _) = of(SourceForm::Dag, &source, &literals, &analysis.structure, &catalogue)?;
        let tasks = text.strip_prefix("{\"tasks\":[").and_then(|text| text.strip_suffix("]}"));
        Some(tasks.unwrap_or_else(|| panic!("{text}")).to_owned())
    }

    #[test]
    fn literals_are_taken_from_the_arguments() {
        assert_eq!(
            template("const r = await mcp.fs.read({ path: 'a.txt' }); await mcp.fs.write({ path: \"b.txt\", content: r });")
                .as_deref(),
            Some(
                "const r = await mcp.fs.read({ path: args[\"path\"] }); await mcp.fs.write({ path: args[\"path_2\"], content: r });"
            )
        );
        assert_eq!(
            template("const where = `a.txt`;\nreturn [await mcp.fs.read({ path: where }), await mcp.fs.read({ path: where })]")
                .as_deref(),
            Some("const where = args[\"path\"];\nreturn [await mcp.fs.read({ path: where }), await mcp.fs.read({ path: where })]")
        );
        assert_eq!(
            template("return mcp.web.get({ urls: ['x.org/1', 'x.org/2'] })").as_deref(),
            Some("return mcp.web.get({ urls: args[\"urls\"] })")
        );
    }

    #[test]
    fn literals_of_documents_are_taken_from_the_arguments() {
        assert_eq!(
            template_of_document(
                r#"{"id":"a","tool":"fs:read","arguments":{"path":"\u00e4.txt"}},{"id":"b","tool":"fs:write","arguments":{ "path" : "b.txt", "content":"see {{a}}"}}"#
            )
            .as_deref(),
            Some(
                r#"{"id":"a","tool":"fs:read","arguments":{"path":{"$ref":"args.path"}}},{"id":"b","tool":"fs:write","arguments":{ "path" : {"$ref":"args.path_2"}, "content":"see {{a}}"}}"#
            )
        );
        assert_eq!(
            template_of_document(
                r#"{"id":"a","tool":"web:get","arguments":{"urls":["x.org/1", "x.org/2"],"odd \"name\"":{"0":[7,{"$ref":"args.n"}]}}}"#
            )
            .as_deref(),
            Some(
                r#"{"id":"a","tool":"web:get","arguments":{"urls":{"$ref":"args.urls"},"odd \"name\"":{"0":[{"$ref":"args[\"0\"]"},{"$ref":"args.n"}]}}}"#
            )
        );
        assert_eq!(
            template_of_document(r#"{"id":"a","tool":"web:get","arguments":{"a \"b\"":"c"}}"#).as_deref(),
            Some(r#"{"id":"a","tool":"web:get","arguments":{"a \"b\"":{"$ref":"args[\"a \\\"b\\\"\"]"}}}"#)
        );
        let escaped = r#"{"id":"a","tool":"web:get","arguments":{"url":{"$literal":"x.org"}}}"#;
        assert_eq!(template_of_document(escaped), None);
    }

    #[test]
    fn what_would_be_another_program_has_no_template() {
        assert_eq!(template("return 1"), None);
        let shadowed =
            "const f = async (args: any) => mcp.fs.read({ path: 'a.txt' }); return f({ path: 'c.txt' })";
        assert_eq!(template(shadowed), None);
        assert_eq!(template("enum E { A = 'a.txt' } return mcp.fs.read({ path: E.A })"), None);
    }
}
