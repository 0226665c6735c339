//! The session by which a gateway is known to be there, and by which it hears of changes.
//!
//! The session holds an advisory lock, which the server releases when the gateway ends, however it ends. It also
//! records every second that it is there: a session that was cut and is back in time costs no run. Others take a
//! gateway for ended when neither is left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::{StreamExt, stream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::{CONNECT, Failure, PgConnection, RUNTIME, SESSION, Server, wait};
use crate::{Error, ProcessIdentity};

/// How often a gateway records that it is there.
const BEAT: Duration = Duration::from_secs(1);

/// For how long that counts, in milliseconds: longer than one lost beat, and short enough that a killed gateway's runs
/// are taken over within five seconds.
const COUNTS_MS: i64 = 2_500;

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
            drop(wait(task));
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
        let begin = format!("{SESSION}; LISTEN pml_changes; SELECT pg_advisory_lock_shared({key})");
        client.batch_execute(&begin).await.map_err(|error| Failure::of(&error))?;
        self.beat(&client).await.map_err(|error| Failure::of(&error))?;
        Ok((client, served))
    }

    async fn beat(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        let sql = "INSERT INTO gateway (pid, started, seen_at)
            VALUES ($1, $2, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
            ON CONFLICT (pid, started) DO UPDATE SET seen_at = excluded.seen_at RETURNING seen_at";
        let before = now_ms();
        let row = client.query_one(sql, &[&i64::from(self.process.pid), &self.process.started]).await?;
        let here = before + (now_ms() - before) / 2;
        self.server.clock_ahead_ms.store(row.get::<_, i64>(0) - here, Ordering::Relaxed);
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
    /// Whether a gateway may still be there.
    pub(crate) fn may_be_alive(&self, process: &ProcessIdentity) -> rusqlite::Result<bool> {
        let key = lock_key(process).cast_unsigned();
        let (high, low) = ((key >> 32).cast_signed(), (key & 0xffff_ffff).cast_signed());
        let sql =
            "SELECT EXISTS (SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
                       WHERE locktype = 'advisory' AND datname = current_database() AND objsubid = 1
                       AND classid::bigint = ?1 AND objid::bigint = ?2)
                OR EXISTS (SELECT 1 FROM gateway WHERE pid = ?3 AND started = ?4
                       AND seen_at > (extract(epoch FROM clock_timestamp()) * 1000)::bigint - ?5)";
        let pid = i64::from(process.pid);
        let mut rows = self.query(sql, &[&high, &low, &pid, &process.started, &COUNTS_MS])?;
        Ok(matches!(
            rows.next().as_ref().map(|row| row.value(0)),
            Some(Ok(rusqlite::types::Value::Integer(1)))
        ))
    }
}
