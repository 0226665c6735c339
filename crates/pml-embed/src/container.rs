//! The stored form of a model: a safetensors file with weights of eight bits, scales, vocabulary and settings.
//!
//! | tensor | type | what it is |
//! |---|---|---|
//! | `words` | I8 \[pieces, width\] | one row per piece of the vocabulary |
//! | `words.scales` | F32 \[pieces\] | what a row of `words` is multiplied with |
//! | `positions` | F32 \[max tokens, width\] | one row per position, with the row of token type 0 added |
//! | `norm.weight`, `norm.bias` | F32 \[width\] | normalisation of the sum of these |
//! | `layers.N.attention` | I8 \[3 × width, width\] | query, key and value, one below the other |
//! | `layers.N.merge` | I8 \[width, width\] | what the heads found, put together |
//! | `layers.N.widen`, `layers.N.narrow` | I8 | the two halves of the feed-forward part |
//! | `X.scales`, `X.columns`, `X.bias` | F32 | for these four: weight = code value × row scale × column factor |
//! | `layers.N.norm1`, `layers.N.norm2` | F32, `.weight` and `.bias` | after attention, after the feed-forward part |
//! | `vocabulary` | U8 | the pieces, one a line, as UTF-8 |
//! | `scores`, `charsmap` | F64, U8 | of Unigram models only |
//!
//! A weight is a code, see `code.rs`. The settings are JSON, under `config` in the metadata.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::parts::ModelTensors;
use crate::safetensors::SafetensorsHeader;
use crate::tokenizer;

/// Key of the settings in the safetensors metadata.
pub(crate) const CONFIG: &str = "config";

/// Pooling: how the vectors of all tokens become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pooling {
    /// The mean of all token vectors.
    Mean,
    /// The vector of the first token.
    First,
}

/// Settings of a model.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelConfig {
    pub(crate) id: String,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) width: usize,
    pub(crate) inner: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) max_tokens: usize,
    pub(crate) pooling: Pooling,
    pub(crate) tokenizer: tokenizer::TokenizerConfig,
}

/// Reads the settings and locates the tensors without copying them.
pub(crate) fn read_container(bytes: Cow<'static, [u8]>) -> Result<(ModelConfig, ModelTensors), String> {
    let (header, start) = SafetensorsHeader::parse_file(&bytes)?;
    let config = header.metadata.get(CONFIG).ok_or("there are no settings")?;
    let config = serde_json::from_str(config).map_err(|error| format!("the settings: {error}"))?;
    Ok((config, ModelTensors { bytes, header, start }))
}
