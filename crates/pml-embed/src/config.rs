//! Reads the files beside the weights of a model: shape, pooling and tokenizer.

use std::path::Path;

use base64::Engine;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Error;
use crate::container::Pooling;
use crate::kernel::UNIT;
use crate::tokenizer::{self, LetterRules, NormaliserStep, SpacePrepending, TokenizerKind, UnigramRules};

/// Maximum number of tokens of a model that does not declare one.
const MOST_TOKENS: usize = 512;

/// The part of `config.json` that is used.
#[derive(Debug, Deserialize)]
pub(crate) struct EncoderShape {
    model_type: String,
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) max_position_embeddings: usize,
    #[serde(default = "two")]
    pub(crate) type_vocab_size: usize,
    #[serde(default = "tiny")]
    pub(crate) layer_norm_eps: f32,
    #[serde(default)]
    pad_token_id: Option<usize>,
    #[serde(default)]
    hidden_act: Option<String>,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

fn two() -> usize {
    2
}

fn tiny() -> f32 {
    1e-12
}

/// Settings from all files beside the weights.
pub(crate) struct ModelSettings {
    pub(crate) shape: EncoderShape,
    /// Row of the first position in the position table.
    pub(crate) first_position: usize,
    pub(crate) max_tokens: usize,
    pub(crate) pooling: Pooling,
    pub(crate) tokenizer: tokenizer::TokenizerConfig,
    pub(crate) pieces: Vec<String>,
    /// Log-probabilities of the pieces; empty except for Unigram models.
    pub(crate) scores: Vec<f64>,
    pub(crate) charsmap: Vec<u8>,
}

/// Reads the settings of the model in `directory`.
pub(crate) fn read_settings(directory: &Path) -> Result<ModelSettings, Error> {
    let path = directory.join("config.json");
    let shape: EncoderShape = json(&path)?;
    let unsupported = |what: String| Error::Unsupported { path: path.clone(), what };
    let malformed = |reason: &str| Error::Malformed { path: path.clone(), reason: reason.to_owned() };
    let first_position = match shape.model_type.as_str() {
        "bert" => 0,
        // In these models positions are counted from the one after the padding token.
        "xlm-roberta" | "camembert" => shape.pad_token_id.unwrap_or(1) + 1,
        other => return Err(unsupported(format!("a model of type `{other}`"))),
    };
    if let Some(other) = shape.hidden_act.as_deref().filter(|act| *act != "gelu") {
        return Err(unsupported(format!("the activation `{other}`")));
    }
    if let Some(other) = shape.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
        return Err(unsupported(format!("positions of type `{other}`")));
    }
    let sides = [shape.hidden_size, shape.intermediate_size];
    if sides.iter().any(|side| *side == 0 || side % UNIT != 0) {
        return Err(unsupported(format!(
            "layers of {} and {} numbers, not multiples of {UNIT}",
            sides[0], sides[1]
        )));
    }
    if !shape.hidden_size.is_multiple_of(shape.num_attention_heads) {
        return Err(malformed("the heads do not share `hidden_size` evenly"));
    }
    let places = shape.max_position_embeddings.saturating_sub(first_position);
    let tokenizer: Option<TokenizerFile> = json_if_there(&directory.join("tokenizer.json"))?;
    let max_tokens = max_tokens(directory, tokenizer.as_ref())?.min(places);
    if max_tokens < 3 {
        return Err(malformed("there is no room for a text"));
    }
    let pooling = pooling(directory)?;
    let mut settings = ModelSettings {
        shape,
        first_position,
        max_tokens,
        pooling,
        tokenizer: tokenizer::TokenizerConfig {
            first: 0,
            last: 0,
            unknown: 0,
            specials: Vec::new(),
            kind: TokenizerKind::WordPiece(LETTERS),
        },
        pieces: Vec::new(),
        scores: Vec::new(),
        charsmap: Vec::new(),
    };
    read_tokenizer(directory, tokenizer, &mut settings)?;
    Ok(settings)
}

/// The smallest limit that the files declare.
fn max_tokens(directory: &Path, tokenizer: Option<&TokenizerFile>) -> Result<usize, Error> {
    let sentences: Option<Value> = json_if_there(&directory.join("sentence_bert_config.json"))?;
    let sentences = sentences.and_then(|limits| limits["max_seq_length"].as_u64());
    let tokenizer = tokenizer.and_then(|limits| limits.truncation["max_length"].as_u64());
    let least = [sentences, tokenizer].into_iter().flatten().min();
    Ok(least.and_then(|least| usize::try_from(least).ok()).unwrap_or(MOST_TOKENS))
}

