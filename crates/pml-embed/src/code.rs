//! The one-byte encoding of weights: fine steps where most weights are, coarse steps where few are.
//!
//! Most weights are small and few are large. With even steps up to the largest weight, vectors of short texts are wrong
//! by 1 part in 1,000. With steps that grow from 1 to 9 the error is half of that, and a code still stands for a small
//! integer.

/// Largest absolute value of a code.
pub(crate) const LARGEST: i16 = 632;

/// Shift that makes the steps grow by one every sixteen codes: 2⁵ is twice that.
const GROWTH: i16 = 5;

/// The value of a code.
#[inline(always)]
pub(crate) fn decode(code: u8) -> i16 {
    let step = i16::from(code as i8);
    step + ((step * step.abs()) >> GROWTH)
}

/// The values of many codes.
#[inline(always)]
pub(crate) fn decode_all(codes: &[u8], out: &mut [i16]) {
    for (code, out) in codes.iter().zip(out) {
        *out = decode(*code);
    }
}

/// Appends the codes of a row of numbers. Returns the scale that their values must be multiplied with.
pub(crate) fn encode_row(row: &[f32], codes: &mut Vec<u8>) -> f32 {
    let most = row.iter().fold(0.0_f32, |most, weight| most.max(weight.abs()));
    let scale = if most > 0.0 { most / f32::from(decode(127)) } else { 1.0 };
    codes.extend(row.iter().map(|weight| nearest(weight / scale)));
    scale
}

/// The code with the nearest value.
fn nearest(wanted: f32) -> u8 {
    let distance = |code: i8| (f32::from(decode(code as u8)) - wanted).abs();
    let (mut low, mut high) = (-127_i8, 127_i8);
    while i16::from(high) - i16::from(low) > 1 {
        let middle = ((i16::from(low) + i16::from(high)) / 2) as i8;
        if f32::from(decode(middle as u8)) <= wanted { low = middle } else { high = middle }
    }
    if distance(low) <= distance(high) { low as u8 } else { high as u8 }
}

#[cfg(test)]
mod tests {
    use super::{LARGEST, decode, encode_row, nearest};

    #[test]
    fn values_rise_with_their_codes() {
        let values: Vec<i16> = (-127..=127_i8).map(|code| decode(code as u8)).collect();
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        assert!(values.iter().all(|value| value.abs() <= LARGEST));
    }

    #[test]
    fn what_is_a_value_keeps_its_code() {
        for code in -127..=127_i8 {
            assert_eq!(nearest(f32::from(decode(code as u8))), code as u8, "{code}");
        }
    }

    #[test]
    fn a_row_comes_back_nearly() {
        let row = [0.5, -0.25, 0.001, 0.0, -0.499];
        let mut codes = Vec::new();
        let scale = encode_row(&row, &mut codes);
        for (number, code) in row.iter().zip(codes) {
            let found = f32::from(decode(code)) * scale;
            assert!((found - number).abs() <= 0.006 * number.abs() + 0.001, "{number} became {found}");
        }
    }
}
