//! The policy: decides what programs may do with tools.
//!
//! [`Policy::verdict`] depends only on the user's rules and on the annotations of a tool. It uses no clock, store or
//! network, calls nothing and asks nobody, so the same tool always gets the same verdict.
//!
//! Of the rules about a tool the most specific counts first: the one that names it, then patterns with part of its name
//! (the longer their literal text, the earlier), then its server, then patterns of servers. Among equals the stricter
//! comes first. Each attribute is taken from the first rule that sets it, so a narrow rule overrides what it sets and
//! inherits the rest. `deny` wins wherever it is set.
//!
//! Attributes that no rule sets come from the tool's own annotations, if they are trusted: those of built-in servers,
//! and of servers with `trust = "annotations"`. Untrusted annotations never loosen anything: a tool not known to be
//! read-only needs approval, is not retried, and counts as open-world. But a tool whose own annotations say that it
//! changes things does so, and only a rule with its full name overrides that.

pub(crate) mod differs;
mod effect;
mod explain;
pub(crate) mod question;
pub mod words;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use pml_model::remote::Routing;
use pml_model::{Annotations, ToolId};

pub use effect::Effect;
pub use explain::{Attribute, Explanation};

use crate::config::{ApprovalMode, BUILT_IN, Config, PermissionRule, RuleSubject, ToolScope};

pub use crate::config::CallPermission;

/// The built-in servers whose results depend on nothing but the arguments.
const COMPUTING: &[&str] = &["json", "text", "csv", "math"];
/// The built-in tools whose results change although nobody changes anything: they read the clock.
const CLOCKS: &[(&str, &str)] = &[("time", "now")];

/// The user's rules, sorted for lookup.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The most specific first.
    rules: Vec<PermissionRule>,
    /// The names of the built-in servers.
    ours: HashSet<String>,
    /// The servers whose annotations are trusted.
    believed: HashSet<String>,
    /// The servers that are on the machines of clients.
    of_clients: HashSet<String>,
}

/// The policy's decision on one tool, with the attributes it is known to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolVerdict {
    /// Whether programs may call it, must have approval first, or may not call it.
    pub mode: CallPermission,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether a call in doubt may be repeated with the same arguments.
    pub idempotent: bool,
    /// Whether it may reach beyond a closed set of things.
    pub open_world: bool,
    /// The kind of reach it has.
    pub scope: ToolScope,
    /// Whether its changes are invisible to every other server.
    pub isolated: bool,
    /// Whether its result depends on its arguments alone.
    pub closed: bool,
    /// How long its results may be reused, if the operator sets that.
    pub cache_ttl: Option<Duration>,
    /// Whether it changes nothing, also where only the scope of a rule says so. Such a scope makes no call repeatable and
    /// keeps no result.
    pub effect_free: bool,
    /// Whether a rule lets it be called before a program asks for it; without a rule it may be.
    pub speculate: bool,
    /// Where its calls are made.
    pub routing: Routing,
    /// Whether its result changes by itself, as that of a clock does.
    pub changes_by_itself: bool,
    /// The reason for `mode`, phrased to follow the word "because".
    pub because: String,
}

/// The refusal of a tool that a rule denies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{tool}` may not be called, because {because}")]
pub struct PolicyRefusal {
    /// The denied tool.
    pub tool: ToolId,
    /// The rule that denies it, phrased to follow the word "because".
    pub because: String,
}

impl PolicyRefusal {
    /// The hint for the agent.
    pub const HINT: &str = "do without the tool, or have the user change that rule";
}

impl ToolVerdict {
    /// Whether the tool may be called before a program asks for it: it needs no approval and only reads, by the word of
    /// the operator or of a server that the operator trusts. A result that changes by itself is that of the moment at
    /// which the program asks.
    pub fn can_speculate(&self) -> bool {
        self.can_dry_run() && !self.changes_by_itself
    }

