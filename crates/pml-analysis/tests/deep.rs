//! Sources of the greatest length allowed, nested as deeply as it allows in every way there is: each gets an
//! answer, and the process that gives it lives on.

use pml_analysis::{AnalysisCatalogue, Error, analyse};

const MAX_SOURCE_BYTES: usize = 256 * 1024;

/// A way to nest: `before`, `open` repeated, `middle`, `close` repeated, `after`.
struct Kind {
    name: &'static str,
    before: &'static str,
    open: &'static str,
    middle: &'static str,
    close: &'static str,
    after: &'static str,
}

impl Kind {
    fn closed(&self, times: usize) -> String {
        let (open, close) = (self.open.repeat(times), self.close.repeat(times));
        format!("{}{open}{}{close}{}", self.before, self.middle, self.after)
    }

    /// As long as allowed, every bracket closed.
    fn longest_closed(&self) -> String {
        let room = MAX_SOURCE_BYTES - self.before.len() - self.middle.len() - self.after.len();
        self.closed(room / (self.open.len() + self.close.len()))
    }

    /// As long as allowed, nothing closed: twice as deep.
    fn longest_open(&self) -> String {
        let times = (MAX_SOURCE_BYTES - self.before.len()) / self.open.len();
        format!("{}{}", self.before, self.open.repeat(times))
    }
}

const fn kind(name: &'static str, [before, open, middle, close, after]: [&'static str; 5]) -> Kind {
    Kind { name, before, open, middle, close, after }
}

