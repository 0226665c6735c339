//! One intent held against one intent that succeeded: what became of every parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::{Map, Value};

use super::literals::{Class, Literal, literals};
use super::place::{self, Known, Placement};
use super::similar::{self, Piece};
use super::template::{self, Link, Slot, Take, Template};
use super::values::{self, Strict, Swap};
use super::words::{self, Token};
use super::{Binding, From, Missing, Procedure, vocabulary};

/// Which form a new intent may have to be compared with a template.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Word by word the same, but for the values.
    Same,
    /// Any.
    Any,
}

/// What is asked, of which procedure.
pub(super) struct Request<'a> {
    pub(super) procedure: &'a Procedure<'a>,
    pub(super) properties: &'a Map<String, Value>,
    pub(super) intent: &'a str,
    pub(super) new: &'a [Token],
    pub(super) context: &'a Map<String, Value>,
    pub(super) first: &'a Template,
}

/// What became of one parameter.
enum Outcome {
    Value(Value, From),
    Missing(String),
    /// It has a default that no intent ever spoke of, and why that is not enough.
    Unsaid(Value, String),
    Absent,
}

impl Request<'_> {
    pub(super) fn bind(&self, template: &Template, form: Form) -> Binding {
        let mut binding = Binding::default();
        self.take_context(&mut binding);
        let (named, known) = self.known(template, &binding);
        let placement = place::align(template, self.new, &known).or_else(|| {
            (form == Form::Any).then(|| place::assign(template, self.new, &known, self.strict()))
        });
        let Some(placement) = placement else {
            binding.unplaced.push(self.intent.to_owned());
            return binding;
        };
        let mut left = placement.left.clone();
        for (name, schema) in self.properties {
            if self.context.contains_key(name) {
                continue;
            }
            let outcome = match named.get(name) {
                Some((_, value)) => Outcome::Value(value.clone(), From::Intent),
                None => self.outcome(name, schema, template, &placement, &mut left),
            };
            self.record(name, schema, outcome, &mut binding);
        }
        self.unplaced(template, &placement, &left, &mut binding);
        binding.unplaced.extend(self.all_is_more(&binding));
        let before = pieces_before(template, &placement, &known);
        let alike = similar::compare(&before, &self.pieces_now(template, &placement, &known), self.strict());
        binding.similarity = self.doubted(&template.intent, alike);
        binding
    }

    pub(super) fn strict(&self) -> Strict {
        if self.procedure.reads_only { Strict::Reads } else { Strict::Writes }
    }

    /// A question is no order to change something, unless it asks whether one could do it.
    pub(super) fn doubted(&self, before: &str, similarity: f64) -> f64 {
        let asks = |intent: &str| intent.trim_end().ends_with('?');
        let requests = || {
            template::in_order(self.new).iter().any(|word| vocabulary::REQUESTING.contains(&word.as_str()))
        };
        let questions = !self.procedure.reads_only && asks(self.intent) && !asks(before) && !requests();
        if questions { similarity.min(0.5) } else { similarity }
    }

    /// Who says `all` does not want as many as a default nobody spoke of.
    fn all_is_more(&self, binding: &Binding) -> Option<String> {
        let says_all = |token: &&Token| token.content().is_some_and(|word| word.concept == "all");
        let limited =
            |(name, from): &(String, From)| *from == From::Default && binding.arguments[name].is_number();
        let before = self.first.tokens.iter().any(|token| says_all(&token));
        let word = self.new.iter().find(says_all).and_then(Token::content);
        word.filter(|_| !before && binding.sources.iter().any(limited)).map(|word| word.raw.clone())
    }

    fn take_context(&self, binding: &mut Binding) {
        for (name, value) in self.context {
            match self.properties.get(name).and_then(|schema| values::fit(value.clone(), schema)) {
                Some(value) => {
                    binding.arguments.insert(name.clone(), value);
                    binding.sources.push((name.clone(), From::Context));
                }
                None => binding.unplaced.push(name.clone()),
            }
        }
    }

    /// Values that need not be looked for: those of the context, and those the intent gives by name.
    fn known(&self, template: &Template, binding: &Binding) -> (BTreeMap<String, (usize, Value)>, Known) {
        let mut known = Known::default();
        for (at, slot) in template.slots.iter().enumerate() {
            let given = |(name, ..): &(String, Value, Take)| self.context.contains_key(name);
            if slot.parameters.iter().all(given) {
                known.slots.insert(at);
                known.before.extend(template::with_role(&template.tokens, &slot.range));
                for (name, ..) in &slot.parameters {
                    let said = binding.arguments.get(name).map(|value| template::places(self.new, value));
                    for place in said.into_iter().flatten() {
                        known.now.extend(template::with_role(self.new, &place));
                    }
                }
            }
        }
        let named = self.named();
        for (at, _) in named.values() {
            known.now.extend([at - 1, *at]);
        }
        (named, known)
    }

    /// Parameters the first intent is silent on and the new one gives by name: `limit 10`, `limit=10`.
    fn named(&self) -> BTreeMap<String, (usize, Value)> {
        let mut found = BTreeMap::new();
        for (at, pair) in self.new.windows(2).enumerate() {
            let (Token::Word(word), Token::Literal(literal)) = (&pair[0], &pair[1]) else { continue };
            let Some((name, schema)) =
                self.properties.iter().find(|(name, _)| values::same_text(name, &word.raw))
            else {
                continue;
            };
            if self.first.links.contains_key(name) || self.context.contains_key(name) {
                continue;
            }
            if let Some(value) =
                values::fit(literal.value.clone(), schema).filter(|_| literal.unit().is_empty())
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
        template: &Template,
        placement: &Placement,
        left: &mut Vec<usize>,
    ) -> Outcome {
        let default = schema.get("default");
        let said_in = if template.links.contains_key(name) { template } else { self.first };
        match said_in.links.get(name) {
            Some(Link::Slot(at)) => self.at_slot(name, schema, said_in, *at, placement, left),
            Some(Link::Made { of, exactly }) => self.made(name, default, said_in, of, *exactly),
            None => match default {
                Some(default) if self.first.moves && is_date(default) => Outcome::Missing(format!(
                    "`{name}` was {} when \"{}\" was said; another day it is another date",
                    show(default),
                    self.first.intent
                )),
                Some(default) => self.unsaid(name, default),
                None if self.required(name) => Outcome::Missing(format!("`{name}` has no value yet")),
                None => Outcome::Absent,
            },
        }
    }

    /// What becomes of a default that the first intent does not speak of.
    fn unsaid(&self, name: &str, default: &Value) -> Outcome {
        let was = show(default);
        if !self.procedure.reads_only {
            let why = format!(
                "`{name}` was {was} before; a plan that changes something does not run on a value that was not said"
            );
            return Outcome::Unsaid(default.clone(), why);
        }
        match self.first.instead_of(default) {
            Some(said) => {
                let why = format!(
                    "`{name}` was {was} before, though \"{}\" says `{said}`; it is not known what it is now",
                    self.first.intent
                );
                Outcome::Unsaid(default.clone(), why)
            }
            None => Outcome::Value(default.clone(), From::Default),
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
        template: &Template,
        at: usize,
        placement: &Placement,
        left: &mut Vec<usize>,
    ) -> Outcome {
        let slot = &template.slots[at];
        let Some((_, before, take)) = slot.parameters.iter().find(|(other, ..)| other == name) else {
            return Outcome::Missing(format!("`{name}` has no value yet"));
        };
        if slot.doubtful {
            let same = template::in_order(&template.tokens) == template::in_order(self.new);
            return if same {
                Outcome::Value(before.clone(), From::Repeated)
            } else {
                Outcome::Missing(format!(
                    "`{name}` was {} in \"{}\", where that stands for more than one thing; the new intent does not say which",
                    show(before),
                    template.intent
                ))
            };
        }
        let found = placement.found.get(&at);
        let value = found.and_then(|range| self.value(name, schema, template, slot, before, *take, range));
        match value {
            Some(value) if Some(&value) == schema.get("default") => Outcome::Value(value, From::Repeated),
            Some(value) => Outcome::Value(value, From::Intent),
            None => {
                left.extend(found.cloned().into_iter().flatten());
                Outcome::Missing(format!(
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
        template: &Template,
        slot: &Slot,
        before: &Value,
        take: Take,
        range: &Range<usize>,
    ) -> Option<Value> {
        let new = match &self.new[range.start] {
            Token::Literal(literal) if range.len() == 1 => Some(literal),
            Token::Literal(_) | Token::Word(_) => None,
        };
        match (template.literal(slot), new, take) {
            (Some(_), Some(new), Take::Half(half)) => {
                let (owner, name) = template::split(new)?;
                values::fit(Value::from(if half == 0 { owner } else { name }), schema)
            }
            (Some(old), Some(new), Take::Whole) if old.same(new) => Some(before.clone()),
            (Some(old), Some(new), Take::Whole) => values::fill(old, before, new, schema, self.strict()),
            (None, Some(new), Take::Whole) if !replaces_words(new, name, schema) => None,
            (None, _, Take::Whole) | (Some(_), None, Take::Whole) => {
                let swap = Swap {
                    old: template.text(&slot.range),
                    before: before.as_str()?,
                    new: template::said(self.intent, self.new, range),
                    examples: self.procedure.examples.get(name).map_or(&[][..], Vec::as_slice),
                    schema,
                    begins: range.start == 0,
                };
                values::swap(&swap, self.strict())
            }
            (_, None, Take::Half(_)) | (None, _, Take::Half(_)) => None,
        }
    }

    /// A value made of literals stays as it is only where all of them are said again.
    fn made(
        &self,
        name: &str,
        default: Option<&Value>,
        template: &Template,
        of: &[usize],
        exactly: bool,
    ) -> Outcome {
        let again = |at: &usize| match &template.tokens[*at] {
            Token::Literal(literal) => {
                self.new.iter().any(|token| matches!(token, Token::Literal(other) if literal.same(other)))
            }
            Token::Word(_) => false,
        };
        match default {
            Some(default) if of.iter().all(again) && (exactly || self.procedure.reads_only) => {
                Outcome::Value(default.clone(), From::Repeated)
            }
            Some(default) => Outcome::Missing(format!(
                "`{name}` was {}, made of what \"{}\" says; it is not known what it is now",
                show(default),
                template.intent
            )),
            None => Outcome::Absent,
        }
    }

    fn record(&self, name: &str, schema: &Value, outcome: Outcome, binding: &mut Binding) {
        match outcome {
            Outcome::Value(value, from) => {
                binding.arguments.insert(name.to_owned(), value);
                binding.sources.push((name.to_owned(), from));
            }
            Outcome::Missing(why) => self.miss(name, schema, why, None, binding),
            Outcome::Unsaid(default, why) => self.miss(name, schema, why, Some(default), binding),
            Outcome::Absent => {}
        }
    }

    fn miss(&self, name: &str, schema: &Value, why: String, unsaid: Option<Value>, binding: &mut Binding) {
        let later = self.procedure.examples.get(name).into_iter().flatten();
        let mut candidates: Vec<Value> = Vec::new();
        for value in schema.get("default").into_iter().chain(later) {
            if !candidates.contains(value) {
                candidates.push(value.clone());
            }
        }
        binding.missing.push(Missing { name: name.to_owned(), why, candidates, unsaid });
    }

    fn unplaced(&self, template: &Template, placement: &Placement, left: &[usize], binding: &mut Binding) {
        for at in left {
            binding.unplaced.push(template::said(self.intent, self.new, &(*at..at + 1)).to_owned());
        }
        for at in &placement.dropped {
            binding.unplaced.push(template.text(&(*at..at + 1)).to_owned());
        }
    }

    /// The new intent with what was placed as slots.
    fn pieces_now(&self, template: &Template, placement: &Placement, known: &Known) -> Vec<Piece> {
        let given: Vec<Class> = known
            .slots
            .iter()
            .filter_map(|slot| template.literal(&template.slots[*slot]))
            .map(|l| l.class)
            .collect();
        let mut leave = known.now.clone();
        for (at, token) in self.new.iter().enumerate() {
            // `the file` speaks of the one the context names.
            if token
                .content()
                .is_some_and(|word| given.iter().any(|class| words::shown_by(*class, &word.concept)))
            {
                leave.extend(template::with_role(self.new, &(at..at + 1)));
            }
        }
        let places = placement.found.iter().map(|(slot, range)| (range.clone(), *slot)).collect::<Vec<_>>();
        pieces(self.new, &places, template, &leave)
    }
}

fn pieces_before(template: &Template, placement: &Placement, known: &Known) -> Vec<Piece> {
    let places: Vec<(Range<usize>, usize)> =
        placement.found.keys().map(|slot| (template.slots[*slot].range.clone(), *slot)).collect();
    pieces(&template.tokens, &places, template, &known.before)
}

fn pieces(
    tokens: &[Token],
    places: &[(Range<usize>, usize)],
    template: &Template,
    leave: &BTreeSet<usize>,
) -> Vec<Piece> {
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate().filter(|(at, _)| !leave.contains(at)) {
        match places.iter().find(|(range, _)| range.contains(&at)) {
            Some((range, slot)) if range.start == at => {
                let slot = &template.slots[*slot];
                let class = template.literal(slot).map(|literal| literal.class);
                found.push(Piece::Slot(slot.parameters[0].0.clone(), class));
            }
            Some(_) => {}
            None => found.push(Piece::Token(token.clone())),
        }
    }
    found
}

/// Whether a literal can stand where plain words stood.
fn replaces_words(literal: &Literal, name: &str, schema: &Value) -> bool {
    match literal.class {
        Class::Name | Class::Quoted => true,
        class => expected(name, schema) == Some(class),
    }
}

/// The class of literal that a parameter takes, where its name or format tells.
fn expected(name: &str, schema: &Value) -> Option<Class> {
    match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => return Some(Class::Url),
        Some("email") => return Some(Class::Email),
        Some("date" | "date-time") => return Some(Class::Date),
        Some(_) | None => {}
    }
    match words::fold(name).as_str() {
        "path" | "file" | "filename" | "folder" | "directory" | "dir" => Some(Class::Path),
        "url" | "uri" | "link" => Some(Class::Url),
        "email" => Some(Class::Email),
        "channel" => Some(Class::Channel),
        _ => None,
    }
}

/// Whether a default is a point in time.
fn is_date(value: &Value) -> bool {
    match value {
        Value::String(text) => literals(text).iter().any(|literal| literal.class == Class::Date),
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
