//! Models from directories: a tiny one is written with weights that look random, and the vectors are
//! compared with those of the textbook formulas in double precision. Broken directories say what is wrong.
#![expect(clippy::unwrap_used, reason = "helpers of tests stop at what they do not expect")]

mod textbook;
mod tiny;

use std::path::Path;

use pml_embed::{Error, TransformerModel};
use serde_json::json;
use textbook::cosine;
use tiny::{Family, Tiny};

const TEXTS: [&str; 6] =
    ["", "read", "Read the FILE, then send the file!", "réading unreadable files", "qqq [SEP] send", "the"];

#[track_caller]
fn check(tiny: &Tiny) {
    let folder = tempfile::tempdir().unwrap();
    tiny.write(folder.path());
    let model = TransformerModel::open(folder.path()).unwrap();
    assert_eq!(model.dimensions(), tiny::WIDTH);
    for text in TEXTS {
        let found = model.embed(text);
        let expected = textbook::vector(tiny, &model.tokens(text));
        let cosine = cosine(&found, &expected);
        assert!(cosine > 0.999, "{text:?}: {cosine}");
    }
}

#[test]
fn a_bert_model_follows_the_textbook() {
    check(&Tiny::new(Family::Bert));
}

#[test]
fn an_xlm_r_model_follows_the_textbook() {
    check(&Tiny::new(Family::XlmR));
}

#[test]
fn the_first_token_can_stand_for_the_text() {
    check(&Tiny { first_token: true, ..Tiny::new(Family::Bert) });
}

/// The weights of the tiny model are such that no type has to round them.
#[test]
fn weights_of_sixteen_bits_are_the_same_model() {
    let folder = tempfile::tempdir().unwrap();
    let id = |dtype: &'static str| {
        Tiny { dtype, ..Tiny::new(Family::Bert) }.write(folder.path());
        TransformerModel::open(folder.path()).unwrap().id().to_owned()
    };
    let whole = id("F32");
    assert_eq!([id("F16"), id("BF16")], [whole.clone(), whole]);
}

/// What is shipped is a packed file, made from the floats that training wrote.
#[test]
fn packed_weights_are_the_model_that_was_packed() {
    let folder = tempfile::tempdir().unwrap();
    let tiny = Tiny::new(Family::Bert);
    tiny.write(folder.path());
    let file = folder.path().join("packed.int8");
    std::fs::write(&file, pml_embed::pack(folder.path(), "tiny").unwrap()).unwrap();
    let (packed, floats) =
        (TransformerModel::open_packed(&file).unwrap(), TransformerModel::open(folder.path()).unwrap());
    assert!(packed.id().starts_with("tiny/int8/"), "{}", packed.id());
    for text in TEXTS {
        let vector = packed.embed(text);
        assert_eq!(vector, floats.embed(text), "{text:?}");
        // Rounding to eight bits turns a vector by no more than this.
        let cosine = cosine(&vector, &textbook::vector(&tiny, &packed.tokens(text)));
        assert!(cosine > 0.999, "{text:?}: {cosine}");
    }
}

#[test]
fn a_file_of_packed_weights_that_is_damaged_says_so() {
    let folder = tempfile::tempdir().unwrap();
    Tiny::new(Family::Bert).write(folder.path());
    let file = folder.path().join("packed.int8");
    assert!(matches!(TransformerModel::open_packed(&file), Err(Error::Unreadable { .. })));
    let bytes = pml_embed::pack(folder.path(), "tiny").unwrap();
    for length in [0, 7, 100, bytes.len() - 1] {
        std::fs::write(&file, &bytes[..length]).unwrap();
        let error = TransformerModel::open_packed(&file).unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{length}: {error}");
    }
    // A file of floats is none of packed weights.
    let error = TransformerModel::open_packed(&folder.path().join("model.safetensors")).unwrap_err();
    assert!(matches!(error, Error::Malformed { .. }), "{error}");
}

#[test]
fn the_id_tells_models_apart() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tiny");
    std::fs::create_dir(&place).unwrap();
    let mut ids = Vec::new();
    for seed in [1, 2, 1] {
        Tiny { seed, ..Tiny::new(Family::Bert) }.write(&place);
        ids.push(TransformerModel::open(&place).unwrap().id().to_owned());
    }
    assert!(ids[0].starts_with("tiny/int8/") && ids[0] == ids[2] && ids[0] != ids[1], "{ids:?}");
}

#[test]
fn texts_are_cut_where_the_model_ends() {
    let folder = tempfile::tempdir().unwrap();
    Tiny::new(Family::Bert).write(folder.path());
    let model = TransformerModel::open(folder.path()).unwrap();
    assert_eq!(model.max_tokens(), tiny::PLACES);
    let tokens = model.tokens(&"read the file ".repeat(1000));
    assert_eq!((tokens.len(), tokens.last()), (tiny::PLACES, model.tokens("").last()));
}