    /// Whether a dry run calls the tool when its program asks for it. What changes by itself is read then as well.
    pub fn can_dry_run(&self) -> bool {
        self.mode == CallPermission::Auto && self.effect_free && self.speculate && self.routing.is_server()
    }

    /// The refusal, if the tool is denied; no approval can override it.
    pub fn refusal(&self, tool: &ToolId) -> Option<PolicyRefusal> {
        (self.mode == CallPermission::Deny)
            .then(|| PolicyRefusal { tool: tool.clone(), because: self.because.clone() })
    }
}

impl Policy {
    /// Builds the policy that `config` describes.
    pub fn new(config: &Config) -> Policy {
        let mut rules = config.permissions.clone();
        rules.sort_by_cached_key(|rule| {
            (Reverse(specificity(&rule.subject)), leniency(rule), rule.label.clone())
        });
        let ours = BUILT_IN.iter().filter(|name| !config.builtin.disabled.iter().any(|off| off == *name));
        let believed = config.servers.iter().filter(|server| server.trusts_annotations);
        let of_clients = config.servers.iter().filter(|server| !server.routing.is_server());
        Policy {
            rules,
            ours: ours.map(|name| (*name).to_owned()).collect(),
            believed: believed.map(|server| server.name.as_str().to_owned()).collect(),
            of_clients: of_clients.map(|server| server.name.as_str().to_owned()).collect(),
        }
    }

    /// The verdict on the tool `id`, whose server gives it `annotations`.
    pub fn verdict(&self, id: &ToolId, annotations: &Annotations) -> ToolVerdict {
        let tool = self.facts_of(id, annotations);
        let read_only = tool.read_only();
        let (mode, because) = tool.mode(&read_only);
        let read_only = read_only.holds();
        ToolVerdict {
            mode,
            read_only,
            idempotent: tool.idempotent(read_only),
            open_world: tool.open_world(),
            scope: tool.scope(),
            isolated: tool.isolated(),
            closed: tool.closed(),
            cache_ttl: tool.cache_ttl(),
            effect_free: read_only || tool.reads_by_scope(),
            speculate: tool.speculate(),
            routing: tool.routing(),
            changes_by_itself: tool.changes_by_itself(),
            because,
        }
    }

    fn facts_of<'p>(&'p self, id: &'p ToolId, annotations: &Annotations) -> ToolFacts<'p> {
        let server = id.server.as_str();
        ToolFacts {
            rules: self.rules.iter().filter(|rule| rule.subject.covers(server, &id.tool)).collect(),
            trust: self.standing(server),
            server,
            is_of_clients: self.of_clients.contains(server),
            tool: &id.tool,
            annotations: *annotations,
        }
    }

    fn standing(&self, server: &str) -> ServerTrust {
        if self.ours.contains(server) {
            ServerTrust::BuiltIn
        } else if self.believed.contains(server) {
            ServerTrust::Trusted
        } else {
            ServerTrust::Untrusted
        }
    }
}

/// How narrow the subject of a rule is; greater values count first.
pub fn specificity(subject: &RuleSubject) -> (u8, usize) {
    let (server, tool) = (&subject.server, &subject.tool);
    let class = match (subject.is_exact(), tool.literal_count() > 0, server.is_literal()) {
        (true, _, _) => 3,
        (false, true, _) => 2,
        (false, false, true) => 1,
        (false, false, false) => 0,
    };
    (class, server.literal_count() + tool.literal_count())
}

/// The sort key of a rule among equally specific ones; smaller, stricter values count first.
fn leniency(rule: &PermissionRule) -> (u8, u8) {
    let approval = match rule.approval {
        Some(ApprovalMode::Hil) => 0,
        None => 1,
        Some(ApprovalMode::Auto) => 2,
    };
    let read_only = match rule.read_only {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    (approval, read_only)
}

/// Who vouches for a tool's annotations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerTrust {
    BuiltIn,
    Trusted,
    Untrusted,
}

