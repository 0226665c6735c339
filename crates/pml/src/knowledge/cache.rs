//! Results that need not be computed again: those of plans that only read, as long as nothing was written.
//!
//! By default only where nothing outside can have changed them unseen: tools that compute from their arguments alone, and
//! built-in reads of files, which are compared with what they were each time. Of any other tool the operator has to say how
//! long what it gave is good for.
//!
//! Two places, looked at in this order: what this process ran with exactly the same source and arguments in the last minutes,
//! and what anybody on this database got from a capability with the same arguments. A result is only used while the write
//! epoch of every server it came from is what it was before the first of them was read, and while nobody had results dropped.
//!
//! A third place is never an answer: what came of nearly the same intent is only shown, where that is wanted.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use pml_model::capability::{CacheConfig, Invalidation, KeyStrategy};
use pml_model::json::{canonical, raw};
use pml_model::trace::{Body, Status, Trace};
use pml_model::{CapabilityId, Digest, Principal, RunId, ServerName, ToolId, TraceId};
use pml_store::{CacheKey, IntentFit, Memory, NewResult, Urgency};
use serde_json::value::RawValue;

use super::Knowledge;
use crate::approve::Verdict;
use crate::builtin::{Stamp, Witness};
use crate::clock::now_ms;
use crate::plan::Plan;
use crate::report::{Report, Source, TaskStatus};
use crate::reuse;
use crate::runtime::blocking;

/// How many results this process keeps, and for how long.
const MOST: NonZeroUsize = NonZeroUsize::new(500).expect("500 is not 0");
const TIME: Duration = Duration::from_secs(5 * 60);
/// For how long a result is shown for nearly the same intent, and how alike the two must be.
const SHOWN_MS: i64 = 60 * 60 * 1000;
const ALIKE: f64 = 0.95;
/// The largest result that is kept.
const MOST_BYTES: usize = 256 * 1024;

/// The built-in server whose tools read files.
const FILES: &str = "fs";

/// Words of a program that make it depend on more than what it is given.
const UNSTEADY: &[&str] = &["Date", "random", "setTimeout", "setInterval"];

/// What this process ran lately.
#[derive(Debug)]
pub(crate) struct Cache {
    results: Mutex<LruCache<Digest, Kept>>,
    /// How often anybody had results dropped, and the state of the database that was read in.
    heard: Mutex<Option<(i64, i64)>>,
}

#[derive(Debug, Clone)]
struct Kept {
    epoch: String,
    drops: i64,
    since: Instant,
    until: i64,
    result: Arc<RawValue>,
    run: RunId,
    stamps: Arc<[Stamp]>,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { results: Mutex::new(LruCache::new(MOST)), heard: Mutex::default() }
    }
}

/// What a result is kept under.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    key: Digest,
    /// How often was written when nothing had been read yet.
    epoch: String,
    /// How often results had been dropped then.
    drops: i64,
    principal: Principal,
    /// Whose result it is, and how those are kept.
    capability: Option<CapabilityId>,
    config: CacheConfig,
    /// Digest of what the capability was given, where it is one that is run.
    parameters: Option<Digest>,
    /// Digest of the tools and capabilities that are called, as they are.
    definitions: Digest,
    /// What was asked for, where the result may be shown for nearly the same.
    intent: Option<String>,
    /// For how long its tools allow to keep it, where they say.
    tools_ttl: Option<Duration>,
    /// Notes the files that are read for it.
    pub(crate) witness: Witness,
}

/// A result that was known.
#[derive(Debug, Clone)]
pub(crate) struct Hit {
    pub(crate) result: Box<RawValue>,
    pub(crate) from: Source,
    /// The run it is of, where that is known.
    pub(crate) run: Option<RunId>,
}

