//! Lifts the values that an intent names out of a program: `=== "Sales"` becomes `=== args["department"]`.
//!
//! A value is lifted wherever it stands: in comparisons, counts, parts of texts and of templates. What the intent does
//! not name stays a constant. Where the same number stands for several things nothing is lifted, because the intent
//! does not say which one it means. Whether the lifted program is the same one is proven elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pml_analysis::{LiteralSite, SiteForm, SiteUsage};
use pml_model::name::is_inherited;
use serde_json::{Value, json};

use super::LONGEST;
use super::literals::{IntentLiteral, LiteralClass};
use super::template::find_value;
use super::values::says;
use super::vocabulary as table;
use super::words::{self, IntentToken, WordFunction};

/// A program with the values that its intent names taken from `args`.
#[derive(Debug, Clone, PartialEq)]
pub struct LiftedProgram {
    /// The program.
    pub source: String,
    /// What it takes from `args` instead.
    pub parameters: Vec<LiftedParameter>,
}

/// A value that was lifted.
#[derive(Debug, Clone, PartialEq)]
pub struct LiftedParameter {
    /// The name of the member of `args`.
    pub name: String,
    /// The value as it stood in the program.
    pub default: Value,
    /// The pattern of texts that mean themselves at this place: in a regular expression or a query, others mean
    /// something else.
    pub pattern: Option<&'static str>,
}

/// A literal of a tool call that is a parameter anyway.
#[derive(Debug, Clone)]
pub struct ArgumentLiteral {
    /// The name of the parameter.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Where it is written: byte ranges in the source.
    pub written: Vec<(u32, u32)>,
}

/// Texts without characters that have a meaning of their own in queries and patterns.
const PLAIN_TEXT: &str = r"^[\p{L}\p{N} _@,:/-]*$";
/// Names of arguments whose text is a program of some kind.
const CODE_LIKE: &[&str] =
    &["sql", "query", "command", "code", "script", "pattern", "regex", "template", "expression", "prompt"];
/// In bytes: shorter texts may be part of a text by chance.
const TELLING_PART: usize = 3;
/// From here on, equal numbers of a program are rarely equal by chance.
const TELLING_NUMBER: f64 = 20.0;

/// Lifts what `intent` names out of the program `source`. `sites` are its literals, `arguments` those that are
/// parameters anyway, and `taken` the names that `args` has already. `None` if there is nothing to lift.
pub fn lift(
    source: &str,
    sites: &[LiteralSite],
    arguments: &[ArgumentLiteral],
    taken: &BTreeSet<String>,
    intent: &str,
) -> Option<LiftedProgram> {
    if intent.len() > LONGEST {
        return None;
    }
    let tokens = words::tokenize(intent);
    let mut lifter = Lifter { source, arguments, tokens: &tokens, lifts: Vec::new(), taken: taken.clone() };
    lifter.texts(sites);
    lifter.numbers(sites);
    lifter.finish()
}

/// A place of the program where a value is replaced.
struct Lift {
    /// The byte range in the source.
    range: Range<usize>,
    /// The part of the literal's text that is the value; all of it where it is `None`.
    part: Option<Range<usize>>,
    form: SiteForm,
    /// The text of the whole literal.
    text: String,
    value: Value,
    name: String,
    pattern: Option<&'static str>,
}

struct Lifter<'a> {
    source: &'a str,
    arguments: &'a [ArgumentLiteral],
    tokens: &'a [IntentToken],
    lifts: Vec<Lift>,
    taken: BTreeSet<String>,
}

