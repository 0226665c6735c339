//! Hands capabilities to other people, and takes theirs: packages.
//!
//! A package is believed in nothing. Its programs are analysed and planned like any program, and what it says of them
//! must agree. An imported capability is suggested, and runs by name, until a run of it has succeeded here.

use std::collections::BTreeSet;
use std::sync::Arc;

use pml_model::capability::{CapabilityOrigin, CapabilitySource, Procedure};
use pml_model::name::{printable, truncate_text};
use pml_model::{CapabilityId, Principal, ToolId};
use pml_store::CreateOutcome;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::capabilities::{capability, check_name, name_taken, plan_procedure};
use crate::app::App;
use crate::capability::is_same_structure;
use crate::clock::now_ms;
use crate::discover::check_intent_length;
use crate::package::{self, MAX_PACKAGED, PackageContent, PackagedCapability, PackagedTool};
use crate::plan::{Pause, remove_required};
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};
use crate::reuse::UNSPOKEN;

/// The number of intents of a capability that a package holds.
const MOST_INTENTS: usize = 16;
/// The number of characters of a foreign text that are shown.
const SHOWN_CHARACTERS: usize = 200;
/// The number of characters of a description that are taken.
const DESCRIPTION_CHARACTERS: usize = 300;
/// What a package may say of a parameter. The rest of the schema comes from the analysis here.
const TAKEN_KEYWORDS: [&str; 7] = ["type", "default", "enum", "format", "description", "examples", UNSPOKEN];

/// A package to be written.
pub struct ExportedPackage {
    /// The text of the file.
    pub text: String,
    /// The public key of this PML.
    pub signer: String,
    /// What is in it.
    pub content: PackageContent,
}

/// Packs the named capabilities, and those that they call.
///
/// # Errors
/// One of them does not exist, there are too many, or the key cannot be used.
pub async fn export_package(
    app: &App,
    principal: &Principal,
    names: &[String],
    with_statistics: bool,
) -> Result<ExportedPackage, Problem> {
    app.tools.ensure_manifests_loaded().await;
    let mut packed = Packing { app, principal, seen: BTreeSet::new(), procedures: Vec::new() };
    for name in names {
        packed.add(capability(app, principal, name).await?.procedure.id).await?;
    }
    let mut capabilities = Vec::with_capacity(packed.procedures.len());
    let mut tools: Vec<PackagedTool> = Vec::new();
    for id in &packed.procedures {
        let found = capability(app, principal, id.as_str()).await?;
        for used in &found.procedure.tools_used {
            if !tools.iter().any(|tool| tool.id == used.id) {
                tools.push(PackagedTool { id: used.id.clone(), digest: used.digest.clone() });
            }
        }
        let intents = found.intents.iter().take(MOST_INTENTS).map(|intent| intent.text.clone());
        capabilities.push(PackagedCapability {
            name: found.name,
            description: found.procedure.description,
            intents: intents.collect(),
            source: found.procedure.source,
            parameters_schema: found.procedure.parameters_schema,
            structure: found.procedure.static_structure,
            statistics: with_statistics.then_some(found.statistics),
        });
    }
    let content = PackageContent { made_by: env!("PML_VERSION").to_owned(), capabilities, tools };
    let encoded = package::encode(&content);
    let signature = app.store.sign_package(encoded.clone().into_bytes()).await?;
    let text = package::seal(&encoded, &signature);
    if text.len() > package::MAX_PACKAGE_BYTES {
        let text = format!("the package would have {} bytes, more than anybody reads", text.len());
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("export fewer capabilities at once"));
    }
    Ok(ExportedPackage { text, signer: signature.signer, content })
}

/// The capabilities of a package, each after those that it calls.
struct Packing<'a> {
    app: &'a App,
    principal: &'a Principal,
    seen: BTreeSet<String>,
    procedures: Vec<CapabilityId>,
}

