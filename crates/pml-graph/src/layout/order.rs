//! Order of the items within their layers, so that few edges cross.

use super::shape::Layers;

/// Number of times that the layers are gone through, down and up by turns.
const SWEEPS: usize = 12;

/// Orders each layer by the barycentres of the neighbours, and keeps the best order seen.
pub(super) fn order_layers(layers: &mut Layers) {
    let mut places = vec![0; layers.widths.len()];
    layers.layers.iter().for_each(|layer| note_places(layer, &mut places));
    let mut best = (crossings(layers, &places), layers.layers.clone());
    for sweep in 0..SWEEPS {
        if best.0 == 0 {
            break;
        }
        let down = sweep % 2 == 0;
        for step in 1..layers.layers.len() {
            let at = if down { step } else { layers.layers.len() - 1 - step };
            let neighbours = if down { &layers.above } else { &layers.below };
            let mut keyed: Vec<(f64, usize)> = layers.layers[at]
                .iter()
                .map(|item| (barycentre(&neighbours[*item], &places, places[*item]), *item))
                .collect();
            // Stable: items that are drawn to the same place stay in their order.
            keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
            layers.layers[at] = keyed.into_iter().map(|(_, item)| item).collect();
            note_places(&layers.layers[at], &mut places);
        }
        let now = crossings(layers, &places);
        if now < best.0 {
            best = (now, layers.layers.clone());
        }
    }
    layers.layers = best.1;
}

fn note_places(layer: &[usize], places: &mut [usize]) {
    layer.iter().enumerate().for_each(|(place, item)| places[*item] = place);
}

#[expect(clippy::cast_precision_loss, reason = "places are small numbers")]
fn barycentre(neighbours: &[usize], places: &[usize], own: usize) -> f64 {
    if neighbours.is_empty() {
        return own as f64;
    }
    let sum: usize = neighbours.iter().map(|neighbour| places[*neighbour]).sum();
    sum as f64 / neighbours.len() as f64
}

/// Number of crossings between all pairs of adjacent layers.
fn crossings(layers: &Layers, places: &[usize]) -> u64 {
    let mut all = 0;
    for pair in layers.layers.windows(2) {
        // Ends below, in the order of the ends above: each pair in the wrong order is one crossing.
        let mut counted = vec![0_u64; pair[1].len() + 1];
        let mut ends = 0;
        for item in &pair[0] {
            let mut below: Vec<usize> = layers.below[*item].iter().map(|to| places[*to]).collect();
            below.sort_unstable();
            for &to in &below {
                all += ends - up_to(&counted, to);
            }
            for to in below {
                add(&mut counted, to);
                ends += 1;
            }
        }
    }
    all
}

/// Adds one at a place of a Fenwick tree.
fn add(tree: &mut [u64], place: usize) {
    let mut at = place + 1;
    while at < tree.len() {
        tree[at] += 1;
        at += at & at.wrapping_neg();
    }
}

/// The sum up to a place of a Fenwick tree, itself included.
fn up_to(tree: &[u64], place: usize) -> u64 {
    let (mut at, mut sum) = (place + 1, 0);
    while at > 0 {
        sum += tree[at];
        at -= at & at.wrapping_neg();
    }
    sum
}
