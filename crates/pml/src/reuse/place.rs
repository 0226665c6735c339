//! Finds in a new intent what stands at the places of an earlier one.
//!
//! First the two are laid side by side: where they differ at the places of values alone, each value is
//! where its place is. Otherwise a place is filled only if one literal, and no other, can belong there.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::literals::{Class, Literal};
use super::template::{Slot, Template, in_order, places, plain_words, role, roles_agree};
use super::values::{Strict, alike};
use super::words::{Part, Token, concept, fold};

/// What was found in a new intent.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// For slots of the template, the tokens of the new intent that stand there.
    pub(super) found: BTreeMap<usize, Range<usize>>,
    /// Literals of the new intent that belong nowhere, as tokens.
    pub(super) left: Vec<usize>,
    /// Literals that the template says outside its slots and the new intent does not, as tokens.
    pub(super) dropped: Vec<usize>,
}

/// What to leave out of the comparison: slots whose value is known, and tokens that are spoken for.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Slots of the template.
    pub(super) slots: BTreeSet<usize>,
    /// Tokens of the template: those of the slots, and the words that relate them.
    pub(super) before: BTreeSet<usize>,
    /// Tokens of the new intent.
    pub(super) now: BTreeSet<usize>,
}

/// Lays `new` beside the template; `None` where they differ elsewhere than at the slots.
pub(super) fn align(template: &Template, new: &[Token], known: &Known) -> Option<Placement> {
    let mut placement = Placement::default();
    let mut rest = items(new).filter(|at| !known.now.contains(at)).peekable();
    let mut skip_to = 0;
    for at in 0..template.tokens.len() {
        if at < skip_to || known.before.contains(&at) {
            continue;
        }
        if let Some(slot) = template.slot_at(at) {
            let (slot_at, slot) = (slot, &template.slots[slot]);
            let first = rest.next()?;
            let range = taken(template, slot, new, first)?;
            for expected in range.start + 1..range.end {
                rest.next().filter(|next| *next == expected)?;
            }
            placement.found.insert(slot_at, range);
            skip_to = slot.range.end;
        } else if counts(&template.tokens[at]) {
            let next = rest.next()?;
            equal(&template.tokens[at], &new[next]).then_some(())?;
        }
    }
    rest.next().is_none().then_some(placement)
}

/// The tokens that a comparison word by word looks at.
fn items(tokens: &[Token]) -> impl Iterator<Item = usize> + '_ {
    tokens.iter().enumerate().filter(|(_, token)| counts(token)).map(|(at, _)| at)
}

fn counts(token: &Token) -> bool {
    match token {
        Token::Word(word) => !matches!(word.part, Part::Void | Part::Stating | Part::Light | Part::Ask),
        Token::Literal(_) => true,
    }
}

fn equal(one: &Token, other: &Token) -> bool {
    match (one, other) {
        (Token::Word(one), Token::Word(other)) => match (one.part, other.part) {
            (Part::Role(one), Part::Role(other)) => one & other != 0,
            (one_part, other_part) => one_part == other_part && one.concept == other.concept,
        },
        (Token::Literal(one), Token::Literal(other)) => one.same(other),
        (Token::Literal(literal), Token::Word(word)) | (Token::Word(word), Token::Literal(literal)) => {
            literal.class == Class::Name && concept(&fold(&literal.text)) == word.concept
        }
    }
}

/// The tokens of `new` from `first` on that stand at `slot`.
fn taken(template: &Template, slot: &Slot, new: &[Token], first: usize) -> Option<Range<usize>> {
    if let Token::Literal(_) = &new[first] {
        return Some(first..first + 1);
    }
    let wanted = plain_words(template.text(&slot.range)).len();
    let end = first + wanted;
    let words = new.get(first..end)?;
    let plain = words.iter().all(|token| token.content().is_some());
    // A literal is not replaced by plain words, but it may be said again without its capital or quotes.
    let again = || in_order(words) == plain_words(template.text(&slot.range));
    (plain && (template.literal(slot).is_none() || again())).then_some(first..end)
}

/// Finds what can belong to one slot only, in a sentence of another form.
pub(super) fn assign(template: &Template, new: &[Token], known: &Known, strict: Strict) -> Placement {
    let mut placement = Placement::default();
    let mut left: Vec<usize> = literals(new).map(|(at, _)| at).filter(|at| !known.now.contains(at)).collect();
    fixed(template, new, known, &mut left, &mut placement);
    let open: Vec<usize> = (0..template.slots.len()).filter(|slot| !known.slots.contains(slot)).collect();
    for &slot in &open {
        again(template, slot, new, &mut left, &mut placement);
    }
    let mut classes: Vec<Class> = open.iter().filter_map(|slot| class(template, *slot)).collect();
    classes.sort_unstable();
    classes.dedup();
    for class in classes {
        one_for_one(template, class, new, &open, &mut left, &mut placement, strict);
    }
    left.retain(|at| !said_before(template, &new[*at]));
    placement.left = left;
    placement
}

fn literals(tokens: &[Token]) -> impl Iterator<Item = (usize, &Literal)> {
    tokens.iter().enumerate().filter_map(|(at, token)| match token {
        Token::Literal(literal) => Some((at, literal)),
        Token::Word(_) => None,
    })
}