/// One tool with the rules about it and its annotations.
struct ToolFacts<'p> {
    /// The rules about the tool, most specific first.
    rules: Vec<&'p PermissionRule>,
    trust: ServerTrust,
    server: &'p str,
    /// Whether the server is on the machines of clients.
    is_of_clients: bool,
    tool: &'p str,
    annotations: Annotations,
}

/// Whether a tool is read-only, and what that is based on.
enum ReadOnlyBasis<'p> {
    Rule(&'p PermissionRule, bool),
    /// A rule says the tool is read-only, while its own annotations say it is not.
    Contradicted(&'p PermissionRule),
    Annotations(bool),
    Unknown,
}

impl ReadOnlyBasis<'_> {
    fn holds(&self) -> bool {
        matches!(self, ReadOnlyBasis::Rule(_, true) | ReadOnlyBasis::Annotations(true))
    }
}

impl<'p> ToolFacts<'p> {
    /// The first rule that sets an attribute, with the value it sets.
    fn first_rule_with<T>(
        &self,
        attribute: impl Fn(&PermissionRule) -> Option<T>,
    ) -> Option<(&'p PermissionRule, T)> {
        self.rules.iter().find_map(|rule| Some((*rule, attribute(rule)?)))
    }

    fn is_believed(&self) -> bool {
        self.trust != ServerTrust::Untrusted
    }

