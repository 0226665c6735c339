//! What past requests do to a ranking.

use pml_graph::lexical::{Document, Index};
use pml_graph::past::{Hint, Intent, Past, Trace};
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

fn order(request: &str, past: Option<&[Hint]>) -> Vec<usize> {
    let index = index();
    let evidence = Evidence { lexical: &index, dense: None, past };
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
    let why = reasons(request, &Evidence { lexical: &index, dense: None, past: Some(&hints) }, 0);
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
    let with = standard("read a file", &Evidence { lexical: &index, dense: None, past: Some(&hints) });
    let without = standard("read a file", &Evidence { lexical: &index, dense: None, past: None });
    assert_eq!(with, without);
    let mean = with.iter().sum::<f32>() / 4.0;
    let best = with.iter().copied().fold(f32::MIN, f32::max);
    assert!(mean.abs() < 1e-4 && best == with[1], "{with:?}");
    assert!(
        standard("", &Evidence { lexical: &index, dense: None, past: None }).iter().all(|fit| *fit == 0.0)
    );
}

/// The first axis is how a request is put, the others are what is meant.
#[test]
fn an_item_that_is_like_all_past_requests_is_no_more_meant_for_it() {
    let index =
        Index::build(["one", "two", "three", "four"].map(|name| Document { name, ..Document::default() }));
    let mut items = Vectors::default();
    for item in [[0.9, 0.4, 0.0, 0.0], [0.0, 0.9, 0.4, 0.0], [0.0, 0.0, 0.4, 0.9], [0.0, 0.0, 0.9, 0.4]] {
        items.push(Some(&item));
    }
    let request = [0.7, 0.7, 0.0, 0.0];
    let dense = Dense { items: &items, whole: &request, parts: &[] };
    let asked = |past: &Past| {
        let hints = past.hints(&Intent { text: "an old request", vector: Some(&request), parts: &[] }, 4);
        assert!(hints[..3].iter().all(|hint| hint.traces == 0 && hint.evidence == 0.0), "{hints:?}");
        let evidence = Evidence { lexical: &index, dense: Some(dense), past: Some(&hints) };
        let found = rank("an old request", &evidence).into_iter().map(|found| found.item);
        found.filter(|item| *item < 2).collect::<Vec<_>>()
    };
    let mut past = Past::default();
    assert_eq!(asked(&past), [0, 1]);
    for _ in 0..200 {
        let vector = [0.95, 0.0, 0.0, 0.3];
        let likeness = items.similarities(&vector).unwrap_or_default();
        let intent = Intent { text: "another thing", vector: Some(&vector), parts: &[] };
        past.push(&Trace { items: &[3], intent, likeness: &likeness });
    }
    assert_eq!(asked(&past), [1, 0]);
}
