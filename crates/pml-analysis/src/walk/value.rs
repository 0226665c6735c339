//! What is known of a value before the program runs: where it comes from.

use std::rc::Rc;

use oxc_ast::ast::{ArrowFunctionExpression, Class, Function};
use oxc_span::Span;
use pml_model::structure::Step;

use crate::roots::Root;
use crate::survey::FunctionIndex;

/// Steps from a whole to a part; empty for the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Path(Option<Rc<Vec<Step>>>);

impl Path {
    pub(crate) fn then(&self, step: Step) -> Path {
        let mut steps = Vec::with_capacity(self.steps().len() + 1);
        steps.extend_from_slice(self.steps());
        steps.push(step);
        Path(Some(Rc::new(steps)))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        self.0.as_ref().map_or(&[], |steps| steps)
    }
}

/// A literal as written.
#[derive(Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) value: serde_json::Value,
    pub(crate) span: Span,
    /// It stands in the source as one expression, so another value could stand there.
    pub(crate) whole: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    /// Nowhere of interest.
    Unknown,
    Undefined,
    Literal(Rc<Literal>),
    /// (Part of) the result of a node, by index.
    Result(u32, Path),
    /// (Part of) `args`.
    Parameter(Path),
    /// (Part of) what a loop is at.
    Item(Rc<Value<'a>>, u32, Path),
    /// An object or array of the program, by index.
    Object(u32),
    /// The same as it was at one moment.
    Record(Rc<Record<'a>>),
    /// A text put together: each part and where it is written.
    Template(Rc<[(Value<'a>, Span)]>),
    /// Computed, at this place, from these.
    Computed(Span, Rc<[Value<'a>]>),
    Function(Rc<Closure<'a>>),
    Class(Rc<ClassValue<'a>>),
    /// A name of the language, such as `Promise` or `Math.max`.
    Global(Rc<str>),
    Mcp,
    Server(Rc<str>),
    Tool(Rc<str>, Rc<str>),
    Capabilities,
    Capability(Rc<str>),
    /// A promise of a value; the number is that of the call nobody has waited for yet.
    Promise(Rc<Value<'a>>, Option<u32>),
    OneOf(Rc<[Value<'a>]>),
    /// (Part of) whatever a variable holds at the head of a loop, by index.
    Phi(u32, Path),
}

/// An object or array at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind<'a>,
    pub(crate) fields: Vec<Member<'a>>,
    /// Values that are in it somewhere: unknown keys, pushes in loops.
    pub(crate) extra: Vec<Value<'a>>,
    /// Names of such members.
    pub(crate) names: Vec<Value<'a>>,
    /// Objects spread into it whose members are not known.
    pub(crate) spreads: Vec<Value<'a>>,
    /// Run when the member is set.
    pub(crate) setters: Vec<(Step, Rc<Closure<'a>>)>,
    /// Where it is written, while nothing has changed it.
    pub(crate) written: Option<Span>,
}

/// A member of a record.
#[derive(Debug, Clone)]
pub(crate) struct Member<'a> {
    pub(crate) key: Step,
    pub(crate) value: Value<'a>,
    pub(crate) span: Span,
    /// Run to read the member.
    pub(crate) getter: bool,
}

/// What kind of record.
#[derive(Debug, Clone, Default)]
pub(crate) enum Kind<'a> {
    #[default]
    Object,
    Array,
    /// `Map`, `Set` and other holders of values.
    Holder,
    Instance(Rc<ClassValue<'a>>),
}

impl<'a> Record<'a> {
    pub(crate) fn field(&self, key: &Step) -> Option<&Member<'a>> {
        self.fields.iter().rev().find(|member| member.key == *key)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, Kind::Array)
    }

    /// All its members are known.
    pub(crate) fn closed(&self) -> bool {
        self.extra.is_empty() && self.spreads.is_empty()
    }
}

/// The variables one call of a function has, and those around it.
#[derive(Debug)]
pub(crate) struct Activation<'a> {
    pub(crate) id: u32,
    pub(crate) function: FunctionIndex,
    pub(crate) outer: Option<Rc<Activation<'a>>>,
    /// `None` for arrows: that of the outer one.
    pub(crate) this: Option<Value<'a>>,
    /// The class a method belongs to, for `super`.
    pub(crate) class: Option<Rc<ClassValue<'a>>>,
}

/// A function and the variables it sees.
#[derive(Debug)]
pub(crate) struct Closure<'a> {
    pub(crate) code: FunctionCode<'a>,
    pub(crate) function: FunctionIndex,
    pub(crate) outer: Rc<Activation<'a>>,
    /// The context it was made in.
    pub(crate) context: u32,
    pub(crate) this: Option<Value<'a>>,
    pub(crate) class: Option<Rc<ClassValue<'a>>>,
}

/// The code of a function.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FunctionCode<'a> {
    Function(&'a Function<'a>),
    Arrow(&'a ArrowFunctionExpression<'a>),
}

impl FunctionCode<'_> {
    pub(crate) fn span(&self) -> Span {
        match self {
            FunctionCode::Function(function) => function.span,
            FunctionCode::Arrow(arrow) => arrow.span,
        }
    }

    pub(crate) fn is_async(&self) -> bool {
        match self {
            FunctionCode::Function(function) => function.r#async,
            FunctionCode::Arrow(arrow) => arrow.r#async,
        }
    }

    pub(crate) fn is_generator(&self) -> bool {
        matches!(self, FunctionCode::Function(function) if function.generator)
    }
}

/// A class and the variables it sees.
#[derive(Debug)]
pub(crate) struct ClassValue<'a> {
    pub(crate) class: &'a Class<'a>,
    pub(crate) outer: Rc<Activation<'a>>,
    pub(crate) context: u32,
    pub(crate) parent: Option<Rc<ClassValue<'a>>>,
    /// Where its static members are kept.
    pub(crate) statics: u32,
}

impl<'a> From<&Root> for Value<'a> {
    fn from(root: &Root) -> Value<'a> {
        match root {
            Root::Mcp => Value::Mcp,
            Root::Server(server) => Value::Server(Rc::clone(server)),
            Root::Tool(server, name) => Value::Tool(Rc::clone(server), Rc::clone(name)),
            Root::Capabilities => Value::Capabilities,
            Root::Capability(name) => Value::Capability(Rc::clone(name)),
            Root::Global => Value::Global("globalThis".into()),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn literal(value: impl Into<serde_json::Value>, span: Span) -> Value<'a> {
        Value::Literal(Rc::new(Literal { value: value.into(), span, whole: true }))
    }

    pub(crate) fn folded(value: impl Into<serde_json::Value>, span: Span) -> Value<'a> {
        Value::Literal(Rc::new(Literal { value: value.into(), span, whole: false }))
    }

    /// The text of a string literal.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Literal(literal) => literal.value.as_str(),
            _ => None,
        }
    }

    /// Certainly the same; used to keep alternatives few.
    pub(crate) fn same(&self, other: &Value<'a>) -> bool {
        match (self, other) {
            (Value::Unknown, Value::Unknown)
            | (Value::Undefined, Value::Undefined)
            | (Value::Mcp, Value::Mcp)
            | (Value::Capabilities, Value::Capabilities) => true,
            (Value::Literal(a), Value::Literal(b)) => a == b,
            (Value::Result(a, p), Value::Result(b, q)) | (Value::Phi(a, p), Value::Phi(b, q)) => {
                a == b && p == q
            }
            (Value::Parameter(p), Value::Parameter(q)) => p == q,
            (Value::Item(v, a, p), Value::Item(w, b, q)) => a == b && p == q && v.same(w),
            (Value::Object(a), Value::Object(b)) => a == b,
            (Value::Record(a), Value::Record(b)) => Rc::ptr_eq(a, b),
            (Value::Template(a), Value::Template(b)) => Rc::ptr_eq(a, b),
            (Value::Computed(s, a), Value::Computed(t, b)) => {
                s == t && a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b))
            }
            (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
            (Value::Class(a), Value::Class(b)) => Rc::ptr_eq(a, b),
            (Value::Global(a), Value::Global(b))
            | (Value::Server(a), Value::Server(b))
            | (Value::Capability(a), Value::Capability(b)) => a == b,
            (Value::Tool(s, t), Value::Tool(u, v)) => s == u && t == v,
            (Value::Promise(a, p), Value::Promise(b, q)) => p == q && a.same(b),
            (Value::OneOf(a), Value::OneOf(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| a.same(b))
            }
            _ => false,
        }
    }
}

/// One of these values, whichever way the program goes.
pub(crate) fn one_of<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
    let mut kept: Vec<Value<'a>> = Vec::new();
    for value in values {
        match value {
            Value::OneOf(inner) => {
                for value in inner.iter() {
                    add(&mut kept, value.clone());
                }
            }
            value => add(&mut kept, value),
        }
    }
    match kept.len() {
        0 => Value::Unknown,
        1 => kept.remove(0),
        _ => Value::OneOf(kept.into()),
    }
}

fn add<'a>(kept: &mut Vec<Value<'a>>, value: Value<'a>) {
    // Past some number of alternatives nobody reads them one by one; equal ones may then stand twice.
    let looked_at = kept.len().min(64);
    if !kept[..looked_at].iter().any(|other| other.same(&value)) {
        kept.push(value);
    }
}