impl Packing<'_> {
    /// Adds a capability after everything that it calls, directly or not.
    async fn add(&mut self, id: CapabilityId) -> Result<(), Problem> {
        let mut waiting = vec![(id, false)];
        while let Some((id, called_are_in)) = waiting.pop() {
            if called_are_in {
                self.procedures.push(id);
            } else if self.seen.insert(id.as_str().to_owned()) {
                if self.seen.len() > MAX_PACKAGED {
                    let text = format!("a package holds {MAX_PACKAGED} capabilities at most");
                    return Err(Problem::new(ErrorCode::InvalidRequest, text).hint("export fewer at once"));
                }
                let called = capability(self.app, self.principal, id.as_str()).await?.procedure.dependencies;
                waiting.push((id, true));
                waiting.extend(called.into_iter().map(|called| (called, false)));
            }
        }
        Ok(())
    }
}

/// A package as it presents itself to the person who is to decide.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageReview {
    /// The public key of who signed it.
    pub signer: String,
    /// Names whose capability was imported from another signer before.
    pub other_signers: Vec<String>,
    /// Its tools of which this PML has another definition than the capability was made with.
    pub changed_tools: Vec<String>,
    /// What it holds.
    #[serde(flatten)]
    pub content: PackageContent,
}

/// Reads a package without taking anything from it.
///
/// # Errors
/// It is no package, was changed since it was signed, or calls tools that are not here.
pub async fn review_package(app: &App, principal: &Principal, text: &str) -> Result<PackageReview, Problem> {
    let (signer, content) = package::open(text)?;
    for one in &content.capabilities {
        check_name(&one.name)?;
        one.intents.iter().try_for_each(|intent| check_intent_length(intent))?;
    }
    app.tools.ensure_manifests_loaded().await;
    let snapshot = app.tools.snapshot();
    let (mut missing, mut changed_tools) = (Vec::new(), Vec::new());
    for tool in &content.tools {
        match ToolId::parse(&tool.id).ok().and_then(|id| snapshot.tool(&id).ok()) {
            None => missing.push(format!("`{}`", shown(&tool.id))),
            Some(here) if here.definition.digest != tool.digest => changed_tools.push(tool.id.clone()),
            Some(_) => {}
        }
    }
    if !missing.is_empty() {
        let text = format!("the package calls tools that are not here: {}", missing.join(", "));
        return Err(Problem::new(ErrorCode::UnknownTool, text)
            .hint("add their servers under the same names with `pml add`, then import it again"));
    }
    let mut other_signers = Vec::new();
    for one in &content.capabilities {
        let known = app.store.package_signer(principal, &one.name).await?;
        if known.is_some_and(|known| known != signer) {
            other_signers.push(one.name.clone());
        }
    }
    Ok(PackageReview { signer, other_signers, changed_tools, content })
}

/// A capability that was taken from a package.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedCapability {
    /// The name here.
    pub name: String,
    /// The id here.
    pub id: CapabilityId,
    /// Whether the same procedure was here before; it is left as it is.
    pub was_there: bool,
}

/// Takes the capabilities of a reviewed package. `accept_signer` lets another signer replace the one that a name was
/// imported from before.
///
/// # Errors
/// The signer is another one, a name is taken, or a program is refused. What came before it in the package is kept,
/// and is passed over when the package is imported again.
pub async fn import_package(
    app: &Arc<App>,
    principal: &Principal,
    review: PackageReview,
    accept_signer: bool,
    progress: impl Fn(usize, usize),
) -> Result<Vec<ImportedCapability>, Problem> {
    let PackageReview { signer, other_signers, content, .. } = review;
    if let Some(name) = other_signers.first()
        && !accept_signer
    {
        let text = format!("`{name}` was imported from another signer before, and {signer} is not that one");
        return Err(Problem::new(ErrorCode::InvalidRequest, text)
            .hint("ask its author; if the new signer is right, import it with `--accept-signer`"));
    }
    let all = content.capabilities.len();
    let mut imported = Vec::with_capacity(all);
    for packaged in content.capabilities {
        progress(imported.len(), all);
        let name = packaged.name.clone();
        let of_package = |problem: Problem| {
            let message = format!("capability `{name}` of the package is refused: {}", problem.message);
            Problem { message, ..problem }
        };
        let (procedure, intents) = foreign_procedure(app, principal, packaged).await.map_err(of_package)?;
        let id = procedure.id.clone();
        let outcome = app.store.create_capability(procedure, Some(name.clone()), &intents, now_ms()).await?;
        let (id, was_there) = match outcome {
            CreateOutcome::Created => (id, false),
            CreateOutcome::Existing(id) => (id, true),
            CreateOutcome::NameTaken => return Err(name_taken(&name)),
        };
        app.store.remember_package_signer(principal, &name, &signer, now_ms()).await?;
        let name = capability(app, principal, id.as_str()).await?.name;
        imported.push(ImportedCapability { name, id, was_there });
    }
    Ok(imported)
}

