//! Parses an expression and evaluates it in the same pass.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use rust_decimal::{Decimal, RoundingStrategy};

use super::number::MathNumber;
use crate::builtin::tool::{BuiltinFailure, QuotedName, failure};

/// The longest expression, in bytes.
pub(super) const MAX_EXPRESSION_BYTES: usize = 10_000;
/// How deep parentheses, signs and powers may nest.
const MAX_NESTING: usize = 64;

/// The value of `text`.
pub(super) fn evaluate(
    text: &str,
    variables: &BTreeMap<String, MathNumber>,
) -> Result<MathNumber, BuiltinFailure> {
    if text.len() > MAX_EXPRESSION_BYTES {
        return Err(failure!(
            "the expression is {} bytes; at most {MAX_EXPRESSION_BYTES} are taken",
            text.len()
        ));
    }
    let mut reader = ExpressionEvaluator { text, at: 0, nesting: 0, variables };
    let value = reader.sum()?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err(reader.expected("an operator or the end")),
    }
}

struct ExpressionEvaluator<'a> {
    text: &'a str,
    at: usize,
    nesting: usize,
    variables: &'a BTreeMap<String, MathNumber>,
}

impl<'a> ExpressionEvaluator<'a> {
    fn sum(&mut self) -> Result<MathNumber, BuiltinFailure> {
        let mut value = self.product()?;
        loop {
            value = match self.peek() {
                Some('+') => value.add(self.after(Self::product)?)?,
                Some('-') => value.subtract(self.after(Self::product)?)?,
                _ => return Ok(value),
            };
        }
    }

    fn product(&mut self) -> Result<MathNumber, BuiltinFailure> {
        let mut value = self.signed()?;
        loop {
            value = match self.peek() {
                Some('*') => value.multiply(self.after(Self::signed)?)?,
                Some('/') => value.divide(self.after(Self::signed)?)?,
                Some('%') => value.remainder(self.after(Self::signed)?)?,
                _ => return Ok(value),
            };
        }
    }

    /// A sign binds weaker than a power, as in mathematics: `-2 ^ 2` is `-4`.
    fn signed(&mut self) -> Result<MathNumber, BuiltinFailure> {
        match self.peek() {
            Some('-') => self.after(|reader| reader.nested(Self::signed)).map(MathNumber::negate),
            Some('+') => self.after(|reader| reader.nested(Self::signed)),
            _ => self.power(),
        }
    }

    fn power(&mut self) -> Result<MathNumber, BuiltinFailure> {
        let base = self.operand()?;
        match self.peek() {
            Some('^') => base.power(self.after(|reader| reader.nested(Self::signed))?),
            _ => Ok(base),
        }
    }

    fn operand(&mut self) -> Result<MathNumber, BuiltinFailure> {
        match self.peek() {
            Some('(') => {
                let value = self.after(|reader| reader.nested(Self::sum))?;
                self.closing()?;
                Ok(value)
            }
            Some(c) if c == '.' || c.is_ascii_digit() => self.number(),
            Some(c) if c == '_' || c.is_alphabetic() => self.named(),
            _ => Err(self.expected("a number, a name or `(`")),
        }
    }

    fn number(&mut self) -> Result<MathNumber, BuiltinFailure> {
        let start = self.at;
        self.skip(|c| c == '.' || c.is_ascii_digit());
        let mantissa_end = self.at;
        if self.rest().starts_with(['e', 'E']) {
            self.at += 1;
            if self.rest().starts_with(['+', '-']) {
                self.at += 1;
            }
            let digits = self.at;
            self.skip(|c| c.is_ascii_digit());
            if digits == self.at {
                self.at = mantissa_end;
            }
        }
        MathNumber::read(&self.text[start..self.at]).ok_or_else(|| {
            self.at = start;
            self.expected("a number that can be read")
        })
    }

