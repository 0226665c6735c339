//! Hands capabilities to other people, and takes theirs: packages.
//!
//! A package is believed in nothing. Its programs are analysed and planned like any program, and what it says of them
//! must agree. An imported capability is suggested, and runs by name, until a run of it has succeeded here.

use std::collections::BTreeSet;
use std::sync::Arc;

use pml_model::capability::{Capability, CapabilityIntent, CapabilityOrigin, CapabilitySource, Procedure};
use pml_model::name::{printable, truncate_text};
use pml_model::structure::{NodeKind, Structure};
use pml_model::version::parse_version_name;
use pml_model::{CapabilityId, Principal, ToolId};
use pml_store::{CreateOutcome, NewName};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::capabilities::{PlannedProcedure, capability, check_name, name_taken, plan_procedure};
use super::packaged_calls::{dishonest, packaged_calls};
use super::versions::source_text;
use crate::app::App;
use crate::capability::is_same_program;
use crate::clock::now_ms;
use crate::discover::check_intent_length;
use crate::package::{self, MAX_PACKAGED, PackageContent, PackagedCapability, PackagedTool};
use crate::plan::{Pause, remove_required};
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};
use crate::reuse::UNSPOKEN;
use crate::version_diff::{DiffLine, DiffSide, diff_lines};

/// The number of intents of a capability that a package holds.
const MOST_INTENTS: usize = 16;
/// The number of characters of a foreign text that are shown.
const SHOWN_CHARACTERS: usize = 200;
/// The number of characters of a description that are taken.
const DESCRIPTION_CHARACTERS: usize = 300;
/// What a package may say of a parameter. The rest of the schema comes from the analysis here.
const TAKEN_KEYWORDS: [&str; 7] = ["type", "default", "enum", "format", "description", "examples", UNSPOKEN];

/// What a package tells beside what its capabilities need.
#[derive(Debug, Clone, Copy, Default)]
pub struct PackageOptions {
    /// How often the capabilities were used and worked.
    pub statistics: bool,
    /// The intents and the arguments of all runs. Without it, the package has those of the first run only: they are in the
    /// programs and their defaults anyway.
    pub examples: bool,
}

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
    options: PackageOptions,
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
        capabilities.push(PackagedCapability {
            name: packaged_name(&found.name, &capabilities)?,
            description: found.procedure.description,
            intents: packaged_intents(&found.intents, options),
            source: found.procedure.source,
            parameters_schema: packaged_parameters(found.procedure.parameters_schema, options),
            structure: found.procedure.static_structure,
            statistics: options.statistics.then_some(found.statistics),
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

/// The name of a capability in a package, which holds no versions: an earlier version has the name of the one in force.
fn packaged_name(name: &str, packed: &[PackagedCapability]) -> Result<String, Problem> {
    let plain = parse_version_name(name).map_or(name, |(plain, _)| plain);
    if packed.iter().any(|one| one.name == plain) {
        let text = format!("two versions of `{plain}` would be in the package, which holds one of each name");
        return Err(Problem::new(ErrorCode::InvalidRequest, text).hint(
            "export them one by one, or give one of them a name of its own with `pml capabilities rename`",
        ));
    }
    Ok(plain.to_owned())
}

/// The intents to be told, the first one at the front: the defaults of the parameters come from it.
fn packaged_intents(served: &[CapabilityIntent], options: PackageOptions) -> Vec<String> {
    let mut served: Vec<&CapabilityIntent> = served.iter().collect();
    served.sort_by(|one, other| (one.first_at, &one.text).cmp(&(other.first_at, &other.text)));
    let most = if options.examples { MOST_INTENTS } else { 1 };
    served.into_iter().take(most).map(|intent| intent.text.clone()).collect()
}

/// The schema to be told. The examples are arguments that people gave.
fn packaged_parameters(mut schema: Value, options: PackageOptions) -> Value {
    let members = schema.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(members), false) = (members, options.examples) {
        for member in members.values_mut().filter_map(Value::as_object_mut) {
            member.remove("examples");
        }
    }
    schema
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
                let called = self.called(&id).await?;
                waiting.push((id, true));
                waiting.extend(called.into_iter().map(|called| (called, false)));
            }
        }
        Ok(())
    }

    /// The capabilities that a capability calls by the names in its program, as it would when it runs now.
    async fn called(&self, id: &CapabilityId) -> Result<Vec<CapabilityId>, Problem> {
        let caller = capability(self.app, self.principal, id.as_str()).await?;
        let mut called = Vec::new();
        for name in called_names(&caller.procedure.static_structure) {
            let found = capability(self.app, self.principal, name).await?;
            // Elsewhere there are neither these versions nor these ids.
            if found.name != name || parse_version_name(name).is_some() {
                let (caller, name) = (printable(&caller.name), printable(name));
                let text = format!("`{caller}` calls `{name}`, which is no name that a package can hold");
                return Err(Problem::new(ErrorCode::InvalidRequest, text).hint(
                    "have the program call a capability that is in force, by its plain name, and export that",
                ));
            }
            called.push(found.procedure.id);
        }
        Ok(called)
    }
}

