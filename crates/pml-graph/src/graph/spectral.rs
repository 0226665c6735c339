//! Spectral clustering: groups of nodes that a random walk seldom leaves.
//!
//! The largest gap between the smallest eigenvalues of the normalised Laplacian gives the number of groups, and k-means
//! on the rows of the eigenvectors gives the group of each node. The eigenvectors are found by repeated Lanczos runs,
//! each orthogonal to those found before, so that repeated eigenvalues, as of a disconnected graph, are all found.

use super::csr::CsrGraph;

/// Vectors per Lanczos run.
const STEPS: usize = 60;
/// Maximum number of Lanczos runs: a large graph without clear groups is not worth more.
const MOST_ROUNDS: usize = 10;
/// Residual below which a vector counts as an eigenvector. The error of its eigenvalue is far smaller.
const SETTLED: f64 = 1e-6;
/// Number of vectors of a run that are examined.
const MOST_COMBINED: usize = 16;
/// Number of random starts of k-means.
const STARTS: u64 = 8;
/// Maximum number of iterations of k-means.
const MOST_MOVES: usize = 100;

/// Groups of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct SpectralClusters {
    /// Group of each node, numbered from 0 in the order of their first nodes.
    pub of_node: Vec<usize>,
    /// Number of groups.
    pub count: usize,
    /// The smallest eigenvalues in order: one more than the maximum number of groups.
    pub eigenvalues: Vec<f64>,
}

/// Groups of an undirected graph, at most `most`. The same seed gives the same groups.
pub fn spectral_clusters(graph: &CsrGraph, most: usize, seed: u64) -> SpectralClusters {
    let nodes = graph.len();
    let wanted = (most + 1).min(nodes);
    let mut random = SplitMix(seed);
    let matrix = NormalisedAdjacency::of(graph);
    let pairs = matrix.largest(wanted, &mut random);
    let values: Vec<f64> = pairs.iter().map(|pair| (1.0 - pair.value).max(0.0)).collect();
    let vectors: Vec<Vec<f64>> = pairs.into_iter().map(|pair| pair.vector).collect();
    let count = widest_gap(&values, most).min(nodes);
    let rows = rows(&vectors[..count.min(vectors.len())], nodes);
    let of_node = if count <= 1 { vec![0; nodes] } else { k_means(&rows, count, &mut random) };
    let of_node = renumber(&of_node);
    let count = of_node.iter().max().map_or(0, |most| most + 1);
    SpectralClusters { of_node, count, eigenvalues: values }
}

/// Position of the largest gap between eigenvalues: the number of groups.
fn widest_gap(values: &[f64], most: usize) -> usize {
    let gaps = values.windows(2).take(most).map(|pair| pair[1] - pair[0]).enumerate();
    gaps.fold((1, 0.0), |best, (at, gap)| if gap > best.1 + SETTLED { (at + 1, gap) } else { best }).0
}

/// D^-½ A D^-½, whose eigenvalues are 1 minus those of the normalised Laplacian.
struct NormalisedAdjacency<'a> {
    graph: &'a CsrGraph,
    scale: Vec<f64>,
}

