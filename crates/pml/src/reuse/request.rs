//! Binds the parameters of a procedure by comparing a new intent with one that succeeded.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Map, Value};

use super::choice::{self, SaidChoice};
use super::find;
use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass, literals};
use super::place::{self, Placement, SettledPlaces};
use super::same::{self, SameProcedureQuestion};
use super::similar::IntentPiece;
use super::switch::{self, SaidSwitch};
use super::template::{self, IntentTemplate, LiteralPart, ParameterLink, TemplateSlot};
use super::values::{self, Strictness, WordSwap};
use super::words::{self, IntentToken, IntentWord};
use super::{ArgumentBinding, ArgumentSource, MissingParameter, ReusableProcedure};

/// The form a new intent must have to be compared with a template.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum IntentForm {
    /// The same words, except for the values.
    Same,
    /// Any words.
    Any,
}

/// The inputs of one binding.
pub(super) struct BindRequest<'a> {
    pub(super) procedure: &'a ReusableProcedure<'a>,
    pub(super) properties: &'a Map<String, Value>,
    pub(super) intent: &'a str,
    pub(super) tokens: &'a [IntentToken],
    pub(super) context: &'a Map<String, Value>,
    pub(super) first_template: &'a IntentTemplate<'a>,
}

/// The outcome for one parameter.
enum ParameterOutcome {
    Value(Value, ArgumentSource),
    Missing(String),
    /// The default, which no intent ever mentioned, and the reason why it may not be used.
    Unsaid(Value, String),
    Absent,
}

