//! Explains the verdict on one tool: each attribute, and the rule or annotation it comes from.
//!
//! It reports what [`Policy::verdict`] decides and decides nothing itself.

use pml_model::{Annotations, ToolId};

use super::{CallPermission, PermissionRule, Policy, ReadOnlyBasis, ServerTrust, ToolFacts, ToolVerdict};

/// The verdict on a tool with the reason for each attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The verdict that is explained.
    pub verdict: ToolVerdict,
    /// One entry per attribute of the verdict.
    pub attributes: Vec<Attribute>,
    /// The rules about the tool, in the order in which they count: the text of each and its file and line.
    pub rules: Vec<(String, String)>,
    /// Whether the annotations of its server are trusted, and why.
    pub believed: (bool, String),
}

/// One attribute of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// The name of the attribute in `[permissions]`.
    pub name: &'static str,
    /// The value in force.
    pub value: String,
    /// The reason, phrased to follow the word "because".
    pub because: String,
    /// The file and line of the rule that sets it; `None` if no rule does.
    pub place: Option<String>,
}

impl Policy {
    /// Explains the verdict on the tool `id`, whose server gives it `annotations`.
    pub fn explain(&self, id: &ToolId, annotations: &Annotations) -> Explanation {
        let verdict = self.verdict(id, annotations);
        let case = self.facts_of(id, annotations);
        let mut attributes = vec![
            case.explain_mode(&verdict),
            case.explain_read_only(&verdict),
            case.explain_idempotent(&verdict),
            case.explain_open_world(&verdict),
            case.explain_scope(&verdict),
            case.explain_isolated(&verdict),
            case.explain_closed(&verdict),
            case.explain_cache_ttl(&verdict),
            case.explain_speculate(&verdict),
        ];
        attributes.extend(case.explain_routing(&verdict));
        let rules = case.rules.iter().map(|rule| (rule.label.clone(), rule.place.clone())).collect();
        Explanation { attributes, rules, believed: case.belief(), verdict }
    }
}

