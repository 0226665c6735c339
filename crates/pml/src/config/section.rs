//! Reads typed settings out of one table, complaining by place where one is not what it must be.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::{Complaint, nearest};
use super::node::{File, Member, Node, Value};

/// One table of a file. `name` is what complaints call it, such as `servers.github`.
pub(super) struct Section<'f> {
    pub(super) file: &'f File,
    pub(super) at: usize,
    name: String,
    members: &'f [Member],
}

impl<'f> Section<'f> {
    /// The table in `node`, whatever its keys are.
    pub(super) fn open(file: &'f File, node: &'f Node, name: &str) -> Result<Section<'f>, Complaint> {
        let Value::Table(members) = &node.value else {
            return Err(wrong(file, node, name, "a table"));
        };
        Ok(Section { file, at: node.at, name: name.to_owned(), members })
    }

    /// The table in `node`, which may have only the keys `known`.
    pub(super) fn strict(
        file: &'f File,
        node: &'f Node,
        name: &str,
        known: &[&str],
    ) -> Result<Section<'f>, Complaint> {
        let section = Section::open(file, node, name)?;
        match section.members.iter().find(|member| !known.contains(&member.key.as_str())) {
            Some(member) => Err(section.unknown(member, known)),
            None => Ok(section),
        }
    }

    fn unknown(&self, member: &Member, known: &[&str]) -> Complaint {
        let hint = match nearest(&member.key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", listed(known)),
        };
        self.file.complaint(member.key_at, format!("unknown key `{}`", member.key)).hint(hint)
    }

    /// Every member, in order.
    pub(super) fn members(&self) -> &'f [Member] {
        self.members
    }

    /// The member `key`; the last one where JSON repeats it.
    pub(super) fn member(&self, key: &str) -> Option<&'f Member> {
        self.members.iter().rev().find(|member| member.key == key)
    }

    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&'f Node> {
        self.member(key).map(|member| &member.node)
    }

    /// The table `key`.
    pub(super) fn section(&self, key: &str, known: &[&str]) -> Result<Option<Section<'f>>, Complaint> {
        self.get(key).map(|node| Section::strict(self.file, node, &self.path(key), known)).transpose()
    }

    /// The text `key`.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'f str>, Complaint> {
        self.get(key).map(|node| text(self.file, node, &self.path(key))).transpose()
    }

    /// The list of texts `key`; empty where absent.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<(&'f str, usize)>, Complaint> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let Value::List(items) = &node.value else {
            return Err(wrong(self.file, node, &self.path(key), "a list of texts"));
        };
        let name = format!("{}[]", self.path(key));
        items.iter().map(|item| Ok((text(self.file, item, &name)?, item.at))).collect()
    }

    /// The table of texts `key`; empty where absent.
    pub(super) fn text_map(&self, key: &str) -> Result<BTreeMap<String, String>, Complaint> {
        let Some(node) = self.get(key) else { return Ok(BTreeMap::new()) };
        let table = Section::open(self.file, node, &self.path(key))?;
        table
            .members
            .iter()
            .map(|member| {
                let value = text(self.file, &member.node, &table.path(&member.key))?;
                Ok((member.key.clone(), value.to_owned()))
            })
            .collect()
    }

    /// The switch `key`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Complaint> {
        match self.get(key) {
            None => Ok(None),
            Some(Node { value: Value::Flag(flag), .. }) => Ok(Some(*flag)),
            Some(node) => Err(wrong(self.file, node, &self.path(key), "true or false")),
        }
    }

    /// The time `key`: seconds, or a text such as `"500ms"`, `"30s"`, `"5m"` or `"1h"`.
    pub(super) fn duration(&self, key: &str) -> Result<Option<Duration>, Complaint> {
        let what = "a number of seconds, or a text such as \"30s\" or \"5m\"";
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        Ok(self.quantity(key, what, 1_000, &units)?.map(Duration::from_millis))
    }

    /// The time `key`, within `range`.
    pub(super) fn duration_in(
        &self,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, Complaint> {
        self.within(key, self.duration(key)?, &range, |time| duration_text(*time))
    }

    /// The number `key`, within `range`.
    pub(super) fn count(&self, key: &str, range: RangeInclusive<u32>) -> Result<Option<u32>, Complaint> {
        let number = self.quantity(key, "a whole number", 1, &[])?;
        // What does not fit is beyond every range.
        let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        self.within(key, number, &range, u32::to_string)
    }

    /// The size `key`, within `range`: bytes, or a text such as `"64KiB"` or `"4 MiB"`.
    pub(super) fn size(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Complaint> {
        let what = "a number of bytes, or a text such as \"256KiB\" or \"64MiB\"";
        let size_bytes = self.quantity(key, what, 1, SIZE_UNITS)?;
        self.within(key, size_bytes, &range, |size_bytes| size_text(*size_bytes))
    }

    fn within<T: PartialOrd>(
        &self,
        key: &str,
        value: Option<T>,
        range: &RangeInclusive<T>,
        shown: impl Fn(&T) -> String,
    ) -> Result<Option<T>, Complaint> {
        match (&value, self.get(key)) {
            (Some(outside), Some(node)) if !range.contains(outside) => {
                let (least, most) = (shown(range.start()), shown(range.end()));
                let bound = if outside < range.start() { "too little" } else { "too much" };
                Err(self
                    .file
                    .complaint(node.at, format!("`{}` is {bound}", self.path(key)))
                    .hint(format!("it may be {least} to {most}")))
            }
            (_, _) => Ok(value),
        }
    }

    /// A whole number above 0, times `bare` or, in a text, times the factor of its unit.
    fn quantity(
        &self,
        key: &str,
        what: &str,
        bare: u64,
        units: &[(&str, u64)],
    ) -> Result<Option<u64>, Complaint> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let number = match &node.value {
            Value::Whole(number) => u64::try_from(*number).ok().and_then(|number| number.checked_mul(bare)),
            Value::Text(text) => units.iter().find_map(|(unit, factor)| {
                text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*factor)
            }),
            Value::Flag(_) | Value::List(_) | Value::Table(_) | Value::Other(_) => {
                return Err(wrong(self.file, node, &self.path(key), what));
            }
        };
        match number {
            Some(number @ 1..) => Ok(Some(number)),
            Some(0) | None => {
                let message = format!("`{}` must be {what}", self.path(key));
                Err(self
                    .file
                    .complaint(node.at, message)
                    .hint("write it in that form, above 0, or leave it out for the default"))
            }
        }
    }

    /// What complaints call the table itself.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// What complaints call the member `key`.
    pub(super) fn path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

