//! The result cache: results of plans that only read, valid as long as nothing was written.
//!
//! By default a result is cached only if nothing outside can have changed it unnoticed: the tools compute from their
//! arguments alone, or are built-in file reads, whose files are compared at each hit. For any other tool the operator
//! must configure how long a result stays valid.
//!
//! There are two caches, looked up in this order: what this process ran with exactly the same source and arguments in
//! the last minutes, and what any process on this database got from a capability with the same arguments. A cache entry
//! is used only while the write epoch of every server it came from is unchanged since before the first read, and while
//! nobody invalidated the cache.
//!
//! A third cache never answers a request: the result of nearly the same intent is only shown, if that is configured.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lru::LruCache;
use pml_model::capability::{CacheConfig, Invalidation, KeyStrategy};
use pml_model::json::{canonical_json, raw};
use pml_model::trace::{Trace, TraceBody, TraceStatus};
use pml_model::{CapabilityId, Digest, Principal, RunId, ServerName, ToolId, TraceId};
use pml_store::{CacheKey, IntentFit, NewCachedResult, RunMemory, SeenWrites, Urgency};
use serde_json::value::RawValue;

use super::Knowledge;
use crate::approve::ToolVerdict;
use crate::builtin::{PathStamp, ReadRecorder};
use crate::clock::now_ms;
use crate::plan::Plan;
use crate::report::{CacheSource, RunReport, TaskStatus};
use crate::reuse;
use crate::runtime::run_blocking;
use crate::tools::Toolset;

/// The number of results that this process caches.
const MOST: NonZeroUsize = NonZeroUsize::new(500).expect("500 is not 0");
/// 5 min: how long this process caches a result.
const TIME: Duration = Duration::from_secs(5 * 60);
/// 1 h in milliseconds: how long a result is shown for nearly the same intent.
const SHOWN_MS: i64 = 60 * 60 * 1000;
/// The least similarity of two intents that are nearly the same, from 0 to 1.
const ALIKE: f64 = 0.95;
/// 256 KiB: the largest result that is cached.
pub(crate) const MOST_BYTES: usize = 256 * 1024;

/// The built-in server whose tools read files.
const FILES: &str = "fs";

/// The identifiers that make a program depend on more than its input.
const UNSTEADY: &[&str] = &["Date", "random", "setTimeout", "setInterval"];

/// The results of this process's latest runs.
#[derive(Debug)]
pub(crate) struct ResultCache {
    results: Mutex<LruCache<Digest, CacheEntry>>,
    /// The database version, and the number of invalidations that was read at it.
    heard: Mutex<Option<(i64, i64)>>,
}

#[derive(Debug, Clone)]
struct CacheEntry {
    epoch: String,
    drops: i64,
    since: Instant,
    until: i64,
    result: Arc<RawValue>,
    /// The run that produced it; `None` if it was produced before anybody asked for it.
    run: Option<RunId>,
    stamps: Arc<[PathStamp]>,
}

impl Default for ResultCache {
    fn default() -> ResultCache {
        ResultCache { results: Mutex::new(LruCache::new(MOST)), heard: Mutex::default() }
    }
}

/// The permission to cache a result: its key and conditions.
#[derive(Debug, Clone)]
pub(crate) struct CacheTicket {
    key: Digest,
    /// The write epochs before anything was read.
    epoch: String,
    /// The writes of other processes among them, by server.
    of_others: Vec<(String, i64)>,
    /// The number of cache invalidations at that time.
    drops: i64,
    principal: Principal,
    /// The capability whose result it is, with its cache settings.
    capability: Option<CapabilityId>,
    config: CacheConfig,
    /// The digest of the capability's arguments; `None` unless a capability runs.
    parameters: Option<Digest>,
    /// The digest of the definitions of the called tools and capabilities.
    definitions: Digest,
    /// The intent, if the result may be shown for nearly the same one.
    intent: Option<String>,
    /// The shortest lifetime that the tools' settings give; `None` if they set none.
    tools_ttl: Option<Duration>,
    /// Records the files that are read for the result.
    pub(crate) witness: ReadRecorder,
}

/// A cached result.
#[derive(Debug, Clone)]
pub(crate) struct CacheHit {
    pub(crate) result: Box<RawValue>,
    pub(crate) source: CacheSource,
    /// The run that produced it, if known.
    pub(crate) run: Option<RunId>,
}

