//! Items and intents are made by hand: vectors have a few dimensions, one per subject.

use super::workflow::{self, Workflow};
use super::{Hint, Intent, Past, Recall, Trace};

/// Weather, music, travel and cooking.
const SUBJECTS: usize = 4;

/// A vector near one subject; `turn` makes those of one subject differ.
fn about(subject: usize, turn: usize) -> Vec<f32> {
    let mut vector = vec![0.05; SUBJECTS + 3];
    vector[subject] = 1.0;
    vector[SUBJECTS + turn % 3] += 0.4;
    vector
}

fn intent<'a>(text: &'a str, vector: &'a [f32]) -> Intent<'a> {
    Intent { text, vector: Some(vector), parts: &[] }
}

/// A past in which each of `items` served `times` intents about the subject of its number.
fn past(items: &[u32], times: usize) -> Past {
    let mut past = Past::default();
    for turn in 0..times {
        for item in items {
            let vector = about(*item as usize, turn);
            past.push(&Trace {
                items: &[*item],
                intent: intent(WORDS[*item as usize], &vector),
                likeness: &[0.1; 4],
            });
        }
    }
    past
}

const WORDS: [&str; SUBJECTS] =
    ["rain forecast tomorrow", "play jazz album", "cheap flight to Lisbon", "recipe with lentils"];

fn ask(past: &Past, subject: usize) -> Vec<Hint> {
    past.hints(&intent(WORDS[subject], &about(subject, 2)), SUBJECTS)
}

#[test]
fn a_request_like_its_past_ones_speaks_for_an_item() {
    for times in [1, 2, 5, 20] {
        let hints = ask(&past(&[0, 1], times), 1);
        assert!(hints[1].evidence > 0.5, "after {times}: {hints:?}");
        assert!(hints[0].evidence < 0.0, "after {times}: {hints:?}");
        assert!(hints[1].nearest > 0.8 && hints[1].traces == times as u32, "{hints:?}");
    }
}

#[test]
fn more_traces_say_more() {
    let evidence = |times| ask(&past(&[0, 1], times), 1)[1].apply(0.0);
    assert!(evidence(1) < evidence(5) && evidence(5) < evidence(20));
}

#[test]
fn a_request_in_many_parts_is_told_less_by_the_whole_of_it() {
    let past = past(&[0, 1], 5);
    let vector = about(1, 2);
    let ask = |parts: &[Vec<f32>]| {
        let request = Intent { text: WORDS[1], vector: Some(&vector), parts };
        past.hints(&request, SUBJECTS)[1]
    };
    let (whole, parted) = (ask(&[]), ask(&[about(1, 0), about(2, 0), about(3, 0)]));
    assert_eq!(ask(&[about(1, 0)]), whole);
    assert!(parted.trust < whole.trust && parted.evidence < whole.evidence, "{whole:?} {parted:?}");
    assert!(parted.evidence > 0.0, "{parted:?}");
}

#[test]
fn an_item_without_traces_keeps_its_place() {
    for times in [1, 5, 20] {
        let hints = ask(&past(&[0, 1], times), 3);
        assert_eq!((hints[3].traces, hints[3].trust, hints[3].evidence), (0, 0.0, 0.0));
        // Found by its description alone, it stays before items that served other requests.
        assert!((0..2).all(|item| hints[item].apply(1.0) < hints[3].apply(1.0)), "after {times}: {hints:?}");
    }
}

#[test]
fn items_that_serve_together_do_not_push_each_other_away() {
    let mut together = Past::default();
    for turn in 0..6 {
        let vector = about(2, turn);
        together.push(&Trace { items: &[0, 1], intent: intent(WORDS[2], &vector), likeness: &[0.1; 4] });
    }
    let hints = ask(&together, 2);
    assert!(hints[0].evidence > 0.5 && hints[0] == hints[1], "{hints:?}");
}

