//! What vectors add to ranking, with a model of four meanings: files, mail, weather and money.

use std::slice::from_ref;

use expect_test::{Expect, expect};
use pml_graph::lexical::{LexicalIndex, ToolDocument};
use pml_graph::rank::{DenseEvidence, RankingEvidence, ScoredItem, explain_rank, rank};
use pml_graph::request::split_parts;
use pml_graph::vectors::{VectorTable, document_text};

const TOOLS: &[(&str, &str, &str)] = &[
    ("fs", "read_file", "Read the contents of a file"),
    ("fs", "write_file", "Write contents to a file"),
    ("mail", "send_email", "Send an email message to a recipient"),
    ("weather", "forecast", "Forecast for a city"),
    ("bank", "list_payments", "List payments"),
    ("bank", "get_balance", ""),
];

/// How much a text has to do with each meaning; every word of the model counts once.
fn vector(text: &str) -> Vec<f32> {
    let meanings: [&[&str]; 4] = [
        &["file", "document", "contents", "read", "write", "disk"],
        &["mail", "email", "message", "letter", "send"],
        &["weather", "forecast", "rain", "parasol", "sunny"],
        &["bank", "payments", "balance", "money", "account", "owe"],
    ];
    let text = text.to_lowercase();
    let count = |words: &[&str]| words.iter().filter(|word| text.contains(**word)).count() as f32;
    meanings.iter().map(|words| count(words) + 0.1).collect()
}

fn index() -> LexicalIndex {
    LexicalIndex::build(TOOLS.iter().map(|(server, name, description)| ToolDocument {
        server,
        name,
        description,
        ..ToolDocument::default()
    }))
}

fn vectors() -> VectorTable {
    let mut vectors = VectorTable::default();
    for (server, name, description) in TOOLS {
        vectors.push(Some(&vector(&document_text(server, name, description))));
    }
    vectors
}

/// Ranks with the vectors of `request` itself.
fn found(request: &str, vectors: &VectorTable) -> Vec<ScoredItem> {
    with(request, vectors, |evidence| rank(request, evidence))
}

