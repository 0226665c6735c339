//! A template: an intent that succeeded, with the slots in which it names the values of parameters.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use super::find::{find_value, plain_words, raw};
use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::read::ReadIntent;
use super::values::says;
use super::vocabulary::{BETWEEN, FROM, TO};
use super::words::{IntentToken, WordFunction};

/// An intent with the slots that belong to parameters.
pub(super) struct IntentTemplate<'i> {
    /// The text of the intent.
    pub(super) intent: &'i str,
    /// The tokens of the intent.
    pub(super) tokens: &'i [IntentToken],
    /// The slots, in textual order.
    pub(super) slots: Vec<TemplateSlot>,
    /// How each parameter depends on the text of the intent; no entry where it does not.
    pub(super) links: BTreeMap<String, ParameterLink>,
    /// Whether the intent counts from today, so that dates derived from it differ on another day.
    pub(super) depends_on_today: bool,
}

/// A place in an intent that names the value of a parameter.
#[derive(Debug)]
pub(super) struct TemplateSlot {
    /// The parameters of the slot: name, earlier value, and the part of the literal it takes.
    pub(super) parameters: Vec<(String, Value, LiteralPart)>,
    /// The range of tokens.
    pub(super) range: Range<usize>,
    /// Whether the value occurs more than once, or belongs to several parameters.
    pub(super) is_ambiguous: bool,
}

/// The part of a literal that is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralPart {
    /// The whole literal.
    Whole,
    /// The part before (0) or after (1) the only slash.
    Half(usize),
}

/// How the value of a parameter depends on the text of an intent.
#[derive(Debug)]
pub(super) enum ParameterLink {
    /// The intent names it in the slot with this index.
    Slot(usize),
    /// The value was derived from tokens.
    Derived {
        /// The indices of the tokens.
        of: Vec<usize>,
        /// Whether the value is a list of exactly these tokens.
        exactly: bool,
    },
}

