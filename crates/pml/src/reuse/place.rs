//! Finds the values of a new intent that stand in the slots of a template.
//!
//! First the two are aligned word by word: where they differ in the slots only, each slot gets the tokens at its
//! position. Otherwise a slot is filled only if exactly one literal can belong there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::template::{
    IntentTemplate, TemplateSlot, find_value, folded_words, plain_words, role, roles_agree,
};
use super::values::{Strictness, can_replace};
use super::vocabulary as table;
use super::words::{IntentToken, WordFunction, concept};

/// The result of placing the values of a new intent.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Whether the intents are equal word by word, apart from the slots.
    pub(super) aligned: bool,
    /// The token range of the new intent in each slot, by index of the slot.
    pub(super) slot_ranges: BTreeMap<usize, Range<usize>>,
    /// Token indices of literals of the new intent that fit no slot.
    pub(super) unplaced: Vec<usize>,
    /// Token indices of literals outside the slots of the template that the new intent does not repeat.
    pub(super) dropped: Vec<usize>,
}

/// What the comparison leaves out: slots whose value is known, and the tokens that belong to them.
#[derive(Debug, Default)]
pub(super) struct SettledPlaces {
    /// Indices of slots of the template.
    pub(super) slots: BTreeSet<usize>,
    /// Token indices of the template: those of the slots, and the prepositions before them.
    pub(super) template_tokens: BTreeSet<usize>,
    /// Token indices of the new intent.
    pub(super) intent_tokens: BTreeSet<usize>,
}

/// Aligns `new` with the template word by word; `None` where they differ outside the slots.
pub(super) fn align(
    template: &IntentTemplate,
    new: &[IntentToken],
    known: &SettledPlaces,
) -> Option<Placement> {
    let mut placement = Placement::default();
    let mut rest = items(new).filter(|at| !known.intent_tokens.contains(at)).peekable();
    let mut skip_to = 0;
    for at in 0..template.tokens.len() {
        if at < skip_to || known.template_tokens.contains(&at) {
            continue;
        }
        if let Some(slot) = template.slot_at(at) {
            let (slot_at, slot) = (slot, &template.slots[slot]);
            let first = rest.next()?;
            let range = taken(template, slot, new, first)?;
            for expected in range.start + 1..range.end {
                rest.next().filter(|next| *next == expected)?;
            }
            placement.slot_ranges.insert(slot_at, range);
            skip_to = slot.range.end;
        } else if counts(&template.tokens[at]) {
            let next = rest.next()?;
            equal(&template.tokens[at], &new[next]).then_some(())?;
        }
    }
    // `is darkMode enabled` asks for one thing, `which flags are enabled` for many.
    let asks = |tokens: &[IntentToken]| {
        tokens
            .iter()
            .any(|token| matches!(token, IntentToken::Word(word) if word.function == WordFunction::Ask))
    };
    placement.aligned = asks(&template.tokens) == asks(new);
    rest.next().is_none().then_some(placement)
}

/// The tokens that a word-by-word comparison looks at.
fn items(tokens: &[IntentToken]) -> impl Iterator<Item = usize> + '_ {
    tokens.iter().enumerate().filter(|(_, token)| counts(token)).map(|(at, _)| at)
}

fn counts(token: &IntentToken) -> bool {
    match token {
        IntentToken::Word(word) => !matches!(
            word.function,
            WordFunction::Nothing | WordFunction::Stating | WordFunction::Light | WordFunction::Ask
        ),
        IntentToken::Literal(_) => true,
    }
}

fn equal(one: &IntentToken, other: &IntentToken) -> bool {
    match (one, other) {
        (IntentToken::Word(one), IntentToken::Word(other)) => match (one.function, other.function) {
            (WordFunction::Role(one), WordFunction::Role(other)) => one & other != 0,
            (one_part, other_part) => one_part == other_part && one.concept == other.concept,
        },
        (IntentToken::Literal(one), IntentToken::Literal(other)) => one.says_same_as(other),
        (IntentToken::Literal(literal), IntentToken::Word(word))
        | (IntentToken::Word(word), IntentToken::Literal(literal)) => {
            literal.class == LiteralClass::Name && concept(&fold(&literal.text)) == word.concept
        }
    }
}

