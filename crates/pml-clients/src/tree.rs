//! A document of any format as one kind of tree with byte ranges, and errors with their position.

use std::ops::Range;

/// Why a text cannot be read or edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text is not what its format asks for.
    #[error("line {line}, column {column}: {message}")]
    Broken {
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
        /// What is wrong there.
        message: String,
    },
    /// An edit would change more than the entry.
    #[error("cannot be edited without changing something else: {0}")]
    Uneditable(String),
}

impl Error {
    /// An error at the byte offset `at` of `text`.
    pub(crate) fn at(text: &str, at: usize, message: impl Into<String>) -> Error {
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Error::Broken {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

/// A value and the bytes that it stands in.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    /// Whether it is a collection between brackets; in YAML others stand on lines of their own.
    pub(crate) bracketed: bool,
    pub(crate) value: NodeValue,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeValue {
    Null,
    Boolean(bool),
    Text(String),
    /// A number, a date or an alias, as written.
    Other(String),
    List(Vec<Node>),
    Table(Vec<Member>),
}

/// One key of a table.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) key: String,
    pub(crate) key_span: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// The member `key` of a table.
    pub(crate) fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == key)
    }

    /// The value of the member `key`; null counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let node = &self.member(key)?.node;
        (!matches!(node.value, NodeValue::Null)).then_some(node)
    }

    pub(crate) fn members(&self) -> &[Member] {
        match &self.value {
            NodeValue::Table(members) => members,
            _ => &[],
        }
    }

    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            NodeValue::List(items) => items,
            _ => &[],
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            NodeValue::Null => "null",
            NodeValue::Boolean(_) => "true or false",
            NodeValue::Text(_) => "a text",
            NodeValue::Other(_) => "a number, a date or an alias",
            NodeValue::List(_) => "a list",
            NodeValue::Table(_) => "a table",
        }
    }

    /// The value without positions.
    pub(crate) fn plain(&self) -> Plain {
        match &self.value {
            NodeValue::Null => Plain::Null,
            NodeValue::Boolean(flag) => Plain::Boolean(*flag),
            NodeValue::Text(text) => Plain::Text(text.clone()),
            NodeValue::Other(raw) => Plain::Other(raw.clone()),
            NodeValue::List(items) => Plain::List(items.iter().map(Node::plain).collect()),
            NodeValue::Table(members) => {
                Plain::Table(members.iter().map(|member| (member.key.clone(), member.node.plain())).collect())
            }
        }
    }
}

/// A value without positions: to be written, or to be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Plain {
    Null,
    Boolean(bool),
    Text(String),
    Other(String),
    List(Vec<Plain>),
    Table(Vec<(String, Plain)>),
}

impl Plain {
    pub(crate) fn text(text: impl Into<String>) -> Plain {
        Plain::Text(text.into())
    }

    pub(crate) fn texts(texts: &[String]) -> Plain {
        Plain::List(texts.iter().map(Plain::text).collect())
    }

    /// The same value with the members of all tables in the order of their keys.
    pub(crate) fn sorted(self) -> Plain {
        match self {
            Plain::List(items) => Plain::List(items.into_iter().map(Plain::sorted).collect()),
            Plain::Table(members) => {
                let mut members: Vec<_> =
                    members.into_iter().map(|(key, value)| (key, value.sorted())).collect();
                members.sort_by(|a, b| a.0.cmp(&b.0));
                Plain::Table(members)
            }
            other => other,
        }
    }
}