/// A result of nearly the same intent.
#[derive(Debug, Clone)]
pub(crate) struct Alike {
    pub(crate) result: Box<RawValue>,
    /// What was asked for then.
    pub(crate) intent: String,
    /// How alike the two are.
    pub(crate) similarity: f64,
    pub(crate) age_ms: i64,
}

/// What the result of a plan may be kept under, if it may be kept. `named` is the capability that is run, where that is known.
pub(crate) async fn ticket(
    knowledge: &Knowledge,
    plan: &Plan,
    principal: &Principal,
    named: Option<&CapabilityId>,
) -> Option<Ticket> {
    if plan.question.is_some() || plan.pauses() {
        return None;
    }
    let tools_ttl = keeps(knowledge, plan).ok()?;
    let drops = knowledge.cache.drops(knowledge).await?;
    let learned = plan.learn.as_ref().map(|learn| learn.capability_of(principal));
    let capability = learned.or_else(|| named.cloned());
    let known = capability.as_ref().and_then(|id| knowledge.memory.called(principal, id.as_str()));
    let config = known.map(|known| known.cache.clone()).unwrap_or_default();
    if !config.keeps() {
        return None;
    }
    let arguments = canonical(plan.arguments.get()).ok()?;
    let tools: Vec<String> = plan.tools.iter().map(|tool| format!("{} {}", tool.id, tool.digest)).collect();
    // What is called is what it is now, whatever was called by the same name before.
    let called = plan
        .nested
        .iter()
        .map(|nested| format!("{} {} {}", nested.id, nested.code_hash, raw(&nested.defaults)));
    let called = called.collect::<Vec<_>>().join("\n");
    let definitions = format!("{}\n{called}", tools.join("\n"));
    let counts = if config.goes_with(Invalidation::ToolSchemaChange) { &definitions } else { &called };
    let given = Digest::of(format!("{counts}\n{arguments}").as_bytes());
    Some(Ticket {
        key: Digest::of(format!("{principal}\n{}\n{definitions}\n{arguments}", plan.code_hash).as_bytes()),
        epoch: epoch(knowledge, plan)?,
        drops,
        principal: principal.clone(),
        parameters: plan.learn.as_ref().and_then(|learn| learn.capability.as_ref()).map(|_| given),
        definitions: Digest::of(definitions.as_bytes()),
        intent: is_shown(knowledge, &config).then(|| told(knowledge, &plan.intent)).flatten(),
        capability,
        config,
        tools_ttl,
        witness: Witness::default(),
    })
}

/// Whether a result is shown for nearly the same intent.
pub(crate) fn is_shown(knowledge: &Knowledge, config: &CacheConfig) -> bool {
    config.keeps()
        && (knowledge.settings.config().memory.earlier_results
            || config.key_strategy == KeyStrategy::IntentSimilarity)
}

/// An intent that can be kept as it is.
fn told(knowledge: &Knowledge, intent: &str) -> Option<String> {
    let whole = matches!(knowledge.memory.sanitiser().text(intent), std::borrow::Cow::Borrowed(_));
    (whole && !intent.is_empty()).then(|| intent.to_owned())
}

/// For how long the result of a plan may be kept, as far as its tools say: those that compute from their arguments alone and
/// the built-in `fs`, whose files are compared, as long as anybody likes; others as long as the operator says.
///
/// # Errors
/// Why it may not be kept at all.
pub(crate) fn keeps(knowledge: &Knowledge, plan: &Plan) -> Result<Option<Duration>, String> {
    if let Some(because) = changes(knowledge, plan) {
        return Err(because);
    }
    let mut shortest = None;
    for (id, verdict) in verdicts(knowledge, plan) {
        let Some(verdict) = verdict else { return Err(format!("`{id}` is gone")) };
        if verdict.closed || is_compared(knowledge, id) {
            continue;
        }
        let Some(time) = verdict.cache_ttl else {
            return Err(format!("what `{id}` gives may change without anybody telling"));
        };
        shortest = Some(shortest.map_or(time, |least: Duration| least.min(time)));
    }
    Ok(shortest)
}

