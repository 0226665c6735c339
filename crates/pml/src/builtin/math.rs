//! Arithmetic.
//!
//! Numbers are decimals of 28 digits, so that `0.1 + 0.2` is `0.3`. A number that does not fit (very large, very
//! small, or the result of `sin` and the like) is a double. Expressions have a parser of their own: they cannot call,
//! assign or loop, and their length and nesting are bounded.

mod expression;
mod number;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use rust_decimal::RoundingStrategy;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::tool::{BuiltinFailure, BuiltinSpec, BuiltinTool, READS, StopSignal, failure, object_schema};
use number::MathNumber;

/// The largest number of values that are summarised.
const MAX_VALUES: usize = 1_000_000;

/// The tools of the server.
pub(super) fn tools() -> Vec<BuiltinTool> {
    vec![
        BuiltinTool::blocking(evaluate_spec(), evaluate),
        BuiltinTool::blocking(statistics_spec(), statistics),
        BuiltinTool::blocking(round_spec(), round),
    ]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MathEvaluateArguments {
    expression: String,
    #[serde(default)]
    variables: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct MathEvaluateAnswer {
    value: MathNumber,
}

fn evaluate_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "evaluate",
        title: "Evaluate arithmetic",
        description: "Evaluates an expression with `+ - * / % ^` (power), parentheses, the constants `pi` and `e`, \
                      the functions abs, ceil, cos, exp, floor, ln, log10, log2, max, min, round, sin, sqrt, tan, \
                      trunc, and the variables given. Decimal: 0.1 + 0.2 is 0.3.".into(),
        effect: READS,
        input: object_schema(
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
        output: object_schema(json!({ "value": { "type": "number", "description": "The result." } }), &["value"]),
    }
}

fn evaluate(arguments: &MathEvaluateArguments, _: &StopSignal) -> Result<MathEvaluateAnswer, BuiltinFailure> {
    let mut variables = BTreeMap::new();
    for (name, value) in &arguments.variables {
        let value =
            MathNumber::read(value.get()).ok_or_else(|| failure!("variable `{name}` is not a number"))?;
        variables.insert(name.clone(), value);
    }
    expression::evaluate(&arguments.expression, &variables).map(|value| MathEvaluateAnswer { value })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MathStatisticsArguments {
    values: Vec<Box<RawValue>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MathStatisticsAnswer {
    count: usize,
    sum: MathNumber,
    mean: MathNumber,
    median: MathNumber,
    min: MathNumber,
    max: MathNumber,
    variance: MathNumber,
    standard_deviation: MathNumber,
}

fn statistics_spec() -> BuiltinSpec {
    let number = |description: &str| json!({ "type": "number", "description": description });
    BuiltinSpec {
        name: "statistics",
        title: "Summarise numbers",
        description:
            "Gives count, sum, mean, median, minimum, maximum, variance and standard deviation of a list \
                      of numbers; the last two of the list as a whole population."
                .into(),
        effect: READS,
        input: object_schema(
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
        output: object_schema(
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

fn statistics(
    arguments: &MathStatisticsArguments,
    stop: &StopSignal,
) -> Result<MathStatisticsAnswer, BuiltinFailure> {
    let count = arguments.values.len();
    if count == 0 || count > MAX_VALUES {
        return Err(failure!("`values` has {count} numbers; from 1 to {MAX_VALUES} are taken"));
    }
    let mut values = Vec::with_capacity(count);
    for (at, value) in arguments.values.iter().enumerate() {
        values
            .push(MathNumber::read(value.get()).ok_or_else(|| failure!("value {} is not a number", at + 1))?);
    }
    values.sort_by(MathNumber::compare);
    stop.check()?;
    let total = MathNumber::from(count);
    let sum = values.iter().try_fold(MathNumber::from(0), |sum, &value| sum.add(value))?;
    let mean = sum.divide(total)?;
    let squares = values.iter().try_fold(MathNumber::from(0), |squares, &value| {
        let distance = value.subtract(mean)?;
        squares.add(distance.multiply(distance)?)
    })?;
    let variance = squares.divide(total)?;
    let (low, high) = (values[(count - 1) / 2], values[count / 2]);
    Ok(MathStatisticsAnswer {
        count,
        sum,
        mean,
        median: if count % 2 == 1 { low } else { low.add(high)?.divide(MathNumber::from(2))? },
        min: values[0],
        max: values[count - 1],
        variance,
        standard_deviation: variance.square_root()?,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MathRoundArguments {
    value: Box<RawValue>,
    #[serde(default)]
    digits: u32,
    #[serde(default)]
    mode: RoundingMode,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum RoundingMode {
    #[default]
    HalfUp,
    HalfEven,
    Floor,
    Ceiling,
    Truncate,
}

fn round_spec() -> BuiltinSpec {
    BuiltinSpec {
        name: "round",
        title: "Round a number",
        description:
            "Rounds a number to so many digits after the point, and also writes it with exactly so many."
                .into(),
        effect: READS,
        input: object_schema(
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
        output: object_schema(
            json!({
                "value": { "type": "number", "description": "The rounded number." },
                "text": { "type": "string", "description": "The same, with exactly that many digits." },
            }),
            &["value", "text"],
        ),
    }
}

#[derive(Serialize)]
struct MathRoundAnswer {
    value: MathNumber,
    text: String,
}

fn round(arguments: &MathRoundArguments, _: &StopSignal) -> Result<MathRoundAnswer, BuiltinFailure> {
    let value = MathNumber::read(arguments.value.get()).ok_or_else(|| failure!("`value` is not a number"))?;
    let strategy = match arguments.mode {
        RoundingMode::HalfUp => RoundingStrategy::MidpointAwayFromZero,
        RoundingMode::HalfEven => RoundingStrategy::MidpointNearestEven,
        RoundingMode::Floor => RoundingStrategy::ToNegativeInfinity,
        RoundingMode::Ceiling => RoundingStrategy::ToPositiveInfinity,
        RoundingMode::Truncate => RoundingStrategy::ToZero,
    };
    let digits = arguments.digits.min(20);
    let value = value.round(digits, strategy)?;
    Ok(MathRoundAnswer { text: value.with_digits(digits as usize), value })
}
