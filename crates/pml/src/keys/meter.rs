//! Budgets of keys: counts what is done with each key, and says whether more is admitted.
//!
//! A gateway counts in memory, adds its counts to the database about once a second and reads back what all gateways
//! counted. A budget therefore holds across gateways, up to what the others did within that second. Only the number of
//! runs at once is exact: it is counted in the transaction that stores a run. The meter never waits and never sends
//! anything; who asks decides what to do about a refusal.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pml_model::{KeyId, Principal};
use pml_store::{ClientKey, CountedKeyUse, KeyUse, Store};
use tokio_util::sync::CancellationToken;

use super::ClientKeys;
use crate::clock::now_ms;
use crate::problem::{ErrorCode, Problem};

/// 1 s: how often the counts of keys with a budget are exchanged with the other gateways.
const EXCHANGE: Duration = Duration::from_secs(1);
/// The counts of keys without a budget are only shown, so they are stored once in so many exchanges.
const SELDOM: u32 = 10;
/// 60 s in milliseconds.
const MINUTE_MS: i64 = 60_000;
/// 60 s: when to ask again after a budget of a day, or of storage, is used up. Neither is free again at a known time.
const ASK_AGAIN_S: u64 = 60;
/// 2 s: when to ask again while too many runs are under way.
const RUN_AGAIN_S: u64 = 2;

/// The meters of all keys that were used in this process.
#[derive(Debug, Default)]
pub(super) struct KeyMeters {
    by_key: Mutex<HashMap<KeyId, KeyMeter>>,
}

#[derive(Debug)]
struct KeyMeter {
    principal: Principal,
    /// Counted here and not stored yet.
    pending: Counts,
    /// What all gateways had counted, this one included, when it was last read; and when that was.
    known: KeyUse,
    known_at: i64,
    /// The minute that `calls_here` belongs to.
    minute: i64,
    /// Calls of this minute that `known` does not contain.
    calls_here: u64,
    /// Runs of this process that are under way.
    runs: u32,
}

#[derive(Debug, Default)]
struct Counts {
    calls: u64,
    cpu_ms: u64,
    refused: u64,
    used_at: Option<i64>,
}

impl KeyMeter {
    fn new(key: &ClientKey) -> KeyMeter {
        KeyMeter {
            principal: key.principal.clone(),
            pending: Counts::default(),
            known: KeyUse::default(),
            known_at: 0,
            minute: 0,
            calls_here: 0,
            runs: 0,
        }
    }

    /// The calls of the current minute, in all gateways as far as known.
    fn calls_this_minute(&mut self, now: i64) -> u64 {
        let minute = now.div_euclid(MINUTE_MS);
        if minute != self.minute {
            (self.minute, self.calls_here) = (minute, 0);
        }
        let known =
            if self.known_at.div_euclid(MINUTE_MS) == minute { self.known.calls_this_minute } else { 0 };
        known + self.calls_here
    }
}

/// A run that counts as under way until this is dropped.
#[derive(Debug)]
pub(crate) struct RunAdmission {
    keys: Arc<ClientKeys>,
    key: KeyId,
    runs_at_once: Option<u32>,
}

impl RunAdmission {
    /// How many runs of the key may be under way. The transaction that stores the run decides; the meter only refuses
    /// earlier what is refused for certain.
    pub(crate) fn runs_at_once(&self) -> Option<u32> {
        self.runs_at_once
    }

    /// The refusal of a run because another gateway started one meanwhile.
    pub(crate) fn overtaken(&self, most: u32) -> Problem {
        if let Some(meter) = self.keys.meters.by_key.lock().get_mut(&self.key) {
            meter.pending.refused += 1;
        }
        too_many_runs(self.key, most)
    }
}

impl Drop for RunAdmission {
    fn drop(&mut self) {
        if let Some(meter) = self.keys.meters.by_key.lock().get_mut(&self.key) {
            meter.runs = meter.runs.saturating_sub(1);
        }
    }
}

