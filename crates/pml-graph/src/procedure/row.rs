//! Vectors as they are compared by the thousand.

/// A vector in two bytes per number, which processors multiply fastest.
#[derive(Debug)]
pub(super) struct Row {
    numbers: Box<[i16]>,
    /// What makes its length 1.
    scale: f32,
}

/// The largest number of a row. Products of rows of up to 8,192 numbers fit into 32 bits.
const LARGEST: f32 = 511.0;

impl Row {
    /// `None` for a vector without a direction.
    pub(super) fn new(vector: &[f32]) -> Option<Row> {
        let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let step = largest / LARGEST;
        if !(step > 0.0 && vector.iter().all(|number| number.is_finite())) {
            return None;
        }
        let numbers: Box<[i16]> = vector.iter().map(|number| (number / step).round() as i16).collect();
        let length = (product(&numbers, &numbers) as f32).sqrt();
        Some(Row { numbers, scale: 1.0 / length })
    }

    pub(super) fn cosine(&self, other: &Row) -> f32 {
        if self.numbers.len() != other.numbers.len() {
            return 0.0;
        }
        product(&self.numbers, &other.numbers) as f32 * self.scale * other.scale
    }
}

fn product(a: &[i16], b: &[i16]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_keep_the_angle() {
        let wave = |shift: f32| -> Vec<f32> { (0..384).map(|at| (at as f32 * 0.1 + shift).sin()).collect() };
        let (a, b) = (wave(0.0), wave(0.7));
        let exact = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f32>()
            / (a.iter().map(|a| a * a).sum::<f32>() * b.iter().map(|b| b * b).sum::<f32>()).sqrt();
        let rows = Row::new(&a).zip(Row::new(&b)).expect("both have a direction");
        assert!((rows.0.cosine(&rows.1) - exact).abs() < 0.002);
        assert!(Row::new(&[0.0; 384]).is_none() && Row::new(&[f32::NAN; 384]).is_none());
    }
}