impl Lifter<'_> {
    fn literals(&self) -> impl Iterator<Item = &IntentLiteral> {
        self.tokens.iter().filter_map(|token| match token {
            IntentToken::Literal(literal) => Some(literal),
            IntentToken::Word(_) => None,
        })
    }

    /// The argument that a site is written for, if that is a parameter anyway.
    fn argument_at(&self, site: &LiteralSite) -> Option<&ArgumentLiteral> {
        let within = |(start, end): &(u32, u32)| *start <= site.start && site.end <= *end;
        self.arguments.iter().find(|argument| argument.written.iter().any(within))
    }

    fn texts(&mut self, sites: &[LiteralSite]) {
        for site in sites {
            let Some(text) = site.value.as_str().filter(|text| !text.is_empty()) else { continue };
            let own = self.argument_at(site);
            if own.is_some_and(|own| own.value.is_array()) {
                continue;
            }
            let part = self.named_part(text);
            // `"call Bob\n"` has the words of "call Bob", and is still more than that.
            let is_whole =
                part.is_none() && site.form == SiteForm::Expression && self.names_whole(site, text);
            if is_whole {
                // An argument that the intent names is bound to the intent as it is, unless the program repeats it.
                let repeated = |other: &LiteralSite| {
                    other.value == site.value
                        && self.argument_at(other).is_none()
                        && other.usage == SiteUsage::Value
                };
                if own.is_none() || sites.iter().any(repeated) {
                    let name = own.map(|own| own.name.clone());
                    self.add(site, text, None, name, site.value.clone());
                }
            } else if let Some(part) = part {
                let value = Value::from(&text[part.clone()]);
                self.add(site, text, Some(part), None, value);
            }
        }
    }

    /// Whether the intent names the text as a whole.
    fn names_whole(&self, site: &LiteralSite, text: &str) -> bool {
        if site.usage == SiteUsage::Message || text.trim() != text {
            return false;
        }
        let places = find_value(self.tokens, &Value::from(text));
        let [place, ..] = places.as_slice() else { return false };
        match &self.tokens[place.start] {
            IntentToken::Literal(_) => true,
            IntentToken::Word(word) => {
                // The verb of a request and the nouns of files are no values, whatever the program compares.
                let generic = table::FILE_NOUNS.contains(&word.concept.as_str())
                    || table::BRINGING.contains(&word.concept.as_str())
                    || table::MAKING.contains(&word.concept.as_str());
                let value_like = word.function == WordFunction::Content && place.start > 0 && !generic;
                value_like && site.name.is_some() && text.chars().count() >= TELLING_PART
            }
        }
    }

    /// The part of a text that is a literal of the intent, if it is one and occurs once.
    fn named_part(&self, text: &str) -> Option<Range<usize>> {
        let mut parts = self.literals().filter_map(|literal| {
            let said = literal.text.as_str();
            let is_number = literal.class == LiteralClass::Number;
            let telling = if is_number { said.parse::<f64>().is_ok() } else { said.len() >= TELLING_PART };
            let mut found = text.match_indices(said).map(|(at, _)| at..at + said.len());
            let (first, none) = (found.next()?, found.next().is_none());
            (telling && none && said.len() < text.len() && stands_alone(text, &first)).then_some(first)
        });
        // Two parts of one text would need two parameters; a text like that is rather made for this intent.
        parts.next().filter(|_| parts.next().is_none())
    }

    fn numbers(&mut self, sites: &[LiteralSite]) {
        let named: Vec<IntentLiteral> = self
            .literals()
            .filter(|literal| matches!(literal.class, LiteralClass::Number | LiteralClass::Id))
            .cloned()
            .collect();
        for literal in named {
            let is_argument = self.arguments.iter().any(|argument| says(&literal, &argument.value));
            let is_lifted = self.lifts.iter().any(|lift| lift.value.as_str() == Some(literal.text.as_str()));
            if is_argument || is_lifted {
                continue;
            }
            let equal: Vec<&LiteralSite> = sites
                .iter()
                .filter(|site| {
                    site.value.is_number() && says(&literal, &site.value) && self.argument_at(site).is_none()
                })
                .collect();
            for site in meant(&equal) {
                self.add(site, "", None, None, site.value.clone());
            }
        }
    }

    fn add(
        &mut self,
        site: &LiteralSite,
        text: &str,
        part: Option<Range<usize>>,
        name: Option<String>,
        value: Value,
    ) {
        let range = site.start as usize..site.end as usize;
        let known = self.lifts.iter().find(|lift| lift.value == value).map(|lift| lift.name.clone());
        let name = known.or(name).unwrap_or_else(|| self.free_name(site, &value));
        self.taken.insert(name.clone());
        let code_like = site.name.as_deref().is_some_and(|name| CODE_LIKE.contains(&name));
        let pattern = (code_like && value.is_string()).then_some(PLAIN_TEXT);
        self.lifts.push(Lift { range, part, form: site.form, text: text.to_owned(), value, name, pattern });
    }

    /// A name for a value: that of the field, argument or variable it stands with, else that of its class.
    fn free_name(&self, site: &LiteralSite, value: &Value) -> String {
        let telling = |name: &&String| {
            name.chars().count() > 1
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && !is_inherited(name)
        };
        let literal = self.literals().find(|literal| says(literal, value));
        let class = || match literal.map(|literal| literal.class) {
            Some(LiteralClass::Path) => "path",
            Some(LiteralClass::Url) => "url",
            Some(LiteralClass::Email) => "email",
            Some(LiteralClass::Date) => "date",
            Some(LiteralClass::Id) => "id",
            Some(LiteralClass::Number) => "number",
            Some(LiteralClass::Name) => "name",
            Some(_) | None if value.is_number() => "number",
            Some(_) | None => "text",
        };
        let wanted = site.name.as_ref().filter(telling).map_or_else(|| class().to_owned(), Clone::clone);
        if !self.taken.contains(&wanted) {
            return wanted;
        }
        (2_u32..)
            .map(|number| format!("{wanted}_{number}"))
            .find(|name| !self.taken.contains(name))
            .unwrap_or(wanted)
    }

    fn finish(mut self) -> Option<LiftedProgram> {
        if self.lifts.is_empty() {
            return None;
        }
        self.lifts.sort_by_key(|lift| lift.range.start);
        let mut source = String::with_capacity(self.source.len() + 24 * self.lifts.len());
        let mut parameters: BTreeMap<&str, LiftedParameter> = BTreeMap::new();
        let mut done = 0;
        for lift in &self.lifts {
            source.push_str(self.source.get(done..lift.range.start)?);
            source.push_str(&lift.replacement(self.source)?);
            done = lift.range.end;
            let parameter = parameters.entry(&lift.name).or_insert_with(|| LiftedParameter {
                name: lift.name.clone(),
                default: lift.value.clone(),
                pattern: None,
            });
            parameter.pattern = parameter.pattern.or(lift.pattern);
        }
        source.push_str(self.source.get(done..)?);
        Some(LiftedProgram { source, parameters: parameters.into_values().collect() })
    }
}