/// The result of nearly the same intent.
#[derive(Debug, Clone)]
pub(crate) struct SimilarResult {
    pub(crate) result: Box<RawValue>,
    /// The earlier intent.
    pub(crate) intent: String,
    /// The similarity of the two intents, from 0 to 1.
    pub(crate) similarity: f64,
    pub(crate) age_ms: i64,
}

/// The ticket for the result of a plan; `None` if it may not be cached. `named` is the capability that runs, if known.
pub(crate) async fn make_ticket(
    knowledge: &Knowledge,
    plan: &Plan,
    principal: &Principal,
    named: Option<&CapabilityId>,
) -> Option<CacheTicket> {
    if plan.question.is_some() || plan.pauses() {
        return None;
    }
    let tools_ttl = cache_lifetime(knowledge, plan).ok()?;
    let drops = knowledge.cache.drops(knowledge).await?;
    let learned = plan.learn.as_ref().map(|learn| learn.capability_id(principal));
    let capability = learned.or_else(|| named.cloned());
    let known = capability.as_ref().and_then(|id| knowledge.memory.cached_by_name(principal, id.as_str()));
    let config = known.map(|known| known.cache.clone()).unwrap_or_default();
    if !config.is_enabled() {
        return None;
    }
    let arguments = canonical_json(plan.arguments.get()).ok()?;
    let tools: Vec<String> = plan.tools.iter().map(|tool| format!("{} {}", tool.id, tool.digest)).collect();
    // The definitions are the present ones, whatever had the same name before.
    let called = plan
        .nested
        .iter()
        .map(|nested| format!("{} {} {}", nested.id, nested.code_hash, raw(&nested.defaults)));
    let called = called.collect::<Vec<_>>().join("\n");
    let definitions = format!("{}\n{called}", tools.join("\n"));
    let counts =
        if config.is_invalidated_by(Invalidation::ToolSchemaChange) { &definitions } else { &called };
    let (epoch, of_others) = epoch(knowledge, plan)?;
    let given = Digest::of(format!("{counts}\n{arguments}").as_bytes());
    Some(CacheTicket {
        key: Digest::of(format!("{principal}\n{}\n{definitions}\n{arguments}", plan.code_hash).as_bytes()),
        epoch,
        of_others,
        drops,
        principal: principal.clone(),
        parameters: plan.learn.as_ref().and_then(|learn| learn.capability.as_ref()).map(|_| given),
        definitions: Digest::of(definitions.as_bytes()),
        intent: shows_similar_results(knowledge, &config).then(|| told(knowledge, &plan.intent)).flatten(),
        capability,
        config,
        tools_ttl,
        witness: ReadRecorder::default(),
    })
}

/// Whether results are shown for nearly the same intent.
pub(crate) fn shows_similar_results(knowledge: &Knowledge, config: &CacheConfig) -> bool {
    config.is_enabled()
        && (knowledge.settings.config().memory.earlier_results
            || config.key_strategy == KeyStrategy::IntentSimilarity)
}

/// The intent, if it can be stored as it is.
fn told(knowledge: &Knowledge, intent: &str) -> Option<String> {
    let whole = matches!(knowledge.memory.sanitiser().clean_text(intent), std::borrow::Cow::Borrowed(_));
    (whole && !intent.is_empty()).then(|| intent.to_owned())
}

/// How long the result of a plan may be cached, as far as its tools limit that. Tools that compute from their arguments
/// alone and the built-in `fs`, whose files are compared, set no limit; others have the configured one.
///
/// # Errors
/// The reason why the result may not be cached at all.
pub(crate) fn cache_lifetime(knowledge: &Knowledge, plan: &Plan) -> Result<Option<Duration>, String> {
    if let Some(because) = changes(knowledge, plan) {
        return Err(because);
    }
    let mut shortest = None;
    for (id, verdict) in verdicts(knowledge, plan) {
        let Some(verdict) = verdict else { return Err(format!("`{id}` is gone")) };
        let limit = tool_lifetime(&knowledge.tools, id, &verdict)?;
        shortest = shortest.into_iter().chain(limit).min();
    }
    Ok(shortest)
}

