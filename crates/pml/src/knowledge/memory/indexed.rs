//! A capability as it is held in memory: what is needed to find it and to decide whether it is usable.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use pml_analysis::Constant;
use pml_model::capability::{
    CacheConfig, Capability, CapabilityIntent, CapabilityOrigin, CapabilitySource, CapabilityState,
    CapabilityStatistics, ToolUse, reliability,
};
use pml_model::learning::DecisionStats;
use pml_model::structure::{NodeKind, Structure};
use pml_model::version::is_current_name;
use pml_model::{CapabilityId, Digest, Principal, Publication, RunId};
use serde_json::Value;

use crate::capability;
use crate::knowledge::embeddings;
use crate::reuse;

/// The number of intents of a capability that are in memory.
const MOST_INTENTS: usize = 20;

/// What is needed of a capability to find it and to decide whether it is usable.
#[derive(Debug, Clone)]
pub(crate) struct IndexedCapability {
    pub(crate) id: CapabilityId,
    pub(crate) owner: Principal,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) intents: ServedIntents,
    pub(crate) parameters: Value,
    pub(crate) examples: BTreeMap<String, Vec<Value>>,
    pub(crate) tools: Vec<ToolUse>,
    pub(crate) calls: CallOutline,
    pub(crate) program: IndexedProgram,
    pub(crate) state: CapabilityState,
    pub(crate) statistics: CapabilityStatistics,
    pub(crate) approved: bool,
    /// Whether it comes from explorations or a package.
    is_untried: bool,
    pub(crate) cache: CacheConfig,
    /// What its decisions were so far.
    pub(crate) decisions: Vec<DecisionStats>,
    /// The hash of the program's meaning.
    pub(crate) identity: String,
    /// How far it is published; `None` if only its owner sees it.
    pub(crate) publication: Option<Publication>,
    /// Whether this is how others see it.
    pub(crate) is_of_other: bool,
}

impl IndexedCapability {
    pub(super) fn words(&self) -> (&str, &str, &[String]) {
        (&self.name, &self.description, self.intents.texts())
    }

    /// The parameter schema, with the values of the first run as defaults if the first intent stated them: such a value
    /// follows the words. A value that was only passed by name says nothing about the next run.
    pub(crate) fn with_first_values(&self) -> Value {
        let mut parameters = self.parameters.clone();
        let Some(first) = self.intents.read().first() else { return parameters };
        let members = parameters.get_mut("properties").and_then(Value::as_object_mut);
        for (name, member) in members.into_iter().flatten() {
            let given = self.examples.get(name).and_then(|examples| examples.first());
            if let (Some(member), Some(given)) = (member.as_object_mut(), given)
                && !member.contains_key("default")
                && first.mentions(given)
            {
                member.insert("default".to_owned(), given.clone());
            }
        }
        parameters
    }

    /// Whether it was only explored or imported, and no run of it has succeeded here. Then it is suggested, and is
    /// evidence for nothing.
    pub(crate) fn is_unproven(&self) -> bool {
        self.is_untried && self.statistics.success_count == 0
    }

    /// Whether it is in force. Another version of a capability runs by its own name only.
    pub(crate) fn is_current(&self) -> bool {
        is_current_name(&self.name)
    }

    /// The expected success, from 0 to 1.
    pub(crate) fn reliability(&self) -> f64 {
        let CapabilityStatistics { success_count: worked, failure_count: failed, .. } = self.statistics;
        reliability(worked, worked + failed)
    }
}

impl From<Capability> for IndexedCapability {
    fn from(capability: Capability) -> IndexedCapability {
        IndexedCapability {
            publication: capability.publication(),
            is_of_other: false,
            identity: capability.procedure.identity,
            id: capability.procedure.id,
            owner: capability.procedure.owner,
            name: capability.name,
            description: capability.procedure.description,
            intents: ServedIntents::new(capability.intents),
            examples: examples(&capability.procedure.parameters_schema),
            parameters: capability.procedure.parameters_schema,
            tools: capability.procedure.tools_used,
            calls: CallOutline::new(&capability.procedure.static_structure),
            program: IndexedProgram {
                source: capability.procedure.source,
                constants: OnceLock::new(),
                unproven_by: capability.procedure.unproven_lift.map(|lift| lift.run),
            },
            state: capability.state,
            statistics: capability.statistics,
            approved: capability.approved,
            is_untried: matches!(
                capability.procedure.origin,
                CapabilityOrigin::Explored | CapabilityOrigin::Imported
            ),
            cache: capability.procedure.cache_config,
            decisions: capability.learning.decision_stats,
        }
    }
}