    fn read_only(&self) -> ReadOnlyBasis<'p> {
        match self.first_rule_with(|rule| rule.read_only) {
            Some((rule, true)) if self.says_it_changes() && !rule.subject.is_exact() => {
                ReadOnlyBasis::Contradicted(rule)
            }
            Some((rule, reads)) => ReadOnlyBasis::Rule(rule, reads),
            None if self.is_believed() => {
                ReadOnlyBasis::Annotations(self.annotations.read_only_hint == Some(true))
            }
            None => ReadOnlyBasis::Unknown,
        }
    }

    /// Whether a rule gives the tool a scope that has no effects. What another rule or the tool itself says to the
    /// contrary prevails.
    fn reads_by_scope(&self) -> bool {
        let scoped = self.first_rule_with(|rule| rule.scope);
        scoped.is_some_and(|(_, scope)| matches!(scope, ToolScope::Minimal | ToolScope::Readonly))
            && self.first_rule_with(|rule| rule.read_only).is_none()
            && !self.says_it_changes()
    }

    /// Whether the tool is idempotent; a read-only tool is, unless a rule says otherwise.
    fn idempotent(&self, read_only: bool) -> bool {
        match self.first_rule_with(|rule| rule.idempotent) {
            Some((rule, true)) => rule.subject.is_exact() || read_only || !self.says_it_adds_up(),
            Some((_, false)) => false,
            None => read_only || (self.is_believed() && self.annotations.idempotent_hint == Some(true)),
        }
    }

    fn open_world(&self) -> bool {
        let says = self.annotations.open_world_hint;
        match self.first_rule_with(|rule| rule.open_world) {
            Some((rule, false)) => says == Some(true) && !rule.subject.is_exact(),
            Some((_, true)) => true,
            None => !self.is_believed() || says != Some(false),
        }
    }

    fn scope(&self) -> ToolScope {
        if let Some((_, scope)) = self.first_rule_with(|rule| rule.scope) {
            return scope;
        }
        let reads = self.annotations.read_only_hint == Some(true);
        match (self.trust, self.annotations.open_world_hint, reads) {
            (ServerTrust::Untrusted, _, _) => ToolScope::McpStandard,
            (ServerTrust::BuiltIn | ServerTrust::Trusted, Some(true), _) => ToolScope::NetworkApi,
            // Of the built-in servers without network access, only `fs` reads more than its arguments.
            (ServerTrust::BuiltIn, _, true) if self.server != "fs" => ToolScope::Minimal,
            (ServerTrust::BuiltIn, _, false) => ToolScope::Filesystem,
            (ServerTrust::BuiltIn | ServerTrust::Trusted, _, true) => ToolScope::Readonly,
            (ServerTrust::Trusted, _, false) => ToolScope::McpStandard,
        }
    }

    /// Whether the changes are isolated. Only a rule can say so.
    fn isolated(&self) -> bool {
        self.first_rule_with(|rule| rule.isolated).is_some_and(|(_, isolated)| isolated)
    }

    /// Whether the result depends on the arguments alone. This holds for the built-in servers that only compute; for
    /// others only a rule can say so.
    fn closed(&self) -> bool {
        let ours = self.trust == ServerTrust::BuiltIn && COMPUTING.contains(&self.server);
        self.first_rule_with(|rule| rule.closed).map_or(ours, |(_, closed)| closed)
    }

    fn speculate(&self) -> bool {
        self.first_rule_with(|rule| rule.speculate).is_none_or(|(_, speculate)| speculate)
    }

    fn routing(&self) -> Routing {
        let of_server = if self.is_of_clients { Routing::Client } else { Routing::Server };
        self.first_rule_with(|rule| rule.routing).map_or(of_server, |(_, routing)| routing)
    }

    /// Whether the result changes by itself. Of tools of other servers it is not known; a rule with `speculate = false`
    /// says the same of them.
    fn changes_by_itself(&self) -> bool {
        self.trust == ServerTrust::BuiltIn && CLOCKS.contains(&(self.server, self.tool))
    }

    fn cache_ttl(&self) -> Option<Duration> {
        self.first_rule_with(|rule| rule.cache_ttl).map(|(_, time)| time).filter(|time| !time.is_zero())
    }

    fn mode(&self, reads: &ReadOnlyBasis<'_>) -> (CallPermission, String) {
        if let Some(rule) = self.rules.iter().find(|rule| rule.deny) {
            return (CallPermission::Deny, format!("{} denies it", rule.label));
        }
        if let Some((rule, approval)) = self.first_rule_with(|rule| rule.approval) {
            return match approval {
                ApprovalMode::Auto => (CallPermission::Auto, format!("{} says so", rule.label)),
                ApprovalMode::Hil => (CallPermission::Ask, format!("{} says so", rule.label)),
            };
        }
        let ours = self.trust == ServerTrust::BuiltIn;
        match reads {
            ReadOnlyBasis::Rule(rule, true) => {
                (CallPermission::Auto, format!("{} says that it only reads", rule.label))
            }
            ReadOnlyBasis::Annotations(true) if ours => {
                (CallPermission::Auto, "it is built in and only reads".to_owned())
            }
            ReadOnlyBasis::Annotations(true) => (
                CallPermission::Auto,
                format!("its server `{}` is trusted and says that it only reads", self.server),
            ),
            ReadOnlyBasis::Rule(rule, false) => {
                (CallPermission::Ask, format!("{} says that it changes things", rule.label))
            }
            ReadOnlyBasis::Contradicted(rule) => (
                CallPermission::Ask,
                format!("{} says that it only reads, but the tool itself does not", rule.label),
            ),
            ReadOnlyBasis::Annotations(false) if ours => {
                (CallPermission::Ask, "it is built in and changes things".to_owned())
            }
            ReadOnlyBasis::Annotations(false) => {
                (CallPermission::Ask, format!("its server `{}` does not say that it only reads", self.server))
            }
            ReadOnlyBasis::Unknown => (CallPermission::Ask, "nothing in [permissions] allows it".to_owned()),
        }
    }

    /// Whether the tool's annotations say that it changes things. The protocol defines `destructiveHint` only for tools
    /// that are not marked read-only.
    fn says_it_changes(&self) -> bool {
        match self.annotations.read_only_hint {
            Some(reads) => !reads,
            None => self.annotations.destructive_hint == Some(true),
        }
    }

    /// Whether the tool's annotations say that it is not idempotent.
    fn says_it_adds_up(&self) -> bool {
        self.annotations.read_only_hint != Some(true) && self.annotations.idempotent_hint == Some(false)
    }
}

#[cfg(test)]
mod tests;
