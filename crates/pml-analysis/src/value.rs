//! Abstract values: what is known of a value before the program runs, which is where it comes from.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use oxc_ast::ast::{ArrowFunctionExpression, Class, Function};
use oxc_span::Span;
use pml_model::structure::Step;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::roots::ToolRoot;
use crate::survey::FunctionIndex;

/// Steps from a whole to a part; empty for the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct MemberPath(Option<Rc<[Step]>>);

impl From<Vec<Step>> for MemberPath {
    fn from(steps: Vec<Step>) -> MemberPath {
        MemberPath(Some(steps.into()))
    }
}

impl MemberPath {
    pub(crate) fn then(&self, step: Step) -> MemberPath {
        MemberPath(Some(self.steps().iter().cloned().chain([step]).collect()))
    }

    pub(crate) fn steps(&self) -> &[Step] {
        self.0.as_ref().map_or(&[], |steps| steps)
    }
}

/// A literal as written.
#[derive(Debug, PartialEq)]
pub(crate) struct SourceLiteral {
    pub(crate) value: serde_json::Value,
    pub(crate) span: Span,
    /// It stands in the source as one expression, so a parameter could take its place.
    pub(crate) whole: bool,
}

/// Where a value comes from. Parts are shared by `Rc`: a value can stand for a tree far too large to be written out, so
/// whoever traverses one must use [`VisitedParts`](crate::budget::VisitedParts) or spend budget.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    /// Nothing is known of it, and nothing of interest is in it.
    Unknown,
    Undefined,
    Literal(Rc<SourceLiteral>),
    /// (Part of) the result of a node, by index.
    Result(u32, MemberPath),
    /// (Part of) `args`.
    Parameter(MemberPath),
    /// (Part of) what a loop is at.
    Item(Rc<Value<'a>>, u32, MemberPath),
    /// An object or array of the program, by index.
    Object(u32),
    /// An object or array as it was at one moment; never changes again.
    Record(Rc<ObjectRecord<'a>>),
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
    Phi(u32, MemberPath),
}

/// The members of an object or array. A record is never changed in place: the state replaces it by another, so that
/// whoever holds one holds it as it was at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectRecord<'a> {
    pub(crate) kind: RecordKind<'a>,
    pub(crate) fields: Vec<ObjectMember<'a>>,
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
pub(crate) struct ObjectMember<'a> {
    pub(crate) key: Step,
    pub(crate) value: Value<'a>,
    pub(crate) span: Span,
    /// Run to read the member.
    pub(crate) getter: bool,
}

impl<'a> ObjectMember<'a> {
    /// The same member with another value.
    pub(crate) fn with_value(&self, value: Value<'a>) -> ObjectMember<'a> {
        ObjectMember { key: self.key.clone(), value, span: self.span, getter: self.getter }
    }
}

/// What kind of record.
#[derive(Debug, Clone, Default)]
pub(crate) enum RecordKind<'a> {
    #[default]
    Object,
    Array,
    /// `Map`, `Set` and other collections of values.
    Collection,
    Instance(Rc<ClassValue<'a>>),
}

impl<'a> ObjectRecord<'a> {
    pub(crate) fn field(&self, key: &Step) -> Option<&ObjectMember<'a>> {
        self.fields.iter().rev().find(|member| member.key == *key)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, RecordKind::Array)
    }

    /// How much there is to copy.
    pub(crate) fn size(&self) -> usize {
        2 * self.fields.len() + self.extra.len() + self.names.len() + self.spreads.len()
    }

    /// Whether all its members are known.
    pub(crate) fn is_closed(&self) -> bool {
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

impl<'a> From<&ToolRoot> for Value<'a> {
    fn from(root: &ToolRoot) -> Value<'a> {
        match root {
            ToolRoot::Mcp => Value::Mcp,
            ToolRoot::Server(server) => Value::Server(Rc::clone(server)),
            ToolRoot::Tool(server, name) => Value::Tool(Rc::clone(server), Rc::clone(name)),
            ToolRoot::Capabilities => Value::Capabilities,
            ToolRoot::Capability(name) => Value::Capability(Rc::clone(name)),
            ToolRoot::Global => Value::Global("globalThis".into()),
        }
    }
}