/// An attribute with its reason, and with the place of `rule` if one sets it.
fn attribute(
    name: &'static str,
    value: impl Into<String>,
    because: impl Into<String>,
    rule: Option<&PermissionRule>,
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

fn says_so(rule: &PermissionRule) -> String {
    format!("{} says so", rule.label)
}

impl<'p> ToolFacts<'p> {
    fn belief(&self) -> (bool, String) {
        let server = self.server;
        match self.trust {
            ServerTrust::BuiltIn => (true, "it is built in".to_owned()),
            ServerTrust::Trusted => (true, format!("server `{server}` has `trust = \"annotations\"`")),
            ServerTrust::Untrusted => (
                false,
                format!("server `{server}` has no `trust = \"annotations\"`, so they only make stricter"),
            ),
        }
    }

    /// The reason for a value that no rule sets.
    fn by_annotation(&self, hint: &str, said: Option<bool>) -> String {
        match (self.is_believed(), said) {
            (false, _) => "no rule says otherwise, and what its server says of it is not believed".to_owned(),
            (true, Some(value)) => {
                format!("no rule says otherwise, and its annotations say `{hint}: {value}`")
            }
            (true, None) => format!("no rule says otherwise, and its annotations do not say `{hint}`"),
        }
    }

    fn explain_mode(&self, verdict: &ToolVerdict) -> Attribute {
        let denies = self.rules.iter().find(|rule| rule.deny).copied();
        let given = || self.first_rule_with(|rule| rule.approval).map(|(rule, _)| rule);
        let reads = || match self.read_only() {
            ReadOnlyBasis::Rule(rule, _) | ReadOnlyBasis::Contradicted(rule) => Some(rule),
            ReadOnlyBasis::Annotations(_) | ReadOnlyBasis::Unknown => None,
        };
        let rule = denies.or_else(given).or_else(reads);
        attribute("approval_mode", verdict.mode.as_str(), &verdict.because, rule)
    }

    fn explain_read_only(&self, verdict: &ToolVerdict) -> Attribute {
        let (because, rule) = match self.read_only() {
            ReadOnlyBasis::Rule(rule, _) => (says_so(rule), Some(rule)),
            ReadOnlyBasis::Contradicted(rule) => (
                format!("{} says that it only reads, but the tool itself says that it does not", rule.label),
                Some(rule),
            ),
            ReadOnlyBasis::Annotations(_) | ReadOnlyBasis::Unknown => {
                (self.by_annotation("readOnlyHint", self.annotations.read_only_hint), None)
            }
        };
        attribute("read_only", yes(verdict.read_only), because, rule)
    }

    fn explain_idempotent(&self, verdict: &ToolVerdict) -> Attribute {
        let holds = verdict.idempotent;
        let (because, rule) = match self.first_rule_with(|rule| rule.idempotent) {
            Some((rule, said)) if said == holds => (says_so(rule), Some(rule)),
            Some((rule, _)) => (
                format!("{} says that it is, but the tool itself says that it is not", rule.label),
                Some(rule),
            ),
            None if verdict.read_only => ("it only reads".to_owned(), None),
            None => (self.by_annotation("idempotentHint", self.annotations.idempotent_hint), None),
        };
        attribute("idempotent", yes(holds), because, rule)
    }

    fn explain_open_world(&self, verdict: &ToolVerdict) -> Attribute {
        let holds = verdict.open_world;
        let (because, rule) = match self.first_rule_with(|rule| rule.open_world) {
            Some((rule, said)) if said == holds => (says_so(rule), Some(rule)),
            Some((rule, _)) => (
                format!("{} says that it is not, but the tool itself says that it is", rule.label),
                Some(rule),
            ),
            None => (self.by_annotation("openWorldHint", self.annotations.open_world_hint), None),
        };
        attribute("open_world", yes(holds), because, rule)
    }

    fn explain_scope(&self, verdict: &ToolVerdict) -> Attribute {
        let rule = self.first_rule_with(|rule| rule.scope).map(|(rule, _)| rule);
        let because = match (rule, self.is_believed()) {
            (Some(rule), _) => says_so(rule),
            (None, true) => "no rule says otherwise, and its annotations fit that".to_owned(),
            (None, false) => "no rule says otherwise, and it may be anything".to_owned(),
        };
        attribute("scope", verdict.scope.as_str(), because, rule)
    }

    fn explain_isolated(&self, verdict: &ToolVerdict) -> Attribute {
        let rule = self.first_rule_with(|rule| rule.isolated).map(|(rule, _)| rule);
        let because = rule.map_or_else(|| "no rule says that it is".to_owned(), says_so);
        attribute("isolated", yes(verdict.isolated), because, rule)
    }

    fn explain_closed(&self, verdict: &ToolVerdict) -> Attribute {
        let rule = self.first_rule_with(|rule| rule.closed).map(|(rule, _)| rule);
        let because = match (rule, verdict.closed) {
            (Some(rule), _) => says_so(rule),
            (None, true) => "it is built in and computes from its arguments alone".to_owned(),
            (None, false) => "no rule says that it is".to_owned(),
        };
        attribute("closed", yes(verdict.closed), because, rule)
    }

    fn explain_speculate(&self, verdict: &ToolVerdict) -> Attribute {
        let rule = self.first_rule_with(|rule| rule.speculate).map(|(rule, _)| rule);
        let because = match rule {
            Some(rule) if rule.speculate == Some(false) => says_so(rule),
            _ if verdict.mode != CallPermission::Auto => "it needs approval".to_owned(),
            _ if !verdict.effect_free => "it may change something".to_owned(),
            _ if verdict.changes_by_itself => {
                "its result changes by itself, so it is read when the program asks".to_owned()
            }
            Some(rule) => says_so(rule),
            None => "it only reads and needs no approval".to_owned(),
        };
        attribute("speculate", yes(verdict.can_speculate()), because, rule)
    }

    /// Only where it matters: few tools are on the machines of clients.
    fn explain_routing(&self, verdict: &ToolVerdict) -> Option<Attribute> {
        let rule = self.first_rule_with(|rule| rule.routing).map(|(rule, _)| rule);
        if rule.is_none() && verdict.routing.is_server() {
            return None;
        }
        let of_server = || format!("server `{}` has `routing = \"client\"`", self.server);
        let because = rule.map_or_else(of_server, says_so);
        Some(attribute("routing", verdict.routing.as_str(), because, rule))
    }

    fn explain_cache_ttl(&self, verdict: &ToolVerdict) -> Attribute {
        let rule = self.first_rule_with(|rule| rule.cache_ttl).map(|(rule, _)| rule);
        let because = rule.map_or_else(|| "no rule gives one".to_owned(), says_so);
        let value =
            verdict.cache_ttl.map_or_else(|| "none".to_owned(), |time| format!("{} s", time.as_secs()));
        attribute("cache_ttl", value, because, rule)
    }
}
