//! Serialised form of a task's arguments in a plan. It is parsed already, so that reading it back needs no other tasks.
//! For `#[serde(with = "pml_analysis::dag::kept")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Reference, TaskArguments, TextPart};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredArguments {
    Literal(Box<RawValue>),
    Escaped(Box<RawValue>),
    Reference(Reference),
    Text(Vec<TextPart>),
    Object(Vec<(String, StoredArguments)>),
    Array(Vec<StoredArguments>),
}

/// Serialises task arguments.
///
/// # Errors
/// The serializer fails.
pub fn serialize<S: Serializer>(given: &TaskArguments, serializer: S) -> Result<S::Ok, S::Error> {
    kept(given).serialize(serializer)
}

/// Deserialises task arguments.
///
/// # Errors
/// The data was not written by [`serialize`].
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TaskArguments, D::Error> {
    StoredArguments::deserialize(deserializer).map(given)
}

fn kept(given: &TaskArguments) -> StoredArguments {
    match given {
        TaskArguments::Literal(value) => StoredArguments::Literal(value.clone()),
        TaskArguments::Escaped(value) => StoredArguments::Escaped(value.clone()),
        TaskArguments::Reference(reference) => StoredArguments::Reference(reference.clone()),
        TaskArguments::Text(parts) => StoredArguments::Text(parts.clone()),
        TaskArguments::Object(members) => {
            StoredArguments::Object(members.iter().map(|(key, value)| (key.clone(), kept(value))).collect())
        }
        TaskArguments::Array(items) => StoredArguments::Array(items.iter().map(kept).collect()),
    }
}

fn given(kept: StoredArguments) -> TaskArguments {
    match kept {
        StoredArguments::Literal(value) => TaskArguments::Literal(value),
        StoredArguments::Escaped(value) => TaskArguments::Escaped(value),
        StoredArguments::Reference(reference) => TaskArguments::Reference(reference),
        StoredArguments::Text(parts) => TaskArguments::Text(parts),
        StoredArguments::Object(members) => {
            TaskArguments::Object(members.into_iter().map(|(key, value)| (key, given(value))).collect())
        }
        StoredArguments::Array(items) => TaskArguments::Array(items.into_iter().map(given).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] TaskArguments);

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let document = r#"{"tasks":[{"id":"a","tool":"s:t"},{"id":"b","tool":"s:t","arguments":
            {"n":1.50,"whole":{"$ref":"a"},"text":"x {{a.list[0]}} y","list":[{"$ref":"args.p"},{"$literal":"{{a}}"}]}}]}"#;
        let dag = crate::analyse_dag(document, &crate::AnalysisCatalogue::default()).unwrap().dag;
        let task = dag.tasks.iter().find(|task| task.id == "b");
        let Some(task) = task else { panic!("{dag:?}") };
        let text = serde_json::to_string(&Holder(task.arguments.clone())).unwrap();
        let Holder(again) = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&task.arguments).unwrap());
        assert!(text.contains("1.50"), "numbers keep their spelling: {text}");
    }
}
