//! The prelude: code that every realm evaluates first. It defines what programs see of the language and of the host.

use rquickjs::Ctx;

use super::errors::PRELUDE;
use super::raw;

/// Source of the prelude.
pub(super) const TEXT: &str = include_str!("prelude.js");

/// Bytecode of the prelude, for all realms but the first: parsing is most of the cost of making a realm.
pub(super) fn compiled(ctx: &Ctx<'_>) -> rquickjs::Result<Vec<u8>> {
    raw::compile(ctx, TEXT, PRELUDE)
}
