//! Which way a step goes: "convert the CSV to JSON" gives CSV and wants JSON.
//!
//! Ranking by words and embeddings cannot tell a tool from its opposite, because both are about the same things. The
//! fields of the tools can: one takes what the step gives, the other takes what it wants.

use std::collections::HashSet;

use pml_graph::graph::fields::ToolFields;

use super::super::words;

/// Words before what something is turned into.
const INTO: &[&str] = &["to", "into", "as"];
/// Words that stand between [`INTO`] and what it leads to.
const ARTICLES: &[&str] = &["a", "an", "the"];
/// The factor on the odds of a tool if the step names what it needs; divided by it, if the tool goes the other way.
const EVIDENCE: f64 = 3.0;

/// The things that a step names.
#[derive(Debug, Default)]
pub(super) struct StepDirection {
    given: HashSet<String>,
    wanted: HashSet<String>,
}

impl StepDirection {
    /// Reads the words of a step, without its literals.
    pub(super) fn of(step: &str) -> StepDirection {
        let mut direction = StepDirection::default();
        let mut after_into = false;
        for word in words(step) {
            if INTO.contains(&word.as_str()) {
                after_into = true;
            } else if !ARTICLES.contains(&word.as_str()) {
                let named = if after_into { &mut direction.wanted } else { &mut direction.given };
                named.insert(word);
                after_into = false;
            }
        }
        direction
    }

    /// Whether the step names this as something that is there already.
    pub(super) fn gives(&self, name: &str) -> bool {
        self.given.contains(name) && !self.wanted.contains(name)
    }

    /// Whether a tool takes what the step wants, or returns what the step gives.
    pub(super) fn is_opposite(&self, tool: &ToolFields) -> bool {
        let returns = |named: &HashSet<String>| {
            tool.outputs.iter().any(|output| named.contains(&output.path.to_lowercase()))
        };
        !takes(tool, &self.given)
            && (takes(tool, &self.wanted)
                || (returns(&self.given) && !self.wanted.is_empty() && !returns(&self.wanted)))
    }

    /// The probability that a tool serves the step, with regard to what it takes and returns.
    pub(super) fn weigh(&self, probability: f64, tool: &ToolFields) -> f64 {
        let evidence = if takes(tool, &self.given) {
            EVIDENCE
        } else if self.is_opposite(tool) {
            1.0 / EVIDENCE
        } else {
            1.0
        };
        let weighed = probability * evidence;
        weighed / (weighed + 1.0 - probability)
    }
}

/// Whether a tool requires something of these names.
fn takes(tool: &ToolFields, named: &HashSet<String>) -> bool {
    let mut required = tool.inputs.iter().filter(|input| input.required);
    required.any(|input| named.contains(&input.name.to_lowercase()))
}
