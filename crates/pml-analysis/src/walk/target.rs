//! What a call of a tool or capability calls.

use std::rc::Rc;

use crate::value::Value;

/// The tool or capability that is called.
#[derive(Clone)]
pub(crate) enum Target {
    Tool { server: Rc<str>, name: Rc<str> },
    Capability(Rc<str>),
}

impl Target {
    /// The tool or capability that `value` is; none for other values.
    pub(crate) fn of(value: &Value<'_>) -> Option<Target> {
        match value {
            Value::Tool(server, name) => {
                Some(Target::Tool { server: Rc::clone(server), name: Rc::clone(name) })
            }
            Value::Capability(name) => Some(Target::Capability(Rc::clone(name))),
            _ => None,
        }
    }
}
