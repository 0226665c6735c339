//! Says of one tool what programs may do with it, and for every part of that who says so.
//!
//! It tells what [`Policy::of`] decides and decides nothing itself.

use pml_model::{Annotations, ToolId};

use super::{Case, Policy, Reads, Rule, Standing, Verdict};

/// What programs may do with a tool, and exactly why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// What is decided.
    pub verdict: Verdict,
    /// Every part of it.
    pub attributes: Vec<Attribute>,
    /// The rules about the tool, the one that counts first at the front: what they are and where they stand.
    pub rules: Vec<(String, String)>,
    /// Whether what its server says of it is believed, and why.
    pub believed: (bool, String),
}

/// One part of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// What it is called in `[permissions]`.
    pub name: &'static str,
    /// What holds.
    pub value: String,
    /// What follows the word "because".
    pub because: String,
    /// The file and line of the rule that says so, where one does.
    pub place: Option<String>,
}

impl Policy {
    /// What may be done with the tool `id`, whose server says `annotations` of it, and why.
    pub fn explain(&self, id: &ToolId, annotations: &Annotations) -> Explanation {
        let verdict = self.of(id, annotations);
        let case = self.case(id, annotations);
        let attributes = vec![
            case.explain_mode(&verdict),
            case.explain_read_only(&verdict),
            case.explain_idempotent(&verdict),
            case.explain_open_world(&verdict),
            case.explain_scope(&verdict),
            case.explain_isolated(&verdict),
            case.explain_closed(&verdict),
            case.explain_cache_ttl(&verdict),
        ];
        let rules = case.rules.iter().map(|rule| (rule.shown.clone(), rule.place.clone())).collect();
        Explanation { attributes, rules, believed: case.belief(), verdict }
    }
}

/// Part of a verdict that a rule or something else gives.
fn attribute(
    name: &'static str,
    value: impl Into<String>,
    because: impl Into<String>,
    rule: Option<&Rule>,
) -> Attribute {
    Attribute {
        name,
        value: value.into(),
        because: because.into(),
        place: rule.map(|rule| rule.place.clone()),
    }
}

fn yes(holds: bool) -> &'static str {
    if holds { "yes" } else { "no" }
}

fn says_so(rule: &Rule) -> String {
    format!("{} says so", rule.shown)
}

impl<'p> Case<'p> {
    fn belief(&self) -> (bool, String) {
        let server = self.server;
        match self.standing {
            Standing::Ours => (true, "it is built in".to_owned()),
            Standing::Believed => (true, format!("server `{server}` has `trust = \"annotations\"`")),
            Standing::Foreign => (
                false,
                format!("server `{server}` has no `trust = \"annotations\"`, so they only make stricter"),
            ),
        }
    }

    /// Why something holds that no rule says.
    fn by_annotation(&self, hint: &str, said: Option<bool>) -> String {
        match (self.is_believed(), said) {
            (false, _) => "no rule says otherwise, and what its server says of it is not believed".to_owned(),
            (true, Some(value)) => {
                format!("no rule says otherwise, and its annotations say `{hint}: {value}`")
            }
            (true, None) => format!("no rule says otherwise, and its annotations do not say `{hint}`"),
        }
    }

    fn explain_mode(&self, verdict: &Verdict) -> Attribute {
        let denies = self.rules.iter().find(|rule| rule.deny).copied();
        let given = || self.given(|rule| rule.approval).map(|(rule, _)| rule);
        let reads = || match self.read_only() {
            Reads::Rule(rule, _) | Reads::Contradicted(rule) => Some(rule),
            Reads::Annotations(_) | Reads::Unknown => None,
        };
        let rule = denies.or_else(given).or_else(reads);
        attribute("approval_mode", verdict.mode.as_str(), &verdict.because, rule)
    }

    fn explain_read_only(&self, verdict: &Verdict) -> Attribute {
        let (because, rule) = match self.read_only() {
            Reads::Rule(rule, _) => (says_so(rule), Some(rule)),
            Reads::Contradicted(rule) => (
                format!("{} says that it only reads, but the tool itself says that it does not", rule.shown),
                Some(rule),
            ),
            Reads::Annotations(_) | Reads::Unknown => {
                (self.by_annotation("readOnlyHint", self.says.read_only_hint), None)
            }
        };
        attribute("read_only", yes(verdict.read_only), because, rule)
    }

    fn explain_idempotent(&self, verdict: &Verdict) -> Attribute {
        let holds = verdict.idempotent;
        let (because, rule) = match self.given(|rule| rule.idempotent) {
            Some((rule, said)) if said == holds => (says_so(rule), Some(rule)),
            Some((rule, _)) => (
                format!("{} says that it is, but the tool itself says that it is not", rule.shown),
                Some(rule),
            ),
            None if verdict.read_only => ("it only reads".to_owned(), None),
            None => (self.by_annotation("idempotentHint", self.says.idempotent_hint), None),
        };
        attribute("idempotent", yes(holds), because, rule)
    }

    fn explain_open_world(&self, verdict: &Verdict) -> Attribute {
        let holds = verdict.open_world;
        let (because, rule) = match self.given(|rule| rule.open_world) {
            Some((rule, said)) if said == holds => (says_so(rule), Some(rule)),
            Some((rule, _)) => (
                format!("{} says that it is not, but the tool itself says that it is", rule.shown),
                Some(rule),
            ),
            None => (self.by_annotation("openWorldHint", self.says.open_world_hint), None),
        };
        attribute("open_world", yes(holds), because, rule)
    }

    fn explain_scope(&self, verdict: &Verdict) -> Attribute {
        let rule = self.given(|rule| rule.scope).map(|(rule, _)| rule);
        let because = match (rule, self.is_believed()) {
            (Some(rule), _) => says_so(rule),
            (None, true) => "no rule says otherwise, and its annotations fit that".to_owned(),
            (None, false) => "no rule says otherwise, and it may be anything".to_owned(),
        };
        attribute("scope", verdict.scope.as_str(), because, rule)
    }

    fn explain_isolated(&self, verdict: &Verdict) -> Attribute {
        let rule = self.given(|rule| rule.isolated).map(|(rule, _)| rule);
        let because = rule.map_or_else(|| "no rule says that it is".to_owned(), says_so);
        attribute("isolated", yes(verdict.isolated), because, rule)
    }

    fn explain_closed(&self, verdict: &Verdict) -> Attribute {
        let rule = self.given(|rule| rule.closed).map(|(rule, _)| rule);
        let because = match (rule, verdict.closed) {
            (Some(rule), _) => says_so(rule),
            (None, true) => "it is built in and computes from its arguments alone".to_owned(),
            (None, false) => "no rule says that it is".to_owned(),
        };
        attribute("closed", yes(verdict.closed), because, rule)
    }

    fn explain_cache_ttl(&self, verdict: &Verdict) -> Attribute {
        let rule = self.given(|rule| rule.cache_ttl).map(|(rule, _)| rule);
        let because = rule.map_or_else(|| "no rule gives one".to_owned(), says_so);
        let value =
            verdict.cache_ttl.map_or_else(|| "none".to_owned(), |time| format!("{} s", time.as_secs()));
        attribute("cache_ttl", value, because, rule)
    }
}
