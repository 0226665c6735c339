//! A tiny model and its files.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine;
use serde_json::{Value, json};

pub(crate) const WIDTH: usize = 32;
pub(crate) const INNER: usize = 64;
pub(crate) const LAYERS: usize = 2;
pub(crate) const HEADS: usize = 4;
/// Tokens a text can have.
pub(crate) const PLACES: usize = 24;

const WORDPIECE: [&str; 18] = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "read", "##ing", "the", "file", "##s", "send", ",", "!",
    "then", "un", "##read", "##able", "e",
];

/// Pieces and how likely they are.
pub(crate) const UNIGRAM: [(&str, f64); 15] = [
    ("<s>", 0.0),
    ("<pad>", 0.0),
    ("</s>", 0.0),
    ("<unk>", 0.0),
    ("▁read", -3.0),
    ("ing", -3.5),
    ("▁the", -2.0),
    ("▁file", -4.0),
    ("▁", -5.0),
    ("s", -4.5),
    ("▁send", -5.5),
    ("r", -6.0),
    ("re", -5.0),
    ("ad", -5.5),
    ("<mask>", 0.0),
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Bert,
    XlmR,
}

pub(crate) struct Tiny {
    pub(crate) family: Family,
    pub(crate) seed: u64,
    pub(crate) dtype: &'static str,
    pub(crate) first_token: bool,
}

impl Tiny {
    pub(crate) fn new(family: Family) -> Tiny {
        Tiny { family, seed: 1, dtype: "F32", first_token: false }
    }

    /// The row of the first place in the table of positions.
    pub(crate) fn first_position(&self) -> usize {
        if self.family == Family::Bert { 0 } else { 2 }
    }

    fn pieces(&self) -> usize {
        if self.family == Family::Bert { WORDPIECE.len() } else { UNIGRAM.len() }
    }

    /// All tensors with their shapes.
    pub(crate) fn tensors(&self) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
        let mut shapes: Vec<(String, Vec<usize>)> = vec![
            ("embeddings.word_embeddings.weight".into(), vec![self.pieces(), WIDTH]),
            ("embeddings.position_embeddings.weight".into(), vec![PLACES + self.first_position(), WIDTH]),
            ("embeddings.token_type_embeddings.weight".into(), vec![1, WIDTH]),
            ("embeddings.LayerNorm".into(), vec![]),
        ];
        for layer in 0..LAYERS {
            let name = |part: &str| format!("encoder.layer.{layer}.{part}");
            for part in ["query", "key", "value"] {
                shapes.push((name(&format!("attention.self.{part}")), vec![WIDTH, WIDTH]));
            }
            shapes.push((name("attention.output.dense"), vec![WIDTH, WIDTH]));
            shapes.push((name("attention.output.LayerNorm"), vec![]));
            shapes.push((name("intermediate.dense"), vec![INNER, WIDTH]));
            shapes.push((name("output.dense"), vec![WIDTH, INNER]));
            shapes.push((name("output.LayerNorm"), vec![]));
        }
        let mut noise = Noise(self.seed);
        let mut tensors = BTreeMap::new();
        for (name, shape) in shapes {
            if name.ends_with(".weight") {
                let count = shape.iter().product();
                tensors.insert(name, (shape, noise.numbers(count, 0.0)));
            } else if shape.is_empty() {
                tensors.insert(format!("{name}.weight"), (vec![WIDTH], noise.numbers(WIDTH, 1.0)));
                tensors.insert(format!("{name}.bias"), (vec![WIDTH], noise.numbers(WIDTH, 0.0)));
            } else {
                tensors.insert(format!("{name}.bias"), (vec![shape[0]], noise.numbers(shape[0], 0.0)));
                let count = shape.iter().product();
                tensors.insert(format!("{name}.weight"), (shape, noise.numbers(count, 0.0)));
            }
        }
        tensors
    }

    pub(crate) fn write(&self, folder: &Path) {
        let put = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
        let kind = if self.family == Family::Bert { "bert" } else { "xlm-roberta" };
        let config = json!({
            "model_type": kind, "vocab_size": self.pieces(), "hidden_size": WIDTH, "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS, "intermediate_size": INNER, "hidden_act": "gelu", "pad_token_id": 1,
            "max_position_embeddings": PLACES + self.first_position(), "type_vocab_size": 1, "layer_norm_eps": 1e-5,
        });
        put("config.json", config.to_string());
        match self.family {
            Family::Bert => put("vocab.txt", WORDPIECE.join("\n") + "\n"),
            Family::XlmR => put("tokenizer.json", tokenizer().to_string()),
        }
        if self.first_token {
            std::fs::create_dir(folder.join("1_Pooling")).unwrap();
            put("1_Pooling/config.json", json!({"pooling_mode_cls_token": true}).to_string());
        }
        std::fs::write(folder.join("model.safetensors"), self.weights()).unwrap();
    }

    fn weights(&self) -> Vec<u8> {
        let prefix = if self.family == Family::Bert { "" } else { "roberta." };
        let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
        for (name, (shape, numbers)) in self.tensors() {
            let start = data.len();
            for number in numbers {
                match self.dtype {
                    "BF16" => data.extend_from_slice(&number.to_le_bytes()[2..]),
                    "F16" => data.extend_from_slice(&half(number).to_le_bytes()),
                    _ => data.extend_from_slice(&number.to_le_bytes()),
                }
            }
            let place = json!({"dtype": self.dtype, "shape": shape, "data_offsets": [start, data.len()]});
            header.insert(format!("{prefix}{name}"), place);
        }
        let header = Value::Object(header).to_string();
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &data].concat()
    }
}

