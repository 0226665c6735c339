//! Values on their way to PostgreSQL and back. Both databases have the same five kinds of values.

use std::error::Error;

use bytes::BytesMut;
use rusqlite::types::Value;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};

/// PostgreSQL's texts cannot hold the character 0. It is stored as this one, which is no character of any script and
/// is reserved for uses like this.
const STORED_ZERO: char = '\u{FDD0}';

/// A value to be bound.
#[derive(Debug)]
pub(super) struct Bound<'v>(pub(super) &'v Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let unfit = || format!("a value of type {:?} does not fit `{kind}`", self.0.data_type()).into();
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) => match *kind {
                Type::BOOL => (*number != 0).to_sql(kind, out),
                Type::INT4 => i32::try_from(*number)?.to_sql(kind, out),
                Type::INT8 => number.to_sql(kind, out),
                // Whole numbers are exact up to 2^53, and nothing here counts further.
                Type::FLOAT8 => (*number as f64).to_sql(kind, out),
                _ => Err(unfit()),
            },
            Value::Real(number) => number.to_sql(kind, out),
            Value::Text(text) if *kind == Type::BYTEA => text.as_bytes().to_sql(kind, out),
            Value::Text(text) if text.contains('\0') => {
                text.replace('\0', STORED_ZERO.encode_utf8(&mut [0; 4])).to_sql(kind, out)
            }
            Value::Text(text) => text.as_str().to_sql(kind, out),
            Value::Blob(bytes) if *kind == Type::BYTEA => bytes.as_slice().to_sql(kind, out),
            Value::Blob(_) => Err(unfit()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A value that was read.
pub(super) struct Read(pub(super) Value);

impl<'r> FromSql<'r> for Read {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Read, Box<dyn Error + Sync + Send>> {
        Ok(Read(match *kind {
            Type::BOOL => Value::Integer(i64::from(bool::from_sql(kind, raw)?)),
            Type::INT2 => Value::Integer(i64::from(i16::from_sql(kind, raw)?)),
            Type::INT4 => Value::Integer(i64::from(i32::from_sql(kind, raw)?)),
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::NUMERIC => Value::Integer(whole_number(raw)?),
            Type::BYTEA => Value::Blob(raw.to_vec()),
            _ => {
                let text = std::str::from_utf8(raw)?;
                Value::Text(match text.contains(STORED_ZERO) {
                    true => text.replace(STORED_ZERO, "\0"),
                    false => text.to_owned(),
                })
            }
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Read, Box<dyn Error + Sync + Send>> {
        Ok(Read(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A `numeric` without fraction, which is what sums of whole numbers are: four 16-bit fields (number of digits, weight,
/// sign, scale) and then digits to the base 10,000.
fn whole_number(raw: &[u8]) -> Result<i64, Box<dyn Error + Sync + Send>> {
    let field = |at: usize| raw.get(2 * at..2 * at + 2).map(|bytes| i16::from_be_bytes([bytes[0], bytes[1]]));
    let (Some(count), Some(weight), Some(sign)) = (field(0), field(1), field(2)) else {
        return Err("a number is cut off".into());
    };
    let mut number: i64 = 0;
    for place in 0..=weight.max(-1) {
        let digit = if place < count { field(4 + usize::try_from(place)?).unwrap_or(0) } else { 0 };
        number = number
            .checked_mul(10_000)
            .and_then(|number| number.checked_add(i64::from(digit)))
            .ok_or("a sum is too large")?;
    }
    Ok(if sign == 0 { number } else { -number })
}
