//! The cost of memory: storing a trace, learning from it, finding a capability, and answering from the cache.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::flow::{self, ExecuteOutcome};
use pml::knowledge::CapabilityMemory;
use pml::knowledge::embeddings::IntentReading;
use pml::planning::Work;
use pml::problem::Problem;
use pml_model::capability::{CacheConfig, CapabilityOrigin, CapabilitySource, Procedure, ToolUse};
use pml_model::json::raw;
use pml_model::structure::{NodeId, NodeLetter, Structure};
use pml_model::trace::{DecisionOutcome, EdgeKind, TaskResult, Trace, TraceBody, TraceEdge, TraceStatus};
use pml_model::{CapabilityId, Digest, Principal, RunId, TraceId};
use pml_store::{BlockingStore, RunMemory, Store, TraceOrder, TraceQuery, Urgency};
use serde_json::{Map, json};

use crate::execution::execution;
use crate::figure::{BenchFigure, failed, milliseconds, quantile};

/// The number of capabilities that are searched.
const CAPABILITIES: usize = 10_000;
/// The number of traces that learning is measured on.
const LESSONS: usize = 10_000;
/// The number of traces in the large database.
const TRACES: usize = 100_000;
/// The number of tasks of one trace.
const TASKS: u32 = 10;

const VERBS: &[&str] = &[
    "read",
    "count",
    "list",
    "send",
    "merge",
    "compare",
    "archive",
    "translate",
    "plot",
    "deploy",
    "review",
    "sort",
];
const THINGS: &[&str] = &[
    "invoices",
    "commits",
    "photos",
    "meetings",
    "tickets",
    "logs",
    "contracts",
    "recipes",
    "flights",
    "sensors",
    "orders",
    "letters",
    "branches",
    "backups",
];
const PLACES: &[&str] =
    &["Paris", "the archive", "last week", "the shop", "the second floor", "the old server", "Lyon"];

pub(super) async fn measure(rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    let mut figures = vec![storing(&home.path().join("storing.db"), rounds)?];
    figures.push(learning(&home.path().join("learning.db"))?);
    figures.push(finding(&home.path().join("finding.db"), rounds).await?);
    figures.push(deciding(&home.path().join("deciding"), rounds).await?);
    figures.extend(answering(home.path(), rounds).await?);
    figures.extend(growing(&home.path().join("growing.db"), rounds)?);
    Ok(figures)
}

fn open(path: &Path) -> Result<BlockingStore, Problem> {
    BlockingStore::open(path).map_err(failed)
}

fn node(number: u32) -> NodeId {
    NodeId { letter: NodeLetter::N, number }
}