/// As the reference implementation cuts them.
#[test]
fn unigram_takes_the_likeliest_pieces() {
    let folder = tempfile::tempdir().unwrap();
    Tiny::new(Family::XlmR).write(folder.path());
    let model = TransformerModel::open(folder.path()).unwrap();
    let pieces = |text: &str| -> Vec<&str> {
        model.tokens(text).into_iter().map(|id| tiny::UNIGRAM[id as usize].0).collect()
    };
    for (text, expected) in [
        ("", vec!["<s>", "</s>"]),
        ("read the file", vec!["<s>", "▁read", "▁the", "▁file", "</s>"]),
        ("reading", vec!["<s>", "▁read", "ing", "</s>"]),
        ("  read \t\n file ", vec!["<s>", "▁read", "▁file", "</s>"]),
        ("ﬁle", vec!["<s>", "▁file", "</s>"]),
        ("réad", vec!["<s>", "▁read", "</s>"]),
        ("qzq read", vec!["<s>", "▁", "<unk>", "▁read", "</s>"]),
        ("read</s>file<mask>", vec!["<s>", "▁read", "</s>", "▁file", "<mask>", "</s>"]),
    ] {
        assert_eq!(pieces(text), expected, "{text:?}");
    }
}

/// Opens a tiny model after something was done to it, and tells what is wrong and what to do.
fn complaint(spoil: impl FnOnce(&Path)) -> String {
    let folder = tempfile::tempdir().unwrap();
    Tiny::new(Family::Bert).write(folder.path());
    spoil(folder.path());
    let error = TransformerModel::open(folder.path()).unwrap_err();
    assert!(!error.hint().is_empty());
    let kind = match error {
        Error::Unreadable { .. } => "unreadable",
        Error::Malformed { .. } => "malformed",
        Error::Unsupported { .. } => "unsupported",
    };
    let text = error.to_string().replace(&format!("{}/", folder.path().display()), "");
    format!("{kind}: {text}")
}

#[track_caller]
fn complains(spoil: impl FnOnce(&Path), expected: &str) {
    let complaint = complaint(spoil);
    assert!(complaint.starts_with(expected), "{complaint}");
}

/// Sets one member of a JSON file.
fn set(file: &str, key: &str, value: serde_json::Value) -> impl FnOnce(&Path) {
    move |folder| {
        let path = folder.join(file);
        let text = std::fs::read(&path).unwrap_or(b"{}".to_vec());
        let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        json[key] = value;
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, json.to_string()).unwrap();
    }
}

#[test]
fn a_missing_file_is_named() {
    for file in ["config.json", "model.safetensors", "vocab.txt"] {
        let expected = format!("unreadable: cannot read `{file}`: ");
        complains(|folder| std::fs::remove_file(folder.join(file)).unwrap(), &expected);
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    for (file, key, value, expected) in [
        ("config.json", "model_type", json!("gpt2"), "`config.json` asks for a model of type `gpt2`"),
        ("config.json", "hidden_act", json!("relu"), "`config.json` asks for the activation `relu`"),
        ("config.json", "hidden_size", json!(20), "`config.json` asks for layers of 20 and 64 numbers"),
        (
            "config.json",
            "position_embedding_type",
            json!("relative_key"),
            "`config.json` asks for positions of type",
        ),
        (
            "1_Pooling/config.json",
            "pooling_mode_max_tokens",
            json!(true),
            "`1_Pooling/config.json` asks for pooling by",
        ),
        (
            "tokenizer.json",
            "model",
            json!({"type": "BPE"}),
            "`tokenizer.json` asks for a tokenizer of type `BPE`",
        ),
    ] {
        complains(set(file, key, value), &format!("unsupported: {expected}"));
    }
}

#[test]
fn what_is_damaged_is_said() {
    complains(
        |folder| std::fs::write(folder.join("config.json"), "{").unwrap(),
        "malformed: `config.json` is damaged",
    );
    complains(
        set("config.json", "num_hidden_layers", json!(9)),
        "malformed: `model.safetensors` is damaged or not of a model: there is no tensor `encoder.layer.2.",
    );
    complains(
        set("config.json", "vocab_size", json!(5)),
        "malformed: `model.safetensors` is damaged or not of a model: tensor `embeddings.word_embeddings.weight` is [",
    );
    complains(
        |folder| std::fs::write(folder.join("vocab.txt"), "a\nb").unwrap(),
        "malformed: `vocab.txt` is damaged or not of a model: the piece `[CLS]`",
    );
    let weights = |folder: &Path| std::fs::read(folder.join("model.safetensors")).unwrap();
    for length in [0, 4, 100, 5_000] {
        let cut = |folder: &Path| {
            std::fs::write(folder.join("model.safetensors"), &weights(folder)[..length]).unwrap();
        };
        complains(cut, "malformed: `model.safetensors` is damaged or not of a model: ");
    }
    let infinite = |folder: &Path| {
        let mut bytes = weights(folder);
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&f32::INFINITY.to_le_bytes());
        std::fs::write(folder.join("model.safetensors"), bytes).unwrap();
    };
    complains(infinite, "malformed: `model.safetensors` is damaged or not of a model: tensor ");
    let more_pieces = |folder: &Path| {
        let text = std::fs::read_to_string(folder.join("vocab.txt")).unwrap();
        std::fs::write(folder.join("vocab.txt"), format!("{text}\none\ntwo")).unwrap();
    };
    complains(more_pieces, "malformed: ");
}
