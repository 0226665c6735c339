//! JSON Pointer (RFC 6901) and the part of JSONPath (RFC 9535) that has no functions.
//!
//! This is our own implementation for two reasons: the selected values keep their text, and the work is counted,
//! because a short path can select more values than fit in memory.

mod parse;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::builtin::tool::{BuiltinFailure, StopSignal, failure};

/// The longest path, in bytes.
pub(super) const MAX_PATH_BYTES: usize = 2000;
/// The largest number of values a query may visit.
const MAX_STEPS: usize = 1_000_000;

/// A value with its parts, each still as text.
pub(super) struct JsonPathNode<'a> {
    raw: &'a RawValue,
    parts: JsonPathParts<'a>,
}

enum JsonPathParts<'a> {
    None,
    Items(Vec<JsonPathNode<'a>>),
    Members(Vec<(Cow<'a, str>, JsonPathNode<'a>)>),
}

impl<'a> JsonPathNode<'a> {
    /// Opens a value level by level.
    pub(super) fn parse(raw: &'a RawValue) -> Result<JsonPathNode<'a>, serde_json::Error> {
        let parts = match raw.get().as_bytes().first() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(raw.get())?;
                JsonPathParts::Items(items.into_iter().map(JsonPathNode::parse).collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let members = members(raw.get())?.into_iter();
                JsonPathParts::Members(
                    members
                        .map(|(key, raw)| Ok((key, JsonPathNode::parse(raw)?)))
                        .collect::<Result<_, _>>()?,
                )
            }
            _ => JsonPathParts::None,
        };
        Ok(JsonPathNode { raw, parts })
    }

    /// The value as text.
    pub(super) fn raw(&self) -> &'a RawValue {
        self.raw
    }

    fn member(&self, key: &str) -> Option<&JsonPathNode<'a>> {
        match &self.parts {
            JsonPathParts::Members(members) => {
                members.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            JsonPathParts::None | JsonPathParts::Items(_) => None,
        }
    }

    fn items(&self) -> &[JsonPathNode<'a>] {
        match &self.parts {
            JsonPathParts::Items(items) => items,
            JsonPathParts::None | JsonPathParts::Members(_) => &[],
        }
    }

    fn children(&self) -> Box<dyn Iterator<Item = &JsonPathNode<'a>> + '_> {
        match &self.parts {
            JsonPathParts::None => Box::new(std::iter::empty()),
            JsonPathParts::Items(items) => Box::new(items.iter()),
            JsonPathParts::Members(members) => Box::new(members.iter().map(|(_, node)| node)),
        }
    }
}

/// The members of an object in order; the last one counts where a key is repeated.
fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>, serde_json::Error> {
    struct MembersVisitor;
    impl<'de> Visitor<'de> for MembersVisitor {
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
    serde_json::Deserializer::from_str(text).deserialize_map(MembersVisitor)
}

/// The values that `path` selects from `root`.
pub(super) fn query<'n, 'a>(
    root: &'n JsonPathNode<'a>,
    path: &str,
    stop: &StopSignal,
) -> Result<Vec<&'n JsonPathNode<'a>>, BuiltinFailure> {
    if path.len() > MAX_PATH_BYTES {
        return Err(failure!("`path` is {} bytes; at most {MAX_PATH_BYTES} are taken", path.len()));
    }
    if path.is_empty() || path.starts_with('/') {
        return Ok(pointer(root, path).into_iter().collect());
    }
    let query = parse::parse(path)?;
    let search = JsonPathSearch { root, steps: Cell::new(0), stop };
    search.run(&query.segments, root)
}

fn pointer<'n, 'a>(root: &'n JsonPathNode<'a>, path: &str) -> Option<&'n JsonPathNode<'a>> {
    path.split('/').skip(1).try_fold(root, |node, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match &node.parts {
            JsonPathParts::Members(_) => node.member(&token),
            JsonPathParts::Items(items) if token == "0" || !token.starts_with(['0', '+']) => {
                items.get(token.parse::<usize>().ok()?)
            }
            JsonPathParts::Items(_) | JsonPathParts::None => None,
        }
    })
}

/// A parsed path from the root or, in a filter, from the value under test.
struct JsonPathQuery {
    from_root: bool,
    segments: Vec<JsonPathSegment>,
}

struct JsonPathSegment {
    descend: bool,
    selectors: Vec<JsonPathSelector>,
}

enum JsonPathSelector {
    Name(String),
    Every,
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(FilterTest),
}

enum FilterTest {
    Any(Vec<FilterTest>),
    All(Vec<FilterTest>),
    Not(Box<FilterTest>),
    Exists(JsonPathQuery),
    Compare { left: FilterOperand, relation: FilterRelation, right: FilterOperand },
}

#[derive(Clone, Copy)]
enum FilterRelation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

