//! Items and intents are synthetic: vectors have a few dimensions, one per subject.

use super::workflow::{self, WorkflowFeatures};
use super::{EmbeddedIntent, IntentTrace, ItemHint, PastIntents, WorkflowRecall};

/// Weather, music, travel and cooking.
const SUBJECTS: usize = 4;

/// A vector near one subject; `turn` varies it.
fn about(subject: usize, turn: usize) -> Vec<f32> {
    let mut vector = vec![0.05; SUBJECTS + 3];
    vector[subject] = 1.0;
    vector[SUBJECTS + turn % 3] += 0.4;
    vector
}

fn intent<'a>(text: &'a str, vector: &'a [f32]) -> EmbeddedIntent<'a> {
    EmbeddedIntent { text, vector: Some(vector), parts: &[] }
}

/// A memory in which each of `items` served `times` intents about the subject of its number.
fn past(items: &[u32], times: usize) -> PastIntents {
    let mut past = PastIntents::default();
    for turn in 0..times {
        for item in items {
            let vector = about(*item as usize, turn);
            past.learn_trace(&IntentTrace {
                items: &[*item],
                intent: intent(WORDS[*item as usize], &vector),
                item_cosines: &[0.1; 4],
            });
        }
    }
    past
}

const WORDS: [&str; SUBJECTS] =
    ["rain forecast tomorrow", "play jazz album", "cheap flight to Lisbon", "recipe with lentils"];

fn ask(past: &PastIntents, subject: usize) -> Vec<ItemHint> {
    past.hints(&intent(WORDS[subject], &about(subject, 2)), SUBJECTS)
}

#[test]
fn a_request_like_its_past_ones_speaks_for_an_item() {
    for times in [1, 2, 5, 20] {
        let hints = ask(&past(&[0, 1], times), 1);
        assert!(hints[1].evidence > 0.5, "after {times}: {hints:?}");
        assert!(hints[0].evidence < 0.0, "after {times}: {hints:?}");
        assert!(hints[1].nearest_cosine > 0.8 && hints[1].trace_count == times as u32, "{hints:?}");
    }
}

#[test]
fn more_traces_say_more() {
    let evidence = |times| ask(&past(&[0, 1], times), 1)[1].adjusted_score(0.0);
    assert!(evidence(1) < evidence(5) && evidence(5) < evidence(20));
}

#[test]
fn a_request_in_many_parts_is_told_less_by_the_whole_of_it() {
    let past = past(&[0, 1], 5);
    let vector = about(1, 2);
    let ask = |parts: &[Vec<f32>]| {
        let request = EmbeddedIntent { text: WORDS[1], vector: Some(&vector), parts };
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
        assert_eq!((hints[3].trace_count, hints[3].trust, hints[3].evidence), (0, 0.0, 0.0));
        // Found by its description alone, it stays ahead of items that served other requests.
        assert!(
            (0..2).all(|item| hints[item].adjusted_score(1.0) < hints[3].adjusted_score(1.0)),
            "after {times}: {hints:?}"
        );
    }
}

#[test]
fn items_that_serve_together_do_not_push_each_other_away() {
    let mut together = PastIntents::default();
    for turn in 0..6 {
        let vector = about(2, turn);
        together.learn_trace(&IntentTrace {
            items: &[0, 1],
            intent: intent(WORDS[2], &vector),
            item_cosines: &[0.1; 4],
        });
    }
    let hints = ask(&together, 2);
    assert!(hints[0].evidence > 0.5 && hints[0] == hints[1], "{hints:?}");
}

#[test]
fn what_serves_every_request_is_told_by_no_direction() {
    let mut past = past(&[0, 1, 2], 5);
    for turn in 0..15 {
        let vector = about(turn % 3, turn);
        past.learn_trace(&IntentTrace {
            items: &[3],
            intent: intent("anything", &vector),
            item_cosines: &[0.1; 4],
        });
    }
    let hints = ask(&past, 1);
    assert!(hints[1].evidence > hints[3].evidence + 0.5, "{hints:?}");
}

#[test]
fn words_speak_alone_without_vectors() {
    let mut past = PastIntents::default();
    for (item, text) in WORDS.iter().enumerate() {
        past.learn_trace(&IntentTrace {
            items: &[item as u32],
            intent: EmbeddedIntent { text, ..EmbeddedIntent::default() },
            item_cosines: &[],
        });
    }
    let hints = past.hints(&EmbeddedIntent { text: "a cheap flight", ..EmbeddedIntent::default() }, SUBJECTS);
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
        past.learn_trace(&IntentTrace { items: &[], intent: intent("rain", vector), item_cosines: &[] });
        past.learn_trace(&IntentTrace { items: &[0, 0], intent: intent("", vector), item_cosines: &[] });
        assert!(past.hints(&intent("rain", vector), 2).iter().all(|hint| hint.evidence.is_finite()));
    }
    let after = ask(&past, 1);
    assert_eq!(before[0].nearest_cosine, after[0].nearest_cosine);
    assert!(after.iter().all(|hint| hint.evidence.is_finite()));
    assert_eq!(PastIntents::default().hints(&intent("rain", &about(0, 0)), 0), []);
    assert!(past.hints(&intent(&"rain ".repeat(50_000), &about(0, 0)), 1)[0].evidence.is_finite());
}

#[test]
fn the_workflow_that_served_such_a_request_comes_first() {
    let mut past = PastIntents::default();
    let steps = [vec![about(0, 0), about(2, 0)], vec![about(0, 0), about(3, 0)]];
    let texts = ["check the rain, then book a flight", "check the rain, then cook lentils"];
    for (item, (parts, text)) in steps.iter().zip(texts).enumerate() {
        let whole = about(0, item);
        let intent = EmbeddedIntent { text, vector: Some(&whole), parts };
        past.learn_trace(&IntentTrace { items: &[item as u32], intent, item_cosines: &[] });
    }
    let parts = [about(0, 1), about(3, 1)];
    let request = EmbeddedIntent {
        text: "see whether it rains and cook something",
        vector: Some(&about(0, 0)),
        parts: &parts,
    };
    let recalls = past.workflow_recalls(&request, 3);
    assert_eq!(recalls[2], WorkflowRecall::default());
    assert!(
        recalls[1].nearest_cosine > recalls[0].nearest_cosine
            && recalls[1].word_share > recalls[0].word_share,
        "{recalls:?}"
    );
    let workflows = recalls[..2].iter().map(|recall| WorkflowFeatures {
        recall: *recall,
        tool_score: 0.0,
        text_score: 0.0,
    });
    let scores = workflow::score_workflows(&workflows.collect::<Vec<_>>());
    assert!(scores[1] > scores[0], "{scores:?}");
}

#[test]
fn tools_that_fit_decide_between_workflows_that_served_alike() {
    let alike = WorkflowRecall { nearest_cosine: 0.8, word_share: 0.5, length_penalty: 0.0 };
    let workflow = |tools, text| WorkflowFeatures { recall: alike, tool_score: tools, text_score: text };
    let scores = workflow::score_workflows(&[workflow(0.2, 1.0), workflow(1.5, 1.0), workflow(0.2, 1.0)]);
    assert!(scores[1] > scores[0] && scores[0] == scores[2], "{scores:?}");
    assert!(workflow::score_workflows(&[]).is_empty());
}