impl<'i> IntentTemplate<'i> {
    /// Searches `intent` for the values of each parameter; the first one found makes a slot.
    pub(super) fn new(intent: &'i ReadIntent, values: &[(String, Vec<Value>)]) -> IntentTemplate<'i> {
        let tokens = intent.tokens();
        let mut slots: Vec<TemplateSlot> = Vec::new();
        for (name, candidates) in values {
            let found = candidates.iter().map(|value| (value, find_value(tokens, value)));
            let mut found = found.filter(|(_, places)| !places.is_empty());
            let Some((value, places)) = found.next() else { continue };
            // `lines 1 to 2` after `lines 2 to 3`: both are values that the parameter had, and only one is its value here.
            if found.all(|(other, elsewhere)| other == value || elsewhere == places) {
                add(&mut slots, name, value, &places);
            }
        }
        halves(tokens, values, &mut slots);
        slots.sort_by_key(|slot| slot.range.start);
        let mut links = BTreeMap::new();
        for (at, slot) in slots.iter().enumerate() {
            links.extend(slot.parameters.iter().map(|(name, ..)| (name.clone(), ParameterLink::Slot(at))));
        }
        for (name, candidates) in values {
            if !links.contains_key(name)
                && let Some(link) = candidates.first().and_then(|value| made(tokens, value))
            {
                links.insert(name.clone(), link);
            }
        }
        IntentTemplate {
            intent: intent.text(),
            depends_on_today: intent.depends_on_today(),
            tokens,
            slots,
            links,
        }
    }

    /// The literal in a slot; `None` where the slot holds plain words.
    pub(super) fn literal(&self, slot: &TemplateSlot) -> Option<&IntentLiteral> {
        match &self.tokens[slot.range.start] {
            IntentToken::Literal(literal) if slot.range.len() == 1 => Some(literal),
            IntentToken::Literal(_) | IntentToken::Word(_) => None,
        }
    }

    /// A literal of the intent that no parameter takes, and that `default` may have replaced. A procedure can have
    /// defaults of a run with another intent: one that failed, or one of a procedure that was merged into it.
    pub(super) fn untaken_text(&self, default: &Value) -> Option<&str> {
        if matches!(default, Value::Bool(_) | Value::Null) {
            return None;
        }
        let taken = |at: &usize| {
            self.slots.iter().any(|slot| slot.range.contains(at))
                || self
                    .links
                    .values()
                    .any(|link| matches!(link, ParameterLink::Derived { of, .. } if of.contains(at)))
        };
        let mut literals = self.tokens.iter().enumerate().filter_map(|(at, token)| match token {
            IntentToken::Literal(literal)
                if !taken(&at) && literal.value.is_number() == default.is_number() =>
            {
                Some(literal.text.as_str())
            }
            IntentToken::Literal(_) | IntentToken::Word(_) => None,
        });
        literals.next()
    }

    /// The index of the slot that begins at a token.
    pub(super) fn slot_at(&self, token: usize) -> Option<usize> {
        self.slots.iter().position(|slot| slot.range.start == token)
    }

    /// The text of a range of tokens.
    pub(super) fn text(&self, range: &Range<usize>) -> &str {
        spoken_text(self.intent, self.tokens, range)
    }
}

/// The text of `tokens[range]` of `intent`, without quotation marks around a literal.
pub(super) fn spoken_text<'a>(intent: &'a str, tokens: &'a [IntentToken], range: &Range<usize>) -> &'a str {
    match &tokens[range.start] {
        IntentToken::Literal(literal) if range.len() == 1 => &literal.text,
        first => &intent[first.span().start..tokens[range.end - 1].span().end],
    }
}

/// In bytes: shorter texts may be equal by chance.
const TELLING: usize = 4;

fn add(slots: &mut Vec<TemplateSlot>, name: &str, value: &Value, places: &[Range<usize>]) {
    let parameter = (name.to_owned(), value.clone(), LiteralPart::Whole);
    if let Some(slot) = slots.iter_mut().find(|slot| slot.range == places[0]) {
        // The same text twice is one value for two calls; the same number may be two values.
        let telling = value.as_str().is_some_and(|text| text.len() >= TELLING);
        let same = slot.parameters.iter().all(|(_, other, _)| other == value);
        slot.parameters.push(parameter);
        slot.is_ambiguous |= !telling || !same || places.len() > 1;
        return;
    }
    let overlaps = |slot: &TemplateSlot| slot.range.start < places[0].end && places[0].start < slot.range.end;
    let doubtful = places.len() > 1 || slots.iter().any(overlaps);
    slots.push(TemplateSlot {
        parameters: vec![parameter],
        range: places[0].clone(),
        is_ambiguous: doubtful,
    });
}

/// Splits `owner/name` into two parameters, where their values are exactly its halves.
fn halves(tokens: &[IntentToken], values: &[(String, Vec<Value>)], slots: &mut Vec<TemplateSlot>) {
    let free = |name: &str, slots: &[TemplateSlot]| {
        !slots.iter().flat_map(|s| &s.parameters).any(|(other, ..)| other == name)
    };
    for (at, token) in tokens.iter().enumerate() {
        let IntentToken::Literal(literal) = token else { continue };
        let Some((owner, name)) = split(literal) else { continue };
        let of = |text: &str, slots: &[TemplateSlot]| {
            let mut fitting = values.iter().filter_map(|(parameter, values)| {
                let value = values.iter().find(|value| value.as_str() == Some(text))?;
                free(parameter, slots).then(|| (parameter.clone(), value.clone()))
            });
            fitting.next().filter(|_| fitting.next().is_none())
        };
        if let (Some(first), Some(second)) = (of(owner, slots), of(name, slots))
            && first.0 != second.0
            && !slots.iter().any(|slot| slot.range.contains(&at))
        {
            let parameters =
                vec![(first.0, first.1, LiteralPart::Half(0)), (second.0, second.1, LiteralPart::Half(1))];
            slots.push(TemplateSlot { parameters, range: at..at + 1, is_ambiguous: false });
        }
    }
}

/// The halves of `owner/name`.
pub(super) fn split(literal: &IntentLiteral) -> Option<(&str, &str)> {
    let halves = literal.text.split_once('/').filter(|_| literal.class == LiteralClass::Path)?;
    let plain =
        |half: &str| !half.is_empty() && !half.contains(['/', '*', '~']) && half != "." && half != "..";
    (plain(halves.0) && plain(halves.1)).then_some(halves)
}

/// The folded words of tokens, in order.
pub(super) fn folded_words(tokens: &[IntentToken]) -> Vec<String> {
    tokens.iter().flat_map(|token| plain_words(raw(token))).collect()
}

/// The tokens that `value` was derived from without being named: a list of literals, or a text that contains one.
fn made(tokens: &[IntentToken], value: &Value) -> Option<ParameterLink> {
    let leaves = leaves(value);
    let mut of = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let IntentToken::Literal(literal) = token else { continue };
        if leaves.iter().any(|leaf| says(literal, leaf) || overlaps_value(leaf, literal)) {
            of.push(at);
        }
    }
    let said = |leaf: &&Value| {
        tokens.iter().any(|t| matches!(t, IntentToken::Literal(literal) if says(literal, leaf)))
    };
    let exactly = value.is_array() && leaves.iter().all(said);
    (!of.is_empty()).then_some(ParameterLink::Derived { of, exactly })
}

