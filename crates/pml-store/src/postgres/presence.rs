//! The session by which a gateway is known to be there, and by which it hears of changes.
//!
//! The session holds an advisory lock, which the server releases when the gateway ends, however it ends. It also
//! records every second that it is there: a session that was cut and is back in time costs no run. Others take a
//! gateway for ended when neither is left.
//!
//! When the server restarts or the network fails, all sessions are cut at once, and nobody can renew a lease. So for
//! some seconds after that, every gateway that was there before counts as one that may return.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, stream};
use rusqlite::types::Value;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::bulk::USE_LOCK;
use super::{CONNECT, Failure, PgConnection, RUNTIME, SESSION, Server, wait_unless};
use crate::{Error, ProcessIdentity};

/// How often a gateway records that it is there.
const BEAT: Duration = Duration::from_secs(1);

/// For how long that counts, in milliseconds: longer than one lost beat, and short enough that a killed gateway's runs
/// are taken over within five seconds.
const COUNTS_MS: i64 = 2_500;

/// How long opening a session may take: longer than it may wait for whoever copies the database.
const JOINING: Duration = Duration::from_secs(40);

/// For how long gateways may return after the server was away: longer than the pauses between their attempts to
/// connect, with the time that a connection may take.
const RETURN: Duration = Duration::from_secs(8);

/// Whether a process that uses the database is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnerPresence {
    /// It has ended.
    Gone,
    /// It may be alive. What it holds is its own until its lease lapses.
    Present,
    /// The database was away a moment ago. Until the process can have come back, its leases do not lapse.
    MayReturn,
}

/// What this process knows of its own session.
#[derive(Debug, Default)]
pub(super) struct OwnSession {
    process: Option<ProcessIdentity>,
    /// When it last recorded that it is there; `None` while the session is cut.
    seen_at: Option<Instant>,
    /// When the session was cut last, or the server answered again after that.
    back_at: Option<Instant>,
    /// When the server answered last.
    answered_at: Option<Instant>,
    /// How long the last record took.
    answer_time: Duration,
}

impl OwnSession {
    /// The server was away, from the view of this process.
    pub(super) fn note_outage(&mut self) {
        self.seen_at = None;
        self.back_at = Some(Instant::now());
    }

    /// Whether the session is there, and how long the server took to answer it last.
    pub(super) fn health(&self) -> (bool, Duration) {
        (self.seen_at.is_some_and(|seen| seen.elapsed() < CONNECT), self.answer_time)
    }

    /// Whether the server has not answered for so long. A session that was never opened tells nothing.
    pub(super) fn is_silent(&self, limit: Duration) -> bool {
        self.answered_at.is_some_and(|at| at.elapsed() >= limit)
    }

    /// Whether the session was cut after `moment`, and other connections most likely with it.
    pub(super) fn was_cut_after(&self, moment: Instant) -> bool {
        self.back_at.is_some_and(|at| at > moment)
    }

    fn note_beat(&mut self, answer_time: Duration) {
        self.answer_time = answer_time;
        let now = Instant::now();
        let was_away = self.seen_at.is_some_and(|seen| now - seen >= CONNECT);
        let is_back = self.seen_at.is_none() && self.back_at.is_some();
        if was_away || is_back {
            self.back_at = Some(now);
        }
        (self.seen_at, self.answered_at) = (Some(now), Some(now));
    }

    /// Whether this process can tell which gateways have ended. One that others do not see either cannot.
    fn can_judge(&self) -> bool {
        self.seen_at.is_some_and(|seen| seen.elapsed() < CONNECT)
            && self.back_at.is_none_or(|back| back.elapsed() >= RETURN)
    }
}

/// A session of this process; dropping it ends it.
pub(crate) struct Presence {
    news: watch::Receiver<u64>,
    end: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

impl Presence {
    /// Opens the session. Returns once other gateways can see it.
    pub(crate) fn open(server: &Arc<Server>, process: ProcessIdentity) -> Result<Presence, Error> {
        let (send_news, news) = watch::channel(0);
        let (end, ended) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
        server.own_session().process = Some(process.clone());
        let session = Session { server: Arc::clone(server), process, news: send_news };
        let task = RUNTIME.spawn(session.keep(ready, ended));
        match is_ready.recv() {
            Ok(Ok(())) => Ok(Presence { news, end: Some(end), task: Some(task) }),
            Ok(Err(failure)) => Err(Error::sqlite(server.name(), &failure.into())),
            Err(_) => Err(Error::sqlite(server.name(), &Failure::silent().into())),
        }
    }

    /// Changes whenever any gateway may have committed anything.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.news.clone()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        if let (Some(end), Some(task)) = (self.end.take(), self.task.take()) {
            // A task that has ended already needs no word.
            end.send(()).ok();
            // Bounded by the time that the server may take for the last statement.
            drop(wait_unless(task, || false));
        }
    }
}

struct Session {
    server: Arc<Server>,
    process: ProcessIdentity,
    news: watch::Sender<u64>,
}