    fn named(&mut self) -> Result<MathNumber, BuiltinFailure> {
        let start = self.at;
        self.skip(|c| c == '_' || c.is_alphanumeric());
        let name = &self.text[start..self.at];
        if self.peek() == Some('(') {
            let arguments = self.after(Self::arguments)?;
            return call(name, &arguments);
        }
        match (self.variables.get(name), name) {
            (Some(&value), _) => Ok(value),
            (None, "pi") => Ok(constant("3.1415926535897932384626433833")),
            (None, "e") => Ok(constant("2.7182818284590452353602874714")),
            (None, _) => Err(failure!("{} has no value; give it in `variables`", QuotedName(name))),
        }
    }

    fn arguments(&mut self) -> Result<Vec<MathNumber>, BuiltinFailure> {
        let mut arguments = vec![self.nested(Self::sum)?];
        while self.peek() == Some(',') {
            arguments.push(self.after(|reader| reader.nested(Self::sum))?);
        }
        self.closing()?;
        Ok(arguments)
    }

    fn closing(&mut self) -> Result<(), BuiltinFailure> {
        if self.peek() != Some(')') {
            return Err(self.expected("`)`"));
        }
        self.at += 1;
        Ok(())
    }

    fn after<T>(
        &mut self,
        read: impl Fn(&mut Self) -> Result<T, BuiltinFailure>,
    ) -> Result<T, BuiltinFailure> {
        self.at += 1;
        read(self)
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Result<T, BuiltinFailure>) -> Result<T, BuiltinFailure> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(failure!("the expression nests deeper than {MAX_NESTING} levels"));
        }
        let value = read(self);
        self.nesting -= 1;
        value
    }

    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.skip(char::is_whitespace);
        self.rest().chars().next()
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) {
        let rest = self.rest();
        self.at += rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn expected(&self, what: &str) -> BuiltinFailure {
        let character = self.text[..self.at].chars().count() + 1;
        failure!("the expression at character {character}: expected {what}")
    }
}

fn constant(digits: &str) -> MathNumber {
    MathNumber::Decimal(Decimal::from_str(digits).expect("a constant of 29 digits is a decimal"))
}

fn call(name: &str, arguments: &[MathNumber]) -> Result<MathNumber, BuiltinFailure> {
    let double =
        |function: fn(f64) -> f64, value: MathNumber| MathNumber::from_double(function(value.double()));
    let whole = |value: MathNumber, strategy| value.round(0, strategy);
    match (name, arguments) {
        ("abs", &[x]) => Ok(if x.double() < 0.0 { x.negate() } else { x }),
        ("ceil", &[x]) => whole(x, RoundingStrategy::ToPositiveInfinity),
        ("floor", &[x]) => whole(x, RoundingStrategy::ToNegativeInfinity),
        ("trunc", &[x]) => whole(x, RoundingStrategy::ToZero),
        ("round", &[x]) => whole(x, RoundingStrategy::MidpointAwayFromZero),
        ("sqrt", &[x]) => x.square_root(),
        ("exp", &[x]) => double(f64::exp, x),
        ("ln", &[x]) => double(f64::ln, x),
        ("log10", &[x]) => double(f64::log10, x),
        ("log2", &[x]) => double(f64::log2, x),
        ("sin", &[x]) => double(f64::sin, x),
        ("cos", &[x]) => double(f64::cos, x),
        ("tan", &[x]) => double(f64::tan, x),
        ("min", [first, rest @ ..]) => {
            Ok(rest.iter().fold(*first, |a, &b| if b.compare(&a).is_lt() { b } else { a }))
        }
        ("max", [first, rest @ ..]) => {
            Ok(rest.iter().fold(*first, |a, &b| if b.compare(&a).is_gt() { b } else { a }))
        }
        (
            "abs" | "ceil" | "floor" | "trunc" | "round" | "sqrt" | "exp" | "ln" | "log10" | "log2" | "sin"
            | "cos" | "tan",
            _,
        ) => Err(failure!("function `{name}` takes one argument and got {}", arguments.len())),
        _ => Err(failure!("there is no function {}", QuotedName(name))),
    }
}
