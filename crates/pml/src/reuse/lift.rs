//! Lifts the values that an intent names out of a program: `=== "Sales"` becomes `=== args["department"]`.
//!
//! A value is lifted wherever it stands: in comparisons, counts, lists, parts of texts, templates and patterns. What the
//! intent does not name stays a constant. Where the same number stands for several things nothing is lifted, because the
//! intent does not say which one it means. Whether the lifted program is the same one is proven elsewhere.

mod choices;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pml_analysis::{LiteralSite, SiteForm, SiteUsage, is_code_like};
use pml_model::name::is_inherited;
use serde_json::{Value, json};

use super::LONGEST;
use super::choice::said_choice;
use super::find::find_value;
use super::literals::{IntentLiteral, LiteralClass};
use super::switch::said_of_value;
use super::values::says;
use super::vocabulary as table;
use super::words::{self, IntentToken, IntentWord, WordFunction};

/// A program with the values that its intent names taken from `args`.
#[derive(Debug, Clone, PartialEq)]
pub struct LiftedProgram {
    /// The program.
    pub source: String,
    /// What it takes from `args` instead.
    pub parameters: Vec<LiftedParameter>,
    /// Arguments that equal a number of the intent by chance: the intent says nothing of them.
    pub unspoken: Vec<String>,
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
    /// What it may be, where the program says so; empty where it does not.
    pub choices: Vec<String>,
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
/// The same for places where a point is nothing but a decimal point.
const PLAIN_VALUE: &str = r"^(?:[\p{L}\p{N} _@,:/-]*|-?[0-9]+\.[0-9]+)$";
/// Names of arguments whose numbers lay out a result.
pub(super) const LAYOUT_ARGUMENTS: &[&str] =
    &["digits", "indent", "precision", "decimals", "places", "radix"];
/// In characters: shorter words may be part of a text by chance.
const TELLING: usize = 3;

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
    let mut lifter = Lifter {
        source,
        sites,
        arguments,
        tokens: &tokens,
        lifts: Vec::new(),
        settled: BTreeSet::new(),
        unspoken: BTreeSet::new(),
        taken: taken.clone(),
    };
    // Values that look like values first: `tickets` is no part of `tickets/open.csv` where that is named as a whole.
    let (literals, words): (Vec<usize>, Vec<usize>) =
        (0..tokens.len()).partition(|at| matches!(tokens[*at], IntentToken::Literal(_)));
    literals.into_iter().for_each(|at| lifter.lift_literal(at));
    let mut lifted = None;
    for at in words {
        // `the test step`: where both stand in the program, the second one says what the first is.
        let follows = lifted.is_some_and(|before: usize| before + 1 == at);
        if !follows && lifter.lift_word(at) {
            lifted = Some(at);
        }
    }
    (0..sites.len()).for_each(|site| lifter.lift_switch(site));
    (0..sites.len()).for_each(|site| lifter.lift_choice(site));
    lifter.finish()
}

/// A part of a literal that is replaced.
struct Lift {
    site: usize,
    /// The byte range in the text of the literal; all of it where it is `None`.
    part: Option<Range<usize>>,
    value: Value,
    name: String,
}

/// A place where a value of the intent stands in the program.
struct Place {
    site: usize,
    part: Option<Range<usize>>,
}

