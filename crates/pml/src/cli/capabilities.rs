//! `pml capabilities`: lists, shows and changes learned capabilities; `pml learn`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use pml_model::capability::{Capability, CapabilityOrigin, CapabilitySource};
use pml_model::json::empty_object;
use pml_model::name::{printable, truncate_text};
use pml_model::structure::{Node, NodeId, NodeKind};
use pml_model::trace::Trace;
use pml_model::version::short_qualified_name;
use pml_model::{Membership, Principal, ToolId, Visibility};
use pml_store::CapabilityQuery;
use serde_json::{Value, json};

use super::ask::require_passphrase;
use super::run_table::format_time;
use super::{CommandContext, analyse, out, regression, results, share, versions};
use crate::app::{App, ProcessRole};
use crate::flow::{self, CapabilityRecord, ContainedCapability, NewCapability, TakenName};
use crate::plan::Pause;
use crate::planning::Work;
use crate::problem::{ErrorCode, Problem};
use crate::progress::ProgressBar;

/// What to do with capabilities.
#[derive(Debug, Subcommand)]
pub(super) enum CapabilitiesCommand {
    /// List capabilities by name
    List(ListCapabilitiesArgs),
    /// Show a capability: source, parameters, statistics, latest runs
    Show {
        /// Its name or id
        name: String,
    },
    /// Create a capability without running it
    Create(CreateCapabilityArgs),
    /// Rename a capability
    Rename {
        /// Its name or id
        name: String,
        /// The new name
        to: String,
        /// If a capability has that name, keep it as an earlier version
        #[arg(long)]
        new_version: bool,
    },
    /// List the versions of a capability
    Versions {
        /// Its name or id
        name: String,
    },
    /// Compare two versions of a capability: code, parameters and effects
    Diff {
        /// Its name or id
        name: String,
        /// The number of a version [default: the one in force is compared with the latest other one]
        from: Option<u32>,
        /// The number of another version [default: the one in force]
        to: Option<u32>,
    },
    /// Look for a repair of a capability whose tools have changed, and offer it as a version
    Repair {
        /// Its name or id
        name: String,
    },
    /// Put the repaired version of a capability in force that is offered
    Accept {
        /// Its name or id
        name: String,
    },
    /// Put another version of a capability in force
    Rollback {
        /// Its name or id
        name: String,
        /// The number of the version [default: the one before]
        version: Option<u32>,
    },
    /// Let others see a capability and run it, or take it back
    Publish(PublishArgs),
    /// Merge a capability into another one and delete it
    Merge {
        /// The capability that stays
        into: String,
        /// The capability that is deleted
        from: String,
    },
    /// Remove an intent that was learned wrongly
    ForgetIntent {
        /// Its name or id
        name: String,
        /// The intent, exactly as `show` prints it
        intent: String,
    },
    /// Show or change how results of a capability are cached
    Cache(results::CapabilityCacheArgs),
    /// Replay recorded runs with the present program and tools, offline
    Test {
        /// Their names or ids [default: all that are active]
        names: Vec<String>,
    },
    /// Write capabilities to a file that others import
    Export(share::ExportArgs),
    /// Take the capabilities of a file that `export` wrote
    Import(share::ImportArgs),
    /// Delete a capability; its traces stay
    Delete {
        /// Its name or id
        name: String,
    },
}

/// Arguments of `pml capabilities list`.
#[derive(Debug, Args)]
pub(super) struct ListCapabilitiesArgs {
    /// Sort by last use, newest first
    #[arg(long)]
    recent: bool,
    /// The number of capabilities
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// The number of capabilities to skip
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

/// Arguments of `pml capabilities publish`.
#[derive(Debug, Args)]
pub(super) struct PublishArgs {
    /// Its name or id
    name: String,
    /// Who sees it
    #[arg(long, value_enum)]
    to: VisibilityName,
    /// Its owner, if it is another's
    #[arg(long = "of", value_name = "NAME", default_value = "local")]
    owner: String,
}

/// A visibility, as it is given on the command line.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum VisibilityName {
    /// Its owner
    Private,
    /// The members of its owner's project
    Project,
    /// The members of its owner's organisation
    Org,
    /// Everybody with a key of this server
    Public,
}

