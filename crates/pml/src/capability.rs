//! Turns a successful run into a capability that can be found and run again.
//!
//! The stored source contains no secrets, and the literals of the program become defaults of its parameters: the
//! *template* is the same text with those literals taken from `args`.

mod constants;
mod secrets;
mod template;

use std::collections::BTreeSet;

use pml_analysis::AnalysisCatalogue;
use pml_model::capability::{
    CacheConfig, CapabilityOrigin, CapabilitySource, Procedure, ToolUse, UnprovenLift,
};
use pml_model::json::{Fields, raw};
use pml_model::name::{is_inherited, truncate_text};
use pml_model::structure::{Argument, NodeKind, Structure};
use pml_model::{CapabilityId, Principal, RunId};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(crate) use self::constants::constants;
use self::template::SourceForm;
pub(crate) use self::template::{is_same_program, is_same_structure};
use crate::plan::{LearningPlan, Plan, PlanLiteral, PlannedWork, remove_required};
use crate::reuse;
use crate::sanitise::Sanitiser;

/// The number of characters of an intent that form the description.
const DESCRIPTION_CHARACTERS: usize = 300;
/// Bytes: the largest example of an argument that is stored.
const EXAMPLE_BYTES: usize = 300;

/// The capability that a run carried out, without secrets; `None` if it cannot be stored without one. `cacheable` says
/// whether its tools permit caching of results.
pub(crate) fn build_procedure(
    plan: &Plan,
    learn: &LearningPlan,
    (owner, run): (&Principal, Option<&RunId>),
    hint: Option<&RawValue>,
    (sanitiser, catalogue, cacheable): (&Sanitiser, &AnalysisCatalogue, bool),
) -> Option<Procedure> {
    let hint: ProgramHint = hint.and_then(|hint| serde_json::from_str(hint.get()).ok()).unwrap_or_default();
    let secrets = secrets::secret_parameters(plan, learn, sanitiser);
    let KeptSource { source, structure, literals } = source(plan, learn, (sanitiser, &secrets), catalogue)?;
    let examples = example_values(plan, learn, sanitiser);
    let mut schema = parameters(&learn.parameters, &examples, &secrets);
    if literals == LiteralHandling::Fixed {
        without(&mut schema, &learn.literals);
    }
    if takes_inherited(&schema) {
        return None;
    }
    let tools = tools(plan);
    let names: Vec<&str> = tools.iter().map(|tool| tool.id.as_str()).collect();
    let intent = sanitiser.clean_text(&plan.intent);
    // A name that contains a secret is useless without it.
    let named = hint.name.filter(|name| matches!(sanitiser.clean_text(name), std::borrow::Cow::Borrowed(_)));
    let said = hint.description.as_deref().map(|text| sanitiser.clean_text(text).into_owned());
    let unproven_lift = run.and_then(|run| {
        let LiftedForm { template, parameters_schema } = lifted_form(plan, learn, sanitiser, catalogue)?;
        Some(Box::new(UnprovenLift { template, parameters_schema, run: run.clone() }))
    });
    // The lifted form is all but sure to be proven.
    let spoken = unproven_lift.as_ref().map_or(&schema, |lift| &lift.parameters_schema);
    let suggested_name = reuse::name_for(named.as_deref(), &intent, spoken, &names);
    let description = said.unwrap_or_else(|| match intent.is_empty() {
        true if !names.is_empty() => format!("calls {}", names.join(", ")),
        _ => reuse::describe(&intent, spoken),
    });
    Some(Procedure {
        id: CapabilityId::of(owner, &learn.identity),
        owner: owner.clone(),
        suggested_name,
        description: truncate_text(&description, DESCRIPTION_CHARACTERS),
        source,
        code_hash: plan.code_hash.clone(),
        identity: learn.identity.clone(),
        analysis_version: plan.analysis_version,
        tools_used: tools,
        dependencies: dependencies(plan),
        parameters_schema: schema,
        static_structure: structure,
        origin: CapabilityOrigin::Emergent,
        cache_config: CacheConfig { cacheable, ..CacheConfig::default() },
        unproven_lift,
    })
}

/// A program that takes what its intent names from `args`, and its parameters.
pub(crate) struct LiftedForm {
    pub(crate) template: String,
    pub(crate) parameters_schema: Value,
}