impl NormalisedAdjacency<'_> {
    fn of(graph: &CsrGraph) -> NormalisedAdjacency<'_> {
        let degree = |node| graph.neighbours(node).map(|(_, weight)| weight).sum::<f64>();
        let scale = |degree: f64| if degree > 0.0 { degree.sqrt().recip() } else { 0.0 };
        NormalisedAdjacency { graph, scale: (0..graph.len()).map(degree).map(scale).collect() }
    }

    /// Matrix-vector product. An isolated node is a group by itself: its own eigenvector, with eigenvalue 1.
    fn apply(&self, vector: &[f64]) -> Vec<f64> {
        let row = |node: usize| {
            if self.scale[node] == 0.0 {
                return vector[node];
            }
            let terms =
                self.graph.neighbours(node).map(|(other, weight)| weight * self.scale[other] * vector[other]);
            self.scale[node] * terms.sum::<f64>()
        };
        (0..vector.len()).map(row).collect()
    }

    /// The `wanted` largest eigenvalues with their vectors, largest first.
    fn largest(&self, wanted: usize, random: &mut SplitMix) -> Vec<EigenPair> {
        let mut found: Vec<EigenPair> = Vec::new();
        let mut start = random.vector(self.graph.len());
        for round in 1..=MOST_ROUNDS {
            orthogonalise(&mut start, found.iter().map(|pair| &pair.vector));
            if normalise(&mut start) < SETTLED {
                break;
            }
            let mut pairs = self.lanczos(&start, &found);
            pairs.truncate(wanted);
            if found.len() >= wanted && pairs[0].value <= found[wanted - 1].value + SETTLED {
                break;
            }
            // Only from the top: below an unconverged vector another one may be missing.
            let settled = pairs.iter().take_while(|pair| self.rest(pair) < SETTLED).count();
            let enough = if round == MOST_ROUNDS { wanted.saturating_sub(found.len()) } else { 0 };
            let open = pairs.split_off(settled.max(enough).min(pairs.len()));
            found.extend(pairs);
            found.sort_by(|a, b| b.value.total_cmp(&a.value));
            start = random.vector(self.graph.len());
            normalise(&mut start);
            for pair in open {
                start.iter_mut().zip(&pair.vector).for_each(|(sum, value)| *sum += 10.0 * value);
            }
        }
        found.truncate(wanted);
        found
    }

    /// Norm of the residual of an eigenpair.
    fn rest(&self, pair: &EigenPair) -> f64 {
        let image = self.apply(&pair.vector);
        let rest = image.iter().zip(&pair.vector).map(|(image, own)| (image - pair.value * own).powi(2));
        rest.sum::<f64>().sqrt()
    }

    /// Ritz pairs of the Krylov space of `start`, largest first.
    fn lanczos(&self, start: &[f64], found: &[EigenPair]) -> Vec<EigenPair> {
        let mut basis: Vec<Vec<f64>> = vec![start.to_vec()];
        let mut images: Vec<Vec<f64>> = Vec::new();
        while images.len() < basis.len() && images.len() < STEPS {
            let image = self.apply(&basis[images.len()]);
            let mut next = image.clone();
            images.push(image);
            // Twice, because one orthogonalisation leaves rounding errors.
            for _ in 0..2 {
                orthogonalise(&mut next, found.iter().map(|pair| &pair.vector));
                orthogonalise(&mut next, &basis);
            }
            if normalise(&mut next) > 1e-9 {
                basis.push(next);
            }
        }
        basis.truncate(images.len());
        let small: Vec<Vec<f64>> =
            basis.iter().map(|row| images.iter().map(|image| dot(row, image)).collect()).collect();
        let combine = |(value, mix): (f64, Vec<f64>)| {
            let mut vector = vec![0.0; start.len()];
            for (part, share) in basis.iter().zip(mix) {
                vector.iter_mut().zip(part).for_each(|(sum, value)| *sum += share * value);
            }
            normalise(&mut vector);
            EigenPair { value, vector }
        };
        eigen(small).into_iter().take(MOST_COMBINED).map(combine).collect()
    }
}

/// An eigenvalue and its vector.
struct EigenPair {
    value: f64,
    vector: Vec<f64>,
}

/// Eigenvalues and eigenvectors of a small symmetric matrix, largest first, by Jacobi rotations.
fn eigen(mut matrix: Vec<Vec<f64>>) -> Vec<(f64, Vec<f64>)> {
    let size = matrix.len();
    let unit = |at: usize| (0..size).map(|other| f64::from(u8::from(at == other))).collect();
    let mut vectors: Vec<Vec<f64>> = (0..size).map(unit).collect();
    for _ in 0..50 {
        let outside: f64 = matrix
            .iter()
            .enumerate()
            .flat_map(|(row, values)| &values[..row])
            .map(|value| value.powi(2))
            .sum();
        if outside < 1e-24 {
            break;
        }
        for p in 0..size {
            for q in p + 1..size {
                rotate(&mut matrix, &mut vectors, p, q);
            }
        }
    }
    let vector = |at: usize| vectors.iter().map(|row| row[at]).collect();
    let mut pairs: Vec<(f64, Vec<f64>)> = (0..size).map(|at| (matrix[at][at], vector(at))).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    pairs
}