enum FilterOperand {
    /// JSON text of a scalar.
    Literal(Box<RawValue>),
    Path(JsonPathQuery),
}

struct JsonPathSearch<'s, 'n, 'a> {
    root: &'n JsonPathNode<'a>,
    steps: Cell<usize>,
    stop: &'s StopSignal,
}

impl<'n, 'a> JsonPathSearch<'_, 'n, 'a> {
    fn run(
        &self,
        segments: &[JsonPathSegment],
        start: &'n JsonPathNode<'a>,
    ) -> Result<Vec<&'n JsonPathNode<'a>>, BuiltinFailure> {
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
        segment: &JsonPathSegment,
        node: &'n JsonPathNode<'a>,
        out: &mut Vec<&'n JsonPathNode<'a>>,
    ) -> Result<(), BuiltinFailure> {
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
        selector: &JsonPathSelector,
        node: &'n JsonPathNode<'a>,
        out: &mut Vec<&'n JsonPathNode<'a>>,
    ) -> Result<(), BuiltinFailure> {
        self.step()?;
        match selector {
            JsonPathSelector::Name(name) => out.extend(node.member(name)),
            JsonPathSelector::Every => {
                for child in node.children() {
                    self.step()?;
                    out.push(child);
                }
            }
            JsonPathSelector::Index(index) => {
                out.extend(place(*index, node.items().len()).map(|at| &node.items()[at]));
            }
            JsonPathSelector::Slice { start, end, step } => {
                for at in slice(*start, *end, *step, node.items().len()) {
                    self.step()?;
                    out.push(&node.items()[at]);
                }
            }
            JsonPathSelector::Filter(test) => {
                for child in node.children() {
                    if self.holds(test, child)? {
                        out.push(child);
                    }
                }
            }
        }
        Ok(())
    }

    fn holds(&self, test: &FilterTest, node: &'n JsonPathNode<'a>) -> Result<bool, BuiltinFailure> {
        self.step()?;
        match test {
            FilterTest::Any(tests) => self.first(tests, node, true),
            FilterTest::All(tests) => self.first(tests, node, false).map(|found| !found),
            FilterTest::Not(test) => self.holds(test, node).map(|held| !held),
            FilterTest::Exists(query) => Ok(!self.ask(query, node)?.is_empty()),
            FilterTest::Compare { left, relation, right } => {
                Ok(relate(self.operand(left, node)?, *relation, self.operand(right, node)?))
            }
        }
    }

    /// Whether one of the tests evaluates to `wanted`.
    fn first(
        &self,
        tests: &[FilterTest],
        node: &'n JsonPathNode<'a>,
        wanted: bool,
    ) -> Result<bool, BuiltinFailure> {
        for test in tests {
            if self.holds(test, node)? == wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ask(
        &self,
        query: &JsonPathQuery,
        node: &'n JsonPathNode<'a>,
    ) -> Result<Vec<&'n JsonPathNode<'a>>, BuiltinFailure> {
        self.run(&query.segments, if query.from_root { self.root } else { node })
    }

    fn operand<'o>(
        &self,
        operand: &'o FilterOperand,
        node: &'n JsonPathNode<'a>,
    ) -> Result<Option<&'o str>, BuiltinFailure>
    where
        'n: 'o,
    {
        match operand {
            FilterOperand::Literal(text) => Ok(Some(text.get())),
            FilterOperand::Path(query) => Ok(self.ask(query, node)?.first().map(|node| node.raw.get())),
        }
    }

    fn step(&self) -> Result<(), BuiltinFailure> {
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

/// The position of an index, which may count from the end.
fn place(index: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let at = if index < 0 { length.checked_add(index)? } else { index };
    (0..length).contains(&at).then(|| usize::try_from(at).ok()).flatten()
}

/// The positions of a slice, as RFC 9535 defines them.
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

/// Compares two JSON texts; `None` stands for a missing value.
fn relate(left: Option<&str>, relation: FilterRelation, right: Option<&str>) -> bool {
    let equal = match (left, right) {
        (Some(left), Some(right)) => order(left, right) == Some(Ordering::Equal) || same(left, right),
        (left, right) => left == right,
    };
    let order = left.zip(right).and_then(|(left, right)| order(left, right));
    match relation {
        FilterRelation::Equal => equal,
        FilterRelation::NotEqual => !equal,
        FilterRelation::Less => order == Some(Ordering::Less),
        FilterRelation::LessOrEqual => equal || order == Some(Ordering::Less),
        FilterRelation::Greater => order == Some(Ordering::Greater),
        FilterRelation::GreaterOrEqual => equal || order == Some(Ordering::Greater),
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
    use pml_model::json::canonical_json;
    matches!((canonical_json(left), canonical_json(right)), (Ok(left), Ok(right)) if left == right)
}