impl<'a> Value<'a> {
    pub(crate) fn literal(value: impl Into<serde_json::Value>, span: Span) -> Value<'a> {
        Value::Literal(Rc::new(SourceLiteral { value: value.into(), span, whole: true }))
    }

    pub(crate) fn folded(value: impl Into<serde_json::Value>, span: Span) -> Value<'a> {
        Value::Literal(Rc::new(SourceLiteral { value: value.into(), span, whole: false }))
    }

    /// The text of a string literal.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Value::Literal(literal) => literal.value.as_str(),
            _ => None,
        }
    }

    /// Whether both are certainly the same value. `false` may be wrong, which only costs an alternative more.
    pub(crate) fn same(&self, other: &Value<'a>) -> bool {
        self.same_within(other, &mut 1_000)
    }

    /// Values made of more parts than `fuel` are not looked at to their ends.
    fn same_within(&self, other: &Value<'a>, fuel: &mut u32) -> bool {
        if *fuel == 0 {
            return false;
        }
        *fuel -= 1;
        let all = |a: &[Value<'a>], b: &[Value<'a>], fuel: &mut u32| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_within(b, fuel))
        };
        match (self, other) {
            (Value::Unknown, Value::Unknown)
            | (Value::Undefined, Value::Undefined)
            | (Value::Mcp, Value::Mcp)
            | (Value::Capabilities, Value::Capabilities) => true,
            (Value::Literal(a), Value::Literal(b)) => Rc::ptr_eq(a, b) || (a.span == b.span && a == b),
            (Value::Result(a, p), Value::Result(b, q)) | (Value::Phi(a, p), Value::Phi(b, q)) => {
                a == b && p == q
            }
            (Value::Parameter(p), Value::Parameter(q)) => p == q,
            (Value::Item(v, a, p), Value::Item(w, b, q)) => {
                a == b && p == q && (Rc::ptr_eq(v, w) || v.same_within(w, fuel))
            }
            (Value::Object(a), Value::Object(b)) => a == b,
            (Value::Record(a), Value::Record(b)) => Rc::ptr_eq(a, b),
            (Value::Template(a), Value::Template(b)) => Rc::ptr_eq(a, b),
            (Value::Computed(s, a), Value::Computed(t, b)) => s == t && (Rc::ptr_eq(a, b) || all(a, b, fuel)),
            (Value::Function(a), Value::Function(b)) => Rc::ptr_eq(a, b),
            (Value::Class(a), Value::Class(b)) => Rc::ptr_eq(a, b),
            (Value::Global(a), Value::Global(b))
            | (Value::Server(a), Value::Server(b))
            | (Value::Capability(a), Value::Capability(b)) => a == b,
            (Value::Tool(s, t), Value::Tool(u, v)) => s == u && t == v,
            (Value::Promise(a, p), Value::Promise(b, q)) => {
                p == q && (Rc::ptr_eq(a, b) || a.same_within(b, fuel))
            }
            (Value::OneOf(a), Value::OneOf(b)) => Rc::ptr_eq(a, b) || all(a, b, fuel),
            _ => false,
        }
    }

    /// What it costs to put it together with another: many values are told apart less quickly than few.
    pub(crate) fn width(&self) -> usize {
        match self {
            Value::Computed(_, values) | Value::OneOf(values) if values.len() > FEW => 4 * values.len(),
            Value::Computed(_, values) | Value::OneOf(values) => values.len(),
            Value::Template(parts) => parts.len(),
            Value::Result(_, path)
            | Value::Phi(_, path)
            | Value::Item(_, _, path)
            | Value::Parameter(path) => path.steps().len() / 2,
            _ => 0,
        }
    }

    /// A cheap hash: equal for values that are the same.
    fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        std::mem::discriminant(self).hash(&mut hasher);
        match self {
            Value::Literal(literal) => literal.span.hash(&mut hasher),
            Value::Result(index, path) | Value::Phi(index, path) | Value::Item(_, index, path) => {
                (index, path).hash(&mut hasher);
            }
            Value::Parameter(path) => path.hash(&mut hasher),
            Value::Object(index) => index.hash(&mut hasher),
            Value::Record(record) => Rc::as_ptr(record).hash(&mut hasher),
            Value::Template(parts) => parts.as_ptr().hash(&mut hasher),
            Value::Computed(span, values) => (span, values.len()).hash(&mut hasher),
            Value::Function(closure) => Rc::as_ptr(closure).hash(&mut hasher),
            Value::Class(class) => Rc::as_ptr(class).hash(&mut hasher),
            Value::Global(name) | Value::Server(name) | Value::Capability(name) => name.hash(&mut hasher),
            Value::Tool(server, name) => (server, name).hash(&mut hasher),
            Value::Promise(_, pending) => pending.hash(&mut hasher),
            Value::OneOf(values) => values.len().hash(&mut hasher),
            Value::Unknown | Value::Undefined | Value::Mcp | Value::Capabilities => {}
        }
        hasher.finish()
    }
}