/// A sentence unlike most others.
pub(super) fn intent(number: usize) -> String {
    let word = |words: &[&'static str], divide: usize| words[(number / divide) % words.len()];
    let (verb, thing) = (word(VERBS, 1), word(THINGS, VERBS.len()));
    let place = word(PLACES, VERBS.len() * THINGS.len());
    format!("{verb} the {thing} of {place} number {}", number / (VERBS.len() * THINGS.len() * PLACES.len()))
}

fn procedure(number: usize) -> Procedure {
    let (owner, identity) = (Principal::local(), format!("identity {number}"));
    Procedure {
        id: CapabilityId::of(&owner, &identity),
        owner,
        suggested_name: format!("capability{number}"),
        description: intent(number),
        source: CapabilitySource::Code { code: format!("return {number}"), template: None },
        code_hash: format!("hash {number}"),
        identity,
        analysis_version: 1,
        tools_used: vec![ToolUse { id: "fs:read".to_owned(), digest: Digest::of(b"fs:read") }],
        dependencies: Vec::new(),
        parameters_schema: json!({ "type": "object", "properties": { "path": { "type": "string", "default": "a.txt" } } }),
        static_structure: Structure::default(),
        origin: CapabilityOrigin::Emergent,
        cache_config: CacheConfig::default(),
        unproven_lift: None,
    }
}

/// A run of ten calls, each of which takes the result of the one before.
pub(super) fn trace(number: usize, capability: usize) -> RunMemory {
    let procedure = procedure(capability);
    let run = RunId::new(number as u128);
    let task = |call: u32| TaskResult {
        call,
        node_id: Some(node(call)),
        task_id: None,
        tool: "fs:read".to_owned(),
        tool_digest: Digest::of(b"fs:read"),
        args: raw(&json!({ "path": format!("notes/{number}/{call}.txt") })),
        result: Some(raw(&json!({ "content": "a line of text that is read and handed on", "size": 41 }))),
        success: true,
        error: None,
        started_at: 1_000 * i64::from(call),
        duration_us: None,
        duration_ms: Some(20),
        attempt: 1,
        layer: None,
        altered: false,
        speculated: false,
        saved_ms: None,
        age_ms: None,
        mocked: false,
        mock_weight: None,
    };
    let edge = |from: u32, kind: EdgeKind| TraceEdge { from, to: from + 1, kind };
    let edges =
        (0..TASKS - 1).flat_map(|from| [edge(from, EdgeKind::Sequence), edge(from, EdgeKind::Dependency)]);
    let decision = DecisionOutcome {
        node_id: NodeId { letter: NodeLetter::D, number: 1 },
        condition: "file.exists".to_owned(),
        value: None,
        outcome: (!number.is_multiple_of(3)).to_string(),
        times: 1,
    };
    let trace = Trace {
        id: TraceId::of(&run),
        workflow_id: run,
        principal: procedure.owner.clone(),
        session: format!("session {}", number / 10),
        capability_id: Some(procedure.id.clone()),
        plan_hash: procedure.code_hash.clone(),
        intent: intent(capability),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 200,
        created_at: 1_000 * number as i64,
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: false,
        exploratory: false,
        approved: false,
        body: TraceBody {
            executed_path: (1..=TASKS).map(node).collect(),
            decisions: vec![decision],
            task_results: (1..=TASKS).map(task).collect(),
            omitted: 0,
            edges: edges.collect(),
            initial_context: None,
            mock_ratio: 0.0,
            explored: None,
        },
    };
    let values = Map::from_iter([("path".to_owned(), json!(format!("notes/{number}.txt")))]);
    RunMemory {
        procedure: Some(Box::new(procedure)),
        activates: true,
        tools: Vec::new(),
        values,
        result: None,
        golden: false,
        intent: pml_store::IntentFit::Unchecked,
        excluded_from_learning: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    }
}

/// Stores a trace and waits until it is stored.
fn store_one(store: &BlockingStore, memory: RunMemory) -> Result<(), Problem> {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    store.store_memory(memory, Urgency::Soon, move |stored| drop(tell.send(stored)));
    told.recv().map_err(failed)?.map_err(failed)
}

/// Stores many traces without waiting for each.
pub(super) fn store_many(
    store: &BlockingStore,
    traces: impl Iterator<Item = RunMemory>,
) -> Result<(), Problem> {
    for (number, memory) in traces.enumerate() {
        store.store_memory(memory, Urgency::Soon, |stored| {
            if let Err(error) = stored {
                tracing::error!(%error, "a trace was not stored");
            }
        });
        if number % 1_000 == 999 {
            store.flush().map_err(failed)?;
        }
    }
    store.flush().map_err(failed)
}

fn storing(path: &Path, rounds: usize) -> Result<BenchFigure, Problem> {
    let store = open(path)?;
    let mut times = Vec::new();
    for number in 0..rounds {
        let memory = trace(number, number % 50);
        let started = Instant::now();
        store_one(&store, memory)?;
        times.push(started.elapsed());
    }
    let time = quantile(&mut times, 0.5);
    Ok(BenchFigure::of(format!("storing a trace of {TASKS} tasks"), milliseconds(time))
        .target("≤ 1 ms", time <= Duration::from_millis(1)))
}

fn learning(path: &Path) -> Result<BenchFigure, Problem> {
    let store = open(path)?;
    store_many(&store, (0..LESSONS).map(|number| trace(number, number % 200)))?;
    let started = Instant::now();
    let mut learned = 0;
    loop {
        let step = store.learn_traces(500, 0).map_err(failed)?;
        learned += step.traces;
        if !step.has_more {
            break;
        }
    }
    let rate = learned as f64 / started.elapsed().as_secs_f64();
    if learned != LESSONS {
        return Err(failed(format!("{learned} of {LESSONS} traces were learned from")));
    }
    Ok(BenchFigure::of("learning", format!("{rate:.0} traces/s")).target("≥ 5,000 traces/s", rate >= 5_000.0))
}

async fn finding(path: &Path, rounds: usize) -> Result<BenchFigure, Problem> {
    let store = open(path)?;
    store_many(&store, (0..CAPABILITIES).map(|number| trace(number, number)))?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    let memory = Arc::new(CapabilityMemory::new(Store::from(store), []));
    let principal = Principal::local();
    // The first search loads all capabilities.
    memory
        .find(&principal, "anything", &IntentReading::words_only("anything"), None)
        .await
        .map_err(failed)?;
    let mut times = Vec::new();
    let mut right = 0;
    for round in 0..rounds {
        let wanted = (round * 7_919) % CAPABILITIES;
        let text = intent(wanted);
        let started = Instant::now();
        let found =
            memory.find(&principal, &text, &IntentReading::words_only(&text), None).await.map_err(failed)?;
        times.push(started.elapsed());
        let name = format!("capability{wanted}");
        right += usize::from(found.first().is_some_and(|first| first.name() == name));
    }
    let time = quantile(&mut times, 0.5);
    let measured = format!("{}, {right} of {rounds} first by their own intent", milliseconds(time));
    Ok(BenchFigure::of(format!("finding one of {CAPABILITIES} capabilities"), measured)
        .target("≤ 3 ms", time <= Duration::from_millis(3)))
}

/// The time until it is clear whether an intent alone runs one of many capabilities, and which one is offered: tools and
/// capabilities are ranked by words, and the best candidates are compared with the request.
async fn deciding(home: &Path, rounds: usize) -> Result<BenchFigure, Problem> {
    std::fs::create_dir_all(home).map_err(failed)?;
    std::fs::write(home.join("pml.toml"), "[embedding]\nmodel = \"none\"\n").map_err(failed)?;
    let store = open(&home.join("pml.db"))?;
    store_many(&store, (0..CAPABILITIES).map(|number| trace(number, number)))?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    drop(store);
    let env = Env::from_iter([("PML_HOME", home.display().to_string())]);
    let app = App::open(Paths::discover(&env)?, env, home.to_owned(), ProcessRole::Command).await?;
    let measured = decisions(&app, rounds).await;
    app.close().await;
    let (time, offered) = measured?;
    let measured = format!("{}, {offered} of {rounds} offered first", milliseconds(time));
    Ok(BenchFigure::of(format!("deciding on an intent with {CAPABILITIES} capabilities"), measured)
        .target("≤ 15 ms", time <= Duration::from_millis(15)))
}

/// The median time of a decision, and how often the right capability was offered first.
async fn decisions(app: &Arc<App>, rounds: usize) -> Result<(Duration, usize), Problem> {
    let mut times = Vec::new();
    let mut right = 0;
    // The first request loads all capabilities.
    for round in 0..=rounds {
        let wanted = (round * 7_919) % CAPABILITIES;
        let mut asked = execution(app, Work::Intent);
        // In other words, so that nothing runs.
        asked.intent = format!("somebody wants to {}, and quickly, before 2026-05-01", intent(wanted));
        let started = Instant::now();
        let outcome = flow::execute(app, asked, |_| true).await?;
        if round > 0 {
            times.push(started.elapsed());
        }
        let ExecuteOutcome::Suggested(suggested) = outcome else {
            return Err(failed("a request that nothing serves was run"));
        };
        let name = format!("capability{wanted}");
        right +=
            usize::from(round > 0 && suggested.candidates.first().is_some_and(|first| first.name == name));
    }
    Ok((quantile(&mut times, 0.5), right))
}

async fn answering(home: &Path, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let env = Env::from_iter([("PML_HOME", home.display().to_string())]);
    let app = App::open(Paths::discover(&env)?, env, home.to_owned(), ProcessRole::Command).await?;
    let measured = from_caches(&app, rounds).await;
    app.close().await;
    measured
}

async fn from_caches(app: &Arc<App>, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let code = "const a = await mcp.json.parse({ json: '[3, 1, 2]' }); return a.data.length;";
    let asked = |work: Work| {
        let mut asked = execution(app, work);
        asked.use_cache = true;
        asked
    };
    let code = || asked(Work::Code(code.to_owned()));
    let id = match flow::execute(app, code(), |_| true).await? {
        ExecuteOutcome::Running(handle) => match handle.wait(Duration::from_secs(30)).await {
            pml::report::RunStatus::Finished(report) => {
                report.capability_id.clone().ok_or_else(|| failed("nothing was learned"))?
            }
            other => return Err(failed(format!("the run stands as {other:?}"))),
        },
        _ => return Err(failed("the program was not run")),
    };
    let first = hits(app, rounds, "execution", code, false).await?;
    let by_id = || asked(Work::Capability(id.to_string()));
    // One real run first: the cache of a capability is filled by its own runs.
    if let ExecuteOutcome::Running(handle) = flow::execute(app, by_id(), |_| true).await? {
        handle.wait(Duration::from_secs(30)).await;
    }
    // Cache entries are written in the background; wait for them.
    app.store.flush().await.map_err(failed)?;
    let second = hits(app, rounds, "capability", by_id, true).await?;
    Ok(vec![
        BenchFigure::of("known from the same program, inside the flow", milliseconds(first))
            .target("≤ 0.2 ms", first <= Duration::from_micros(200)),
        BenchFigure::of("known from the same capability, inside the flow", milliseconds(second))
            .target("≤ 1 ms", second <= Duration::from_millis(1)),
    ])
}

async fn hits(
    app: &Arc<App>,
    rounds: usize,
    from: &str,
    asked: impl Fn() -> pml::planning::RunRequest,
    forget: bool,
) -> Result<Duration, Problem> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        if forget {
            app.knowledge.forget_results();
        }
        let asked = asked();
        let started = Instant::now();
        let executed = flow::execute(app, asked, |_| true).await?;
        times.push(started.elapsed());
        match executed {
            ExecuteOutcome::Cached(known)
                if known.report.cache_hit.as_ref().is_some_and(|hit| hit.kind == from) => {}
            ExecuteOutcome::Cached(_) => {
                return Err(failed(format!("the result was known, but not from `{from}`")));
            }
            _ => return Err(failed(format!("the result was not known from `{from}`"))),
        }
    }
    Ok(quantile(&mut times, 0.5))
}

