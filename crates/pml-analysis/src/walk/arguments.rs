//! Arguments of a call.

use oxc_span::Span;
use smallvec::SmallVec;

use crate::value::AbstractValue;

/// An argument: its value, its span, and whether it is spread.
pub(super) type CallArgument<'a> = (AbstractValue<'a>, Span, bool);
/// Arguments of a call, inline for the usual one or two.
pub(super) type CallArguments<'a> = SmallVec<[CallArgument<'a>; 2]>;