/// The procedure of a packaged capability as it is understood here, and the intents that it serves.
async fn foreign_procedure(
    app: &Arc<App>,
    principal: &Principal,
    packaged: PackagedCapability,
) -> Result<(Procedure, Vec<String>), Problem> {
    let sanitiser = app.knowledge.memory.sanitiser();
    let clean = |text: &String| sanitiser.clean_text(&printable(text)).into_owned();
    let intents: Vec<String> = packaged.intents.iter().take(MOST_INTENTS).map(clean).collect();
    let intent = intents.first().cloned().unwrap_or_default();
    let mut procedure = plan_packaged(app, principal, &packaged.source, &intent).await?;
    if !is_same_structure(&procedure.static_structure, &packaged.structure) {
        let text = "its program does something else than the package says";
        return Err(Problem::new(ErrorCode::InvalidProgram, text)
            .hint("do not import it; show it to the person who signed the package"));
    }
    procedure.origin = CapabilityOrigin::Imported;
    procedure.description = truncate_text(&clean(&packaged.description), DESCRIPTION_CHARACTERS);
    take_parameters(&mut procedure.parameters_schema, &packaged.parameters_schema);
    Ok((procedure, intents))
}

/// The procedure of a packaged source. It is that of the program as it was written, and thus one with the same program
/// that was learned here, if the form that takes values from `args` follows from it; otherwise that of this form.
async fn plan_packaged(
    app: &Arc<App>,
    principal: &Principal,
    source: &CapabilitySource,
    intent: &str,
) -> Result<Procedure, Problem> {
    let (written, form) = match source {
        CapabilitySource::Code { code, template } => {
            (Work::Code(code.clone()), template.clone().map(Work::Code))
        }
        CapabilitySource::Dag { dag_structure, template } => {
            let document =
                |text: &RawValue| Work::Dag { document: text.get().to_owned(), pause: Pause::None };
            (document(dag_structure), template.as_deref().map(document))
        }
        CapabilitySource::Tool { tool_id, default_args } => {
            let tool = ToolId::parse(tool_id)
                .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
            (Work::Tool { tool, defaults: default_args.clone() }, None)
        }
    };
    let procedure = plan_procedure(app, principal, written, intent).await?;
    match form {
        Some(form) if !has_template(&procedure.source, &form) => {
            plan_procedure(app, principal, form, intent).await
        }
        _ => Ok(procedure),
    }
}

/// Whether the form of a source that takes values from `args` is this program.
fn has_template(source: &CapabilitySource, form: &Work) -> bool {
    match (source, form) {
        (CapabilitySource::Code { template: Some(template), .. }, Work::Code(code)) => template == code,
        (CapabilitySource::Dag { template: Some(template), .. }, Work::Dag { document, .. }) => {
            template.get() == document
        }
        _ => false,
    }
}

/// Takes what a package says of the parameters that the program has: defaults above all.
fn take_parameters(schema: &mut Value, packaged: &Value) {
    let Some(theirs) = packaged.get("properties").and_then(Value::as_object) else { return };
    let mut defaulted = Vec::new();
    if let Some(ours) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, member) in ours {
            let Some(their) = theirs.get(name).and_then(Value::as_object) else { continue };
            if !member.is_object() {
                *member = Value::Object(Map::new());
            }
            let Some(member) = member.as_object_mut() else { continue };
            for keyword in TAKEN_KEYWORDS {
                if let Some(said) = their.get(keyword) {
                    member.insert(keyword.to_owned(), said.clone());
                }
            }
            if member.contains_key("default") {
                defaulted.push(name.clone());
            }
        }
    }
    defaulted.iter().for_each(|name| remove_required(schema, name));
}

fn shown(text: &str) -> String {
    truncate_text(&printable(text), SHOWN_CHARACTERS)
}