/// Whether a plan changes nothing and reads neither clock nor chance, so that its results may be kept where its tools allow.
pub(crate) fn only_reads(knowledge: &Knowledge, plan: &Plan) -> bool {
    changes(knowledge, plan).is_none()
}

/// Why a plan may change something, or give something else each time whatever its tools give.
fn changes(knowledge: &Knowledge, plan: &Plan) -> Option<String> {
    if let Some(what) = plan.opaque.first() {
        return Some(format!("it may call tools that cannot be known before it runs: {what}"));
    }
    let sources = || std::iter::once(&plan.source).chain(plan.nested.iter().map(|nested| &nested.source));
    if let Some(word) = UNSTEADY.iter().find(|word| sources().any(|source| source.contains(**word))) {
        return Some(format!("it uses `{word}`"));
    }
    let mut verdicts = verdicts(knowledge, plan).into_iter();
    let writes = verdicts.find(|(_, verdict)| verdict.as_ref().is_none_or(|verdict| !verdict.read_only));
    writes.map(|(id, _)| format!("`{id}` may change something"))
}

/// What the rules say of each tool of a plan; nothing of one that is gone.
fn verdicts<'p>(knowledge: &Knowledge, plan: &'p Plan) -> Vec<(&'p ToolId, Option<Verdict>)> {
    let (snapshot, policy) = (knowledge.tools.snapshot(), knowledge.settings.policy());
    let verdict =
        |id: &ToolId| snapshot.tool(id).ok().map(|tool| policy.of(id, &tool.definition.annotations));
    plan.tools.iter().map(|granted| (&granted.id, verdict(&granted.id))).collect()
}

/// Whether what a tool reads are files that can be compared with what they were.
fn is_compared(knowledge: &Knowledge, id: &ToolId) -> bool {
    id.server.as_str() == FILES && knowledge.tools.builtin(FILES).is_some()
}

