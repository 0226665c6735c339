//! The network as the textbook has it: one number at a time, in double precision, nothing rounded.

use std::collections::BTreeMap;

use crate::tiny::{HEADS, INNER, LAYERS, Tiny, WIDTH};

type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;
type Rows = Vec<Vec<f64>>;

/// The vector of a text, of any length.
pub(crate) fn vector(tiny: &Tiny, tokens: &[u32]) -> Vec<f64> {
    let tensors = tiny.tensors();
    let row = |name: &str, row: usize| numbers(&tensors, name)[row * WIDTH..][..WIDTH].to_vec();
    let mut state: Rows = Vec::new();
    for (place, token) in tokens.iter().enumerate() {
        let word = row("embeddings.word_embeddings.weight", *token as usize);
        let position = row("embeddings.position_embeddings.weight", place + tiny.first_position());
        let kind = row("embeddings.token_type_embeddings.weight", 0);
        state.push((0..WIDTH).map(|k| word[k] + position[k] + kind[k]).collect());
    }
    normalise(&tensors, "embeddings.LayerNorm", &mut state);
    for layer in 0..LAYERS {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let found = attention(&tensors, &name("attention.self"), &state);
        let found = linear(&tensors, &name("attention.output.dense"), &found, WIDTH);
        add(&mut state, &found);
        normalise(&tensors, &name("attention.output.LayerNorm"), &mut state);
        let mut inner = linear(&tensors, &name("intermediate.dense"), &state, INNER);
        inner.iter_mut().flatten().for_each(|x| *x *= 0.5 * (1.0 + erf(*x / 2.0_f64.sqrt())));
        let change = linear(&tensors, &name("output.dense"), &inner, WIDTH);
        add(&mut state, &change);
        normalise(&tensors, &name("output.LayerNorm"), &mut state);
    }
    if tiny.first_token {
        return state.swap_remove(0);
    }
    (0..WIDTH).map(|k| state.iter().map(|row| row[k]).sum()).collect()
}

pub(crate) fn cosine(found: &[f32], expected: &[f64]) -> f64 {
    let found: Vec<f64> = found.iter().map(|x| f64::from(*x)).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(&found, expected) / (dot(&found, &found) * dot(expected, expected)).sqrt()
}

fn numbers(tensors: &Tensors, name: &str) -> Vec<f64> {
    tensors[name].1.iter().map(|x| f64::from(*x)).collect()
}

fn attention(tensors: &Tensors, name: &str, state: &Rows) -> Rows {
    let [query, key, value] =
        ["query", "key", "value"].map(|part| linear(tensors, &format!("{name}.{part}"), state, WIDTH));
    let size = WIDTH / HEADS;
    let mut out = vec![vec![0.0; WIDTH]; state.len()];
    for head in 0..HEADS {
        let columns = head * size..(head + 1) * size;
        for (to, out) in out.iter_mut().enumerate() {
            let score = |from: usize| -> f64 { columns.clone().map(|k| query[to][k] * key[from][k]).sum() };
            let chances: Vec<f64> =
                (0..state.len()).map(|from| (score(from) / (size as f64).sqrt()).exp()).collect();
            let whole: f64 = chances.iter().sum();
            for k in columns.clone() {
                out[k] = (0..state.len()).map(|from| chances[from] / whole * value[from][k]).sum();
            }
        }
    }
    out
}

fn linear(tensors: &Tensors, name: &str, input: &Rows, outputs: usize) -> Rows {
    let (weight, bias) =
        (numbers(tensors, &format!("{name}.weight")), numbers(tensors, &format!("{name}.bias")));
    let row = |input: &Vec<f64>| {
        let product =
            |o: usize| input.iter().enumerate().map(|(k, x)| x * weight[o * input.len() + k]).sum::<f64>();
        (0..outputs).map(|o| product(o) + bias[o]).collect()
    };
    input.iter().map(row).collect()
}

fn normalise(tensors: &Tensors, name: &str, rows: &mut Rows) {
    let (weight, bias) =
        (numbers(tensors, &format!("{name}.weight")), numbers(tensors, &format!("{name}.bias")));
    for row in rows {
        let mean = row.iter().sum::<f64>() / row.len() as f64;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / row.len() as f64;
        for (k, x) in row.iter_mut().enumerate() {
            *x = (*x - mean) / (variance + 1e-5).sqrt() * weight[k] + bias[k];
        }
    }
}

fn add(to: &mut Rows, what: &Rows) {
    to.iter_mut().flatten().zip(what.iter().flatten()).for_each(|(to, what)| *to += what);
}

/// The error function by its series, which is exact for the small numbers there are here.
fn erf(x: f64) -> f64 {
    if x.abs() > 4.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}
