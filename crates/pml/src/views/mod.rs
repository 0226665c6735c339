//! Pictures of what is known: the [`definition`] of a capability, and an [`invocation`] of it.
//!
//! Both are computed from stored values, with positions; nothing is read or written here. Pages only draw them.

pub mod definition;
mod grouping;
pub mod invocation;
mod source_text;
