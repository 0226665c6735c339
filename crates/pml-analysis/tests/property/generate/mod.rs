//! Makes programs: random, deterministic by seed, ending, and valid by construction.
//!
//! A program is put together from the pieces in `constructs.txt` and random expressions. What is made
//! is marked text, from which `print` gives TypeScript, plain JavaScript, and the same with other names
//! and another layout.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::print::{NAME, SHORTHAND};
use crate::random::Random;

/// How many pieces a program has at the top; there are more inside them. Short ones fail legibly, long ones
/// mix more.
const SIZES: [usize; 5] = [1, 5, 60, 60, 60];

/// How often each construct was used.
pub(crate) type Counts = BTreeMap<&'static str, u32>;

/// A generated program.
pub(crate) struct Generated {
    /// Marked text; see `print`.
    pub(crate) text: String,
    /// What it is made of.
    pub(crate) counts: Counts,
    /// It finds tools in ways nobody can follow.
    pub(crate) opaque: bool,
}

/// A piece of programs.
struct Construct {
    name: &'static str,
    body: &'static str,
    declares: Vec<(Kind, &'static str)>,
    throws: bool,
    function: bool,
    inside: bool,
    opaque: bool,
}

impl Construct {
    fn nests(&self) -> bool {
        self.body.contains("@slot")
    }
}

/// What an expression gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    Flag,
    Numbers,
    Record,
    Records,
    Maybe,
    /// A promise of a number.
    Call,
    Function,
    AsyncFunction,
}

impl Kind {
    fn named(word: &str) -> Option<Kind> {
        Some(match word {
            "num" => Kind::Number,
            "text" => Kind::Text,
            "flag" => Kind::Flag,
            "nums" => Kind::Numbers,
            "rec" => Kind::Record,
            "recs" => Kind::Records,
            "maybe" => Kind::Maybe,
            "call" => Kind::Call,
            "fun" => Kind::Function,
            "afun" => Kind::AsyncFunction,
            _ => return None,
        })
    }
}

static CONSTRUCTS: LazyLock<Vec<Construct>> =
    LazyLock::new(|| include_str!("constructs.txt").split("\n=== ").skip(1).map(construct).collect());

fn construct(text: &'static str) -> Construct {
    let (head, body) = text.split_once('\n').expect("a construct has a body");
    let (name, notes) = head.split_once(" | ").unwrap_or((head, ""));
    let notes: Vec<&str> = notes.split(", ").collect();
    let declares = notes.iter().filter_map(|note| {
        let (kind, name) = note.split_once(' ')?;
        Some((Kind::named(kind).expect("a known kind"), name))
    });
    Construct {
        name,
        body: body.trim_end(),
        declares: declares.collect(),
        throws: notes.contains(&"throws"),
        function: notes.contains(&"function"),
        inside: notes.contains(&"inside"),
        opaque: notes.contains(&"opaque"),
    }
}

/// The names of all pieces.
pub(crate) fn pieces() -> impl Iterator<Item = &'static str> {
    CONSTRUCTS.iter().map(|construct| construct.name)
}

/// The program of a seed.
pub(crate) fn generate(seed: u64) -> Generated {
    let mut maker = Maker::new(seed);
    let pieces = *maker.random.one(&SIZES);
    let opaque = maker.random.below(4) == 0;
    let mut text = String::new();
    for _ in 0..pieces {
        maker.piece(&mut text);
    }
    if opaque {
        for construct in CONSTRUCTS.iter().filter(|construct| construct.opaque).cycle().take(9) {
            maker.place(construct, &mut text);
        }
    }
    let ending = match maker.random.below(8) {
        0 => format!("throw new RangeError({});\n", maker.text(0)),
        1 => format!("return {};\n", maker.call(0)),
        _ => format!("return [{}, {}, {}];\n", maker.number(0), maker.text(0), maker.records(0)),
    };
    text.push_str(&ending);
    Generated { text, counts: maker.counts, opaque }
}

/// The shortest programs that have the piece of that name, if it can stand alone.
pub(crate) fn alone(name: &str, seed: u64) -> Option<Generated> {
    let construct = CONSTRUCTS.iter().find(|construct| construct.name == name)?;
    let mut maker = Maker::new(seed);
    let mut text = String::new();
    maker.depth = 2;
    maker.place(construct, &mut text);
    let whole = !construct.inside && !construct.nests();
    whole.then_some(Generated { text, counts: maker.counts, opaque: construct.opaque })
}

/// What a `return` would end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Within {
    Program,
    Function,
}

struct Maker {
    random: Random,
    /// Constructs in the order they are used, so that each is used about as often as any other.
    deck: Vec<usize>,
    dealt: usize,
    /// Names that can be used here.
    scope: Vec<(Kind, String)>,
    counts: Counts,
    fresh: u32,
    /// Pieces inside pieces.
    depth: u32,
    within: Within,
    /// No calls of declared functions: they would call each other too often.
    plain: bool,
}

impl Maker {
    fn new(seed: u64) -> Maker {
        let mut random = Random::new(seed);
        let everywhere = |&index: &usize| !CONSTRUCTS[index].opaque && !CONSTRUCTS[index].inside;
        let mut deck: Vec<usize> = (0..CONSTRUCTS.len()).filter(everywhere).collect();
        random.shuffle(&mut deck);
        Maker {
            random,
            deck,
            dealt: 0,
            scope: Vec::new(),
            counts: Counts::new(),
            fresh: 0,
            depth: 0,
            within: Within::Program,
            plain: false,
        }
    }