impl Lift {
    /// The source text that replaces the literal.
    fn replacement(&self, source: &str) -> Option<String> {
        let argument = format!("args[{}]", json!(self.name));
        let Some(part) = &self.part else { return Some(argument) };
        Some(match self.form {
            SiteForm::Expression => format!(
                "`{}${{{argument}}}{}`",
                in_template(&self.text[..part.start]),
                in_template(&self.text[part.end..])
            ),
            SiteForm::TemplateText => {
                let written = source.get(self.range.clone())?;
                format!("{}${{{argument}}}{}", written.get(..part.start)?, written.get(part.end..)?)
            }
        })
    }
}

/// The sites that a number of the intent means: the only one, or all of them where they cannot be equal by chance.
fn meant<'s>(equal: &[&'s LiteralSite]) -> Vec<&'s LiteralSite> {
    let values = |usage: &[SiteUsage]| -> Vec<&'s LiteralSite> {
        equal.iter().copied().filter(|site| usage.contains(&site.usage)).collect()
    };
    let computed = values(&[SiteUsage::Value, SiteUsage::Count]);
    let sites = if computed.is_empty() { values(&[SiteUsage::Layout]) } else { computed };
    let counted: Vec<_> = sites.iter().copied().filter(|site| site.usage == SiteUsage::Count).collect();
    let number = sites.first().and_then(|site| site.value.as_f64()).unwrap_or_default().abs();
    match (sites.as_slice(), counted.as_slice()) {
        ([_], _) => sites,
        // `slice(0, 3)` takes three; another 3 of the program is something else.
        (_, [_]) => counted,
        _ if number >= TELLING_NUMBER || number.fract() != 0.0 => sites,
        _ => Vec::new(),
    }
}

