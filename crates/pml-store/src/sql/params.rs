//! The parameters of a statement: none, an array, a tuple or the result of `params!`.

use rusqlite::ToSql;

/// Values for the parameters `?1`, `?2` … of a statement.
pub(crate) trait Params {
    /// Calls `bind` with the values in order.
    fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T;
}

impl Params for &[&dyn ToSql] {
    fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        bind(self)
    }
}

// Only this length has no type parameter, so that `[]` needs no annotation.
impl Params for [&(dyn ToSql + Send + Sync); 0] {
    fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        bind(&[])
    }
}

impl Params for &[i64] {
    fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
        let values: Vec<&dyn ToSql> = self.iter().map(|value| value as &dyn ToSql).collect();
        bind(&values)
    }
}

macro_rules! arrays {
    ($($length:literal)+) => {$(
        impl<V: ToSql> Params for [V; $length] {
            fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
                bind(&self.each_ref().map(|value| value as &dyn ToSql))
            }
        }

        impl<V: ToSql> Params for &[V; $length] {
            fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
                bind(&self.each_ref().map(|value| value as &dyn ToSql))
            }
        }
    )+};
}

arrays!(1 2 3 4 5 6);

macro_rules! tuples {
    ($(($($name:ident)+))+) => {$(
        impl<$($name: ToSql),+> Params for ($($name,)+) {
            #[expect(non_snake_case, reason = "a value is called as its type")]
            fn with_slice<T>(self, bind: impl FnOnce(&[&dyn ToSql]) -> T) -> T {
                let ($($name,)+) = &self;
                bind(&[$($name as &dyn ToSql),+])
            }
        }
    )+};
}

tuples!((A) (A B) (A B C) (A B C D) (A B C D E));
