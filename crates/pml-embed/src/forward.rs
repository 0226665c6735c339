//! The transformer encoder: token ids in, one vector per text out.
//!
//! The texts of a batch are concatenated without padding; only attention separates them.

use std::borrow::Cow;
use std::ops::Range;

use crate::code;
use crate::container::{ModelConfig, Pooling};
use crate::kernel::{SimdLevel, UNIT, with_wide_vectors};
use crate::linear::{Linear, LinearActivation, LinearScratch};
use crate::math;
use crate::parts::ModelTensors;

#[derive(Debug)]
pub(crate) struct TransformerEncoder {
    bytes: Cow<'static, [u8]>,
    width: usize,
    heads: usize,
    pooling: Pooling,
    words: Range<usize>,
    word_scales: Vec<f32>,
    positions: Vec<f32>,
    norm: LayerNorm,
    layers: Vec<EncoderLayer>,
}

#[derive(Debug)]
struct EncoderLayer {
    attention: Linear,
    merge: Linear,
    norm1: LayerNorm,
    widen: Linear,
    narrow: Linear,
    norm2: LayerNorm,
}

#[derive(Debug)]
struct LayerNorm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl TransformerEncoder {
    pub(crate) fn new(config: &ModelConfig, parts: ModelTensors) -> Result<TransformerEncoder, String> {
        let (width, inner) = (config.width, config.inner);
        let norm = |name: &str| -> Result<LayerNorm, String> {
            Ok(LayerNorm {
                weight: parts.floats(&format!("{name}.weight"), &[width])?,
                bias: parts.floats(&format!("{name}.bias"), &[width])?,
                epsilon: config.norm_epsilon,
            })
        };
        let layer = |index: usize| -> Result<EncoderLayer, String> {
            let name = |part: &str| format!("layers.{index}.{part}");
            Ok(EncoderLayer {
                attention: Linear::new(&parts, &name("attention"), 3 * width, width)?,
                merge: Linear::new(&parts, &name("merge"), width, width)?,
                norm1: norm(&name("norm1"))?,
                widen: Linear::new(&parts, &name("widen"), inner, width)?,
                narrow: Linear::new(&parts, &name("narrow"), width, inner)?,
                norm2: norm(&name("norm2"))?,
            })
        };
        let pieces = parts.rows("words")?;
        Ok(TransformerEncoder {
            width,
            heads: config.heads,
            pooling: config.pooling,
            words: parts.tensor_range("words", "I8", &[pieces, width])?,
            word_scales: parts.floats("words.scales", &[pieces])?,
            positions: parts.floats("positions", &[config.max_tokens, width])?,
            norm: norm("norm")?,
            layers: (0..config.layers).map(layer).collect::<Result<_, _>>()?,
            bytes: parts.into_bytes(),
        })
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Number of rows of the embedding table.
    pub(crate) fn vocabulary_size(&self) -> usize {
        self.word_scales.len()
    }

    /// The vectors of texts given as token ids.
    pub(crate) fn encode_batch(&self, texts: &[Vec<u32>], level: SimdLevel) -> Vec<Vec<f32>> {
        let mut state: Vec<f32> = texts.iter().flat_map(|text| self.look_up(text)).collect();
        self.norm.apply(level, &mut state);
        let mut room = LayerBuffers::default();
        for layer in &self.layers {
            self.layer(layer, texts, level, &mut state, &mut room);
        }
        let mut rest = state.as_slice();
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let (rows, after) = rest.split_at(text.len() * self.width);
            vectors.push(self.pool(rows));
            rest = after;
        }
        vectors
    }

    /// Input of the first layer: word embedding plus position embedding of each token.
    fn look_up<'a>(&'a self, text: &'a [u32]) -> impl Iterator<Item = f32> + 'a {
        let words = &self.bytes[self.words.clone()];
        text.iter().zip(self.positions.chunks_exact(self.width)).flat_map(|(id, position)| {
            let scale = self.word_scales[*id as usize];
            let word = &words[*id as usize * self.width..][..self.width];
            word.iter()
                .zip(position)
                .map(move |(code, position)| f32::from(code::decode(*code)) * scale + position)
        })
    }

    fn layer(
        &self,
        layer: &EncoderLayer,
        texts: &[Vec<u32>],
        level: SimdLevel,
        state: &mut [f32],
        room: &mut LayerBuffers,
    ) {
        let LayerBuffers { scratch, heads, projected, attended, inner, change } = room;
        layer.attention.apply(&self.bytes, level, state, LinearActivation::Identity, scratch, projected);
        attended.resize(state.len(), 0.0);
        let mut start = 0;
        for text in texts {
            let tokens = start..start + text.len();
            self.attend(tokens.clone(), level, projected, heads, attended);
            start = tokens.end;
        }
        layer.merge.apply(&self.bytes, level, attended, LinearActivation::Identity, scratch, change);
        with_wide_vectors(level, || add(state, change));
        layer.norm1.apply(level, state);
        layer.widen.apply(&self.bytes, level, state, LinearActivation::Gelu, scratch, inner);
        layer.narrow.apply(&self.bytes, level, inner, LinearActivation::Identity, scratch, change);
        with_wide_vectors(level, || add(state, change));
        layer.norm2.apply(level, state);
    }