impl Session {
    async fn keep(
        self,
        ready: std::sync::mpsc::SyncSender<Result<(), Failure>>,
        mut ended: oneshot::Receiver<()>,
    ) {
        let mut ready = Some(ready);
        let mut pause = Duration::from_millis(50);
        loop {
            let opened = tokio::select! {
                opened = self.open() => opened,
                _ = &mut ended => return,
            };
            let (client, mut lost) = match opened {
                Ok(opened) => opened,
                Err(failure) => {
                    if let Some(ready) = ready.take() {
                        return drop(ready.send(Err(failure)));
                    }
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(BEAT);
                    continue;
                }
            };
            pause = Duration::from_millis(50);
            if let Some(ready) = ready.take() {
                drop(ready.send(Ok(())));
            }
            // Whatever happened while nobody listened is news too.
            self.news.send_modify(|count| *count += 1);
            let mut beat = tokio::time::interval(BEAT);
            loop {
                tokio::select! {
                    _ = &mut lost => break,
                    _ = beat.tick() => {
                        // A server that does not answer is as good as gone; the session is opened anew.
                        match tokio::time::timeout(CONNECT, self.beat(&client)).await {
                            Ok(Ok(())) => {}
                            Ok(Err(_)) | Err(_) => break,
                        }
                    },
                    _ = &mut ended => {
                        let gone = "DELETE FROM gateway WHERE pid = $1 AND started = $2";
                        let (pid, started) = (i64::from(self.process.pid), &self.process.started);
                        let last = async { client.execute(gone, &[&pid, started]).await };
                        return drop(tokio::time::timeout(CONNECT, last).await);
                    }
                }
            }
            self.server.own_session().note_outage();
            tracing::warn!("the session with `{}` was cut; connecting again", self.server.name().display());
        }
    }

    async fn open(&self) -> Result<(Client, JoinHandle<()>), Failure> {
        let connecting = tokio::time::timeout(CONNECT, self.server.config.connect(NoTls));
        let (client, mut connection) =
            connecting.await.map_err(|_| Failure::silent())?.map_err(|error| Failure::of(&error))?;
        let news = self.news.clone();
        let served = tokio::spawn(async move {
            let mut messages = stream::poll_fn(move |context| connection.poll_message(context));
            while let Some(Ok(message)) = messages.next().await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    news.send_modify(|count| *count += 1);
                }
            }
        });
        let key = lock_key(&self.process);
        // Who restores or copies the database holds the second lock alone.
        let begin = format!(
            "{SESSION}; LISTEN pml_changes; SELECT pg_advisory_lock_shared({key});
             SELECT pg_advisory_lock_shared({USE_LOCK}, hashtext(current_schema()))"
        );
        let begun = tokio::time::timeout(JOINING, client.batch_execute(&begin)).await;
        begun.map_err(|_| Failure::silent())?.map_err(|error| Failure::of(&error))?;
        self.beat(&client).await.map_err(|error| Failure::of(&error))?;
        Ok((client, served))
    }

    async fn beat(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let sql = "INSERT INTO gateway (pid, started, seen_at)
            VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
            ON CONFLICT (pid, started) DO UPDATE SET seen_at = excluded.seen_at RETURNING seen_at";
        let (before, asked_at) = (now_ms(), Instant::now());
        let row = client.query_one(sql, &[&i64::from(self.process.pid), &self.process.started]).await?;
        let here = before + (now_ms() - before) / 2;
        self.server.compare_clock(row.get::<_, i64>(0) - here);
        self.server.own_session().note_beat(asked_at.elapsed());
        Ok(())
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The advisory lock of a process.
fn lock_key(process: &ProcessIdentity) -> i64 {
    let digest = pml_model::Digest::of(format!("{} {}", process.pid, process.started).as_bytes());
    let bytes = digest.as_str().get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    bytes.unwrap_or_default().cast_signed()
}

impl PgConnection {
    /// Whether a gateway is there.
    pub(crate) fn owner_presence(&self, process: &ProcessIdentity) -> rusqlite::Result<OwnerPresence> {
        let (is_own, can_judge) = {
            let own = self.server().own_session();
            (own.process.as_ref() == Some(process), own.can_judge())
        };
        if is_own {
            return Ok(if can_judge { OwnerPresence::Present } else { OwnerPresence::MayReturn });
        }
        let key = lock_key(process).cast_unsigned();
        let (high, low) = ((key >> 32).cast_signed(), (key & 0xffff_ffff).cast_signed());
        // `seen_at` of a gateway that ended properly is gone.
        let sql = "SELECT EXISTS (SELECT 1 FROM pg_locks
                    JOIN pg_database ON pg_database.oid = pg_locks.database
                    WHERE locktype = 'advisory' AND datname = current_database() AND objsubid = 1
                    AND classid::bigint = ?1 AND objid::bigint = ?2),
                (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
                (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint,
                (SELECT seen_at FROM gateway WHERE pid = ?3 AND started = ?4)";
        let pid = i64::from(process.pid);
        let mut rows = self.query(sql, &[&high, &low, &pid, &process.started])?;
        let row = rows.next().ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let holds_lock = *row.value(0)? == Value::Integer(1);
        let (Value::Integer(now), Value::Integer(started_at)) = (row.value(1)?, row.value(2)?) else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let Value::Integer(seen_at) = row.value(3)? else {
            return Ok(if holds_lock { OwnerPresence::Present } else { OwnerPresence::Gone });
        };
        let returns_ms = i64::try_from(RETURN.as_millis()).unwrap_or(i64::MAX);
        let server_is_new = seen_at < started_at && now - started_at < returns_ms;
        Ok(if !can_judge || server_is_new {
            OwnerPresence::MayReturn
        } else if holds_lock || *seen_at > now - COUNTS_MS {
            OwnerPresence::Present
        } else {
            OwnerPresence::Gone
        })
    }
}
