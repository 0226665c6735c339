//! Puts an item into a collection between brackets, and takes one out.
//!
//! Objects and lists of JSON, inline tables of TOML and flow collections of YAML all look alike: items between two
//! brackets, with commas, white space and comments around them.

use std::ops::Range;

use crate::layout::{Layout, Splice, indentation_at, line_start};

/// How comments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comments {
    /// `// …` and `/* … */`
    Slashes,
    /// `# …`
    Hash,
}

/// A collection in a text.
#[derive(Debug, Clone)]
pub(crate) struct Collection {
    /// From the opening bracket to the end of the closing one.
    pub(crate) span: Range<usize>,
    /// The items in order, each from its key to the end of its value.
    pub(crate) items: Vec<Range<usize>>,
    pub(crate) comments: Comments,
    /// Whether an item of an empty collection is written on lines of its own.
    pub(crate) opens_lines: bool,
}

/// Where and how a new item is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ItemStyle {
    /// On one line with its neighbours.
    OneLine,
    /// On lines of its own, with this indentation.
    Lines { indent: String },
}

/// What is inserted, and what beside the item itself.
pub(crate) struct Insertion {
    pub(crate) splices: Vec<Splice>,
    /// White space that was put between the item and the closing bracket.
    pub(crate) after: String,
}

impl Collection {
    /// Inserts an item at the end. `render` writes it in the given style.
    pub(crate) fn insert(
        &self,
        text: &str,
        layout: &Layout,
        render: impl FnOnce(&ItemStyle) -> String,
    ) -> Insertion {
        let inner = self.span.start + 1..self.span.end - 1;
        let has_lines = text[inner.clone()].contains('\n');
        // Comments after the last item stay with it.
        let place = inner.start + text[inner.clone()].trim_end_matches(is_space).len();
        let style = if has_lines || (self.items.is_empty() && self.opens_lines) {
            ItemStyle::Lines { indent: self.item_indentation(text, layout) }
        } else {
            ItemStyle::OneLine
        };
        let item = render(&style);
        let lead = match &style {
            ItemStyle::OneLine if self.items.is_empty() => String::new(),
            ItemStyle::OneLine => " ".to_owned(),
            ItemStyle::Lines { indent } => format!("{}{indent}", layout.newline),
        };
        let mut splices = Vec::new();
        let mut comma = "";
        if let Some(last) = self.items.last() {
            match self.comma_after(text, last.end) {
                Some(_) => comma = ",",
                None => splices.push(Splice::insert(last.end, ",")),
            }
        }
        let closing_is_alone = text[place..inner.end].contains('\n');
        let after = match &style {
            ItemStyle::Lines { .. } if self.items.is_empty() && !closing_is_alone => {
                format!("{}{}", layout.newline, indentation_at(text, self.span.start))
            }
            ItemStyle::OneLine | ItemStyle::Lines { .. } => String::new(),
        };
        splices.push(Splice::insert(place, format!("{lead}{item}{comma}{after}")));
        Insertion { splices, after }
    }

    /// Takes the item `index` out, with its comma, the white space before it, and `after` behind it.
    pub(crate) fn remove(&self, text: &str, index: usize, after: &str) -> Vec<Splice> {
        let item = &self.items[index];
        let mut splices = Vec::new();
        let comma = self.comma_after(text, item.end);
        let mut end = item.end;
        match comma {
            Some(comma) if comma == end => end += 1,
            Some(comma) => splices.push(Splice::cut(comma..comma + 1)),
            None => {
                let before = index.checked_sub(1).and_then(|before| self.items.get(before));
                let orphan = before.and_then(|before| self.comma_after(text, before.end));
                splices.extend(orphan.map(|comma| Splice::cut(comma..comma + 1)));
            }
        }
        if self.items.len() == 1 && text[end..].starts_with(after) {
            end += after.len();
        }
        let start = self.start_with_space(text, item.start, end);
        // Of `{"a": 1, "b": 2}` no second space may stay where the first item goes.
        if start == item.start && index + 1 < self.items.len() {
            end += text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        }
        splices.push(Splice::cut(start..end));
        splices
    }

    /// Whether only white space stands beside the items.
    pub(crate) fn has_no_comments(&self, text: &str) -> bool {
        let mut at = self.span.start + 1;
        let mut gaps = Vec::new();
        for item in &self.items {
            gaps.push(at..item.start);
            at = item.end;
        }
        gaps.push(at..self.span.end - 1);
        gaps.into_iter().all(|gap| text[gap].chars().all(|c| is_space(c) || c == ','))
    }

    /// The offset of `start` moved over the white space before it, as long as no line comment would swallow what
    /// follows `end`.
    fn start_with_space(&self, text: &str, start: usize, end: usize) -> usize {
        let floor = self.span.start + 1;
        let moved = floor + text[floor..start].trim_end_matches(is_space).len();
        let gap = self.items.iter().map(|item| item.end).filter(|end| *end <= moved).max().unwrap_or(floor);
        let in_line_comment = self
            .comment_ranges(text, gap..moved)
            .last()
            .is_some_and(|comment| comment.end == moved && !text[comment.clone()].starts_with("/*"));
        let rest = text[end..].trim_start_matches([' ', '\t']);
        if in_line_comment && !rest.starts_with(['\n', '\r']) { start } else { moved }
    }

    /// The indentation of items on lines of their own.
    fn item_indentation(&self, text: &str, layout: &Layout) -> String {
        let starts_line = |at: usize| text[line_start(text, at)..at].trim().is_empty();
        let sibling = self.items.iter().rev().find(|item| starts_line(item.start));
        match sibling {
            Some(item) => indentation_at(text, item.start).to_owned(),
            None => format!("{}{}", indentation_at(text, self.span.start), layout.unit),
        }
    }

    /// The offset of the comma that follows `end`, behind white space and comments.
    fn comma_after(&self, text: &str, end: usize) -> Option<usize> {
        let close = self.span.end - 1;
        let next = self.items.iter().map(|item| item.start).find(|start| *start >= end).unwrap_or(close);
        let comments = self.comment_ranges(text, end..next);
        text[end..next]
            .char_indices()
            .map(|(at, c)| (end + at, c))
            .find(|(at, c)| *c == ',' && !comments.iter().any(|comment| comment.contains(at)))
            .map(|(at, _)| at)
    }

    /// The comments in `range`, which holds no items.
    fn comment_ranges(&self, text: &str, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let rest = &text[at..range.end];
            let length = match self.comments {
                Comments::Slashes if rest.starts_with("//") => Some(line_length(rest)),
                Comments::Slashes if rest.starts_with("/*") => {
                    Some(rest.find("*/").map_or(rest.len(), |end| end + 2))
                }
                Comments::Hash if rest.starts_with('#') => Some(line_length(rest)),
                Comments::Slashes | Comments::Hash => None,
            };
            match length {
                Some(length) => {
                    found.push(at..at + length);
                    at += length;
                }
                None => at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
        found
    }
}

/// The length of the first line without its line ending.
fn line_length(text: &str) -> usize {
    text.find('\n').map_or(text.len(), |newline| text[..newline].trim_end_matches('\r').len())
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
