//! What a task is given, as a plan keeps it: already understood, so that reading it back asks nothing about the other
//! tasks. For `#[serde(with = "pml_analysis::dag::kept")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Given, Part, Reference};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredArguments {
    Literal(Box<RawValue>),
    Escaped(Box<RawValue>),
    Reference(Reference),
    Text(Vec<Part>),
    Object(Vec<(String, StoredArguments)>),
    Array(Vec<StoredArguments>),
}

/// Writes it.
///
/// # Errors
/// The writer fails.
pub fn serialize<S: Serializer>(given: &Given, serializer: S) -> Result<S::Ok, S::Error> {
    kept(given).serialize(serializer)
}

/// Reads it.
///
/// # Errors
/// It is not what was written.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Given, D::Error> {
    StoredArguments::deserialize(deserializer).map(given)
}

fn kept(given: &Given) -> StoredArguments {
    match given {
        Given::Literal(value) => StoredArguments::Literal(value.clone()),
        Given::Escaped(value) => StoredArguments::Escaped(value.clone()),
        Given::Reference(reference) => StoredArguments::Reference(reference.clone()),
        Given::Text(parts) => StoredArguments::Text(parts.clone()),
        Given::Object(members) => {
            StoredArguments::Object(members.iter().map(|(key, value)| (key.clone(), kept(value))).collect())
        }
        Given::Array(items) => StoredArguments::Array(items.iter().map(kept).collect()),
    }
}

fn given(kept: StoredArguments) -> Given {
    match kept {
        StoredArguments::Literal(value) => Given::Literal(value),
        StoredArguments::Escaped(value) => Given::Escaped(value),
        StoredArguments::Reference(reference) => Given::Reference(reference),
        StoredArguments::Text(parts) => Given::Text(parts),
        StoredArguments::Object(members) => {
            Given::Object(members.into_iter().map(|(key, value)| (key, given(value))).collect())
        }
        StoredArguments::Array(items) => Given::Array(items.into_iter().map(given).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] Given);

    #[test]
    fn what_is_kept_reads_back_as_it_was() {
        let document = r#"{"tasks":[{"id":"a","tool":"s:t"},{"id":"b","tool":"s:t","arguments":
            {"n":1.50,"whole":{"$ref":"a"},"text":"x {{a.list[0]}} y","list":[{"$ref":"args.p"},{"$literal":"{{a}}"}]}}]}"#;
        let dag = crate::analyse_dag(document, &crate::Catalogue::default()).unwrap().dag;
        let task = dag.tasks.iter().find(|task| task.id == "b");
        let Some(task) = task else { panic!("{dag:?}") };
        let text = serde_json::to_string(&Holder(task.arguments.clone())).unwrap();
        let Holder(again) = serde_json::from_str(&text).unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&task.arguments).unwrap());
        assert!(text.contains("1.50"), "numbers keep their spelling: {text}");
    }
}
