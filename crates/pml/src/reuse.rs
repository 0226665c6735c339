//! Decides whether a learned procedure may run on an intent alone, and with which arguments.
//!
//! A procedure was learned from an intent whose values became the defaults of its parameters. A new
//! intent that asks for the same with other values has to say them: from `context`, or where the text
//! leaves no doubt. A value that was said before and is not said now is missing, a value that is said
//! now and belongs nowhere is unplaced, and either makes the answer a suggestion instead of a run.
//! No clock, store or network: the same words always get the same answer. That the caller may run the
//! procedure at all is decided elsewhere.

mod dates;
mod fixed;
mod kinds;
mod literals;
mod name;
#[cfg(test)]
mod pairs;
mod place;
mod request;
mod similar;
mod template;
#[cfg(test)]
mod tests;
mod values;
mod vocabulary;
mod words;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

pub use fixed::{Contradiction, Judgement, judge};
pub use literals::{Class, Literal, literals};
pub use name::name_for;
pub use similar::Read;

/// The day that `text` names, as `2026-11-16`, where it says year, month and day and no more.
pub fn day(text: &str) -> Option<String> {
    dates::read(text).day
}

use request::{Form, Request};
use template::{Link, Template};

/// From here on two intents ask for the same procedure.
pub const SURE: f64 = 0.85;

/// The longest intent that is read, in bytes: what is longer is no request but a text, and reading it all
/// would take time.
const LONGEST: usize = 4_000;

/// What is known of a learned procedure.
#[derive(Debug, Clone, Copy)]
pub struct Procedure<'a> {
    /// The JSON Schema of its parameters, with the values of the first intent as defaults.
    pub parameters: &'a Value,
    /// The intents it succeeded with; the first is the one whose values are the defaults.
    pub intents: &'a [&'a str],
    /// Values that parameters had later.
    pub examples: &'a BTreeMap<String, Vec<Value>>,
    /// Whether all of its tools only read.
    pub reads_only: bool,
}

/// The arguments for a new intent, and what stands in the way of running with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Binding {
    /// A value for every parameter that has one.
    pub arguments: Map<String, Value>,
    /// Where each argument is from.
    pub sources: Vec<(String, From)>,
    /// Parameters whose value the intent leaves open.
    pub missing: Vec<Missing>,
    /// What the intent or the context says and nothing takes, and what the first intent said besides its
    /// values and the new one does not.
    pub unplaced: Vec<String>,
    /// How sure the intent asks for this procedure, the values aside: compare with [`SURE`].
    pub similarity: f64,
}

impl Binding {
    /// The same where the caller named the procedure: what no intent ever spoke of is as it was, and who gives values by
    /// name has said what they mean.
    #[must_use]
    pub fn by_name(mut self, context: &Map<String, Value>) -> Binding {
        let (unsaid, missing): (Vec<Missing>, Vec<Missing>) =
            self.missing.into_iter().partition(|missing| missing.unsaid.is_some());
        for Missing { name, unsaid, .. } in unsaid {
            self.arguments.extend(unsaid.map(|value| (name.clone(), value)));
            self.sources.push((name, From::Default));
        }
        if !context.is_empty() {
            // Names that the procedure does not know stay.
            self.unplaced.retain(|said| context.contains_key(said));
        }
        Binding { missing, ..self }
    }

    /// Whether every value is known and everything said has its place.
    pub fn runs(&self) -> bool {
        self.missing.is_empty() && self.unplaced.is_empty()
    }
}

/// Where an argument is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The caller gave it by name.
    Context,
    /// The intent says it.
    Intent,
    /// It is the default, and the intent says it again.
    Repeated,
    /// It is the default, which no intent ever spoke of.
    Default,
}

/// A parameter whose value is not known.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// The parameter.
    pub name: String,
    /// A sentence that says what is open.
    pub why: String,
    /// Values it has had.
    pub candidates: Vec<Value>,
    /// Its default, where no intent ever spoke of it: whoever names the procedure takes it as it is.
    pub unsaid: Option<Value>,
}

/// The arguments with which `procedure` would do what `intent` asks.
pub fn bind(procedure: &Procedure<'_>, intent: &str, context: &Map<String, Value>) -> Binding {
    if intent.len() > LONGEST {
        return too_long();
    }
    let new = words::tokens(intent);
    let properties =
        procedure.parameters.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let first = Template::new(
        procedure.intents.first().unwrap_or(&""),
        &values_of(procedure, &properties, Past::First),
    );
    let request = Request { procedure, properties: &properties, intent, new: &new, context, first: &first };
    let mut best = request.bind(&first, Form::Any);
    for later in procedure.intents.iter().skip(1) {
        let template = Template::new(later, &values_of(procedure, &properties, Past::Any));
        // A later intent stands in for the first only where it says all that the first does.
        let says = |(name, link): (&String, &Link)| {
            !matches!(link, Link::Slot(_)) || matches!(template.links.get(name), Some(Link::Slot(_)))
        };
        if !best.runs() && first.links.iter().all(says) {
            let other = request.bind(&template, Form::Same);
            best = if other.runs() { other } else { best };
        }
        let alike = similar::similarity_of(later, intent, request.strict());
        best.similarity = best.similarity.max(request.doubted(later, alike));
    }
    best
}

/// Whether `intent` says `value`: as a literal or in the same words; of a list or an object, every part.
pub fn mentions(intent: &str, value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty() && items.iter().all(|item| mentions(intent, item)),
        Value::Object(fields) => !fields.is_empty() && fields.values().all(|field| mentions(intent, field)),
        leaf => !template::places(&words::tokens(intent), leaf).is_empty(),
    }
}

/// Whether two intents name the same values in the same order.
pub fn same_literals(one: &str, other: &str) -> bool {
    let (one, other) = (literals(one), literals(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(mine, theirs)| mine.same(theirs))
}

fn too_long() -> Binding {
    let unplaced = vec![format!("an intent of more than {LONGEST} bytes")];
    Binding { unplaced, ..Binding::default() }
}

/// Which earlier values are looked for in an intent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Past {
    First,
    Any,
}

fn values_of(
    procedure: &Procedure<'_>,
    properties: &Map<String, Value>,
    past: Past,
) -> Vec<(String, Vec<Value>)> {
    let values = |(name, schema): (&String, &Value)| {
        let default = schema.get("default").cloned();
        let later = procedure.examples.get(name).filter(|_| past == Past::Any);
        (name.clone(), default.into_iter().chain(later.into_iter().flatten().cloned()).collect())
    };
    properties.iter().map(values).collect()
}