struct Lifter<'a> {
    source: &'a str,
    sites: &'a [LiteralSite],
    arguments: &'a [ArgumentLiteral],
    tokens: &'a [IntentToken],
    lifts: Vec<Lift>,
    /// Literals that the intent names as a whole and that are parameters anyway.
    settled: BTreeSet<usize>,
    unspoken: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Lifter<'_> {
    fn lift_literal(&mut self, at: usize) {
        let IntentToken::Literal(literal) = &self.tokens[at] else { return };
        match counts(literal) {
            true if self.is_repeated(at) => self.leave_unspoken(literal),
            // `class 7b` is a name, whatever it looks like.
            true if self.sites.iter().any(|site| site.value.as_str() == Some(&literal.text))
                && !literal.unit().is_empty() =>
            {
                let places = self.places_of(|_| None, |site| site.value.as_str() == Some(&literal.text));
                self.lift_text(&literal.text, &places);
            }
            true => self.lift_number(literal),
            false => {
                let places =
                    self.places_of(|text| literal_in(literal, text), |site| says(literal, &site.value));
                self.lift_text(literal.bare(), &places);
            }
        }
    }

    /// Lifts what a word names, and returns whether it names something.
    fn lift_word(&mut self, at: usize) -> bool {
        let IntentToken::Word(word) = &self.tokens[at] else { return false };
        if at == 0 || !is_value_like(word) || self.is_repeated(at) {
            return false;
        }
        let said = |site: &LiteralSite| {
            let spelled = find_value(self.tokens, &site.value).iter().any(|place| place.contains(&at));
            site.name.is_some() && site.usage != SiteUsage::Message && is_words(&site.value) && spelled
        };
        let places = self.places_of(|text| word_in(word, text), said);
        self.lift_text(&word.raw, &places)
    }

    /// Lifts a boolean that the intent says in words: `without header`.
    fn lift_switch(&mut self, site: usize) {
        let LiteralSite { value, name: Some(name), usage, .. } = &self.sites[site] else { return };
        let said = said_of_value(self.tokens, name, Some(value)).map(|said| Value::Bool(said.value));
        if said.as_ref() != Some(value) || *usage == SiteUsage::Message || self.argument_at(site).is_some() {
            return;
        }
        let same = self
            .lifts
            .iter()
            .find(|lift| lift.value.is_boolean() && self.sites[lift.site].name.as_ref() == Some(name));
        let parameter =
            same.map_or_else(|| self.free_name(&self.sites[site], value), |lift| lift.name.clone());
        self.taken.insert(parameter.clone());
        self.lifts.push(Lift { site, part: None, value: value.clone(), name: parameter });
    }

    /// Lifts a listed value that the intent says in other words: `descending` for `desc`.
    fn lift_choice(&mut self, site: usize) {
        let Some(members) = choices::choices(self.source, self.sites, site) else { return };
        let value = &self.sites[site].value;
        let said = said_choice(self.tokens, &json!({ "enum": members })).map(|said| said.value);
        let is_lifted = self.lifts.iter().any(|lift| lift.site == site);
        if said.as_ref() != Some(value) || is_lifted || self.argument_at(site).is_some() {
            return;
        }
        let name = self.free_name(&self.sites[site], value);
        self.taken.insert(name.clone());
        self.lifts.push(Lift { site, part: None, value: value.clone(), name });
    }

    /// Whether the intent has the same value at another place too.
    fn is_repeated(&self, at: usize) -> bool {
        let same = |other: &IntentToken| match (&self.tokens[at], other) {
            (IntentToken::Literal(one), IntentToken::Literal(other)) => {
                one.text == other.text || (counts(one) && counts(other) && one.value == other.value)
            }
            (IntentToken::Word(one), IntentToken::Word(other)) => one.raw == other.raw,
            _ => false,
        };
        self.tokens.iter().filter(|other| same(other)).count() > 1
    }

    /// The places of a text value: literals that are it, and parts of longer ones.
    fn places_of(
        &self,
        part: impl Fn(&str) -> Option<Range<usize>>,
        whole: impl Fn(&LiteralSite) -> bool,
    ) -> Vec<Place> {
        let mut places = Vec::new();
        for (site, literal) in self.sites.iter().enumerate() {
            let Some(text) = literal.value.as_str().filter(|text| !text.is_empty()) else { continue };
            let taken = |range: &Range<usize>| {
                self.settled.contains(&site)
                    || self.lifts.iter().any(|lift| {
                        lift.site == site
                            && lift
                                .part
                                .as_ref()
                                .is_none_or(|it| it.start < range.end && range.start < it.end)
                    })
            };
            if let Some(range) = part(text).filter(|range| !taken(range)) {
                let all = range == (0..text.len()) && literal.form == SiteForm::Expression;
                places.push(Place { site, part: (!all).then_some(range) });
            } else if literal.form == SiteForm::Expression && whole(literal) && !taken(&(0..text.len())) {
                places.push(Place { site, part: None });
            }
        }
        // `const mode = "upper"; mode === "upper"`: what is compared with the variable is the program.
        let stored: BTreeSet<&String> = places
            .iter()
            .map(|place: &Place| &self.sites[place.site])
            .filter(|site| choices::is_stored(self.source, site))
            .filter_map(|site| site.name.as_ref())
            .collect();
        places.retain(|place| {
            let site = &self.sites[place.site];
            let own = site.name.as_ref().is_some_and(|name| stored.contains(name));
            !(own && choices::is_compared(self.source, site))
        });
        places
    }

    /// The argument that a site is written for, if that is a parameter anyway.
    fn argument_at(&self, site: usize) -> Option<&ArgumentLiteral> {
        let (start, end) = (self.sites[site].start, self.sites[site].end);
        let within = |written: &(u32, u32)| written.0 <= start && end <= written.1;
        self.arguments.iter().find(|argument| argument.written.iter().any(within))
    }

    fn lift_text(&mut self, said: &str, places: &[Place]) -> bool {
        let is_argument = |place: &Place| {
            place.part.is_none() && self.argument_at(place.site).is_some_and(|it| it.value.is_string())
        };
        // Arguments that the intent names are bound to it as they are, unless the program repeats them elsewhere.
        if places.is_empty() || places.iter().all(is_argument) {
            self.settled.extend(places.iter().map(|place| place.site));
            return !places.is_empty();
        }
        let whole = places.iter().find(|place| is_argument(place));
        let own = whole.and_then(|place| self.argument_at(place.site)).map(|argument| argument.name.clone());
        let first = &self.sites[places[0].site];
        // The value as the program has it, which may be spelled otherwise.
        let value = match (&places[0].part, first.value.as_str()) {
            (Some(part), Some(text)) => Value::from(&text[part.clone()]),
            (None, Some(text)) => Value::from(text),
            (_, None) => Value::from(said),
        };
        let name = own.unwrap_or_else(|| self.free_name(first, &value));
        for Place { site, part } in places {
            self.lifts.push(Lift {
                site: *site,
                part: part.clone(),
                value: value.clone(),
                name: name.clone(),
            });
        }
        self.taken.insert(name);
        true
    }

    /// A number of the intent is lifted only where the program has one place for it: many numbers are equal by chance.
    fn lift_number(&mut self, literal: &IntentLiteral) {
        let (mut places, mut layout) = (Vec::new(), Vec::new());
        for (at, site) in self.sites.iter().enumerate() {
            let argument = self.argument_at(at);
            let is_layout = site.usage == SiteUsage::Layout
                || argument.is_some_and(|it| LAYOUT_ARGUMENTS.contains(&it.name.as_str()));
            let part = match &site.value {
                Value::Number(_) if says(literal, &site.value) => None,
                Value::String(text) => match number_in(literal, text) {
                    Some(part) => Some(part),
                    None => continue,
                },
                _ => continue,
            };
            let list = if is_layout { &mut layout } else { &mut places };
            list.push(Place { site: at, part });
        }
        let is_argument = |place: &Place| {
            let whole = |it: &&ArgumentLiteral| place.part.is_none() && says(literal, &it.value);
            self.argument_at(place.site).filter(whole).map(|it| it.name.clone())
        };
        let chosen = if places.is_empty() { std::mem::take(&mut layout) } else { places };
        let names: BTreeSet<Option<String>> = chosen.iter().map(is_argument).collect();
        let by_chance: Vec<String> = layout.iter().filter_map(is_argument).collect();
        self.unspoken.extend(by_chance);
        let single = chosen.len() == 1 || names.iter().all(Option::is_some) && names.len() == 1;
        if !single && !is_telling(&chosen, self.sites) {
            self.unspoken.extend(names.into_iter().flatten());
            return;
        }
        if chosen.is_empty() || names.iter().all(Option::is_some) {
            return;
        }
        let site = &self.sites[chosen[0].site];
        let value = match &chosen[0].part {
            Some(part) => Value::from(&site.value.as_str().unwrap_or_default()[part.clone()]),
            None => site.value.clone(),
        };
        let name = names.into_iter().flatten().next().unwrap_or_else(|| self.free_name(site, &value));
        for Place { site, part } in chosen {
            self.lifts.push(Lift { site, part, value: value.clone(), name: name.clone() });
        }
        self.taken.insert(name);
    }

    /// The intent names the value twice, so it does not say which of them an argument is.
    fn leave_unspoken(&mut self, literal: &IntentLiteral) {
        if counts(literal) {
            let equal = self.arguments.iter().filter(|argument| says(literal, &argument.value));
            self.unspoken.extend(equal.map(|argument| argument.name.clone()));
        }
    }

    /// A name for a value: that of the field, argument or variable it stands with, else that of its class.
    fn free_name(&self, site: &LiteralSite, value: &Value) -> String {
        let telling = |name: &&String| {
            name.chars().count() > 1
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
                && !is_inherited(name)
        };
        let literal = self.tokens.iter().find_map(|token| match token {
            IntentToken::Literal(literal) if says(literal, value) => Some(literal.class),
            IntentToken::Literal(_) | IntentToken::Word(_) => None,
        });
        let class = || match literal {
            Some(LiteralClass::Path) => "path",
            Some(LiteralClass::Url) => "url",
            Some(LiteralClass::Email) => "email",
            Some(LiteralClass::Date) => "date",
            Some(LiteralClass::Id) => "id",
            Some(LiteralClass::Name) => "name",
            Some(_) | None if value.is_number() => "number",
            Some(_) | None => "text",
        };
        let wanted = site.name.as_ref().filter(telling).map_or_else(|| class().to_owned(), Clone::clone);
        if !self.taken.contains(&wanted) {
            return wanted;
        }
        let numbered = (2_u32..).map(|number| format!("{wanted}_{number}"));
        numbered.into_iter().find(|name| !self.taken.contains(name)).unwrap_or(wanted)
    }

    fn finish(self) -> Option<LiftedProgram> {
        if self.lifts.is_empty() && self.unspoken.is_empty() {
            return None;
        }
        let mut by_site: BTreeMap<usize, Vec<&Lift>> = BTreeMap::new();
        let mut parameters: BTreeMap<&str, LiftedParameter> = BTreeMap::new();
        for lift in &self.lifts {
            by_site.entry(lift.site).or_default().push(lift);
            let site = &self.sites[lift.site];
            let is_code = site.form == SiteForm::Pattern || site.name.as_deref().is_some_and(is_code_like);
            let parameter = parameters.entry(&lift.name).or_insert_with(|| LiftedParameter {
                name: lift.name.clone(),
                default: lift.value.clone(),
                pattern: None,
                choices: choices::choices(self.source, self.sites, lift.site)
                    .filter(|_| lift.part.is_none())
                    .unwrap_or_default(),
            });
            let plain =
                if site.form == SiteForm::Pattern || is_regex(site) { PLAIN_TEXT } else { PLAIN_VALUE };
            parameter.pattern = parameter.pattern.or((is_code && lift.value.is_string()).then_some(plain));
        }
        let mut source = String::with_capacity(self.source.len() + 24 * self.lifts.len());
        let mut done = 0;
        for (site, lifts) in &mut by_site {
            let site = &self.sites[*site];
            lifts.sort_by_key(|lift| lift.part.as_ref().map_or(0, |part| part.start));
            source.push_str(self.source.get(done..site.start as usize)?);
            source.push_str(&replacement(site, lifts)?);
            done = site.end as usize;
        }
        source.push_str(self.source.get(done..)?);
        let parameters = parameters.into_values().collect();
        Some(LiftedProgram { source, parameters, unspoken: self.unspoken.into_iter().collect() })
    }
}

