//! Numbers within their bounds.

use serde_json::{Map, Number, Value};

use super::Choice;
use crate::names;
use crate::random::Random;

/// A number that satisfies `schema`, plausible for a field of this `name`.
pub(super) fn number(
    schema: &Map<String, Value>,
    name: &str,
    integer: bool,
    choice: Choice,
    random: &mut Random,
) -> Value {
    let step = schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0);
    let (low, high) = bounds(schema, integer, step);
    let usual = names::number(name, integer, random);
    let wanted = match choice {
        Choice::Usual => usual,
        Choice::Lowest => low.unwrap_or(0.0),
        Choice::Highest => high.unwrap_or_else(|| usual.abs() * 1_000.0 + 1.0),
        Choice::Other => usual + random.between(1, 50) as f64,
    };
    let inside = into_range(wanted, low, high, random);
    written(align(inside, integer, step, low, high), integer)
}

/// The smallest and the largest number that the schema accepts.
fn bounds(schema: &Map<String, Value>, integer: bool, step: Option<f64>) -> (Option<f64>, Option<f64>) {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
    // Draft 4 has booleans that make `minimum` and `maximum` exclusive.
    let is_exclusive = |keyword: &str| schema.get(keyword).and_then(Value::as_bool).unwrap_or(false);
    let nudge = |bound: f64| step.unwrap_or(if integer { 1.0 } else { (bound.abs() * 1e-6).max(1e-6) });
    let above = |bound: f64| if integer { (bound + 1e-9).floor() + 1.0 } else { bound + nudge(bound) };
    let under = |bound: f64| if integer { (bound - 1e-9).ceil() - 1.0 } else { bound - nudge(bound) };
    let low = number("minimum").map(|low| if is_exclusive("exclusiveMinimum") { above(low) } else { low });
    let high =
        number("maximum").map(|high| if is_exclusive("exclusiveMaximum") { under(high) } else { high });
    let larger = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
    let smaller = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
    let low = larger(low, number("exclusiveMinimum").map(above));
    let high = smaller(high, number("exclusiveMaximum").map(under));
    if integer { (low.map(f64::ceil), high.map(f64::floor)) } else { (low, high) }
}

/// `wanted` if it is in the range, else another number of the range.
fn into_range(wanted: f64, low: Option<f64>, high: Option<f64>, random: &mut Random) -> f64 {
    match (low, high) {
        (Some(low), _) if wanted < low && high.is_none() => low + random.between(0, 100) as f64,
        (_, Some(high)) if wanted > high && low.is_none() => high - random.between(0, 100) as f64,
        (Some(low), Some(high)) if !(low..=high).contains(&wanted) => {
            low + (high - low) * (random.between(0, 1_000) as f64 / 1_000.0)
        }
        _ => wanted,
    }
}

fn align(value: f64, integer: bool, step: Option<f64>, low: Option<f64>, high: Option<f64>) -> f64 {
    let step = match (step, integer) {
        (Some(step), true) if step.fract() != 0.0 => return integral_multiple(value, step, low, high),
        (Some(step), _) => step,
        (None, true) => 1.0,
        (None, false) => return low.map_or(value, |low| value.max(low)).min(high.unwrap_or(f64::MAX)),
    };
    let mut count = (value / step).round();
    if low.is_some_and(|low| multiple(count, step) < low) {
        count = (low.unwrap_or(value) / step).ceil();
    }
    if high.is_some_and(|high| multiple(count, step) > high) {
        count = (high.unwrap_or(value) / step).floor();
    }
    multiple(count, step)
}

/// An integer that is a multiple of a fraction: multiples of the step are tried upwards and downwards.
fn integral_multiple(value: f64, step: f64, low: Option<f64>, high: Option<f64>) -> f64 {
    let start = (value / step).round();
    let fits = |count: &f64| {
        let number = multiple(*count, step);
        number.fract() == 0.0 && low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high)
    };
    let around = (0..1_000).flat_map(|offset| [start + f64::from(offset), start - f64::from(offset)]);
    around.into_iter().find(fits).map_or(0.0, |count| multiple(count, step))
}

/// `count` times `step`, divided where that is exact: 3 × 0.1 is 0.30000000000000004, 3 ÷ 10 is 0.3.
fn multiple(count: f64, step: f64) -> f64 {
    let inverse = 1.0 / step;
    if step < 1.0 && (inverse - inverse.round()).abs() < 1e-9 {
        count / inverse.round()
    } else {
        count * step
    }
}

/// The number, as an integer where the schema wants one.
fn written(value: f64, integer: bool) -> Value {
    if integer && value.abs() < 9.0e15 {
        #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
        return Value::from(value.round() as i64);
    }
    Number::from_f64(value).map_or(Value::from(0), Value::Number)
}
