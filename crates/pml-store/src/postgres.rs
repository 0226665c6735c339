//! PostgreSQL as the database: connecting, and what its dialect and its sessions require.
//!
//! Queries block the thread that asks. Connections are served by one thread of this module, so that they can be asked
//! from any thread, also from one of an asynchronous runtime.

mod bulk;
mod check;
mod connection;
mod dialect;
mod migrate;
mod presence;
mod schema;
mod value;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use ring::rand::SecureRandom;
use tokio::runtime::Runtime;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};

pub(crate) use bulk::BulkConnection;
pub(crate) use connection::{PgConnection, PgRow, PgRows};
use presence::OwnSession;
pub(crate) use presence::{OwnerPresence, Presence};

use crate::Error;
use crate::failure::{Failure, innermost};
use crate::vouch::RowAuthenticator;
use schema::Schema;

/// How long a server may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How long a statement may take. Longer than any takes on a database of millions of rows.
const ANSWER: Duration = Duration::from_secs(120);

/// How long opening the store goes on trying to connect, in milliseconds: a server that is being restarted is back by
/// then.
const OPENING: Duration = Duration::from_secs(10);

/// How long a query tries to reach the database.
const READING: Duration = Duration::from_secs(5);

/// How long a change that waits for the database may delay the end of the program.
const CLOSING: Duration = Duration::from_secs(5);

/// How long the server may be silent, to the beats of the session as to a statement, before the connection of that
/// statement counts as lost: shorter than people wait, and longer than a busy server takes for a beat.
const SILENCE: Duration = Duration::from_secs(10);

/// How often a thread that waits for an answer looks whether it still should.
const LOOK: Duration = Duration::from_millis(250);

/// When the system gives a connection up whose other end is gone without a word. Its defaults are hours.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_RETRIES: u32 = 3;
const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of every session. A gateway that hangs within a transaction loses it, because others wait for its lock. A
/// gateway whose machine is gone is noticed by the server after some seconds.
const SESSION: &str = "SET idle_in_transaction_session_timeout = 5000; SET lock_timeout = 30000;
    SET statement_timeout = 120000; SET synchronous_commit = on; SET client_min_messages = warning;
    SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2; SET tcp_keepalives_count = 2";

/// The thread that serves the connections.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("pml-postgres")
        .enable_all()
        .build()
        .expect("the system can start a thread")
});

/// How long somebody waits for a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// The store is being opened.
    Opening,
    /// A query.
    Reader,
    /// A change: it waits until the database is there again, or the store is closed.
    Writer,
}

/// A database of a PostgreSQL server.
pub(crate) struct Server {
    config: Config,
    name: PathBuf,
    schema: OnceLock<Schema>,
    /// Since when the store is being closed: from then on changes wait for the database for a moment only.
    closing_since: OnceLock<Instant>,
    /// The database did not come back while the store was being closed. Nothing is asked of it any more.
    is_given_up: AtomicBool,
    /// By how many milliseconds the clock of the database is ahead of this machine's.
    clock_ahead_ms: AtomicI64,
    own_session: Mutex<OwnSession>,
}

impl Server {
    /// Reads the address of a database, as `postgres://user:password@host/database`.
    pub(crate) fn parse(url: &str) -> Result<Server, Error> {
        let mut config: Config = url
            .parse()
            .map_err(|error: tokio_postgres::Error| Error::BadDatabaseUrl { detail: innermost(&error) })?;
        if config.get_hosts().is_empty() {
            return Err(Error::BadDatabaseUrl { detail: "it names no host".to_owned() });
        }
        config.application_name("pml").connect_timeout(CONNECT);
        notice_silence(&mut config);
        let name = PathBuf::from(shown(&config));
        Ok(Server {
            config,
            name,
            schema: OnceLock::new(),
            closing_since: OnceLock::new(),
            is_given_up: AtomicBool::new(false),
            clock_ahead_ms: AtomicI64::new(0),
            own_session: Mutex::default(),
        })
    }

    /// The address without the password, for messages.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// A connection that marks and checks rows.
    pub(crate) fn open(
        self: &Arc<Self>,
        authenticator: &Arc<RowAuthenticator>,
    ) -> rusqlite::Result<PgConnection> {
        let client = self.connect_patiently(Patience::Reader)?;
        Ok(PgConnection::new(self, client, Some(authenticator)))
    }