const KINDS: &[Kind] = &[
    kind("parentheses", ["", "(", "1", ")", ""]),
    kind("parentheses with default", ["", "(a=", "1", ")", ""]),
    kind("arrow candidates", ["", "(a,", "1", ")", ""]),
    kind("arrays", ["x=", "[", "1", "]", ""]),
    kind("objects", ["x=", "{a:", "1", "}", ""]),
    kind("objects short", ["x=", "{[", "1", "]:1}", ""]),
    kind("json", ["x=", "[{\"a\":", "1", "}]", ""]),
    kind("blocks", ["", "{", "", "}", ""]),
    kind("not", ["x=", "!", "1", "", ""]),
    kind("minus", ["x=", "- ", "1", "", ""]),
    kind("tilde", ["x=", "~", "1", "", ""]),
    kind("typeof", ["x=", "typeof ", "1", "", ""]),
    kind("void", ["x=", "void ", "1", "", ""]),
    kind("await", ["x=", "await ", "1", "", ""]),
    kind("yield", ["function*g(){", "yield ", "1", "", "}"]),
    kind("preincrement", ["x=", "++", "a", "", ""]),
    kind("ternary right", ["x=", "a?b:", "1", "", ""]),
    kind("ternary middle", ["x=", "a?", "1", ":1", ""]),
    kind("ternary paren", ["x=", "a?(", "1", "):1", ""]),
    kind("ternary paren arrow", ["x=", "a?(b):", "1", "", ""]),
    kind("ternary paren arrow2", ["x=", "a?(b)=>(", "1", "):1", ""]),
    kind("arrows", ["x=", "x=>", "1", "", ""]),
    kind("paren arrows", ["x=", "()=>", "1", "", ""]),
    kind("async arrows", ["x=", "async()=>", "1", "", ""]),
    kind("async calls", ["x=", "async(", "1", ")", ""]),
    kind("arrow default", ["x=", "(a=", "1", ")=>1", ""]),
    kind("arrow bodies", ["x=", "()=>{", "", "}", ""]),
    kind("functions", ["", "function f(){", "", "}", ""]),
    kind("function expressions", ["x=", "function(a=", "1", "){}", ""]),
    kind("methods", ["x=", "{a(){return ", "1", "}}", ""]),
    kind("getters", ["x=", "{get a(){return ", "1", "}}", ""]),
    kind("if", ["", "if(a)", ";", "", ""]),
    kind("else if", ["", "if(a);else ", ";", "", ""]),
    kind("if else middle", ["", "if(a)", ";", " else;", ""]),
    kind("while", ["", "while(a)", ";", "", ""]),
    kind("do", ["", "do ", ";", " while(a)", ""]),
    kind("for", ["", "for(;;)", ";", "", ""]),
    kind("for of", ["", "for(a of b)", ";", "", ""]),
    kind("for head", ["", "for(", "a", ";;);", ""]),
    kind("try", ["", "try{", "", "}catch{}", ""]),
    kind("switch", ["", "switch(a){case 1:", "", "}", ""]),
    kind("labels", ["", "a:", ";", "", ""]),
    kind("throw", ["", "throw ", "1", "", ""]),
    kind("templates", ["x=", "`${", "1", "}`", ""]),
    kind("tagged templates", ["x=", "a`${", "1", "}`", ""]),
    kind("tags", ["x=a", "``", "", "", ""]),
    kind("members", ["x=a", ".b", "", "", ""]),
    kind("optional chain", ["x=a", "?.b", "", "", ""]),
    kind("non-null", ["x=a", "!", "", "", ""]),
    kind("index chain", ["x=a", "[0]", "", "", ""]),
    kind("index nest", ["x=", "a[", "1", "]", ""]),
    kind("calls", ["f", "()", "", "", ""]),
    kind("call nest", ["", "f(", "1", ")", ""]),
    kind("spread call", ["", "f(...", "a", ")", ""]),
    kind("spread array", ["x=", "[...", "a", "]", ""]),
    kind("spread object", ["x=", "{...", "a", "}", ""]),
    kind("plus", ["x=a", "+a", "", "", ""]),
    kind("power", ["x=a", "**a", "", "", ""]),
    kind("and", ["x=a", "&&a", "", "", ""]),
    kind("or and", ["x=a", "||a&&a", "", "", ""]),
    kind("nullish", ["x=a", "??a", "", "", ""]),
    kind("less", ["x=a", "<a", "", "", ""]),
    kind("as", ["x=a", " as a", "", "", ""]),
    kind("assign", ["", "a=", "1", "", ""]),
    kind("plus assign", ["", "a+=", "1", "", ""]),
    kind("commas", ["a", ",a", "", "", ""]),
    kind("array patterns", ["let ", "[", "a", "]", "=1"]),
    kind("object patterns", ["let ", "{a:", "a", "}", "=1"]),
    kind("pattern defaults", ["let ", "{a=", "a", "}", "=1"]),
    kind("assignment patterns", ["", "[", "a", "]", "=1"]),
    kind("assignment patterns default", ["", "[a=", "a", "]", "=1"]),
    kind("parameter patterns", ["function f(", "[", "a", "]", "){}"]),
    kind("new", ["x=", "new ", "a", "", ""]),
    kind("new parens", ["x=", "new a(", "1", ")", ""]),
    kind("new callee", ["x=", "new (", "a", ")", ""]),
    kind("import", ["", "import(", "1", ")", ""]),
    kind("classes", ["", "class a{b=", "1", "}", ""]),
    kind("classes class", ["x=", "class{b=", "1", "}", ""]),
    kind("class extends", ["x=", "class extends ", "a", "{}", ""]),
    kind("class static", ["", "class a{static{", "", "}}", ""]),
    kind("class methods", ["", "class a{b(){", "", "}}", ""]),
    kind("class computed", ["x=", "class{[", "1", "]=1}", ""]),
    kind("decorators", ["", "@(", "a", ")class a{}", ""]),
    kind("type args", ["let a:", "A<", "A", ">", ";"]),
    kind("type arrays", ["let a:A", "[]", "", "", ";"]),
    kind("type array nest", ["let a:", "[", "A", "]", ";"]),
    kind("type parens", ["let a:", "(", "A", ")", ";"]),
    kind("type union", ["type A=A", "|A", "", "", ";"]),
    kind("type union lead", ["type A=", "|(", "A", ")", ";"]),
    kind("type conditional", ["type A=", "A extends A?A:", "A", "", ";"]),
    kind("type conditional middle", ["type A=", "A extends A?", "A", ":A", ";"]),
    kind("type conditional extends", ["type A=", "A extends ", "A", "?A:A", ";"]),
    kind("type infer", ["type A=A extends ", "infer U extends ", "A", "", "?A:A;"]),
    kind("type function", ["type A=", "()=>", "A", "", ";"]),
    kind("type function parameter", ["type A=", "(a:", "A", ")=>A", ";"]),
    kind("type new", ["type A=", "new()=>", "A", "", ";"]),
    kind("type keyof", ["type A=", "keyof ", "A", "", ";"]),
    kind("type object", ["type A=", "{a:", "A", "}", ";"]),
    kind("type mapped", ["type A=", "{[K in ", "A", "]:A}", ";"]),
    kind("type index", ["type A=", "A[", "A", "]", ";"]),
    kind("type template", ["type A=", "`${", "A", "}`", ";"]),
    kind("type qualified", ["let a:A", ".A", "", "", ";"]),
    kind("type import", ["type A=", "import('a').A<", "A", ">", ";"]),
    kind("type assertion", ["x=", "<A>", "1", "", ""]),
    kind("type parameter", ["type A<B extends ", "A<", "A", ">", ">=1;"]),
    kind("generic arrow", ["x=", "<A,>()=>", "1", "", ""]),
    kind("generic calls", ["", "f<", "A", ">()", ""]),
    kind("generic calls paren", ["", "f<A>(", "1", ")", ""]),
    kind("less paren", ["x=", "f<(", "1", ")", ""]),
    kind("namespaces", ["", "namespace a{", "", "}", ""]),
    kind("namespace dots", ["namespace a", ".a", "", "", "{}"]),
    kind("declare", ["", "declare module a{", "", "}", ""]),
    kind("declare prefix", ["", "declare ", "let a", "", ";"]),
    kind("abstract prefix", ["", "abstract ", "class a{}", "", ";"]),
    kind("async prefix", ["", "async ", "function a(){}", "", ";"]),
    kind("export prefix", ["", "export ", "let a", "", ";"]),
    kind("interface", ["interface A{a:", "{a:", "A", "}", "}"]),
    kind("enum", ["enum A{a=", "(", "1", ")", "}"]),
    kind("regex groups", ["x=/", "(", "a", ")", "/"]),
    kind("regex class", ["x=/", "[", "a", "]", "/v"]),
    kind("regex lookahead", ["x=/", "(?=", "a", ")", "/"]),
    kind("regex alternatives", ["x=/a", "|a", "", "", "/"]),
    kind("jsx", ["x=", "<a>", "", "</a>", ""]),
    kind("jsx attribute", ["x=", "<a b={", "1", "}/>", ""]),
    kind("with", ["", "with(a)", ";", "", ""]),
    kind("private in", ["x=", "#a in ", "a", "", ""]),
    kind("return paren", ["return ", "(", "1", ")", ""]),
    kind("optional call", ["x=", "a?.(", "1", ")", ""]),
    kind("in", ["x=a", " in a", "", "", ""]),
    kind("iife", ["", "(()=>{", "", "})()", ""]),
    kind("map", ["", "a.map(a=>", "1", ")", ""]),
    kind("map async", ["", "a.map(async(a)=>{await ", "1", "})", ""]),
    kind("object value paren", ["x=", "({a:", "1", "})", ""]),
    kind("arrow return type", ["x=", "():", "A", "=>1", ""]),
    kind("arrow param type", ["x=", "(a:()=>", "A", ")=>1", ""]),
    kind("ternary arrow type", ["x=", "a?(b):(c)=>", "1", ":1", ""]),
    kind("ternary arrow colon", ["x=", "a?(b):c=>", "1", ":d", ""]),
    kind("satisfies", ["x=a", " satisfies A", "", "", ""]),
    kind("typeof type", ["type A=", "typeof a<", "A", ">", ";"]),
    kind("asserts type", ["let a:", "(a:asserts a is ", "A", ")=>1", ";"]),
    kind("labelled blocks", ["", "a:{", "", "}", ""]),
    kind("using", ["", "{using a=", "1", "}", ""]),
];

