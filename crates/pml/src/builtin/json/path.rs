//! JSON Pointer (RFC 6901) and the part of JSONPath (RFC 9535) that has no functions.
//!
//! Written here rather than taken from elsewhere for two reasons: the values found keep their text, and the
//! work is counted, because a short path can ask for more values than any memory holds.

mod parse;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::builtin::tool::{Failure, Stop, failure};

/// The longest path taken.
pub(super) const MAX_PATH_BYTES: usize = 2000;
/// How many values a query may look at.
const MAX_STEPS: usize = 1_000_000;

/// A value with its parts, each still as text.
pub(super) struct Node<'a> {
    raw: &'a RawValue,
    parts: Parts<'a>,
}

enum Parts<'a> {
    None,
    Items(Vec<Node<'a>>),
    Members(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Opens a value level by level.
    pub(super) fn parse(raw: &'a RawValue) -> Result<Node<'a>, serde_json::Error> {
        let parts = match raw.get().as_bytes().first() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(raw.get())?;
                Parts::Items(items.into_iter().map(Node::parse).collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let members = members(raw.get())?.into_iter();
                Parts::Members(
                    members.map(|(key, raw)| Ok((key, Node::parse(raw)?))).collect::<Result<_, _>>()?,
                )
            }
            _ => Parts::None,
        };
        Ok(Node { raw, parts })
    }

    /// The value as text.
    pub(super) fn raw(&self) -> &'a RawValue {
        self.raw
    }

    fn member(&self, key: &str) -> Option<&Node<'a>> {
        match &self.parts {
            Parts::Members(members) => members.iter().find(|(name, _)| name == key).map(|(_, node)| node),
            Parts::None | Parts::Items(_) => None,
        }
    }

    fn items(&self) -> &[Node<'a>] {
        match &self.parts {
            Parts::Items(items) => items,
            Parts::None | Parts::Members(_) => &[],
        }
    }

    fn children(&self) -> Box<dyn Iterator<Item = &Node<'a>> + '_> {
        match &self.parts {
            Parts::None => Box::new(std::iter::empty()),
            Parts::Items(items) => Box::new(items.iter()),
            Parts::Members(members) => Box::new(members.iter().map(|(_, node)| node)),
        }
    }
}

/// The members of an object in order; the last one counts where a key is repeated.
fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>, serde_json::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a JSON object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members: Self::Value = Vec::new();
            let mut places: HashMap<String, usize> = HashMap::new();
            while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                match places.get(&key) {
                    Some(&place) => members[place].1 = value,
                    None => {
                        places.insert(key.clone(), members.len());
                        members.push((Cow::Owned(key), value));
                    }
                }
            }
            Ok(members)
        }
    }
    serde_json::Deserializer::from_str(text).deserialize_map(Members)
}

/// The values that `path` picks from `root`.
pub(super) fn query<'n, 'a>(
    root: &'n Node<'a>,
    path: &str,
    stop: &Stop,
) -> Result<Vec<&'n Node<'a>>, Failure> {
    if path.len() > MAX_PATH_BYTES {
        return Err(failure!("`path` is {} bytes; at most {MAX_PATH_BYTES} are taken", path.len()));
    }
    if path.is_empty() || path.starts_with('/') {
        return Ok(pointer(root, path).into_iter().collect());
    }
    let query = parse::parse(path)?;
    let search = Search { root, steps: Cell::new(0), stop };
    search.run(&query.segments, root)
}

fn pointer<'n, 'a>(root: &'n Node<'a>, path: &str) -> Option<&'n Node<'a>> {
    path.split('/').skip(1).try_fold(root, |node, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match &node.parts {
            Parts::Members(_) => node.member(&token),
            Parts::Items(items) if token == "0" || !token.starts_with(['0', '+']) => {
                items.get(token.parse::<usize>().ok()?)
            }
            Parts::Items(_) | Parts::None => None,
        }
    })
}

/// A parsed path from the root or, in a filter, from the value under test.
struct Query {
    from_root: bool,
    segments: Vec<Segment>,
}

struct Segment {
    descend: bool,
    selectors: Vec<Selector>,
}

enum Selector {
    Name(String),
    Every,
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(Test),
}

enum Test {
    Any(Vec<Test>),
    All(Vec<Test>),
    Not(Box<Test>),
    Exists(Query),
    Compare { left: Operand, relation: Relation, right: Operand },
}

#[derive(Clone, Copy)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

enum Operand {
    /// JSON text of a scalar.
    Literal(Box<RawValue>),
    Path(Query),
}

struct Search<'s, 'n, 'a> {
    root: &'n Node<'a>,
    steps: Cell<usize>,
    stop: &'s Stop,
}

