//! Parses JSONPath.

use pml_model::json::raw;
use serde_json::value::RawValue;

use super::{FilterOperand, FilterRelation, FilterTest, JsonPathQuery, JsonPathSegment, JsonPathSelector};
use crate::builtin::tool::{BuiltinFailure, failure};

/// How deep filters and parentheses may nest.
const MAX_NESTING: usize = 16;

/// Parses a whole path that starts with `$`.
pub(super) fn parse(path: &str) -> Result<JsonPathQuery, BuiltinFailure> {
    let mut parser = JsonPathParser { characters: path.chars().collect(), at: 0, nesting: 0 };
    if !parser.take("$") {
        return Err(parser.expected("`$`; a JSON Pointer starts with `/`"));
    }
    let segments = parser.segments()?;
    if parser.at < parser.characters.len() {
        return Err(parser.expected("`.`, `..` or `[`"));
    }
    Ok(JsonPathQuery { from_root: true, segments })
}

struct JsonPathParser {
    characters: Vec<char>,
    at: usize,
    nesting: usize,
}

impl JsonPathParser {
    fn segments(&mut self) -> Result<Vec<JsonPathSegment>, BuiltinFailure> {
        let mut segments = Vec::new();
        loop {
            if self.take("..") {
                let selectors =
                    if self.peek() == Some('[') { self.brackets()? } else { vec![self.dotted()?] };
                segments.push(JsonPathSegment { descend: true, selectors });
            } else if self.take(".") {
                segments.push(JsonPathSegment { descend: false, selectors: vec![self.dotted()?] });
            } else if self.peek() == Some('[') {
                segments.push(JsonPathSegment { descend: false, selectors: self.brackets()? });
            } else {
                return Ok(segments);
            }
        }
    }

    fn dotted(&mut self) -> Result<JsonPathSelector, BuiltinFailure> {
        if self.take("*") {
            return Ok(JsonPathSelector::Every);
        }
        let start = self.at;
        while self.peek().is_some_and(|c| c == '_' || c.is_alphanumeric() || !c.is_ascii()) {
            self.at += 1;
        }
        if start == self.at || self.characters[start].is_ascii_digit() {
            self.at = start;
            return Err(self.expected("a name or `*`; write other names as `['…']`"));
        }
        Ok(JsonPathSelector::Name(self.characters[start..self.at].iter().collect()))
    }

    fn brackets(&mut self) -> Result<Vec<JsonPathSelector>, BuiltinFailure> {
        self.at += 1;
        let mut selectors = Vec::new();
        loop {
            self.blanks();
            selectors.push(self.selector()?);
            self.blanks();
            if self.take("]") {
                return Ok(selectors);
            }
            if !self.take(",") {
                return Err(self.expected("`,` or `]`"));
            }
        }
    }

    fn selector(&mut self) -> Result<JsonPathSelector, BuiltinFailure> {
        match self.peek() {
            Some('\'' | '"') => self.quoted().map(JsonPathSelector::Name),
            Some('*') => {
                self.at += 1;
                Ok(JsonPathSelector::Every)
            }
            Some('?') => {
                self.at += 1;
                self.nested(Self::any).map(JsonPathSelector::Filter)
            }
            Some(c) if c == '-' || c == ':' || c.is_ascii_digit() => self.index_or_slice(),
            _ => Err(self.expected("a name in quotes, `*`, `?`, an index or a slice")),
        }
    }

    fn index_or_slice(&mut self) -> Result<JsonPathSelector, BuiltinFailure> {
        let start = self.integer()?;
        self.blanks();
        if !self.take(":") {
            return start.map(JsonPathSelector::Index).ok_or_else(|| self.expected("an index"));
        }
        self.blanks();
        let end = self.integer()?;
        self.blanks();
        let step = if self.take(":") {
            self.blanks();
            self.integer()?.unwrap_or(1)
        } else {
            1
        };
        Ok(JsonPathSelector::Slice { start, end, step })
    }

    fn integer(&mut self) -> Result<Option<i64>, BuiltinFailure> {
        let start = self.at;
        self.take("-");
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        if start == self.at {
            return Ok(None);
        }
        let text: String = self.characters[start..self.at].iter().collect();
        text.parse().map(Some).map_err(|_| self.expected("a whole number that fits 64 bits"))
    }

