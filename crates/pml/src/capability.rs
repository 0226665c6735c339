//! Makes a procedure that can be found and run again of a run that worked.
//!
//! What is kept has no secrets in it, and what the program was written with stands as defaults of its parameters: the
//! *template* is the same text with those literals taken from `args`.

mod constants;
mod secrets;
mod template;

use std::collections::BTreeSet;

use pml_analysis::Catalogue;
use pml_model::CapabilityId;
use pml_model::Principal;
use pml_model::capability::{CacheConfig, Origin, Procedure, Source, ToolUse};
use pml_model::json::{Fields, raw};
use pml_model::name::{is_inherited, shortened};
use pml_model::structure::{Argument, NodeKind, Structure};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

pub(crate) use self::constants::constants;
use self::template::Form;
use crate::plan::{Learn, Literal, Plan, Work, without_required};
use crate::reuse;
use crate::sanitise::Sanitiser;

/// How many characters of an intent describe a procedure.
const DESCRIPTION_CHARACTERS: usize = 300;
/// The largest example of an argument that is kept.
const EXAMPLE_BYTES: usize = 300;

/// The procedure that a run carried out, free of secrets. Nothing where it cannot be kept without one. Whether its results
/// may be kept depends on its tools: `cacheable`.
pub(crate) fn procedure(
    plan: &Plan,
    learn: &Learn,
    owner: &Principal,
    hint: Option<&RawValue>,
    (sanitiser, catalogue, cacheable): (&Sanitiser, &Catalogue, bool),
) -> Option<Procedure> {
    let hint: Hint = hint.and_then(|hint| serde_json::from_str(hint.get()).ok()).unwrap_or_default();
    let secrets = secrets::names(plan, learn, sanitiser);
    let Kept { source, structure, literals } = source(plan, learn, (sanitiser, &secrets), catalogue)?;
    let mut schema = parameters(learn, &values(plan, learn, sanitiser), &secrets);
    if literals == Literals::Fixed {
        without(&mut schema, &learn.literals);
    }
    if takes_inherited(&schema) {
        return None;
    }
    let tools = tools(plan);
    let names: Vec<&str> = tools.iter().map(|tool| tool.id.as_str()).collect();
    let intent = sanitiser.text(&plan.intent);
    // What is left of a name that holds a secret names nothing.
    let named = hint.name.filter(|name| matches!(sanitiser.text(name), std::borrow::Cow::Borrowed(_)));
    let said = hint.description.as_deref().map(|text| sanitiser.text(text).into_owned());
    Some(Procedure {
        id: CapabilityId::of(owner, &learn.identity),
        owner: owner.clone(),
        suggested_name: reuse::name_for(named.as_deref(), &intent, &names),
        description: shortened(&said.unwrap_or_else(|| intent.into_owned()), DESCRIPTION_CHARACTERS),
        source,
        code_hash: plan.code_hash.clone(),
        identity: learn.identity.clone(),
        analysis_version: plan.analysis_version,
        tools_used: tools,
        dependencies: dependencies(plan),
        parameters_schema: schema,
        static_structure: structure,
        origin: Origin::Emergent,
        cache_config: CacheConfig { cacheable, ..CacheConfig::default() },
    })
}

/// Whether a parameter is called like a member that every JavaScript object has.
fn takes_inherited(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.keys().any(|name| is_inherited(name)))
}

/// The capabilities it calls itself.
fn dependencies(plan: &Plan) -> Vec<CapabilityId> {
    let own = plan.sees.iter().flat_map(|sees| &sees.nested);
    let of_tasks = plan.codes().flat_map(|code| code.sees.nested.iter().chain(&code.capability));
    let places: BTreeSet<u32> = own.chain(of_tasks).copied().collect();
    places.into_iter().filter_map(|place| Some(plan.nested.get(place as usize)?.id.clone())).collect()
}

/// What a program says of itself.
#[derive(Default, Deserialize)]
struct Hint {
    name: Option<String>,
    description: Option<String>,
}

/// The tools it calls: those it declares, and of one whose calls cannot be known, none but the granted ones it names.
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

/// What is run and what it can do, without secrets.
struct Kept {
    source: Source,
    structure: Structure,
    literals: Literals,
}

/// What becomes of the literals of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Literals {
    /// They are parameters.
    Given,
    /// They stay what they are, whatever is given.
    Fixed,
}

