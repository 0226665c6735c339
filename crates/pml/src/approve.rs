//! Decides what programs may do with tools.
//!
//! [`Policy::of`] sees the user's rules and what a tool's server says of it — no clock, store or
//! network — so the same tool always gets the same answer. It calls nothing and asks nobody.
//!
//! Of the rules about a tool the most specific counts first: the one that names it, then patterns with
//! part of its name (the longer their literal text, the sooner), then its server, then patterns of
//! servers. Among equals the stricter comes first. Each attribute is taken from the first rule that
//! gives it, so a narrow rule changes what it says and inherits the rest. `deny` holds from anywhere.
//!
//! What no rule gives, the tool's own annotations give, where they are believed: those of built-in
//! servers, and of servers with `trust = "annotations"`. From others nothing is believed that would
//! loosen; what is not known to read is asked for, not repeated, and may reach anything. But a tool
//! that says itself that it changes things does so, and only a rule with its full name outweighs that.

pub(crate) mod differs;
mod effect;
mod explain;
pub(crate) mod question;
pub mod words;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use pml_model::{Annotations, ToolId};

pub use effect::Effect;
pub use explain::{Attribute, Explanation};

use crate::config::{Approval, BUILT_IN, Config, Rule, Scope, Subject};

pub use crate::config::Mode;

/// The built-in servers whose tools look at nothing but their arguments.
const COMPUTING: &[&str] = &["json", "text", "csv", "math"];

/// The user's rules, ready to be asked.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The most specific first.
    rules: Vec<Rule>,
    /// The built-in servers.
    ours: HashSet<String>,
    /// The servers that are believed.
    believed: HashSet<String>,
}

/// What programs may do with one tool, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it may be called.
    pub mode: Mode,
    /// It changes nothing.
    pub read_only: bool,
    /// It can be called again with the same arguments where nobody knows what became of a call.
    pub idempotent: bool,
    /// It may reach beyond a closed set of things.
    pub open_world: bool,
    /// What kind of reach it has.
    pub scope: Scope,
    /// What it changes is seen by no other server.
    pub isolated: bool,
    /// What it gives depends on its arguments alone.
    pub closed: bool,
    /// How long what it gave may be given again, where the operator says so.
    pub cache_ttl: Option<Duration>,
    /// Why `mode` is what it is: what follows the word "because".
    pub because: String,
}

/// Why a tool may not be called: a rule forbids it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{tool}` may not be called, because {because}")]
pub struct Refusal {
    /// The tool.
    pub tool: ToolId,
    /// Which rule.
    pub because: String,
}

impl Refusal {
    /// What to do about it.
    pub const HINT: &str = "do without the tool, or have the user change that rule";
}

impl Verdict {
    /// What stands against calling the tool, whoever would allow it.
    pub fn refusal(&self, tool: &ToolId) -> Option<Refusal> {
        (self.mode == Mode::Deny).then(|| Refusal { tool: tool.clone(), because: self.because.clone() })
    }
}

impl Policy {
    /// The policy that `config` says.
    pub fn new(config: &Config) -> Policy {
        let mut rules = config.permissions.clone();
        rules.sort_by_cached_key(|rule| {
            (Reverse(specificity(&rule.subject)), leniency(rule), rule.shown.clone())
        });
        let ours = BUILT_IN.iter().filter(|name| !config.builtin.disabled.iter().any(|off| off == *name));
        let believed = config.servers.iter().filter(|server| server.trusts_annotations);
        Policy {
            rules,
            ours: ours.map(|name| (*name).to_owned()).collect(),
            believed: believed.map(|server| server.name.as_str().to_owned()).collect(),
        }
    }

    /// What may be done with the tool `id`, whose server says `annotations` of it.
    pub fn of(&self, id: &ToolId, annotations: &Annotations) -> Verdict {
        let tool = self.case(id, annotations);
        let read_only = tool.read_only();
        let (mode, because) = tool.mode(&read_only);
        let read_only = read_only.holds();
        Verdict {
            mode,
            read_only,
            idempotent: tool.idempotent(read_only),
            open_world: tool.open_world(),
            scope: tool.scope(),
            isolated: tool.isolated(),
            closed: tool.closed(),
            cache_ttl: tool.cache_ttl(),
            because,
        }
    }

    fn case<'p>(&'p self, id: &'p ToolId, annotations: &Annotations) -> Case<'p> {
        let server = id.server.as_str();
        Case {
            rules: self.rules.iter().filter(|rule| rule.subject.has(server, &id.tool)).collect(),
            standing: self.standing(server),
            server,
            says: *annotations,
        }
    }

    fn standing(&self, server: &str) -> Standing {
        if self.ours.contains(server) {
            Standing::Ours
        } else if self.believed.contains(server) {
            Standing::Believed
        } else {
            Standing::Foreign
        }
    }
}

/// How narrowly a rule says which tools it is about; greater counts first.
pub fn specificity(subject: &Subject) -> (u8, usize) {
    let (server, tool) = (&subject.server, &subject.tool);
    let class = match (subject.is_exact(), tool.literals() > 0, server.is_literal()) {
        (true, _, _) => 3,
        (false, true, _) => 2,
        (false, false, true) => 1,
        (false, false, false) => 0,
    };
    (class, server.literals() + tool.literals())
}

/// Less counts first.
fn leniency(rule: &Rule) -> (u8, u8) {
    let approval = match rule.approval {
        Some(Approval::Hil) => 0,
        None => 1,
        Some(Approval::Auto) => 2,
    };
    let read_only = match rule.read_only {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    };
    (approval, read_only)
}

/// Whose word a tool's annotations are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Ours,
    Believed,
    Foreign,
}

