//! The operations of the language that have no effect of their own, and how they treat what they are given.
//!
//! A registry by name only: whether a receiver really is an array, a value really is fresh or a
//! callback calls a tool is for the caller to find out. What draws on chance, the clock or the world
//! (`Math.random`, `Date.now`, `console`, timers), defines properties or reflects is not here.

use std::ops::BitOr;

/// What one operation needs, does and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    /// `filter`, `Object.keys`, `parseInt`: what follows `code:` in the name of its pseudo-tool.
    pub(crate) name: &'static str,
    /// Whether it leaves its subject alone.
    pub(crate) purity: Purity,
    /// What its subject must be: the receiver of a method, the first argument of a function.
    pub(crate) receiver: Kind,
    /// What it gives; see [`Operation::result_on`].
    pub(crate) result: Kind,
    /// Who else holds what it gives.
    pub(crate) gives: Gives,
    /// The argument it calls, where it takes one.
    pub(crate) callback: Option<Callback>,
}

/// Whether an operation leaves its subject alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purity {
    /// It does.
    Pure,
    /// It changes its subject, which nobody notices only when nobody else holds it.
    PureOnFresh,
}

/// Who else holds the result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    /// Nobody: a new array, object, map or set (what is inside may be shared), or a value that cannot change.
    New,
    /// It is the subject itself: as fresh as that was.
    Subject,
    /// Something held elsewhere: an element, a member, or what a callback returned.
    Held,
}

/// An argument that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Callback {
    /// Which argument, from 0.
    pub(crate) argument: usize,
    /// What its parameters are.
    pub(crate) binds: Binds,
}

/// What the parameters of a callback are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binds {
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

/// A set of the kinds of value something can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind(u16);

impl Kind {
    /// Arrays.
    pub(crate) const ARRAY: Kind = Kind(1);
    /// Text.
    pub(crate) const STRING: Kind = Kind(1 << 1);
    /// Numbers, big integers included.
    pub(crate) const NUMBER: Kind = Kind(1 << 2);
    /// `true` and `false`.
    pub(crate) const BOOLEAN: Kind = Kind(1 << 3);
    /// Other objects.
    pub(crate) const OBJECT: Kind = Kind(1 << 4);
    /// Regular expressions.
    pub(crate) const REGEXP: Kind = Kind(1 << 5);
    /// Maps.
    pub(crate) const MAP: Kind = Kind(1 << 6);
    /// Sets.
    pub(crate) const SET: Kind = Kind(1 << 7);
    /// What `keys()`, `entries()` and `matchAll()` give.
    pub(crate) const ITERATOR: Kind = Kind(1 << 8);
    /// `null` and `undefined`.
    pub(crate) const NOTHING: Kind = Kind(1 << 9);
    /// Whatever the subject is. Only in [`Operation::result`].
    const SAME: Kind = Kind(1 << 15);
    /// All of them.
    pub(crate) const ANY: Kind = Kind((1 << 10) - 1);

    /// Whether a value of `self` can be one of `other`.
    pub(crate) const fn can_be(self, other: Kind) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a value of `self` certainly is one of `other`.
    pub(crate) const fn is(self, other: Kind) -> bool {
        self.0 & !other.0 == 0 && self.0 != 0
    }

    const fn and(self, other: Kind) -> Kind {
        Kind(self.0 & other.0)
    }

    const fn or(self, other: Kind) -> Kind {
        Kind(self.0 | other.0)
    }
}

impl BitOr for Kind {
    type Output = Kind;

    fn bitor(self, other: Kind) -> Kind {
        self.or(other)
    }
}

impl Operation {
    /// What it gives when its subject is of this kind: `slice` gives text for text, an array for an array.
    pub(crate) const fn result_on(&self, subject: Kind) -> Kind {
        if self.result.can_be(Kind::SAME) { subject.and(self.receiver) } else { self.result }
    }

    /// Whether nobody else holds what it gives, given whether anybody else holds its subject.
    pub(crate) const fn is_fresh(&self, subject_is_fresh: bool) -> bool {
        match self.gives {
            Gives::New => true,
            Gives::Subject => subject_is_fresh,
            Gives::Held => false,
        }
    }

    /// Whether it has no effect, given whether anybody else holds its subject.
    pub(crate) const fn is_pure(&self, subject_is_fresh: bool) -> bool {
        match self.purity {
            Purity::Pure => true,
            Purity::PureOnFresh => subject_is_fresh,
        }
    }

    const fn held(mut self) -> Operation {
        self.gives = Gives::Held;
        self
    }

    const fn subject(mut self) -> Operation {
        self.gives = Gives::Subject;
        self
    }

    const fn calls(mut self, argument: usize, binds: Binds) -> Operation {
        self.callback = Some(Callback { argument, binds });
        self
    }