/// The largest first, so that a text is written with the largest that divides it.
const SIZE_UNITS: &[(&str, u64)] = &[("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

fn size_text(size_bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().find(|(_, factor)| size_bytes.is_multiple_of(*factor));
    unit.map_or_else(|| size_bytes.to_string(), |(unit, factor)| format!("{} {unit}", size_bytes / factor))
}

fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds if seconds.is_multiple_of(3_600) => format!("{} h", seconds / 3_600),
        seconds => format!("{seconds} s"),
    }
}

fn text<'f>(file: &File, node: &'f Node, name: &str) -> Result<&'f str, Complaint> {
    match &node.value {
        Value::Text(text) => Ok(text),
        Value::Whole(number) => {
            Err(wrong(file, node, name, "a text").hint(format!("put it in quotes: \"{number}\"")))
        }
        Value::Flag(_) | Value::List(_) | Value::Table(_) | Value::Other(_) => {
            Err(wrong(file, node, name, "a text"))
        }
    }
}

/// The complaint about a value of the wrong kind.
pub(super) fn wrong(file: &File, node: &Node, name: &str, wanted: &str) -> Complaint {
    let example = match wanted {
        "a text" => "write it in quotes",
        "a list of texts" => "write it as [\"one\", \"two\"]",
        "a table" => "give it keys and values of its own",
        "true or false" => "write `true` or `false`, without quotes",
        _ => "write it in that form, or leave it out for the default",
    };
    file.complaint(node.at, format!("`{name}` must be {wanted}, not {}", node.value.kind())).hint(example)
}

/// `words` for a sentence.
pub(super) fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
