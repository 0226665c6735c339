//! Decides whether a learned procedure may run on an intent alone, and with which arguments.
//!
//! A procedure was learned from an intent whose values became the defaults of its parameters. A new intent that asks
//! for the same with other values has to give them: in `context`, or in its text where that is unambiguous. A
//! parameter whose value the first intent gave and the new one does not is missing. A value of the new intent that
//! fits no parameter is unplaced. Either makes the reply a suggestion instead of a run. This module uses no clock,
//! store or network: the same texts always get the same result. Whether the caller may run the procedure at all is
//! decided elsewhere.

mod choice;
mod find;
mod fixed;
mod lift;
mod mask;
mod name;
#[cfg(test)]
mod opposites;
#[cfg(test)]
mod pairs;
mod place;
mod read;
mod request;
mod same;
mod similar;
mod switch;
mod template;
#[cfg(test)]
mod tests;
mod values;

use std::collections::BTreeMap;

// What the modules of this one read sentences with.
use pml_language::literals::literals;
use pml_language::{dates, fold, kinds, literals, vocabulary, words};
use serde_json::{Map, Value};

pub use fixed::{Contradiction, ContradictionGrounds, Judgement, judge};
pub use lift::{ArgumentLiteral, LiftedParameter, LiftedProgram, lift};
pub use mask::masked;
pub use name::{describe, name_for};
pub use read::ReadIntent;

use request::{BindRequest, IntentForm};
use template::{IntentTemplate, ParameterLink};

/// The similarity from which on two intents count as asking for the same procedure.
pub const SURE: f64 = 0.85;

/// The longest intent that is read, in bytes. A longer text is no request, and reading all of it would take time.
const LONGEST: usize = 4_000;

/// The member of a parameter's schema that says that no intent speaks of it: its value equals one of an intent by chance.
pub const UNSPOKEN: &str = "x-pml-unspoken";

/// A learned procedure, as far as binding needs it.
#[derive(Debug, Clone, Copy)]
pub struct ReusableProcedure<'a> {
    /// The JSON Schema of its parameters, with the values of the first intent as defaults.
    pub parameters: &'a Value,
    /// The intents it succeeded with. The values of the first one are the defaults.
    pub intents: &'a [&'a ReadIntent],
    /// Values of later runs, by parameter.
    pub examples: &'a BTreeMap<String, Vec<Value>>,
    /// Whether all of its tools are read-only.
    pub reads_only: bool,
}

/// The arguments for a new intent, and what prevents a run with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentBinding {
    /// A value for every parameter that has one.
    pub arguments: Map<String, Value>,
    /// The source of each argument.
    pub sources: Vec<(String, ArgumentSource)>,
    /// Parameters whose value the intent does not determine.
    pub missing: Vec<MissingParameter>,
    /// Values of the intent or the context that no parameter takes, and values of the first intent that no parameter
    /// takes and the new one does not repeat.
    pub unplaced: Vec<String>,
    /// The similarity of the intents, values aside, from 0 to 1: compare with [`SURE`].
    pub similarity: f64,
}

impl ArgumentBinding {
    /// The binding for a caller that named the procedure. A parameter that no intent ever mentioned keeps its
    /// default. Where the caller gives values by name in `context`, what the intent says besides does not matter.
    #[must_use]
    pub fn for_named_procedure(mut self, context: &Map<String, Value>) -> ArgumentBinding {
        let (unsaid, missing): (Vec<MissingParameter>, Vec<MissingParameter>) =
            self.missing.into_iter().partition(|missing| missing.unspoken_default.is_some());
        for MissingParameter { name, unspoken_default: unsaid, .. } in unsaid {
            self.arguments.extend(unsaid.map(|value| (name.clone(), value)));
            self.sources.push((name, ArgumentSource::Default));
        }
        if !context.is_empty() {
            // Only the names in `context` that the procedure does not know stay unplaced.
            self.unplaced.retain(|said| context.contains_key(said));
        }
        ArgumentBinding { missing, ..self }
    }

    /// Whether every parameter has a value and every value has a parameter.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unplaced.is_empty()
    }
}

/// The source of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentSource {
    /// The caller gave it by name in `context`.
    Context,
    /// The intent names it.
    Intent,
    /// The default, which the intent repeats.
    RepeatedDefault,
    /// The default, which no intent ever mentioned.
    Default,
}

