//! Finds the constants of a capability: the values in its source that arguments cannot replace.

use pml_analysis::Constant;
use pml_model::capability::CapabilitySource;
use serde_json::Value;

/// The constants in the source of a capability.
pub(crate) fn constants(source: &CapabilitySource) -> Vec<Constant> {
    match source {
        CapabilitySource::Code { code, template } => of_program(template.as_ref().unwrap_or(code)),
        CapabilitySource::Dag { dag_structure, template } => {
            let document = template.as_ref().unwrap_or(dag_structure);
            let mut found = Vec::new();
            if let Ok(document) = serde_json::from_str::<Value>(document.get()) {
                of_document(&document, &mut found);
            }
            found
        }
        // All its arguments can be given.
        CapabilitySource::Tool { .. } => Vec::new(),
    }
}

fn of_program(code: &str) -> Vec<Constant> {
    // The source could be parsed when it ran. If it no longer can, the served intents still count.
    pml_analysis::find_constants(code).unwrap_or_default()
}

fn of_document(document: &Value, found: &mut Vec<Constant>) {
    let tasks = document.get("tasks").and_then(Value::as_array);
    for task in tasks.into_iter().flatten() {
        found.extend(task.get("tool").and_then(Value::as_str).map(|tool| Constant::Name(tool.to_owned())));
        if let Some(code) = task.get("code").and_then(Value::as_str) {
            found.extend(of_program(code));
        }
        if let Some(arguments) = task.get("arguments") {
            of_arguments(arguments, found);
        }
    }
}

fn of_arguments(value: &Value, found: &mut Vec<Constant>) {
    match value {
        Value::String(text) => found.push(Constant::Text(text.clone())),
        Value::Number(number) => found.extend(number.as_f64().map(Constant::Number)),
        Value::Array(items) => items.iter().for_each(|item| of_arguments(item, found)),
        // A reference stands for the result of another task.
        Value::Object(members) if members.contains_key("$ref") => {}
        Value::Object(members) => members.values().for_each(|member| of_arguments(member, found)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_template_takes_from_its_arguments_is_no_constant() {
        let source = CapabilitySource::Code {
            code: "return mcp.fs.read({ path: 'a.txt', limit: 7 })".to_owned(),
            template: Some("return mcp.fs.read({ path: args[\"path\"], limit: 7 })".to_owned()),
        };
        let found = constants(&source);
        assert!(found.contains(&Constant::Number(7.0)), "{found:?}");
        assert!(!found.contains(&Constant::Text("a.txt".to_owned())), "{found:?}");
    }

    #[test]
    fn a_document_is_fixed_to_what_its_tasks_are_written_with() {
        let document = r#"{"tasks":[{"id":"a","tool":"fs:read","arguments":{"path":{"$ref":"args.path"},"note":"for Paris","n":[3]}},
            {"id":"b","code":"return args.rows.slice(0, 5)"}]}"#;
        let raw = serde_json::value::RawValue::from_string(document.to_owned()).unwrap();
        let found = constants(&CapabilitySource::Dag { dag_structure: raw, template: None });
        for wanted in [Constant::Text("for Paris".to_owned()), Constant::Number(3.0), Constant::Number(5.0)] {
            assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
        }
        assert!(!found.contains(&Constant::Text("args.path".to_owned())), "{found:?}");
    }
}
