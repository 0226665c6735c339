//! Arithmetic.
//!
//! Numbers are decimals of 28 digits, so that `0.1 + 0.2` is `0.3`; what does not fit them (very large, very
//! small, or the result of `sin` and its kin) is a double. Expressions are read by a parser of our own: they
//! cannot call, assign or loop, and their length and nesting are bounded.

mod expression;
mod number;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rust_decimal::RoundingStrategy;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::tool::{Failure, READS, Spec, Stop, Tool, failure, object};
use number::Number;

/// The most values summarised.
const MAX_VALUES: usize = 1_000_000;

/// The tools.
pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::work(evaluate_spec(), evaluate),
        Tool::work(statistics_spec(), statistics),
        Tool::work(round_spec(), round),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Evaluate {
    expression: String,
    #[serde(default)]
    variables: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct Evaluated {
    value: Number,
}

fn evaluate_spec() -> Spec {
    Spec {
        name: "evaluate",
        title: "Evaluate arithmetic",
        description: "Evaluates an expression with `+ - * / % ^` (power), parentheses, the constants `pi` and `e`, \
                      the functions abs, ceil, cos, exp, floor, ln, log10, log2, max, min, round, sin, sqrt, tan, \
                      trunc, and the variables given. Decimal: 0.1 + 0.2 is 0.3.".into(),
        effect: READS,
        input: object(
            json!({
                "expression": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": expression::MAX_EXPRESSION_BYTES,
                    "description": "Such as `(1 + rate) ^ 12 * 100`."
                },
                "variables": {
                    "type": "object",
                    "additionalProperties": { "type": "number" },
                    "description": "Values of the names used."
                },
            }),
            &["expression"],
        ),
        output: object(json!({ "value": { "type": "number", "description": "The result." } }), &["value"]),
    }
}

fn evaluate(arguments: &Evaluate, _: &Stop) -> Result<Evaluated, Failure> {
    let mut variables = BTreeMap::new();
    for (name, value) in &arguments.variables {
        let value = Number::read(value.get()).ok_or_else(|| failure!("variable `{name}` is not a number"))?;
        variables.insert(name.clone(), value);
    }
    expression::evaluate(&arguments.expression, &variables).map(|value| Evaluated { value })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statistics {
    values: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    count: usize,
    sum: Number,
    mean: Number,
    median: Number,
    min: Number,
    max: Number,
    variance: Number,
    standard_deviation: Number,
}

fn statistics_spec() -> Spec {
    let number = |description: &str| json!({ "type": "number", "description": description });
    Spec {
        name: "statistics",
        title: "Summarise numbers",
        description:
            "Gives count, sum, mean, median, minimum, maximum, variance and standard deviation of a list \
                      of numbers; the last two of the list as a whole population."
                .into(),
        effect: READS,
        input: object(
            json!({
                "values": {
                    "type": "array",
                    "items": { "type": "number" },
                    "minItems": 1,
                    "maxItems": MAX_VALUES,
                    "description": "The numbers."
                },
            }),
            &["values"],
        ),
        output: object(
            json!({
                "count": { "type": "integer", "description": "How many numbers." },
                "sum": number("Their sum."),
                "mean": number("Their mean."),
                "median": number("The middle one, or the mean of the two in the middle."),
                "min": number("The smallest."),
                "max": number("The largest."),
                "variance": number("The mean of the squared distances from the mean."),
                "standardDeviation": number("The square root of the variance."),
            }),
            &["count", "sum", "mean", "median", "min", "max", "variance", "standardDeviation"],
        ),
    }
}

fn statistics(arguments: &Statistics, stop: &Stop) -> Result<Summary, Failure> {
    let count = arguments.values.len();
    if count == 0 || count > MAX_VALUES {
        return Err(failure!("`values` has {count} numbers; from 1 to {MAX_VALUES} are taken"));
    }
    let mut values = Vec::with_capacity(count);
    for (at, value) in arguments.values.iter().enumerate() {
        values.push(Number::read(value.get()).ok_or_else(|| failure!("value {} is not a number", at + 1))?);
    }
    values.sort_by(Number::compare);
    stop.check()?;
    let total = Number::from(count);
    let sum = values.iter().try_fold(Number::from(0), |sum, &value| sum.add(value))?;
    let mean = sum.divide(total)?;
    let squares = values.iter().try_fold(Number::from(0), |squares, &value| {
        let distance = value.subtract(mean)?;
        squares.add(distance.multiply(distance)?)
    })?;
    let variance = squares.divide(total)?;
    let (low, high) = (values[(count - 1) / 2], values[count / 2]);
    Ok(Summary {
        count,
        sum,
        mean,
        median: if count % 2 == 1 { low } else { low.add(high)?.divide(Number::from(2))? },
        min: values[0],
        max: values[count - 1],
        variance,
        standard_deviation: variance.square_root()?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Round {
    value: Box<RawValue>,
    #[serde(default)]
    digits: u32,
    #[serde(default)]
    mode: Mode,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    #[default]
    HalfUp,
    HalfEven,
    Floor,
    Ceiling,
    Truncate,
}

fn round_spec() -> Spec {
    Spec {
        name: "round",
        title: "Round a number",
        description:
            "Rounds a number to so many digits after the point, and also writes it with exactly so many."
                .into(),
        effect: READS,
        input: object(
            json!({
                "value": { "type": "number", "description": "The number." },
                "digits": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 20,
                    "description": "Digits after the point; 0 unless told."
                },
                "mode": {
                    "type": "string",
                    "enum": ["half-up", "half-even", "floor", "ceiling", "truncate"],
                    "description": "Where to go; `half-up` (halves away from zero) unless told."
                },
            }),
            &["value"],
        ),
        output: object(
            json!({
                "value": { "type": "number", "description": "The rounded number." },
                "text": { "type": "string", "description": "The same, with exactly that many digits." },
            }),
            &["value", "text"],
        ),
    }
}

#[derive(Serialize)]
struct Rounded {
    value: Number,
    text: String,
}

fn round(arguments: &Round, _: &Stop) -> Result<Rounded, Failure> {
    let value = Number::read(arguments.value.get()).ok_or_else(|| failure!("`value` is not a number"))?;
    let strategy = match arguments.mode {
        Mode::HalfUp => RoundingStrategy::MidpointAwayFromZero,
        Mode::HalfEven => RoundingStrategy::MidpointNearestEven,
        Mode::Floor => RoundingStrategy::ToNegativeInfinity,
        Mode::Ceiling => RoundingStrategy::ToPositiveInfinity,
        Mode::Truncate => RoundingStrategy::ToZero,
    };
    let digits = arguments.digits.min(20);
    let value = value.round(digits, strategy)?;
    Ok(Rounded { text: value.with_digits(digits as usize), value })
}