/// How long a result of one tool may be used again; `None` if nothing limits that.
fn tool_lifetime(tools: &Toolset, id: &ToolId, verdict: &ToolVerdict) -> Result<Option<Duration>, String> {
    if verdict.closed || is_compared(tools, id) {
        return Ok(None);
    }
    let unknown = || format!("what `{id}` gives may change without anybody telling");
    verdict.cache_ttl.map(Some).ok_or_else(unknown)
}

/// How long the result of one call may be used for the same call of a later run, by the rules for results of plans;
/// `None` if nothing limits that.
///
/// # Errors
/// The reason why it may not be used at all.
pub(crate) fn call_lifetime(tools: &Toolset, id: &ToolId) -> Result<Option<Duration>, String> {
    let snapshot = tools.snapshot();
    let Ok(tool) = snapshot.tool(id) else { return Err(format!("`{id}` is gone")) };
    let verdict = tools.policy().verdict(id, &tool.definition.annotations);
    if !verdict.read_only {
        return Err(format!("`{id}` may change something"));
    }
    tool_lifetime(tools, id, &verdict)
}

/// Whether a plan changes nothing and uses neither clock nor random numbers, so that its result may be cached if its
/// tools permit.
pub(crate) fn only_reads(knowledge: &Knowledge, plan: &Plan) -> bool {
    changes(knowledge, plan).is_none()
}

/// The reason why a plan may change something, or give another result each time.
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

/// The verdict on each tool of a plan; `None` for a tool that is gone.
fn verdicts<'p>(knowledge: &Knowledge, plan: &'p Plan) -> Vec<(&'p ToolId, Option<ToolVerdict>)> {
    let (snapshot, policy) = (knowledge.tools.snapshot(), knowledge.settings.policy());
    let verdict =
        |id: &ToolId| snapshot.tool(id).ok().map(|tool| policy.verdict(id, &tool.definition.annotations));
    plan.tools.iter().map(|granted| (&granted.id, verdict(&granted.id))).collect()
}

/// The number of cache invalidations so far: what was read before the last one is not used again.
pub(crate) fn generation(knowledge: &Knowledge) -> Option<i64> {
    knowledge.store.cache_generation().ok()
}

/// Whether a tool reads files whose state can be compared.
pub(crate) fn is_compared(tools: &Toolset, id: &ToolId) -> bool {
    id.server.as_str() == FILES && tools.builtin(FILES).is_some()
}

/// The write epochs of the plan's servers, in a form that all processes share, and the writes of other processes among
/// them.
fn epoch(knowledge: &Knowledge, plan: &Plan) -> Option<(String, Vec<(String, i64)>)> {
    let mut servers: Vec<&ServerName> = plan.tools.iter().map(|tool| &tool.id.server).collect();
    servers.sort_unstable();
    servers.dedup();
    let (mut marks, mut of_others) = (Vec::with_capacity(servers.len()), Vec::with_capacity(servers.len()));
    for server in servers {
        match knowledge.tools.epoch.mark_for_server(server) {
            Ok(mark) => {
                marks.push(format!("{server}={}", mark.writes()));
                of_others.push((server.to_string(), mark.writes_of_others()));
            }
            Err(error) => {
                tracing::debug!(%error, "nothing is kept: nobody knows what was written");
                return None;
            }
        }
    }
    Some((marks.join(" "), of_others))
}

impl CacheTicket {
    /// The key of results of exactly the same source and arguments.
    pub(crate) fn key(&self) -> &Digest {
        &self.key
    }
}

impl ResultCache {
    /// The cached result, if it exists and its inputs are unchanged.
    pub(crate) async fn get(&self, knowledge: &Knowledge, ticket: &CacheTicket) -> Option<CacheHit> {
        if let Some((hit, stamps)) = self.here(ticket) {
            if stamps_hold(&knowledge.tools, stamps).await {
                return Some(hit);
            }
            self.results.lock().unwrap_or_else(PoisonError::into_inner).pop(&ticket.key);
        }
        let key = ticket.stored()?;
        let seen = SeenWrites {
            process: knowledge.tools.epoch.process().clone(),
            of_others: ticket.of_others.clone(),
            drops: ticket.drops,
        };
        match knowledge.store.cached_result(&key, now_ms(), seen).await {
            Ok(found) => {
                let found = found?;
                still_holds(knowledge, &found.stamps).await.then(|| CacheHit {
                    result: found.result,
                    source: CacheSource {
                        kind: "capability".to_owned(),
                        age_ms: (now_ms() - found.at).max(0),
                        ahead: false,
                    },
                    run: None,
                })
            }
            Err(error) => {
                tracing::debug!(%error, "results of earlier runs could not be read");
                None
            }
        }
    }