impl From<VisibilityName> for Visibility {
    fn from(name: VisibilityName) -> Visibility {
        match name {
            VisibilityName::Private => Visibility::Private,
            VisibilityName::Project => Visibility::Project,
            VisibilityName::Org => Visibility::Org,
            VisibilityName::Public => Visibility::Public,
        }
    }
}

/// Arguments of `pml capabilities create`.
#[derive(Debug, Args)]
pub(super) struct CreateCapabilityArgs {
    /// The intent that it serves
    intent: String,
    /// Its name in programs [default: made from the intent]
    #[arg(long)]
    name: Option<String>,
    /// If a capability has that name, keep it as an earlier version
    #[arg(long, requires = "name")]
    new_version: bool,
    /// A program, TypeScript; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dag", "tool"], required_unless_present_any = ["dag", "tool"])]
    code: Option<PathBuf>,
    /// A DAG document, JSON; - reads standard input
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    dag: Option<PathBuf>,
    /// One call of this tool, server:tool
    #[arg(long)]
    tool: Option<String>,
    /// With --tool: default arguments, a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    defaults: Option<String>,
}

/// What to do with what was learned.
#[derive(Debug, Subcommand)]
pub(super) enum LearnCommand {
    /// Recompute all statistics from the traces
    Rebuild,
}

