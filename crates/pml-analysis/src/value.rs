//! Abstract values: what is known of a value before the program runs, which is its origin.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use oxc_ast::ast::{ArrowFunctionExpression, Class, Function};
use oxc_span::Span;
use pml_model::structure::PathStep;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use crate::roots::ToolRoot;
use crate::survey::FunctionIndex;

/// Path from a whole to a part; empty for the whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct MemberPath(Option<Rc<[PathStep]>>);

impl From<Vec<PathStep>> for MemberPath {
    fn from(steps: Vec<PathStep>) -> MemberPath {
        MemberPath(Some(steps.into()))
    }
}

impl MemberPath {
    pub(crate) fn then(&self, step: PathStep) -> MemberPath {
        MemberPath(Some(self.steps().iter().cloned().chain([step]).collect()))
    }

    pub(crate) fn steps(&self) -> &[PathStep] {
        self.0.as_ref().map_or(&[], |steps| steps)
    }
}

/// A literal of the source.
#[derive(Debug, PartialEq)]
pub(crate) struct SourceLiteral {
    pub(crate) value: serde_json::Value,
    pub(crate) span: Span,
    /// Whether it is a whole expression in the source, so that a parameter could replace it.
    pub(crate) whole: bool,
}

/// Origin of a value. Parts are shared by `Rc`: a value can represent a tree far too large to write out, so code that
/// traverses one must use [`VisitedParts`](crate::budget::VisitedParts) or spend budget.
#[derive(Debug, Clone)]
pub(crate) enum AbstractValue<'a> {
    /// Unknown, without sources.
    Unknown,
    Undefined,
    Literal(Rc<SourceLiteral>),
    /// The result of a node (by index), or a part of it.
    Result(u32, MemberPath),
    /// `args`, or a part of it.
    Parameter(MemberPath),
    /// The current item of a loop over a value, or a part of it.
    Item(Rc<AbstractValue<'a>>, u32, MemberPath),
    /// A mutable object or array of the program, by index.
    Object(u32),
    /// A snapshot of an object or array; immutable.
    Record(Rc<ObjectRecord<'a>>),
    /// A concatenated text: each part with its span.
    Template(Rc<[(AbstractValue<'a>, Span)]>),
    /// Computed at a span from these values.
    Computed(Span, Rc<[AbstractValue<'a>]>),
    Function(Rc<Closure<'a>>),
    Class(Rc<ClassValue<'a>>),
    /// A global name of the language, such as `Promise` or `Math.max`.
    Global(Rc<str>),
    Mcp,
    Server(Rc<str>),
    Tool(Rc<str>, Rc<str>),
    Capabilities,
    Capability(Rc<str>),
    /// A promise of a value; the number is that of the call that is not awaited yet.
    Promise(Rc<AbstractValue<'a>>, Option<u32>),
    OneOf(Rc<[AbstractValue<'a>]>),
    /// Value of a variable at the head of a loop (by phi index), or a part of it.
    Phi(u32, MemberPath),
}

/// Members of an object or array. A record is never changed in place: the state replaces it by another, so that a
/// reference to a record is a snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectRecord<'a> {
    pub(crate) kind: RecordKind<'a>,
    pub(crate) fields: Vec<ObjectMember<'a>>,
    /// Values at unknown positions: computed keys, pushes in loops.
    pub(crate) extra: Vec<AbstractValue<'a>>,
    /// Names of members with computed keys.
    pub(crate) names: Vec<AbstractValue<'a>>,
    /// Spread objects whose members are unknown.
    pub(crate) spreads: Vec<AbstractValue<'a>>,
    /// Setters, run when the member is assigned.
    pub(crate) setters: Vec<(PathStep, Rc<Closure<'a>>)>,
    /// Span of its literal, while nothing has changed it.
    pub(crate) written: Option<Span>,
}

/// A member of a record.
#[derive(Debug, Clone)]
pub(crate) struct ObjectMember<'a> {
    pub(crate) key: PathStep,
    pub(crate) value: AbstractValue<'a>,
    pub(crate) span: Span,
    /// Whether the value is a getter, run when the member is read.
    pub(crate) getter: bool,
}

impl<'a> ObjectMember<'a> {
    /// The same member with another value.
    pub(crate) fn with_value(&self, value: AbstractValue<'a>) -> ObjectMember<'a> {
        ObjectMember { key: self.key.clone(), value, span: self.span, getter: self.getter }
    }
}

/// Kind of a record.
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
    pub(crate) fn field(&self, key: &PathStep) -> Option<&ObjectMember<'a>> {
        self.fields.iter().rev().find(|member| member.key == *key)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.kind, RecordKind::Array)
    }

    /// Number of entries, as the cost of a copy.
    pub(crate) fn size(&self) -> usize {
        2 * self.fields.len() + self.extra.len() + self.names.len() + self.spreads.len()
    }

    /// Whether all its members are known.
    pub(crate) fn is_closed(&self) -> bool {
        self.extra.is_empty() && self.spreads.is_empty()
    }
}

/// Variables of one call of a function, and the enclosing activation.
#[derive(Debug)]
pub(crate) struct Activation<'a> {
    pub(crate) id: u32,
    pub(crate) function: FunctionIndex,
    pub(crate) outer: Option<Rc<Activation<'a>>>,
    /// `this`; `None` for arrow functions, which use the enclosing one.
    pub(crate) this: Option<AbstractValue<'a>>,
    /// Class of the current method, for `super`.
    pub(crate) class: Option<Rc<ClassValue<'a>>>,
}

/// A function with the variables it captures.
#[derive(Debug)]
pub(crate) struct Closure<'a> {
    pub(crate) code: FunctionCode<'a>,
    pub(crate) function: FunctionIndex,
    pub(crate) outer: Rc<Activation<'a>>,
    /// Context it was created in.
    pub(crate) context: u32,
    pub(crate) this: Option<AbstractValue<'a>>,
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

/// A class with the variables it captures.
#[derive(Debug)]
pub(crate) struct ClassValue<'a> {
    pub(crate) class: &'a Class<'a>,
    pub(crate) outer: Rc<Activation<'a>>,
    pub(crate) context: u32,
    pub(crate) parent: Option<Rc<ClassValue<'a>>>,
    /// Index of the object with its static members.
    pub(crate) statics: u32,
}

impl<'a> From<&ToolRoot> for AbstractValue<'a> {
    fn from(root: &ToolRoot) -> AbstractValue<'a> {
        match root {
            ToolRoot::Mcp => AbstractValue::Mcp,
            ToolRoot::Server(server) => AbstractValue::Server(Rc::clone(server)),
            ToolRoot::Tool(server, name) => AbstractValue::Tool(Rc::clone(server), Rc::clone(name)),
            ToolRoot::Capabilities => AbstractValue::Capabilities,
            ToolRoot::Capability(name) => AbstractValue::Capability(Rc::clone(name)),
            ToolRoot::Global => AbstractValue::Global("globalThis".into()),
        }
    }
}

impl<'a> AbstractValue<'a> {
    pub(crate) fn literal(value: impl Into<serde_json::Value>, span: Span) -> AbstractValue<'a> {
        AbstractValue::Literal(Rc::new(SourceLiteral { value: value.into(), span, whole: true }))
    }

    pub(crate) fn folded(value: impl Into<serde_json::Value>, span: Span) -> AbstractValue<'a> {
        AbstractValue::Literal(Rc::new(SourceLiteral { value: value.into(), span, whole: false }))
    }

    /// The text of a string literal.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            AbstractValue::Literal(literal) => literal.value.as_str(),
            _ => None,
        }
    }

    /// Whether both are certainly the same value. A false negative only costs one more alternative.
    pub(crate) fn same(&self, other: &AbstractValue<'a>) -> bool {
        self.same_within(other, &mut 1_000)
    }

    /// Compares at most `fuel` parts.
    fn same_within(&self, other: &AbstractValue<'a>, fuel: &mut u32) -> bool {
        if *fuel == 0 {
            return false;
        }
        *fuel -= 1;
        let all = |a: &[AbstractValue<'a>], b: &[AbstractValue<'a>], fuel: &mut u32| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.same_within(b, fuel))
        };
        match (self, other) {
            (AbstractValue::Unknown, AbstractValue::Unknown)
            | (AbstractValue::Undefined, AbstractValue::Undefined)
            | (AbstractValue::Mcp, AbstractValue::Mcp)
            | (AbstractValue::Capabilities, AbstractValue::Capabilities) => true,
            (AbstractValue::Literal(a), AbstractValue::Literal(b)) => {
                Rc::ptr_eq(a, b) || (a.span == b.span && a == b)
            }
            (AbstractValue::Result(a, p), AbstractValue::Result(b, q))
            | (AbstractValue::Phi(a, p), AbstractValue::Phi(b, q)) => a == b && p == q,
            (AbstractValue::Parameter(p), AbstractValue::Parameter(q)) => p == q,
            (AbstractValue::Item(v, a, p), AbstractValue::Item(w, b, q)) => {
                a == b && p == q && (Rc::ptr_eq(v, w) || v.same_within(w, fuel))
            }
            (AbstractValue::Object(a), AbstractValue::Object(b)) => a == b,
            (AbstractValue::Record(a), AbstractValue::Record(b)) => Rc::ptr_eq(a, b),
            (AbstractValue::Template(a), AbstractValue::Template(b)) => Rc::ptr_eq(a, b),
            (AbstractValue::Computed(s, a), AbstractValue::Computed(t, b)) => {
                s == t && (Rc::ptr_eq(a, b) || all(a, b, fuel))
            }
            (AbstractValue::Function(a), AbstractValue::Function(b)) => Rc::ptr_eq(a, b),
            (AbstractValue::Class(a), AbstractValue::Class(b)) => Rc::ptr_eq(a, b),
            (AbstractValue::Global(a), AbstractValue::Global(b))
            | (AbstractValue::Server(a), AbstractValue::Server(b))
            | (AbstractValue::Capability(a), AbstractValue::Capability(b)) => a == b,
            (AbstractValue::Tool(s, t), AbstractValue::Tool(u, v)) => s == u && t == v,
            (AbstractValue::Promise(a, p), AbstractValue::Promise(b, q)) => {
                p == q && (Rc::ptr_eq(a, b) || a.same_within(b, fuel))
            }
            (AbstractValue::OneOf(a), AbstractValue::OneOf(b)) => Rc::ptr_eq(a, b) || all(a, b, fuel),
            _ => false,
        }
    }

    /// Cost of merging it with another: many alternatives are compared more slowly than few.
    pub(crate) fn width(&self) -> usize {
        match self {
            AbstractValue::Computed(_, values) | AbstractValue::OneOf(values) if values.len() > FEW => {
                4 * values.len()
            }
            AbstractValue::Computed(_, values) | AbstractValue::OneOf(values) => values.len(),
            AbstractValue::Template(parts) => parts.len(),
            AbstractValue::Result(_, path)
            | AbstractValue::Phi(_, path)
            | AbstractValue::Item(_, _, path)
            | AbstractValue::Parameter(path) => path.steps().len() / 2,
            _ => 0,
        }
    }

    /// A cheap hash: equal for equal values.
    fn fingerprint(&self) -> u64 {
        let mut hasher = FxHasher::default();
        std::mem::discriminant(self).hash(&mut hasher);
        match self {
            AbstractValue::Literal(literal) => literal.span.hash(&mut hasher),
            AbstractValue::Result(index, path)
            | AbstractValue::Phi(index, path)
            | AbstractValue::Item(_, index, path) => {
                (index, path).hash(&mut hasher);
            }
            AbstractValue::Parameter(path) => path.hash(&mut hasher),
            AbstractValue::Object(index) => index.hash(&mut hasher),
            AbstractValue::Record(record) => Rc::as_ptr(record).hash(&mut hasher),
            AbstractValue::Template(parts) => parts.as_ptr().hash(&mut hasher),
            AbstractValue::Computed(span, values) => (span, values.len()).hash(&mut hasher),
            AbstractValue::Function(closure) => Rc::as_ptr(closure).hash(&mut hasher),
            AbstractValue::Class(class) => Rc::as_ptr(class).hash(&mut hasher),
            AbstractValue::Global(name) | AbstractValue::Server(name) | AbstractValue::Capability(name) => {
                name.hash(&mut hasher);
            }
            AbstractValue::Tool(server, name) => (server, name).hash(&mut hasher),
            AbstractValue::Promise(_, pending) => pending.hash(&mut hasher),
            AbstractValue::OneOf(values) => values.len().hash(&mut hasher),
            AbstractValue::Unknown
            | AbstractValue::Undefined
            | AbstractValue::Mcp
            | AbstractValue::Capabilities => {}
        }
        hasher.finish()
    }
}

