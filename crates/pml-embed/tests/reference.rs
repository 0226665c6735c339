//! The model inside the program against the published one: the same tokens, and vectors that point the same way.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

use base64::Engine;
use pml_embed::TransformerModel;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    text: String,
    tokens: Vec<u32>,
    #[serde(default)]
    vector: String,
}

fn cases(lines: &str) -> Vec<Case> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn vectors() -> Vec<Case> {
    cases(include_str!("reference/vectors.jsonl"))
}

fn reference(case: &Case) -> Vec<f32> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(&case.vector).unwrap();
    bytes.chunks(2).map(|pair| f32::from(i16::from_le_bytes([pair[0], pair[1]])) / 32767.0).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn texts_have_the_tokens_of_the_reference() {
    let mut cases = vectors();
    cases.extend(self::cases(include_str!("reference/tokens.jsonl")));
    assert!(cases.len() > 130, "{} texts", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .map(|case| (case, TransformerModel::embedded().tokens(&case.text)))
        .filter(|(case, found)| case.tokens != *found)
        .map(|(case, found)| format!("{:?}\n  is    {:?}\n  found {found:?}", case.text, case.tokens))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn vectors_are_those_of_the_reference_to_one_in_a_thousand() {
    let cases = vectors();
    assert!(cases.len() >= 60 && cases.iter().any(|case| case.tokens.len() == 128));
    let mut found: Vec<(f64, &str)> = cases
        .iter()
        .map(|case| {
            (cosine(&reference(case), &TransformerModel::embedded().embed(&case.text)), case.text.as_str())
        })
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    println!("worst: {:?}", &found[..8]);
    println!("mean: {}", found.iter().map(|(cosine, _)| cosine).sum::<f64>() / found.len() as f64);
    assert!(found[0].0 >= 0.999, "{:?}", &found[..4]);
}

#[test]
fn texts_together_get_what_they_get_alone() {
    let cases = vectors();
    let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
    let together = TransformerModel::embedded().embed_all(&texts);
    assert_eq!(together.len(), texts.len());
    for (text, vector) in texts.iter().zip(&together) {
        assert!(*vector == TransformerModel::embedded().embed(text), "{text:?}");
    }
}

#[test]
fn every_text_has_a_vector_of_length_one() {
    let long = "word ".repeat(20_000);
    let wide = "x".repeat(100_000);
    for text in ["", " ", "\0\0\0", "🙂🙂🙂", "\u{fffd}", &long, &wide] {
        let vector = TransformerModel::embedded().embed(text);
        let length: f32 = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        assert!(vector.len() == 384 && (length - 1.0).abs() < 1e-5, "{:?}…: {length}", text.get(..8));
    }
}

#[test]
fn what_means_the_same_is_near() {
    let model = TransformerModel::embedded();
    let [question, near, far] =
        ["how far apart are two dates", "number of days between two dates", "send an email to a colleague"]
            .map(|text| model.embed(text));
    assert!(cosine(&question, &near) > cosine(&question, &far) + 0.4);
}

#[test]
fn the_model_says_what_it_is() {
    let model = TransformerModel::embedded();
    let digest = model.id().strip_prefix("all-MiniLM-L6-v2/int8/").unwrap();
    assert!(digest.len() == 8 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    assert_eq!((model.dimensions(), model.max_tokens()), (384, 128));
    assert!(TransformerModel::embedded().embed_all(&[]).is_empty());
}