    /// A connection for changes. Waits until the database can be reached.
    pub(crate) fn open_writer(
        self: &Arc<Self>,
        authenticator: &Arc<RowAuthenticator>,
    ) -> rusqlite::Result<PgConnection> {
        let client = self.connect_patiently(Patience::Writer)?;
        Ok(PgConnection::new(self, client, Some(authenticator)))
    }

    /// A connection for queries that touch no marked row.
    pub(crate) fn open_unvouched(self: &Arc<Self>) -> rusqlite::Result<PgConnection> {
        let client = self.connect_patiently(Patience::Reader)?;
        Ok(PgConnection::new(self, client, None))
    }

    /// Changes no longer wait for a database that cannot be reached.
    pub(crate) fn begin_closing(&self) {
        self.closing_since.get_or_init(Instant::now);
    }

    /// Whether a change whose connection was lost is given up because the store is being closed.
    fn gives_up(&self) -> bool {
        let is_over = self.closing_since.get().is_some_and(|since| since.elapsed() >= CLOSING);
        if is_over && !self.is_given_up.swap(true, Ordering::Relaxed) {
            tracing::warn!("database `{}` did not come back; changes are given up", self.name.display());
        }
        is_over
    }

    /// Whether a statement that was sent at `began` gets no answer any more.
    fn is_silent_since(&self, began: Instant) -> bool {
        let is_closing =
            self.closing_since.get().is_some_and(|since| (*since).max(began).elapsed() >= CLOSING);
        if is_closing || began.elapsed() >= ANSWER {
            return true;
        }
        let session = self.own_session();
        began.elapsed() >= SILENCE && (session.is_silent(SILENCE) || session.was_cut_after(began))
    }

    /// Waits for the answer to a statement on this thread; `None` if none comes.
    fn answer<F: Future>(&self, statement: F) -> Option<F::Output> {
        let began = Instant::now();
        wait_unless(statement, || self.is_silent_since(began))
    }

    /// By how many milliseconds the clock of the database is ahead of this machine's.
    pub(crate) fn clock_ahead_ms(&self) -> i64 {
        self.clock_ahead_ms.load(Ordering::Relaxed)
    }

    /// Takes a measurement of the clocks. A change of less than a second counts as none: it is within what leases allow
    /// for, and measuring is not more exact than that on a busy machine.
    fn compare_clock(&self, ahead_ms: i64) {
        if (ahead_ms - self.clock_ahead_ms()).abs() >= 1_000 {
            self.clock_ahead_ms.store(ahead_ms, Ordering::Relaxed);
        }
    }

    pub(crate) fn health(&self) -> (bool, Duration) {
        self.own_session().health()
    }

    fn own_session(&self) -> MutexGuard<'_, OwnSession> {
        self.own_session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn schema(&self) -> &Schema {
        self.schema.get().expect("the schema is read when the store is opened")
    }

    /// Connects, and tries again with growing pauses while the server cannot be reached.
    fn connect_patiently(&self, patience: Patience) -> Result<Client, Failure> {
        let began = Instant::now();
        let (mut pause, mut told) = (Duration::from_millis(50), false);
        loop {
            if self.is_given_up.load(Ordering::Relaxed) {
                return Err(Failure::silent());
            }
            let failure = match self.connect(patience) {
                Ok(client) => return Ok(client),
                Err(failure) => failure,
            };
            let limit = match patience {
                Patience::Opening => OPENING,
                Patience::Reader => READING,
                Patience::Writer if failure.is_lost && self.gives_up() => Duration::ZERO,
                Patience::Writer => Duration::MAX,
            };
            if failure.is_lost && patience == Patience::Opening {
                self.own_session().note_outage();
            }
            if !failure.is_lost || began.elapsed().saturating_add(pause) > limit {
                return Err(failure);
            }
            if patience == Patience::Writer && !std::mem::replace(&mut told, true) {
                tracing::warn!("changes wait for database `{}`: {failure}", self.name.display());
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(2));
        }
    }

