//! The network: numbers of pieces in, one vector per text out.
//!
//! Texts that are run together lie one behind the other, without padding; only attention knows where one ends.

use std::borrow::Cow;
use std::ops::Range;

use crate::code;
use crate::container::{Config, Pooling};
use crate::kernel::{Level, UNIT, wide};
use crate::linear::{Linear, Scratch, Then};
use crate::math;
use crate::parts::Parts;

#[derive(Debug)]
pub(crate) struct Network {
    bytes: Cow<'static, [u8]>,
    width: usize,
    heads: usize,
    pooling: Pooling,
    words: Range<usize>,
    word_scales: Vec<f32>,
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    attention: Linear,
    merge: Linear,
    norm1: Norm,
    widen: Linear,
    narrow: Linear,
    norm2: Norm,
}

#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Network {
    pub(crate) fn new(config: &Config, parts: Parts) -> Result<Network, String> {
        let (width, inner) = (config.width, config.inner);
        let norm = |name: &str| -> Result<Norm, String> {
            Ok(Norm {
                weight: parts.floats(&format!("{name}.weight"), &[width])?,
                bias: parts.floats(&format!("{name}.bias"), &[width])?,
                epsilon: config.norm_epsilon,
            })
        };
        let layer = |index: usize| -> Result<Layer, String> {
            let name = |part: &str| format!("layers.{index}.{part}");
            Ok(Layer {
                attention: Linear::new(&parts, &name("attention"), 3 * width, width)?,
                merge: Linear::new(&parts, &name("merge"), width, width)?,
                norm1: norm(&name("norm1"))?,
                widen: Linear::new(&parts, &name("widen"), inner, width)?,
                narrow: Linear::new(&parts, &name("narrow"), width, inner)?,
                norm2: norm(&name("norm2"))?,
            })
        };
        let pieces = parts.rows("words")?;
        Ok(Network {
            width,
            heads: config.heads,
            pooling: config.pooling,
            words: parts.place("words", "I8", &[pieces, width])?,
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

    /// How many pieces have a row.
    pub(crate) fn words(&self) -> usize {
        self.word_scales.len()
    }

    /// The vectors of texts.
    pub(crate) fn run(&self, texts: &[Vec<u32>], level: Level) -> Vec<Vec<f32>> {
        let mut state: Vec<f32> = texts.iter().flat_map(|text| self.look_up(text)).collect();
        self.norm.apply(level, &mut state);
        let mut room = Room::default();
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

    /// What the network starts from: a row for each piece and the place it has.
    fn look_up<'a>(&'a self, text: &'a [u32]) -> impl Iterator<Item = f32> + 'a {
        let words = &self.bytes[self.words.clone()];
        text.iter().zip(self.positions.chunks_exact(self.width)).flat_map(|(id, position)| {
            let scale = self.word_scales[*id as usize];
            let word = &words[*id as usize * self.width..][..self.width];
            word.iter()
                .zip(position)
                .map(move |(code, position)| f32::from(code::value(*code)) * scale + position)
        })
    }

    fn layer(&self, layer: &Layer, texts: &[Vec<u32>], level: Level, state: &mut [f32], room: &mut Room) {
        let Room { scratch, heads, projected, attended, inner, change } = room;
        layer.attention.apply(&self.bytes, level, state, Then::Nothing, scratch, projected);
        attended.resize(state.len(), 0.0);
        let mut start = 0;
        for text in texts {
            let tokens = start..start + text.len();
            self.attend(tokens.clone(), level, projected, heads, attended);
            start = tokens.end;
        }
        layer.merge.apply(&self.bytes, level, attended, Then::Nothing, scratch, change);
        wide(level, || add(state, change));
        layer.norm1.apply(level, state);
        layer.widen.apply(&self.bytes, level, state, Then::Gelu, scratch, inner);
        layer.narrow.apply(&self.bytes, level, inner, Then::Nothing, scratch, change);
        wide(level, || add(state, change));
        layer.norm2.apply(level, state);
    }

    /// Lets every token of one text take from all others what its heads look for.
    fn attend(
        &self,
        tokens: Range<usize>,
        level: Level,
        projected: &[f32],
        heads: &mut Heads,
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
                wide(level, || heads.score(query, scale));
                wide(level, || math::softmax(&mut heads.scores, count));
                wide(level, || heads.collect(count, out));
            }
        }
    }

    fn pool(&self, rows: &[f32]) -> Vec<f32> {
        let mut vector = rows[..self.width].to_vec();
        if self.pooling == Pooling::Mean {
            // Length comes off below, so the sum does as well as the mean.
            for row in rows.chunks_exact(self.width).skip(1) {
                add(&mut vector, row);
            }
        }
        math::to_length_one(&mut vector);
        vector
    }
}

impl Norm {
    fn apply(&self, level: Level, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            wide(level, || math::normalise(row, &self.weight, &self.bias, self.epsilon));
        }
    }
}

#[inline(always)]
fn add(to: &mut [f32], what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

/// Room for what lies between two layers.
#[derive(Debug, Default)]
struct Room {
    scratch: Scratch,
    heads: Heads,
    projected: Vec<f32>,
    attended: Vec<f32>,
    inner: Vec<f32>,
    change: Vec<f32>,
}

/// What one head sees of one text, laid out so that both of its sums go along rows, padded to whole units.
#[derive(Debug, Default)]
struct Heads {
    /// A row for each dimension, a column for each token.
    keys: Vec<f32>,
    /// A row for each token, a column for each dimension.
    values: Vec<f32>,
    scores: Vec<f32>,
}

impl Heads {
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

    /// How much a query has in common with each key.
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

    /// The values of all tokens, each by its score.
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