/// Whether a part of a text is not the middle of a longer word or number.
fn stands_alone(text: &str, part: &Range<usize>) -> bool {
    let before = text[..part.start].chars().next_back();
    let after = text[part.end..].chars().next();
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let decimal =
        |c: Option<char>, rest: Option<char>| c == Some('.') && rest.is_some_and(|c| c.is_ascii_digit());
    let mut behind = text[part.end..].chars();
    let mut ahead = text[..part.start].chars().rev();
    !joins(before)
        && !joins(after)
        && !decimal(behind.next(), behind.next())
        && !(text[part.clone()].starts_with(|c: char| c.is_ascii_digit())
            && decimal(ahead.next(), ahead.next()))
}

/// A text as it is written within a template.
fn in_template(text: &str) -> String {
    let mut written = String::with_capacity(text.len() + 2);
    for c in text.chars() {
        match c {
            '`' | '\\' | '$' => written.extend(['\\', c]),
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\u{2028}' | '\u{2029}' => written.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => written.push(c),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(intent: &str, source: &str, expected: &str) {
        let sites = pml_analysis::find_literal_sites(source).unwrap();
        let lifted = lift(source, &sites, &[], &BTreeSet::new(), intent);
        let shown = lifted.map_or_else(String::new, |lifted| {
            let defaults: Vec<String> =
                lifted.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
            format!("{} | {}", lifted.source, defaults.join(" "))
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn values_are_lifted_wherever_they_stand() {
        check(
            "average salary of the Sales department",
            "return rows.filter((r) => r.department === 'Sales')",
            "return rows.filter((r) => r.department === args[\"department\"]) | department=\"Sales\"",
        );
        check(
            "top 3 products by units",
            "return rows.slice(0, 3).map((r) => r.units.toFixed(3))",
            "return rows.slice(0, args[\"count\"]).map((r) => r.units.toFixed(3)) | count=3",
        );
        check(
            "monthly rate at 5 percent a year",
            "const rate = 5 / 1200; return rate",
            "const rate = args[\"rate\"] / 1200; return rate | rate=5",
        );
        check(
            "add the line \"call Bob\" to the list",
            "await w({ content: \"call Bob\\n\" }); return 'added'",
            "await w({ content: `${args[\"content\"]}\\n` }); return 'added' | content=\"call Bob\"",
        );
        check(
            "write a report for Lyon",
            "return `Report of ${x} for Lyon.`",
            "return `Report of ${x} for ${args[\"name\"]}.` | name=\"Lyon\"",
        );
        check(
            "evaluate 12 + 7",
            "return f({ expression: '12 * 100' })",
            "return f({ expression: `${args[\"expression\"]} * 100` }) | expression=\"12\"",
        );
    }

    #[test]
    fn what_the_intent_does_not_name_stays() {
        check("average salary of everybody", "return rows.filter((r) => r.department === 'Sales')", "");
        check("read the file", "return x.type === 'file'", "");
        check("top 2 of 2 lists", "return [a.slice(0, 2), b.slice(0, 2)]", "");
        check("count Ann", "return x.includes('Annabel')", "");
        check("version 3", "return x === '3.5'", "");
    }

    #[test]
    fn one_value_is_one_parameter() {
        check(
            "orders over 250 euros",
            "return rows.filter((r) => r.total > 250).map((r) => r.total - 250)",
            "return rows.filter((r) => r.total > args[\"total\"]).map((r) => r.total - args[\"total\"]) | total=250",
        );
    }
}
