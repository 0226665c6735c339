//! Which fields of results could fill required parameters, by the schemas of the tools.

use std::collections::HashMap;

use pml_graph::graph::feeds::possible_mappings;
use pml_graph::graph::fields::ToolFields;
use serde_json::Value;

use super::PathTool;

/// Factor on a result that is not always there.
const NULLABLE: f64 = 0.5;

/// A parameter, and the field of a result that could fill it.
pub(super) struct FieldLink {
    pub(super) parameter: String,
    pub(super) path: String,
    /// How well it fits.
    pub(super) fit: f64,
    /// How much the field is worth as an argument.
    pub(super) share: f64,
}

/// The links between each pair of tools, by the indices of the tool that gives and the one that takes.
pub(super) fn field_links(tools: &[PathTool]) -> HashMap<(usize, usize), Vec<FieldLink>> {
    let fields: Vec<&ToolFields> = tools.iter().map(|tool| &tool.fields).collect();
    let mut links: HashMap<(usize, usize), Vec<FieldLink>> = HashMap::new();
    for (from, to, mapping) in possible_mappings(&fields) {
        let required = fields[to].input(&mapping.to).is_some_and(|input| input.required);
        if !required || undoes(fields[from], fields[to]) {
            continue;
        }
        if let Some(share) = content_share(&tools[from].output_schema, &mapping.from) {
            let fit = f64::from(mapping.weight).min(1.0);
            let link = FieldLink { parameter: mapping.to, path: mapping.from, fit, share };
            links.entry((from, to)).or_default().push(link);
        }
    }
    links
}

/// How much a field of a result is worth as an argument; `None` for a field with a few fixed values, which tells
/// something about the call and holds no content.
fn content_share(schema: &Value, path: &str) -> Option<f64> {
    let has_null =
        |types: &Value| types.as_array().is_some_and(|types| types.iter().any(|one| one == "null"));
    match schema_at(schema, path) {
        Some(field) if field.get("enum").is_some() || field.get("const").is_some() => None,
        Some(field) if has_null(&field["type"]) => Some(NULLABLE),
        Some(_) | None => Some(1.0),
    }
}

/// The schema of the field at a path such as `items[].name`.
fn schema_at<'v>(schema: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').filter(|name| !name.is_empty()).try_fold(schema, |schema, name| {
        let bare = name.trim_end_matches("[]");
        let mut field = schema.get("properties")?.get(bare)?;
        for _ in 0..(name.len() - bare.len()) / 2 {
            field = field.get("items")?;
        }
        Some(field)
    })
}

/// Whether the second tool takes what the first returns and returns what it took: one after the other, they do nothing.
fn undoes(first: &ToolFields, second: &ToolFields) -> bool {
    let returns_inputs_of = |giver: &ToolFields, taker: &ToolFields| {
        let mut required = taker.inputs.iter().filter(|input| input.required).peekable();
        required.peek().is_some()
            && required.all(|input| giver.outputs.iter().any(|output| output.path == input.name))
    };
    returns_inputs_of(first, second) && returns_inputs_of(second, first)
}
