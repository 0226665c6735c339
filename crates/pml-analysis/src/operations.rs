//! Registry of the built-in operations without side effects, and how they treat their operands.
//!
//! Lookup is by name only: whether a receiver really is an array, a value really is fresh or a callback calls a tool is
//! for the caller to find out. Functions that depend on chance, the clock or the environment (`Math.random`,
//! `Date.now`, `console`, timers), define properties or reflect are not listed.

use std::ops::BitOr;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

/// Requirements, effect and result of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationSpec {
    /// `filter`, `Object.keys`, `parseInt`: the part after `code:` in the name of its pseudo-tool.
    pub(crate) name: &'static str,
    /// Whether it changes its subject.
    pub(crate) purity: Purity,
    /// Required kind of its subject: the receiver of a method, the first argument of a function.
    pub(crate) receiver: ValueKinds,
    /// Whether something else refers to its result.
    pub(crate) result_owner: ResultOwner,
    /// The callback argument, if it takes one.
    pub(crate) callback: Option<OperationCallback>,
}

/// Whether an operation changes its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purity {
    /// It only reads its subject.
    Pure,
    /// It changes its subject. That is unobservable only if the subject is fresh: nothing else refers to it.
    PureOnFresh,
}

/// Whether something else refers to the result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultOwner {
    /// Nothing: a new array, object, map or set (its contents may be shared), or an immutable value.
    New,
    /// The result is the subject itself: as fresh as that was.
    Subject,
    /// Something else: an element, a member, or what a callback returned.
    Held,
}

/// A callback argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationCallback {
    /// Index of the argument, from 0.
    pub(crate) argument: usize,
    /// Meaning of its parameters.
    pub(crate) parameters: CallbackParameters,
}

/// Meaning of the parameters of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallbackParameters {
    /// `(item, index or key, subject)`, once for each item of the subject.
    Each,
    /// `(accumulator, item, index, subject)`; the accumulator begins as the argument after the callback.
    Reduce,
    /// `(item, item)`: two items to compare.
    Compare,
    /// `(match, …groups, offset, subject)`: pieces of the text that is the subject.
    Match,
    /// `(key, value)`: every member within the subject.
    Member,
}

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueKinds(u16);

impl ValueKinds {
    /// Arrays.
    pub(crate) const ARRAY: ValueKinds = ValueKinds(1);
    /// Text.
    pub(crate) const STRING: ValueKinds = ValueKinds(1 << 1);
    /// Numbers, big integers included.
    pub(crate) const NUMBER: ValueKinds = ValueKinds(1 << 2);
    /// Other objects.
    pub(crate) const OBJECT: ValueKinds = ValueKinds(1 << 4);
    /// Regular expressions.
    pub(crate) const REGEXP: ValueKinds = ValueKinds(1 << 5);
    /// Maps.
    pub(crate) const MAP: ValueKinds = ValueKinds(1 << 6);
    /// Sets.
    pub(crate) const SET: ValueKinds = ValueKinds(1 << 7);
    /// Results of `keys()`, `entries()` and `matchAll()`.
    pub(crate) const ITERATOR: ValueKinds = ValueKinds(1 << 8);
    /// `null` and `undefined`.
    pub(crate) const NOTHING: ValueKinds = ValueKinds(1 << 9);
    /// All kinds.
    pub(crate) const ANY: ValueKinds = ValueKinds((1 << 10) - 1);

    /// Whether a value of `self` certainly is one of `other`.
    pub(crate) const fn is(self, other: ValueKinds) -> bool {
        self.0 & !other.0 == 0 && self.0 != 0
    }

    /// The kinds among JSON values, which have no maps, sets and iterators.
    pub(crate) const fn in_json(self) -> ValueKinds {
        ValueKinds(
            self.0
                & (ValueKinds::ARRAY.0 | ValueKinds::STRING.0 | ValueKinds::NUMBER.0 | ValueKinds::OBJECT.0),
        )
    }

    const fn or(self, other: ValueKinds) -> ValueKinds {
        ValueKinds(self.0 | other.0)
    }
}

impl BitOr for ValueKinds {
    type Output = ValueKinds;

    fn bitor(self, other: ValueKinds) -> ValueKinds {
        self.or(other)
    }
}

impl OperationSpec {
    /// Whether nothing else refers to the result, depending on whether the subject is fresh.
    pub(crate) const fn is_fresh(&self, subject_is_fresh: bool) -> bool {
        match self.result_owner {
            ResultOwner::New => true,
            ResultOwner::Subject => subject_is_fresh,
            ResultOwner::Held => false,
        }
    }