impl ClientKeys {
    /// Notes that a key was used.
    pub(crate) fn note_use(&self, key: &ClientKey) {
        self.metered(key, |meter| meter.pending.used_at = Some(now_ms()));
    }

    /// Admits a run that is started with a key, if its budget allows one more.
    ///
    /// # Errors
    /// The key is not valid any more, or a budget is used up.
    pub(crate) async fn admit_run(
        self: &Arc<Self>,
        store: &Store,
        id: Option<KeyId>,
    ) -> Result<Option<RunAdmission>, Problem> {
        let Some(id) = id else { return Ok(None) };
        let key = self.require(id)?;
        let budget = &key.rights.budget;
        // The counts of the others are a second old at most.
        let under_way = match budget.runs_at_once {
            Some(_) => store.key_runs_under_way(id).await?,
            None => 0,
        };
        let now = now_ms();
        self.metered(&key, |meter| {
            let known = meter.known;
            let cpu_ms = known.cpu_ms_today + meter.pending.cpu_ms;
            let used_up = if let Some(most) =
                budget.runs_at_once.filter(|most| u64::from(meter.runs).max(under_way) >= u64::from(*most))
            {
                Some((runs_at_once(most), RUNS_AT_ONCE_HINT, RUN_AGAIN_S))
            } else if let Some(most) =
                budget.cpu_seconds_per_day.filter(|most| cpu_ms >= u64::from(*most) * 1_000)
            {
                Some((format!("{most} s of processor time in 24 hours"), "try again later", ASK_AGAIN_S))
            } else if let Some(most) = budget.stored_bytes.filter(|most| known.stored_bytes >= *most) {
                Some((
                    format!("{most} stored bytes"),
                    "records of old runs go by themselves; `runs.keep_results` in pml.toml says when",
                    ASK_AGAIN_S,
                ))
            } else if budget
                .calls_per_minute
                .is_some_and(|most| meter.calls_this_minute(now) >= u64::from(most))
            {
                let most = budget.calls_per_minute.unwrap_or_default();
                Some((format!("{most} calls per minute"), "wait for the next minute", rest_of_minute_s(now)))
            } else {
                None
            };
            match used_up {
                None => {
                    meter.runs += 1;
                    meter.pending.used_at = Some(now);
                    Ok(())
                }
                Some((what, hint, again_s)) => {
                    meter.pending.refused += 1;
                    meter.pending.used_at = Some(now);
                    Err(exhausted(id, &what, hint, again_s))
                }
            }
        })?;
        Ok(Some(RunAdmission { keys: Arc::clone(self), key: id, runs_at_once: budget.runs_at_once }))
    }

    /// Counts a call of a run, or says how long to wait until its budget allows one more.
    pub(crate) fn admit_call(&self, key: &ClientKey) -> Result<(), Duration> {
        let now = now_ms();
        self.metered(key, |meter| {
            if let Some(most) = key.rights.budget.calls_per_minute
                && meter.calls_this_minute(now) >= u64::from(most)
            {
                return Err(Duration::from_millis(rest_of_minute_ms(now)));
            }
            meter.calls_this_minute(now);
            meter.calls_here += 1;
            meter.pending.calls += 1;
            meter.pending.used_at = Some(now);
            Ok(())
        })
    }

    /// Counts a call that a client makes by name.
    ///
    /// # Errors
    /// The key is not valid any more, or its calls of this minute are used up.
    pub(crate) fn admit_direct_call(&self, id: Option<KeyId>) -> Result<(), Problem> {
        let Some(id) = id else { return Ok(()) };
        let key = self.require(id)?;
        self.admit_call(&key).map_err(|_| {
            let most = key.rights.budget.calls_per_minute.unwrap_or_default();
            self.metered(&key, |meter| meter.pending.refused += 1);
            let again_s = rest_of_minute_s(now_ms());
            exhausted(id, &format!("{most} calls per minute"), "wait for the next minute", again_s)
        })
    }

