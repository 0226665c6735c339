//! Reads a JSONPath.

use pml_model::json::raw;
use serde_json::value::RawValue;

use super::{Operand, Query, Relation, Segment, Selector, Test};
use crate::builtin::tool::{Failure, failure};

/// How deep filters and parentheses nest.
const MAX_NESTING: usize = 16;

/// Reads a whole path that starts with `$`.
pub(super) fn parse(path: &str) -> Result<Query, Failure> {
    let mut parser = Parser { characters: path.chars().collect(), at: 0, nesting: 0 };
    if !parser.take("$") {
        return Err(parser.expected("`$`; a JSON Pointer starts with `/`"));
    }
    let segments = parser.segments()?;
    if parser.at < parser.characters.len() {
        return Err(parser.expected("`.`, `..` or `[`"));
    }
    Ok(Query { from_root: true, segments })
}

struct Parser {
    characters: Vec<char>,
    at: usize,
    nesting: usize,
}

impl Parser {
    fn segments(&mut self) -> Result<Vec<Segment>, Failure> {
        let mut segments = Vec::new();
        loop {
            if self.take("..") {
                let selectors =
                    if self.peek() == Some('[') { self.brackets()? } else { vec![self.dotted()?] };
                segments.push(Segment { descend: true, selectors });
            } else if self.take(".") {
                segments.push(Segment { descend: false, selectors: vec![self.dotted()?] });
            } else if self.peek() == Some('[') {
                segments.push(Segment { descend: false, selectors: self.brackets()? });
            } else {
                return Ok(segments);
            }
        }
    }

    fn dotted(&mut self) -> Result<Selector, Failure> {
        if self.take("*") {
            return Ok(Selector::Every);
        }
        let start = self.at;
        while self.peek().is_some_and(|c| c == '_' || c.is_alphanumeric() || !c.is_ascii()) {
            self.at += 1;
        }
        if start == self.at || self.characters[start].is_ascii_digit() {
            self.at = start;
            return Err(self.expected("a name or `*`; write other names as `['…']`"));
        }
        Ok(Selector::Name(self.characters[start..self.at].iter().collect()))
    }

    fn brackets(&mut self) -> Result<Vec<Selector>, Failure> {
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

    fn selector(&mut self) -> Result<Selector, Failure> {
        match self.peek() {
            Some('\'' | '"') => self.quoted().map(Selector::Name),
            Some('*') => {
                self.at += 1;
                Ok(Selector::Every)
            }
            Some('?') => {
                self.at += 1;
                self.nested(Self::any).map(Selector::Filter)
            }
            Some(c) if c == '-' || c == ':' || c.is_ascii_digit() => self.index_or_slice(),
            _ => Err(self.expected("a name in quotes, `*`, `?`, an index or a slice")),
        }
    }

    fn index_or_slice(&mut self) -> Result<Selector, Failure> {
        let start = self.integer()?;
        self.blanks();
        if !self.take(":") {
            return start.map(Selector::Index).ok_or_else(|| self.expected("an index"));
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
        Ok(Selector::Slice { start, end, step })
    }

    fn integer(&mut self) -> Result<Option<i64>, Failure> {
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

    fn quoted(&mut self) -> Result<String, Failure> {
        let quote = self.characters[self.at];
        let start = self.at + 1;
        self.at = start;
        // Rewritten as a JSON string, whose escapes are the same but for the quotes.
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

    fn any(&mut self) -> Result<Test, Failure> {
        let mut tests = vec![self.all()?];
        while self.take_after_blanks("||") {
            tests.push(self.all()?);
        }
        Ok(Test::Any(tests))
    }

    fn all(&mut self) -> Result<Test, Failure> {
        let mut tests = vec![self.test()?];
        while self.take_after_blanks("&&") {
            tests.push(self.test()?);
        }
        Ok(Test::All(tests))
    }

    fn test(&mut self) -> Result<Test, Failure> {
        self.blanks();
        if self.take("!") {
            return self.nested(Self::test).map(|test| Test::Not(Box::new(test)));
        }
        if self.take("(") {
            let test = self.nested(Self::any)?;
            return if self.take_after_blanks(")") { Ok(test) } else { Err(self.expected("`)`")) };
        }
        let start = self.at;
        let left = self.operand()?;
        let Some(relation) = self.relation() else {
            return match left {
                Operand::Path(query) => Ok(Test::Exists(query)),
                Operand::Literal(_) => Err(self.expected("a comparison")),
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
        Ok(Test::Compare { left, relation, right })
    }

    fn relation(&mut self) -> Option<Relation> {
        self.blanks();
        let start = self.at;
        let relation = [
            ("==", Relation::Equal),
            ("!=", Relation::NotEqual),
            ("<=", Relation::LessOrEqual),
            (">=", Relation::GreaterOrEqual),
            ("<", Relation::Less),
            (">", Relation::Greater),
        ]
        .into_iter()
        .find(|(sign, _)| self.take(sign));
        if relation.is_none() {
            self.at = start;
        }
        relation.map(|(_, relation)| relation)
    }

    fn operand(&mut self) -> Result<Operand, Failure> {
        match self.peek() {
            Some(sign @ ('@' | '$')) => {
                self.at += 1;
                let segments = self.nested(Self::segments)?;
                Ok(Operand::Path(Query { from_root: sign == '$', segments }))
            }
            Some('\'' | '"') => Ok(Operand::Literal(raw(&self.quoted()?))),
            _ => self.bare_literal(),
        }
    }

    fn bare_literal(&mut self) -> Result<Operand, Failure> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.')) {
            self.at += 1;
        }
        let text: String = self.characters[start..self.at].iter().collect();
        RawValue::from_string(text).map(Operand::Literal).map_err(|_| {
            self.at = start;
            self.expected("a value, or a path that starts with `@` or `$`")
        })
    }

    fn nested<T>(&mut self, read: fn(&mut Self) -> Result<T, Failure>) -> Result<T, Failure> {
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

    fn expected(&self, what: &str) -> Failure {
        failure!("`path` at character {}: expected {what}", self.at + 1)
    }
}

/// Whether an operand cannot be more than one value.
fn is_single(operand: &Operand) -> bool {
    let single = |segment: &Segment| {
        !segment.descend && matches!(segment.selectors.as_slice(), [Selector::Name(_) | Selector::Index(_)])
    };
    match operand {
        Operand::Path(query) => query.segments.iter().all(single),
        Operand::Literal(_) => true,
    }
}
