//! A model as it is kept: a safetensors file with weights of eight bits, scales, vocabulary and settings.
//!
//! | tensor | type | what it is |
//! |---|---|---|
//! | `words` | I8 \[pieces, width\] | one row per piece of the vocabulary |
//! | `words.scales` | F32 \[pieces\] | what a row of `words` is multiplied with |
//! | `positions` | F32 \[max tokens, width\] | one row per place in the text, with the row of the first text type added |
//! | `norm.weight`, `norm.bias` | F32 \[width\] | normalisation of the sum of these |
//! | `layers.N.attention` | I8 \[3 × width, width\] | query, key and value, one below the other |
//! | `layers.N.merge` | I8 \[width, width\] | what the heads found, put together |
//! | `layers.N.widen`, `layers.N.narrow` | I8 | the two halves of the feed-forward part |
//! | `X.scales`, `X.columns`, `X.bias` | F32 | beside each of these four: weight = value of the code × scale of its row × factor of its column |
//! | `layers.N.norm1`, `layers.N.norm2` | F32, `.weight` and `.bias` | after attention, after the feed-forward part |
//! | `vocabulary` | U8 | the pieces, one a line, as UTF-8 |
//! | `scores`, `charsmap` | F64, U8 | of Unigram models only |
//!
//! A weight is a code, see `code.rs`. The settings are JSON, under `config` in the metadata.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::safetensors::Header;
use crate::tokenizer;

/// The key of the settings in the metadata.
pub(crate) const CONFIG: &str = "config";

/// How the vectors of all tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first.
    First,
}

/// What a model is beside its numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    pub(crate) id: String,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) width: usize,
    pub(crate) inner: usize,
    pub(crate) norm_epsilon: f32,
    pub(crate) max_tokens: usize,
    pub(crate) pooling: Pooling,
    pub(crate) tokenizer: tokenizer::Config,
}

/// The tensors of a model, by name, in the bytes they came in.
#[derive(Debug)]
pub(crate) struct Parts {
    bytes: Cow<'static, [u8]>,
    header: Header,
    start: usize,
}

/// Reads the settings and finds the tensors; nothing large is copied.
pub(crate) fn read(bytes: Cow<'static, [u8]>) -> Result<(Config, Parts), String> {
    let (header, start) = Header::of(&bytes)?;
    let config = header.metadata.get(CONFIG).ok_or("there are no settings")?;
    let config = serde_json::from_str(config).map_err(|error| format!("the settings: {error}"))?;
    Ok((config, Parts { bytes, header, start }))
}

impl Parts {
    /// Where a tensor is among all bytes.
    pub(crate) fn place(&self, name: &str, dtype: &str, shape: &[usize]) -> Result<Range<usize>, String> {
        let tensor = self.header.tensors.get(name).ok_or_else(|| format!("there is no tensor `{name}`"))?;
        if tensor.dtype != dtype || tensor.shape != shape {
            let (found, sides) = (&tensor.dtype, &tensor.shape);
            return Err(format!("tensor `{name}` is {found} {sides:?} and should be {dtype} {shape:?}"));
        }
        let range = tensor.range();
        Ok(self.start + range.start..self.start + range.end)
    }

    /// The bytes of a tensor that is a list of them.
    pub(crate) fn bytes(&self, name: &str) -> Result<&[u8], String> {
        Ok(&self.bytes[self.list(name)?])
    }

    /// The text of a tensor that is one.
    pub(crate) fn text(&self, name: &str) -> Result<Cow<'static, str>, String> {
        let range = self.list(name)?;
        let broken = |_| format!("`{name}` is not text");
        match &self.bytes {
            Cow::Borrowed(bytes) => Ok(Cow::Borrowed(std::str::from_utf8(&bytes[range]).map_err(broken)?)),
            Cow::Owned(bytes) => {
                Ok(Cow::Owned(std::str::from_utf8(&bytes[range]).map_err(broken)?.to_owned()))
            }
        }
    }

    /// The numbers of a tensor.
    pub(crate) fn floats(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let bytes = &self.bytes[self.place(name, "F32", shape)?];
        Ok(bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }

    /// The numbers of a tensor of twice the precision.
    pub(crate) fn doubles(&self, name: &str, length: usize) -> Result<Vec<f64>, String> {
        let bytes = &self.bytes[self.place(name, "F64", &[length])?];
        Ok(bytes.as_chunks::<8>().0.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }

    /// The length of the first side of a tensor.
    pub(crate) fn rows(&self, name: &str) -> Result<usize, String> {
        let tensor = self.header.tensors.get(name).and_then(|tensor| tensor.shape.first());
        tensor.copied().ok_or_else(|| format!("there is no tensor `{name}`"))
    }

    /// All bytes, into which the places point.
    pub(crate) fn into_bytes(self) -> Cow<'static, [u8]> {
        self.bytes
    }

    fn list(&self, name: &str) -> Result<Range<usize>, String> {
        self.place(name, "U8", &[self.rows(name)?])
    }
}