/// A parameter without a value.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingParameter {
    /// The name of the parameter.
    pub name: String,
    /// A sentence that explains why the value is not known.
    pub reason: String,
    /// Values of earlier runs.
    pub candidates: Vec<Value>,
    /// The default, where no intent ever mentioned it. A caller that names the procedure accepts it.
    pub unspoken_default: Option<Value>,
}

/// Binds the parameters of `procedure` to the values in `intent` and `context`.
pub fn bind(
    procedure: &ReusableProcedure<'_>,
    intent: &ReadIntent,
    context: &Map<String, Value>,
) -> ArgumentBinding {
    if intent.is_too_long() {
        return too_long();
    }
    if let Some(binding) = bind_verbatim(procedure, intent, context) {
        return binding;
    }
    let as_said = bind_as_said(procedure, intent, context);
    if as_said.is_complete() && as_said.similarity >= SURE {
        return as_said;
    }
    let said = intent;
    let resolved = intent.with_meanings_of(procedure.intents);
    let intent = resolved.as_ref().unwrap_or(intent);
    let Some((intent, intents)) = both_in_english(procedure, intent) else { return as_said };
    let mut glossed = bind_as_said(&ReusableProcedure { intents: &intents, ..*procedure }, intent, context);
    leave_translations_open(procedure, said, &mut glossed);
    let rank = |binding: &ArgumentBinding| (binding.is_complete(), binding.similarity);
    if rank(&glossed) > rank(&as_said) { glossed } else { as_said }
}

/// Leaves values open that the intent does not say in these words: a plain word of a French sentence may be a value that
/// the gloss took for a word, as `sent` in `marque le colis comme sent`. Names of languages and the like are the same
/// value in either language.
fn leave_translations_open(
    procedure: &ReusableProcedure<'_>,
    said: &ReadIntent,
    binding: &mut ArgumentBinding,
) {
    let schema = |name: &str| procedure.parameters.get("properties").and_then(|all| all.get(name));
    let is_translated = |name: &str, value: &Value| {
        let plain = |text: &str| text.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '-');
        let listed = schema(name).is_some_and(|schema| schema.get("enum").is_some());
        let known = procedure.examples.get(name).is_some_and(|examples| examples.contains(value));
        let word = value.as_str().filter(|text| plain(text));
        word.is_some_and(|text| kinds::word_kind(&fold::fold(text)).is_none())
            && !listed
            && !known
            && !said.mentions(value)
    };
    let (open, kept): (Vec<_>, Vec<_>) =
        std::mem::take(&mut binding.sources).into_iter().partition(|(name, source)| {
            *source == ArgumentSource::Intent && is_translated(name, &binding.arguments[name])
        });
    binding.sources = kept;
    for (name, _) in open {
        binding.arguments.remove(&name);
        let reason = format!("it is not clear which word of the intent `{name}` is");
        binding.missing.push(MissingParameter {
            name,
            reason,
            candidates: Vec::new(),
            unspoken_default: None,
        });
    }
}

/// The binding of the first intent word for word, without other values beside it: the values of the first run.
fn bind_verbatim(
    procedure: &ReusableProcedure<'_>,
    intent: &ReadIntent,
    context: &Map<String, Value>,
) -> Option<ArgumentBinding> {
    let first = procedure.intents.first().filter(|first| first.text().trim() == intent.text().trim())?;
    let properties = procedure.parameters.get("properties").and_then(Value::as_object)?;
    let template = IntentTemplate::new(first, &values_of(procedure, properties, EarlierValues::First));
    // What counts from today is another day tomorrow, and a default may be that of another run.
    let is_doubtful = |(name, schema): (&String, &Value)| {
        let spoken = schema.get(UNSPOKEN).is_none() && !lift::LAYOUT_ARGUMENTS.contains(&name.as_str());
        let default = schema.get("default").filter(|_| spoken && !template.links.contains_key(name));
        default.is_some_and(|default| template.untaken_text(default).is_some())
    };
    if !context.is_empty() || template.depends_on_today || properties.iter().any(is_doubtful) {
        return None;
    }
    let required = procedure.parameters.get("required").and_then(Value::as_array);
    let mut binding = ArgumentBinding { similarity: 1.0, ..ArgumentBinding::default() };
    for (name, schema) in properties {
        match schema.get("default") {
            Some(value) => {
                binding.arguments.insert(name.clone(), value.clone());
                binding.sources.push((name.clone(), ArgumentSource::RepeatedDefault));
            }
            None if required.is_some_and(|names| names.iter().any(|other| other == name)) => return None,
            None => {}
        }
    }
    Some(binding)
}