/// The names of the capabilities that a program calls.
fn called_names(structure: &Structure) -> BTreeSet<&str> {
    let calls = structure.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Capability { capability, .. } => Some(capability.as_str()),
        _ => None,
    });
    calls.collect()
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
    /// The capabilities here of which it has another program. Each becomes an earlier version.
    pub updates: Vec<PackageUpdate>,
    /// What it holds.
    #[serde(flatten)]
    pub content: PackageContent,
}

/// How an imported capability differs from what a package has under its name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PackageUpdate {
    /// The name.
    pub name: String,
    /// The programs, line by line.
    pub code: Vec<DiffLine>,
    /// The tools that the program of the package calls and the present one does not.
    pub added_tools: Vec<String>,
}

/// Reads a package without taking anything from it.
///
/// # Errors
/// It is no package, was changed since it was signed, does not say what its programs call, or calls tools that are not
/// here.
pub async fn review_package(app: &App, principal: &Principal, text: &str) -> Result<PackageReview, Problem> {
    let (signer, mut content) = package::open(text)?;
    for one in &content.capabilities {
        check_name(&one.name)?;
        one.intents.iter().try_for_each(|intent| check_intent_length(intent))?;
    }
    app.tools.ensure_manifests_loaded().await;
    let calls = packaged_calls(app, principal, &content).await?;
    content.tools.retain(|tool| calls.values().any(|calls| calls.tools.contains(&tool.id)));
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
    let mut updates = Vec::new();
    for one in &content.capabilities {
        let Some(here) = imported_before(app, principal, &one.name).await? else { continue };
        let code = diff_lines(&source_text(&here.procedure.source), &source_text(&one.source));
        if code.iter().all(|line| line.side == DiffSide::Both) {
            continue;
        }
        let used = &here.procedure.tools_used;
        let called = calls.get(&one.name).into_iter().flat_map(|calls| &calls.tools);
        let added = called.filter(|tool| !used.iter().any(|used| used.id == **tool)).cloned();
        updates.push(PackageUpdate { name: one.name.clone(), code, added_tools: added.collect() });
    }
    Ok(PackageReview { signer, other_signers, changed_tools, updates, content })
}

/// The capability of that name, if it came from a package.
async fn imported_before(
    app: &App,
    principal: &Principal,
    name: &str,
) -> Result<Option<Capability>, Problem> {
    let found = match capability(app, principal, name).await {
        Ok(found) => found,
        Err(problem) if problem.code == ErrorCode::NotFound => return Ok(None),
        Err(problem) => return Err(problem),
    };
    let is_imported = found.name == name && found.procedure.origin == CapabilityOrigin::Imported;
    Ok(is_imported.then_some(found))
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

/// Takes the capabilities of a reviewed package. What was imported under the same name before becomes an earlier version.
/// `accept_signer` lets another signer replace the one that a name was imported from before.
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
    let mut imported: Vec<ImportedCapability> = Vec::with_capacity(all);
    for packaged in content.capabilities {
        progress(imported.len(), all);
        let name = packaged.name.clone();
        let of_package = |problem: Problem| {
            let message = format!("capability `{name}` of the package is refused: {}", problem.message);
            Problem { message, ..problem }
        };
        let (procedure, intents) = foreign_procedure(app, principal, packaged).await.map_err(of_package)?;
        check_bindings(app, principal, &procedure, &imported).await.map_err(of_package)?;
        let id = procedure.id.clone();
        let is_signer_known = accept_signer || app.store.package_signer(principal, &name).await?.is_some();
        let new_name = match imported_before(app, principal, &name).await? {
            Some(_) if is_signer_known => NewName::VersionOf(name.clone()),
            Some(_) | None => NewName::Free(name.clone()),
        };
        let outcome = app.store.import_capability(procedure, new_name, &intents, &signer, now_ms()).await?;
        let (id, was_there) = match outcome {
            CreateOutcome::Created => (id, false),
            CreateOutcome::Existing(id) => (id, true),
            CreateOutcome::NameTaken => return Err(name_taken(&name)),
        };
        let name = capability(app, principal, id.as_str()).await?.name;
        imported.push(ImportedCapability { name, id, was_there });
    }
    Ok(imported)
}

