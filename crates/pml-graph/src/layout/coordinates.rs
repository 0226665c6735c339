//! Horizontal coordinates: items near their neighbours, in the given order, never overlapping.

use super::shape::Layers;

/// Number of times that the layers are gone through, down and up by turns.
const SWEEPS: usize = 10;
/// Weight of a bend compared with a box: long edges are to be straight.
const BEND_WEIGHT: f64 = 4.0;

/// The centre of each item. The leftmost edge of everything is 0.
pub(super) fn assign_x(layers: &Layers, between: f64) -> Vec<f64> {
    let mut centres = vec![0.0; layers.widths.len()];
    for layer in &layers.layers {
        let mut x = 0.0;
        for &item in layer {
            centres[item] = x + layers.widths[item] / 2.0;
            x += layers.widths[item] + between;
        }
        // Centred, so that layers of different length begin around one axis.
        for &item in layer {
            centres[item] -= (x - between) / 2.0;
        }
    }
    for sweep in 0..SWEEPS {
        let down = sweep % 2 == 0;
        for step in 0..layers.layers.len() {
            let at = if down { step } else { layers.layers.len() - 1 - step };
            settle(layers, at, down, sweep + 2 >= SWEEPS, between, &mut centres);
        }
    }
    let left = (0..centres.len())
        .map(|item| centres[item] - layers.widths[item] / 2.0)
        .fold(f64::INFINITY, f64::min);
    centres.iter_mut().for_each(|centre| *centre -= left);
    centres
}

/// Moves the items of a layer as near to their neighbours as their order and widths allow: the weighted least squares
/// solution, found by merging items that push each other (pool adjacent violators).
fn settle(layers: &Layers, at: usize, down: bool, both: bool, between: f64, centres: &mut [f64]) {
    struct Group {
        wanted: f64,
        weight: f64,
        items: usize,
    }
    let layer = &layers.layers[at];
    let mut offsets = Vec::with_capacity(layer.len());
    let mut groups: Vec<Group> = Vec::with_capacity(layer.len());
    let mut offset = 0.0;
    for (place, &item) in layer.iter().enumerate() {
        if place > 0 {
            offset += (layers.widths[layer[place - 1]] + layers.widths[item]) / 2.0 + between;
        }
        offsets.push(offset);
        let (wanted, pull) = wanted(layers, item, (down, both), centres);
        let bend = if item < layers.boxes { 1.0 } else { BEND_WEIGHT };
        groups.push(Group { wanted: wanted - offset, weight: pull * bend, items: 1 });
        while let [.., before, last] = groups.as_mut_slice() {
            if before.wanted <= last.wanted {
                break;
            }
            let weight = before.weight + last.weight;
            before.wanted = (before.wanted * before.weight + last.wanted * last.weight) / weight;
            before.weight = weight;
            before.items += last.items;
            groups.pop();
        }
    }
    let mut place = 0;
    for group in groups {
        for _ in 0..group.items {
            centres[layer[place]] = group.wanted + offsets[place];
            place += 1;
        }
    }
}

/// Where an item would be best, and how much that matters.
#[expect(clippy::cast_precision_loss, reason = "numbers of neighbours are small")]
fn wanted(layers: &Layers, item: usize, (down, both): (bool, bool), centres: &[f64]) -> (f64, f64) {
    let (above, below) = (&layers.above[item], &layers.below[item]);
    let first = if down { above } else { below };
    let second: &[usize] = if both || first.is_empty() { if down { below } else { above } } else { &[] };
    let number = first.len() + second.len();
    if number == 0 {
        return (centres[item], 0.1);
    }
    let sum: f64 = first.iter().chain(second).map(|neighbour| centres[*neighbour]).sum();
    (sum / number as f64, number as f64)
}
