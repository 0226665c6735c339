//! The same program or document with its literals taken from `args`.
//!
//! The text is changed where the literals stand and then analysed like any other; only if it turns out to be the same
//! program, node by node, with exactly those arguments coming from parameters, is it used.

use pml_analysis::Catalogue;
use pml_analysis::dag::{Reference, Source};
use pml_model::structure::{Argument, Node, NodeKind, Step, Structure};
use serde_json::{Value, json};

use crate::plan::Literal;

/// What a source is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Code,
    Dag,
}

impl Form {
    /// How the argument `name` is taken.
    fn argument(self, name: &str) -> String {
        match self {
            Form::Code => format!("args[{}]", Value::from(name)),
            Form::Dag => {
                let path = vec![Step::Key(name.to_owned())];
                let reference = Reference { of: Source::Arguments, path };
                json!({ "$ref": reference.to_string() }).to_string()
            }
        }
    }

    fn structure(self, text: &str, catalogue: &Catalogue) -> Option<Structure> {
        match self {
            Form::Code => Some(pml_analysis::analyse(text, catalogue).ok()?.structure),
            Form::Dag => Some(pml_analysis::analyse_dag(text, catalogue).ok()?.structure),
        }
    }
}

/// The text of the template and what it can do, where there is one.
pub(super) fn of(
    form: Form,
    source: &str,
    literals: &[Literal],
    structure: &Structure,
    catalogue: &Catalogue,
) -> Option<(String, Structure)> {
    if literals.is_empty() {
        return None;
    }
    let text = replaced(form, source, literals)?;
    let found = form.structure(&text, catalogue)?;
    let same = found.nodes.len() == structure.nodes.len()
        && found.edges.len() == structure.edges.len()
        && found.nodes.iter().zip(&structure.nodes).all(|(one, other)| alike(one, other));
    let given = literals.iter().all(|literal| {
        literal.fills.iter().all(|(node, path)| {
            let arguments = found.node(*node).and_then(|node| node.kind.arguments());
            matches!(arguments.and_then(|arguments| at(arguments, path)),
                Some(Argument::Parameter { name, path }) if *name == literal.name && path.is_empty())
        })
    });
    (same && given).then_some((text, found))
}

fn replaced(form: Form, source: &str, literals: &[Literal]) -> Option<String> {
    let places =
        literals.iter().flat_map(|literal| literal.written.iter().map(move |at| (*at, &literal.name)));
    let mut places: Vec<((u32, u32), &String)> = places.collect();
    places.sort_unstable();
    let mut text = String::with_capacity(source.len() + 16 * places.len());
    let mut done = 0;
    for ((start, end), name) in places {
        let (start, end) = (start as usize, end as usize);
        // One within another: the outer one stands for both, and is what the inner one is not.
        text.push_str(source.get(done..start)?);
        text.push_str(&form.argument(name));
        done = end;
    }
    text.push_str(source.get(done..)?);
    Some(text)
}

/// Whether two nodes do the same, whatever they are given.
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

/// The part of arguments at `path`.
fn at<'a>(argument: &'a Argument, path: &[Step]) -> Option<&'a Argument> {
    let Some((first, rest)) = path.split_first() else { return Some(argument) };
    match (argument, first) {
        (Argument::Object { fields, .. }, Step::Key(key)) => {
            at(&fields.iter().rfind(|field| field.name == *key)?.value, rest)
        }
        (Argument::Array { items }, Step::Index(index)) => {
            at(items.get(usize::try_from(*index).ok()?)?, rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pml_analysis::Tool;
    use pml_model::ToolId;
    use pml_model::json::raw;
    use serde_json::json;

    use super::*;

    fn catalogue() -> Catalogue {
        let mut catalogue = Catalogue::default();
        for (id, identifier) in [("fs:read", "read"), ("fs:write", "write"), ("web:get", "get")] {
            let schema = raw(&json!({ "type": "object" }));
            catalogue.add(Tool::new(ToolId::parse(id).unwrap(), identifier.to_owned(), schema, None, false));
        }
        catalogue
    }

    #[track_caller]
    fn template(source: &str) -> Option<String> {
        let catalogue = catalogue();
        let analysis = pml_analysis::analyse(source, &catalogue).unwrap();
        let literals: Vec<Literal> = analysis.parameters.literals.iter().map(Literal::from).collect();
        of(Form::Code, source, &literals, &analysis.structure, &catalogue).map(|(text, _)| text)
    }

    #[track_caller]
    fn template_of_document(tasks: &str) -> Option<String> {
        let (catalogue, source) = (catalogue(), format!("{{\"tasks\":[{tasks}]}}"));
        let analysis = pml_analysis::analyse_dag(&source, &catalogue).unwrap();
        let literals: Vec<Literal> = analysis.parameters.literals.iter().map(Literal::from).collect();
        let (text, _) = of(Form::Dag, &source, &literals, &analysis.structure, &catalogue)?;
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