    fn here(&self, ticket: &CacheTicket) -> Option<(CacheHit, Arc<[PathStamp]>)> {
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
        let hit = CacheHit {
            result: (*kept.result).to_owned(),
            source: CacheSource {
                kind: "execution".to_owned(),
                age_ms: i64::try_from(age.as_millis()).unwrap_or(i64::MAX),
                ahead: kept.run.is_none(),
            },
            run: kept.run.clone(),
        };
        Some((hit, Arc::clone(&kept.stamps)))
    }

    /// The number of invalidations. It also loads the cache settings of capabilities up to that point.
    async fn drops(&self, knowledge: &Knowledge) -> Option<i64> {
        let looked = async {
            let version = knowledge.store.data_version()?;
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((_, drops)) = heard.filter(|(seen, _)| *seen == version) {
                return Ok(drops);
            }
            // This reads one number, which takes less time than handing it to another thread.
            let drops = knowledge.store.cache_generation()?;
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

    /// The result of nearly the same intent with the same values.
    pub(crate) async fn find_similar(
        &self,
        knowledge: &Knowledge,
        ticket: &CacheTicket,
    ) -> Option<SimilarResult> {
        let (Some(capability), Some(asked)) = (ticket.capability.clone(), ticket.intent.clone()) else {
            return None;
        };
        let epoch = ticket.known_by();
        let kept =
            knowledge.store.results_cached_by_intent(&ticket.principal, &capability, &epoch, now_ms()).await;
        let kept = kept
            .inspect_err(|error| tracing::debug!(%error, "results of earlier runs could not be read"))
            .ok()?;
        let read = reuse::ReadIntent::new(&asked);
        let mut best: Option<SimilarResult> = None;
        for (intent, kept) in kept {
            let similarity = reuse::ReadIntent::new(&intent).similarity(&read);
            // Of equally similar ones, the latest wins.
            let better = best.as_ref().is_none_or(|best| similarity > best.similarity);
            if similarity > ALIKE
                && better
                && reuse::same_literals(&intent, &asked)
                && still_holds(knowledge, &kept.stamps).await
            {
                let age_ms = (now_ms() - kept.at).max(0);
                best = Some(SimilarResult { result: kept.result, intent, similarity, age_ms });
            }
        }
        best
    }

    /// Caches the result of a run, if nothing failed in it, nothing was written since it started and it contains no
    /// secret.
    pub(crate) fn put(
        &self,
        knowledge: &Knowledge,
        plan: &Plan,
        ticket: &CacheTicket,
        run: Option<&RunId>,
        report: &RunReport,
    ) -> bool {
        let Some(result) = report.result.as_ref().filter(|result| result.get().len() <= MOST_BYTES) else {
            return false;
        };
        let worked =
            !report.has_failures() && report.tasks.iter().all(|task| task.status == TaskStatus::Success);
        let steady = epoch(knowledge, plan).is_some_and(|(now, _)| now == ticket.epoch)
            && knowledge.store.cache_generation().is_ok_and(|drops| drops == ticket.drops);
        if !worked
            || !steady
            || report.contents().next().is_some()
            || knowledge.memory.sanitiser().with_secrets_in(&plan.arguments).clean_json(result).changed
        {
            return false;
        }
        let compared = knowledge.tools.builtin(FILES).is_some();
        let reads = report.tasks.iter().filter(|task| compared && of_files(&task.tool)).count();
        let Some(stamps) = ticket.witness.stamps(reads) else { return false };
        let at = now_ms();
        let until = match ticket.tools_ttl.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX)) {
            Some(time) => ticket.config.expires_at(at).min(at.saturating_add(time)),
            None => ticket.config.expires_at(at),
        };
        let written = serde_json::to_string(&stamps).unwrap_or_default();
        let kept = CacheEntry {
            epoch: ticket.epoch.clone(),
            drops: ticket.drops,
            since: Instant::now(),
            until,
            result: Arc::from(result.clone()),
            run: run.cloned(),
            stamps: stamps.into(),
        };
        self.results.lock().unwrap_or_else(PoisonError::into_inner).put(ticket.key.clone(), kept);
        let most = ticket.config.max_entries;
        let new = NewCachedResult {
            result,
            intent: None,
            stamps: &written,
            at,
            expires_at: until,
            max_entries: most,
        };
        if let Some(key) = ticket.stored() {
            store(knowledge, &key, &new);
        }
        if let (Some(key), Some(intent)) = (ticket.told(), &ticket.intent) {
            let expires_at = until.min(at.saturating_add(SHOWN_MS));
            store(knowledge, &key, &NewCachedResult { intent: Some(intent), expires_at, ..new });
        }
        true
    }

