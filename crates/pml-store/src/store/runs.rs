//! Runs and their journals.

use pml_model::question::Question;
use pml_model::{Digest, Principal, RunId};

use super::Store;
use crate::{
    AnswerOutcome, AskingMark, AskingRun, AskingRunOutcome, BlockingStore, CallEntries, Claim, Error,
    FollowedRun, Lease, ListedRun, NewAnswer, NewRun, OpenApprovalLimit, OpenRuns, ProcessIdentity,
    QuestionOutcome, RunHistory, RunListQuery, RunNews, RunOverview, RunQuery, RunRecord, RunRow,
    UnattendedRun,
};

impl Store {
    /// The runs of a principal with an unanswered question, oldest first. Questions that cannot be opened are left
    /// out.
    ///
    /// # Errors
    /// Those of [`BlockingStore::asking_runs`].
    pub async fn asking_runs(&self, principal: &Principal) -> Result<Vec<AskingRun>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.asking_runs(&principal)).await
    }

    /// Whether the questions of [`Store::asking_runs`] are the same as before, without opening any.
    ///
    /// # Errors
    /// Those of [`BlockingStore::asking_mark`].
    pub async fn asking_mark(&self, principal: &Principal) -> Result<AskingMark, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.asking_mark(&principal)).await
    }

    /// The principal that a run belongs to; `None` if there is no such run.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_principal`].
    pub async fn run_principal(&self, id: &RunId) -> Result<Option<Principal>, Error> {
        let id = id.clone();
        self.ask(move |store| store.run_principal(&id)).await
    }

    /// Stores the answer to a run's question, also while a process executes the run. The first answer counts.
    /// Everything that comes with it, rules included, is stored only with the first answer, in the same transaction.
    /// An expired run asks nothing, and a question that showed another definition of a tool cannot be answered.
    ///
    /// # Errors
    /// Those of [`BlockingStore::store_answer`].
    pub async fn store_answer(
        &self,
        principal: &Principal,
        id: &RunId,
        new: NewAnswer,
    ) -> Result<AnswerOutcome, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.store_answer(&principal, &id, new)).await
    }

    /// Requests that a run which has not ended pauses before its next layer, in whichever process it runs.
    ///
    /// # Errors
    /// Those of [`BlockingStore::request_pause`].
    pub async fn request_pause(&self, principal: &Principal, id: &RunId) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.request_pause(&principal, &id)).await
    }

    /// Claims a run for `owner` if no process works on it: it was released, its owner has ended, or its lease has
    /// lapsed. A claimed run is running.
    ///
    /// # Errors
    /// Those of [`BlockingStore::claim_run`].
    pub async fn claim_run(
        &self,
        principal: &Principal,
        id: &RunId,
        owner: &ProcessIdentity,
        lease_until: i64,
        now: i64,
    ) -> Result<Claim, Error> {
        let (principal, id, owner) = (principal.clone(), id.clone(), owner.clone());
        self.ask(move |store| store.claim_run(&principal, &id, &owner, lease_until, now)).await
    }

    /// Extends leases to `until` and returns the runs whose lease was lost.
    ///
    /// # Errors
    /// Those of [`BlockingStore::renew_leases`].
    pub async fn renew_leases(&self, leases: &[Lease], until: i64) -> Result<Vec<RunId>, Error> {
        let leases = leases.to_vec();
        self.ask(move |store| store.renew_leases(&leases, until)).await
    }

    /// Releases the runs whose owners have ended or let their leases lapse, and returns them. Those that were running
    /// become interrupted. Each run is returned to exactly one process.
    ///
    /// # Errors
    /// Those of [`BlockingStore::release_orphaned_runs`].
    pub async fn release_orphaned_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        self.ask(move |store| store.release_orphaned_runs(now)).await
    }

    /// The runs that can be resumed: interrupted ones, and waiting ones that are due or whose question is answered.
    ///
    /// # Errors
    /// Those of [`BlockingStore::due_runs`].
    pub async fn due_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        self.ask(move |store| store.due_runs(now)).await
    }

    /// When the next unowned run is due or expires; `None` if there is none.
    ///
    /// # Errors
    /// Those of [`BlockingStore::next_wake_at`].
    pub async fn next_wake_at(&self) -> Result<Option<i64>, Error> {
        self.ask(BlockingStore::next_wake_at).await
    }

    /// Ends the unowned runs that have expired, and returns them.
    ///
    /// # Errors
    /// Those of [`BlockingStore::expire_runs`].
    pub async fn expire_runs(&self, now: i64) -> Result<Vec<UnattendedRun>, Error> {
        self.ask(move |store| store.expire_runs(now)).await
    }

    /// Creates a run that waits for the answer to `question` before it begins, unless the same request still waits for
    /// an answer or too many questions are open. The check and the insertion share a transaction, so several equal
    /// requests, in any process, create one run.
    ///
    /// # Errors
    /// Those of [`BlockingStore::create_asking_run`].
    pub async fn create_asking_run(
        &self,
        run: NewRun,
        question: (String, Question),
        limit: OpenApprovalLimit,
    ) -> Result<AskingRunOutcome, Error> {
        self.ask(move |store| store.create_asking_run(run, question, limit)).await
    }

    /// The run that the same request created, if its question is still open.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_of_open_request`].
    pub async fn run_of_open_request(
        &self,
        principal: &Principal,
        request_mark: &str,
        now: i64,
    ) -> Result<Option<RunId>, Error> {
        let (principal, request_mark) = (principal.clone(), request_mark.to_owned());
        self.ask(move |store| store.run_of_open_request(&principal, &request_mark, now)).await
    }

    /// The runs of a principal with open approvals, each with its session; oldest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::open_approvals`].
    pub async fn open_approvals(
        &self,
        principal: &Principal,
        now: i64,
    ) -> Result<Vec<(RunId, String)>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.open_approvals(&principal, now)).await
    }

    /// Destroys the keys and the sealed bodies of the runs that ended `keep_ms` ago or earlier, and returns the number
    /// of runs. Their rows stay. Procedures that never worked and were not run for 30 days are deleted too.
    ///
    /// # Errors
    /// Those of [`BlockingStore::purge_ended_runs`].
    pub async fn purge_ended_runs(&self, now: i64, keep_ms: i64) -> Result<usize, Error> {
        self.ask(move |store| store.purge_ended_runs(now, keep_ms)).await
    }

    /// See [`BlockingStore::open_runs`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::open_runs`].
    pub async fn open_runs(&self) -> Result<OpenRuns, Error> {
        self.ask(BlockingStore::open_runs).await
    }

    /// See [`BlockingStore::runs_after`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::runs_after`].
    pub async fn runs_after(&self, number: i64) -> Result<Vec<(i64, RunRow)>, Error> {
        self.ask(move |store| store.runs_after(number)).await
    }

    /// See [`BlockingStore::runs_since`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::runs_since`].
    pub async fn runs_since(
        &self,
        principal: &Principal,
        since: i64,
        most: (usize, u64),
    ) -> Result<Option<Vec<(i64, RunRow)>>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.runs_since(&principal, since, most)).await
    }

    /// See [`BlockingStore::run_news`].
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_news`].
    pub async fn run_news(&self, followed: Vec<FollowedRun>) -> Result<Vec<RunNews>, Error> {
        self.ask(move |store| store.run_news(&followed)).await
    }

    /// A run without its sealed bodies.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run`].
    pub async fn run(&self, principal: &Principal, id: &RunId) -> Result<Option<RunRow>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run(&principal, &id)).await
    }

    /// The principal's runs, latest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::runs`].
    pub async fn runs(&self, principal: &Principal, filter: &RunQuery) -> Result<Vec<RunRow>, Error> {
        let (principal, filter) = (principal.clone(), filter.clone());
        self.ask(move |store| store.runs(&principal, &filter)).await
    }

    /// The principal's runs that match a filter, latest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::list_runs`].
    pub async fn list_runs(
        &self,
        principal: &Principal,
        filter: RunListQuery,
    ) -> Result<Vec<ListedRun>, Error> {
        let principal = principal.clone();
        self.ask(move |store| store.list_runs(&principal, &filter)).await
    }

    /// A run with everything but its outcome and its journal; `None` if the principal has no such run.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_history`].
    pub async fn run_history(&self, principal: &Principal, id: &RunId) -> Result<Option<RunHistory>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run_history(&principal, &id)).await
    }

    /// The plan of a run; `None` once its records are purged.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_plan`].
    pub async fn run_plan(&self, principal: &Principal, id: &RunId) -> Result<Option<Vec<u8>>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run_plan(&principal, &id)).await
    }

    /// The outcome of a run; `None` until it has one, and once its records are purged.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_outcome`].
    pub async fn run_outcome(&self, principal: &Principal, id: &RunId) -> Result<Option<Vec<u8>>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run_outcome(&principal, &id)).await
    }

    /// The journal entries of the calls after number `after`, at most `limit` calls.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_calls`].
    pub async fn run_calls(
        &self,
        principal: &Principal,
        id: &RunId,
        after: u32,
        limit: u32,
    ) -> Result<CallEntries, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run_calls(&principal, &id, after, limit)).await
    }

    /// The run that a request with this idempotency key created within the last 24 hours, and the digest of that
    /// request.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_by_idempotency_key`].
    pub async fn run_by_idempotency_key(
        &self,
        principal: &Principal,
        key: &str,
        now: i64,
    ) -> Result<Option<(RunId, Digest)>, Error> {
        let (principal, key) = (principal.clone(), key.to_owned());
        self.ask(move |store| store.run_by_idempotency_key(&principal, &key, now)).await
    }

    /// A run with its question and its outcome. Once the records of a run are purged, only the row is left.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run_overview`].
    pub async fn run_overview(
        &self,
        principal: &Principal,
        id: &RunId,
    ) -> Result<Option<RunOverview>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run_overview(&principal, &id)).await
    }

    /// Everything that is stored of a run.
    ///
    /// # Errors
    /// Those of [`BlockingStore::load_run`].
    pub async fn load_run(&self, principal: &Principal, id: &RunId) -> Result<RunRecord, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.load_run(&principal, &id)).await
    }

    /// What happened to the open question of the run; `None` while nothing has.
    ///
    /// # Errors
    /// Those of [`BlockingStore::question_outcome`].
    pub async fn question_outcome(&self, lease: &Lease) -> Result<Option<QuestionOutcome>, Error> {
        let lease = lease.clone();
        self.ask(move |store| store.question_outcome(&lease)).await
    }

    /// Whether a pause of the run before its next layer is requested.
    ///
    /// # Errors
    /// Those of [`BlockingStore::is_pause_requested`].
    pub async fn is_pause_requested(&self, lease: &Lease) -> Result<bool, Error> {
        let lease = lease.clone();
        self.ask(move |store| store.is_pause_requested(&lease)).await
    }
}