/// Jacobi rotation that makes the element at `p`, `q` zero.
fn rotate(matrix: &mut [Vec<f64>], vectors: &mut [Vec<f64>], p: usize, q: usize) {
    if matrix[p][q].abs() < 1e-300 {
        return;
    }
    let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
    let tangent = theta.signum() / (theta.abs() + theta.hypot(1.0));
    let tangent = if theta == 0.0 { 1.0 } else { tangent };
    let cosine = tangent.hypot(1.0).recip();
    let sine = tangent * cosine;
    let turn = |row: &mut [f64]| {
        (row[p], row[q]) = (cosine * row[p] - sine * row[q], sine * row[p] + cosine * row[q]);
    };
    matrix.iter_mut().for_each(|row| turn(row));
    let (upper, lower) = matrix.split_at_mut(q);
    for (above, below) in upper[p].iter_mut().zip(&mut lower[0]) {
        (*above, *below) = (cosine * *above - sine * *below, sine * *above + cosine * *below);
    }
    vectors.iter_mut().for_each(|row| turn(row));
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn orthogonalise<'a>(vector: &mut [f64], others: impl IntoIterator<Item = &'a Vec<f64>>) {
    for other in others {
        let share = dot(vector, other);
        vector.iter_mut().zip(other).for_each(|(value, other)| *value -= share * other);
    }
}

/// Scales the vector to length 1. Returns its former length.
fn normalise(vector: &mut [f64]) -> f64 {
    let length = dot(vector, vector).sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
    length
}

/// Nodes as points: their coordinates in each eigenvector, normalised.
fn rows(vectors: &[Vec<f64>], nodes: usize) -> Vec<Vec<f64>> {
    let row = |node: usize| {
        let mut row: Vec<f64> = vectors.iter().map(|vector| vector[node]).collect();
        normalise(&mut row);
        row
    };
    (0..nodes).map(row).collect()
}

/// The best of several k-means runs.
fn k_means(points: &[Vec<f64>], count: usize, random: &mut SplitMix) -> Vec<usize> {
    let mut best: Option<(f64, Vec<usize>)> = None;
    for _ in 0..STARTS {
        let (spread, labels) = settle(points, centres(points, count, random));
        if best.as_ref().is_none_or(|best| spread < best.0 - SETTLED) {
            best = Some((spread, labels));
        }
    }
    best.map(|best| best.1).unwrap_or_default()
}

/// Initial centres by k-means++: each likely far from those before.
fn centres(points: &[Vec<f64>], count: usize, random: &mut SplitMix) -> Vec<Vec<f64>> {
    let mut chosen = vec![points[random.below(points.len())].clone()];
    while chosen.len() < count {
        let apart: Vec<f64> = points.iter().map(|point| nearest(point, &chosen).1).collect();
        let mut at = random.unit() * apart.iter().sum::<f64>();
        let next = apart.iter().position(|apart| {
            at -= apart;
            at < 0.0
        });
        chosen.push(points[next.unwrap_or(points.len() - 1)].clone());
    }
    chosen
}

fn settle(points: &[Vec<f64>], mut centres: Vec<Vec<f64>>) -> (f64, Vec<usize>) {
    let mut labels = vec![usize::MAX; points.len()];
    let mut spread = 0.0;
    for _ in 0..MOST_MOVES {
        let near: Vec<(usize, f64)> = points.iter().map(|point| nearest(point, &centres)).collect();
        spread = near.iter().map(|near| near.1).sum();
        let next: Vec<usize> = near.into_iter().map(|near| near.0).collect();
        if next == labels {
            break;
        }
        labels = next;
        for (at, centre) in centres.iter_mut().enumerate() {
            let members =
                || points.iter().zip(&labels).filter(move |(_, label)| **label == at).map(|(point, _)| point);
            #[expect(clippy::cast_precision_loss, reason = "numbers of nodes are small")]
            let size = members().count() as f64;
            if size > 0.0 {
                for (axis, value) in centre.iter_mut().enumerate() {
                    *value = members().map(|point| point[axis]).sum::<f64>() / size;
                }
            }
        }
    }
    (spread, labels)
}

/// Nearest centre and its squared distance.
fn nearest(point: &[f64], centres: &[Vec<f64>]) -> (usize, f64) {
    let apart = |centre: &Vec<f64>| point.iter().zip(centre).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let all = centres.iter().map(apart).enumerate();
    all.reduce(|best, next| if next.1 < best.1 { next } else { best }).unwrap_or((0, f64::INFINITY))
}

fn renumber(labels: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let mut number = |label: usize| {
        seen.iter().position(|other| *other == label).unwrap_or_else(|| {
            seen.push(label);
            seen.len() - 1
        })
    };
    labels.iter().map(|label| number(*label)).collect()
}

/// Deterministic pseudorandom numbers (splitmix64).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[expect(clippy::cast_possible_truncation, reason = "less than `end`")]
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn vector(&mut self, size: usize) -> Vec<f64> {
        (0..size).map(|_| self.unit() - 0.5).collect()
    }
}