/// The tokens of `new` from `first` on that fill `slot`.
fn taken(
    template: &IntentTemplate,
    slot: &TemplateSlot,
    new: &[IntentToken],
    first: usize,
) -> Option<Range<usize>> {
    if let IntentToken::Literal(_) = &new[first] {
        return Some(first..first + 1);
    }
    let wanted = plain_words(template.text(&slot.range)).len();
    let end = first + wanted;
    let words = new.get(first..end)?;
    let plain = words.iter().all(|token| token.content_word().is_some());
    // Plain words do not replace a literal, but may repeat it without its capital or quotes, or stand after the
    // preposition of a name.
    let again = || folded_words(words) == plain_words(template.text(&slot.range));
    let is_name = template.literal(slot).is_none_or(|literal| literal.class == LiteralClass::Name);
    let governed = || role(&template.tokens, slot.range.start) & role(new, first) != 0;
    (plain && (template.literal(slot).is_none() || again() || (is_name && governed()))).then_some(first..end)
}

/// Fills the slots to which exactly one literal can belong, in a sentence of another form.
pub(super) fn assign(
    template: &IntentTemplate,
    new: &[IntentToken],
    known: &SettledPlaces,
    strict: Strictness,
) -> Placement {
    let mut placement = Placement::default();
    let mut left: Vec<usize> =
        literals(new).map(|(at, _)| at).filter(|at| !known.intent_tokens.contains(at)).collect();
    fixed(template, new, known, &mut left, &mut placement);
    let open: Vec<usize> = (0..template.slots.len()).filter(|slot| !known.slots.contains(slot)).collect();
    for &slot in &open {
        again(template, slot, new, &mut left, &mut placement);
    }
    let mut classes: Vec<LiteralClass> = open.iter().filter_map(|slot| class(template, *slot)).collect();
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        one_for_one(template, class, new, &open, &mut left, &mut placement, strict);
    }
    left.retain(|at| !said_before(template, &new[*at]));
    placement.unplaced = left;
    placement
}

fn literals(tokens: &[IntentToken]) -> impl Iterator<Item = (usize, &IntentLiteral)> {
    tokens.iter().enumerate().filter_map(|(at, token)| match token {
        IntentToken::Literal(literal) => Some((at, literal)),
        IntentToken::Word(_) => None,
    })
}

/// Matches the literals outside the slots with the new intent; those that it does not repeat are recorded as dropped.
fn fixed(
    template: &IntentTemplate,
    new: &[IntentToken],
    known: &SettledPlaces,
    left: &mut Vec<usize>,
    placement: &mut Placement,
) {
    let in_slot = |at: &usize| template.slots.iter().any(|slot| slot.range.contains(at));
    for (at, literal) in
        literals(&template.tokens).filter(|(at, _)| !in_slot(at) && !known.template_tokens.contains(at))
    {
        let same = left.iter().position(
            |other| matches!(&new[*other], IntentToken::Literal(other) if literal.says_same_as(other)),
        );
        // `UTC in Tokyo` is not `Tokyo in UTC`: what could be the value of a slot has to keep its role.
        let exchangeable = (0..template.slots.len()).any(|slot| class(template, slot) == Some(key(literal)));
        let agrees = |other: usize| {
            let (was, is) = (role(&template.tokens, at), role(new, other));
            if exchangeable { was == is || was & is != 0 } else { roles_agree(Some(literal.class), was, is) }
        };
        match same {
            Some(position) if agrees(left[position]) => drop(left.remove(position)),
            None if literal.class == LiteralClass::Name && !find_value(new, &literal.value).is_empty() => {}
            Some(_) | None => placement.dropped.push(at),
        }
    }
}