fn with<T>(request: &str, vectors: &VectorTable, use_it: impl Fn(&RankingEvidence<'_>) -> T) -> T {
    let parts: Vec<Vec<f32>> = split_parts(request).into_iter().map(vector).collect();
    let dense = DenseEvidence { items: vectors, whole: &vector(request), parts: &parts };
    use_it(&RankingEvidence { lexical: &index(), dense: Some(dense), advice: None })
}

#[track_caller]
fn check(request: &str, expected: &Expect) {
    let vectors = vectors();
    let mut text = String::new();
    for ScoredItem { item, score } in found(request, &vectors).into_iter().take(4) {
        let why = with(request, &vectors, |evidence| explain_rank(request, evidence, item));
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        text.push_str(&format!("{score:.2} {}: {}\n", TOOLS[item].1, why.join("; ")));
    }
    expected.assert_eq(&text);
}

#[test]
fn what_is_said_in_other_words_is_found() {
    assert!(
        rank("shall I take an parasol", &RankingEvidence { lexical: &index(), dense: None, advice: None })
            .is_empty()
    );
    check(
        "shall I take an parasol",
        &expect![[r#"
            0.87 forecast: means nearly what is asked (1.00)
        "#]],
    );
}

#[test]
fn words_and_meaning_count_together() {
    check(
        "write a letter to the bank about what I owe",
        &expect![[r#"
            0.63 list_payments: server matches `bank`; means nearly what is asked (0.84)
            0.62 get_balance: server matches `bank`; means nearly what is asked (0.84)
            0.35 write_file: name matches `write`; means something like what is asked (0.46)
            0.28 read_file: means something like what is asked (0.46)
        "#]],
    );
}

#[test]
fn every_part_has_its_own_meaning() {
    check(
        "Will it be sunny tomorrow? Read my document. Post a letter.",
        &expect![[r#"
            0.82 forecast: means nearly what is asked (1.00)
            0.67 read_file: name matches `Read`; means nearly what is asked (1.00)
            0.61 send_email: means nearly what is asked (0.99)
            0.49 write_file: means nearly what is asked (1.00)
        "#]],
    );
}

#[test]
fn items_without_a_vector_are_ranked_by_their_words() {
    let mut vectors = vectors();
    vectors.replace(3, None);
    assert_eq!(found("weather forecast", &vectors)[0].item, 3);
    let mut none = VectorTable::default();
    TOOLS.iter().for_each(|_| none.push(None));
    let words = rank("read a file", &RankingEvidence { lexical: &index(), dense: None, advice: None });
    assert_eq!(found("read a file", &none), words);
}

#[test]
fn vectors_that_do_not_fit_are_ignored() {
    let (index, vectors) = (index(), vectors());
    let words = rank("read a file", &RankingEvidence { lexical: &index, dense: None, advice: None });
    let with = |items: &VectorTable, whole: &[f32], parts: &[Vec<f32>]| {
        rank(
            "read a file",
            &RankingEvidence {
                lexical: &index,
                dense: Some(DenseEvidence { items, whole, parts }),
                advice: None,
            },
        )
    };
    let good = vector("read a file");
    assert_ne!(with(&vectors, &good, from_ref(&good)), words);
    for bad in [vec![], vec![1.0; 7], vec![0.0; 4], vec![f32::NAN; 4], vec![f32::INFINITY; 4]] {
        assert_eq!(with(&vectors, &bad, from_ref(&bad)), words, "{bad:?}");
    }
    assert_eq!(with(&VectorTable::default(), &good, from_ref(&good)), words);
    let parts = vec![vector("weather"), vector("money")];
    assert_eq!(with(&vectors, &good, &parts), with(&vectors, &good, from_ref(&good)));
}

#[test]
fn nothing_asked_finds_nothing_whatever_its_vector() {
    for request in ["", "🙂🙂", "please show me the", "\u{0}\u{1}\u{fffd}"] {
        assert!(found(request, &vectors()).is_empty(), "{request:?}");
    }
}

#[test]
fn scores_fall_and_what_is_far_off_scores_low() {
    let vectors = vectors();
    for request in
        ["read file", "parasol. money. letter. disk", "weather in the bank account", "knit a pullover"]
    {
        let found = found(request, &vectors);
        assert!(found.iter().all(|ranked| ranked.score > 0.0 && ranked.score <= 1.0), "{request}: {found:?}");
        assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score), "{request}: {found:?}");
    }
    assert!(found("read the contents of a file", &vectors)[0].score > 0.8);
}

#[test]
fn thousands_of_tools_that_are_alike_keep_their_order() {
    let index =
        LexicalIndex::build((0..2000).map(|_| ToolDocument { name: "read_file", ..ToolDocument::default() }));
    let mut vectors = VectorTable::default();
    (0..2000).for_each(|_| vectors.push(Some(&vector("read file"))));
    let request = "Read the file. Send the message. Read the disk.";
    let parts: Vec<Vec<f32>> = split_parts(request).into_iter().map(vector).collect();
    let dense = DenseEvidence { items: &vectors, whole: &vector(request), parts: &parts };
    let found = rank(request, &RankingEvidence { lexical: &index, dense: Some(dense), advice: None });
    assert!(found.iter().map(|ranked| ranked.item).eq(0..2000));
    assert!(found.iter().all(|ranked| ranked.score.is_finite()));
}

#[test]
fn the_one_that_is_named_is_found_among_very_many_that_mean_the_same() {
    let names: Vec<String> = (0..2_000).map(|number| format!("tool_{number:04}")).collect();
    let index = LexicalIndex::build(names.iter().map(|name| ToolDocument {
        server: "many",
        name,
        description: "Does one of very many things",
        ..ToolDocument::default()
    }));
    let whole = [0.3, 0.9, 0.2];
    let parts = [whole.to_vec()];
    for read in [2_000, 20, 1] {
        // They differ by no more than chance, and only some were read.
        let mut vectors = VectorTable::default();
        for number in 0..2_000_u32 {
            let noise = f32::from(u8::try_from(number * 7_919 % 251).unwrap()) / 20_000.0;
            let vector = [0.8 + noise, 0.6 - noise, 0.01];
            vectors.push((number < read).then_some(&vector[..]));
        }
        let dense = DenseEvidence { items: &vectors, whole: &whole, parts: &parts };
        let evidence = RankingEvidence { lexical: &index, dense: Some(dense), advice: None };
        assert_eq!(rank("run the 1234 tool", &evidence)[0].item, 1_234, "{read} were read");
    }
}
