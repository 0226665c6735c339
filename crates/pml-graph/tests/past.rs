//! What past requests do to a ranking.

use std::sync::Arc;

use pml_graph::everyday::EverydayVectors;
use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::past::{EmbeddedIntent, IntentTrace, ItemHint, PastAdvice, PastIntents};
use pml_graph::rank::{DenseEvidence, RankingEvidence, explain_rank, rank, standard_scores};
use pml_graph::vectors::VectorTable;

fn index() -> LexicalIndex {
    let tools = [
        ("weather", "forecast", "Weather of the coming days for a city"),
        ("files", "read", "Reads a file"),
        ("maps", "route", "The way from one place to another"),
        ("mail", "send", "Sends a message"),
    ];
    LexicalIndex::build(tools.iter().map(|(server, name, description)| ToolDocument {
        server,
        name,
        description,
        ..ToolDocument::default()
    }))
}

fn advice(hints: &[ItemHint]) -> PastAdvice {
    PastAdvice { hints: hints.to_vec() }
}

fn order(request: &str, past: Option<&[ItemHint]>) -> Vec<usize> {
    let index = index();
    let past = past.map(advice);
    let evidence = RankingEvidence { lexical: &index, dense: None, advice: past.as_ref() };
    rank(request, &evidence).into_iter().map(|found| found.item).collect()
}

#[test]
fn an_item_is_found_by_what_it_served_though_no_word_is_its_own() {
    let mut past = PastIntents::default();
    let intent = EmbeddedIntent { text: "shall I take a raincoat to Lyon", vector: None, parts: &[] };
    past.learn_trace(&IntentTrace { items: &[0], intent, item_cosines: &[] });
    let request = "do I need a raincoat in Lyon";
    assert!(!order(request, None).contains(&0));
    let hints = past.hints(&EmbeddedIntent { text: request, vector: None, parts: &[] }, 4);
    assert!(hints[0].gain(0.0) > 0.0, "{hints:?}");
    assert_eq!(order(request, Some(&hints)).first(), Some(&0));
    let index = index();
    let why = explain_rank(
        request,
        &RankingEvidence { lexical: &index, dense: None, advice: Some(&advice(&hints)) },
        0,
    );
    assert_eq!(why.iter().map(ToString::to_string).collect::<Vec<_>>(), ["served a request like this one"]);
}

#[test]
fn hints_of_another_catalogue_are_not_listened_to() {
    let hints = vec![ItemHint { evidence: 9.0, ..ItemHint::default() }; 3];
    assert_eq!(order("read a file", Some(&hints)), order("read a file", None));
}

#[test]
fn the_standard_fit_is_that_of_words_whatever_the_past_says() {
    let index = index();
    let hints = vec![ItemHint { evidence: 9.0, ..ItemHint::default() }; 4];
    let with = standard_scores(
        "read a file",
        &RankingEvidence { lexical: &index, dense: None, advice: Some(&advice(&hints)) },
    );
    let without =
        standard_scores("read a file", &RankingEvidence { lexical: &index, dense: None, advice: None });
    assert_eq!(with, without);
    let mean = with.iter().sum::<f32>() / 4.0;
    let best = with.iter().copied().fold(f32::MIN, f32::max);
    assert!(mean.abs() < 1e-4 && best == with[1], "{with:?}");
    assert!(
        standard_scores("", &RankingEvidence { lexical: &index, dense: None, advice: None })
            .iter()
            .all(|fit| *fit == 0.0)
    );
}

/// Vectors of which the first axis is how a request is put, the others are what is meant.
const ITEMS: [[f32; 4]; 4] =
    [[0.9, 0.4, 0.0, 0.0], [0.0, 0.9, 0.4, 0.0], [0.0, 0.0, 0.4, 0.9], [0.0, 0.0, 0.9, 0.4]];
const REQUEST: [f32; 4] = [0.7, 0.7, 0.0, 0.0];