/// Plain words that were a value are the same value where the new intent repeats them once.
fn again(
    template: &IntentTemplate,
    at: usize,
    new: &[IntentToken],
    left: &mut Vec<usize>,
    placement: &mut Placement,
) {
    let slot = &template.slots[at];
    let plain = match template.literal(slot) {
        None => true,
        Some(literal) => matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted),
    };
    let said = serde_json::Value::from(template.text(&slot.range));
    let places = find_value(new, &said);
    let [place] = places.as_slice() else { return };
    let class = template.literal(slot).map(|literal| literal.class);
    let (was, is) = (role(&template.tokens, slot.range.start), role(new, place.start));
    // `of Engineering` and `in Engineering` say the same of it; `from Bob` and `to Bob` do not.
    let located = (was | is) & !(table::OF | table::IN | table::ON | table::FOR | table::ABOUT) == 0;
    if plain && (roles_agree(class, was, is) || located) {
        left.retain(|literal| !place.contains(literal));
        placement.slot_ranges.insert(at, place.clone());
    }
}

fn class(template: &IntentTemplate, slot: usize) -> Option<LiteralClass> {
    template.literal(&template.slots[slot]).map(key)
}

/// The class under which a literal is searched for; some classes are merged.
fn key(literal: &IntentLiteral) -> LiteralClass {
    if literal.class == LiteralClass::Id && literal.text.starts_with('#') {
        LiteralClass::Number
    } else {
        literal.class
    }
}

/// Pairs literals and slots of one class where there are equally many: one of each, or distinguished by their roles.
fn one_for_one(
    template: &IntentTemplate,
    class_wanted: LiteralClass,
    new: &[IntentToken],
    open: &[usize],
    left: &mut Vec<usize>,
    placement: &mut Placement,
    strict: Strictness,
) {
    let wanting: Vec<usize> = open
        .iter()
        .copied()
        .filter(|slot| {
            class(template, *slot) == Some(class_wanted) && !placement.slot_ranges.contains_key(slot)
        })
        .collect();
    let having: Vec<usize> = left
        .iter()
        .copied()
        .filter(|at| matches!(&new[*at], IntentToken::Literal(literal) if key(literal) == class_wanted))
        .collect();
    if wanting.len() != having.len() {
        return;
    }
    // With several slots of the class, one may already be settled, so the roles have to be equal, not just
    // compatible.
    let alone = wanting.len() == 1
        && (0..template.slots.len()).filter(|slot| class(template, *slot) == Some(class_wanted)).count() == 1;
    let fits = |slot: usize, at: usize| fits(template, slot, new, at, strict, alone);
    let mut pairs = Vec::new();
    for &slot in &wanting {
        let mut fitting = having.iter().copied().filter(|at| fits(slot, *at));
        let (Some(at), None) = (fitting.next(), fitting.next()) else { return };
        pairs.push((slot, at));
    }
    let distinct: BTreeSet<usize> = pairs.iter().map(|(_, at)| *at).collect();
    if distinct.len() == pairs.len() {
        left.retain(|at| !distinct.contains(at));
        placement.slot_ranges.extend(pairs.into_iter().map(|(slot, at)| (slot, at..at + 1)));
    }
}

fn fits(
    template: &IntentTemplate,
    slot: usize,
    new: &[IntentToken],
    at: usize,
    strict: Strictness,
    alone: bool,
) -> bool {
    let slot = &template.slots[slot];
    let (Some(old), IntentToken::Literal(literal)) = (template.literal(slot), &new[at]) else { return false };
    let (was, is) = (role(&template.tokens, slot.range.start), role(new, at));
    let placed = match alone {
        // `the Sales department`, `department Sales`
        true => {
            roles_agree(Some(old.class), was, is) || shares_noun(&template.tokens, slot.range.start, new, at)
        }
        false => was & is != 0 || was == is,
    };
    let neighbours = key(old) != LiteralClass::Number
        || same_neighbours(&template.tokens, slot.range.start, new, at)
        || (alone && counts_same(&template.tokens, slot.range.start, new, at));
    // `250 euros` are not `250 USD`, unless the currency is a value too.
    let unit_is_value = template.slot_at(slot.range.end).is_some();
    let measured =
        old.measured_in.zip(literal.measured_in).is_none_or(|(was, is)| was == is || unit_is_value);
    can_replace(old, literal, strict) && placed && neighbours && measured
}