fn source(
    plan: &Plan,
    learn: &Learn,
    (sanitiser, secrets): (&Sanitiser, &BTreeSet<String>),
    catalogue: &Catalogue,
) -> Option<Kept> {
    let has_secret = learn.literals.iter().any(|literal| secrets.contains(&literal.name))
        || matches!(sanitiser.text(&plan.source), std::borrow::Cow::Owned(_));
    let form = match &plan.work {
        Work::Code(_) => Form::Code,
        Work::Dag(dag) if dag.single => {
            let asked = Fields::parse(&plan.source).ok()?;
            let tool_id: String = asked.read("tool")?;
            let default_args = sanitiser.json(asked.get("arguments")?).value;
            let source = Source::Tool { tool_id, default_args };
            let structure = cleaned(&plan.structure, sanitiser)?;
            return Some(Kept { source, structure, literals: Literals::Given });
        }
        Work::Dag(_) => Form::Dag,
    };
    let template = template::of(form, &plan.source, &learn.literals, &plan.structure, catalogue);
    if !has_secret && !secrets::are_in(&plan.structure, sanitiser) {
        let literals = if template.is_some() { Literals::Given } else { Literals::Fixed };
        let source = written(form, plan.source.clone(), template.map(|(text, _)| text))?;
        return Some(Kept { source, structure: plan.structure.clone(), literals });
    }
    let (text, structure) = template?;
    let clean = matches!(sanitiser.text(&text), std::borrow::Cow::Borrowed(_))
        && !secrets::are_in(&structure, sanitiser);
    let source = clean.then(|| written(form, text, None)).flatten()?;
    Some(Kept { source, structure, literals: Literals::Given })
}

/// A source that cannot take its literals from `args` must not seem to: it would run on what it was written with.
fn without(schema: &mut Value, literals: &[Literal]) {
    for Literal { name, .. } in literals {
        if let Some(members) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            members.remove(name);
        }
        without_required(schema, name);
    }
}

/// The structure of one call, whose arguments are all written in it, without the secrets among them.
fn cleaned(structure: &Structure, sanitiser: &Sanitiser) -> Option<Structure> {
    let mut structure = structure.clone();
    for node in &mut structure.nodes {
        if let NodeKind::Task { arguments, .. } = &mut node.kind {
            let clean = sanitiser.json(&raw(&plain(arguments)?));
            if clean.changed {
                *arguments = Argument::Literal { value: serde_json::from_str(clean.value.get()).ok()? };
            }
        }
    }
    Some(structure)
}

/// The value of an argument that is written out; nothing where it has to be computed.
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

fn written(form: Form, text: String, template: Option<String>) -> Option<Source> {
    let document = |text: String| RawValue::from_string(text.trim().to_owned()).ok();
    Some(match form {
        Form::Code => Source::Code { code: text, template },
        Form::Dag => Source::Dag { dag_structure: document(text)?, template: template.and_then(document) },
    })
}

/// What it takes, with what it was given this time as examples; a secret is to be given each time.
fn parameters(learn: &Learn, given: &Map<String, Value>, secrets: &BTreeSet<String>) -> Value {
    let mut schema = learn.parameters.clone();
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

/// The names of the parameters that have to be given each time because what was given is a secret.
pub(crate) fn withheld(plan: &Plan, learn: &Learn, sanitiser: &Sanitiser) -> Vec<String> {
    let secrets = secrets::names(plan, learn, sanitiser);
    let secret = learn.literals.iter().filter(|literal| secrets.contains(&literal.name));
    secret.map(|literal| literal.name.clone()).collect()
}

/// What the parameters of a run were, as far as it may be kept: examples for later.
pub(crate) fn values(plan: &Plan, learn: &Learn, sanitiser: &Sanitiser) -> Map<String, Value> {
    let mut values = Map::new();
    let secrets = secrets::names(plan, learn, sanitiser);
    let given = Fields::parse(plan.arguments.get()).unwrap_or_default();
    let given =
        given.iter().filter_map(|(name, value)| Some((name, serde_json::from_str(value.get()).ok()?)));
    let written =
        learn.literals.iter().filter_map(|literal| Some((literal.name.as_str(), literal.value.clone()?)));
    for (name, value) in given.chain(written) {
        if value.to_string().len() <= EXAMPLE_BYTES && !secrets.contains(name) {
            values.insert(name.to_owned(), value);
        }
    }
    values
}