    /// Self-attention among the tokens of one text.
    fn attend(
        &self,
        tokens: Range<usize>,
        level: SimdLevel,
        projected: &[f32],
        heads: &mut AttentionHead,
        attended: &mut [f32],
    ) {
        let (count, head_width, stride) = (tokens.len(), self.width / self.heads, 3 * self.width);
        let scale = 1.0 / (head_width as f32).sqrt();
        for column in (0..self.width).step_by(head_width) {
            heads.gather(
                &projected[tokens.start * stride..tokens.end * stride],
                self.width,
                column,
                head_width,
            );
            for token in tokens.clone() {
                let query = &projected[token * stride + column..][..head_width];
                let out = &mut attended[token * self.width + column..][..head_width];
                with_wide_vectors(level, || heads.score(query, scale));
                with_wide_vectors(level, || math::softmax(&mut heads.scores, count));
                with_wide_vectors(level, || heads.collect(count, out));
            }
        }
    }

    fn pool(&self, rows: &[f32]) -> Vec<f32> {
        let mut vector = rows[..self.width].to_vec();
        if self.pooling == Pooling::Mean {
            // The vector is normalised below, so the sum serves as well as the mean.
            for row in rows.chunks_exact(self.width).skip(1) {
                add(&mut vector, row);
            }
        }
        math::scale_to_unit_length(&mut vector);
        vector
    }
}

impl LayerNorm {
    fn apply(&self, level: SimdLevel, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            with_wide_vectors(level, || math::layer_norm(row, &self.weight, &self.bias, self.epsilon));
        }
    }
}

#[inline(always)]
fn add(to: &mut [f32], what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

/// Reusable buffers of one layer.
#[derive(Debug, Default)]
struct LayerBuffers {
    scratch: LinearScratch,
    heads: AttentionHead,
    projected: Vec<f32>,
    attended: Vec<f32>,
    inner: Vec<f32>,
    change: Vec<f32>,
}

/// Keys and values of one attention head for one text, laid out so that both products run along rows, padded to whole
/// units.
#[derive(Debug, Default)]
struct AttentionHead {
    /// A row for each dimension, a column for each token.
    keys: Vec<f32>,
    /// A row for each token, a column for each dimension.
    values: Vec<f32>,
    scores: Vec<f32>,
}

impl AttentionHead {
    #[inline(always)]
    fn gather(&mut self, projected: &[f32], width: usize, column: usize, head_width: usize) {
        let count = projected.len() / (3 * width);
        let (padded, value_width) = (count.next_multiple_of(UNIT), head_width.next_multiple_of(UNIT));
        self.keys.resize(head_width * padded, 0.0);
        self.values.resize(count * value_width, 0.0);
        self.scores.resize(padded, 0.0);
        for (token, row) in projected.chunks_exact(3 * width).enumerate() {
            let key = &row[width + column..][..head_width];
            for (dimension, number) in key.iter().enumerate() {
                self.keys[dimension * padded + token] = *number;
            }
            let value = &row[2 * width + column..][..head_width];
            self.values[token * value_width..][..head_width].copy_from_slice(value);
        }
    }

    /// Scaled dot product of a query with each key.
    #[inline(always)]
    fn score(&mut self, query: &[f32], scale: f32) {
        let blocks = self.scores.len() / UNIT;
        for (block, scores) in self.scores.as_chunks_mut().0.iter_mut().enumerate() {
            let keys = self.keys.as_chunks().0.iter().skip(block).step_by(blocks);
            let mut sums = [0.0; UNIT];
            for (query, keys) in query.iter().zip(keys) {
                weigh(&mut sums, query * scale, keys);
            }
            *scores = sums;
        }
    }

    /// Sum of the values of all tokens, weighted by their scores.
    #[inline(always)]
    fn collect(&self, count: usize, out: &mut [f32]) {
        let blocks = out.len().div_ceil(UNIT);
        for (block, out) in out.chunks_mut(UNIT).enumerate() {
            let values = self.values.as_chunks().0.iter().skip(block).step_by(blocks);
            let mut sums = [0.0; UNIT];
            for (score, values) in self.scores[..count].iter().zip(values) {
                weigh(&mut sums, *score, values);
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

#[inline(always)]
fn weigh(sums: &mut [f32; UNIT], by: f32, row: &[f32; UNIT]) {
    for (sum, number) in sums.iter_mut().zip(row) {
        *sum += by * number;
    }
}