/// One tool with everything that is said of it.
struct Case<'p> {
    /// Those about it, the most specific first.
    rules: Vec<&'p Rule>,
    standing: Standing,
    server: &'p str,
    says: Annotations,
}

/// Whether a tool only reads, and who says so.
enum Reads<'p> {
    Rule(&'p Rule, bool),
    /// The rule says that it only reads, and the tool itself that it does not.
    Contradicted(&'p Rule),
    Annotations(bool),
    Unknown,
}

impl Reads<'_> {
    fn holds(&self) -> bool {
        matches!(self, Reads::Rule(_, true) | Reads::Annotations(true))
    }
}

impl<'p> Case<'p> {
    /// The first rule that gives an attribute, and what it gives.
    fn given<T>(&self, attribute: impl Fn(&Rule) -> Option<T>) -> Option<(&'p Rule, T)> {
        self.rules.iter().find_map(|rule| Some((*rule, attribute(rule)?)))
    }

    fn is_believed(&self) -> bool {
        self.standing != Standing::Foreign
    }

    fn read_only(&self) -> Reads<'p> {
        match self.given(|rule| rule.read_only) {
            Some((rule, true)) if self.says_it_changes() && !rule.subject.is_exact() => {
                Reads::Contradicted(rule)
            }
            Some((rule, reads)) => Reads::Rule(rule, reads),
            None if self.is_believed() => Reads::Annotations(self.says.read_only_hint == Some(true)),
            None => Reads::Unknown,
        }
    }

    /// A tool that only reads is idempotent unless a rule says otherwise.
    fn idempotent(&self, read_only: bool) -> bool {
        match self.given(|rule| rule.idempotent) {
            Some((rule, true)) => rule.subject.is_exact() || read_only || !self.says_it_adds_up(),
            Some((_, false)) => false,
            None => read_only || (self.is_believed() && self.says.idempotent_hint == Some(true)),
        }
    }

    fn open_world(&self) -> bool {
        let says = self.says.open_world_hint;
        match self.given(|rule| rule.open_world) {
            Some((rule, false)) => says == Some(true) && !rule.subject.is_exact(),
            Some((_, true)) => true,
            None => !self.is_believed() || says != Some(false),
        }
    }

    fn scope(&self) -> Scope {
        if let Some((_, scope)) = self.given(|rule| rule.scope) {
            return scope;
        }
        let reads = self.says.read_only_hint == Some(true);
        match (self.standing, self.says.open_world_hint, reads) {
            (Standing::Foreign, _, _) => Scope::McpStandard,
            (Standing::Ours | Standing::Believed, Some(true), _) => Scope::NetworkApi,
            // Of the built-in servers that reach no network, `fs` alone knows more than it is given.
            (Standing::Ours, _, true) if self.server != "fs" => Scope::Minimal,
            (Standing::Ours, _, false) => Scope::Filesystem,
            (Standing::Ours | Standing::Believed, _, true) => Scope::Readonly,
            (Standing::Believed, _, false) => Scope::McpStandard,
        }
    }

    /// Only the user can know that.
    fn isolated(&self) -> bool {
        self.given(|rule| rule.isolated).is_some_and(|(_, isolated)| isolated)
    }

    /// Of the built-in servers, those that compute from their arguments; of others the user has to know.
    fn closed(&self) -> bool {
        let ours = self.standing == Standing::Ours && COMPUTING.contains(&self.server);
        self.given(|rule| rule.closed).map_or(ours, |(_, closed)| closed)
    }

    fn cache_ttl(&self) -> Option<Duration> {
        self.given(|rule| rule.cache_ttl).map(|(_, time)| time).filter(|time| !time.is_zero())
    }

    fn mode(&self, reads: &Reads<'_>) -> (Mode, String) {
        if let Some(rule) = self.rules.iter().find(|rule| rule.deny) {
            return (Mode::Deny, format!("{} denies it", rule.shown));
        }
        if let Some((rule, approval)) = self.given(|rule| rule.approval) {
            return match approval {
                Approval::Auto => (Mode::Auto, format!("{} says so", rule.shown)),
                Approval::Hil => (Mode::Ask, format!("{} says so", rule.shown)),
            };
        }
        let ours = self.standing == Standing::Ours;
        match reads {
            Reads::Rule(rule, true) => (Mode::Auto, format!("{} says that it only reads", rule.shown)),
            Reads::Annotations(true) if ours => (Mode::Auto, "it is built in and only reads".to_owned()),
            Reads::Annotations(true) => {
                (Mode::Auto, format!("its server `{}` is trusted and says that it only reads", self.server))
            }
            Reads::Rule(rule, false) => (Mode::Ask, format!("{} says that it changes things", rule.shown)),
            Reads::Contradicted(rule) => {
                (Mode::Ask, format!("{} says that it only reads, but the tool itself does not", rule.shown))
            }
            Reads::Annotations(false) if ours => (Mode::Ask, "it is built in and changes things".to_owned()),
            Reads::Annotations(false) => {
                (Mode::Ask, format!("its server `{}` does not say that it only reads", self.server))
            }
            Reads::Unknown => (Mode::Ask, "nothing in [permissions] allows it".to_owned()),
        }
    }

    /// Whether the tool itself says that it changes things. The protocol gives `destructiveHint` a
    /// meaning only where the tool does not say that it only reads.
    fn says_it_changes(&self) -> bool {
        match self.says.read_only_hint {
            Some(reads) => !reads,
            None => self.says.destructive_hint == Some(true),
        }
    }

    /// Whether the tool itself says that a second call changes more.
    fn says_it_adds_up(&self) -> bool {
        self.says.read_only_hint != Some(true) && self.says.idempotent_hint == Some(false)
    }
}

#[cfg(test)]
mod tests;
