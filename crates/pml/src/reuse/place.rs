//! Finds the values of a new intent that stand in the slots of a template.
//!
//! First the two are aligned word by word: where they differ in the slots only, each slot gets the tokens at its
//! position. Otherwise a slot is filled only if exactly one literal can belong there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::find::{find_value, plain_words};
use super::fold::fold;
use super::literals::{IntentLiteral, LiteralClass};
use super::template::{IntentTemplate, TemplateSlot, folded_words, role, roles_agree};
use super::values::{Strictness, can_replace};
use super::vocabulary as table;
use super::words::{IntentToken, WordFunction, concept, family};

/// The result of placing the values of a new intent.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Whether the intents are equal word by word, apart from the slots.
    pub(super) aligned: bool,
    /// Whether in other words, they have the same ones apart from the slots.
    pub(super) is_only_difference: bool,
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
    template: &IntentTemplate<'_>,
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
    placement.aligned = asks(template.tokens) == asks(new);
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
    template: &IntentTemplate<'_>,
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
    let governed = || role(template.tokens, slot.range.start) & role(new, first) != 0;
    (plain && (template.literal(slot).is_none() || again() || (is_name && governed()))).then_some(first..end)
}

/// Fills the slots to which exactly one literal can belong, in a sentence of another form.
pub(super) fn assign(
    template: &IntentTemplate<'_>,
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
    by_exclusion(template, new, known, &open, &mut left, &mut placement);
    left.retain(|at| !said_before(template, &new[*at]));
    placement.unplaced = left;
    placement
}

/// Fills the only slot of plain words that is open with the only words of the new intent that the template does not
/// have: `the legs of the lynx`, `how many legs has the whale`.
fn by_exclusion(
    template: &IntentTemplate<'_>,
    new: &[IntentToken],
    known: &SettledPlaces,
    open: &[usize],
    left: &mut Vec<usize>,
    placement: &mut Placement,
) {
    let mut unfilled = open.iter().filter(|slot| !placement.slot_ranges.contains_key(slot));
    let (Some(&slot), None) = (unfilled.next(), unfilled.next()) else { return };
    if template.literal(&template.slots[slot]).is_some() {
        return;
    }
    let in_slot = |at: usize| template.slots.iter().any(|slot| slot.range.contains(&at));
    let mut said: Vec<Cow<'_, str>> = (0..template.tokens.len())
        .filter(|at| !in_slot(*at) && !known.template_tokens.contains(at))
        .filter_map(|at| template.tokens[at].content_word())
        .filter(|word| is_telling(&word.concept))
        .map(|word| family(&word.concept))
        .collect();
    // `look up farewell in …`: where nothing else tells what is asked for, any word would do.
    if said.is_empty() {
        return;
    }
    let mut others = Vec::new();
    for (at, token) in new.iter().enumerate().filter(|(at, _)| !known.intent_tokens.contains(at)) {
        match token {
            IntentToken::Literal(literal) => {
                let is_text = matches!(literal.class, LiteralClass::Name | LiteralClass::Quoted);
                others.extend((is_text && left.contains(&at)).then_some(at));
            }
            IntentToken::Word(_) => {
                let Some(word) = token.content_word() else { continue };
                match said.iter().position(|other| *other == family(&word.concept)) {
                    Some(place) => drop(said.swap_remove(place)),
                    None => others.extend(is_telling(&word.concept).then_some(at)),
                }
            }
        }
    }
    let wanted = template.slots[slot].range.len();
    let adjacent = others.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let (Some(&first), true) = (others.first(), said.is_empty() && adjacent) else { return };
    if others.len() == wanted || (others.len() == 1 && matches!(new[first], IntentToken::Literal(_))) {
        left.retain(|at| !others.contains(at));
        placement.slot_ranges.insert(slot, first..first + others.len());
        placement.is_only_difference = true;
    }
}

fn literals(tokens: &[IntentToken]) -> impl Iterator<Item = (usize, &IntentLiteral)> {
    tokens.iter().enumerate().filter_map(|(at, token)| match token {
        IntentToken::Literal(literal) => Some((at, literal)),
        IntentToken::Word(_) => None,
    })
}