/// Whether a text is read as a regular expression.
fn is_regex(site: &LiteralSite) -> bool {
    site.name.as_deref().is_some_and(|name| name.contains("pattern") || name.contains("regex"))
}

/// The source text that replaces a literal.
fn replacement(site: &LiteralSite, lifts: &[&Lift]) -> Option<String> {
    let argument = |lift: &Lift| format!("args[{}]", json!(lift.name));
    if let [only] = lifts
        && only.part.is_none()
    {
        return Some(argument(only));
    }
    let text = site.value.as_str()?;
    let mut written = String::with_capacity(text.len() + 24);
    let mut done = 0;
    for lift in lifts {
        let part = lift.part.as_ref()?;
        written.push_str(&in_template(text.get(done..part.start)?));
        written.push_str(&format!("${{{}}}", argument(lift)));
        done = part.end;
    }
    written.push_str(&in_template(text.get(done..)?));
    Some(match site.form {
        SiteForm::Expression => format!("`{written}`"),
        SiteForm::TemplateText => written,
        SiteForm::Pattern => format!("new RegExp(`{written}`, {})", json!(site.flags)),
    })
}

/// Whether equal numbers at several places are equal on purpose: long ones, that are no factor of conversion.
fn is_telling(places: &[Place], sites: &[LiteralSite]) -> bool {
    const FACTORS: &[f64] = &[24.0, 60.0, 100.0, 360.0, 365.0, 1000.0, 1024.0, 3600.0, 86400.0];
    let number = places.first().and_then(|place| sites[place.site].value.as_f64()).unwrap_or_default().abs();
    let whole = places.iter().all(|place| place.part.is_none());
    whole && (number.fract() != 0.0 || (number > 31.0 && !FACTORS.contains(&number)))
}