/// How opening and querying scale with the size of the database.
fn growing(path: &Path, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let small = asking(&few(path)?, rounds)?;
    let store = open(path)?;
    store_many(&store, (0..TRACES).map(|number| trace(number, number % 500)))?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    drop(store);
    let started = Instant::now();
    let store = open(path)?;
    let opening = started.elapsed();
    let large = asking(&store, rounds)?;
    let ratio = large.as_secs_f64() / small.as_secs_f64().max(1e-9);
    Ok(vec![
        BenchFigure::of(format!("opening a database with {TRACES} traces"), milliseconds(opening))
            .target("≤ 300 ms", opening <= Duration::from_millis(300)),
        BenchFigure::of("asking it, beside asking one with 1,000", format!("{ratio:.2} ×"))
            .target("≤ 1.5", ratio <= 1.5),
    ])
}

fn few(path: &Path) -> Result<BlockingStore, Problem> {
    let store = open(&path.with_extension("few"))?;
    store_many(&store, (0..1_000).map(|number| trace(number, number % 500)))?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    Ok(store)
}

/// The median time of a few queries together.
fn asking(store: &BlockingStore, rounds: usize) -> Result<Duration, Problem> {
    let principal = Principal::local();
    let mut times = Vec::new();
    for round in 0..rounds {
        let id = procedure(round % 500).id;
        let started = Instant::now();
        store.capability(&principal, &id).map_err(failed)?;
        for order in [TraceOrder::Newest, TraceOrder::Priority] {
            let wanted = TraceQuery { capability: Some(id.clone()), order, limit: 2, after: None };
            store.traces(&principal, &wanted).map_err(failed)?;
        }
        store.learned_edges_from(&principal, id.as_str(), None, 5).map_err(failed)?;
        times.push(started.elapsed());
    }
    Ok(quantile(&mut times, 0.5))
}