impl BindRequest<'_> {
    pub(super) fn bind(&self, template: &IntentTemplate<'_>, form: IntentForm) -> ArgumentBinding {
        let mut binding = ArgumentBinding::default();
        self.take_context(&mut binding);
        let (named, known) = self.known(template, &binding);
        let placement = place::align(template, self.tokens, &known).or_else(|| {
            (form == IntentForm::Any).then(|| place::assign(template, self.tokens, &known, self.strictness()))
        });
        let Some(placement) = placement else {
            binding.unplaced.push(self.intent.to_owned());
            return binding;
        };
        let mut left = placement.unplaced.clone();
        for (name, schema) in self.properties {
            if self.context.contains_key(name) {
                continue;
            }
            let outcome = match named.get(name) {
                Some(value) => ParameterOutcome::Value(value.clone(), ArgumentSource::Intent),
                None => self.outcome(name, schema, template, &placement, &mut left),
            };
            self.record(name, schema, outcome, &mut binding);
        }
        self.unplaced(template, &placement, &left, &mut binding);
        binding.unplaced.extend(self.all_is_more(&binding));
        let before = pieces_before(template, &placement, &known);
        binding.similarity = same::same_procedure(&SameProcedureQuestion {
            served: &before,
            asked: &self.pieces_now(template, &placement, &known),
            served_text: template.intent,
            asked_text: self.intent,
            strictness: self.strictness(),
        });
        binding
    }

    pub(super) fn strictness(&self) -> Strictness {
        if self.procedure.reads_only { Strictness::Reads } else { Strictness::Writes }
    }

    /// The word `all`, where a numeric default that no intent mentioned would limit the result.
    fn all_is_more(&self, binding: &ArgumentBinding) -> Option<String> {
        let says_all = |token: &&IntentToken| token.content_word().is_some_and(|word| word.concept == "all");
        let limited = |(name, from): &(String, ArgumentSource)| {
            *from == ArgumentSource::Default && binding.arguments[name].is_number()
        };
        let before = self.first_template.tokens.iter().any(|token| says_all(&token));
        let word = self.tokens.iter().find(says_all).and_then(IntentToken::content_word);
        word.filter(|_| !before && binding.sources.iter().any(limited)).map(|word| word.raw.clone())
    }

    fn take_context(&self, binding: &mut ArgumentBinding) {
        for (name, value) in self.context {
            match self.properties.get(name).and_then(|schema| values::fit_to_schema(value.clone(), schema)) {
                Some(value) => {
                    binding.arguments.insert(name.clone(), value);
                    binding.sources.push((name.clone(), ArgumentSource::Context));
                }
                None => binding.unplaced.push(name.clone()),
            }
        }
    }

    /// The values that need not be searched for: those in the context, and those the intent gives by name.
    fn known(
        &self,
        template: &IntentTemplate<'_>,
        binding: &ArgumentBinding,
    ) -> (BTreeMap<String, Value>, SettledPlaces) {
        let mut known = SettledPlaces::default();
        for (at, slot) in template.slots.iter().enumerate() {
            let given = |(name, ..): &(String, Value, LiteralPart)| self.context.contains_key(name);
            if slot.parameters.iter().all(given) {
                known.slots.insert(at);
                known.template_tokens.extend(template::with_role(template.tokens, &slot.range));
                for (name, ..) in &slot.parameters {
                    let said = binding.arguments.get(name).map(|value| find::find_value(self.tokens, value));
                    for place in said.into_iter().flatten() {
                        known.intent_tokens.extend(template::with_role(self.tokens, &place));
                    }
                }
            }
        }
        let mut named = BTreeMap::new();
        for (name, (at, value)) in self.named() {
            known.intent_tokens.extend([at - 1, at]);
            named.insert(name, value);
        }
        for (name, schema) in self.properties.iter().filter(|(name, _)| !self.context.contains_key(*name)) {
            let default = schema.get("default").filter(|_| schema.get(super::UNSPOKEN).is_none());
            let Some(now) = switch::said_of_value(self.tokens, name, default) else { continue };
            match self.switch_in(template, name, schema) {
                Some(before) => known.template_tokens.extend(before.range),
                // What the first intent says of it is not what its run did.
                None if switch::said_of_value(template.tokens, name, default).is_some() => continue,
                None => {}
            }
            known.intent_tokens.extend(now.range);
            named.insert(name.clone(), now.value.into());
        }
        for (name, schema) in self.properties.iter().filter(|(name, _)| !self.context.contains_key(*name)) {
            // Of two parameters with the same values, the words do not say which one they mean.
            let alike = self.properties.values().filter(|other| other.get("enum") == schema.get("enum"));
            let Some(now) = choice::said_choice(self.tokens, schema).filter(|_| alike.count() == 1) else {
                continue;
            };
            // What the first intent does not say of it may be there for another reason.
            let Some(before) = self.choice_in(template, name, schema) else { continue };
            let slots = template.slots.iter().enumerate();
            let own = slots.filter(|(_, slot)| slot.parameters.iter().all(|(other, ..)| other == name));
            known.slots.extend(own.map(|(at, _)| at));
            known.template_tokens.extend(before.range);
            known.intent_tokens.extend(now.range);
            named.insert(name.clone(), now.value);
        }
        (named, known)
    }

    /// What an intent that succeeded says of a parameter with listed values, if that is the value it had.
    fn choice_in(&self, template: &IntentTemplate<'_>, name: &str, schema: &Value) -> Option<SaidChoice> {
        let said =
            choice::said_choice(template.tokens, schema).filter(|_| schema.get(super::UNSPOKEN).is_none())?;
        let is_first = std::ptr::eq(template, self.first_template);
        self.was_value(name, schema, &said.value, is_first).then_some(said)
    }

    /// Whether a parameter had the value in the first run, or where it is not about the first one, in any.
    fn was_value(&self, name: &str, schema: &Value, value: &Value, is_first: bool) -> bool {
        let mut examples = self.procedure.examples.get(name).into_iter().flatten();
        schema.get("default") == Some(value) || (!is_first && examples.any(|example| example == value))
    }

    /// What an intent that succeeded says of a boolean parameter, if that is the value it had.
    fn switch_in(&self, template: &IntentTemplate<'_>, name: &str, schema: &Value) -> Option<SaidSwitch> {
        let said = switch::said_of_value(template.tokens, name, schema.get("default"))?;
        let is_first = std::ptr::eq(template, self.first_template);
        self.was_value(name, schema, &Value::Bool(said.value), is_first).then_some(said)
    }

    /// Parameters that the first intent does not mention and the new one gives by name: `limit 10`, `limit=10`.
    fn named(&self) -> BTreeMap<String, (usize, Value)> {
        let mut found = BTreeMap::new();
        for (at, pair) in self.tokens.windows(2).enumerate() {
            let (IntentToken::Word(word), IntentToken::Literal(literal)) = (&pair[0], &pair[1]) else {
                continue;
            };
            let Some((name, schema)) =
                self.properties.iter().find(|(name, _)| values::same_text(name, &word.raw))
            else {
                continue;
            };
            if self.first_template.links.contains_key(name) || self.context.contains_key(name) {
                continue;
            }
            if let Some(value) =
                values::fit_to_schema(literal.value.clone(), schema).filter(|_| literal.unit().is_empty())
            {
                found.insert(name.clone(), (at + 1, value));
            }
        }
        found
    }

    fn outcome(
        &self,
        name: &str,
        schema: &Value,
        template: &IntentTemplate<'_>,
        placement: &Placement,
        left: &mut Vec<usize>,
    ) -> ParameterOutcome {
        let default = schema.get("default");
        let said_in = if template.links.contains_key(name) { template } else { self.first_template };
        match said_in.links.get(name) {
            Some(ParameterLink::Slot(at)) => self.at_slot(name, schema, said_in, *at, placement, left),
            Some(ParameterLink::Derived { of, exactly }) => self.made(name, default, said_in, of, *exactly),
            None => match default {
                Some(default) if self.first_template.depends_on_today && is_date(default) => {
                    ParameterOutcome::Missing(format!(
                        "`{name}` was {} when \"{}\" was said; another day it is another date",
                        show(default),
                        self.first_template.intent
                    ))
                }
                Some(default)
                    if self.switch_in(self.first_template, name, schema).is_some()
                        || self.choice_in(self.first_template, name, schema).is_some() =>
                {
                    ParameterOutcome::Missing(format!(
                        "`{name}` was {} in \"{}\"; the new intent does not say which",
                        show(default),
                        self.first_template.intent
                    ))
                }
                Some(default) => self.unsaid(name, default),
                None if self.required(name) => {
                    ParameterOutcome::Missing(format!("`{name}` has no value yet"))
                }
                None => ParameterOutcome::Absent,
            },
        }
    }

    /// The outcome for a default that no intent mentions: a constant, as long as every run had the same.
    fn unsaid(&self, name: &str, default: &Value) -> ParameterOutcome {
        let was = show(default);
        if let Some(said) = self.first_template.untaken_text(default) {
            let why = format!(
                "`{name}` was {was} before, though \"{}\" says `{said}`; it is not known what it is now",
                self.first_template.intent
            );
            return ParameterOutcome::Unsaid(default.clone(), why);
        }
        let mut others = self.procedure.examples.get(name).into_iter().flatten();
        match others.find(|value| *value != default) {
            Some(other) => {
                let why =
                    format!("`{name}` was {was} and {} before; the intent does not say which", show(other));
                ParameterOutcome::Unsaid(default.clone(), why)
            }
            None => ParameterOutcome::Value(default.clone(), ArgumentSource::Default),
        }
    }

    fn required(&self, name: &str) -> bool {
        let required = self.procedure.parameters.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|other| other == name))
    }

    fn at_slot(
        &self,
        name: &str,
        schema: &Value,
        template: &IntentTemplate<'_>,
        at: usize,
        placement: &Placement,
        left: &mut Vec<usize>,
    ) -> ParameterOutcome {
        let slot = &template.slots[at];
        let Some((_, before, take)) = slot.parameters.iter().find(|(other, ..)| other == name) else {
            return ParameterOutcome::Missing(format!("`{name}` has no value yet"));
        };
        if slot.is_ambiguous {
            let same = template::folded_words(template.tokens) == template::folded_words(self.tokens);
            return if same {
                ParameterOutcome::Value(before.clone(), ArgumentSource::RepeatedDefault)
            } else {
                ParameterOutcome::Missing(format!(
                    "`{name}` was {} in \"{}\", where that stands for more than one thing; the new intent does not say which",
                    show(before),
                    template.intent
                ))
            };
        }
        let found = placement.slot_ranges.get(&at);
        let aligned = placement.aligned || placement.is_only_difference;
        let value =
            found.and_then(|range| self.value(name, schema, template, (slot, aligned), before, *take, range));
        match value {
            Some(value) if Some(&value) == schema.get("default") => {
                ParameterOutcome::Value(value, ArgumentSource::RepeatedDefault)
            }
            Some(value) => ParameterOutcome::Value(value, ArgumentSource::Intent),
            None => {
                left.extend(found.cloned().into_iter().flatten());
                ParameterOutcome::Missing(format!(
                    "`{name}` was {} in \"{}\"; the new intent does not say which",
                    show(before),
                    template.intent
                ))
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what was said, what it stood for, and what is said now")]
    fn value(
        &self,
        name: &str,
        schema: &Value,
        template: &IntentTemplate<'_>,
        (slot, aligned): (&TemplateSlot, bool),
        before: &Value,
        take: LiteralPart,
        range: &Range<usize>,
    ) -> Option<Value> {
        let new = match &self.tokens[range.start] {
            IntentToken::Literal(literal) if range.len() == 1 => Some(literal),
            IntentToken::Literal(_) | IntentToken::Word(_) => None,
        };
        match (template.literal(slot), new, take) {
            (Some(_), Some(new), LiteralPart::Half(half)) => {
                let (owner, name) = template::split(new)?;
                values::fit_to_schema(Value::from(if half == 0 { owner } else { name }), schema)
            }
            (Some(old), Some(new), LiteralPart::Whole) if old.says_same_as(new) => Some(before.clone()),
            (Some(old), Some(new), LiteralPart::Whole) => {
                values::fill(old, before, new, schema, self.strictness())
            }
            (None, Some(new), LiteralPart::Whole) if !replaces_words(new, name, schema) => None,
            (None, _, LiteralPart::Whole) | (Some(_), None, LiteralPart::Whole) => {
                let swap = WordSwap {
                    old: template.text(&slot.range),
                    before: before.as_str()?,
                    new: template::spoken_text(self.intent, self.tokens, range),
                    examples: self.procedure.examples.get(name).map_or(&[][..], Vec::as_slice),
                    schema,
                    begins: range.start == 0,
                    governed: template::role(template.tokens, slot.range.start)
                        & template::role(self.tokens, range.start)
                        != 0,
                    aligned,
                    takes_object: matches!(self.tokens.get(range.end), Some(IntentToken::Word(next)) if next.function == words::WordFunction::Nothing),
                    beside_same: aligned
                        && place::beside_same(template.tokens, &slot.range, self.tokens, range),
                };
                values::swap(&swap, self.strictness())
            }
            (_, None, LiteralPart::Half(_)) | (None, _, LiteralPart::Half(_)) => None,
        }
    }

    /// A value derived from literals is kept only where the new intent repeats all of them.
    fn made(
        &self,
        name: &str,
        default: Option<&Value>,
        template: &IntentTemplate<'_>,
        of: &[usize],
        exactly: bool,
    ) -> ParameterOutcome {
        let again = |at: &usize| match &template.tokens[*at] {
            IntentToken::Literal(literal) => self
                .tokens
                .iter()
                .any(|token| matches!(token, IntentToken::Literal(other) if literal.says_same_as(other))),
            IntentToken::Word(_) => false,
        };
        match default {
            Some(default) if of.iter().all(again) && (exactly || self.procedure.reads_only) => {
                ParameterOutcome::Value(default.clone(), ArgumentSource::RepeatedDefault)
            }
            Some(default) => ParameterOutcome::Missing(format!(
                "`{name}` was {}, made of what \"{}\" says; it is not known what it is now",
                show(default),
                template.intent
            )),
            None => ParameterOutcome::Absent,
        }
    }

    fn record(&self, name: &str, schema: &Value, outcome: ParameterOutcome, binding: &mut ArgumentBinding) {
        match outcome {
            ParameterOutcome::Value(value, from) => {
                binding.arguments.insert(name.to_owned(), value);
                binding.sources.push((name.to_owned(), from));
            }
            ParameterOutcome::Missing(why) => self.miss(name, schema, why, None, binding),
            ParameterOutcome::Unsaid(default, why) => self.miss(name, schema, why, Some(default), binding),
            ParameterOutcome::Absent => {}
        }
    }

    fn miss(
        &self,
        name: &str,
        schema: &Value,
        why: String,
        unsaid: Option<Value>,
        binding: &mut ArgumentBinding,
    ) {
        let later = self.procedure.examples.get(name).into_iter().flatten();
        let mut candidates: Vec<Value> = Vec::new();
        for value in schema.get("default").into_iter().chain(later) {
            if !candidates.contains(value) {
                candidates.push(value.clone());
            }
        }
        binding.missing.push(MissingParameter {
            name: name.to_owned(),
            reason: why,
            candidates,
            unspoken_default: unsaid,
        });
    }

    fn unplaced(
        &self,
        template: &IntentTemplate<'_>,
        placement: &Placement,
        left: &[usize],
        binding: &mut ArgumentBinding,
    ) {
        for at in left {
            binding.unplaced.push(template::spoken_text(self.intent, self.tokens, &(*at..at + 1)).to_owned());
        }
        for at in &placement.dropped {
            binding.unplaced.push(template.text(&(*at..at + 1)).to_owned());
        }
    }

    /// Whether the first intent has the same word.
    fn first_says(&self, token: &IntentToken) -> bool {
        let concept = |token: &IntentToken| token.content_word().map(|word| word.concept.clone());
        self.first_template
            .tokens
            .iter()
            .any(|other| concept(other).is_some() && concept(other) == concept(token))
    }

    /// The pieces of the new intent, with the placed values as slots.
    fn pieces_now<'t>(
        &'t self,
        template: &'t IntentTemplate<'_>,
        placement: &Placement,
        known: &SettledPlaces,
    ) -> Vec<IntentPiece<'t>> {
        let given: Vec<LiteralClass> = known
            .slots
            .iter()
            .filter_map(|slot| template.literal(&template.slots[*slot]))
            .map(|l| l.class)
            .collect();
        let mut leave = known.intent_tokens.clone();
        for (at, token) in self.tokens.iter().enumerate() {
            // `the file` refers to the one that the context names, and `the address` to its member `address`.
            let refers = |word: &IntentWord| {
                given.iter().any(|class| words::shown_by(*class, &word.concept))
                    || self.context.keys().any(|name| words::concept(name) == word.concept)
            };
            if token.content_word().is_some_and(refers) && !self.first_says(token) {
                leave.extend(template::with_role(self.tokens, &(at..at + 1)));
            }
        }
        let places =
            placement.slot_ranges.iter().map(|(slot, range)| (range.clone(), *slot)).collect::<Vec<_>>();
        pieces(self.tokens, &places, template, &leave)
    }
}

