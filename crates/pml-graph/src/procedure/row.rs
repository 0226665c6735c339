//! Quantised vectors for fast comparison.

/// A vector with two bytes per number, which processors multiply fastest.
#[derive(Debug)]
pub(super) struct QuantisedVector {
    numbers: Box<[i16]>,
    /// Factor that makes its length 1.
    scale: f32,
}

/// Largest absolute value of a number. Dot products of up to 8,192 numbers fit into 32 bits.
const LARGEST: f32 = 511.0;

impl QuantisedVector {
    /// Quantises a vector; `None` for a zero vector.
    pub(super) fn new(vector: &[f32]) -> Option<QuantisedVector> {
        let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let step = largest / LARGEST;
        if !(step > 0.0 && vector.iter().all(|number| number.is_finite())) {
            return None;
        }
        let numbers: Box<[i16]> = vector.iter().map(|number| (number / step).round() as i16).collect();
        let length = (product(&numbers, &numbers) as f32).sqrt();
        Some(QuantisedVector { numbers, scale: 1.0 / length })
    }

    pub(super) fn cosine(&self, other: &QuantisedVector) -> f32 {
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
        let rows = QuantisedVector::new(&a).zip(QuantisedVector::new(&b)).expect("both have a direction");
        assert!((rows.0.cosine(&rows.1) - exact).abs() < 0.002);
        assert!(
            QuantisedVector::new(&[0.0; 384]).is_none() && QuantisedVector::new(&[f32::NAN; 384]).is_none()
        );
    }
}