/// How often was written on the servers of a plan, in words that other processes understand.
fn epoch(knowledge: &Knowledge, plan: &Plan) -> Option<String> {
    let mut servers: Vec<&ServerName> = plan.tools.iter().map(|tool| &tool.id.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let mut marks = Vec::with_capacity(servers.len());
    for server in servers {
        match knowledge.tools.epoch.for_server(server) {
            Ok(mark) => marks.push(format!("{server}={}", mark.writes())),
            Err(error) => {
                tracing::debug!(%error, "nothing is kept: nobody knows what was written");
                return None;
            }
        }
    }
    Some(marks.join(" "))
}

impl Cache {
    /// The result, if it is known and what it was made of is still the same.
    pub(crate) async fn get(&self, knowledge: &Knowledge, ticket: &Ticket) -> Option<Hit> {
        if let Some((hit, stamps)) = self.here(ticket) {
            if hold(knowledge, stamps).await {
                return Some(hit);
            }
            self.results.lock().unwrap_or_else(PoisonError::into_inner).pop(&ticket.key);
        }
        let key = ticket.stored()?;
        match knowledge.store.cached(&key, now_ms()).await {
            Ok(found) => {
                let found = found?;
                still_holds(knowledge, &found.stamps).await.then(|| Hit {
                    result: found.result,
                    from: Source { kind: "capability".to_owned(), age_ms: (now_ms() - found.at).max(0) },
                    run: None,
                })
            }
            Err(error) => {
                tracing::debug!(%error, "results of earlier runs could not be read");
                None
            }
        }
    }

    fn here(&self, ticket: &Ticket) -> Option<(Hit, Arc<[Stamp]>)> {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = results.get(&ticket.key)?;
        let age = kept.since.elapsed();
        let counts = age <= TIME
            && kept.until > now_ms()
            && (kept.drops, &kept.epoch) == (ticket.drops, &ticket.epoch);
        if !counts {
            results.pop(&ticket.key);
            return None;
        }
        let hit = Hit {
            result: (*kept.result).to_owned(),
            from: Source {
                kind: "execution".to_owned(),
                age_ms: i64::try_from(age.as_millis()).unwrap_or(i64::MAX),
            },
            run: Some(kept.run.clone()),
        };
        Some((hit, Arc::clone(&kept.stamps)))
    }

    /// How often results were dropped. What was set for capabilities until then is known afterwards.
    async fn drops(&self, knowledge: &Knowledge) -> Option<i64> {
        let looked = async {
            let version = knowledge.store.data_version()?;
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, drops)) = heard.filter(|(seen, _)| *seen == version) {
                return Ok(drops);
            }
            // One number, read in less time than another thread takes to begin.
            let drops = knowledge.store.cache_drops()?;
            if heard.is_none_or(|(_, before)| before != drops) {
                knowledge.memory.refresh().await?;
            }
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some((version, drops));
            Ok::<i64, pml_store::Error>(drops)
        };
        match looked.await {
            Ok(drops) => Some(drops),
            Err(error) => {
                tracing::debug!(%error, "nothing is kept: nobody knows what was dropped");
                None
            }
        }
    }

    /// What came of nearly the same intent that named the same values.
    pub(crate) async fn alike(&self, knowledge: &Knowledge, ticket: &Ticket) -> Option<Alike> {
        let (Some(capability), Some(asked)) = (ticket.capability.clone(), ticket.intent.clone()) else {
            return None;
        };
        let epoch = ticket.known_by();
        let kept = knowledge.store.cached_for_intents(&ticket.principal, &capability, &epoch, now_ms()).await;
        let kept = kept
            .inspect_err(|error| tracing::debug!(%error, "results of earlier runs could not be read"))
            .ok()?;
        let read = reuse::Read::new(&asked);
        let mut best: Option<Alike> = None;
        for (intent, kept) in kept {
            let similarity = reuse::Read::new(&intent).similarity(&read);
            // Of those that are as much alike, the latest.
            let better = best.as_ref().is_none_or(|best| similarity > best.similarity);
            if similarity > ALIKE
                && better
                && reuse::same_literals(&intent, &asked)
                && still_holds(knowledge, &kept.stamps).await
            {
                let age_ms = (now_ms() - kept.at).max(0);
                best = Some(Alike { result: kept.result, intent, similarity, age_ms });
            }
        }
        best
    }

    /// Keeps the result of a run, if nothing failed in it, nothing was written since it began and there is no secret in it.
    pub(crate) fn put(
        &self,
        knowledge: &Knowledge,
        plan: &Plan,
        ticket: &Ticket,
        run: &RunId,
        report: &Report,
    ) {
        let Some(result) = report.result.as_ref().filter(|result| result.get().len() <= MOST_BYTES) else {
            return;
        };
        let worked =
            !report.has_failures() && report.tasks.iter().all(|task| task.status == TaskStatus::Success);
        let steady = epoch(knowledge, plan).as_ref() == Some(&ticket.epoch)
            && knowledge.store.cache_drops().is_ok_and(|drops| drops == ticket.drops);
        if !worked
            || !steady
            || report.contents().next().is_some()
            || knowledge.memory.sanitiser().with_those_in(&plan.arguments).json(result).changed
        {
            return;
        }
        let compared = knowledge.tools.builtin(FILES).is_some();
        let reads = report.tasks.iter().filter(|task| compared && of_files(&task.tool)).count();
        let Some(stamps) = ticket.witness.stamps(reads) else { return };
        let at = now_ms();
        let until = match ticket.tools_ttl.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX)) {
            Some(time) => ticket.config.until(at).min(at.saturating_add(time)),
            None => ticket.config.until(at),
        };
        let written = serde_json::to_string(&stamps).unwrap_or_default();
        let kept = Kept {
            epoch: ticket.epoch.clone(),
            drops: ticket.drops,
            since: Instant::now(),
            until,
            result: Arc::from(result.clone()),
            run: run.clone(),
            stamps: stamps.into(),
        };
        self.results.lock().unwrap_or_else(PoisonError::into_inner).put(ticket.key.clone(), kept);
        let most = ticket.config.max_entries;
        let new = NewResult { result, intent: None, stamps: &written, at, expires_at: until, most };
        if let Some(key) = ticket.stored() {
            store(knowledge, &key, &new);
        }
        if let (Some(key), Some(intent)) = (ticket.told(), &ticket.intent) {
            let expires_at = until.min(at.saturating_add(SHOWN_MS));
            store(knowledge, &key, &NewResult { intent: Some(intent), expires_at, ..new });
        }
    }

    /// Forgets everything this process keeps, so that what is stored is measured.
    pub(crate) fn clear(&self) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Whether a tool, as it is written, reads files.
