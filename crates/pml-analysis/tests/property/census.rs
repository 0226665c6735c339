//! How often each construct of the language occurs in what was generated.

use std::collections::BTreeMap;

use crate::generate::{Counts, pieces};

/// A construct, the texts that only it is written with, and the pieces that have it.
type Construct = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The constructs the analysis must understand. A text counts wherever it occurs in the TypeScript.
const CONSTRUCTS: &[Construct] = &[
    (
        "call in a condition",
        &["if ((await", "while ((await", "switch (await"],
        &["switch over calls", "for with calls in its head", "conditional chain"],
    ),
    ("call in a template", &["`a${await", "${await "], &[]),
    (
        "call in a default",
        &[],
        &[
            "call in a default of a pattern",
            "call in a default of a parameter",
            "catch with a pattern",
            "pattern with computed keys in order",
        ],
    ),
    ("getter", &["get "], &[]),
    ("setter", &["set "], &[]),
    (
        "nested function",
        &["async function inner", "const mid"],
        &["function handed out", "higher order", "curried and immediately called"],
    ),
    (
        "recursive function",
        &[],
        &[
            "recursive function",
            "recursive function expression",
            "mutual recursion",
            "tree recursion through map",
        ],
    ),
    ("callback of map", &[".map(async"], &["async callback in map", "tree recursion through map"]),
    ("callback of filter", &[".filter("], &[]),
    ("callback of reduce", &[".reduce("], &[]),
    ("callback of forEach", &[".forEach("], &[]),
    ("callback of some and find", &[".some(", ".find(", ".every(", ".findLast("], &[]),
    (
        "callback of flatMap, from, sort and replace",
        &[".flatMap(", "Array.from(", ".sort(", ".replace("],
        &[],
    ),
    ("Promise.all of a literal", &["Promise.all(["], &[]),
    ("promises of a spread", &["Promise.all([...", "Promise.race([...", "Promise.all(tasks"], &[]),
    ("Promise.all of a map", &[".map((n) => mcp", ".map(async"], &[]),
    ("Promise.allSettled", &["Promise.allSettled("], &[]),
    ("Promise.race", &["Promise.race("], &[]),
    ("Promise.any", &["Promise.any("], &[]),
    ("then", &[".then("], &[]),
    ("catch method", &[".catch("], &[]),
    ("finally method", &[".finally("], &[]),
    ("for", &["for (let "], &[]),
    ("while", &["while ("], &[]),
    ("do", &["do {", "do n", "do c"], &[]),
    ("for of", &[" of "], &[]),
    ("for in", &[" in {", " in ["], &["for in"]),
    ("for await", &["for await ("], &[]),
    ("labelled break", &["break out", "break a", "break b", "break l", "break o"], &[]),
    ("labelled continue", &["continue out", "continue o", "continue c"], &[]),
    ("early return", &[") return"], &[]),
    ("catch clause", &["catch (", "catch {"], &[]),
    ("finally clause", &["finally {"], &[]),
    (
        "return, throw or break in finally",
        &["return ['kept'", "throw new Error('third')", "> 1) break; }"],
        &[],
    ),
    ("and", &["&& "], &[]),
    ("or", &["|| "], &[]),
    ("nullish", &["?? "], &[]),
    ("optional member before a call", &["?.b.c(", "?.fs?.", "?.tags?.map", "?.b)?.c("], &[]),
    ("optional call", &["?.("], &[]),
    ("optional index", &["?.["], &[]),
    ("delete of an optional chain", &["delete o", "delete (args.none)"], &[]),
    ("logical assignment", &["??=", "&&=", "||="], &[]),
    ("switch", &["switch ("], &[]),
    (
        "switch with fall-through",
        &[],
        &[
            "switch with fall-through",
            "switch with default in the middle",
            "switch with lexical declarations",
            "in a switch",
        ],
    ),
    ("switch with default in the middle", &["default: console.log('k"], &[]),
    ("switch with declarations", &["': let ", "default: const"], &[]),
    (
        "pattern with a default",
        &["= 3 }", "= 5 }", "= [] }", "= 'none'", "= {}]", "= 1 }"],
        &["pattern in parameters", "call in a default of a pattern"],
    ),
    ("pattern with a rest", &["...rest", "...ts", "...c}", "...c ", "...b]", "...c]", "...z]"], &[]),
    (
        "pattern in a parameter",
        &[],
        &[
            "pattern in parameters",
            "rest parameters",
            "default sees earlier parameters",
            "async callback in forEach",
            "length and name",
            "iterator helpers",
        ],
    ),
    ("pattern in an assignment", &["] = [b", "({ k: o", ".z] = [", "['na' + 'me']: ", "for (["], &[]),
    ("pattern in a loop", &["for (const {", "for (const [", "for (["], &[]),
    ("pattern in catch", &["catch ({", "catch (["], &[]),
    ("reassigned in a loop", &[], &["reassigned in a loop", "pages until done", "retry", "while"]),
    ("closure over a loop variable", &[".push(() =>", ".push(async () =>"], &[]),
    ("class", &["class "], &[]),
    ("async method", &["async load(", "async go(", "async run(", "async wait(", "async twice("], &[]),
    ("inheritance", &[" extends "], &[]),
    ("super", &["super.", "super("], &[]),
    ("static block", &["static {"], &[]),
    ("private member", &["#"], &[]),
    ("field", &["own = ", "arrow = ", "count = ", "later = ", "static x = "], &[]),
    ("generator", &["function* ", " *gen(", "*["], &[]),
    ("async generator", &["async function* ", "async *"], &[]),
    (
        "shadowed surface",
        &["(mcp: any)", "const args =", "catch (mcp: any)", "function mcp()", "const args of"],
        &[],
    ),
    ("tagged template", &["raw`", "tag`", "`p``q`"], &[]),
    ("spread call", &["(...", ", ...["], &[]),
    ("sequence", &[" (0, ", "++, await", "'head'", " (1, o"], &[]),
    ("arguments", &["arguments"], &[]),
    (
        "length and name of functions",
        &[],
        &[
            "length and name",
            "recursive function expression",
            "arguments object",
            "default sees earlier parameters",
            "class with async methods",
            "logical assignment names functions",
        ],
    ),
    ("this", &["this"], &[]),
    ("annotation", &[": number", ": any", ": string"], &[]),
    ("as", &[" as "], &[]),
    ("generics", &["<T", "<any>", "<number>", "Array<"], &[]),
    ("enum", &["enum "], &[]),
    (
        "parameter property",
        &["public a: number", "public readonly first", "private readonly b", "private second"],
        &[],
    ),
    ("non-null", &["!.", "!)"], &[]),
    ("throw", &["throw "], &[]),
    ("iterator protocol", &["Symbol.iterator", "Symbol.asyncIterator"], &[]),
    (
        "effects that show the order",
        &[],
        &[
            "order of operands",
            "order in assignment",
            "order in calls",
            "order of awaits",
            "coercion with effects",
        ],
    ),
    ("call that may be rejected", &["mcp.net.flaky("], &[]),
    (
        "tool by another name",
        &[],
        &["tools by other names", "tool as a value", "tool chosen", "tool through call and bind"],
    ),
    ("tool found at run time", &[], &["looked up at run time", "reflected", "handed away"]),
    ("capability", &["capabilities.", "capabilities["], &[]),
];

/// Counts over many programs.
#[derive(Default)]
pub(crate) struct Census {
    pieces: Counts,
    constructs: BTreeMap<&'static str, u32>,
}

impl Census {
    /// Takes a program into account.
    pub(crate) fn add(&mut self, made: &Counts, source: &str) {
        for (piece, count) in made {
            *self.pieces.entry(piece).or_default() += count;
        }
        for (name, texts, pieces) in CONSTRUCTS {
            let written: usize = texts.iter().map(|text| source.matches(text).count()).sum();
            let made: u32 = pieces.iter().map(|piece| made.get(piece).copied().unwrap_or(0)).sum();
            *self.constructs.entry(name).or_default() +=
                u32::try_from(written).expect("programs are short") + made;
        }
    }

    /// Every construct and how often it occurred.
    pub(crate) fn constructs(&self) -> impl Iterator<Item = (&'static str, u32)> {
        CONSTRUCTS.iter().map(|(name, ..)| (*name, self.constructs.get(name).copied().unwrap_or(0)))
    }

    /// Every piece programs are made of and how often it was used.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&'static str, u32)> {
        pieces().map(|name| (name, self.pieces.get(name).copied().unwrap_or(0)))
    }
}