fn pooling(directory: &Path) -> Result<Pooling, Error> {
    let path = directory.join("modules.json");
    let modules: Option<Vec<Value>> = json_if_there(&path)?;
    let kinds = modules.iter().flatten().filter_map(|module| module["type"].as_str());
    let last_words = kinds.filter_map(|kind| kind.rsplit('.').next());
    if let Some(other) =
        last_words.into_iter().find(|kind| !["Transformer", "Pooling", "Normalize"].contains(kind))
    {
        return Err(Error::Unsupported { path, what: format!("the step `{other}`") });
    }
    let path = directory.join("1_Pooling/config.json");
    let Some(settings) = json_if_there::<serde_json::Map<String, Value>>(&path)? else {
        return Ok(Pooling::Mean);
    };
    let modes: Vec<&str> =
        settings.iter().filter(|(_, on)| **on == Value::Bool(true)).map(|(name, _)| name.as_str()).collect();
    let modes: Vec<&str> = modes.into_iter().filter(|name| name.starts_with("pooling_mode_")).collect();
    match modes.as_slice() {
        ["pooling_mode_mean_tokens"] => Ok(Pooling::Mean),
        ["pooling_mode_cls_token"] => Ok(Pooling::First),
        other => Err(Error::Unsupported { path, what: format!("pooling by `{}`", other.join("`, `")) }),
    }
}

/// BERT's defaults for normalising characters.
const LETTERS: LetterRules = LetterRules { lowercase: true, strip_accents: true, split_chinese: true };

fn read_tokenizer(
    directory: &Path,
    file: Option<TokenizerFile>,
    settings: &mut ModelSettings,
) -> Result<(), Error> {
    if let Some(file) = file {
        return from_json(file, settings, &directory.join("tokenizer.json"));
    }
    let path = directory.join("vocab.txt");
    let text =
        std::fs::read_to_string(&path).map_err(|source| Error::Unreadable { path: path.clone(), source })?;
    settings.pieces = text.lines().map(|line| line.trim_end_matches('\r').to_owned()).collect();
    let options: Option<Value> = json_if_there(&directory.join("tokenizer_config.json"))?;
    let option = |name: &str| options.as_ref().and_then(|options| options[name].as_bool());
    let lowercase = option("do_lower_case").unwrap_or(LETTERS.lowercase);
    settings.tokenizer.kind = TokenizerKind::WordPiece(LetterRules {
        lowercase,
        strip_accents: option("strip_accents").unwrap_or(lowercase),
        split_chinese: option("tokenize_chinese_chars").unwrap_or(LETTERS.split_chinese),
    });
    name_specials(settings, &["[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"], &path)
}

/// Finds the first, the last and the unknown token, and the other special tokens.
fn name_specials(settings: &mut ModelSettings, names: &[&str], path: &Path) -> Result<(), Error> {
    let find = |name: &str| {
        let found = settings.pieces.iter().position(|piece| piece == name);
        found.map(|id| id as u32).ok_or_else(|| Error::Malformed {
            path: path.to_owned(),
            reason: format!("the piece `{name}` is not in the vocabulary"),
        })
    };
    let (first, last, unknown) = (find(names[0])?, find(names[1])?, find(names[2])?);
    let known = names.iter().filter_map(|name| Some(((*name).to_owned(), find(name).ok()?))).collect();
    let config = &mut settings.tokenizer;
    (config.first, config.last, config.unknown, config.specials) = (first, last, unknown, known);
    Ok(())
}

/// The part of `tokenizer.json` that is used.
#[derive(Deserialize)]
struct TokenizerFile {
    #[serde(default)]
    truncation: Value,
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    pre_tokenizer: Value,
    model: ModelFile,
}

