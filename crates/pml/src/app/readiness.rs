//! Whether the store can be read and written now.
//!
//! Anybody may ask at any time, and a store that does not answer blocks a thread for each question. So there is one
//! question at a time, and everybody who asks meanwhile waits for its answer, each for a moment only.

use std::time::Duration;

use parking_lot::Mutex;
use pml_store::{Error, Store};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long the store may take. Probes that get no answer within a second or two count PML as lost.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is known of the question that was asked last.
type Answer = Option<Result<(), Error>>;

/// The question that is being asked, if any.
#[derive(Default)]
pub(crate) struct ReadinessProbe {
    asked: Mutex<AskedQuestion>,
}

#[derive(Default)]
struct AskedQuestion {
    answer: Option<watch::Receiver<Answer>>,
    /// The task that asks. It ends with the program.
    task: JoinSet<()>,
}

impl ReadinessProbe {
    /// Whether the store answers; `None` if it has not within a second.
    pub(crate) async fn ask(&self, store: &Store) -> Answer {
        let mut answer = self.join_or_begin(store);
        let answered = timeout(PATIENCE, answer.wait_for(Option::is_some)).await;
        // A question whose task is gone has no answer either.
        answered.ok()?.ok()?.clone()
    }

    fn join_or_begin(&self, store: &Store) -> watch::Receiver<Answer> {
        let mut asked = self.asked.lock();
        // A sender that is gone without an answer has no task behind it any more.
        let is_open =
            |answer: &watch::Receiver<Answer>| answer.borrow().is_none() && answer.has_changed().is_ok();
        if let Some(open) = asked.answer.as_ref().filter(|answer| is_open(answer)) {
            return open.clone();
        }
        let (reply, answer) = watch::channel(None);
        let store = store.clone();
        // Those that have ended, of which nothing is to be known.
        while asked.task.try_join_next().is_some() {}
        asked.task.spawn(async move {
            let outcome = check(&store).await;
            reply.send_replace(Some(outcome));
        });
        asked.answer.insert(answer).clone()
    }
}

/// Reads, and begins to write: a database that another process holds can still be read, but no run can be started.
async fn check(store: &Store) -> Result<(), Error> {
    store.catalogue_version().await?;
    store.flush().await
}
