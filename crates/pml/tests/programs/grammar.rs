//! Programs that try to call a tool without seeming to, made at random from many ways to do each step.
//!
//! A program gets hold of `mcp`, of a server, of a tool, and calls it; each step is done in one of the ways below, with
//! names made in one of the ways below, and any value may be carried through further ways before it is used. The same seed
//! makes the same program.

/// A program that goes after tools.
#[derive(Debug)]
pub struct Evasion {
    /// The program.
    pub code: String,
    /// The ways it uses, by name.
    pub ways: Vec<&'static str>,
}

/// The program that `seed` makes.
pub fn evasion(seed: u64) -> Evasion {
    let mut maker = Maker { dice: Dice(seed), plain: false, lines: Vec::new(), names: 0, ways: Vec::new() };
    maker.plain = maker.dice.roll(4) == 0;
    let (server, tool) = maker.target();
    let mut called = maker.root();
    called = maker.member(&called, server);
    called = maker.member(&called, tool);
    let result = maker.call(&called);
    maker.finish(&result)
}

/// Numbers that follow from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }
}

/// Ways to do one step: a name, and the text with `%` for what comes in, `#` for a fresh name and `@` for a key.
type Way = (&'static str, &'static str);

/// `mcp` itself.
const ROOTS: &[Way] = &[
    ("name", "mcp"),
    ("comma", "(0, mcp)"),
    ("global member", "globalThis.mcp"),
    ("global computed", r#"globalThis["m" + "cp"]"#),
    ("Reflect.get", r#"Reflect.get(globalThis, "mcp")"#),
    ("this", "(function () { return this })?.call(globalThis)?.mcp"),
    ("shorthand", "({ mcp }).mcp"),
    ("default parameter", "((m = mcp) => m)()"),
    ("typeof guard", r#"(typeof mcp === "object" ? mcp : null)"#),
    ("assertion", "(mcp as any)"),
    ("eval", r#"eval("mcp")"#),
    ("indirect eval", r#"(0, eval)("mcp")"#),
    ("Function", r#"Function("return mcp")()"#),
    ("new Function", r#"new Function("return mcp")()"#),
    ("AsyncFunction", r#"(await (async () => {}).constructor("return mcp")())"#),
    ("GeneratorFunction", r#"(function* () {}).constructor("yield mcp")().next().value"#),
    ("constructor of a literal", r#"[]["filter"]["constructor"]("return mcp")()"#),
    ("import", r#"(await import("mcp")).default"#),
    ("import of data", r#"(await import("data:text/javascript,export default globalThis.mcp")).default"#),
];

/// The same value, by a detour.
const CARRIED: &[Way] = &[
    ("array", "[%][0]"),
    ("object", "({ v: % }).v"),
    ("comma", "(1, %)"),
    ("conditional", "(args.server ? % : null)"),
    ("or", "(null || %)"),
    ("nullish", "(undefined ?? %)"),
    ("closure", "(() => %)()"),
    ("parameter", "((v) => v)(%)"),
    ("default parameter", "((v = %) => v)()"),
    ("spread", "[...[%]][0]"),
    ("spread call", "((...v) => v[0])(...[%])"),
    ("rest", "(([, ...v]) => v[0])([0, %])"),
    ("destructuring", "(({ v }) => v)({ v: % })"),
    ("destructuring default", "(({ v = % }) => v)({})"),
    ("getter", "({ get v() { return % } }).v"),
    ("catch binding", "(() => { try { throw % } catch (e) { return e } })()"),
    ("finally", "(() => { try { return % } finally { 0 } })()"),
    ("generator", "(function* () { yield % })().next().value"),
    ("Array.from mapper", "Array.from([0], () => %)[0]"),
    ("map", "[0].map(() => %)[0]"),
    ("find", "[%].find(() => true)"),
    ("flatMap", "[0].flatMap(() => [%])[0]"),
    ("reduce", "[0].reduce(() => %, null)"),
    ("at", "[%].at(-1)"),
    ("Map", r#"new Map([["v", %]]).get("v")"#),
    ("Set", "[...new Set([%])][0]"),
    ("WeakMap", "((k) => new WeakMap([[k, %]]).get(k))({})"),
    ("class field", "new (class { v = % })().v"),
    ("static field", "(class { static v = % }).v"),
    ("static block", "(class { static v; static { this.v = % } }).v"),
    ("private field", "new (class { #v = %; get() { return this.#v } })().get()"),
    ("bind", "((v) => v).bind(null, %)()"),
    ("call", "((v) => v).call(null, %)"),
    ("apply", "((v) => v).apply(null, [%])"),
    ("Reflect.apply", "Reflect.apply((v) => v, null, [%])"),
    ("optional call", "((v) => v)?.(%)"),
    ("Object.assign", "Object.assign({}, { v: % }).v"),
    ("Object.fromEntries", r#"Object.fromEntries([["v", %]]).v"#),
    ("Object.create", "Object.create({ v: % }).v"),
    ("Proxy trap", "new Proxy({}, { get: () => % }).v"),
    ("iterator protocol", "[...{ *[Symbol.iterator]() { yield % } }][0]"),
    ("tagged template", "((_, v) => v)`${%}`"),
    ("instantiation", "(% as unknown as any)"),
    ("non-null", "(%)!"),
];

/// Detours that need statements of their own; the value is in `#` afterwards.
const STATEMENTS: &[Way] = &[
    ("constant", "const # = %;"),
    ("assigned later", "let #; # = %;"),
    ("label", "let #; l#: for (;;) { # = %; break l#; }"),
    ("loop", "let #; for (const v of [%]) # = v;"),
    ("for in", "let #; for (const k in { v: 0 }) # = %;"),
    ("setter", "let #; ({ set v(x) { # = x } }).v = %;"),
    ("sort comparator", "let #; [2, 1].sort(() => { # = %; return 0 });"),
    ("replace callback", r#"let #; "a".replace(/a/, () => { # = %; return "" });"#),
    ("toString", "let #; `${{ toString() { # = %; return '' } }}`;"),
    ("valueOf", "let #; +{ valueOf() { # = %; return 1 } };"),
    ("toPrimitive", "let #; `${{ [Symbol.toPrimitive]() { # = %; return '' } }}`;"),
    ("toJSON", "let #; JSON.stringify({ toJSON() { # = %; return 1 } });"),
    ("forEach", "let #; [0].forEach(() => { # = % });"),
    ("switch", "let #; switch (1) { case 1: # = % }"),
    ("catch", "let #; try { throw [%] } catch ([e]) { # = e }"),
    ("array pattern", "const [#] = [%];"),
    ("object pattern", "const { v: # } = { v: % };"),
    ("nested pattern", "const { a: [{ b: # }] } = { a: [{ b: % }] };"),
    ("iterator pattern", "const [#] = { *[Symbol.iterator]() { yield % } };"),
    ("function", "function f#() { return % } const # = f#();"),
    ("async function", "async function f#() { return [%] } const [#] = await f#();"),
    ("timer", "const [#] = await new Promise((done) => setTimeout(() => done([%]), 0));"),
    ("microtask", "let #; await Promise.resolve().then(() => { # = % });"),
    ("await", "const # = await %;"),
    ("promise", "const [#] = await Promise.resolve([%]);"),
    ("Promise.all", "const [[#]] = await Promise.all([[%]]);"),
    ("thenable", "const [#] = await { then: (done) => done([%]) };"),
    ("async iterator", "let #; for await (const [v] of [[%]]) # = v;"),
    ("async generator", "let #; for await (const [v] of (async function* () { yield [%] })()) # = v;"),
    ("class", "class C# { static get v() { return % } } const # = C#.v;"),
    ("enum-like", "const o# = Object.freeze({ v: % }); const # = o#.v;"),
    ("logical assignment", "let #: any = null; # ??= %;"),
    ("swap", "let #: any = 0, s#: any = %; [#, s#] = [s#, #];"),
];

/// A member with a name that is known when the program is read.
const DOTTED: &[Way] = &[
    ("dot", "%.@"),
    ("optional dot", "%?.@"),
    ("computed literal", r#"%["@"]"#),
    ("pattern", "(({ @: v }) => v)(%)"),
    ("computed pattern", r#"(({ ["@"]: v }) => v)(%)"#),
];

/// A member with a name that is computed: `@`.
const COMPUTED: &[Way] = &[
    ("computed", "%[@]"),
    ("optional computed", "%?.[@]"),
    ("computed pattern", "(({ [@]: v }) => v)(%)"),
    ("Reflect.get", "Reflect.get(%, @)"),
    ("descriptor", "Object.getOwnPropertyDescriptor(%, @)?.value"),
    ("Reflect descriptor", "Reflect.getOwnPropertyDescriptor(%, @).value"),
    ("all descriptors", "Object.getOwnPropertyDescriptors(%)[@].value"),
    ("entries", "Object.entries(%).find(([k]) => k === @)?.[1]"),
    ("keys", "((o) => o[Object.keys(o).find((k) => k === @)])(%)"),
    ("own names", "((o) => o[Object.getOwnPropertyNames(o).find((k) => k === @)])(%)"),
    ("own keys", "((o) => o[Reflect.ownKeys(o).find((k) => k === @)])(%)"),
    ("values", "Object.values(%).at(-1)"),
    ("rest", "(({ ...r }) => r)(%)[@]"),
    ("spread", "({ ...% })[@]"),
    ("Object.assign", "Object.assign({}, %)[@]"),
    ("Map of entries", "new Map(Object.entries(%)).get(@)"),
    ("fromEntries", "Object.fromEntries(Object.entries(%))[@]"),
    ("Proxy", "new Proxy(%, {})[@]"),
    ("Proxy of nothing", "new Proxy({}, { get: (_, k) => %[k] })[@]"),
    ("inherited", "Object.create(%)[@]"),
    ("super", "({ __proto__: %, get() { return super[@] } }).get()"),
    ("for in", "((o) => { for (const k in o) if (k === @) return o[k] })(%)"),
    ("groupBy", "Object.values(Object.groupBy(Object.entries(%), ([k]) => k))[0]?.[0]?.[1]"),
    ("prototype", "Object.getPrototypeOf(%)?.[@]"),
];

/// The text `@`, made while the program runs.
const NAMES: &[Way] = &[
    ("literal", r#""@""#),
    ("template", "`@`"),
    ("given", r#"(args.@ ?? "@")"#),
    ("given computed", r#"(args["@"] || "@")"#),
    ("JSON.parse", r#"JSON.parse('"@"')"#),
    ("String", r#"String("@")"#),
    ("raw", "String.raw`@`"),
    ("trim", r#"" @ ".trim()"#),
    ("toLowerCase", r#""@".toUpperCase().toLowerCase()"#),
    ("slice", r#""x@".slice(1)"#),
    ("split", r#""a,@".split(",")[1]"#),
    ("join", r#"[..."@"].join("")"#),
    ("reverse", r#"[...[..."@"].reverse()].reverse().join("")"#),
    ("replace", r#""?".replace("?", "@")"#),
    ("replace callback", r#""?".replace(/\?/, () => "@")"#),
    ("Array.from mapper", r#"Array.from("@", (c) => c).join("")"#),
    ("sort comparator", r#"["@", "~"].sort((a, b) => (a < b ? -1 : 1))[0]"#),
    ("toPrimitive", r#"({ [Symbol.toPrimitive]: () => "@" } as any)"#),
    ("toString", r#"({ toString: () => "@" } as any)"#),
    ("valueOf", r#"({ toString: null, valueOf: () => "@" } as any)"#),
    ("getter", r#"({ get k() { return "@" } }).k"#),
    ("symbol description", r#"Symbol("@").description"#),
    ("function name", r#"({ @() {} }).@.name"#),
    ("class name", r#"(class { static "@" = 0 }, Object.keys({ @: 1 })[0])"#),
    ("error message", r#"new Error("@").message"#),
    ("generator", r#"[...(function* () { yield "@" })()][0]"#),
    ("tagged template", "((s) => s[0])`@`"),
    ("comma", r#"(0, "@")"#),
    ("catch", r#"(() => { try { throw "@" } catch (e) { return e } })()"#),
    ("decodeURIComponent", r#"decodeURIComponent("@")"#),
    ("regular expression", r#"/@/.source"#),
    ("match", r#""<@>".match(/<(.*)>/)[1]"#),
    ("normalize", r#""@".normalize("NFKC")"#),
    ("padEnd", r#""@".padEnd(1)"#),
    ("console name", r#"["@"].toString()"#),
];

/// The tool called.
const CALLS: &[Way] = &[
    ("call", "%({})"),
    ("no argument", "%()"),
    ("optional call", "%?.({})"),
    (".call", "%.call(null, {})"),
    (".apply", "%.apply(null, [{}])"),
    (".bind", "%.bind(null, {})()"),
    ("Reflect.apply", "Reflect.apply(%, null, [{}])"),
    ("call of call", "Function.prototype.call.call(%, null, {})"),
    ("uncurried", "Function.prototype.call.bind(%)(null, {})"),
    ("spread", "%(...[{}])"),
    ("map", "[{}].map(%)[0]"),
    ("flatMap", "[{}].flatMap(%)[0]"),
    ("forEach", "[{}].forEach(%)"),
    ("reduce", "[{}, {}].reduce(%)"),
    ("Array.from mapper", "Array.from([{}], %)[0]"),
    ("sort comparator", "[{}, {}].sort(%)"),
    ("find", "[{}].find(%)"),
    ("replace callback", r#""a".replace(/a/, %)"#),
    ("then", "Promise.resolve({}).then(%)"),
    ("catch", "Promise.reject({}).catch(%)"),
    ("finally", "Promise.resolve({}).finally(%)"),
    ("executor", "Promise.race([new Promise(%), 1])"),
    ("thenable", "Promise.race([{ then: % }, 1])"),
    ("Promise.try", "Promise.try(%, {})"),
    ("getter", r#"Object.defineProperty({}, "v", { get: % }).v"#),
    ("setter", r#"Reflect.set(Object.defineProperty({}, "v", { set: % }), "v", {})"#),
    ("Proxy call", "new Proxy(%, {})({})"),
    ("Proxy trap", "new Proxy({}, { get: % }).v"),
    ("Proxy of a function", "new Proxy(function () {}, { apply: % })({})"),
    ("new", "new %({})"),
    ("Reflect.construct", "Reflect.construct(%, [{}])"),
    ("tagged template", "%`a`"),
    ("toString", "`${{ toString: % }}`"),
    ("valueOf", "+{ valueOf: % }"),
    ("toPrimitive", "`${{ [Symbol.toPrimitive]: % }}`"),
    ("toJSON", "JSON.stringify({ toJSON: % })"),
    ("reviver", r#"JSON.parse("[1]", %)"#),
    ("iterator protocol", "[...{ [Symbol.iterator]: % }]"),
    ("species", "[1].map.call({ length: 1, constructor: { [Symbol.species]: % } }, (v) => v)"),
    ("instanceof", "1 instanceof ({ [Symbol.hasInstance]: % } as any)"),
    ("timer", "new Promise((done) => { setTimeout(%, 0, {}); setTimeout(done, 1) })"),
    ("microtask", "queueMicrotask(() => %({}))"),
    ("in another function", "((f) => f({}))(%)"),
    ("curried", "((f) => (a) => f(a))(%)({})"),
    ("class method", "new (class { go(f) { return f({}) } })().go(%)"),
    ("class field", "new (class { f = %; go() { return this.f({}) } })().go()"),
    ("extends", "new (class extends (% as any) {})()"),
    ("generator", "[...(function* (f) { yield f({}) })(%)][0]"),
    ("async generator", "(async function* (f) { yield f({}) })(%).next()"),
    ("with itself", "%(%)"),
];

/// What goes around everything.
const WHOLES: &[Way] = &[
    ("plain", "return await %"),
    ("not awaited", "%; return 1"),
    ("caught", "try { return await % } catch (error) { return String(error) }"),
    ("swallowed", "try { await % } catch {} finally { 0 } return 1"),
    ("twice", "for (let i = 0; i < 2; i++) { try { await % } catch {} } return 1"),
    ("in a function", "const run = async () => %; return await run()"),
    ("in a callback", "return await Promise.all([1].map(async () => %))"),
    ("in a class", "class Job { async run() { return % } } return await new Job().run()"),
    ("in a static block", "let p: any; class Job { static { p = (async () => %)() } } return await p"),
    ("settled", "return (await Promise.allSettled([(async () => %)()])).length"),
    ("after a read", r#"await mcp.fs.read({ path: "a" }); return await %"#),
    (
        "beside a read",
        r#"return (await Promise.allSettled([mcp.fs.read({ path: "a" }), (async () => %)()])).length"#,
    ),
    (
        "in a timer",
        "return await new Promise((done, fail) => setTimeout(() => { try { done(%) } catch (e) { fail(e) } }, 1))",
    ),
    ("with a local of that name", "const f = async (danger: any) => %; return await f({ delete: () => 1 })"),
];

struct Maker {
    dice: Dice,
    /// Whether it can be seen which tool is meant; then the call alone is unusual, and it is for the policy to refuse it.
    plain: bool,
    lines: Vec<String>,
    names: usize,
    ways: Vec<&'static str>,
}

impl Maker {
    /// Mostly what is forbidden; sometimes a tool of a server that has another one granted.
    fn target(&mut self) -> (&'static str, &'static str) {
        const TARGETS: [(&str, &str); 8] = [
            ("danger", "delete"),
            ("danger", "delete"),
            ("danger", "pay"),
            ("danger", "send"),
            ("danger", "send"),
            ("fs", "delete"),
            ("fs", "write"),
            ("fs", "read"),
        ];
        TARGETS[self.dice.roll(TARGETS.len())]
    }

    fn one_of(&mut self, ways: &[Way]) -> &'static str {
        let (name, text) = ways[self.dice.roll(ways.len())];
        self.ways.push(name);
        text
    }

    /// Half of the programs take the plain name: those that make it from text are mostly refused for that alone.
    fn root(&mut self) -> String {
        let root = match self.dice.roll(2) {
            _ if self.plain => ROOTS[0].1,
            0 => ROOTS[0].1,
            _ => self.one_of(ROOTS),
        };
        match root.contains("await") {
            // Where it is used may be no place to wait.
            true => self.kept("const # = %;", root),
            false => self.carried(root.to_owned()),
        }
    }

    /// The name under which a line of its own keeps a value.
    fn kept(&mut self, way: &str, value: &str) -> String {
        self.names += 1;
        let name = format!("v{}", self.names);
        self.lines.push(way.replace('#', &name).replace('%', value));
        name
    }

    /// The value of an expression, by none to three detours.
    fn carried(&mut self, mut value: String) -> String {
        for _ in 0..[0, 0, 1, 1, 2, 3][self.dice.roll(6)] {
            value = match self.dice.roll(3) {
                _ if self.plain => self.kept("const # = %;", &value),
                0 => {
                    let way = self.one_of(STATEMENTS);
                    self.kept(way, &value)
                }
                _ => self.one_of(CARRIED).replace('%', &value),
            };
        }
        value
    }

    fn member(&mut self, of: &str, name: &str) -> String {
        let value = match self.dice.roll(3) {
            roll if roll == 0 || self.plain => self.one_of(DOTTED).replace('@', name).replace('%', of),
            _ => {
                let key = self.name(name);
                self.one_of(COMPUTED).replace('@', &key).replace('%', of)
            }
        };
        self.carried(value)
    }

    /// A text, in one piece or in several.
    fn name(&mut self, name: &str) -> String {
        match self.dice.roll(4) {
            0 if name.len() > 1 => {
                let at = 1 + self.dice.roll(name.len() - 1);
                let (left, right) = (self.name(&name[..at]), self.name(&name[at..]));
                match self.dice.roll(3) {
                    0 => format!("({left} + {right})"),
                    1 => format!("`${{{left}}}${{{right}}}`"),
                    _ => format!("[{left}, {right}].join(\"\")"),
                }
            }
            1 => {
                self.ways.push("fromCharCode");
                let codes: Vec<String> = name.bytes().map(|byte| byte.to_string()).collect();
                format!("String.fromCharCode({})", codes.join(", "))
            }
            2 | 3 if name.len() > 1 => {
                let text = self.one_of(NAMES).replace('@', name);
                self.carried(text)
            }
            _ => format!("{name:?}"),
        }
    }

    fn call(&mut self, called: &str) -> String {
        self.one_of(CALLS).replace('%', called)
    }

    fn finish(mut self, result: &str) -> Evasion {
        let whole = self.one_of(WHOLES).replace('%', result);
        self.lines.push(whole);
        Evasion { code: self.lines.join("\n"), ways: self.ways }
    }
}

/// Every way there is, for those who want to know that all of them were taken.
pub fn ways() -> usize {
    [ROOTS, CARRIED, STATEMENTS, DOTTED, COMPUTED, NAMES, CALLS, WHOLES].iter().map(|ways| ways.len()).sum()
}
