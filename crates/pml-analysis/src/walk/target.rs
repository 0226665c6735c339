//! Target of a call: a tool or capability.

use std::rc::Rc;

use crate::value::AbstractValue;

/// The tool or capability that is called.
#[derive(Clone)]
pub(crate) enum CallTarget {
    Tool { server: Rc<str>, name: Rc<str> },
    Capability(Rc<str>),
}

impl CallTarget {
    /// The tool or capability that `value` is; `None` for other values.
    pub(crate) fn of(value: &AbstractValue<'_>) -> Option<CallTarget> {
        match value {
            AbstractValue::Tool(server, name) => {
                Some(CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) })
            }
            AbstractValue::Capability(name) => Some(CallTarget::Capability(Rc::clone(name))),
            _ => None,
        }
    }
}