    /// Whether it has no side effect, depending on whether the subject is fresh.
    pub(crate) const fn is_pure(&self, subject_is_fresh: bool) -> bool {
        match self.purity {
            Purity::Pure => true,
            Purity::PureOnFresh => subject_is_fresh,
        }
    }

    const fn held(mut self) -> OperationSpec {
        self.result_owner = ResultOwner::Held;
        self
    }

    const fn subject(mut self) -> OperationSpec {
        self.result_owner = ResultOwner::Subject;
        self
    }

    const fn calls(mut self, argument: usize, binds: CallbackParameters) -> OperationSpec {
        self.callback = Some(OperationCallback { argument, parameters: binds });
        self
    }

    const fn each(self) -> OperationSpec {
        self.calls(0, CallbackParameters::Each)
    }
}

/// The operation of `subject.name(…)`, if any. Check its `receiver` against the subject.
pub(crate) fn method_operation(name: &str) -> Option<&'static OperationSpec> {
    static BY_NAME: LazyLock<FxHashMap<&str, &OperationSpec>> =
        LazyLock::new(|| METHODS.iter().map(|operation| (operation.name, operation)).collect());
    BY_NAME.get(name).copied()
}

/// The operation of `object.name(…)`, where `object` is a global such as `Object` or `Math`.
pub(crate) fn function_operation(object: &str, name: &str) -> Option<&'static OperationSpec> {
    static BY_NAME: LazyLock<FxHashMap<(&str, &str), &OperationSpec>> = LazyLock::new(|| {
        FUNCTIONS.iter().filter_map(|operation| Some((operation.name.split_once('.')?, operation))).collect()
    });
    BY_NAME.get(&(object, name)).copied()
}

/// The operation of `name(…)`, where `name` is a global function.
pub(crate) fn global_operation(name: &str) -> Option<&'static OperationSpec> {
    find(GLOBALS, name)
}

/// Whether a pseudo-tool such as `code:filter`, `code:Math.max` or `code:add` has no side effect. A task of a DAG
/// document receives values of its own, so an operation that changes its subject has none either.
///
/// This concerns the name only: a task with its own `code` must be analysed.
pub fn is_pure_tool(tool: &str) -> bool {
    let Some(name) = tool.strip_prefix("code:") else { return false };
    match name.split_once('.') {
        Some((object, name)) => function_operation(object, name).is_some(),
        None => {
            method_operation(name).is_some()
                || global_operation(name).is_some()
                || OPERATORS.binary_search(&name).is_ok()
        }
    }
}