#[derive(Deserialize)]
struct ModelFile {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    vocab: Option<VocabFile>,
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum VocabFile {
    Scored(Vec<(String, f64)>),
    Numbered(std::collections::HashMap<String, usize>),
}

fn from_json(file: TokenizerFile, settings: &mut ModelSettings, path: &Path) -> Result<(), Error> {
    let unsupported = |what: String| Error::Unsupported { path: path.to_owned(), what };
    match (file.model.kind.as_deref(), file.model.vocab) {
        (Some("WordPiece"), Some(VocabFile::Numbered(numbers))) => {
            settings.pieces = in_order(numbers);
            settings.tokenizer.kind = TokenizerKind::WordPiece(letters(&file.normalizer));
            name_specials(settings, &["[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"], path)
        }
        (Some("Unigram"), Some(VocabFile::Scored(_))) if file.model.byte_fallback => {
            Err(unsupported("unknown letters as bytes".to_owned()))
        }
        (Some("Unigram"), Some(VocabFile::Scored(scored))) => {
            // A line break is white space and removed before pieces are matched, so a piece with one never matches.
            let plain = |piece: String| if piece.contains('\n') { String::new() } else { piece };
            (settings.pieces, settings.scores) =
                scored.into_iter().map(|(piece, score)| (plain(piece), score)).unzip();
            let mut rules =
                UnigramRules { steps: Vec::new(), split_whitespace: false, prepend: SpacePrepending::Never };
            normaliser(&file.normalizer, &mut rules, &mut settings.charsmap).map_err(unsupported)?;
            splitter(&file.pre_tokenizer, &mut rules).map_err(unsupported)?;
            settings.tokenizer.kind = TokenizerKind::Unigram(rules);
            name_specials(settings, &["<s>", "</s>", "<unk>", "<pad>", "<mask>"], path)
        }
        (kind, _) => Err(unsupported(format!("a tokenizer of type `{}`", kind.unwrap_or("none")))),
    }
}

/// Pieces in order of their ids; an unused id gets an empty piece, which never matches.
fn in_order(numbers: std::collections::HashMap<String, usize>) -> Vec<String> {
    let mut pieces = vec![String::new(); numbers.len()];
    for (piece, id) in numbers {
        if let Some(place) = pieces.get_mut(id) {
            *place = piece;
        }
    }
    pieces
}

fn letters(normalizer: &Value) -> LetterRules {
    let lowercase = normalizer["lowercase"].as_bool().unwrap_or(LETTERS.lowercase);
    LetterRules {
        lowercase,
        strip_accents: normalizer["strip_accents"].as_bool().unwrap_or(lowercase),
        split_chinese: normalizer["handle_chinese_chars"].as_bool().unwrap_or(LETTERS.split_chinese),
    }
}

/// Adds the steps of a normaliser. The error names the unsupported feature.
fn normaliser(value: &Value, rules: &mut UnigramRules, charsmap: &mut Vec<u8>) -> Result<(), String> {
    let step = match value["type"].as_str() {
        None => return Ok(()),
        Some("Sequence") => {
            let parts = value["normalizers"].as_array().into_iter().flatten();
            return parts.into_iter().try_for_each(|part| normaliser(part, rules, charsmap));
        }
        Some("Precompiled") if charsmap.is_empty() => {
            let text = value["precompiled_charsmap"].as_str().unwrap_or_default();
            let decoded = base64::engine::general_purpose::STANDARD.decode(text);
            *charsmap = decoded.map_err(|error| format!("a character map that is not base64 ({error})"))?;
            NormaliserStep::Charsmap
        }
        Some("Replace") if value["pattern"]["Regex"] == " {2,}" => {
            NormaliserStep::Spaces(value["content"].as_str().unwrap_or(" ").to_owned())
        }
        Some("Strip") => NormaliserStep::Strip {
            left: value["strip_left"].as_bool().unwrap_or(true),
            right: value["strip_right"].as_bool().unwrap_or(true),
        },
        Some("NFC") => NormaliserStep::Nfc,
        Some("NFD") => NormaliserStep::Nfd,
        Some("NFKC") => NormaliserStep::Nfkc,
        Some("NFKD") => NormaliserStep::Nfkd,
        Some("Lowercase") => NormaliserStep::Lowercase,
        Some(other) => return Err(format!("the normaliser `{other}`")),
    };
    rules.steps.push(step);
    Ok(())
}

/// Sets the splitting rules. The error names the unsupported feature.
fn splitter(value: &Value, rules: &mut UnigramRules) -> Result<(), String> {
    match value["type"].as_str() {
        Some("Sequence") => {
            let parts = value["pretokenizers"].as_array().into_iter().flatten();
            parts.into_iter().try_for_each(|part| splitter(part, rules))
        }
        Some("WhitespaceSplit") => {
            rules.split_whitespace = true;
            Ok(())
        }
        Some("Metaspace") if value["replacement"] == "\u{2581}" && value["split"] != false => {
            rules.prepend = match (value["prepend_scheme"].as_str(), value["add_prefix_space"].as_bool()) {
                (Some("always"), _) | (None, Some(true) | None) => SpacePrepending::Always,
                (Some("first"), _) => SpacePrepending::First,
                (Some("never"), _) | (None, Some(false)) => SpacePrepending::Never,
                (Some(other), _) => return Err(format!("spaces put in front `{other}`")),
            };
            Ok(())
        }
        other => Err(format!("the splitter `{}`", other.unwrap_or("none"))),
    }
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let unreadable = |source| Error::Unreadable { path: path.to_owned(), source };
    let text = std::fs::read(path).map_err(unreadable)?;
    let malformed =
        |error: serde_json::Error| Error::Malformed { path: path.to_owned(), reason: error.to_string() };
    serde_json::from_slice(&text).map_err(malformed)
}

fn json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match json(path) {
        Ok(read) => Ok(Some(read)),
        Err(Error::Unreadable { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
