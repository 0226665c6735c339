//! A number: a decimal where one fits, else a double.

use std::cmp::Ordering;
use std::fmt;

use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};
use rust_decimal::{Decimal, MathematicalOps as _, RoundingStrategy};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::builtin::tool::{Failure, failure};

/// A finite number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Decimal(Decimal),
    Double(f64),
}

impl From<usize> for Number {
    fn from(value: usize) -> Number {
        Number::Decimal(Decimal::from(value))
    }
}

impl Number {
    /// Reads a number as JSON writes it.
    pub(super) fn read(text: &str) -> Option<Number> {
        if !text.starts_with(|c: char| c == '-' || c == '.' || c.is_ascii_digit()) {
            return None;
        }
        // Digits a decimal has no room for would be dropped in silence, so such numbers become doubles.
        let exact = if text.contains(['e', 'E']) {
            Decimal::from_scientific(text).ok()
        } else {
            Decimal::from_str_exact(text).ok()
        };
        exact.map(Number::Decimal).or_else(|| finite(text.parse().ok()?).ok())
    }

    /// A double, as a decimal where that says the same.
    pub(super) fn from_double(value: f64) -> Result<Number, Failure> {
        let number = finite(value)?;
        // Through its shortest text: 0.3 is the decimal 0.3, not the binary fraction next to it.
        Ok(Number::read(&value.to_string()).unwrap_or(number))
    }

    pub(super) fn double(self) -> f64 {
        match self {
            Number::Decimal(value) => value.to_f64().unwrap_or(f64::NAN),
            Number::Double(value) => value,
        }
    }

    pub(super) fn add(self, other: Number) -> Result<Number, Failure> {
        self.combine(other, Decimal::checked_add, |a, b| a + b)
    }

    pub(super) fn subtract(self, other: Number) -> Result<Number, Failure> {
        self.combine(other, Decimal::checked_sub, |a, b| a - b)
    }

    pub(super) fn multiply(self, other: Number) -> Result<Number, Failure> {
        self.combine(other, Decimal::checked_mul, |a, b| a * b)
    }

    pub(super) fn divide(self, other: Number) -> Result<Number, Failure> {
        if other.double() == 0.0 {
            return Err(failure!("division by zero"));
        }
        self.combine(other, Decimal::checked_div, |a, b| a / b)
    }

    pub(super) fn remainder(self, other: Number) -> Result<Number, Failure> {
        if other.double() == 0.0 {
            return Err(failure!("division by zero"));
        }
        self.combine(other, Decimal::checked_rem, |a, b| a % b)
    }

    pub(super) fn power(self, exponent: Number) -> Result<Number, Failure> {
        if let (Number::Decimal(base), Number::Decimal(power)) = (self, exponent)
            && let Some(power) =
                power.to_i64().filter(|_| power.is_integer()).filter(|power| power.abs() <= 1000)
            && let Some(value) = base.checked_powi(power).filter(|value| !value.is_zero() || base.is_zero())
        {
            return Ok(Number::Decimal(value.normalize()));
        }
        Number::from_double(self.double().powf(exponent.double()))
    }

    pub(super) fn square_root(self) -> Result<Number, Failure> {
        let exact = match self {
            Number::Decimal(value) => value.sqrt(),
            Number::Double(_) => None,
        };
        exact.map_or_else(
            || Number::from_double(self.double().sqrt()),
            |root| Ok(Number::Decimal(root.normalize())),
        )
    }

    pub(super) fn negate(self) -> Number {
        match self {
            Number::Decimal(value) => Number::Decimal(-value),
            Number::Double(value) => Number::Double(-value),
        }
    }

    pub(super) fn round(self, digits: u32, strategy: RoundingStrategy) -> Result<Number, Failure> {
        match self {
            Number::Decimal(value) => {
                Ok(Number::Decimal(value.round_dp_with_strategy(digits, strategy).normalize()))
            }
            // A double beyond the decimals is either a whole number or has no digit to keep.
            Number::Double(value) if value.abs() >= 1e15 => Ok(self),
            Number::Double(value) => {
                let nearest = Decimal::from_f64(value).unwrap_or_default();
                Number::Decimal(nearest).round(digits, strategy)
            }
        }
    }

    /// The order of two numbers; both are finite, so there always is one.
    pub(super) fn compare(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Decimal(a), Number::Decimal(b)) => a.cmp(b),
            _ => self.double().total_cmp(&other.double()),
        }
    }

    /// The number with exactly `digits` digits after the point.
    pub(super) fn with_digits(self, digits: usize) -> String {
        match self {
            Number::Decimal(value) => format!("{value:.digits$}"),
            Number::Double(value) => format!("{value:.digits$}"),
        }
    }

    fn combine(
        self,
        other: Number,
        exact: fn(Decimal, Decimal) -> Option<Decimal>,
        near: fn(f64, f64) -> f64,
    ) -> Result<Number, Failure> {
        if let (Number::Decimal(a), Number::Decimal(b)) = (self, other)
            && let Some(value) = exact(a, b)
            && (!value.is_zero() || near(self.double(), other.double()) == 0.0)
        {
            return Ok(Number::Decimal(value.normalize()));
        }
        Number::from_double(near(self.double(), other.double()))
    }
}

fn finite(value: f64) -> Result<Number, Failure> {
    if value.is_finite() {
        Ok(Number::Double(value))
    } else {
        Err(failure!("the result is not a finite number"))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Decimal(value) => write!(f, "{}", value.normalize()),
            Number::Double(value) => write!(f, "{value:e}"),
        }
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