    /// Counts the processor time of a program.
    pub(crate) fn count_cpu(&self, id: Option<KeyId>, used: Duration) {
        let Some(key) = id.and_then(|id| self.get(id)) else { return };
        let used_ms = u64::try_from(used.as_millis()).unwrap_or(u64::MAX);
        self.metered(&key, |meter| {
            meter.pending.cpu_ms = meter.pending.cpu_ms.saturating_add(used_ms);
            meter.pending.used_at = Some(now_ms());
        });
    }

    fn metered<T>(&self, key: &ClientKey, change: impl FnOnce(&mut KeyMeter) -> T) -> T {
        change(self.meters.by_key.lock().entry(key.id).or_insert_with(|| KeyMeter::new(key)))
    }

    /// Stores what was counted, and reads what all gateways counted for keys with a budget.
    pub(crate) async fn exchange_counts(&self, store: &Store, all: bool) -> Result<(), Problem> {
        let has_budget = |id: &KeyId| self.get(*id).is_some_and(|key| !key.rights.budget.is_unlimited());
        let mut taken = Vec::new();
        for (id, meter) in self.meters.by_key.lock().iter_mut() {
            if let Some(used_at) = meter.pending.used_at.filter(|_| all || has_budget(id)) {
                let Counts { calls, cpu_ms, refused, .. } = std::mem::take(&mut meter.pending);
                let principal = meter.principal.clone();
                taken.push(CountedKeyUse { key: *id, principal, calls, cpu_ms, refused, used_at });
            }
        }
        if !taken.is_empty()
            && let Err(error) = store.add_key_use(taken.clone()).await
        {
            self.put_back(taken);
            return Err(error.into());
        }
        let metered: Vec<KeyId> = self.meters.by_key.lock().keys().copied().filter(has_budget).collect();
        for id in metered {
            let now = now_ms();
            let known = store.key_use(id, now).await?;
            if let Some(meter) = self.meters.by_key.lock().get_mut(&id) {
                // What was counted since it was stored is not known to the database.
                meter.calls_here = meter.pending.calls;
                (meter.known, meter.known_at) = (known, now);
            }
        }
        Ok(())
    }

    /// Counts again what could not be stored.
    fn put_back(&self, taken: Vec<CountedKeyUse>) {
        let mut meters = self.meters.by_key.lock();
        for used in taken {
            if let Some(meter) = meters.get_mut(&used.key) {
                meter.pending.calls += used.calls;
                meter.pending.cpu_ms += used.cpu_ms;
                meter.pending.refused += used.refused;
                meter.pending.used_at.get_or_insert(used.used_at);
            }
        }
    }
}

/// Exchanges the counts with the other gateways until the program ends, and once more then.
pub(crate) async fn exchange_counts_task(keys: Arc<ClientKeys>, store: Store, stop: CancellationToken) {
    for turn in 1_u32.. {
        let ending = tokio::select! {
            () = tokio::time::sleep(EXCHANGE) => false,
            () = stop.cancelled() => true,
        };
        if let Err(problem) = keys.exchange_counts(&store, ending || turn % SELDOM == 0).await {
            tracing::warn!(%problem, "what was done with keys could not be stored");
        }
        if ending {
            return;
        }
    }
}

fn rest_of_minute_ms(now: i64) -> u64 {
    u64::try_from(MINUTE_MS - now.rem_euclid(MINUTE_MS)).unwrap_or(1)
}

fn rest_of_minute_s(now: i64) -> u64 {
    rest_of_minute_ms(now).div_ceil(1_000)
}

const RUNS_AT_ONCE_HINT: &str = "wait until one ends, or end one";

fn runs_at_once(most: u32) -> String {
    format!("{most} runs at once")
}

fn too_many_runs(key: KeyId, most: u32) -> Problem {
    exhausted(key, &runs_at_once(most), RUNS_AT_ONCE_HINT, RUN_AGAIN_S)
}

