//! What a call is given.

use oxc_span::Span;
use smallvec::SmallVec;

use crate::value::Value;

/// An argument: its value, where it stands, and whether it is spread.
pub(super) type CallArgument<'a> = (Value<'a>, Span, bool);
/// What a call is given: most are given one or two arguments, which need no memory of their own.
pub(super) type CallArguments<'a> = SmallVec<[CallArgument<'a>; 2]>;