    const fn each(self) -> Operation {
        self.calls(0, Binds::Each)
    }
}

/// The operation that `subject.name(…)` is, if it is one. Ask its `receiver` whether the subject can be meant.
pub(crate) fn method(name: &str) -> Option<&'static Operation> {
    find(METHODS, name)
}

/// The operation that `object.name(…)` is, where `object` is a global such as `Object` or `Math`.
pub(crate) fn function(object: &str, name: &str) -> Option<&'static Operation> {
    let index = FUNCTIONS.binary_search_by(|operation| {
        let (its_object, its_name) = operation.name.split_once('.').unwrap_or((operation.name, ""));
        its_object.cmp(object).then_with(|| its_name.cmp(name))
    });
    index.ok().map(|index| &FUNCTIONS[index])
}

/// The operation that `name(…)` is, where `name` is the global function of that name.
pub(crate) fn global(name: &str) -> Option<&'static Operation> {
    find(GLOBALS, name)
}

/// Whether a pseudo-tool such as `code:filter`, `code:Math.max` or `code:add` has no effect. A task of
/// a DAG document is handed values of its own, so one that changes its subject has none either.
///
/// This is about the name: a task that brings its own `code` must be analysed to know what it does.
pub fn is_pure_tool(tool: &str) -> bool {
    let Some(name) = tool.strip_prefix("code:") else { return false };
    match name.split_once('.') {
        Some((object, name)) => function(object, name).is_some(),
        None => method(name).is_some() || global(name).is_some() || OPERATORS.binary_search(&name).is_ok(),
    }
}

