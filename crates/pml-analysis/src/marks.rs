//! Probe marks: the contract between the walk, which finds the structure, and the emitter of the program that runs.
//!
//! Places are identified by kind and span, because the tree is changed between the two. The emitted program talks to
//! one object, here `P`:
//!
//! | in the program | emitted | means |
//! |---|---|---|
//! | a call of a tool `f(a)` | `f(a, ...P.at(point, ctx))` | the next tool call comes from `point`; adds no argument |
//! | a followed call `g(a)` | `g(a, ...P.enter(point, ctx))` | the function entered next has the context this leads to |
//! | a followed function handed on by its name, `x.map(g)` | `x.map((g, (...a) => g(...a, ...P.enter(point, ctx))))` | every call of it from here has the context this leads to |
//! | a followed function | `const C = P.take(function, outer); …` | the context of this activation; `outer`, that of the code around it, when nothing entered it |
//! | `if (c)`, `c ? a : b`, `c && a`, <code>c \|\| a</code> | `P.is(point, c, ctx)` | the value, its truth reported |
//! | `c ?? a`, `c?.m()` | `P.has(point, c, ctx)` | the value; reported whether it is null or undefined |
//! | `o.m?.(x)` | `P.bound(point, o, "m", ctx)?.(x)` | reads `o.m` and reports as `has` does; a function is given back so that `this` is still `o` |
//! | `c ??= a`, `c &&= a`, <code>c \|\|= a</code> | `c ??= (P.has(point, null, ctx), a)` | only the outcome with which `a` is evaluated is reported |
//! | `switch` case *i* | `P.case(point, i, ctx)` once, at the case that matched; the number of cases when none did | |
//! | a call of one of a table of functions, `t[k](a)` | `t[((k) => (k === "x" ? P.case(point, 0, ctx) : …, k))(k)](a)` | as for a `switch`; when the table has no such key, `t[k]?.(a)` reports the number of keys and `t[k](a)` nothing |
//! | a loop | `P.loop(point, ctx)` before, `P.turn(point, ctx)` first in its body | |
//! | a callback that loops | `P.turn(point, ctx)` first in its body | |
//! | `catch` | `P.caught(point, ctx)` first in the handler | |
//! | an operation `a.f(x)` | `P.did(point, a.f(P.does(point, x, ctx)), ctx)` | the value; it happened, and began when `x` was evaluated |
//! | one without arguments, `a.f()` | `P.did(point, P.does(point, a, ctx).f(), ctx)`; `P.did(point, P.does(point, f, ctx)(), ctx)` of `f()` | the same |
//! | an operation that an optional chain may not come to, `a?.f(x)` | `a?.f(x, ...P.doing(point, ctx))` | it happens now; adds no argument |
//! | a chain that ends with it | `P.got(P.may(point, ctx), a?.f(x, ...P.doing(point, ctx)))` | the value; it is the operation's if that happened since `may` |
//! | `Promise.all(x)` | `Promise.all(P.fork(point, x, ctx))` | the value; the fork begins |
//!
//! `ctx` is omitted where it is 0. `case` returns nothing, which keeps it from being called again in the same `switch`.
//! Inserted variables are named after points and function numbers, so their names are unique.
//!
//! In a chain with several `?.` a test that stands inside another one is `P.has(point, a, ctx, true)` or
//! `P.bound(point, o, key, ctx, true)`. When it finds nothing the chain has ended: the next probe is the
//! test further out, and that one reports nothing and gives back undefined, reading nothing; if it has
//! `true` itself, the same holds for the next. `point` is `null` where only the test further out is marked.
//! Marks are passed over where nothing can be tested without changing the program: `o.#m?.()`,
//! `super.m?.()`, `(a?.m)?.()`, a computed key behind a `?.` as in `a?.[k]?.()`, and every `?.` further out
//! in such a chain; and `Promise.all` without a first argument or with a spread one.
//!
//! Default values of parameters have the context of the code around the function. A generator takes its
//! context when its first value is asked for, which is right when that directly follows its call.

use rustc_hash::FxHashMap as HashMap;

use oxc_span::Span;

/// Kind of place of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ProbePlace {
    /// `CallExpression` of a tool or capability: `at`.
    Call,
    /// `CallExpression` or `NewExpression` of a followed local function, or its name among the arguments of a
    /// `CallExpression`: `enter`.
    Enter,
    /// `IfStatement`, `ConditionalExpression` or `LogicalExpression` with `&&`, `||`: `is` around the test (left side).
    Test,
    /// `LogicalExpression` with `??`: `has` around the left side.
    Nullish,
    /// `AssignmentExpression` with `&&=`, `||=`, `??=`: `is` or `has` before the right side, when it is evaluated.
    Assign,
    /// An optional `CallExpression` or member expression (`optional: true`): `has` around what is tested.
    Optional,
    /// `SwitchStatement`, or `ComputedMemberExpression` that is called: `case`.
    Switch,
    /// A loop statement: `loop` and `turn`.
    Loop,
    /// A function or arrow used as a looping callback, or a recursive function: `turn` first in its body.
    Turn,
    /// `TryStatement` with a handler: `caught`.
    Catch,
    /// `CallExpression` of a pure operation: `does` and `did`, or `doing`, with `may` and `got` where a chain ends with
    /// it.
    Operation,
    /// `CallExpression` of `Promise.all` and the like: `fork` around its first argument.
    Fork,
}

/// A followed function or arrow function: takes its context when it is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FollowedFunction {
    /// Number of the function in the program.
    pub(crate) function: u32,
}

/// A table of functions, one of which is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionTable {
    /// The keys of the table.
    pub(crate) keys: Vec<String>,
    /// Whether the call is skipped when the table has no such key.
    pub(crate) optional: bool,
}

/// All marks of a program.
#[derive(Debug, Default)]
pub(crate) struct ProbeMarks {
    /// From place and span to probe point.
    pub(crate) points: HashMap<(ProbePlace, Span), u32>,
    /// From the span of a `Function` or `ArrowFunctionExpression` to its number.
    pub(crate) followed: HashMap<Span, FollowedFunction>,
    /// From the span of a `ComputedMemberExpression` marked as a [`ProbePlace::Switch`] to its table.
    pub(crate) tables: HashMap<Span, FunctionTable>,
    /// From the span of a lifted literal to the index of its parameter. Identity leaves these literals out.
    pub(crate) lifted: HashMap<Span, u32>,
}
