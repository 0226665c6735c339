//! Questions about runs.

use pml_model::question::Question;
use pml_model::{Digest, Principal, RunId};

use super::Store;
use crate::{
    Answered, Asking, BlockingStore, Claim, Error, Filter, Found, Heard, Lease, NewAnswer, NewRun, OpenLimit,
    Opened, Process, Recorded, RunRow, Standing,
};

impl Store {
    /// The runs of all principals that ask something nobody has answered, the one made first comes
    /// first. What cannot be opened is left out.
    ///
    /// # Errors
    /// Those of [`BlockingStore::asking`].
    pub async fn asking(&self) -> Result<Vec<Asking>, Error> {
        self.ask(BlockingStore::asking).await
    }

    /// Whose a run is.
    ///
    /// # Errors
    /// Those of [`BlockingStore::whose`].
    pub async fn whose(&self, id: &RunId) -> Result<Option<Principal>, Error> {
        let id = id.clone();
        self.ask(move |store| store.whose(&id)).await
    }

    /// Answers what a run asks, also while a process works on it. The first answer is the answer;
    /// what comes with it, rules included, is stored only with that one, in the same transaction. A run that may not
    /// wait any longer asks nothing, and a question that showed another definition of a tool is answered by nobody.
    ///
    /// # Errors
    /// Those of [`BlockingStore::answer`].
    pub async fn answer(&self, principal: &Principal, id: &RunId, new: NewAnswer) -> Result<Answered, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.answer(&principal, &id, new)).await
    }

    /// Notes that a run which is not over is to wait before its next layer, whichever process works on it.
    ///
    /// # Errors
    /// Those of [`BlockingStore::want_pause`].
    pub async fn want_pause(&self, principal: &Principal, id: &RunId) -> Result<(), Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.want_pause(&principal, &id)).await
    }

    /// Takes a run for `owner`, if nobody works on it: it was given up, its owner has ended, or the
    /// lease has lapsed. A run that is taken is running.
    ///
    /// # Errors
    /// Those of [`BlockingStore::claim`].
    pub async fn claim(
        &self,
        principal: &Principal,
        id: &RunId,
        owner: &Process,
        lease_until: i64,
        now: i64,
    ) -> Result<Claim, Error> {
        let (principal, id, owner) = (principal.clone(), id.clone(), owner.clone());
        self.ask(move |store| store.claim(&principal, &id, &owner, lease_until, now)).await
    }

    /// Keeps runs until `until`, and says which of them are ours no longer.
    ///
    /// # Errors
    /// Those of [`BlockingStore::renew`].
    pub async fn renew(&self, leases: &[Lease], until: i64) -> Result<Vec<RunId>, Error> {
        let leases = leases.to_vec();
        self.ask(move |store| store.renew(&leases, until)).await
    }

    /// Releases the runs whose owners have ended or let their leases lapse, and gives them. Those that
    /// were running are interrupted from now on; each is given to one process alone.
    ///
    /// # Errors
    /// Those of [`BlockingStore::interrupt_orphans`].
    pub async fn interrupt_orphans(&self, now: i64) -> Result<Vec<Found>, Error> {
        self.ask(move |store| store.interrupt_orphans(now)).await
    }

    /// The runs that can be worked on: interrupted ones, and waiting ones whose time has come or whose
    /// question is answered.
    ///
    /// # Errors
    /// Those of [`BlockingStore::due`].
    pub async fn due(&self, now: i64) -> Result<Vec<Found>, Error> {
        self.ask(move |store| store.due(now)).await
    }

    /// When the next run that nobody works on is due or has waited for too long.
    ///
    /// # Errors
    /// Those of [`BlockingStore::next_wake`].
    pub async fn next_wake(&self) -> Result<Option<i64>, Error> {
        self.ask(BlockingStore::next_wake).await
    }

    /// Ends the runs that nobody works on and that may not wait any longer, and gives them.
    ///
    /// # Errors
    /// Those of [`BlockingStore::expire`].
    pub async fn expire(&self, now: i64) -> Result<Vec<Found>, Error> {
        self.ask(move |store| store.expire(now)).await
    }

    /// Makes a run that waits for the answer to `question` before it begins, unless the same request still waits for
    /// one or too many questions are open. All of that is one transaction, so that of several equal requests one makes
    /// a run, in whichever process.
    ///
    /// # Errors
    /// Those of [`BlockingStore::create_asking_run`].
    pub async fn create_asking_run(
        &self,
        run: NewRun,
        question: (String, Question),
        limit: OpenLimit,
    ) -> Result<Opened, Error> {
        self.ask(move |store| store.create_asking_run(run, question, limit)).await
    }

    /// The run that the same request made and whose question is open.
    ///
    /// # Errors
    /// Those of [`BlockingStore::asked_already`].
    pub async fn asked_already(
        &self,
        principal: &Principal,
        request_mark: &str,
        now: i64,
    ) -> Result<Option<RunId>, Error> {
        let (principal, request_mark) = (principal.clone(), request_mark.to_owned());
        self.ask(move |store| store.asked_already(&principal, &request_mark, now)).await
    }

    /// The runs of a principal whose approvals are open, each with its session; the oldest comes first.
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

    /// Destroys the keys of the runs that ended `keep_ms` ago or earlier, with all that they sealed,
    /// and says how many runs that were. Their rows stay. Procedures that never worked and were not run
    /// for 30 days go too.
    ///
    /// # Errors
    /// Those of [`BlockingStore::purge`].
    pub async fn purge(&self, now: i64, keep_ms: i64) -> Result<usize, Error> {
        self.ask(move |store| store.purge(now, keep_ms)).await
    }

    /// A run, without what is sealed.
    ///
    /// # Errors
    /// Those of [`BlockingStore::run`].
    pub async fn run(&self, principal: &Principal, id: &RunId) -> Result<Option<RunRow>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.run(&principal, &id)).await
    }

    /// The principal's runs, the latest first.
    ///
    /// # Errors
    /// Those of [`BlockingStore::runs`].
    pub async fn runs(&self, principal: &Principal, filter: &Filter) -> Result<Vec<RunRow>, Error> {
        let (principal, filter) = (principal.clone(), filter.clone());
        self.ask(move |store| store.runs(&principal, &filter)).await
    }

    /// The run that a request with this idempotency key made within the last 24 hours, and the digest
    /// of that request.
    ///
    /// # Errors
    /// Those of [`BlockingStore::by_idempotency_key`].
    pub async fn by_idempotency_key(
        &self,
        principal: &Principal,
        key: &str,
        now: i64,
    ) -> Result<Option<(RunId, Digest)>, Error> {
        let (principal, key) = (principal.clone(), key.to_owned());
        self.ask(move |store| store.by_idempotency_key(&principal, &key, now)).await
    }

    /// A run with what it asks and what came of it. Of a run whose records are no longer kept, only
    /// the row is left.
    ///
    /// # Errors
    /// Those of [`BlockingStore::standing`].
    pub async fn standing(&self, principal: &Principal, id: &RunId) -> Result<Option<Standing>, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.standing(&principal, &id)).await
    }

    /// All that is stored of a run.
    ///
    /// # Errors
    /// Those of [`BlockingStore::load`].
    pub async fn load(&self, principal: &Principal, id: &RunId) -> Result<Recorded, Error> {
        let (principal, id) = (principal.clone(), id.clone());
        self.ask(move |store| store.load(&principal, &id)).await
    }

    /// What became of what the run asks now, if anything did.
    ///
    /// # Errors
    /// Those of [`BlockingStore::heard`].
    pub async fn heard(&self, lease: &Lease) -> Result<Option<Heard>, Error> {
        let lease = lease.clone();
        self.ask(move |store| store.heard(&lease)).await
    }

    /// Whether somebody wants the run to wait before its next layer.
    ///
    /// # Errors
    /// Those of [`BlockingStore::is_pause_wanted`].
    pub async fn is_pause_wanted(&self, lease: &Lease) -> Result<bool, Error> {
        let lease = lease.clone();
        self.ask(move |store| store.is_pause_wanted(&lease)).await
    }
}