/// A number of sixteen bits; all that are used here fit exactly.
fn half(number: f32) -> u16 {
    let bits = number.to_bits();
    if number == 0.0 {
        return 0;
    }
    let exponent = ((bits >> 23) & 0xff) as i32 - 127 + 15;
    assert!(exponent > 0 && bits & 0x1fff == 0, "{number} has no exact half");
    ((bits >> 16) & 0x8000) as u16 | (exponent as u16) << 10 | ((bits >> 13) & 0x3ff) as u16
}

/// Numbers that look random: 64ths, which every type of weight can hold.
struct Noise(u64);

impl Noise {
    fn numbers(&mut self, count: usize, centre: f32) -> Vec<f32> {
        let mut next = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Four dice: mostly small, sometimes larger.
            let dice: i64 = (0..4).map(|die| ((self.0 >> (20 + 8 * die)) & 15) as i64).sum();
            centre + (dice - 30) as f32 / 64.0
        };
        (0..count).map(|_| next()).collect()
    }
}

fn tokenizer() -> Value {
    let map = charsmap(&[("\t", " "), ("\n", " "), ("é", "e"), ("ﬁ", "fi")]);
    json!({
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Precompiled", "precompiled_charsmap": base64::engine::general_purpose::STANDARD.encode(map)},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        ]},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
        ]},
        "model": {"type": "Unigram", "unk_id": 3, "vocab": UNIGRAM},
    })
}

/// A table of replacements in the form SentencePiece has it: every node of the trie has 256 places of its own.
fn charsmap(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut bases: BTreeMap<&[u8], usize> = BTreeMap::from([(&b""[..], 256)]);
    let mut units: BTreeMap<usize, u32> = BTreeMap::from([(0, 256 << 10)]);
    let mut replacements = Vec::new();
    for (key, replacement) in pairs {
        let key = key.as_bytes();
        for end in 1..=key.len() {
            let place = bases[&key[..end - 1]] ^ usize::from(key[end - 1]);
            let fresh = (bases.len() + 1) * 256;
            let base = *bases.entry(&key[..end]).or_insert(fresh);
            let leaf = u32::from(end == key.len()) << 8;
            units.insert(place, ((place ^ base) as u32) << 10 | leaf | u32::from(key[end - 1]));
            if end == key.len() {
                units.insert(base, 1 << 31 | replacements.len() as u32);
            }
        }
        replacements.extend_from_slice(replacement.as_bytes());
        replacements.push(0);
    }
    let length = (bases.len() + 1) * 256;
    let trie: Vec<u8> =
        (0..length).flat_map(|place| units.get(&place).copied().unwrap_or(0).to_le_bytes()).collect();
    [&(trie.len() as u32).to_le_bytes()[..], &trie, &replacements].concat()
}