    fn quoted(&mut self) -> Result<String, BuiltinFailure> {
        let quote = self.characters[self.at];
        let start = self.at + 1;
        self.at = start;
        // Rewritten as a JSON string: the escapes are the same except for the quotes.
        let mut json = String::from("\"");
        loop {
            match self.peek() {
                None => return Err(self.expected("a closing quote")),
                Some(c) if c == quote => break,
                Some('\\') if self.characters.get(self.at + 1) == Some(&'\'') => {
                    json.push('\'');
                    self.at += 2;
                }
                Some('\\') => {
                    json.extend(&self.characters[self.at..(self.at + 2).min(self.characters.len())]);
                    self.at += 2;
                }
                Some('"') => {
                    json.push_str("\\\"");
                    self.at += 1;
                }
                Some(c) => {
                    json.push(c);
                    self.at += 1;
                }
            }
        }
        self.at += 1;
        json.push('"');
        serde_json::from_str(&json).map_err(|error| failure!("`path` at character {start}: {error}"))
    }

    fn any(&mut self) -> Result<FilterTest, BuiltinFailure> {
        let mut tests = vec![self.all()?];
        while self.take_after_blanks("||") {
            tests.push(self.all()?);
        }
        Ok(FilterTest::Any(tests))
    }

    fn all(&mut self) -> Result<FilterTest, BuiltinFailure> {
        let mut tests = vec![self.test()?];
        while self.take_after_blanks("&&") {
            tests.push(self.test()?);
        }
        Ok(FilterTest::All(tests))
    }

    fn test(&mut self) -> Result<FilterTest, BuiltinFailure> {
        self.blanks();
        if self.take("!") {
            return self.nested(Self::test).map(|test| FilterTest::Not(Box::new(test)));
        }
        if self.take("(") {
            let test = self.nested(Self::any)?;
            return if self.take_after_blanks(")") { Ok(test) } else { Err(self.expected("`)`")) };
        }
        let start = self.at;
        let left = self.operand()?;
        let Some(relation) = self.relation() else {
            return match left {
                FilterOperand::Path(query) => Ok(FilterTest::Exists(query)),
                FilterOperand::Literal(_) => Err(self.expected("a comparison")),
            };
        };
        self.blanks();
        let right = self.operand()?;
        if !is_single(&left) || !is_single(&right) {
            self.at = start;
            return Err(
                self.expected("a comparison of paths that pick one value each, without `*`, `..` and slices")
            );
        }
        Ok(FilterTest::Compare { left, relation, right })
    }

    fn relation(&mut self) -> Option<FilterRelation> {
        self.blanks();
        let start = self.at;
        let relation = [
            ("==", FilterRelation::Equal),
            ("!=", FilterRelation::NotEqual),
            ("<=", FilterRelation::LessOrEqual),
            (">=", FilterRelation::GreaterOrEqual),
            ("<", FilterRelation::Less),
            (">", FilterRelation::Greater),
        ]
        .into_iter()
        .find(|(sign, _)| self.take(sign));
        if relation.is_none() {
            self.at = start;
        }
        relation.map(|(_, relation)| relation)
    }

    fn operand(&mut self) -> Result<FilterOperand, BuiltinFailure> {
        match self.peek() {
            Some(sign @ ('@' | '$')) => {
                self.at += 1;
                let segments = self.nested(Self::segments)?;
                Ok(FilterOperand::Path(JsonPathQuery { from_root: sign == '$', segments }))
            }
            Some('\'' | '"') => Ok(FilterOperand::Literal(raw(&self.quoted()?))),
            _ => self.bare_literal(),
        }
    }

    fn bare_literal(&mut self) -> Result<FilterOperand, BuiltinFailure> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')) {
            self.at += 1;
        }
        let text: String = self.characters[start..self.at].iter().collect();
        RawValue::from_string(text).map(FilterOperand::Literal).map_err(|_| {
            self.at = start;
            self.expected("a value, or a path that starts with `@` or `$`")
        })
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Result<T, BuiltinFailure>) -> Result<T, BuiltinFailure> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(self.expected(&format!("less nesting; at most {MAX_NESTING} levels are taken")));
        }
        let read = read(self);
        self.nesting -= 1;
        read
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    fn take(&mut self, sign: &str) -> bool {
        let there =
            sign.chars().enumerate().all(|(offset, c)| self.characters.get(self.at + offset) == Some(&c));
        if there {
            self.at += sign.chars().count();
        }
        there
    }

    fn take_after_blanks(&mut self, sign: &str) -> bool {
        self.blanks();
        self.take(sign)
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|c| matches!(c, ' ' | '\t' | '\n' | '\r')) {
            self.at += 1;
        }
    }

    fn expected(&self, what: &str) -> BuiltinFailure {
        failure!("`path` at character {}: expected {what}", self.at + 1)
    }
}

/// Whether an operand can only be a single value.
fn is_single(operand: &FilterOperand) -> bool {
    let single = |segment: &JsonPathSegment| {
        !segment.descend
            && matches!(
                segment.selectors.as_slice(),
                [JsonPathSelector::Name(_) | JsonPathSelector::Index(_)]
            )
    };
    match operand {
        FilterOperand::Path(query) => query.segments.iter().all(single),
        FilterOperand::Literal(_) => true,
    }
}