fn exhausted(key: KeyId, what: &str, hint: &str, again_s: u64) -> Problem {
    Problem::new(ErrorCode::BudgetExhausted, format!("key {key} has a budget of {what}, which is used up"))
        .hint(format!("nothing was run; {hint}"))
        .retry_after(again_s)
}

#[cfg(test)]
mod tests {
    use pml_model::{KeyBudget, KeyRights, Role};

    use super::*;
    use crate::keys::{KeyRequest, create};

    async fn keys_with(budget: KeyBudget) -> (tempfile::TempDir, Store, Arc<ClientKeys>, Arc<ClientKey>) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path().join("pml.db")).await.unwrap();
        let rights = KeyRights { budget, ..KeyRights::of_role(Role::Agent) };
        let wanted = KeyRequest { rights, ..KeyRequest::named("desk") };
        let (_, made) = create(&store, Principal::local(), wanted).await.unwrap();
        let keys = Arc::<ClientKeys>::default();
        keys.refresh(&store).await.unwrap();
        let key = keys.get(made.id).unwrap();
        (dir, store, keys, key)
    }

    #[tokio::test]
    async fn a_run_counts_until_it_ends() {
        let (_dir, store, keys, key) =
            keys_with(KeyBudget { runs_at_once: Some(1), ..KeyBudget::default() }).await;
        let first = keys.admit_run(&store, Some(key.id)).await.unwrap();
        let refused = keys.admit_run(&store, Some(key.id)).await.unwrap_err();
        assert_eq!((refused.code, refused.retry_after_s), (ErrorCode::BudgetExhausted, Some(RUN_AGAIN_S)));
        drop(first);
        assert!(keys.admit_run(&store, Some(key.id)).await.is_ok());
        assert!(keys.admit_run(&store, None).await.unwrap().is_none(), "the token has no budget");
    }

    #[tokio::test]
    async fn two_gateways_share_the_calls_of_a_minute() {
        let budget = KeyBudget { calls_per_minute: Some(4), ..KeyBudget::default() };
        let (_dir, store, here, key) = keys_with(budget).await;
        let there = Arc::<ClientKeys>::default();
        there.refresh(&store).await.unwrap();
        let mut admitted = 0;
        for _ in 0..3 {
            for keys in [&here, &there] {
                admitted += u32::from(keys.admit_call(&key).is_ok());
                keys.exchange_counts(&store, false).await.unwrap();
                here.exchange_counts(&store, false).await.unwrap();
            }
        }
        // A new minute may have begun meanwhile; then some more were admitted.
        let used = store.key_use(key.id, now_ms()).await.unwrap();
        assert!(admitted >= 4 && used.calls_today == u64::from(admitted), "{admitted} {used:?}");
        if used.calls_this_minute == used.calls_today {
            assert_eq!(admitted, 4);
            let refused = there.admit_direct_call(Some(key.id)).unwrap_err();
            assert!(refused.retry_after_s.is_some_and(|after| (1..=60).contains(&after)), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn processor_time_is_counted_across_starts() {
        let budget = KeyBudget { cpu_seconds_per_day: Some(1), ..KeyBudget::default() };
        let (_dir, store, keys, key) = keys_with(budget).await;
        keys.count_cpu(Some(key.id), Duration::from_millis(999));
        assert!(keys.admit_run(&store, Some(key.id)).await.is_ok());
        keys.count_cpu(Some(key.id), Duration::from_millis(1));
        keys.exchange_counts(&store, false).await.unwrap();
        let later = Arc::<ClientKeys>::default();
        later.refresh(&store).await.unwrap();
        later.note_use(&key);
        later.exchange_counts(&store, false).await.unwrap();
        let refused = later.admit_run(&store, Some(key.id)).await.unwrap_err();
        assert!(refused.message.contains("1 s of processor time"), "{refused:?}");
    }
}