fn of_files(tool: &str) -> bool {
    tool.split_once(':').is_some_and(|(server, _)| server == FILES)
}

/// Whether the files that a result was made of are still what they were.
async fn hold(knowledge: &Knowledge, stamps: Arc<[Stamp]>) -> bool {
    if stamps.is_empty() {
        return true;
    }
    match knowledge.tools.builtin(FILES) {
        Some(files) => blocking(move || files.holds(&stamps)).await,
        None => false,
    }
}

/// As [`hold`], for what was written down.
async fn still_holds(knowledge: &Knowledge, written: &str) -> bool {
    match serde_json::from_str::<Vec<Stamp>>(written) {
        Ok(stamps) => hold(knowledge, stamps.into()).await,
        Err(_) => false,
    }
}

impl Ticket {
    /// The key in the database, where it is a capability's.
    fn stored(&self) -> Option<CacheKey> {
        Some(CacheKey {
            principal: self.principal.clone(),
            capability: self.capability.clone()?,
            parameters: self.parameters.clone()?,
            epoch: self.epoch.clone(),
        })
    }

    /// The key of what is shown for nearly the same intent.
    fn told(&self) -> Option<CacheKey> {
        Some(CacheKey {
            principal: self.principal.clone(),
            capability: self.capability.clone()?,
            parameters: Digest::of(format!("intent\n{}", self.intent.as_ref()?).as_bytes()),
            epoch: self.known_by(),
        })
    }

    /// What tells results for intents apart that are of another time or of other tools.
    fn known_by(&self) -> String {
        format!("{} {}", self.epoch, self.definitions)
    }
}

fn store(knowledge: &Knowledge, key: &CacheKey, new: &NewResult<'_>) {
    knowledge.store.cache(key, new, |stored| {
        if let Err(error) = stored {
            tracing::debug!(%error, "a result could not be kept");
        }
    });
}

/// Notes that a result was used once more, though nothing ran.
pub(crate) fn note_use(knowledge: &Knowledge, plan: &Plan, principal: &Principal, id: &RunId) {
    let Some(learn) = &plan.learn else { return };
    let capability = learn.capability_of(principal);
    let trace = Trace {
        id: TraceId::of(id),
        workflow_id: id.clone(),
        principal: principal.clone(),
        session: plan.session.clone(),
        capability_id: Some(capability),
        plan_hash: plan.code_hash.clone(),
        intent: knowledge.memory.sanitiser().text(&plan.intent).into_owned(),
        status: Status::Success,
        error: None,
        duration_ms: 0,
        created_at: now_ms(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: true,
        exploratory: false,
        approved: false,
        body: Body::default(),
    };
    let memory = Memory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: serde_json::Map::new(),
        intent: IntentFit::Unchecked,
        untaught: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    knowledge.store.remember(memory, Urgency::Soon, |stored| {
        if let Err(error) = stored {
            tracing::debug!(%error, "that a result was used again could not be recorded");
        }
    });
    knowledge.memory.left();
}
