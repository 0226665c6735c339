//! What past requests do to a ranking.

use std::sync::Arc;

use pml_graph::everyday::Everyday;
use pml_graph::lens::Differences;
use pml_graph::lexical::{Document, Index};
use pml_graph::past::{Advice, Hint, Intent, Past, Trace};
use pml_graph::rank::{Dense, Evidence, rank, reasons, standard};
use pml_graph::vectors::Vectors;

fn index() -> Index {
    let tools = [
        ("weather", "forecast", "Weather of the coming days for a city"),
        ("files", "read", "Reads a file"),
        ("maps", "route", "The way from one place to another"),
        ("mail", "send", "Sends a message"),
    ];
    Index::build(tools.iter().map(|(server, name, description)| Document {
        server,
        name,
        description,
        ..Document::default()
    }))
}

fn advice(hints: &[Hint]) -> Advice {
    Advice { hints: hints.to_vec(), seen: None }
}

fn order(request: &str, past: Option<&[Hint]>) -> Vec<usize> {
    let index = index();
    let past = past.map(advice);
    let evidence = Evidence { lexical: &index, dense: None, past: past.as_ref() };
    rank(request, &evidence).into_iter().map(|found| found.item).collect()
}

#[test]
fn an_item_is_found_by_what_it_served_though_no_word_is_its_own() {
    let mut past = Past::default();
    let intent = Intent { text: "shall I take an umbrella to Lyon", vector: None, parts: &[] };
    past.push(&Trace { items: &[0], intent, likeness: &[] });
    let request = "do I need an umbrella in Lyon";
    assert!(!order(request, None).contains(&0));
    let hints = past.hints(&Intent { text: request, vector: None, parts: &[] }, 4);
    assert!(hints[0].evidence > 0.0, "{hints:?}");
    assert_eq!(order(request, Some(&hints)).first(), Some(&0));
    let index = index();
    let why = reasons(request, &Evidence { lexical: &index, dense: None, past: Some(&advice(&hints)) }, 0);
    assert_eq!(why.iter().map(ToString::to_string).collect::<Vec<_>>(), ["served a request like this one"]);
}

#[test]
fn hints_of_another_catalogue_are_not_listened_to() {
    let hints = vec![Hint { evidence: 9.0, ..Hint::default() }; 3];
    assert_eq!(order("read a file", Some(&hints)), order("read a file", None));
}

#[test]
fn the_standard_fit_is_that_of_words_whatever_the_past_says() {
    let index = index();
    let hints = vec![Hint { evidence: 9.0, ..Hint::default() }; 4];
    let with =
        standard("read a file", &Evidence { lexical: &index, dense: None, past: Some(&advice(&hints)) });
    let without = standard("read a file", &Evidence { lexical: &index, dense: None, past: None });
    assert_eq!(with, without);
    let mean = with.iter().sum::<f32>() / 4.0;
    let best = with.iter().copied().fold(f32::MIN, f32::max);
    assert!(mean.abs() < 1e-4 && best == with[1], "{with:?}");
    assert!(
        standard("", &Evidence { lexical: &index, dense: None, past: None }).iter().all(|fit| *fit == 0.0)
    );
}

/// Vectors of which the first axis is how a request is put, the others are what is meant.
const ITEMS: [[f32; 4]; 4] =
    [[0.9, 0.4, 0.0, 0.0], [0.0, 0.9, 0.4, 0.0], [0.0, 0.0, 0.4, 0.9], [0.0, 0.0, 0.9, 0.4]];
const REQUEST: [f32; 4] = [0.7, 0.7, 0.0, 0.0];

/// In which order the first two of `items` are found, where `heard` such requests were served by the last.
fn order_of_two(items: &mut Vectors, heard: u32, vector: [f32; 4]) -> Vec<usize> {
    let index =
        Index::build(["one", "two", "three", "four"].map(|name| Document { name, ..Document::default() }));
    ITEMS.iter().for_each(|item| items.push(Some(item)));
    let mut differences = Differences::default();
    (0..heard).for_each(|_| differences.learn(&vector, &[3], items));
    let seen = differences.lens(items).and_then(|lens| lens.see(&REQUEST, &[]));
    let past = Advice { hints: Vec::new(), seen };
    let dense = Dense { items, whole: &REQUEST, parts: &[] };
    let evidence = Evidence { lexical: &index, dense: Some(dense), past: Some(&past) };
    let found = rank("an old request", &evidence).into_iter().map(|found| found.item);
    found.filter(|item| *item < 2).collect()
}

#[test]
fn an_item_that_is_like_all_past_requests_is_no_more_meant_for_it() {
    let put_so = [0.95, 0.0, 0.0, 0.3];
    assert_eq!(order_of_two(&mut Vectors::default(), 0, put_so), [0, 1]);
    assert_eq!(order_of_two(&mut Vectors::default(), 200, put_so), [1, 0]);
}

#[test]
fn an_item_that_is_like_what_is_asked_every_day_is_no_more_meant_for_it_until_past_requests_say_otherwise() {
    let everyday = |request: &[f32]| Vectors::with_everyday(Arc::new(Everyday::of(&[request])));
    let put_so = [0.95, 0.0, 0.0, 0.3];
    assert_eq!(order_of_two(&mut everyday(&put_so), 0, put_so), [1, 0]);
    let put_otherwise = [0.0, 0.9, 0.0, 0.4];
    assert_eq!(order_of_two(&mut everyday(&put_so), 1, put_otherwise), [1, 0]);
    assert_eq!(order_of_two(&mut everyday(&put_so), 400, put_otherwise), [0, 1]);
    // Requests that another model has read say nothing.
    assert_eq!(order_of_two(&mut everyday(&[1.0, 0.0]), 0, put_so), [0, 1]);
}

#[test]
fn beside_what_is_like_the_request_an_item_is_found_by_standing_out() {
    let index = Index::build(["one"; 30].map(|name| Document { name, ..Document::default() }));
    let found = |first: f32, second: f32| {
        let mut items = Vectors::default();
        (0..28).for_each(|_| items.push(Some(&[-0.05, 1.0])));
        [first, second].iter().for_each(|like| items.push(Some(&[*like, 1.0])));
        let dense = Dense { items: &items, whole: &[1.0, 0.0], parts: &[] };
        let evidence = Evidence { lexical: &index, dense: Some(dense), past: None };
        let reasons = reasons("another thing", &evidence, 29).iter().map(ToString::to_string).collect();
        let found = rank("another thing", &evidence).into_iter().map(|found| found.item);
        (found.collect::<Vec<_>>(), reasons)
    };
    let because = |why: &str| vec![why.to_owned()];
    assert_eq!(found(0.2, 0.1), (vec![28, 29], because("is a little like what is asked (0.10)")));
    assert_eq!(found(0.2, 0.02), (vec![28], Vec::new()));
    assert_eq!(found(0.1, 0.1).0, Vec::<usize>::new(), "nothing is like the request");
}
