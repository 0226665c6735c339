//! The differences between a call and the last calls of the same tool that a person allowed.
//!
//! These are pure functions over text. Values are compared as they are spelled, so that two numbers that only look
//! alike to a program are not taken for equal. The differences are a reading aid: the question itself contains the
//! complete arguments.

use std::collections::BTreeMap;

use pml_model::json::canonical_json;
use pml_model::name::truncate_text;
use pml_model::question::{ApprovalArguments, ApprovalQuestion, CallToApprove};
use pml_store::AllowedArguments;
use serde_json::value::RawValue;

use super::words::visible;

/// The number of differences listed per call; the remaining ones are counted in one line.
const MOST_LINES: usize = 12;
/// The number of characters shown of an old or new value.
const VALUE_CHARACTERS: usize = 120;
/// The number of characters kept of a long common beginning.
const COMMON_CHARACTERS: usize = 20;

/// Adds the differences to each call of a question whose tool a person allowed before.
pub(crate) fn fill(question: &mut ApprovalQuestion, last: &[AllowedArguments]) {
    for asked in &mut question.calls {
        if let Some(last) = last.iter().find(|last| last.tool == asked.tool) {
            asked.differs = differences(asked, last);
        }
    }
}

/// The tools in a question.
pub(crate) fn tools(question: &ApprovalQuestion) -> Vec<String> {
    let mut tools: Vec<String> = question.calls.iter().map(|asked| asked.tool.clone()).collect();
    tools.sort();
    tools.dedup();
    tools
}

/// The arguments that an approval of the question allows, as far as the question shows them.
pub(crate) fn allowed(question: &ApprovalQuestion) -> Vec<AllowedArguments> {
    let mut all: Vec<AllowedArguments> = Vec::new();
    for asked in &question.calls {
        let ApprovalArguments::Known { json, .. } = &asked.arguments else { continue };
        match all.iter_mut().find(|allowed| allowed.tool == asked.tool) {
            Some(allowed) => allowed.arguments.push(json.clone()),
            None => all.push(AllowedArguments {
                tool: asked.tool.clone(),
                definition: asked.definition.clone(),
                arguments: vec![json.clone()],
            }),
        }
    }
    all
}

fn differences(asked: &CallToApprove, last: &AllowedArguments) -> Vec<String> {
    let mut lines = Vec::new();
    if asked.definition != last.definition {
        lines.push("the tool itself is defined in another way than then".to_owned());
    }
    if let ApprovalArguments::Known { json, .. } = &asked.arguments
        && let Ok(now) = canonical_json(json)
    {
        let before = last.arguments.iter().filter_map(|json| canonical_json(json).ok());
        // Several calls may have been allowed at once: compare with the most similar one.
        let nearest =
            before.map(|before| ArgumentDiff::between(&before, &now)).min_by_key(|found| found.count);
        lines.extend(nearest.map(ArgumentDiff::told).unwrap_or_default());
    }
    lines
}

/// The differences found so far, up to the number listed.
#[derive(Default)]
struct ArgumentDiff {
    lines: Vec<String>,
    count: usize,
}

impl ArgumentDiff {
    fn between(before: &str, now: &str) -> ArgumentDiff {
        let mut found = ArgumentDiff::default();
        found.compare(before, now, "");
        found
    }

    /// Collects the differences between two values in canonical form.
    fn compare(&mut self, before: &str, now: &str, place: &str) {
        if before == now {
            return;
        }
        if let (Some(before), Some(now)) = (members(before), members(now)) {
            self.compare_members(&before, &now, place);
        } else if let (Some(before), Some(now)) = (items(before), items(now)) {
            for index in 0..before.len().max(now.len()) {
                self.either(before.get(index), now.get(index), || format!("{place}[{index}]"));
            }
        } else {
            let (before, now) = where_they_part(before, now);
            self.tell(|| format!("{}: {before} → {now}", named(place)));
        }
    }

    fn compare_members(&mut self, before: &ArgumentMembers<'_>, now: &ArgumentMembers<'_>, place: &str) {
        let at = |key: &str| if place.is_empty() { key.to_owned() } else { format!("{place}.{key}") };
        for (key, was) in before {
            self.either(Some(was), now.get(key), || at(key));
        }
        for (key, is) in now.iter().filter(|(key, _)| !before.contains_key(*key)) {
            self.either(None, Some(is), || at(key));
        }
    }

    fn either(&mut self, before: Option<&&RawValue>, now: Option<&&RawValue>, place: impl Fn() -> String) {
        let short = |value: &RawValue| visible(&truncate_text(value.get(), VALUE_CHARACTERS));
        match (before, now) {
            (Some(before), Some(now)) if before.get() == now.get() => {}
            (Some(before), Some(now)) => self.compare(before.get(), now.get(), &place()),
            (Some(before), None) => {
                self.tell(|| format!("{} is gone, it was {}", named(&place()), short(before)));
            }
            (None, Some(now)) => self.tell(|| format!("{} is new: {}", named(&place()), short(now))),
            (None, None) => {}
        }
    }

    fn tell(&mut self, line: impl Fn() -> String) {
        self.count += 1;
        if self.lines.len() < MOST_LINES {
            self.lines.push(line());
        }
    }