/// Whether a literal of an intent is a number to a program.
fn counts(literal: &IntentLiteral) -> bool {
    literal.class == LiteralClass::Number && literal.value.is_number()
}

/// Whether a word may be a value. The verb of a request and the nouns of files are none, whatever the program has.
fn is_value_like(word: &IntentWord) -> bool {
    let concept = word.concept.as_str();
    let generic = table::FILE_NOUNS.contains(&concept)
        || table::BRINGING.contains(&concept)
        || table::MAKING.contains(&concept);
    let telling = word.raw.chars().count() >= TELLING || word.raw.contains(|c: char| c.is_ascii_digit());
    word.function == WordFunction::Content && telling && !generic
}

/// Whether a text consists of words alone, so that a sentence can spell it.
fn is_words(value: &Value) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-');
    value.as_str().is_some_and(|text| text.chars().all(plain))
}

/// The only place of a text in another where it is no part of a longer word.
fn only_place(said: &str, text: &str) -> Option<Range<usize>> {
    if said.is_empty() {
        return None;
    }
    let found = text.match_indices(said).map(|(at, _)| at..at + said.len());
    let mut found = found.filter(|range| stands_alone(text, range));
    found.next().filter(|_| found.next().is_none())
}

fn literal_in(literal: &IntentLiteral, text: &str) -> Option<Range<usize>> {
    let telling = |said: &&str| said.len() >= TELLING || said.contains(|c: char| c.is_ascii_digit());
    [literal.text.as_str(), literal.bare()]
        .iter()
        .filter(|said| telling(said))
        .find_map(|said| only_place(said, text))
}