/// The form of the program that takes what the intent names from `args`; `None` if there is none, or not without
/// secrets.
pub(crate) fn lifted_form(
    plan: &Plan,
    learn: &LearningPlan,
    sanitiser: &Sanitiser,
    catalogue: &AnalysisCatalogue,
) -> Option<LiftedForm> {
    let lifted = learn.lifted.as_ref()?;
    let template =
        template::of(SourceForm::Code, &lifted.source, &lifted.literals, &plan.structure, catalogue);
    let examples = example_values(plan, learn, sanitiser);
    let mut schema = parameters(&lifted.parameters, &examples, &BTreeSet::new());
    let text = match template {
        Some((text, _)) => text,
        None => {
            without(&mut schema, &lifted.literals);
            lifted.source.clone()
        }
    };
    let is_clean = |text: &str| matches!(sanitiser.clean_text(text), std::borrow::Cow::Borrowed(_));
    let clean = is_clean(&text) && is_clean(&plan.source) && is_clean(&schema.to_string());
    clean.then_some(LiftedForm { template: text, parameters_schema: schema })
}

/// Whether a parameter has the name of a member that every JavaScript object inherits.
fn takes_inherited(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.keys().any(|name| is_inherited(name)))
}

/// The capabilities that it calls directly.
fn dependencies(plan: &Plan) -> Vec<CapabilityId> {
    let own = plan.sees.iter().flat_map(|sees| &sees.nested);
    let of_tasks = plan.task_programs().flat_map(|code| code.sees.nested.iter().chain(&code.capability));
    let places: BTreeSet<u32> = own.chain(of_tasks).copied().collect();
    places.into_iter().filter_map(|place| Some(plan.nested.get(place as usize)?.id.clone())).collect()
}

/// The hint of a program about itself.
#[derive(Default, Deserialize)]
struct ProgramHint {
    name: Option<String>,
    description: Option<String>,
}

/// The tools it calls: the declared ones, and for an opaque program only those granted tools that it names.
pub(crate) fn tools(plan: &Plan) -> Vec<ToolUse> {
    let declared: BTreeSet<&str> = plan.structure.nodes.iter().filter_map(tool_of).collect();
    let mut seen = BTreeSet::new();
    plan.tools
        .iter()
        .map(|tool| ToolUse { id: tool.id.to_string(), digest: tool.digest.clone() })
        .filter(|tool| plan.opaque.is_empty() || declared.contains(tool.id.as_str()))
        .filter(|tool| seen.insert(tool.id.clone()))
        .collect()
}

fn tool_of(node: &pml_model::structure::Node) -> Option<&str> {
    match &node.kind {
        NodeKind::Task { tool, .. } if node.kind.is_call() => Some(tool),
        _ => None,
    }
}

/// The source and the structure, without secrets.
struct KeptSource {
    source: CapabilitySource,
    structure: Structure,
    literals: LiteralHandling,
}

/// How the literals of a source are treated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiteralHandling {
    /// They become parameters.
    Parameters,
    /// They stay constant, whatever arguments are given.
    Fixed,
}

fn source(
    plan: &Plan,
    learn: &LearningPlan,
    (sanitiser, secrets): (&Sanitiser, &BTreeSet<String>),
    catalogue: &AnalysisCatalogue,
) -> Option<KeptSource> {
    let has_secret = learn.literals.iter().any(|literal| secrets.contains(&literal.name))
        || matches!(sanitiser.clean_text(&plan.source), std::borrow::Cow::Owned(_));
    let form = match &plan.work {
        PlannedWork::Code(_) => SourceForm::Code,
        PlannedWork::Dag(dag) if dag.single => {
            let asked = Fields::parse(&plan.source).ok()?;
            let tool_id: String = asked.read("tool")?;
            let default_args = sanitiser.clean_json(asked.get("arguments")?).value;
            let source = CapabilitySource::Tool { tool_id, default_args };
            let structure = cleaned(&plan.structure, sanitiser)?;
            return Some(KeptSource { source, structure, literals: LiteralHandling::Parameters });
        }
        PlannedWork::Dag(_) => SourceForm::Dag,
    };
    let template = template::of(form, &plan.source, &learn.literals, &plan.structure, catalogue);
    if !has_secret && !secrets::has_secrets(&plan.structure, sanitiser) {
        let literals = if template.is_some() { LiteralHandling::Parameters } else { LiteralHandling::Fixed };
        let source = written(form, plan.source.clone(), template.map(|(text, _)| text))?;
        return Some(KeptSource { source, structure: plan.structure.clone(), literals });
    }
    let (text, structure) = template?;
    let clean = matches!(sanitiser.clean_text(&text), std::borrow::Cow::Borrowed(_))
        && !secrets::has_secrets(&structure, sanitiser);
    let source = clean.then(|| written(form, text, None)).flatten()?;
    Some(KeptSource { source, structure, literals: LiteralHandling::Parameters })
}