    fn piece(&mut self, out: &mut String) {
        let construct = loop {
            let construct = &CONSTRUCTS[self.deck[self.dealt % self.deck.len()]];
            self.dealt += 1;
            if self.depth < 2 || !construct.nests() {
                break construct;
            }
        };
        self.place(construct, out);
    }

    /// A piece where its names clash with nothing and its exceptions end nothing but itself.
    fn place(&mut self, construct: &'static Construct, out: &mut String) {
        if !construct.declares.is_empty() {
            self.expand(construct, out);
            return;
        }
        let scope = self.scope.len();
        // At the top an exception would end the program, and the rest of it would not be tested.
        let guard = construct.throws && (self.within == Within::Program || self.random.below(3) > 0);
        out.push_str(if guard { "try {\n" } else { "{\n" });
        self.expand(construct, out);
        if guard {
            let name = self.name("e");
            out.push_str(&format!("}} catch ({name}) {{\n{}{name});\n}}\n", self.log()));
        } else {
            out.push_str("}\n");
        }
        self.scope.truncate(scope);
    }

    fn expand(&mut self, construct: &'static Construct, out: &mut String) {
        *self.counts.entry(construct.name).or_default() += 1;
        let body = self.choose(construct.body);
        let mut names: BTreeMap<&str, String> = BTreeMap::new();
        let (within, plain) = (self.within, self.plain);
        if construct.function {
            self.within = Within::Function;
        }
        self.plain |=
            construct.declares.iter().any(|(kind, _)| matches!(kind, Kind::Function | Kind::AsyncFunction));
        let mut rest = body.as_str();
        while let Some(at) = rest.find(['%', '~', '@']) {
            out.push_str(&rest[..at]);
            let sigil = &rest[at..=at];
            rest = &rest[at + 1..];
            rest = match sigil {
                "@" => self.hole(rest, out),
                _ => self.named(sigil, rest, &mut names, out),
            };
        }
        out.push_str(rest);
        out.push('\n');
        (self.within, self.plain) = (within, plain);
        for (kind, name) in &construct.declares {
            self.scope.push((*kind, names[name].clone()));
        }
    }

    /// `%x`, `%!x`, `%=x`, `%:x` and `~x`.
    fn named<'a>(
        &mut self,
        sigil: &str,
        rest: &'a str,
        names: &mut BTreeMap<&'a str, String>,
        out: &mut String,
    ) -> &'a str {
        let mark = rest.chars().next().filter(|mark| sigil == "%" && "!=:".contains(*mark));
        let word = &rest[mark.map_or(0, char::len_utf8)..];
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        if !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
            out.push_str(sigil);
            return rest;
        }
        if sigil == "~" {
            let label = names.entry(word).or_insert_with(|| {
                self.fresh += 1;
                format!("{word}{}", self.fresh)
            });
            out.push_str(label);
            return after;
        }
        let name = match mark {
            Some('!' | '=') => names.entry(word).or_insert_with(|| format!("{NAME}{word}")).clone(),
            _ => {
                self.fresh += 1;
                let fresh = self.fresh;
                names.entry(word).or_insert_with(|| format!("{NAME}{word}{fresh}")).clone()
            }
        };
        match mark {
            Some('=' | ':') => out.push_str(&name.replace(NAME, &SHORTHAND.to_string())),
            _ => out.push_str(&name),
        }
        after
    }

    /// `@num` and the like.
    fn hole<'a>(&mut self, rest: &'a str, out: &mut String) -> &'a str {
        let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match word {
            "log" => {
                out.push_str(&self.log());
                return &after[1..];
            }
            "slot" => self.slot(out),
            _ => {
                let (kind, sync) = match Kind::named(word) {
                    Some(kind) => (kind, false),
                    None => (Kind::named(&word[1..]).expect("a known kind"), true),
                };
                let made = if sync { self.sync(kind) } else { self.of(kind, 0) };
                out.push_str(&made);
            }
        }
        after
    }

    fn slot(&mut self, out: &mut String) {
        let scope = self.scope.len();
        self.depth += 1;
        for _ in 0..self.random.below(2) + 1 {
            self.piece(out);
        }
        if self.within == Within::Function && self.random.below(2) == 0 {
            let leaving: Vec<&Construct> = CONSTRUCTS.iter().filter(|construct| construct.inside).collect();
            let chosen = *self.random.one(&leaving);
            self.place(chosen, out);
        }
        self.depth -= 1;
        self.scope.truncate(scope);
    }

    /// One of the alternatives at every `⟦…¦…⟧`.
    fn choose(&mut self, body: &'static str) -> String {
        let mut text = String::new();
        let mut rest = body;
        while let Some((before, after)) = rest.split_once('⟦') {
            let (inside, after) = after.split_once('⟧').expect("alternatives end");
            let ways: Vec<&str> = inside.split('¦').collect();
            text.push_str(before);
            let way: &&str = self.random.one(&ways);
            text.push_str(way);
            rest = after;
        }
        text.push_str(rest);
        text
    }

    fn name(&mut self, word: &str) -> String {
        self.fresh += 1;
        format!("{NAME}{word}{}", self.fresh)
    }

    fn log(&mut self) -> String {
        self.fresh += 1;
        format!("console.log('k{}', ", self.fresh)
    }
}

mod expressions;