/// The scalar values within a value.
pub(super) fn leaves(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        leaf => vec![leaf],
    }
}

/// Whether one contains the other, so that another literal would have produced another value.
pub(super) fn overlaps_value(leaf: &Value, literal: &IntentLiteral) -> bool {
    let Some(text) = leaf.as_str().map(fold) else { return false };
    let said = fold(literal.bare());
    let parts = |whole: &str, part: &str| {
        whole.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').any(|piece| piece == part)
    };
    (said.len() > 2 && text.contains(&said)) || parts(&text, &said) || (text.len() > 1 && parts(&said, &text))
}

/// The role of the token at `at`: the relations that the words before it express, as bits.
pub(super) fn role(tokens: &[IntentToken], at: usize) -> u16 {
    for (before, token) in tokens[..at].iter().enumerate().rev() {
        match token {
            IntentToken::Word(word) => match word.function {
                WordFunction::Nothing | WordFunction::Stating | WordFunction::Light => {}
                // `between A and B` is `from A to B`.
                WordFunction::Role(BETWEEN) => return FROM | BETWEEN,
                WordFunction::Role(role) => return role,
                WordFunction::Joining if closes_range(tokens, before) => return TO,
                WordFunction::Ask
                | WordFunction::Negation
                | WordFunction::Joining
                | WordFunction::Content => return 0,
            },
            IntentToken::Literal(_) => return 0,
        }
    }
    0
}

/// Whether the word at `at` joins the ends of a range: `and` in `between A and B`.
fn closes_range(tokens: &[IntentToken], at: usize) -> bool {
    let Some(first) = at.checked_sub(1) else { return false };
    matches!(tokens[first], IntentToken::Literal(_)) && role(tokens, first) & BETWEEN != 0
}

/// Whether two roles are compatible.
pub(super) fn roles_agree(class: Option<LiteralClass>, one: u16, other: u16) -> bool {
    let person = matches!(class, Some(LiteralClass::Handle | LiteralClass::Email | LiteralClass::Name));
    match (one, other) {
        (0, 0) => true,
        (0, _) | (_, 0) => !person,
        _ => one & other != 0 || (!person && (one | other) & TO == 0),
    }
}

/// `range`, extended by the words before it that express its role.
pub(super) fn with_role(tokens: &[IntentToken], range: &Range<usize>) -> Range<usize> {
    if role(tokens, range.start) == 0 {
        return range.clone();
    }
    let related = |token: &IntentToken| matches!(token, IntentToken::Word(word) if matches!(word.function, WordFunction::Role(_)));
    let start = tokens[..range.start].iter().rposition(related).unwrap_or(range.start);
    start..range.end
}