#[test]
fn what_serves_every_request_is_told_by_no_direction() {
    let mut past = past(&[0, 1, 2], 5);
    for turn in 0..15 {
        let vector = about(turn % 3, turn);
        past.push(&Trace { items: &[3], intent: intent("anything", &vector), likeness: &[0.1; 4] });
    }
    let hints = ask(&past, 1);
    assert!(hints[1].evidence > hints[3].evidence + 0.5, "{hints:?}");
}

#[test]
fn words_speak_alone_without_vectors() {
    let mut past = Past::default();
    for (item, text) in WORDS.iter().enumerate() {
        past.push(&Trace {
            items: &[item as u32],
            intent: Intent { text, ..Intent::default() },
            likeness: &[],
        });
    }
    let hints = past.hints(&Intent { text: "a cheap flight", ..Intent::default() }, SUBJECTS);
    assert!(hints[2].gain(0.0) > 0.0, "{hints:?}");
    assert!([0, 1, 3].iter().all(|item| hints[*item].gain(0.0) == 0.0), "{hints:?}");
}

#[test]
fn bad_input_teaches_nothing_and_breaks_nothing() {
    let mut past = past(&[0, 1], 3);
    let before = ask(&past, 1);
    let nothing = [0.0; SUBJECTS + 3];
    let broken = [f32::NAN; SUBJECTS + 3];
    for vector in [&nothing[..], &broken[..], &[1.0, 0.0]] {
        past.push(&Trace { items: &[], intent: intent("rain", vector), likeness: &[] });
        past.push(&Trace { items: &[0, 0], intent: intent("", vector), likeness: &[] });
        assert!(past.hints(&intent("rain", vector), 2).iter().all(|hint| hint.evidence.is_finite()));
    }
    let after = ask(&past, 1);
    assert_eq!(before[0].nearest, after[0].nearest);
    assert!(after.iter().all(|hint| hint.evidence.is_finite()));
    assert_eq!(Past::default().hints(&intent("rain", &about(0, 0)), 0), []);
    assert!(past.hints(&intent(&"rain ".repeat(50_000), &about(0, 0)), 1)[0].evidence.is_finite());
}

#[test]
fn the_workflow_that_served_such_a_request_comes_first() {
    let mut past = Past::default();
    let steps = [vec![about(0, 0), about(2, 0)], vec![about(0, 0), about(3, 0)]];
    let texts = ["check the rain, then book a flight", "check the rain, then cook lentils"];
    for (item, (parts, text)) in steps.iter().zip(texts).enumerate() {
        let whole = about(0, item);
        let intent = Intent { text, vector: Some(&whole), parts };
        past.push(&Trace { items: &[item as u32], intent, likeness: &[] });
    }
    let parts = [about(0, 1), about(3, 1)];
    let request =
        Intent { text: "see whether it rains and cook something", vector: Some(&about(0, 0)), parts: &parts };
    let recalls = past.recall(&request, 3);
    assert_eq!(recalls[2], Recall::default());
    assert!(recalls[1].nearest > recalls[0].nearest && recalls[1].words > recalls[0].words, "{recalls:?}");
    let workflows = recalls[..2].iter().map(|recall| Workflow { recall: *recall, tools: 0.0, text: 0.0 });
    let scores = workflow::scores(&workflows.collect::<Vec<_>>());
    assert!(scores[1] > scores[0], "{scores:?}");
}

#[test]
fn tools_that_fit_decide_between_workflows_that_served_alike() {
    let alike = Recall { nearest: 0.8, words: 0.5, length: 0.0 };
    let workflow = |tools, text| Workflow { recall: alike, tools, text };
    let scores = workflow::scores(&[workflow(0.2, 1.0), workflow(1.5, 1.0), workflow(0.2, 1.0)]);
    assert!(scores[1] > scores[0] && scores[0] == scores[2], "{scores:?}");
    assert!(workflow::scores(&[]).is_empty());
}