fn find(table: &'static [Operation], name: &str) -> Option<&'static Operation> {
    table.binary_search_by(|operation| operation.name.cmp(name)).ok().map(|index| &table[index])
}

/// Leaves its subject alone and gives something new.
const fn reads(name: &'static str, receiver: Kind, result: Kind) -> Operation {
    Operation { name, purity: Purity::Pure, receiver, result, gives: Gives::New, callback: None }
}

/// Changes its subject.
const fn changes(name: &'static str, receiver: Kind, result: Kind) -> Operation {
    Operation { name, purity: Purity::PureOnFresh, receiver, result, gives: Gives::New, callback: None }
}

/// A function of `Math`.
const fn math(name: &'static str) -> Operation {
    reads(name, NUMBER, NUMBER)
}

const ARRAY: Kind = Kind::ARRAY;
const STRING: Kind = Kind::STRING;
const NUMBER: Kind = Kind::NUMBER;
const BOOLEAN: Kind = Kind::BOOLEAN;
const OBJECT: Kind = Kind::OBJECT;
const REGEXP: Kind = Kind::REGEXP;
const MAP: Kind = Kind::MAP;
const SET: Kind = Kind::SET;
const ITERATOR: Kind = Kind::ITERATOR;
const NOTHING: Kind = Kind::NOTHING;
const SAME: Kind = Kind::SAME;
const ANY: Kind = Kind::ANY;
/// What `for … of` goes through.
const ITERABLE: Kind = ARRAY.or(STRING).or(MAP).or(SET).or(ITERATOR);
/// What has members by name.
const KEYED: Kind = OBJECT.or(ARRAY).or(STRING);

/// Sorted by name. A name that several kinds share stands once, with all of them as receivers.
static METHODS: &[Operation] = &[
    changes("add", SET, SAME).subject(),
    reads("at", ARRAY.or(STRING), ANY).held(),
    reads("charAt", STRING, STRING),
    reads("charCodeAt", STRING, NUMBER),
    changes("clear", MAP.or(SET), NOTHING),
    reads("codePointAt", STRING, NUMBER.or(NOTHING)),
    reads("concat", ARRAY.or(STRING), SAME),
    changes("copyWithin", ARRAY, SAME).subject(),
    changes("delete", MAP.or(SET), BOOLEAN),
    reads("difference", SET, SET),
    reads("endsWith", STRING, BOOLEAN),
    reads("entries", ARRAY.or(MAP).or(SET), ITERATOR),
    reads("every", ARRAY, BOOLEAN).each(),
    // With the flags `g` and `y` it moves `lastIndex`.
    changes("exec", REGEXP, ARRAY.or(NOTHING)),
    changes("fill", ARRAY, SAME).subject(),
    reads("filter", ARRAY, ARRAY).each(),
    reads("find", ARRAY, ANY).held().each(),
    reads("findIndex", ARRAY, NUMBER).each(),
    reads("findLast", ARRAY, ANY).held().each(),
    reads("findLastIndex", ARRAY, NUMBER).each(),
    reads("flat", ARRAY, ARRAY),
    reads("flatMap", ARRAY, ARRAY).each(),
    reads("forEach", ARRAY.or(MAP).or(SET), NOTHING).each(),
    reads("get", MAP, ANY).held(),
    reads("has", MAP.or(SET), BOOLEAN),
    reads("hasOwnProperty", KEYED, BOOLEAN),
    reads("includes", ARRAY.or(STRING), BOOLEAN),
    reads("indexOf", ARRAY.or(STRING), NUMBER),
    reads("intersection", SET, SET),
    reads("isDisjointFrom", SET, BOOLEAN),
    reads("isPrototypeOf", OBJECT, BOOLEAN),
    reads("isSubsetOf", SET, BOOLEAN),
    reads("isSupersetOf", SET, BOOLEAN),
    reads("isWellFormed", STRING, BOOLEAN),
    reads("join", ARRAY, STRING),
    reads("keys", ARRAY.or(MAP).or(SET), ITERATOR),
    reads("lastIndexOf", ARRAY.or(STRING), NUMBER),
    reads("localeCompare", STRING, NUMBER),
    reads("map", ARRAY, ARRAY).each(),
    reads("match", STRING, ARRAY.or(NOTHING)),
    reads("matchAll", STRING, ITERATOR),
    reads("normalize", STRING, STRING),
    reads("padEnd", STRING, STRING),
    reads("padStart", STRING, STRING),
    changes("pop", ARRAY, ANY).held(),
    reads("propertyIsEnumerable", KEYED, BOOLEAN),
    changes("push", ARRAY, NUMBER),
    reads("reduce", ARRAY, ANY).held().calls(0, Binds::Reduce),
    reads("reduceRight", ARRAY, ANY).held().calls(0, Binds::Reduce),
    reads("repeat", STRING, STRING),
    reads("replace", STRING, STRING).calls(1, Binds::Match),
    reads("replaceAll", STRING, STRING).calls(1, Binds::Match),
    changes("reverse", ARRAY, SAME).subject(),
    reads("search", STRING, NUMBER),
    changes("set", MAP, SAME).subject(),
    changes("shift", ARRAY, ANY).held(),
    reads("slice", ARRAY.or(STRING), SAME),
    reads("some", ARRAY, BOOLEAN).each(),
    changes("sort", ARRAY, SAME).subject().calls(0, Binds::Compare),
    changes("splice", ARRAY, ARRAY),
    reads("split", STRING, ARRAY),
    reads("startsWith", STRING, BOOLEAN),
    reads("substr", STRING, STRING),
    reads("substring", STRING, STRING),
    reads("symmetricDifference", SET, SET),
    // As with `exec`.
    changes("test", REGEXP, BOOLEAN),
    reads("toExponential", NUMBER, STRING),
    reads("toFixed", NUMBER, STRING),
    reads("toLocaleLowerCase", STRING, STRING),
    reads("toLocaleString", NUMBER.or(ARRAY), STRING),
    reads("toLocaleUpperCase", STRING, STRING),
    reads("toLowerCase", STRING, STRING),
    reads("toPrecision", NUMBER, STRING),
    reads("toReversed", ARRAY, ARRAY),
    reads("toSorted", ARRAY, ARRAY).calls(0, Binds::Compare),
    reads("toSpliced", ARRAY, ARRAY),
    reads("toString", ANY, STRING),
    reads("toUpperCase", STRING, STRING),
    reads("toWellFormed", STRING, STRING),
    reads("trim", STRING, STRING),
    reads("trimEnd", STRING, STRING),
    reads("trimLeft", STRING, STRING),
    reads("trimRight", STRING, STRING),
    reads("trimStart", STRING, STRING),
    reads("union", SET, SET),
    changes("unshift", ARRAY, NUMBER),
    reads("valueOf", ANY, SAME).subject(),
    reads("values", ARRAY.or(MAP).or(SET), ITERATOR),
    reads("with", ARRAY, ARRAY),
];

/// Sorted by object, then name. The receiver is the first argument.
static FUNCTIONS: &[Operation] = &[
    reads("Array.from", ITERABLE.or(OBJECT), ARRAY).calls(1, Binds::Each),
    reads("Array.isArray", ANY, BOOLEAN),
    reads("Array.of", ANY, ARRAY),
    reads("BigInt.asIntN", NUMBER, NUMBER),
    reads("BigInt.asUintN", NUMBER, NUMBER),
    reads("JSON.parse", STRING, ANY).calls(1, Binds::Member),
    reads("JSON.stringify", ANY, STRING).calls(1, Binds::Member),
    reads("Map.groupBy", ITERABLE, MAP).calls(1, Binds::Each),
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
    reads("Number.isFinite", ANY, BOOLEAN),
    reads("Number.isInteger", ANY, BOOLEAN),
    reads("Number.isNaN", ANY, BOOLEAN),
    reads("Number.isSafeInteger", ANY, BOOLEAN),
    reads("Number.parseFloat", ANY, NUMBER),
    reads("Number.parseInt", ANY, NUMBER),
    changes("Object.assign", ANY, SAME).subject(),
    reads("Object.create", OBJECT.or(NOTHING), OBJECT),
    reads("Object.entries", KEYED, ARRAY),
    changes("Object.freeze", ANY, SAME).subject(),
    reads("Object.fromEntries", ITERABLE, OBJECT),
    reads("Object.getOwnPropertyDescriptor", KEYED, OBJECT.or(NOTHING)),
    reads("Object.getOwnPropertyDescriptors", KEYED, OBJECT),
    reads("Object.getOwnPropertyNames", KEYED, ARRAY),
    reads("Object.getOwnPropertySymbols", KEYED, ARRAY),
    reads("Object.getPrototypeOf", ANY, ANY).held(),
    reads("Object.groupBy", ITERABLE, OBJECT).calls(1, Binds::Each),
    reads("Object.hasOwn", KEYED, BOOLEAN),
    reads("Object.is", ANY, BOOLEAN),
    reads("Object.isExtensible", ANY, BOOLEAN),
    reads("Object.isFrozen", ANY, BOOLEAN),
    reads("Object.isSealed", ANY, BOOLEAN),
    reads("Object.keys", KEYED, ARRAY),
    changes("Object.preventExtensions", ANY, SAME).subject(),
    changes("Object.seal", ANY, SAME).subject(),
    reads("Object.values", KEYED, ARRAY),
    reads("RegExp.escape", STRING, STRING),
    reads("String.fromCharCode", NUMBER, STRING),
    reads("String.fromCodePoint", NUMBER, STRING),
    reads("String.raw", OBJECT, STRING),
];

/// Sorted by name. The receiver is the first argument.
static GLOBALS: &[Operation] = &[
    reads("Array", ANY, ARRAY),
    reads("BigInt", ANY, NUMBER),
    reads("Boolean", ANY, BOOLEAN),
    reads("Number", ANY, NUMBER),
    reads("String", ANY, STRING),
    reads("atob", STRING, STRING),
    reads("btoa", STRING, STRING),
    reads("decodeURI", STRING, STRING),
    reads("decodeURIComponent", STRING, STRING),
    reads("encodeURI", ANY, STRING),
    reads("encodeURIComponent", ANY, STRING),
    reads("escape", ANY, STRING),
    reads("isFinite", ANY, BOOLEAN),
    reads("isNaN", ANY, BOOLEAN),
    reads("parseFloat", ANY, NUMBER),
    reads("parseInt", ANY, NUMBER),
    reads("structuredClone", ANY, SAME),
    reads("unescape", STRING, STRING),
];

/// Operators make no nodes in programs; DAG documents may name them. Sorted.
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
            assert_eq!(method(operation.name), Some(operation));
        }
        for operation in FUNCTIONS {
            let (object, name) = operation.name.split_once('.').expect("functions belong to an object");
            assert_eq!(function(object, name), Some(operation));
        }
        for operation in GLOBALS {
            assert_eq!(global(operation.name), Some(operation));
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
            assert_eq!(function(object, name), None);
            assert!(!is_pure_tool(&format!("code:{object}.{name}")));
        }
        for name in ["setTimeout", "fetch", "eval", "Function", "require", "Symbol", "execute", ""] {
            assert_eq!((method(name), global(name)), (None, None));
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
    fn shared_names_give_what_their_subject_is() {
        let slice = method("slice").expect("slice is an operation");
        assert_eq!(slice.result_on(Kind::STRING), Kind::STRING);
        assert_eq!(slice.result_on(Kind::ARRAY), Kind::ARRAY);
        assert_eq!(slice.result_on(Kind::ANY), Kind::ARRAY | Kind::STRING);
        assert!(slice.receiver.can_be(Kind::STRING) && !slice.receiver.can_be(Kind::MAP));
        assert!(Kind::STRING.is(slice.receiver) && !Kind::ANY.is(slice.receiver));
    }

    #[test]
    fn freshness_is_passed_on_by_what_returns_its_subject() {
        let sort = method("sort").expect("sort is an operation");
        assert!(sort.is_fresh(true) && !sort.is_fresh(false));
        assert!(method("filter").is_some_and(|it| it.is_fresh(false)));
        assert!(method("find").is_some_and(|it| !it.is_fresh(true)));
    }

    #[test]
    fn callbacks_and_what_they_are_given() {
        let calling = METHODS.iter().chain(FUNCTIONS).chain(GLOBALS);
        let lines: Vec<String> = calling
            .filter_map(|it| {
                it.callback.map(|call| format!("{} {}:{:?}", it.name, call.argument, call.binds))
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
