//! Capabilities that clients are shown as tools of their own.

use std::collections::BTreeSet;

use pml_model::capability::{Capability, CapabilitySource, CapabilityState, Procedure};
use pml_model::learning::result_digest;
use pml_model::version::is_current_name;
use pml_model::{Principal, ToolId};
use pml_store::CapabilityQuery;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::problem::Problem;

/// The largest number of capabilities that are exposed where no names are given.
const MOST: u32 = 1_000;
/// The word in `expose` for every capability that works.
const EVERY: &str = "capabilities:*";
/// The prefix of keywords that only PML understands.
const OWN_KEYWORD: &str = "x-pml-";

/// A capability as a tool.
pub struct ExposedCapability {
    /// The name in programs, and of the tool.
    pub name: String,
    /// Purpose, in one sentence.
    pub description: String,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the result, as its tool declares it or as it was observed. `{}` if nothing is known.
    pub result_schema: Value,
    /// Whether no tool that it calls changes anything.
    pub read_only: bool,
    /// Whether a repeated run with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Whether a tool that it calls reaches beyond a closed set of things.
    pub open_world: bool,
}

/// The capabilities of `principal` that are exposed and work, by name. A name that a tool has stays with the tool.
///
/// # Errors
/// The database cannot be read.
pub async fn exposed_capabilities(
    app: &App,
    principal: &Principal,
    exposed: &[String],
) -> Result<Vec<ExposedCapability>, Problem> {
    if !exposed.iter().any(|name| name == EVERY || !name.contains(':')) {
        return Ok(Vec::new());
    }
    let snapshot = app.tools.snapshot();
    let all = candidates(app, principal, exposed).await?;
    let shown = all.into_iter().filter(|one| {
        one.state == CapabilityState::Active
            && is_current_name(&one.name)
            && one.statistics.success_count > 0
            && snapshot.resolve_name(&one.name).is_err()
    });
    Ok(shown.map(|one| as_tool(app, one)).collect())
}

/// The capabilities that are named in `exposed`, or all up to [`MOST`].
async fn candidates(
    app: &App,
    principal: &Principal,
    exposed: &[String],
) -> Result<Vec<Capability>, Problem> {
    if exposed.iter().any(|name| name == EVERY) {
        let query =
            CapabilityQuery { state: Some(CapabilityState::Active), recent: false, limit: MOST, offset: 0 };
        return Ok(app.store.capabilities(principal, &query).await?);
    }
    let names: BTreeSet<&str> =
        exposed.iter().map(String::as_str).filter(|name| !name.contains(':')).collect();
    let mut found = Vec::new();
    for name in names {
        found.extend(app.store.capability_named(principal, name).await?);
    }
    Ok(found)
}

fn as_tool(app: &App, capability: Capability) -> ExposedCapability {
    let (snapshot, policy) = (app.tools.snapshot(), app.policy());
    let (mut read_only, mut idempotent, mut open_world) = (true, true, false);
    // What other capabilities it calls do is not looked up: they may do anything.
    if !capability.procedure.dependencies.is_empty() {
        (read_only, idempotent, open_world) = (false, false, true);
    }
    for used in &capability.procedure.tools_used {
        let id = ToolId::parse(&used.id).ok();
        let verdict = id.and_then(|id| {
            let tool = snapshot.tool(&id).ok()?;
            Some(policy.verdict(&id, &tool.definition.annotations))
        });
        read_only &= verdict.as_ref().is_some_and(|verdict| verdict.read_only);
        idempotent &= verdict.as_ref().is_some_and(|verdict| verdict.idempotent);
        open_world |= verdict.is_none_or(|verdict| verdict.open_world);
    }
    ExposedCapability {
        result_schema: result_schema(app, &capability),
        name: capability.name,
        description: capability.procedure.description,
        input_schema: input_schema(&capability.procedure.parameters_schema),
        read_only,
        idempotent,
        open_world,
    }
}

/// What is known of the result. Clients refuse a result that does not fit its schema, and neither observations nor foreign
/// declarations are a promise, so the schema describes and does not bind.
fn result_schema(app: &App, capability: &Capability) -> Value {
    let Procedure { id, owner, source, .. } = &capability.procedure;
    let declared = match source {
        CapabilitySource::Tool { tool_id, .. } => ToolId::parse(tool_id).ok().and_then(|tool| {
            let snapshot = app.tools.snapshot();
            let declared = snapshot.tool(&tool).ok()?.definition.output_schema.as_deref()?.get();
            serde_json::from_str::<Value>(declared).ok()
        }),
        CapabilitySource::Code { .. } | CapabilitySource::Dag { .. } => None,
    };
    let observed = || {
        let observed = app.knowledge.of_principal(owner).observed();
        let seen = observed.get(&(id.to_string(), result_digest(id)))?;
        Some(without_examples(seen.schema.clone()))
    };
    let Some(schema) = declared.or_else(observed) else { return json!({}) };
    json!({ "description": "as observed or declared; other results are possible", "anyOf": [schema, {}] })
}

/// The schema without the values that were seen.
fn without_examples(mut schema: Value) -> Value {
    let mut waiting = vec![&mut schema];
    while let Some(place) = waiting.pop() {
        let Value::Object(keywords) = place else { continue };
        keywords.remove("examples");
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("properties", Value::Object(members)) => waiting.extend(members.values_mut()),
                ("items", items) => waiting.push(items),
                _ => {}
            }
        }
    }
    schema
}

/// The schema of the parameters as clients understand it.
fn input_schema(parameters: &Value) -> Value {
    let mut properties = Map::new();
    for (name, schema) in parameters.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let mut schema = schema.clone();
        if let Value::Object(schema) = &mut schema {
            schema.retain(|keyword, _| !keyword.starts_with(OWN_KEYWORD));
        }
        properties.insert(name.clone(), schema);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if let Some(required) = parameters.get("required").filter(|names| names != &&json!([])) {
        schema["required"] = required.clone();
    }
    schema
}