/// The intents that a capability served, first one first.
#[derive(Debug, Clone)]
pub(crate) struct ServedIntents {
    texts: Vec<String>,
    /// When each was served first, in milliseconds since the Unix epoch.
    first_at: Vec<i64>,
    /// What is embedded of each intent: its text, and its text without its values. Finding the values takes far longer than
    /// embedding is looked after, so it is done once.
    embedded: Vec<String>,
    /// The text digests of the intents, by which their vectors are found.
    pub(super) digests: Vec<Digest>,
    /// The text digests of the intents without their values.
    pub(super) masked_digests: Vec<Digest>,
    /// The intents as they are read, on first use.
    read: OnceLock<Vec<reuse::ReadIntent>>,
}

impl ServedIntents {
    fn new(mut intents: Vec<CapabilityIntent>) -> ServedIntents {
        // The literals of the first intent are the defaults.
        intents.sort_by_key(|intent| intent.first_at);
        intents.truncate(MOST_INTENTS);
        let first_at = intents.iter().map(|intent| intent.first_at).collect();
        let texts: Vec<String> = intents.into_iter().map(|intent| intent.text).collect();
        let whole: Vec<String> = texts.iter().map(|text| embeddings::intent_text(text)).collect();
        let masked: Vec<String> = texts.iter().map(|text| embeddings::masked_intent_text(text)).collect();
        let digests = |texts: &[String]| texts.iter().map(|text| Digest::of(text.as_bytes())).collect();
        ServedIntents {
            digests: digests(&whole),
            masked_digests: digests(&masked),
            embedded: whole.into_iter().chain(masked).collect(),
            first_at,
            texts,
            read: OnceLock::new(),
        }
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The first intent alone, from which the default values are.
    pub(super) fn first_only(&self) -> ServedIntents {
        let first = |all: &[Digest]| all.iter().take(1).cloned().collect();
        let (whole, masked) = self.embedded.split_at(self.texts.len());
        ServedIntents {
            texts: self.texts.iter().take(1).cloned().collect(),
            embedded: whole.iter().take(1).chain(masked.iter().take(1)).cloned().collect(),
            digests: first(&self.digests),
            masked_digests: first(&self.masked_digests),
            first_at: self.first_at.iter().take(1).copied().collect(),
            read: OnceLock::new(),
        }
    }

    /// The texts that are embedded for the intents.
    pub(crate) fn embedded(&self) -> &[String] {
        &self.embedded
    }

    /// The intents, each with the digest of its text.
    pub(crate) fn with_digests(&self) -> impl Iterator<Item = (&String, &Digest)> {
        self.texts.iter().zip(&self.digests)
    }

    /// When the intent with that number was served first.
    pub(crate) fn first_at(&self, number: usize) -> i64 {
        self.first_at.get(number).copied().unwrap_or_default()
    }

    /// The intent most similar to `asked`, and how similar it is.
    pub(super) fn most_similar(&self, asked: &reuse::ReadIntent) -> Option<(f64, &str)> {
        let alike = self.read().iter().map(|served| (served.similarity(asked), served.text()));
        alike.max_by(|one, other| one.0.total_cmp(&other.0))
    }

    /// The intents as they are read.
    pub(crate) fn read(&self) -> &[reuse::ReadIntent] {
        self.read.get_or_init(|| self.texts.iter().map(|text| reuse::ReadIntent::new(text)).collect())
    }
}

/// The program of a capability.
#[derive(Debug, Clone)]
pub(crate) struct IndexedProgram {
    pub(crate) source: CapabilitySource,
    /// The constants, computed on first use.
    constants: OnceLock<Vec<Constant>>,
    /// The run that its lifted form has to be compared with before it may be used.
    pub(crate) unproven_by: Option<RunId>,
}

impl IndexedProgram {
    /// The values in it that cannot be replaced by arguments.
    pub(crate) fn constants(&self) -> &[Constant] {
        self.constants.get_or_init(|| capability::constants(&self.source))
    }
}

/// The calls of a procedure.
#[derive(Debug, Clone)]
pub(crate) struct CallOutline {
    /// The called tools, in program order.
    pub(crate) tools: Vec<String>,
    /// The data dependencies between the calls.
    pub(crate) links: Vec<(usize, usize)>,
}

impl CallOutline {
    fn new(structure: &Structure) -> CallOutline {
        let (mut tools, mut places) = (Vec::new(), HashMap::new());
        for node in &structure.nodes {
            if let NodeKind::Task { tool, .. } = &node.kind
                && node.kind.is_call()
            {
                places.insert(node.id, tools.len());
                tools.push(tool.clone());
            }
        }
        let flow = structure.data_flow().into_iter();
        let links = flow.filter_map(|(from, to)| Some((*places.get(&from)?, *places.get(&to)?))).collect();
        CallOutline { tools, links }
    }
}

/// The values of the parameters in successful runs.
fn examples(schema: &Value) -> BTreeMap<String, Vec<Value>> {
    let members = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let given = members
        .filter_map(|(name, member)| Some((name.clone(), member.get("examples")?.as_array()?.clone())));
    given.collect()
}