/// Literals outside the slots have to be said again.
fn fixed(
    template: &Template,
    new: &[Token],
    known: &Known,
    left: &mut Vec<usize>,
    placement: &mut Placement,
) {
    let in_slot = |at: &usize| template.slots.iter().any(|slot| slot.range.contains(at));
    for (at, literal) in
        literals(&template.tokens).filter(|(at, _)| !in_slot(at) && !known.before.contains(at))
    {
        let same = left
            .iter()
            .position(|other| matches!(&new[*other], Token::Literal(other) if literal.same(other)));
        let agrees =
            |other: usize| roles_agree(Some(literal.class), role(&template.tokens, at), role(new, other));
        match same {
            Some(position) if agrees(left[position]) => drop(left.remove(position)),
            None if literal.class == Class::Name && !places(new, &literal.value).is_empty() => {}
            Some(_) | None => placement.dropped.push(at),
        }
    }
}

/// Plain words that were a value are the same value where they are said once more.
fn again(template: &Template, at: usize, new: &[Token], left: &mut Vec<usize>, placement: &mut Placement) {
    let slot = &template.slots[at];
    let plain = match template.literal(slot) {
        None => true,
        Some(literal) => matches!(literal.class, Class::Name | Class::Quoted),
    };
    let said = serde_json::Value::from(template.text(&slot.range));
    let places = places(new, &said);
    let [place] = places.as_slice() else { return };
    let class = template.literal(slot).map(|literal| literal.class);
    if plain && roles_agree(class, role(&template.tokens, slot.range.start), role(new, place.start)) {
        left.retain(|literal| !place.contains(literal));
        placement.found.insert(at, place.clone());
    }
}

fn class(template: &Template, slot: usize) -> Option<Class> {
    template.literal(&template.slots[slot]).map(key)
}

/// Classes that are looked for together.
fn key(literal: &Literal) -> Class {
    if literal.class == Class::Id && literal.text.starts_with('#') { Class::Number } else { literal.class }
}

/// As many literals as slots of one class: one each, or told apart by the words before them.
fn one_for_one(
    template: &Template,
    class_wanted: Class,
    new: &[Token],
    open: &[usize],
    left: &mut Vec<usize>,
    placement: &mut Placement,
    strict: Strict,
) {
    let wanting: Vec<usize> = open
        .iter()
        .copied()
        .filter(|slot| class(template, *slot) == Some(class_wanted) && !placement.found.contains_key(slot))
        .collect();
    let having: Vec<usize> = left
        .iter()
        .copied()
        .filter(|at| matches!(&new[*at], Token::Literal(literal) if key(literal) == class_wanted))
        .collect();
    if wanting.len() != having.len() {
        return;
    }
    // What was said of one of several places may not be said of the others: none may be a known one.
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
        placement.found.extend(pairs.into_iter().map(|(slot, at)| (slot, at..at + 1)));
    }
}

fn fits(template: &Template, slot: usize, new: &[Token], at: usize, strict: Strict, alone: bool) -> bool {
    let slot = &template.slots[slot];
    let (Some(old), Token::Literal(literal)) = (template.literal(slot), &new[at]) else { return false };
    let (was, is) = (role(&template.tokens, slot.range.start), role(new, at));
    let placed = if alone { roles_agree(Some(old.class), was, is) } else { was & is != 0 || was == is };
    let neighbours =
        key(old) != Class::Number || same_neighbours(&template.tokens, slot.range.start, new, at);
    alike(old, literal, strict) && placed && neighbours
}

/// A number means what stands next to it: 5 commits are not 5 days.
fn same_neighbours(before: &[Token], was: usize, new: &[Token], is: usize) -> bool {
    let after = |tokens: &[Token], at: usize| -> Vec<String> {
        let until = |token: &&Token| matches!(token, Token::Word(w) if matches!(w.part, Part::Content | Part::Void | Part::Stating | Part::Light));
        tokens[at + 1..]
            .iter()
            .take_while(until)
            .filter_map(Token::content)
            .take(2)
            .map(|w| w.concept.clone())
            .collect()
    };
    let ahead = |tokens: &[Token], at: usize| {
        let near = |token: &&Token| !matches!(token, Token::Word(w) if matches!(w.part, Part::Void | Part::Stating | Part::Light));
        tokens[..at].iter().rev().find(near).and_then(Token::content).map(|word| word.concept.clone())
    };
    let (right_before, right_now) = (after(before, was), after(new, is));
    match (right_before.last(), right_now.last()) {
        (Some(one), Some(other)) => one == other,
        (None, None) => ahead(before, was).is_some() && ahead(before, was) == ahead(new, is),
        _ => false,
    }
}

/// A name that the template has as plain words is none.
fn said_before(template: &Template, token: &Token) -> bool {
    let Token::Literal(literal) = token else { return false };
    let words: BTreeSet<String> = template
        .tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word(word) => Some(fold(&word.raw)),
            Token::Literal(_) => None,
        })
        .collect();
    literal.class == Class::Name && plain_words(&literal.text).iter().all(|word| words.contains(word))
}