/// Removes the parameters of literals that the source cannot take from `args`: otherwise a given argument would be
/// silently ignored.
fn without(schema: &mut Value, literals: &[PlanLiteral]) {
    for PlanLiteral { name, .. } in literals {
        if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            members.remove(name);
        }
        remove_required(schema, name);
    }
}

/// The structure of one call with literal arguments only, without their secrets.
fn cleaned(structure: &Structure, sanitiser: &Sanitiser) -> Option<Structure> {
    let mut structure = structure.clone();
    for node in &mut structure.nodes {
        if let NodeKind::Task { arguments, .. } = &mut node.kind {
            let clean = sanitiser.clean_json(&raw(&plain(arguments)?));
            if clean.changed {
                *arguments = Argument::Literal { value: serde_json::from_str(clean.value.get()).ok()? };
            }
        }
    }
    Some(structure)
}

/// The value of a literal argument; `None` if it is computed.
fn plain(argument: &Argument) -> Option<Value> {
    match argument {
        Argument::Literal { value } => Some(value.clone()),
        Argument::Object { fields, spreads } if spreads.is_empty() => {
            let fields = fields.iter().map(|field| Some((field.name.clone(), plain(&field.value)?)));
            fields.collect::<Option<Map<String, Value>>>().map(Value::Object)
        }
        Argument::Array { items } => items.iter().map(plain).collect::<Option<_>>().map(Value::Array),
        _ => None,
    }
}

fn written(form: SourceForm, text: String, template: Option<String>) -> Option<CapabilitySource> {
    let document = |text: String| RawValue::from_string(text.trim().to_owned()).ok();
    Some(match form {
        SourceForm::Code => CapabilitySource::Code { code: text, template },
        SourceForm::Dag => {
            CapabilitySource::Dag { dag_structure: document(text)?, template: template.and_then(document) }
        }
    })
}

/// The parameter schema, with this run's arguments as examples; a secret parameter gets no default.
fn parameters(schema: &Value, given: &Map<String, Value>, secrets: &BTreeSet<String>) -> Value {
    let mut schema = schema.clone();
    let mut to_be_given = Vec::new();
    if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, member) in members {
            if member.get("default").is_none() {
                if let (Some(member), Some(value)) = (member.as_object_mut(), given.get(name)) {
                    member.insert("examples".to_owned(), json!([value]));
                }
                continue;
            }
            if secrets.contains(name) {
                member.as_object_mut().map(|member| member.remove("default"));
                to_be_given.push(name.clone());
            }
        }
    }
    if !to_be_given.is_empty() && schema.is_object() {
        let mut required: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
        required.extend(to_be_given.into_iter().map(Value::from));
        schema["required"] = Value::from(required);
    }
    schema
}

/// The names of the parameters that every run has to give, because their values are secrets.
pub(crate) fn withheld(plan: &Plan, learn: &LearningPlan, sanitiser: &Sanitiser) -> Vec<String> {
    let secrets = secrets::secret_parameters(plan, learn, sanitiser);
    let secret = learn.literals.iter().filter(|literal| secrets.contains(&literal.name));
    secret.map(|literal| literal.name.clone()).collect()
}

/// The arguments of a run that may be stored as examples.
pub(crate) fn example_values(plan: &Plan, learn: &LearningPlan, sanitiser: &Sanitiser) -> Map<String, Value> {
    let mut values = Map::new();
    let secrets = secrets::secret_parameters(plan, learn, sanitiser);
    let given = Fields::parse(plan.arguments.get()).unwrap_or_default();
    let given =
        given.iter().filter_map(|(name, value)| Some((name, serde_json::from_str(value.get()).ok()?)));
    let written =
        learn.literals.iter().filter_map(|literal| Some((literal.name.as_str(), literal.value.clone()?)));
    let lifted = learn.lifted.iter().flat_map(|lifted| lifted.written_values());
    for (name, value) in given.chain(written).chain(lifted) {
        if value.to_string().len() <= EXAMPLE_BYTES && !secrets.contains(name) {
            values.insert(name.to_owned(), value);
        }
    }
    values
}
