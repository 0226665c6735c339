//! What the conditions of a program mention: the values worth trying when its branches are explored.

use std::collections::BTreeSet;

use pml_model::structure::NodeKind;
use serde_json::{Value, json};

use super::places::{BranchId, PlacedCode};
use crate::plan::Plan;

/// What the conditions of a program mention.
#[derive(Debug, Default)]
pub(super) struct ConditionWords {
    pub(super) names: BTreeSet<String>,
    /// Members of `args` that the program reads.
    pub(super) parameters: BTreeSet<String>,
    texts: BTreeSet<String>,
    numbers: Vec<f64>,
    /// The variables of loops, with the members that lead to the list they go through.
    pub(super) loops: Vec<(String, Vec<String>)>,
}

/// 16 KiB: the lists of other lengths that one list is replaced with, all together.
const MAX_LIST_BYTES: usize = 16 << 10;

impl ConditionWords {
    /// What the conditions of a plan mention, those of the capabilities that it calls too, and the outcomes of its
    /// decisions.
    pub(super) fn of(plan: &Plan, branches: &BTreeSet<BranchId>) -> ConditionWords {
        let mut words = ConditionWords::default();
        // What is compared may have been given a name before, so the other literals of the program count too.
        let mut whole = ConditionWords::default();
        let called = plan.nested.iter().map(PlacedCode::of_capability);
        for code in std::iter::once(PlacedCode::of_plan(plan)).chain(called) {
            for node in &code.structure.nodes {
                if let NodeKind::Decision { condition, .. } = &node.kind {
                    words.read(condition);
                }
            }
            whole.read(code.source);
            words.loops.extend(loops(code.source));
        }
        for BranchId { outcome, .. } in branches {
            if let Some(case) = outcome.strip_prefix("case:") {
                words.read(case);
                words.texts.insert(case.trim_matches(['"', '\'', '`']).to_owned());
            }
        }
        words.parameters = parameters(&plan.source);
        words.texts.extend(whole.texts.into_iter().filter(|text| text.len() <= 40).take(20));
        for number in whole.numbers.into_iter().take(20) {
            if !words.numbers.contains(&number) {
                words.numbers.push(number);
            }
        }
        words
    }

    fn read(&mut self, text: &str) {
        let characters: Vec<char> = text.chars().collect();
        let mut at = 0;
        while at < characters.len() {
            let character = characters[at];
            if matches!(character, '"' | '\'' | '`') {
                let end = (at + 1..characters.len()).find(|end| characters[*end] == character);
                let end = end.unwrap_or(characters.len());
                self.texts.insert(characters[at + 1..end].iter().collect());
                at = end + 1;
            } else if character.is_ascii_digit() {
                let end = (at..characters.len())
                    .find(|end| !(characters[*end].is_ascii_digit() || matches!(characters[*end], '.' | '_')))
                    .unwrap_or(characters.len());
                let number: String = characters[at..end].iter().filter(|digit| **digit != '_').collect();
                if let Ok(number) = number.parse()
                    && !self.numbers.contains(&number)
                {
                    self.numbers.push(number);
                }
                at = end;
            } else if character.is_alphabetic() || matches!(character, '_' | '$') {
                let end = (at..characters.len())
                    .find(|end| {
                        !(characters[*end].is_alphanumeric() || matches!(characters[*end], '_' | '$'))
                    })
                    .unwrap_or(characters.len());
                self.names.insert(characters[at..end].iter().collect());
                at = end;
            } else {
                at += 1;
            }
        }
    }

    pub(super) fn mentions(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    fn number_values(&self) -> Vec<Value> {
        let around = self.numbers.iter().flat_map(|number| [*number, number + 1.0, number - 1.0]);
        let mut values: Vec<Value> = Vec::new();
        for number in around.chain([0.0, 1.0, -1.0]) {
            let value = match number.fract() == 0.0 && number.abs() < 9e15 {
                #[expect(clippy::cast_possible_truncation, reason = "a whole number of less than 2^53")]
                true => json!(number as i64),
                false => json!(number),
            };
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// Other values of the same kind.
    pub(super) fn others(&self, value: &Value) -> Vec<Value> {
        let mut others = match value {
            Value::Bool(flag) => vec![json!(!flag)],
            Value::Number(_) => self.number_values(),
            Value::String(_) => self.texts.iter().map(|text| json!(text)).chain([json!("")]).collect(),
            Value::Array(items) => {
                let item = items.first().cloned().unwrap_or_else(|| json!({}));
                let lengths = self.numbers.iter().filter(|number| (0.0..=50.0).contains(*number));
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "between 0 and 50"
                )]
                let mut lengths: BTreeSet<usize> =
                    lengths.flat_map(|number| [*number as usize, *number as usize + 1]).collect();
                lengths.extend([0, 1, 2]);
                let (item_bytes, mut bytes) = (item.to_string().len(), 0);
                lengths.retain(|length| {
                    bytes += length * item_bytes;
                    bytes <= MAX_LIST_BYTES
                });
                lengths.into_iter().map(|length| Value::Array(vec![item.clone(); length])).collect()
            }
            Value::Null => self.any_values(),
            Value::Object(_) => Vec::new(),
        };
        if !value.is_null() {
            others.push(Value::Null);
        }
        others.retain(|other| other != value);
        others
    }

    pub(super) fn any_values(&self) -> Vec<Value> {
        let texts = self.texts.iter().map(|text| json!(text));
        [json!(true), json!(false)]
            .into_iter()
            .chain(texts)
            .chain(self.number_values())
            .chain([json!([])])
            .collect()
    }
}

/// The members of `args` that a source names.
fn parameters(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in source.match_indices("args") {
        let rest = source[at + 4..].trim_start_matches('?');
        if let Some(rest) = rest.strip_prefix('.') {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() {
                names.insert(name);
            }
        }
    }
    names
}

/// The variables of `for … of` loops, with the members that lead to the lists they go through.
fn loops(source: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices(" of ") {
        let name = source[..at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let list = source[at + 4..].trim_start_matches(['(', ' ']);
        let end = list.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '?'));
        let list = list[..end.unwrap_or(list.len())].trim_end_matches('?');
        let members = list.split('.').skip(1).map(|name| name.trim_end_matches('?').to_owned());
        if !name.is_empty() {
            found.push((name.to_owned(), members.collect()));
        }
    }
    found
}