fn word_in(word: &IntentWord, text: &str) -> Option<Range<usize>> {
    // Words of requests are in many texts for another reason.
    if words::is_known_word(&word.raw) { None } else { only_place(&word.raw, text) }
}

fn number_in(literal: &IntentLiteral, text: &str) -> Option<Range<usize>> {
    let digits = literal.text.trim_end_matches(|c: char| !c.is_ascii_digit());
    digits.parse::<f64>().ok().and_then(|_| only_place(digits, text))
}

/// Whether a part of a text is not the middle of a longer word or number.
fn stands_alone(text: &str, part: &Range<usize>) -> bool {
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let (mut ahead, mut behind) = (text[..part.start].chars().rev(), text[part.end..].chars());
    let (before, after) = (ahead.next(), behind.next());
    let said = &text[part.clone()];
    let continues = after == Some('.') && is_digit(behind.next()) && is_digit(said.chars().next_back());
    let continued = before == Some('.') && is_digit(ahead.next()) && is_digit(said.chars().next());
    !joins(before) && !joins(after) && !continues && !continued
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
mod generated;

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
            "price of 250 after a discount of 20 percent",
            "return f({ expression: '250 * (1 - 20 / 100)' })",
            "return f({ expression: `${args[\"expression\"]} * (1 - ${args[\"expression_2\"]} / 100)` }) | expression=\"250\" expression_2=\"20\"",
        );
        check(
            "add parcel N9 for Lille with 4.5 kg",
            "await w({ content: 'N9,Lille,4.5,held\\n' })",
            "await w({ content: `${args[\"content\"]},${args[\"content_2\"]},${args[\"content_3\"]},held\\n` }) | content=\"N9\" content_2=\"Lille\" content_3=\"4.5\"",
        );
        check(
            "list the actions of Nadia",
            "return content.match(/^ACTION Nadia: (\\d*)$/m)",
            "return content.match(new RegExp(`^ACTION ${args[\"content\"]}: (\\\\d*)\\$`, \"m\")) | content=\"Nadia\"",
        );
        check(
            "what is the accent colour",
            "return f({ pattern: '--accent: (#[0-9a-f]+)' })",
            "return f({ pattern: `--${args[\"pattern\"]}: (#[0-9a-f]+)` }) | pattern=\"accent\"",
        );
        check(
            "create out/a.txt",
            "await w({ path: 'out/a.txt' }); return 'out/a.txt'",
            "await w({ path: args[\"path\"] }); return args[\"path\"] | path=\"out/a.txt\"",
        );
    }

    #[test]
    fn what_the_intent_does_not_name_stays() {
        check("average salary of everybody", "return rows.filter((r) => r.department === 'Sales')", "");
        check("read the file", "return x.type === 'file'", "");
        check("count Ann", "return x.includes('Annabel')", "");
        check("version 3", "return x === '3.5'", "");
        check(
            "tickets of Nadia in tickets/open.csv",
            "return f({ path: 'tickets/open.csv' }).filter((r) => r.owner === 'Nadia')",
            "return f({ path: args[\"path\"] }).filter((r) => r.owner === args[\"owner\"]) | owner=\"Nadia\" path=\"tickets/open.csv\"",
        );
        check(
            "how long did the test step take",
            "return line.startsWith('step test took ')",
            "return line.startsWith(`step ${args[\"line\"]} took `) | line=\"test\"",
        );
    }

    #[test]
    fn a_number_that_stands_for_several_things_stays() {
        check("top 2 of 2 lists", "return [a.slice(0, 2), b.slice(0, 2)]", "");
        check(
            "change from 80 to 100 in percent",
            "return (100 - 80) / 80 * 100",
            "return (100 - args[\"number\"]) / args[\"number\"] * 100 | number=80",
        );
        check(
            "at least 10 seats",
            "return rows.filter((r) => parseInt(r.seats, 10) >= 10)",
            "return rows.filter((r) => parseInt(r.seats, 10) >= args[\"seats\"]) | seats=10",
        );
    }

    #[test]
    fn an_argument_that_is_equal_by_chance_is_not_spoken_of() {
        let source = "return f({ value: 96 / 2, digits: 2 })";
        let sites = pml_analysis::find_literal_sites(source).unwrap();
        let digits = ArgumentLiteral { name: "digits".to_owned(), value: json!(2), written: vec![(34, 35)] };
        let lifted =
            lift(source, &sites, &[digits], &BTreeSet::new(), "split 96 euros between 2 people").unwrap();
        assert_eq!(lifted.source, "return f({ value: args[\"value\"] / args[\"value_2\"], digits: 2 })");
        assert_eq!(lifted.unspoken, ["digits"]);
    }

    #[test]
    fn what_a_variable_is_compared_with_is_what_it_may_be() {
        let ways = "order === 'desc' ? b - a : order === 'asc' ? a - b : 0";
        check(
            "sort the numbers descending",
            &format!("const order = 'desc'; return {ways}"),
            &format!("const order = args[\"order\"]; return {ways} | order=\"desc\""),
        );
        check(
            "write it in upper case",
            "const mode = 'upper'; return mode === 'upper' ? f(x) : g(x)",
            "const mode = args[\"mode\"]; return mode === 'upper' ? f(x) : g(x) | mode=\"upper\"",
        );
        let lifted = {
            let source = format!("const order = 'desc'; return {ways}");
            let sites = pml_analysis::find_literal_sites(&source).unwrap();
            lift(&source, &sites, &[], &BTreeSet::new(), "sort the numbers descending").unwrap()
        };
        assert_eq!(lifted.parameters[0].choices, ["asc", "desc"]);
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