/// Whether the same content word stands directly before or after both: `the branch storm` and `the branch harvest`.
pub(super) fn beside_same(
    before: &[IntentToken],
    was: &Range<usize>,
    new: &[IntentToken],
    is: &Range<usize>,
) -> bool {
    let concept = |tokens: &[IntentToken], at: Option<usize>| {
        at.and_then(|at| tokens.get(at)).and_then(IntentToken::content_word).map(|word| word.concept.clone())
    };
    let ahead = (concept(before, was.start.checked_sub(1)), concept(new, is.start.checked_sub(1)));
    let behind = (concept(before, Some(was.end)), concept(new, Some(is.end)));
    [ahead, behind].into_iter().any(|(one, other)| one.is_some() && one == other)
}

/// Whether the same noun stands next to both.
fn shares_noun(before: &[IntentToken], was: usize, new: &[IntentToken], is: usize) -> bool {
    let beside = |tokens: &[IntentToken], at: usize| -> Vec<String> {
        let ahead = at.checked_sub(1).and_then(|at| tokens[at].content_word());
        let behind = tokens.get(at + 1).and_then(IntentToken::content_word);
        ahead.into_iter().chain(behind).map(|word| word.concept.clone()).collect()
    };
    let nouns = beside(before, was);
    beside(new, is).iter().any(|noun| nouns.contains(noun))
}

/// A number is bound to the words next to it: 5 commits are not 5 days.
fn same_neighbours(before: &[IntentToken], was: usize, new: &[IntentToken], is: usize) -> bool {
    let after = |tokens: &[IntentToken], at: usize| -> Vec<String> {
        let until = |token: &&IntentToken| matches!(token, IntentToken::Word(w) if matches!(w.function, WordFunction::Content | WordFunction::Nothing | WordFunction::Stating | WordFunction::Light));
        tokens[at + 1..]
            .iter()
            .take_while(until)
            .filter_map(IntentToken::content_word)
            .take(2)
            .map(|w| w.concept.clone())
            .collect()
    };
    let ahead = |tokens: &[IntentToken], at: usize| {
        let near = |token: &&IntentToken| !matches!(token, IntentToken::Word(w) if matches!(w.function, WordFunction::Nothing | WordFunction::Stating | WordFunction::Light));
        tokens[..at]
            .iter()
            .rev()
            .find(near)
            .and_then(IntentToken::content_word)
            .map(|word| word.concept.clone())
    };
    let (right_before, right_now) = (after(before, was), after(new, is));
    match (right_before.last(), right_now.last()) {
        (Some(one), Some(other)) => one == other,
        (None, None) => ahead(before, was).is_some() && ahead(before, was) == ahead(new, is),
        _ => false,
    }
}

/// Whether the only number of both intents goes with the same words: `the last 2 commits`, `the last 3 commit
/// messages`. Without a noun beside it, as in `set … to 9090`, the preposition decides.
fn counts_same(before: &[IntentToken], was: usize, new: &[IntentToken], is: usize) -> bool {
    let after = |tokens: &[IntentToken], at: usize| -> Vec<String> {
        let near = tokens[at + 1..].iter().take_while(|token| match token {
            IntentToken::Word(word) => {
                !matches!(word.function, WordFunction::Role(_) | WordFunction::Joining)
            }
            IntentToken::Literal(_) => false,
        });
        near.filter_map(IntentToken::content_word).map(|word| word.concept.clone()).collect()
    };
    let (counted_before, counted_now) = (after(before, was), after(new, is));
    match (counted_before.is_empty(), counted_now.is_empty()) {
        (false, false) => counted_before.iter().any(|concept| counted_now.contains(concept)),
        (true, true) => role(before, was) & role(new, is) != 0,
        (true, false) | (false, true) => false,
    }
}

/// Whether the template has the same name as plain words, so that it is no value.
fn said_before(template: &IntentTemplate, token: &IntentToken) -> bool {
    let IntentToken::Literal(literal) = token else { return false };
    let words: BTreeSet<String> = template
        .tokens
        .iter()
        .filter_map(|token| match token {
            IntentToken::Word(word) => Some(fold(&word.raw)),
            IntentToken::Literal(_) => None,
        })
        .collect();
    literal.class == LiteralClass::Name && plain_words(&literal.text).iter().all(|word| words.contains(word))
}