/// The intent and the served ones in English, where any of them is French.
fn both_in_english<'p>(
    procedure: &ReusableProcedure<'p>,
    intent: &'p ReadIntent,
) -> Option<(&'p ReadIntent, Vec<&'p ReadIntent>)> {
    if intent.english().is_none() && procedure.intents.iter().all(|served| served.english().is_none()) {
        return None;
    }
    // A value that is a plain word is lost in the gloss, and with it the place where it stood.
    let keeps_values = |said: &ReadIntent, english: &ReadIntent| {
        let properties = procedure.parameters.get("properties").and_then(Value::as_object);
        let mut defaults = properties.into_iter().flatten().filter_map(|(_, schema)| schema.get("default"));
        defaults.all(|value| english.mentions(value) || !said.mentions(value))
    };
    let mut served = procedure.intents.iter();
    if !served.all(|said| said.english().is_none_or(|english| keeps_values(said, english))) {
        return None;
    }
    let in_english = |said: &'p ReadIntent| said.english().unwrap_or(said);
    Some((in_english(intent), procedure.intents.iter().map(|said| in_english(said)).collect()))
}

fn bind_as_said(
    procedure: &ReusableProcedure<'_>,
    intent: &ReadIntent,
    context: &Map<String, Value>,
) -> ArgumentBinding {
    let none = (Map::new(), ReadIntent::new(""));
    let properties = procedure.parameters.get("properties").and_then(Value::as_object).unwrap_or(&none.0);
    let first = IntentTemplate::new(
        procedure.intents.first().copied().unwrap_or(&none.1),
        &values_of(procedure, properties, EarlierValues::First),
    );
    let request = BindRequest {
        procedure,
        properties,
        intent: intent.text(),
        tokens: intent.tokens(),
        context,
        first_template: &first,
    };
    let mut best = request.bind(&first, IntentForm::Any);
    for later in procedure.intents.iter().skip(1) {
        let template = IntentTemplate::new(later, &values_of(procedure, properties, EarlierValues::Any));
        // A later intent replaces the first as the template only where it names every parameter that the first does.
        let says = |(name, link): (&String, &ParameterLink)| {
            !matches!(link, ParameterLink::Slot(_))
                || matches!(template.links.get(name), Some(ParameterLink::Slot(_)))
        };
        if !best.is_complete() && first.links.iter().all(says) {
            let other = request.bind(&template, IntentForm::Same);
            best = if other.is_complete() { other } else { best };
        }
        best.similarity = best.similarity.max(later.similarity_for(intent, request.strictness()));
    }
    best
}

/// Whether `intent` contains `value`; see [`ReadIntent::mentions`].
pub fn mentions(intent: &str, value: &Value) -> bool {
    ReadIntent::new(intent).mentions(value)
}

/// Whether two intents name the same values in the same order.
pub fn same_literals(one: &str, other: &str) -> bool {
    let (one, other) = (literals(one), literals(other));
    one.len() == other.len() && one.iter().zip(&other).all(|(mine, theirs)| mine.says_same_as(theirs))
}

fn too_long() -> ArgumentBinding {
    let unplaced = vec![format!("an intent of more than {LONGEST} bytes")];
    ArgumentBinding { unplaced, ..ArgumentBinding::default() }
}

/// Which earlier values are searched for in an intent: the defaults, or the later examples too.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EarlierValues {
    First,
    Any,
}

fn values_of(
    procedure: &ReusableProcedure<'_>,
    properties: &Map<String, Value>,
    past: EarlierValues,
) -> Vec<(String, Vec<Value>)> {
    let spoken = |(_, schema): &(&String, &Value)| schema.get(UNSPOKEN).is_none();
    let values = |(name, schema): (&String, &Value)| {
        let default = schema.get("default").cloned();
        let later = procedure.examples.get(name).filter(|_| past == EarlierValues::Any);
        (name.clone(), default.into_iter().chain(later.into_iter().flatten().cloned()).collect())
    };
    properties.iter().filter(spoken).map(values).collect()
}