/// Matches the literals outside the slots with the new intent; those that it does not repeat are recorded as dropped.
fn fixed(
    template: &IntentTemplate<'_>,
    new: &[IntentToken],
    known: &SettledPlaces,
    left: &mut Vec<usize>,
    placement: &mut Placement,
) {
    let in_slot = |at: &usize| template.slots.iter().any(|slot| slot.range.contains(at));
    for (at, literal) in
        literals(template.tokens).filter(|(at, _)| !in_slot(at) && !known.template_tokens.contains(at))
    {
        let same = left.iter().position(
            |other| matches!(&new[*other], IntentToken::Literal(other) if literal.says_same_as(other)),
        );
        // `UTC in Tokyo` is not `Tokyo in UTC`: what could be the value of a slot has to keep its role.
        let exchangeable = (0..template.slots.len()).any(|slot| class(template, slot) == Some(key(literal)));
        let agrees = |other: usize| {
            let (was, is) = (role(template.tokens, at), role(new, other));
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
    template: &IntentTemplate<'_>,
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
    let (was, is) = (role(template.tokens, slot.range.start), role(new, place.start));
    // `of Engineering` and `in Engineering` say the same of it; `from Bob` and `to Bob` do not.
    let located = (was | is) & !(table::OF | table::IN | table::ON | table::FOR | table::ABOUT) == 0;
    if plain && (roles_agree(class, was, is) || located) {
        left.retain(|literal| !place.contains(literal));
        placement.slot_ranges.insert(at, place.clone());
    }
}

fn class(template: &IntentTemplate<'_>, slot: usize) -> Option<LiteralClass> {
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
    template: &IntentTemplate<'_>,
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
    let (wanting, having) = by_unit(template, new, (&wanting, &having), left, placement, strict);
    if wanting.len() != having.len() {
        return;
    }
    // With several slots of the class, one may already be settled, so the roles have to be equal, not just
    // compatible.
    let alone = wanting.len() == 1
        && (0..template.slots.len()).filter(|slot| class(template, *slot) == Some(class_wanted)).count() == 1;
    let fits = |slot: usize, at: usize| fits(template, slot, new, at, strict, alone);
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut open = Vec::new();
    for &slot in &wanting {
        let mut fitting: Vec<usize> = having.iter().copied().filter(|at| fits(slot, *at)).collect();
        if fitting.len() > 1 {
            // `born on 1990-05-17`, `how old on 2026-05-16`: the word that it belongs to tells.
            let of = governor(template.tokens, template.slots[slot].range.start);
            fitting.retain(|at| governor(new, *at) == of);
        }
        match fitting.as_slice() {
            [at] => pairs.push((slot, *at)),
            [] => open.push(slot),
            _ => return,
        }
    }
    // `has db.lan in hosts.txt`, `of cache.lan in hosts.txt`: where all others are placed, the last one is left.
    let mut rest = having.iter().filter(|at| !pairs.iter().any(|(_, taken)| taken == *at));
    match (open.as_slice(), rest.next(), rest.next()) {
        ([], None, None) => {}
        ([slot], Some(at), None)
            if strict == Strictness::Reads && self::fits(template, *slot, new, *at, strict, true) =>
        {
            pairs.push((*slot, *at));
        }
        _ => return,
    }
    let distinct: BTreeSet<usize> = pairs.iter().map(|(_, at)| *at).collect();
    if distinct.len() == pairs.len() {
        left.retain(|at| !distinct.contains(at));
        placement.slot_ranges.extend(pairs.into_iter().map(|(slot, at)| (slot, at..at + 1)));
    }
}

/// Whether a name without a preposition may be the one with it: `how many commits did Karl make`, `commits by Karl`.
fn is_subject(class: LiteralClass, role: u16, strict: Strictness) -> bool {
    let located = table::OF | table::BY | table::IN | table::ON | table::FOR;
    class == LiteralClass::Name && strict == Strictness::Reads && role & !located == 0
}

/// Pairs the numbers of which there is one with its unit on either side, and returns the slots and literals that remain:
/// `70 kg and 175 cm`.
fn by_unit(
    template: &IntentTemplate<'_>,
    new: &[IntentToken],
    (wanting, having): (&[usize], &[usize]),
    left: &mut Vec<usize>,
    placement: &mut Placement,
    strict: Strictness,
) -> (Vec<usize>, Vec<usize>) {
    let of_slot = |slot: usize| template.literal(&template.slots[slot]);
    let of_token = |at: usize| match &new[at] {
        IntentToken::Literal(literal) => Some(literal),
        IntentToken::Word(_) => None,
    };
    let unit = |literal: Option<&IntentLiteral>| literal.and_then(|literal| literal.measured_in);
    let (mut slots, mut rest) = (wanting.to_vec(), having.to_vec());
    for &slot in wanting {
        let Some((old, measured)) = of_slot(slot).zip(unit(of_slot(slot))) else { continue };
        let alike = (0..template.slots.len()).filter(|other| unit(of_slot(*other)) == Some(measured)).count();
        let mut same = having.iter().copied().filter(|at| unit(of_token(*at)) == Some(measured));
        let (Some(at), None, 1) = (same.next(), same.next(), alike) else { continue };
        let (was, is) = (role(template.tokens, template.slots[slot].range.start), role(new, at));
        let directed = (was | is) & (table::TO | table::BY | table::FROM | table::PER | table::BETWEEN) != 0;
        let agrees = was & is != 0 || was == is || !directed;
        if agrees && of_token(at).is_some_and(|literal| can_replace(old, literal, strict)) {
            slots.retain(|other| *other != slot);
            rest.retain(|other| *other != at);
            left.retain(|other| *other != at);
            placement.slot_ranges.insert(slot, at..at + 1);
        }
    }
    (slots, rest)
}

fn fits(
    template: &IntentTemplate<'_>,
    slot: usize,
    new: &[IntentToken],
    at: usize,
    strict: Strictness,
    alone: bool,
) -> bool {
    let slot = &template.slots[slot];
    let (Some(old), IntentToken::Literal(literal)) = (template.literal(slot), &new[at]) else { return false };
    let (was, is) = (role(template.tokens, slot.range.start), role(new, at));
    let placed = match alone {
        // `the Sales department`, `department Sales`
        true => {
            roles_agree(Some(old.class), was, is)
                || is_subject(old.class, was | is, strict) && (was == 0 || is == 0)
                || shares_noun(template.tokens, slot.range.start, new, at)
        }
        false => was & is != 0 || was == is,
    };
    let neighbours = key(old) != LiteralClass::Number
        || same_neighbours(template.tokens, slot.range.start, new, at)
        || (alone && counts_same(template.tokens, slot.range.start, new, at));
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

/// Whether a word says what is asked for, and not only that something is.
fn is_telling(concept: &str) -> bool {
    !table::BRINGING.contains(&concept) && !table::FINDING.contains(&concept)
}

/// The content word that a preposition binds a token to: `born` in `born on 1990-05-17`.
fn governor(tokens: &[IntentToken], at: usize) -> Option<Cow<'_, str>> {
    let is_bound = |token: &&IntentToken| match token {
        IntentToken::Word(word) => !matches!(word.function, WordFunction::Role(_) | WordFunction::Nothing),
        IntentToken::Literal(_) => true,
    };
    let before = tokens[..at].iter().rev().find(is_bound)?;
    before.content_word().map(|word| family(&word.concept))
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
    let (ahead_before, ahead_now) = (ahead(before, was), ahead(new, is));
    let same_ahead = ahead_before.is_some() && ahead_before == ahead_now;
    match (right_before.last(), right_now.last()) {
        (Some(one), Some(other)) if one == other => true,
        (None, None) => {
            same_ahead || same_measure(before, was, new, is) || ends_range(before, was) && ends_range(new, is)
        }
        // `mass 8.5`, `with mass 7 create …`: it belongs to the noun before it. Not so `the last 5`, `the last 5 days`.
        (None, Some(_)) => same_ahead && ahead_before.is_some_and(|word| !table::has_opposite(&word)),
        _ => false,
    }
}

/// Whether a number is the end of a range that begins with another: `40` in `20 to 40`.
fn ends_range(tokens: &[IntentToken], at: usize) -> bool {
    let is_number = |at: Option<usize>| matches!(at.map(|at| &tokens[at]), Some(IntentToken::Literal(literal)) if key(literal) == LiteralClass::Number);
    role(tokens, at) & table::TO != 0 && is_number(at.checked_sub(2))
}

/// Whether two numbers have the same unit and the same preposition: `at 5 percent`.
fn same_measure(before: &[IntentToken], was: usize, new: &[IntentToken], is: usize) -> bool {
    let measure = |tokens: &[IntentToken], at: usize| match &tokens[at] {
        IntentToken::Literal(literal) => literal.measured_in,
        IntentToken::Word(_) => None,
    };
    let unit = measure(before, was);
    unit.is_some() && unit == measure(new, is) && role(before, was) & role(new, is) != 0
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
fn said_before(template: &IntentTemplate<'_>, token: &IntentToken) -> bool {
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
