//! Random expressions of a kind. Each is a primary expression: it can stand anywhere.

use super::{Kind, Maker};
use crate::print::NAME;

/// Expressions inside expressions.
const DEPTH: u32 = 2;

impl Maker {
    /// An expression without `await` and without calls of declared functions.
    pub(super) fn sync(&mut self, kind: Kind) -> String {
        self.of(kind, DEPTH)
    }

    /// An expression of a kind; `depth` expressions are around it already, and at [`DEPTH`] it calls nothing.
    pub(super) fn of(&mut self, kind: Kind, depth: u32) -> String {
        match kind {
            Kind::Number => self.number(depth),
            Kind::Text => self.text(depth),
            Kind::Flag => self.flag(depth),
            Kind::Numbers => self.numbers(depth),
            Kind::Record => self.record(depth),
            Kind::Records => self.records(depth),
            Kind::Maybe => self.maybe(depth),
            Kind::Call => self.call(depth),
            Kind::Function | Kind::AsyncFunction => unreachable!("no hole asks for a function"),
        }
    }

    /// A name of that kind declared before.
    fn known(&mut self, kind: Kind) -> Option<String> {
        let names: Vec<&String> =
            self.scope.iter().filter(|(of, _)| *of == kind).map(|(_, name)| name).collect();
        if names.is_empty() { None } else { Some((*self.random.one(&names)).clone()) }
    }

    /// One of the first `leaves` ways at the bottom, of all `ways` above it.
    fn way(&mut self, depth: u32, leaves: usize, ways: usize) -> usize {
        self.random.below(if depth >= DEPTH { leaves } else { ways })
    }

