//! What a call of a tool or capability calls.

use std::rc::Rc;

use crate::value::Value;

/// The tool or capability that is called.
#[derive(Clone)]
pub(crate) enum CallTarget {
    Tool { server: Rc<str>, name: Rc<str> },
    Capability(Rc<str>),
}

impl CallTarget {
    /// The tool or capability that `value` is; none for other values.
    pub(crate) fn of(value: &Value<'_>) -> Option<CallTarget> {
        match value {
            Value::Tool(server, name) => {
                Some(CallTarget::Tool { server: Rc::clone(server), name: Rc::clone(name) })
            }
            Value::Capability(name) => Some(CallTarget::Capability(Rc::clone(name))),
            _ => None,
        }
    }
}