    fn connect(&self, patience: Patience) -> Result<Client, Failure> {
        let config = self.config.clone();
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        RUNTIME.spawn(async move {
            let connected = match tokio::time::timeout(CONNECT, config.connect(NoTls)).await {
                Ok(connected) => connected.map_err(|error| Failure::of(&error)),
                Err(_) => Err(Failure::silent()),
            };
            let client = connected.map(|(client, connection)| {
                // The client learns of the end of its connection by itself.
                tokio::spawn(async move { drop(connection.await) });
                client
            });
            drop(reply.send(client));
        });
        let client = answer.recv().unwrap_or_else(|_| Err(Failure::silent()))?;
        match self.answer(client.batch_execute(SESSION)) {
            Some(set) => set.map_err(|error| Failure::of(&error))?,
            None => return Err(Failure::silent()),
        }
        if patience == Patience::Writer {
            let mode = client.query_one("SELECT current_setting('transaction_read_only')", &[]);
            let mode = self.answer(mode).ok_or_else(Failure::silent)?.map_err(|error| Failure::of(&error))?;
            if mode.get::<_, &str>(0) == "on" {
                return Err(Failure::read_only());
            }
        }
        Ok(client)
    }

    /// Ends what a connection does that gave no answer.
    fn abandon(&self, client: &Client) {
        let token = client.cancel_token();
        RUNTIME.spawn(async move { drop(token.cancel_query(NoTls).await) });
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The address of a database without its password.
fn shown(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let port = config.get_ports().first().filter(|port| **port != 5432).map(|port| format!(":{port}"));
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    let port = port.unwrap_or_default();
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("postgres://{user}{host}{port}/{database}"),
        #[cfg(unix)]
        Some(Host::Unix(directory)) => {
            format!("postgres://{user}{port}/{database}?host={}", directory.display())
        }
        None => format!("postgres://{user}{port}/{database}"),
    }
}

/// The password in the address of a database, as it is sent and as it is written; nothing if there is none.
pub fn passwords_in(url: &str) -> Vec<String> {
    let sent = url.parse::<Config>().ok().and_then(|config| {
        config.get_password().map(|password| String::from_utf8_lossy(password).into_owned())
    });
    // Before the last `@` of the part before the path: a password may hold one itself.
    let written = url.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let written = written.and_then(|place| place.rsplit_once('@')?.0.split_once(':'));
    let written = written.map(|(_, password)| password.to_owned());
    let mut passwords: Vec<String> =
        sent.into_iter().chain(written).filter(|text| !text.is_empty()).collect();
    passwords.dedup();
    passwords
}

/// A name that nobody else has.
fn random_name() -> String {
    let mut bytes = [0; 16];
    ring::rand::SystemRandom::new().fill(&mut bytes).expect("the system gives random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Lets the system notice that the server or the network is gone, unless the address says how.
fn notice_silence(config: &mut Config) {
    // The default of the address is two hours.
    if config.get_keepalives() && config.get_keepalives_idle() == Duration::from_secs(2 * 60 * 60) {
        config.keepalives_idle(KEEPALIVE_IDLE);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_interval(KEEPALIVE_INTERVAL);
    }
    if config.get_keepalives_retries().is_none() {
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(USER_TIMEOUT);
    }
}

/// Waits for a future on this thread, whatever thread it is, until `is_over`.
fn wait_unless<F: Future>(future: F, is_over: impl Fn() -> bool) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        if is_over() {
            return None;
        }
        thread::park_timeout(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_gone_without_a_word_is_noticed_within_seconds() {
        let usual = Server::parse("postgres://ann@host/pml").unwrap().config;
        let idle = usual.get_keepalives_idle();
        assert!(usual.get_keepalives() && idle <= Duration::from_secs(10), "{idle:?}");
        assert_eq!(usual.get_tcp_user_timeout(), Some(&USER_TIMEOUT));
        let own = "postgres://ann@host/pml?keepalives_idle=60&keepalives_interval=7&keepalives_retries=9&tcp_user_timeout=90";
        let own = Server::parse(own).unwrap().config;
        assert_eq!(own.get_keepalives_idle(), Duration::from_secs(60));
        assert_eq!(own.get_keepalives_interval(), Some(Duration::from_secs(7)));
        assert_eq!(own.get_keepalives_retries(), Some(9));
        assert_eq!(own.get_tcp_user_timeout(), Some(&Duration::from_secs(90)));
    }
}