    pub(super) fn number(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 4, 17) {
            0 => self.random.below(10).to_string(),
            1 => "args.n".to_owned(),
            2 | 3 => self.known(Kind::Number).unwrap_or_else(|| "7".to_owned()),
            4 => format!("({} + {})", self.number(next), self.number(next)),
            5 => format!("({} ? {} : {})", self.flag(next), self.number(next), self.number(next)),
            6 => format!("{}.length", self.numbers(next)),
            7 => format!("{}.id", self.record(next)),
            8 => format!("({}?.id ?? {})", self.maybe(next), self.number(next)),
            9 => format!("(await {})", self.call(next)),
            10 => format!("({}.score ?? await {})", self.record(next), self.call(next)),
            11 => format!("Math.max({}, {})", self.number(next), self.number(next)),
            12 => format!("{}.reduce((a, b) => a + b, 0)", self.numbers(next)),
            13 => format!("({} ‹as number›)", self.number(next)),
            14 => format!("{}‹!›.length", self.text(next)),
            15 => self.declared(Kind::Function, next),
            _ => self.declared(Kind::AsyncFunction, next),
        }
    }

    /// A call of a function declared before, where that is allowed.
    fn declared(&mut self, kind: Kind, depth: u32) -> String {
        let number = self.number(depth);
        match self.known(kind) {
            Some(name) if !self.plain && kind == Kind::AsyncFunction => format!("(await {name}({number}))"),
            Some(name) if !self.plain => format!("{name}({number})"),
            _ => number,
        }
    }

    pub(super) fn text(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 3, 10) {
            0 => format!("'a{}'", self.random.below(4)),
            1 => "args.text".to_owned(),
            2 => self.known(Kind::Text).unwrap_or_else(|| "'b'".to_owned()),
            3 => format!("`t${{{}}}x`", self.number(next)),
            4 => format!("{}.name", self.record(next)),
            5 => format!("String({})", self.number(next)),
            6 => format!("({} + {})", self.text(next), self.text(next)),
            7 => format!("{}.toUpperCase()", self.text(next)),
            8 => format!(
                "(await mcp.net.flaky({{ key: {} }}).catch((e‹: any›) => e.message))",
                self.text(next)
            ),
            _ => format!("{}.slice(0, {})", self.text(next), self.number(next)),
        }
    }

    pub(super) fn flag(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 3, 8) {
            0 => "args.flag".to_owned(),
            1 => format!("({} > {})", self.random.below(9), self.number(next)),
            2 => format!("({} < 4)", self.number(next)),
            3 => format!("!{}", self.flag(next)),
            4 => format!("({} && {})", self.flag(next), self.flag(next)),
            5 => format!("({} === {})", self.text(next), self.text(next)),
            6 => format!("{}.includes('a')", self.text(next)),
            _ => format!("({} || {}.ok)", self.flag(next), self.written(next)),
        }
    }

    fn written(&mut self, depth: u32) -> String {
        format!("(await mcp.fs.write({{ path: {}, text: 'w' }}))", self.text(depth))
    }

    pub(super) fn numbers(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 3, 9) {
            0 => format!("[{}, {}]", self.number(next), self.number(next)),
            1 => "[1, 2, 5]".to_owned(),
            2 => self.known(Kind::Numbers).unwrap_or_else(|| "[3, 4]".to_owned()),
            3 => format!("{}.map((x) => x + {})", self.numbers(next), self.random.below(4) + 1),
            4 => format!("{}.filter((x‹: number›) => x > {})", self.numbers(next), self.random.below(4)),
            5 => format!("{}.map((r) => r.id)", self.records(next)),
            6 => format!("[...{}, {}]", self.numbers(next), self.number(next)),
            7 => format!("(await Promise.all([{}, {}]))", self.call(next), self.call(next)),
            _ => format!(
                "(await Promise.all({}.map((n) => mcp.math.add({{ a: n, b: 1 }}))))",
                self.numbers(next)
            ),
        }
    }

    pub(super) fn record(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 3, 8) {
            0 => format!(
                "({{ id: {}, name: {}, tags: ['t'], next: null }})",
                self.number(next),
                self.text(next)
            ),
            1 => "args.items[0]".to_owned(),
            2 => self.known(Kind::Record).unwrap_or_else(|| "args.items[2]".to_owned()),
            3 | 4 => format!("(await mcp.fs.read({{ path: {} }}))", self.text(next)),
            5 => format!("({{ ...{}, id: {} }})", self.record(next), self.number(next)),
            6 => format!("(await mcp.db.insert({{ row: {} }}))", self.record(next)),
            _ => format!("({} ?? {})", self.maybe(next), self.record(next)),
        }
    }

    pub(super) fn records(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 3, 9) {
            0 => format!("[{}, {}]", self.record(next), self.record(next)),
            1 => "args.items".to_owned(),
            2 => self.known(Kind::Records).unwrap_or_else(|| "args.items.slice(1)".to_owned()),
            3 => format!("(await mcp.fs.list({{ dir: {} }}))", self.text(next)),
            4 => format!("(await mcp['my-server']['get-items']({{ count: {} }}))", self.number(next)),
            5 => {
                format!("(await mcp.db.query({{ sql: {}, limit: {} }}))", self.text(next), self.number(next))
            }
            6 => format!("{}.filter((r) => r.id > {})", self.records(next), self.random.below(3)),
            7 => format!("{}.slice(0, 2)", self.records(next)),
            _ => format!("{}.map((r) => ({{ ...r, id: r.id + 1 }}))", self.records(next)),
        }
    }

    pub(super) fn maybe(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.way(depth, 4, 8) {
            0 => "null".to_owned(),
            1 => "undefined".to_owned(),
            2 => "args.none".to_owned(),
            3 => "args.items[0].next".to_owned(),
            4 => format!("{}.next", self.record(next)),
            5 => format!("{}[{}]", self.records(next), self.number(next)),
            6 => format!("{}.find((r) => r.id === {})", self.records(next), self.random.below(6)),
            _ => format!("({} ? {} : null)", self.flag(next), self.record(next)),
        }
    }

    /// A tool called, not awaited: a promise of a number.
    pub(super) fn call(&mut self, depth: u32) -> String {
        let next = depth + 1;
        match self.random.below(5) {
            0 => format!("mcp.math.get_sum({{ values: {} }})", self.numbers(next)),
            1 => format!("mcp.math['get-sum']({{ values: [{}] }})", self.number(next)),
            2 => format!("mcp.fs.read({{ path: {} }}).then(({NAME}r) => {NAME}r.id)", self.text(next)),
            _ => format!("mcp.math.add({{ a: {}, b: {} }})", self.number(next), self.number(next)),
        }
    }
}