fn pieces_before<'t>(
    template: &'t IntentTemplate<'_>,
    placement: &Placement,
    known: &SettledPlaces,
) -> Vec<IntentPiece<'t>> {
    let places: Vec<(Range<usize>, usize)> =
        placement.slot_ranges.keys().map(|slot| (template.slots[*slot].range.clone(), *slot)).collect();
    pieces(template.tokens, &places, template, &known.template_tokens)
}

fn pieces<'t>(
    tokens: &'t [IntentToken],
    places: &[(Range<usize>, usize)],
    template: &'t IntentTemplate<'_>,
    leave: &BTreeSet<usize>,
) -> Vec<IntentPiece<'t>> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| !leave.contains(at)) {
        match places.iter().find(|(range, _)| range.contains(&at)) {
            Some((range, slot)) if range.start == at => {
                let slot = &template.slots[*slot];
                let class = template.literal(slot).map(|literal| literal.class);
                found.push(IntentPiece::Slot(&slot.parameters[0].0, class));
            }
            Some(_) => {}
            None => found.push(IntentPiece::Token(token)),
        }
    }
    found
}

/// Whether a literal can replace plain words.
fn replaces_words(literal: &IntentLiteral, name: &str, schema: &Value) -> bool {
    match literal.class {
        LiteralClass::Name | LiteralClass::Quoted => true,
        class => expected(name, schema) == Some(class),
    }
}

/// The class of literals that a parameter takes, where its name or format tells.
fn expected(name: &str, schema: &Value) -> Option<LiteralClass> {
    match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => return Some(LiteralClass::Url),
        Some("email") => return Some(LiteralClass::Email),
        Some("date" | "date-time") => return Some(LiteralClass::Date),
        Some(_) | None => {}
    }
    match fold(name).as_str() {
        "path" | "file" | "filename" | "folder" | "directory" | "dir" => Some(LiteralClass::Path),
        "url" | "uri" | "link" => Some(LiteralClass::Url),
        "email" => Some(LiteralClass::Email),
        "channel" => Some(LiteralClass::Channel),
        _ => None,
    }
}

/// Whether a default is a point in time.
fn is_date(value: &Value) -> bool {
    match value {
        Value::String(text) => literals(text).iter().any(|literal| literal.class == LiteralClass::Date),
        // Seconds or milliseconds since 1970, from 2001 on.
        Value::Number(number) => number.as_f64().is_some_and(|number| number >= 1e9),
        Value::Array(items) => items.iter().any(is_date),
        Value::Object(fields) => fields.values().any(is_date),
        Value::Null | Value::Bool(_) => false,
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}