    fn told(mut self) -> Vec<String> {
        let others = self.count - self.lines.len();
        if others > 0 {
            self.lines.push(format!("and {others} more"));
        }
        self.lines
    }
}

type ArgumentMembers<'a> = BTreeMap<String, &'a RawValue>;

fn members(json: &str) -> Option<ArgumentMembers<'_>> {
    json.starts_with('{').then(|| serde_json::from_str(json).ok())?
}

fn items(json: &str) -> Option<Vec<&RawValue>> {
    json.starts_with('[').then(|| serde_json::from_str(json).ok())?
}

/// The display name of a place in the arguments.
fn named(place: &str) -> String {
    match place {
        "" => "the arguments".to_owned(),
        place => format!("`{}`", visible(&truncate_text(place, VALUE_CHARACTERS))),
    }
}

/// Both values from shortly before the point where they differ, because long ones may differ only near the end.
fn where_they_part(before: &str, now: &str) -> (String, String) {
    let common = before.chars().zip(now.chars()).take_while(|(before, now)| before == now).count();
    let long = before.chars().nth(VALUE_CHARACTERS).or_else(|| now.chars().nth(VALUE_CHARACTERS)).is_some();
    let skipped = if long { common.saturating_sub(COMMON_CHARACTERS) } else { 0 };
    let part = |value: &str| {
        let rest: String = value.chars().skip(skipped).collect();
        let cut = if skipped > 0 { "…" } else { "" };
        format!("{cut}{}", visible(&truncate_text(&rest, VALUE_CHARACTERS)))
    };
    (part(before), part(now))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use pml_model::Digest;

    use super::*;
    use crate::approve::question::tests::{asked as call, question};

    fn asked(json: Option<&str>) -> CallToApprove {
        call("fs:write", json, false)
    }

    /// Compares a call with arguments `now` with the allowed ones in `before`.
    #[track_caller]
    fn check(before: &[&str], now: &str, expected: &Expect) {
        let last = allowed(&question(before.iter().map(|json| asked(Some(json))).collect()));
        let mut question = question(vec![asked(Some(now))]);
        fill(&mut question, &last);
        expected.assert_eq(&question.calls[0].differs.join("\n"));
    }

    #[test]
    fn each_member_that_changed_is_told_with_what_it_was_and_is() {
        check(
            &[r#"{"path":"a.txt","mode":"w","deep":{"list":[1,2,{"x":null}]},"old":[1]}"#],
            r#"{"deep":{"list":[1,3,{"x":true},4]},"mode":"w","path":"b.txt","new":{"k":1}}"#,
            &expect![[r#"
                `deep.list[1]`: 2 → 3
                `deep.list[2].x`: null → true
                `deep.list[3]` is new: 4
                `old` is gone, it was [1]
                `path`: "a.txt" → "b.txt"
                `new` is new: {"k":1}"#]],
        );
        check(&[r#"{"a":[1]}"#], r#"{"a":{"0":1}}"#, &expect!["`a`: [1] → {\"0\":1}"]);
        check(&["[1]"], "7", &expect!["the arguments: [1] → 7"]);
    }

    #[test]
    fn the_same_value_in_another_spelling_is_the_same_and_another_number_is_another() {
        check(&[r#"{"a":1,"b":"é"}"#], r#"{ "b":"\u00e9", "a":1 }"#, &expect![""]);
        check(
            &[r#"{"id":12345678901234567890123}"#],
            r#"{"id":12345678901234567890124}"#,
            &expect!["`id`: 12345678901234567890123 → 12345678901234567890124"],
        );
    }

    #[test]
    fn a_call_is_compared_with_the_one_it_is_most_like() {
        let before = [r#"{"to":"ann","text":"hi","n":1}"#, r#"{"to":"bob","text":"ho","n":2}"#];
        check(&before, before[0], &expect![""]);
        check(&before, r#"{"to":"bob","text":"ha","n":2}"#, &expect![[r#"`text`: "ho" → "ha""#]]);
    }

    #[test]
    fn long_values_are_cut_to_where_they_part_and_nothing_hides_in_them() {
        let text = |end: &str| format!(r#"{{"text":"{}{end}"}}"#, "word ".repeat(400));
        check(
            &[&text("fin")],
            &text("\\u202etxt\\nx"),
            &expect![[r#"`text`: …word word word word fin" → …word word word word \u{202e}txt\nx""#]],
        );
        let many = |n: u32| serde_json::json!((0..40).map(|i| i * n).collect::<Vec<_>>()).to_string();
        let mut now = question(vec![asked(Some(&many(2)))]);
        fill(&mut now, &allowed(&question(vec![asked(Some(&many(1)))])));
        assert_eq!(now.calls[0].differs.len(), MOST_LINES + 1);
        assert_eq!(now.calls[0].differs.last().unwrap(), "and 27 more");
    }

    #[test]
    fn another_definition_is_told_and_what_is_not_known_yet_is_not_compared() {
        let mut last = allowed(&question(vec![asked(Some("{}")), asked(None)]));
        assert_eq!(last[0].arguments, ["{}"]);
        let mut now = question(vec![asked(None)]);
        fill(&mut now, &last);
        assert!(now.calls[0].differs.is_empty());
        last[0].definition = Digest::of(b"another");
        fill(&mut now, &last);
        assert_eq!(now.calls[0].differs, ["the tool itself is defined in another way than then"]);
    }
}