/// Some values; most of the time one or two, which need no memory of their own.
pub(crate) type ValueList<'a> = SmallVec<[Value<'a>; 2]>;

/// Values, each once, in the order they came.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues<'a> {
    values: ValueList<'a>,
    /// Where values with a fingerprint stand, once there are many.
    places: FxHashMap<u64, Vec<u32>>,
}

/// So many values are looked through one by one.
const FEW: usize = 64;

impl<'a> DistinctValues<'a> {
    pub(crate) fn add(&mut self, value: &Value<'a>) {
        if self.values.len() < FEW {
            if !self.values.iter().any(|other| other.same(value)) {
                self.values.push(value.clone());
            }
            return;
        }
        if self.places.is_empty() {
            for (index, value) in self.values.iter().enumerate() {
                self.places.entry(value.fingerprint()).or_default().push(index as u32);
            }
        }
        let alike = self.places.entry(value.fingerprint()).or_default();
        // Of many that differ deep inside, equal ones may stand twice.
        if !alike.iter().take(FEW).any(|index| self.values[*index as usize].same(value)) {
            alike.push(self.values.len() as u32);
            self.values.push(value.clone());
        }
    }

    pub(crate) fn into_values(self) -> ValueList<'a> {
        self.values
    }

    /// The same to be held in several places.
    pub(crate) fn shared(mut self) -> Rc<[Value<'a>]> {
        match (self.values.pop(), self.values.pop()) {
            (None, _) => Rc::new([]),
            (Some(only), None) => Rc::new([only]),
            (Some(second), Some(first)) if self.values.is_empty() => Rc::new([first, second]),
            (Some(last), Some(before)) => {
                self.values.extend([before, last]);
                self.values.into_vec().into()
            }
        }
    }

    /// One of them, whichever way the program goes.
    pub(crate) fn one_of(mut self) -> Value<'a> {
        match self.values.len() {
            0 => Value::Unknown,
            1 => self.values.remove(0),
            _ => Value::OneOf(self.shared()),
        }
    }
}

/// One of these values, whichever way the program goes.
pub(crate) fn one_of<'a>(values: impl IntoIterator<Item = Value<'a>>) -> Value<'a> {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return Value::Unknown };
    // Most of the time all of them are the same.
    let other = loop {
        match values.next() {
            None => return first,
            Some(next) if !first.same(&next) => break next,
            Some(_) => {}
        }
    };
    let mut kept = DistinctValues::default();
    for value in [first, other].into_iter().chain(values) {
        match value {
            Value::OneOf(inner) if kept.values.is_empty() => kept.values.extend(inner.iter().cloned()),
            Value::OneOf(inner) => inner.iter().for_each(|value| kept.add(value)),
            value => kept.add(&value),
        }
    }
    kept.one_of()
}

/// The name of a member as it is written.
pub(crate) fn key_name(key: &Step) -> Cow<'_, str> {
    match key {
        Step::Key(name) => name.as_str().into(),
        Step::Index(index) => index.to_string().into(),
        Step::Any => "*".into(),
    }
}