/// A list of values, inline for the usual one or two.
pub(crate) type ValueList<'a> = SmallVec<[AbstractValue<'a>; 2]>;

/// Distinct values, in the order of insertion.
#[derive(Debug, Default)]
pub(crate) struct DistinctValues<'a> {
    values: ValueList<'a>,
    /// Indices of values by fingerprint, once there are many.
    places: FxHashMap<u64, Vec<u32>>,
}

/// Number of values up to which a linear search is used.
const FEW: usize = 64;

impl<'a> DistinctValues<'a> {
    pub(crate) fn add(&mut self, value: &AbstractValue<'a>) {
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
        // Among many values that differ only deep inside, duplicates may remain.
        if !alike.iter().take(FEW).any(|index| self.values[*index as usize].same(value)) {
            alike.push(self.values.len() as u32);
            self.values.push(value.clone());
        }
    }

    pub(crate) fn into_values(self) -> ValueList<'a> {
        self.values
    }

    /// The values as a shared slice.
    pub(crate) fn shared(mut self) -> Rc<[AbstractValue<'a>]> {
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

    /// One of the values, depending on the path.
    pub(crate) fn one_of(mut self) -> AbstractValue<'a> {
        match self.values.len() {
            0 => AbstractValue::Unknown,
            1 => self.values.remove(0),
            _ => AbstractValue::OneOf(self.shared()),
        }
    }
}

/// One of these values, depending on the path.
pub(crate) fn one_of<'a>(values: impl IntoIterator<Item = AbstractValue<'a>>) -> AbstractValue<'a> {
    let mut values = values.into_iter();
    let Some(first) = values.next() else { return AbstractValue::Unknown };
    // Most of the time all of them are equal.
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
            AbstractValue::OneOf(inner) if kept.values.is_empty() => {
                kept.values.extend(inner.iter().cloned());
            }
            AbstractValue::OneOf(inner) => inner.iter().for_each(|value| kept.add(value)),
            value => kept.add(&value),
        }
    }
    kept.one_of()
}

/// Name of a member as written.
pub(crate) fn key_name(key: &PathStep) -> Cow<'_, str> {
    match key {
        PathStep::Key(name) => name.as_str().into(),
        PathStep::Index(index) => index.to_string().into(),
        PathStep::Any => "*".into(),
    }
}