fn find(table: &'static [OperationSpec], name: &str) -> Option<&'static OperationSpec> {
    table.binary_search_by(|operation| operation.name.cmp(name)).ok().map(|index| &table[index])
}

/// An operation that only reads its subject and returns something new.
const fn reads(name: &'static str, receiver: ValueKinds) -> OperationSpec {
    OperationSpec { name, purity: Purity::Pure, receiver, result_owner: ResultOwner::New, callback: None }
}

/// An operation that changes its subject.
const fn changes(name: &'static str, receiver: ValueKinds) -> OperationSpec {
    OperationSpec {
        name,
        purity: Purity::PureOnFresh,
        receiver,
        result_owner: ResultOwner::New,
        callback: None,
    }
}

/// A function of `Math`.
const fn math(name: &'static str) -> OperationSpec {
    reads(name, NUMBER)
}

const ARRAY: ValueKinds = ValueKinds::ARRAY;
const STRING: ValueKinds = ValueKinds::STRING;
const NUMBER: ValueKinds = ValueKinds::NUMBER;
const OBJECT: ValueKinds = ValueKinds::OBJECT;
const REGEXP: ValueKinds = ValueKinds::REGEXP;
const MAP: ValueKinds = ValueKinds::MAP;
const SET: ValueKinds = ValueKinds::SET;
const ITERATOR: ValueKinds = ValueKinds::ITERATOR;
const NOTHING: ValueKinds = ValueKinds::NOTHING;
const ANY: ValueKinds = ValueKinds::ANY;
/// Kinds that `for … of` iterates over.
const ITERABLE: ValueKinds = ARRAY.or(STRING).or(MAP).or(SET).or(ITERATOR);
/// Kinds with named members.
const KEYED: ValueKinds = OBJECT.or(ARRAY).or(STRING);

/// Sorted by name. A name that several kinds share is listed once, with all of them as receivers.
static METHODS: &[OperationSpec] = &[
    changes("add", SET).subject(),
    reads("at", ARRAY.or(STRING)).held(),
    reads("charAt", STRING),
    reads("charCodeAt", STRING),
    changes("clear", MAP.or(SET)),
    reads("codePointAt", STRING),
    reads("concat", ARRAY.or(STRING)),
    changes("copyWithin", ARRAY).subject(),
    changes("delete", MAP.or(SET)),
    reads("difference", SET),
    reads("endsWith", STRING),
    reads("entries", ARRAY.or(MAP).or(SET)),
    reads("every", ARRAY).each(),
    // With the flags `g` and `y` it changes `lastIndex`.
    changes("exec", REGEXP),
    changes("fill", ARRAY).subject(),
    reads("filter", ARRAY).each(),
    reads("find", ARRAY).held().each(),
    reads("findIndex", ARRAY).each(),
    reads("findLast", ARRAY).held().each(),
    reads("findLastIndex", ARRAY).each(),
    reads("flat", ARRAY),
    reads("flatMap", ARRAY).each(),
    reads("forEach", ARRAY.or(MAP).or(SET)).each(),
    reads("get", MAP).held(),
    reads("has", MAP.or(SET)),
    reads("hasOwnProperty", KEYED),
    reads("includes", ARRAY.or(STRING)),
    reads("indexOf", ARRAY.or(STRING)),
    reads("intersection", SET),
    reads("isDisjointFrom", SET),
    reads("isPrototypeOf", OBJECT),
    reads("isSubsetOf", SET),
    reads("isSupersetOf", SET),
    reads("isWellFormed", STRING),
    reads("join", ARRAY),
    reads("keys", ARRAY.or(MAP).or(SET)),
    reads("lastIndexOf", ARRAY.or(STRING)),
    reads("localeCompare", STRING),
    reads("map", ARRAY).each(),
    reads("match", STRING),
    reads("matchAll", STRING),
    reads("normalize", STRING),
    reads("padEnd", STRING),
    reads("padStart", STRING),
    changes("pop", ARRAY).held(),
    reads("propertyIsEnumerable", KEYED),
    changes("push", ARRAY),
    reads("reduce", ARRAY).held().calls(0, CallbackParameters::Reduce),
    reads("reduceRight", ARRAY).held().calls(0, CallbackParameters::Reduce),
    reads("repeat", STRING),
    reads("replace", STRING).calls(1, CallbackParameters::Match),
    reads("replaceAll", STRING).calls(1, CallbackParameters::Match),
    changes("reverse", ARRAY).subject(),
    reads("search", STRING),
    changes("set", MAP).subject(),
    changes("shift", ARRAY).held(),
    reads("slice", ARRAY.or(STRING)),
    reads("some", ARRAY).each(),
    changes("sort", ARRAY).subject().calls(0, CallbackParameters::Compare),
    changes("splice", ARRAY),
    reads("split", STRING),
    reads("startsWith", STRING),
    reads("substr", STRING),
    reads("substring", STRING),
    reads("symmetricDifference", SET),
    // Like `exec`.
    changes("test", REGEXP),
    reads("toExponential", NUMBER),
    reads("toFixed", NUMBER),
    reads("toLocaleLowerCase", STRING),
    reads("toLocaleString", NUMBER.or(ARRAY)),
    reads("toLocaleUpperCase", STRING),
    reads("toLowerCase", STRING),
    reads("toPrecision", NUMBER),
    reads("toReversed", ARRAY),
    reads("toSorted", ARRAY).calls(0, CallbackParameters::Compare),
    reads("toSpliced", ARRAY),
    reads("toString", ANY),
    reads("toUpperCase", STRING),
    reads("toWellFormed", STRING),
    reads("trim", STRING),
    reads("trimEnd", STRING),
    reads("trimLeft", STRING),
    reads("trimRight", STRING),
    reads("trimStart", STRING),
    reads("union", SET),
    changes("unshift", ARRAY),
    reads("valueOf", ANY).subject(),
    reads("values", ARRAY.or(MAP).or(SET)),
    reads("with", ARRAY),
];

/// Sorted by object, then name. The receiver is the first argument.
static FUNCTIONS: &[OperationSpec] = &[
    reads("Array.from", ITERABLE.or(OBJECT)).calls(1, CallbackParameters::Each),
    reads("Array.isArray", ANY),
    reads("Array.of", ANY),
    reads("BigInt.asIntN", NUMBER),
    reads("BigInt.asUintN", NUMBER),
    reads("JSON.parse", STRING).calls(1, CallbackParameters::Member),
    reads("JSON.stringify", ANY).calls(1, CallbackParameters::Member),
    reads("Map.groupBy", ITERABLE).calls(1, CallbackParameters::Each),
    math("Math.abs"),
    math("Math.acos"),
    math("Math.acosh"),
    math("Math.asin"),
    math("Math.asinh"),
    math("Math.atan"),
    math("Math.atan2"),
    math("Math.atanh"),
    math("Math.cbrt"),
    math("Math.ceil"),
    math("Math.clz32"),
    math("Math.cos"),
    math("Math.cosh"),
    math("Math.exp"),
    math("Math.expm1"),
    math("Math.f16round"),
    math("Math.floor"),
    math("Math.fround"),
    math("Math.hypot"),
    math("Math.imul"),
    math("Math.log"),
    math("Math.log10"),
    math("Math.log1p"),
    math("Math.log2"),
    math("Math.max"),
    math("Math.min"),
    math("Math.pow"),
    math("Math.round"),
    math("Math.sign"),
    math("Math.sin"),
    math("Math.sinh"),
    math("Math.sqrt"),
    math("Math.sumPrecise"),
    math("Math.tan"),
    math("Math.tanh"),
    math("Math.trunc"),
    reads("Number.isFinite", ANY),
    reads("Number.isInteger", ANY),
    reads("Number.isNaN", ANY),
    reads("Number.isSafeInteger", ANY),
    reads("Number.parseFloat", ANY),
    reads("Number.parseInt", ANY),
    changes("Object.assign", ANY).subject(),
    reads("Object.create", OBJECT.or(NOTHING)),
    reads("Object.entries", KEYED),
    changes("Object.freeze", ANY).subject(),
    reads("Object.fromEntries", ITERABLE),
    reads("Object.getOwnPropertyDescriptor", KEYED),
    reads("Object.getOwnPropertyDescriptors", KEYED),
    reads("Object.getOwnPropertyNames", KEYED),
    reads("Object.getOwnPropertySymbols", KEYED),
    reads("Object.getPrototypeOf", ANY).held(),
    reads("Object.groupBy", ITERABLE).calls(1, CallbackParameters::Each),
    reads("Object.hasOwn", KEYED),
    reads("Object.is", ANY),
    reads("Object.isExtensible", ANY),
    reads("Object.isFrozen", ANY),
    reads("Object.isSealed", ANY),
    reads("Object.keys", KEYED),
    changes("Object.preventExtensions", ANY).subject(),
    changes("Object.seal", ANY).subject(),
    reads("Object.values", KEYED),
    reads("RegExp.escape", STRING),
    reads("String.fromCharCode", NUMBER),
    reads("String.fromCodePoint", NUMBER),
    reads("String.raw", OBJECT),
];

/// Sorted by name. The receiver is the first argument.
static GLOBALS: &[OperationSpec] = &[
    reads("Array", ANY),
    reads("BigInt", ANY),
    reads("Boolean", ANY),
    reads("Number", ANY),
    reads("String", ANY),
    reads("atob", STRING),
    reads("btoa", STRING),
    reads("decodeURI", STRING),
    reads("decodeURIComponent", STRING),
    reads("encodeURI", ANY),
    reads("encodeURIComponent", ANY),
    reads("escape", ANY),
    reads("isFinite", ANY),
    reads("isNaN", ANY),
    reads("parseFloat", ANY),
    reads("parseInt", ANY),
    reads("structuredClone", ANY),
    reads("unescape", STRING),
];

/// Operators, sorted. They make no nodes in programs; DAG documents may name them.
static OPERATORS: &[&str] = &[
    "add",
    "and",
    "bitwiseAnd",
    "bitwiseNot",
    "bitwiseOr",
    "bitwiseXor",
    "conditional",
    "divide",
    "equal",
    "greaterThan",
    "greaterThanOrEqual",
    "in",
    "instanceof",
    "leftShift",
    "lessThan",
    "lessThanOrEqual",
    "modulo",
    "multiply",
    "negate",
    "not",
    "notEqual",
    "nullish",
    "or",
    "power",
    "rightShift",
    "strictEqual",
    "strictNotEqual",
    "subtract",
    "template",
    "typeof",
    "unsignedRightShift",
];

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn every_operation_is_found_by_its_name() {
        for operation in METHODS {
            assert_eq!(method_operation(operation.name), Some(operation));
        }
        for operation in FUNCTIONS {
            let (object, name) = operation.name.split_once('.').expect("functions belong to an object");
            assert_eq!(function_operation(object, name), Some(operation));
        }
        for operation in GLOBALS {
            assert_eq!(global_operation(operation.name), Some(operation));
        }
        let names = METHODS.iter().chain(FUNCTIONS).chain(GLOBALS).map(|operation| operation.name);
        for name in names.chain(OPERATORS.iter().copied()) {
            assert!(is_pure_tool(&format!("code:{name}")), "{name}");
        }
        assert!(METHODS.len() + FUNCTIONS.len() + GLOBALS.len() + OPERATORS.len() > 200);
    }

    #[test]
    fn chance_clock_world_and_reflection_are_not_operations() {
        for (object, name) in [
            ("Math", "random"),
            ("Date", "now"),
            ("console", "log"),
            ("crypto", "randomUUID"),
            ("Object", "defineProperty"),
            ("Object", "setPrototypeOf"),
            ("Reflect", "set"),
            ("Promise", "all"),
            ("Array", "fromAsync"),
        ] {
            assert_eq!(function_operation(object, name), None);
            assert!(!is_pure_tool(&format!("code:{object}.{name}")));
        }
        for name in ["setTimeout", "fetch", "eval", "Function", "require", "Symbol", "execute", ""] {
            assert_eq!((method_operation(name), global_operation(name)), (None, None));
            assert!(!is_pure_tool(&format!("code:{name}")));
        }
        for tool in
            ["fs:filter", "filter", "code", "code:", "code:Math", "code:Math.", "code:.max", "code:max"]
        {
            assert!(!is_pure_tool(tool), "{tool}");
        }
    }

    #[test]
    fn what_changes_its_subject_is_pure_only_on_a_fresh_one() {
        let changing = METHODS.iter().chain(FUNCTIONS).chain(GLOBALS).filter(|it| !it.is_pure(false));
        let names: Vec<_> = changing.map(|it| it.name).collect();
        let expected = expect![[
            r#"add clear copyWithin delete exec fill pop push reverse set shift sort splice test unshift Object.assign Object.freeze Object.preventExtensions Object.seal"#
        ]];
        expected.assert_eq(&names.join(" "));
        assert!(METHODS.iter().chain(FUNCTIONS).chain(GLOBALS).all(|it| it.is_pure(true)));
    }

    #[test]
    fn shared_names_have_all_their_subjects() {
        let slice = method_operation("slice").expect("slice is an operation");
        assert_eq!(slice.receiver, ValueKinds::ARRAY | ValueKinds::STRING);
        assert!(ValueKinds::STRING.is(slice.receiver) && !ValueKinds::ANY.is(slice.receiver));
    }

    #[test]
    fn freshness_is_passed_on_by_what_returns_its_subject() {
        let sort = method_operation("sort").expect("sort is an operation");
        assert!(sort.is_fresh(true) && !sort.is_fresh(false));
        assert!(method_operation("filter").is_some_and(|it| it.is_fresh(false)));
        assert!(method_operation("find").is_some_and(|it| !it.is_fresh(true)));
    }

    #[test]
    fn callbacks_and_what_they_are_given() {
        let calling = METHODS.iter().chain(FUNCTIONS).chain(GLOBALS);
        let lines: Vec<String> = calling
            .filter_map(|it| {
                it.callback.map(|call| format!("{} {}:{:?}", it.name, call.argument, call.parameters))
            })
            .collect();
        check(
            &lines,
            &expect![[r#"
                every 0:Each
                filter 0:Each
                find 0:Each
                findIndex 0:Each
                findLast 0:Each
                findLastIndex 0:Each
                flatMap 0:Each
                forEach 0:Each
                map 0:Each
                reduce 0:Reduce
                reduceRight 0:Reduce
                replace 1:Match
                replaceAll 1:Match
                some 0:Each
                sort 0:Compare
                toSorted 0:Compare
                Array.from 1:Each
                JSON.parse 1:Member
                JSON.stringify 1:Member
                Map.groupBy 1:Each
                Object.groupBy 1:Each
            "#]],
        );
    }

    #[track_caller]
    fn check(lines: &[String], expected: &Expect) {
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }
}