    /// Drops all results that this process caches; stored ones stay.
    pub(super) fn clear(&self) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Whether a tool id belongs to the file server.
fn of_files(tool: &str) -> bool {
    tool.split_once(':').is_some_and(|(server, _)| server == FILES)
}

/// Whether the files that a result was made from are unchanged.
pub(crate) async fn stamps_hold(tools: &Toolset, stamps: Arc<[PathStamp]>) -> bool {
    if stamps.is_empty() {
        return true;
    }
    match tools.builtin(FILES) {
        Some(files) => run_blocking(move || files.stamps_hold(&stamps)).await,
        None => false,
    }
}

/// Like [`stamps_hold`], for stored stamps.
async fn still_holds(knowledge: &Knowledge, written: &str) -> bool {
    match serde_json::from_str::<Vec<PathStamp>>(written) {
        Ok(stamps) => stamps_hold(&knowledge.tools, stamps.into()).await,
        Err(_) => false,
    }
}

impl CacheTicket {
    /// The key in the database; `None` unless the result is a capability's.
    fn stored(&self) -> Option<CacheKey> {
        Some(CacheKey {
            principal: self.principal.clone(),
            capability: self.capability.clone()?,
            parameters: self.parameters.clone()?,
            epoch: self.epoch.clone(),
        })
    }

    /// The key of the result that is shown for nearly the same intent.
    fn told(&self) -> Option<CacheKey> {
        Some(CacheKey {
            principal: self.principal.clone(),
            capability: self.capability.clone()?,
            parameters: Digest::of(format!("intent\n{}", self.intent.as_ref()?).as_bytes()),
            epoch: self.known_by(),
        })
    }

    /// Distinguishes results for intents from other epochs or with other tools.
    fn known_by(&self) -> String {
        format!("{} {}", self.epoch, self.definitions)
    }
}

fn store(knowledge: &Knowledge, key: &CacheKey, new: &NewCachedResult<'_>) {
    knowledge.store.cache_result(key, new, |stored| {
        if let Err(error) = stored {
            tracing::debug!(%error, "a result could not be kept");
        }
    });
}

/// Records the use of a cached result, for which nothing ran.
pub(crate) fn record_cache_use(knowledge: &Knowledge, plan: &Plan, principal: &Principal, id: &RunId) {
    let Some(learn) = &plan.learn else { return };
    let capability = learn.capability_id(principal);
    let trace = Trace {
        id: TraceId::of(id),
        workflow_id: id.clone(),
        principal: principal.clone(),
        session: plan.session.clone(),
        capability_id: Some(capability),
        plan_hash: plan.code_hash.clone(),
        intent: knowledge.memory.sanitiser().clean_text(&plan.intent).into_owned(),
        status: TraceStatus::Success,
        error: None,
        duration_ms: 0,
        created_at: now_ms(),
        parent_trace_id: None,
        learn_seq: None,
        priority: None,
        cached: true,
        exploratory: false,
        approved: false,
        body: TraceBody::default(),
    };
    let memory = RunMemory {
        procedure: None,
        activates: false,
        tools: Vec::new(),
        values: serde_json::Map::new(),
        result: None,
        golden: false,
        intent: IntentFit::Unchecked,
        excluded_from_learning: false,
        trace: Box::new(trace),
        nested: Vec::new(),
    };
    knowledge.store.store_memory(memory, Urgency::Soon, |stored| {
        if let Err(error) = stored {
            tracing::debug!(%error, "that a result was used again could not be recorded");
        }
    });
    knowledge.memory.notify_learning();
}
