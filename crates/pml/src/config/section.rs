//! Reads typed settings from one table, with an error at the position of each invalid value.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::error::{ConfigComplaint, nearest_word};
use super::node::{ConfigFile, ConfigMember, ConfigNode, ConfigValue};

/// One table of a file. `name` is its path in error messages, such as `servers.github`.
pub(super) struct Section<'f> {
    pub(super) file: &'f ConfigFile,
    pub(super) at: usize,
    name: String,
    members: &'f [ConfigMember],
}

impl<'f> Section<'f> {
    /// Opens the table in `node`; any keys are allowed.
    pub(super) fn open(
        file: &'f ConfigFile,
        node: &'f ConfigNode,
        name: &str,
    ) -> Result<Section<'f>, ConfigComplaint> {
        let ConfigValue::Table(members) = &node.value else {
            return Err(wrong_type(file, node, name, "a table"));
        };
        Ok(Section { file, at: node.at, name: name.to_owned(), members })
    }

    /// Opens the table in `node`; only the keys in `known` are allowed.
    pub(super) fn open_strict(
        file: &'f ConfigFile,
        node: &'f ConfigNode,
        name: &str,
        known: &[&str],
    ) -> Result<Section<'f>, ConfigComplaint> {
        let section = Section::open(file, node, name)?;
        match section.members.iter().find(|member| !known.contains(&member.key.as_str())) {
            Some(member) => Err(section.unknown(member, known)),
            None => Ok(section),
        }
    }

    fn unknown(&self, member: &ConfigMember, known: &[&str]) -> ConfigComplaint {
        let hint = match nearest_word(&member.key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", join_words(known)),
        };
        self.file.complaint(member.key_at, format!("unknown key `{}`", member.key)).hint(hint)
    }

    /// All members, in order.
    pub(super) fn members(&self) -> &'f [ConfigMember] {
        self.members
    }

    /// The member `key`; the last one where JSON repeats it.
    pub(super) fn member(&self, key: &str) -> Option<&'f ConfigMember> {
        self.members.iter().rev().find(|member| member.key == key)
    }

    /// The value of `key`.
    pub(super) fn get(&self, key: &str) -> Option<&'f ConfigNode> {
        self.member(key).map(|member| &member.node)
    }

    /// The table `key`.
    pub(super) fn section(&self, key: &str, known: &[&str]) -> Result<Option<Section<'f>>, ConfigComplaint> {
        self.get(key)
            .map(|node| Section::open_strict(self.file, node, &self.member_path(key), known))
            .transpose()
    }

    /// The text `key`.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'f str>, ConfigComplaint> {
        self.get(key).map(|node| text(self.file, node, &self.member_path(key))).transpose()
    }

    /// The list of texts `key`; empty where absent.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<(&'f str, usize)>, ConfigComplaint> {
        let Some(node) = self.get(key) else { return Ok(Vec::new()) };
        let ConfigValue::List(items) = &node.value else {
            return Err(wrong_type(self.file, node, &self.member_path(key), "a list of texts"));
        };
        let name = format!("{}[]", self.member_path(key));
        items.iter().map(|item| Ok((text(self.file, item, &name)?, item.at))).collect()
    }

    /// The table of texts `key`; empty where absent.
    pub(super) fn text_map(&self, key: &str) -> Result<BTreeMap<String, String>, ConfigComplaint> {
        let Some(node) = self.get(key) else { return Ok(BTreeMap::new()) };
        let table = Section::open(self.file, node, &self.member_path(key))?;
        table
            .members
            .iter()
            .map(|member| {
                let value = text(self.file, &member.node, &table.member_path(&member.key))?;
                Ok((member.key.clone(), value.to_owned()))
            })
            .collect()
    }

    /// The boolean `key`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, ConfigComplaint> {
        match self.get(key) {
            None => Ok(None),
            Some(ConfigNode { value: ConfigValue::Boolean(flag), .. }) => Ok(Some(*flag)),
            Some(node) => Err(wrong_type(self.file, node, &self.member_path(key), "true or false")),
        }
    }

    /// The duration `key`: seconds, or a text such as `"500ms"`, `"30s"`, `"5m"` or `"1h"`.
    pub(super) fn duration(&self, key: &str) -> Result<Option<Duration>, ConfigComplaint> {
        let what = "a number of seconds, or a text such as \"30s\" or \"5m\"";
        let units = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];
        Ok(self.quantity(key, what, 1_000, &units)?.map(Duration::from_millis))
    }

    /// The duration `key`, which must be within `range`.
    pub(super) fn duration_in(
        &self,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Result<Option<Duration>, ConfigComplaint> {
        self.within(key, self.duration(key)?, &range, |time| duration_text(*time))
    }

    /// The number `key`, which must be within `range`.
    pub(super) fn count(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ConfigComplaint> {
        let number = self.quantity(key, "a whole number", 1, &[])?;
        // A number that does not fit is outside every range.
        let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        self.within(key, number, &range, u32::to_string)
    }

    /// The number `key`, at most `most`; 0 is allowed.
    pub(super) fn count_from_zero(&self, key: &str, most: u32) -> Result<Option<u32>, ConfigComplaint> {
        match self.get(key) {
            Some(ConfigNode { value: ConfigValue::Integer(0), .. }) => Ok(Some(0)),
            _ => {
                let number = self.quantity(key, "a whole number", 1, &[])?;
                let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
                self.within(key, number, &(0..=most), u32::to_string)
            }
        }
    }

    /// The size `key`, which must be within `range`: bytes, or a text such as `"64KiB"` or `"4 MiB"`.
    pub(super) fn size(&self, key: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, ConfigComplaint> {
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
    ) -> Result<Option<T>, ConfigComplaint> {
        match (&value, self.get(key)) {
            (Some(outside), Some(node)) if !range.contains(outside) => {
                let (least, most) = (shown(range.start()), shown(range.end()));
                let bound = if outside < range.start() { "too little" } else { "too much" };
                Err(self
                    .file
                    .complaint(node.at, format!("`{}` is {bound}", self.member_path(key)))
                    .hint(format!("it may be {least} to {most}")))
            }
            (_, _) => Ok(value),
        }
    }

    /// A positive whole number, times `bare` or, in a text, times the factor of its unit.
    fn quantity(
        &self,
        key: &str,
        what: &str,
        bare: u64,
        units: &[(&str, u64)],
    ) -> Result<Option<u64>, ConfigComplaint> {
        let Some(node) = self.get(key) else { return Ok(None) };
        let number = match &node.value {
            ConfigValue::Integer(number) => {
                u64::try_from(*number).ok().and_then(|number| number.checked_mul(bare))
            }
            ConfigValue::Text(text) => units.iter().find_map(|(unit, factor)| {
                text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*factor)
            }),
            ConfigValue::Boolean(_)
            | ConfigValue::List(_)
            | ConfigValue::Table(_)
            | ConfigValue::Other(_) => {
                return Err(wrong_type(self.file, node, &self.member_path(key), what));
            }
        };
        match number {
            Some(number @ 1..) => Ok(Some(number)),
            Some(0) | None => {
                let message = format!("`{}` must be {what}", self.member_path(key));
                Err(self
                    .file
                    .complaint(node.at, message)
                    .hint("write it in that form, above 0, or leave it out for the default"))
            }
        }
    }

    /// The path of the table in error messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The path of the member `key` in error messages.
    pub(super) fn member_path(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

/// Units from the largest to the smallest, so that a size is printed with the largest that divides it.
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

fn text<'f>(file: &ConfigFile, node: &'f ConfigNode, name: &str) -> Result<&'f str, ConfigComplaint> {
    match &node.value {
        ConfigValue::Text(text) => Ok(text),
        ConfigValue::Integer(number) => {
            Err(wrong_type(file, node, name, "a text").hint(format!("put it in quotes: \"{number}\"")))
        }
        ConfigValue::Boolean(_) | ConfigValue::List(_) | ConfigValue::Table(_) | ConfigValue::Other(_) => {
            Err(wrong_type(file, node, name, "a text"))
        }
    }
}

/// The error for a value of the wrong type.
pub(super) fn wrong_type(file: &ConfigFile, node: &ConfigNode, name: &str, wanted: &str) -> ConfigComplaint {
    let example = match wanted {
        "a text" => "write it in quotes",
        "a list of texts" => "write it as [\"one\", \"two\"]",
        "a table" => "give it keys and values of its own",
        "true or false" => "write `true` or `false`, without quotes",
        _ => "write it in that form, or leave it out for the default",
    };
    file.complaint(node.at, format!("`{name}` must be {wanted}, not {}", node.value.kind())).hint(example)
}

/// `words` joined for a sentence.
pub(super) fn join_words(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
