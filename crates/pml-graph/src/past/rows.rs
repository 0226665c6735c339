//! Vectors of past intents, one byte per number.

/// Rows of one length, in the order they were added. Each is kept as if its length were 1.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    dimensions: usize,
    numbers: Vec<i8>,
    /// What makes the length of a row 1.
    scales: Vec<f32>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether `vector` can be kept here, or be compared with what is: it has a direction, and the length
    /// of those before it.
    pub(super) fn takes(&self, vector: &[f32]) -> bool {
        let largest = largest(vector);
        largest > 0.0 && largest.is_finite() && (self.dimensions == 0 || self.dimensions == vector.len())
    }

    /// Adds a vector that [`Rows::takes`].
    pub(super) fn push(&mut self, vector: &[f32]) {
        self.dimensions = vector.len();
        let (numbers, scale) = whole_numbers(vector, f32::from(i8::MAX));
        self.numbers.extend(numbers.iter().map(|number| *number as i8));
        self.scales.push(scale);
    }

    /// A row as it was added, but for rounding.
    pub(super) fn row(&self, at: usize) -> Vec<f32> {
        let numbers = &self.numbers[at * self.dimensions..(at + 1) * self.dimensions];
        numbers.iter().map(|number| f32::from(*number) * self.scales[at]).collect()
    }

    /// The cosine of every row and a vector that [`Rows::takes`].
    pub(super) fn similarities(&self, vector: &[f32]) -> Vec<f32> {
        if self.scales.is_empty() {
            return Vec::new();
        }
        // Products with a byte, summed over a few thousand dimensions, fit into 32 bits.
        let (wanted, scale) = whole_numbers(vector, 2047.0);
        let rows = self.numbers.chunks_exact(self.dimensions).zip(&self.scales);
        rows.map(|(row, row_scale)| product(row, &wanted) as f32 * row_scale * scale).collect()
    }
}

fn whole_numbers(vector: &[f32], largest_number: f32) -> (Vec<i16>, f32) {
    let step = largest(vector) / largest_number;
    let numbers: Vec<i16> = vector.iter().map(|number| (number / step).round() as i16).collect();
    let length = numbers.iter().map(|number| f32::from(*number).powi(2)).sum::<f32>().sqrt();
    (numbers, 1.0 / length)
}

/// The largest number, whatever its sign; not a number if one of them is none.
fn largest(vector: &[f32]) -> f32 {
    vector.iter().fold(0.0_f32, |largest, number| {
        let size = number.abs();
        if size.is_nan() || size > largest { size } else { largest }
    })
}

/// The scalar product, in lanes that can be computed side by side.
fn product(row: &[i8], wanted: &[i16]) -> i32 {
    const LANES: usize = 16;
    let mut sums = [0_i32; LANES];
    let (row_lanes, wanted_lanes) = (row.chunks_exact(LANES), wanted.chunks_exact(LANES));
    let rest = row_lanes.remainder().iter().zip(wanted_lanes.remainder());
    let rest: i32 = rest.map(|(small, number)| i32::from(*small) * i32::from(*number)).sum();
    for (small, number) in row_lanes.zip(wanted_lanes) {
        for lane in 0..LANES {
            sums[lane] += i32::from(i16::from(small[lane])) * i32::from(number[lane]);
        }
    }
    sums.iter().sum::<i32>() + rest
}
