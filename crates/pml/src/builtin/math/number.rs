//! A number: a decimal where one fits, else a double.

use std::cmp::Ordering;
use std::fmt;

use rust_decimal::prelude::{FromPrimitive as _, ToPrimitive as _};
use rust_decimal::{Decimal, MathematicalOps as _, RoundingStrategy};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::builtin::tool::{BuiltinFailure, failure};

/// A finite number.
#[derive(Debug, Clone, Copy)]
pub(super) enum MathNumber {
    Decimal(Decimal),
    Double(f64),
}

impl From<usize> for MathNumber {
    fn from(value: usize) -> MathNumber {
        MathNumber::Decimal(Decimal::from(value))
    }
}

impl MathNumber {
    /// Parses a JSON number.
    pub(super) fn read(text: &str) -> Option<MathNumber> {
        if !text.starts_with(|c: char| c == '-' || c == '.' || c.is_ascii_digit()) {
            return None;
        }
        // A decimal would silently drop digits it has no room for, so such numbers become doubles.
        let exact = if text.contains(['e', 'E']) {
            Decimal::from_scientific(text).ok()
        } else {
            Decimal::from_str_exact(text).ok()
        };
        exact.map(MathNumber::Decimal).or_else(|| finite(text.parse().ok()?).ok())
    }

    /// A double, converted to a decimal where that is exact.
    pub(super) fn from_double(value: f64) -> Result<MathNumber, BuiltinFailure> {
        let number = finite(value)?;
        // Through its shortest text: 0.3 becomes the decimal 0.3, not the nearest binary fraction.
        Ok(MathNumber::read(&value.to_string()).unwrap_or(number))
    }

    pub(super) fn double(self) -> f64 {
        match self {
            MathNumber::Decimal(value) => value.to_f64().unwrap_or(f64::NAN),
            MathNumber::Double(value) => value,
        }
    }

    pub(super) fn add(self, other: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        self.combine(other, Decimal::checked_add, |a, b| a + b)
    }

    pub(super) fn subtract(self, other: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        self.combine(other, Decimal::checked_sub, |a, b| a - b)
    }

    pub(super) fn multiply(self, other: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        self.combine(other, Decimal::checked_mul, |a, b| a * b)
    }

    pub(super) fn divide(self, other: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        if other.double() == 0.0 {
            return Err(failure!("division by zero"));
        }
        self.combine(other, Decimal::checked_div, |a, b| a / b)
    }

    pub(super) fn remainder(self, other: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        if other.double() == 0.0 {
            return Err(failure!("division by zero"));
        }
        self.combine(other, Decimal::checked_rem, |a, b| a % b)
    }

    pub(super) fn power(self, exponent: MathNumber) -> Result<MathNumber, BuiltinFailure> {
        if let (MathNumber::Decimal(base), MathNumber::Decimal(power)) = (self, exponent)
            && let Some(power) =
                power.to_i64().filter(|_| power.is_integer()).filter(|power| power.abs() <= 1000)
            && let Some(value) = base.checked_powi(power).filter(|value| !value.is_zero() || base.is_zero())
        {
            return Ok(MathNumber::Decimal(value.normalize()));
        }
        MathNumber::from_double(self.double().powf(exponent.double()))
    }

    pub(super) fn square_root(self) -> Result<MathNumber, BuiltinFailure> {
        let exact = match self {
            MathNumber::Decimal(value) => value.sqrt(),
            MathNumber::Double(_) => None,
        };
        exact.map_or_else(
            || MathNumber::from_double(self.double().sqrt()),
            |root| Ok(MathNumber::Decimal(root.normalize())),
        )
    }

    pub(super) fn negate(self) -> MathNumber {
        match self {
            MathNumber::Decimal(value) => MathNumber::Decimal(-value),
            MathNumber::Double(value) => MathNumber::Double(-value),
        }
    }

    pub(super) fn round(self, digits: u32, strategy: RoundingStrategy) -> Result<MathNumber, BuiltinFailure> {
        match self {
            MathNumber::Decimal(value) => {
                Ok(MathNumber::Decimal(value.round_dp_with_strategy(digits, strategy).normalize()))
            }
            // A double beyond the decimals is a whole number or has no digit to keep.
            MathNumber::Double(value) if value.abs() >= 1e15 => Ok(self),
            MathNumber::Double(value) => {
                let nearest = Decimal::from_f64(value).unwrap_or_default();
                MathNumber::Decimal(nearest).round(digits, strategy)
            }
        }
    }

    /// The order of two numbers; both are finite, so there always is one.
    pub(super) fn compare(&self, other: &MathNumber) -> Ordering {
        match (self, other) {
            (MathNumber::Decimal(a), MathNumber::Decimal(b)) => a.cmp(b),
            _ => self.double().total_cmp(&other.double()),
        }
    }

    /// The number with exactly `digits` digits after the point.
    pub(super) fn with_digits(self, digits: usize) -> String {
        match self {
            MathNumber::Decimal(value) => format!("{value:.digits$}"),
            MathNumber::Double(value) => format!("{value:.digits$}"),
        }
    }

    fn combine(
        self,
        other: MathNumber,
        exact: fn(Decimal, Decimal) -> Option<Decimal>,
        near: fn(f64, f64) -> f64,
    ) -> Result<MathNumber, BuiltinFailure> {
        if let (MathNumber::Decimal(a), MathNumber::Decimal(b)) = (self, other)
            && let Some(value) = exact(a, b)
            && (!value.is_zero() || near(self.double(), other.double()) == 0.0)
        {
            return Ok(MathNumber::Decimal(value.normalize()));
        }
        MathNumber::from_double(near(self.double(), other.double()))
    }
}

fn finite(value: f64) -> Result<MathNumber, BuiltinFailure> {
    if value.is_finite() {
        Ok(MathNumber::Double(value))
    } else {
        Err(failure!("the result is not a finite number"))
    }
}

impl fmt::Display for MathNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MathNumber::Decimal(value) => write!(f, "{}", value.normalize()),
            MathNumber::Double(value) => write!(f, "{value:e}"),
        }
    }
}

impl Serialize for MathNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}