/// In which order `items` are found for a request with this vector, with these hints.
fn order_by_meaning(items: &mut VectorTable, request: [f32; 4], hints: &[ItemHint]) -> Vec<usize> {
    let index = LexicalIndex::build(
        ["one", "two", "three", "four"].map(|name| ToolDocument { name, ..ToolDocument::default() }),
    );
    ITEMS.iter().for_each(|item| items.push(Some(item)));
    let past = advice(hints);
    let dense = DenseEvidence { items, whole: &request, parts: &[] };
    let evidence = RankingEvidence { lexical: &index, dense: Some(dense), advice: Some(&past) };
    rank("an old request", &evidence).into_iter().map(|found| found.item).collect()
}

#[test]
fn an_item_that_is_like_what_is_asked_every_day_is_no_more_meant_for_it() {
    let first_two = |items: &mut VectorTable| -> Vec<usize> {
        order_by_meaning(items, REQUEST, &[]).into_iter().filter(|item| *item < 2).collect()
    };
    assert_eq!(first_two(&mut VectorTable::default()), [0, 1]);
    let everyday =
        |request: &[f32]| VectorTable::with_everyday(Arc::new(EverydayVectors::from_vectors(&[request])));
    assert_eq!(first_two(&mut everyday(&[0.95, 0.0, 0.0, 0.3])), [1, 0]);
    // Requests that another model has read say nothing.
    assert_eq!(first_two(&mut everyday(&[0.9, 0.1])), [0, 1]);
}

/// What the past says after each of these items has served one intent with that vector.
fn hints_after(served: &[(u32, [f32; 4])], request: [f32; 4]) -> Vec<ItemHint> {
    let mut past = PastIntents::default();
    for (item, vector) in served {
        let intent = EmbeddedIntent { text: "something else", vector: Some(vector), parts: &[] };
        let likeness: Vec<f32> =
            ITEMS.iter().map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect();
        past.learn_trace(&IntentTrace { items: &[*item], intent, item_cosines: &likeness });
    }
    past.hints(&EmbeddedIntent { text: "an old request", vector: Some(&request), parts: &[] }, ITEMS.len())
}

#[test]
fn other_intents_never_lower_an_item_below_one_without_traces() {
    let without = order_by_meaning(&mut VectorTable::default(), REQUEST, &[ItemHint::default(); 4]);
    let unrelated = [0.0, 0.0, 0.1, 0.99];
    for served in [vec![(0, unrelated)], vec![(0, unrelated); 20], vec![(3, unrelated); 20]] {
        let hints = hints_after(&served, REQUEST);
        assert!(hints.iter().all(|hint| hint.gain(0.0) == 0.0), "{hints:?}");
        assert_eq!(order_by_meaning(&mut VectorTable::default(), REQUEST, &hints), without, "{served:?}");
    }
    // Where several have served other intents, what they are worth is shared among them, and the rest stays.
    let served = [(0, unrelated), (1, [0.6, 0.6, 0.3, 0.0])];
    let order = order_by_meaning(&mut VectorTable::default(), REQUEST, &hints_after(&served, REQUEST));
    let place = |order: &[usize], item: usize| order.iter().position(|found| *found == item);
    assert_eq!([2, 3].map(|item| place(&order, item)), [2, 3].map(|item| place(&without, item)));
}

#[test]
fn an_item_gains_where_an_intent_it_served_is_nearer_than_any_description() {
    let request = [0.5, 0.5, 0.5, 0.5];
    let hints = hints_after(&[(2, request); 3], request);
    assert_eq!(order_by_meaning(&mut VectorTable::default(), request, &hints).first(), Some(&2));
    assert!(hints[2].gain(0.8) < hints[2].gain(0.2) && hints[2].gain(1.0) == 0.0, "{hints:?}");
    assert_eq!(hints[2].gain(0.0), hints[2].gain(0.4), "what is not related does not count the more");
}