pub(super) async fn learn(here: &CommandContext, learn: LearnCommand) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let LearnCommand::Rebuild = learn;
    let bar = ProgressBar::new("learning from traces");
    let learned = flow::relearn(&app, move |done, all| bar.show(done, Some(all))).await;
    app.close().await;
    let traces = learned?;
    if here.json {
        out::json(&json!({ "traces": traces }));
    } else {
        out::line(format!("learned anew from {traces} traces"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn run(
    here: &CommandContext,
    capabilities: CapabilitiesCommand,
) -> Result<ExitCode, Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let done = carry_out(here, &app, capabilities).await;
    app.close().await;
    done
}

async fn carry_out(
    here: &CommandContext,
    app: &Arc<App>,
    capabilities: CapabilitiesCommand,
) -> Result<ExitCode, Problem> {
    let principal = &app.principal;
    match capabilities {
        CapabilitiesCommand::List(list) => return self::list(here, app, &list).await,
        CapabilitiesCommand::Show { name } => return show(here, app, &name).await,
        CapabilitiesCommand::Create(create) => {
            let work = work(here, &create)?;
            let taken = TakenName::wished(create.new_version);
            let new = NewCapability { work, intent: create.intent, name: create.name, taken };
            let id = flow::make_capability(app, principal, new).await?;
            let made = flow::capability(app, principal, id.as_str()).await?;
            print_capability(here, &made, &format!("made {} ({id})", made.name));
        }
        CapabilitiesCommand::Versions { name } => return versions::list(here, app, &name).await,
        CapabilitiesCommand::Diff { name, from, to } => {
            return versions::diff(here, app, &name, (from, to)).await;
        }
        CapabilitiesCommand::Repair { name } => return versions::repair(here, app, &name).await,
        CapabilitiesCommand::Accept { name } => return versions::accept(here, app, &name).await,
        CapabilitiesCommand::Rollback { name, version } => {
            return versions::roll_back(here, app, &name, version).await;
        }
        CapabilitiesCommand::Rename { name, to, new_version } => {
            let taken = TakenName::wished(new_version);
            let id = flow::rename_capability(app, principal, &name, &to, taken).await?;
            let renamed = flow::capability(app, principal, id.as_str()).await?;
            print_capability(here, &renamed, &format!("{id} is called {to} from now on"));
        }
        CapabilitiesCommand::Publish(publish) => {
            let owner = Principal(publish.owner);
            if owner != *principal {
                require_passphrase(&here.paths, &app.store).await?;
            }
            let visibility = publish.to.into();
            let found = flow::publish_capability(app, &owner, &publish.name, visibility, principal).await?;
            let text = match visibility {
                Visibility::Private => format!("{} is private: only {owner} sees it", found.name),
                Visibility::Public => format!("{} is public: every key of this server sees it", found.name),
                Visibility::Project | Visibility::Org => {
                    let Membership { org, project } = &found.published_in;
                    let place = match visibility {
                        Visibility::Project => format!("project {project} of {org}"),
                        _ => format!("organisation {org}"),
                    };
                    format!("{} is published to {place}", found.name)
                }
            };
            print_capability(here, &found, &text);
        }
        CapabilitiesCommand::Merge { into, from } => {
            let id = flow::merge_capabilities(app, principal, &into, &from).await?;
            let merged = flow::capability(app, principal, id.as_str()).await?;
            print_capability(
                here,
                &merged,
                &format!("{} counts as {} from now on", printable(&from), merged.name),
            );
        }
        CapabilitiesCommand::ForgetIntent { name, intent } => {
            let id = flow::forget_intent(app, principal, &name, &intent).await?;
            let left = flow::capability(app, principal, id.as_str()).await?;
            print_capability(
                here,
                &left,
                &format!("{} no longer serves \"{}\"", left.name, printable(&intent)),
            );
        }
        CapabilitiesCommand::Cache(keep) => return results::change_caching(here, app, &keep).await,
        CapabilitiesCommand::Test { names } => return regression::test(here, app, names).await,
        CapabilitiesCommand::Export(wanted) => return share::export(here, app, &wanted).await,
        CapabilitiesCommand::Import(given) => return share::import(here, app, &given).await,
        CapabilitiesCommand::Delete { name } => {
            let id = flow::delete_capability(app, principal, &name).await?;
            if here.json {
                out::json(&json!({ "deleted": id }));
            } else {
                out::line(format!("{} is forgotten; its traces stay", printable(&name)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn print_capability(here: &CommandContext, capability: &Capability, text: &str) {
    if here.json {
        out::json(capability);
    } else {
        out::line(text);
    }
}

fn work(here: &CommandContext, create: &CreateCapabilityArgs) -> Result<Work, Problem> {
    if let Some(tool) = &create.tool {
        let tool =
            ToolId::parse(tool).map_err(|error| Problem::new(ErrorCode::UnknownTool, error.to_string()))?;
        let defaults = match &create.defaults {
            None => empty_object(),
            Some(text) => serde_json::from_str(text).map_err(|error| {
                Problem::new(ErrorCode::InvalidRequest, format!("`--defaults` is not JSON: {error}"))
            })?,
        };
        return Ok(Work::Tool { tool, defaults });
    }
    if let Some(file) = &create.dag {
        let (_, document) = analyse::read_source(here, file)?;
        return Ok(Work::Dag { document, pause: Pause::None });
    }
    let file = create.code.clone().unwrap_or_else(|| PathBuf::from("-"));
    analyse::read_source(here, &file).map(|(_, code)| Work::Code(code))
}

async fn list(here: &CommandContext, app: &App, list: &ListCapabilitiesArgs) -> Result<ExitCode, Problem> {
    let wanted = CapabilityQuery { state: None, recent: list.recent, limit: list.limit, offset: list.offset };
    let all = flow::capabilities(app, &app.principal, wanted).await?;
    if here.json {
        out::json(&all);
        return Ok(ExitCode::SUCCESS);
    }
    if all.is_empty() {
        out::note(
            "nothing was learned yet; a program that works is remembered: `pml execute \"what it is for\" --code FILE`",
        );
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    out::line(out::table(&["name", "state", "worked", "used", "for"], &rows));
    Ok(ExitCode::SUCCESS)
}

fn row(capability: &Capability) -> Vec<String> {
    let statistics = &capability.statistics;
    let tried = statistics.success_count + statistics.failure_count;
    vec![
        capability.name.clone(),
        capability.state.as_str().to_owned(),
        format!("{} of {tried}", statistics.success_count),
        statistics.last_used.map_or_else(|| "never".to_owned(), format_time),
        printable(&truncate_text(&capability.procedure.description, 60)),
    ]
}

async fn show(here: &CommandContext, app: &App, name: &str) -> Result<ExitCode, Problem> {
    let record = flow::capability_record(app, &app.principal, name).await?;
    let capability = &record.capability;
    let traces = flow::recent_traces(app, &app.principal, &capability.procedure.id, 10).await?;
    if here.json {
        let mut shown = serde_json::to_value(&record).unwrap_or_default();
        shown["recentTraces"] = serde_json::to_value(&traces).unwrap_or_default();
        out::json(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    head(capability);
    facts(&record);
    source(&capability.procedure.source);
    parameters(capability);
    learned(capability);
    if !traces.is_empty() {
        title("latest runs");
        let rows: Vec<Vec<String>> = traces.iter().map(trace_row).collect();
        out::line(out::table(&["when", "how", "took", "surprise", "for"], &rows));
    }
    Ok(ExitCode::SUCCESS)
}

fn title(text: &str) {
    out::line(format!("\n{}{text}{}", out::BOLD, out::RESET));
}

fn head(capability: &Capability) {
    let statistics = &capability.statistics;
    out::line(format!("{}{}{} {}", out::BOLD, capability.name, out::RESET, capability.procedure.id));
    out::line(printable(&capability.procedure.description));
    let because = capability.degraded_because.as_deref().map(|why| format!(": {}", printable(why)));
    let tried = statistics.success_count + statistics.failure_count;
    out::line(format!(
        "{}{}; worked {} of {tried} times, {:.0} ms on average",
        capability.state.as_str(),
        because.unwrap_or_default(),
        statistics.success_count,
        statistics.avg_duration_ms
    ));
    let tools: Vec<&str> = capability.procedure.tools_used.iter().map(|tool| tool.id.as_str()).collect();
    if !tools.is_empty() {
        out::line(format!("calls {}", tools.join(", ")));
    }
    if !capability.intents.is_empty() {
        title("was run for");
        for intent in &capability.intents {
            out::line(format!("  {} ({} times)", printable(&intent.text), intent.count));
        }
    }
}

/// Prints the procedure and the statistics of a capability, one line each.
fn facts(record: &CapabilityRecord) {
    let Capability { procedure, statistics, .. } = &record.capability;
    let at = |at: Option<i64>| at.map_or_else(|| "never".to_owned(), format_time);
    let rate = record.success_rate.map_or_else(|| "not tried".to_owned(), |rate| format!("{rate:.2}"));
    let origin = match procedure.origin {
        CapabilityOrigin::Emergent => "a run that worked",
        CapabilityOrigin::Manual => "written down by hand",
        CapabilityOrigin::Explored => "paths that were viable when explored",
        CapabilityOrigin::Imported => "a package",
    };
    let structure: Vec<String> = procedure.static_structure.nodes.iter().map(step).collect();
    let contained = |one: &ContainedCapability| {
        format!("{} ({} times)", printable(one.name.as_deref().unwrap_or(&one.id)), one.count)
    };
    let contains: Vec<String> = record.contains.iter().map(contained).collect();
    let facts = [
        ("used", format!("{} times, last {}", statistics.usage_count, at(statistics.last_used))),
        ("success rate", rate),
        ("first worked", at(record.capability.promoted_at)),
        ("comes from", origin.to_owned()),
        ("results kept", results::describe_caching(record)),
        ("owner", printable(&procedure.owner.0)),
        ("qualified name", short_qualified_name(&record.qualified_name).to_owned()),
        ("version", record.version.to_string()),
        ("visibility", describe_visibility(record)),
        ("identity", procedure.identity.clone()),
        ("code hash", procedure.code_hash.clone()),
        ("structure", truncate_text(&structure.join(", "), 400)),
        ("contains", contains.join(", ")),
    ];
    for (what, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        out::line(format!("{what}: {fact}"));
    }
}

/// Who sees a capability, and how often others used it.
fn describe_visibility(record: &CapabilityRecord) -> String {
    let visibility = record.capability.visibility;
    match record.uses_by_others {
        Some(uses) => format!("{visibility}, used {uses} times by others"),
        None => visibility.to_string(),
    }
}

/// A node of a capability's structure, such as `n1 fs:read`.
fn step(node: &Node) -> String {
    let what = match &node.kind {
        NodeKind::Task { tool, .. } => tool,
        NodeKind::Capability { capability, .. } => capability,
        NodeKind::Decision { condition, .. } => condition,
        NodeKind::Loop { over, .. } => over,
        NodeKind::Fork { .. } => "fork",
        NodeKind::Join => "join",
        NodeKind::Try => "try",
    };
    format!("{} {}", node.id, printable(&truncate_text(what, 60)))
}

fn source(source: &CapabilitySource) {
    title("source");
    match source {
        CapabilitySource::Code { code, .. } => {
            code.lines().for_each(|line| out::line(format!("  {}", printable(line))));
        }
        CapabilitySource::Dag { dag_structure, .. } => out::line(format!("  {}", dag_structure.get())),
        CapabilitySource::Tool { tool_id, default_args } => {
            out::line(format!("  {tool_id} {}", default_args.get()));
        }
    }
}

fn parameters(capability: &Capability) {
    let schema = &capability.procedure.parameters_schema;
    let Some(members) = schema["properties"].as_object().filter(|members| !members.is_empty()) else {
        return;
    };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    title("parameters");
    let rows: Vec<Vec<String>> = members
        .iter()
        .map(|(name, member)| {
            let default = member.get("default").map(|default| truncate_text(&default.to_string(), 40));
            let needed = if required.contains(&name.as_str()) { "needed".to_owned() } else { String::new() };
            let kind = member["type"].as_str().unwrap_or("any").to_owned();
            vec![format!("  {}", printable(name)), kind, default.map_or(needed, |text| printable(&text))]
        })
        .collect();
    out::line(out::table(&["  name", "type", "default"], &rows));
}

fn learned(capability: &Capability) {
    let learning = &capability.learning;
    if learning.paths.is_empty() {
        return;
    }
    title("ways it went");
    let rows: Vec<Vec<String>> = learning
        .paths
        .iter()
        .map(|path| {
            let usual = if path.path == learning.dominant_path { "usual" } else { "" };
            vec![
                format!("  {}", nodes(&path.path)),
                path.count.to_string(),
                format!("{:.2}", path.success_rate),
                format!("{:.0} ms", path.avg_duration_ms),
                usual.to_owned(),
            ]
        })
        .collect();
    out::line(out::table(&["  path", "times", "success", "took", ""], &rows));
    for decision in &learning.decision_stats {
        let outcomes = decision.outcomes.iter().map(|(outcome, stats)| format!("{outcome} {}", stats.count));
        let outcomes: Vec<String> = outcomes.collect();
        out::line(format!(
            "  {} {}: {}",
            decision.node_id,
            printable(&decision.condition),
            outcomes.join(", ")
        ));
    }
}

fn nodes(path: &[NodeId]) -> String {
    let nodes: Vec<String> = path.iter().map(ToString::to_string).collect();
    truncate_text(&nodes.join(" "), 60)
}

fn trace_row(trace: &Trace) -> Vec<String> {
    vec![
        format_time(trace.created_at),
        trace.status.as_str().to_owned(),
        format!("{} ms", trace.duration_ms),
        trace.priority.map(|priority| format!("{priority:.2}")).unwrap_or_default(),
        printable(&truncate_text(&trace.intent, 60)),
    ]
}