/// Pieces that make the parser try one reading after the other, doubling its work each time.
const AMBIGUOUS: &[&str] = &[
    "((a=f<",
    "(({a=async<",
    "(f<({a=",
    "(f<{[",
    "({[(a:",
    "([...b:",
    "([{[async<<A>",
    "new f<{a({[",
    "new f<<A>({a=",
    "`${a([...b:",
    "(readonly [...b:f<",
    "{get a(static =f<[",
    "class a extends f<readonly {[",
    "a?(b):c=>",
    "{a(@(new f<",
    "{1[class a extends f<",
    "[...b:`${return for(readonly ",
];

fn answer(source: &str) -> Result<(), Error> {
    analyse(source, &AnalysisCatalogue::default()).map(drop)
}

#[track_caller]
fn answers(name: &str, source: &str) {
    if let Err(Error::Crashed { reason }) = answer(source) {
        panic!("{name}: {reason}");
    }
}

#[test]
fn the_deepest_closed_source_of_every_kind_gets_an_answer() {
    for kind in KINDS {
        answers(kind.name, &kind.longest_closed());
    }
}

#[test]
fn the_deepest_open_source_of_every_kind_gets_an_answer() {
    for kind in KINDS {
        answers(kind.name, &kind.longest_open());
    }
}

#[test]
fn ambiguous_sources_get_an_answer_at_any_length() {
    for unit in AMBIGUOUS {
        for before in ["x=", "type A=", "let a:", "f<"] {
            for times in [10, 20, 40, 80, 1000] {
                answers(unit, &format!("{before}{}", unit.repeat(times)));
            }
        }
    }
}

#[test]
fn nested_brackets_are_refused_as_too_deep() {
    for name in ["parentheses", "arrays", "objects", "json", "blocks", "functions", "templates", "type args"]
    {
        let kind = KINDS.iter().find(|kind| kind.name == name).expect("it is in the list");
        for source in [kind.longest_closed(), kind.longest_open()] {
            let refused = answer(&source);
            assert!(
                matches!(refused, Err(Error::TooDeep { .. } | Error::Unsupported { .. })),
                "{name}: {refused:?}"
            );
        }
    }
}

#[test]
fn sane_nesting_of_every_kind_is_not_too_deep() {
    for kind in KINDS {
        let refused = answer(&kind.closed(6));
        assert!(
            !matches!(refused, Err(Error::TooDeep { .. } | Error::Crashed { .. })),
            "{}: {refused:?}",
            kind.name
        );
        if let Err(Error::Unsupported { message, .. }) = refused {
            assert!(!message.contains("too many ways"), "{}: {message}", kind.name);
        }
    }
}
