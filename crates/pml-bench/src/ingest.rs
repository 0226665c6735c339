//! Bulk ingestion of real definitions: each is listed, checked, given a signature and ranked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::catalogue::{
    CatalogueServer, Offer, ServerOffers, ToolSnapshot, UsableDefinitions, with_identifiers,
};
use pml::config::ToolNaming;
use pml::discover::{self, DiscoverFilter, DiscoverMemory, DiscoverRequest, ResultDetail, signature};
use pml::problem::Problem;
use pml::validate::Validators;
use pml_model::{Definition, Digest, Principal, ServerName};
use pml_store::{AcceptancePolicy, BlockingStore, ServerListing, StoredServerProfile};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::figure::{BenchFigure, failed, milliseconds, quantile};

/// The number of tools that are ranked.
const WANTED: usize = 5_000;

#[derive(Deserialize)]
pub(super) struct DefinitionLine {
    server: String,
    name: String,
    description: Option<String>,
    input_schema: Option<Box<RawValue>>,
}

pub(super) fn measure(data: &Path) -> Result<Vec<BenchFigure>, Problem> {
    let lines = read(&data.join("dev.jsonl"))?;
    let (servers, refused) = definitions(&lines)?;
    let taken: usize = servers.values().map(Vec::len).sum();
    let store_home = tempfile::tempdir().map_err(failed)?;
    let store = BlockingStore::open(&store_home.path().join("pml.db"))?;
    let started = Instant::now();
    for (server, tools) in &servers {
        store.record_manifest(&Principal::local(), stored(server, tools.clone()), 0)?;
    }
    let storing = started.elapsed();
    let started = Instant::now();
    let manifests = store.manifests(&Principal::local())?;
    let reading = started.elapsed();
    let listings = manifests.into_iter().map(|manifest| ServerOffers {
        server: CatalogueServer {
            name: manifest.server,
            description: None,
            tools_known: true,
            capabilities: None,
        },
        tools: manifest
            .tools
            .into_iter()
            .map(|tool| Offer {
                definition: Arc::new(tool.definition),
                identifier: tool.identifier,
                first_seen_at: 0,
                defined_at: 0,
            })
            .collect(),
        accepted: UsableDefinitions::All,
    });
    let snapshot = ToolSnapshot::new(listings.collect(), ToolNaming::Qualified);
    let started = Instant::now();
    snapshot.index();
    let indexing = started.elapsed();
    let validators = Validators::default();
    let unusable =
        snapshot.tools.iter().filter(|tool| validators.schema_problem(&tool.definition).is_some()).count();
    let signed: usize = snapshot
        .tools
        .iter()
        .map(|tool| {
            signature::signature(tool.id.server.as_str(), &tool.identifier, &tool.definition, None).len()
        })
        .sum();
    let (median, p95) = ranking(&snapshot, &lines)?;
    Ok(vec![
        BenchFigure::of(
            "definitions in the file / taken in / refused",
            format!("{} / {} / {refused}", lines.len(), lines.len() - refused),
        )
        .target("none refused", refused == 0),
        BenchFigure::of("tools in the catalogue, under repeated server names", taken.to_string()),
        BenchFigure::of(
            "held back, because a name can be taken for another's",
            snapshot.quarantined.len().to_string(),
        ),
        BenchFigure::of("input schemas that are not valid JSON Schema", unusable.to_string()),
        BenchFigure::of("signatures, mean length", format!("{} bytes", signed / snapshot.tools.len().max(1))),
        BenchFigure::of(
            "storing them, reading them back, indexing them",
            format!("{}, {}, {}", milliseconds(storing), milliseconds(reading), milliseconds(indexing)),
        ),
        BenchFigure::of(
            format!("discover over {} tools, median / p95", snapshot.tools.len()),
            format!("{} / {}", milliseconds(median), milliseconds(p95)),
        )
        .target("≤ 2 ms", median <= Duration::from_millis(2)),
    ])
}

pub(super) fn read(path: &Path) -> Result<Vec<DefinitionLine>, Problem> {
    let text =
        std::fs::read_to_string(path).map_err(|error| failed(format!("{}: {error}", path.display())))?;
    let parsed = text.lines().filter(|line| !line.trim().is_empty()).enumerate().map(|(number, line)| {
        serde_json::from_str(line)
            .map_err(|error| failed(format!("{}:{}: {error}", path.display(), number + 1)))
    });
    parsed.collect()
}

/// The definitions by server, repeated under new server names until there are enough.
pub(super) fn definitions(
    lines: &[DefinitionLine],
) -> Result<(BTreeMap<ServerName, Vec<Definition>>, usize), Problem> {
    let mut servers: BTreeMap<ServerName, Vec<Definition>> = BTreeMap::new();
    let (mut total, mut refused, mut round) = (0, 0, 0);
    while total < WANTED && !lines.is_empty() {
        for line in lines {
            match define(line) {
                Ok(definition) => {
                    servers.entry(server_name(&line.server, round)?).or_default().push(definition);
                    total += 1;
                }
                Err(_) if round > 0 => {}
                Err(_) => refused += 1,
            }
            if total >= WANTED && round > 0 {
                break;
            }
        }
        if total == 0 {
            return Err(failed("no line of the file is a tool definition"));
        }
        round += 1;
    }
    Ok((servers, refused))
}

/// The definitions as server listings for a catalogue.
pub(super) fn listings(servers: BTreeMap<ServerName, Vec<Definition>>) -> Vec<ServerOffers> {
    let listing = |(name, tools): (ServerName, Vec<Definition>)| ServerOffers {
        server: CatalogueServer { name, description: None, tools_known: true, capabilities: None },
        tools: with_identifiers(tools),
        accepted: UsableDefinitions::All,
    };
    servers.into_iter().map(listing).collect()
}

fn define(line: &DefinitionLine) -> Result<Definition, Problem> {
    let raw = pml_model::json::raw(&serde_json::json!({
        "name": line.name, "description": line.description, "inputSchema": line.input_schema,
    }));
    Definition::parse(raw).map_err(failed)
}

fn server_name(name: &str, round: usize) -> Result<ServerName, Problem> {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).take(50).collect();
    ServerName::new(&format!("s{round}_{plain}")).map_err(failed)
}

fn stored(server: &ServerName, tools: Vec<Definition>) -> ServerListing {
    let about = StoredServerProfile {
        info: None,
        instructions: None,
        protocol_version: None,
        era: None,
        capabilities: None,
    };
    ServerListing {
        server: server.clone(),
        launch: Digest::of(server.as_str().as_bytes()),
        profile: about,
        tools,
        acceptance: AcceptancePolicy::FirstManifest,
    }
}

/// Ranks tools for the first sentence of every twentieth description.
fn ranking(snapshot: &ToolSnapshot, lines: &[DefinitionLine]) -> Result<(Duration, Duration), Problem> {
    let mut times = Vec::new();
    for line in lines.iter().step_by(20) {
        let intent: String = line
            .description
            .as_deref()
            .unwrap_or(&line.name)
            .split(['.', '\n'])
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect();
        if intent.trim().is_empty() {
            continue;
        }
        let request = DiscoverRequest {
            intent,
            filter: DiscoverFilter::default(),
            limit: 10,
            offset: 0,
            detail: ResultDetail::Brief,
        };
        let started = Instant::now();
        discover::find(snapshot, &DiscoverMemory::default(), &request, |_| true)?;
        times.push(started.elapsed());
    }
    Ok((quantile(&mut times, 0.5), quantile(&mut times, 0.95)))
}