/// Refuses a procedure that calls, by a name of its package, a capability that is called so here and did not come with
/// the package.
async fn check_bindings(
    app: &App,
    principal: &Principal,
    procedure: &Procedure,
    imported: &[ImportedCapability],
) -> Result<(), Problem> {
    let other = procedure.dependencies.iter().find(|id| !imported.iter().any(|one| one.id == **id));
    let Some(other) = other else { return Ok(()) };
    let name = printable(&capability(app, principal, other.as_str()).await?.name);
    let text = format!("it would call your capability `{name}`, which is not the one in the package");
    Err(Problem::new(ErrorCode::InvalidRequest, text).hint(format!(
        "give yours another name with `pml capabilities rename {name} NAME`, then import it again"
    )))
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
    let mut procedure = plan_packaged(app, principal, &packaged, &intent).await?;
    if let Some(name) = other_default(&procedure.parameters_schema, &packaged.parameters_schema) {
        return Err(dishonest(&format!("the default of `{}` is not the value in its program", shown(&name))));
    }
    procedure.origin = CapabilityOrigin::Imported;
    procedure.description = truncate_text(&clean(&packaged.description), DESCRIPTION_CHARACTERS);
    take_parameters(&mut procedure.parameters_schema, &packaged.parameters_schema);
    Ok((procedure, intents))
}

/// The procedure of a packaged source: that of the program as it was written, with the form that takes values from
/// `args`, if that follows from the program here too.
async fn plan_packaged(
    app: &Arc<App>,
    principal: &Principal,
    packaged: &PackagedCapability,
    intent: &str,
) -> Result<Procedure, Problem> {
    let (written, form) = match &packaged.source {
        CapabilitySource::Code { code, template } => (Work::Code(code.clone()), template.as_deref()),
        CapabilitySource::Dag { dag_structure, template } => {
            let document = dag_structure.get().to_owned();
            (Work::Dag { document, pause: Pause::None }, template.as_deref().map(RawValue::get))
        }
        CapabilitySource::Tool { tool_id, default_args } => {
            let tool = ToolId::parse(tool_id)
                .map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
            (Work::Tool { tool, defaults: default_args.clone() }, None)
        }
    };
    let PlannedProcedure { mut procedure, lifted } = plan_procedure(app, principal, written, intent).await?;
    if !is_same_program(&procedure.static_structure, &packaged.structure) {
        return Err(dishonest("its program does something else than the package says"));
    }
    match (form, lifted) {
        (None, _) => Ok(procedure),
        (Some(form), _) if has_template(&procedure.source, form) => Ok(procedure),
        (Some(form), Some(lifted)) if lifted.template == form => {
            let CapabilitySource::Code { code, .. } = procedure.source else { return Ok(procedure) };
            procedure.source = CapabilitySource::Code { code, template: Some(lifted.template) };
            procedure.parameters_schema = lifted.parameters_schema;
            Ok(procedure)
        }
        (Some(_), _) => {
            Err(dishonest("the form of its program that takes arguments does not follow from its program"))
        }
    }
}

/// Whether the form of a source that takes values from `args` is this one.
fn has_template(source: &CapabilitySource, form: &str) -> bool {
    match source {
        CapabilitySource::Code { template: Some(template), .. } => template == form,
        CapabilitySource::Dag { template: Some(template), .. } => template.get() == form,
        _ => false,
    }
}

/// The name of a parameter to which a package gives another default than the program has.
fn other_default(schema: &Value, packaged: &Value) -> Option<String> {
    let members = schema.get("properties").and_then(Value::as_object)?;
    let differs = |(name, member): &(&String, &Value)| {
        let theirs = packaged.get("properties").and_then(|all| all.get(name.as_str())?.get("default"));
        matches!((member.get("default"), theirs), (Some(ours), Some(theirs)) if ours != theirs)
    };
    members.iter().find(differs).map(|(name, _)| name.clone())
}

/// Takes what a package says of the parameters that the program has: defaults above all.
pub(super) fn take_parameters(schema: &mut Value, packaged: &Value) {
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
