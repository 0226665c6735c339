//! What a task is given, as a plan keeps it: already understood, so that reading it back asks nothing about the other
//! tasks. For `#[serde(with = "pml_analysis::dag::kept")]`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Given, Part, Reference};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kept {
    Literal(Box<RawValue>),
    Escaped(Box<RawValue>),
    Reference(Reference),
    Text(Vec<Part>),
    Object(Vec<(String, Kept)>),
    Array(Vec<Kept>),
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
    Kept::deserialize(deserializer).map(given)
}

fn kept(given: &Given) -> Kept {
    match given {
        Given::Literal(value) => Kept::Literal(value.clone()),
        Given::Escaped(value) => Kept::Escaped(value.clone()),
        Given::Reference(reference) => Kept::Reference(reference.clone()),
        Given::Text(parts) => Kept::Text(parts.clone()),
        Given::Object(members) => {
            Kept::Object(members.iter().map(|(key, value)| (key.clone(), kept(value))).collect())
        }
        Given::Array(items) => Kept::Array(items.iter().map(kept).collect()),
    }
}

fn given(kept: Kept) -> Given {
    match kept {
        Kept::Literal(value) => Given::Literal(value),
        Kept::Escaped(value) => Given::Escaped(value),
        Kept::Reference(reference) => Given::Reference(reference),
        Kept::Text(parts) => Given::Text(parts),
        Kept::Object(members) => {
            Given::Object(members.into_iter().map(|(key, value)| (key, given(value))).collect())
        }
        Kept::Array(items) => Given::Array(items.into_iter().map(given).collect()),
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