impl<'n, 'a> Search<'_, 'n, 'a> {
    fn run(&self, segments: &[Segment], start: &'n Node<'a>) -> Result<Vec<&'n Node<'a>>, Failure> {
        let mut found = vec![start];
        for segment in segments {
            let mut next = Vec::new();
            for node in found {
                self.apply(segment, node, &mut next)?;
            }
            found = next;
        }
        Ok(found)
    }

    fn apply(
        &self,
        segment: &Segment,
        node: &'n Node<'a>,
        out: &mut Vec<&'n Node<'a>>,
    ) -> Result<(), Failure> {
        for selector in &segment.selectors {
            self.select(selector, node, out)?;
        }
        if segment.descend {
            for child in node.children() {
                self.apply(segment, child, out)?;
            }
        }
        Ok(())
    }

    fn select(
        &self,
        selector: &Selector,
        node: &'n Node<'a>,
        out: &mut Vec<&'n Node<'a>>,
    ) -> Result<(), Failure> {
        self.step()?;
        match selector {
            Selector::Name(name) => out.extend(node.member(name)),
            Selector::Every => {
                for child in node.children() {
                    self.step()?;
                    out.push(child);
                }
            }
            Selector::Index(index) => {
                out.extend(place(*index, node.items().len()).map(|at| &node.items()[at]));
            }
            Selector::Slice { start, end, step } => {
                for at in slice(*start, *end, *step, node.items().len()) {
                    self.step()?;
                    out.push(&node.items()[at]);
                }
            }
            Selector::Filter(test) => {
                for child in node.children() {
                    if self.holds(test, child)? {
                        out.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&self, test: &Test, node: &'n Node<'a>) -> Result<bool, Failure> {
        self.step()?;
        match test {
            Test::Any(tests) => self.first(tests, node, true),
            Test::All(tests) => self.first(tests, node, false).map(|found| !found),
            Test::Not(test) => self.holds(test, node).map(|held| !held),
            Test::Exists(query) => Ok(!self.ask(query, node)?.is_empty()),
            Test::Compare { left, relation, right } => {
                Ok(relate(self.operand(left, node)?, *relation, self.operand(right, node)?))
            }
        }
    }

    /// Whether one of the tests comes out as `wanted`.
    fn first(&self, tests: &[Test], node: &'n Node<'a>, wanted: bool) -> Result<bool, Failure> {
        for test in tests {
            if self.holds(test, node)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ask(&self, query: &Query, node: &'n Node<'a>) -> Result<Vec<&'n Node<'a>>, Failure> {
        self.run(&query.segments, if query.from_root { self.root } else { node })
    }

    fn operand<'o>(&self, operand: &'o Operand, node: &'n Node<'a>) -> Result<Option<&'o str>, Failure>
    where
        'n: 'o,
    {
        match operand {
            Operand::Literal(text) => Ok(Some(text.get())),
            Operand::Path(query) => Ok(self.ask(query, node)?.first().map(|node| node.raw.get())),
        }
    }

    fn step(&self) -> Result<(), Failure> {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps > MAX_STEPS {
            return Err(failure!(
                "the query looked at more than {MAX_STEPS} values; use a path with fewer `..` and `*`"
            ));
        }
        if steps.is_multiple_of(4096) { self.stop.check() } else { Ok(()) }
    }
}

/// The place of an index that may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { length.checked_add(index)? } else { index };
    (0..length).contains(&at).then(|| usize::try_from(at).ok()).flatten()
}

/// The places of a slice, as RFC 9535 counts them.
fn slice(start: Option<i64>, end: Option<i64>, step: i64, length: usize) -> Vec<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let absolute = |at: i64| if at < 0 { length.saturating_add(at) } else { at };
    let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
    let bound = |at: Option<i64>, default: i64| at.map_or(default, |at| absolute(at).clamp(low, high));
    let (mut at, end) = if step > 0 {
        (bound(start, 0), bound(end, length))
    } else {
        (bound(start, length - 1), bound(end, -1))
    };
    let mut places = Vec::new();
    while (step > 0 && at < end) || (step < 0 && at > end) {
        places.extend(usize::try_from(at));
        at = at.saturating_add(step);
    }
    places
}

/// Compares two JSON texts, of which either may be missing.
fn relate(left: Option<&str>, relation: Relation, right: Option<&str>) -> bool {
    let equal = match (left, right) {
        (Some(left), Some(right)) => order(left, right) == Some(Ordering::Equal) || same(left, right),
        (left, right) => left == right,
    };
    let order = left.zip(right).and_then(|(left, right)| order(left, right));
    match relation {
        Relation::Equal => equal,
        Relation::NotEqual => !equal,
        Relation::Less => order == Some(Ordering::Less),
        Relation::LessOrEqual => equal || order == Some(Ordering::Less),
        Relation::Greater => order == Some(Ordering::Greater),
        Relation::GreaterOrEqual => equal || order == Some(Ordering::Greater),
    }
}

/// Only two numbers or two strings have an order.
fn order(left: &str, right: &str) -> Option<Ordering> {
    if left.starts_with('"') && right.starts_with('"') {
        let left: String = serde_json::from_str(left).ok()?;
        return Some(left.cmp(&serde_json::from_str(right).ok()?));
    }
    if let (Ok(left), Ok(right)) = (left.parse::<i128>(), right.parse::<i128>()) {
        return Some(left.cmp(&right));
    }
    let number = |text: &str| {
        text.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then(|| text.parse::<f64>().ok())
    };
    number(left)??.partial_cmp(&number(right)??)
}

fn same(left: &str, right: &str) -> bool {
    use pml_model::json::canonical;
    matches!((canonical(left), canonical(right)), (Ok(left), Ok(right)) if left == right)
}
