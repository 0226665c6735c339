//! PostgreSQL as the database: connecting, and what its dialect and its sessions require.
//!
//! Queries block the thread that asks. Connections are served by one thread of this module, so that they can be asked
//! from any thread, also from one of an asynchronous runtime.

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
    /// The store is being closed: changes do not wait for the database any more.
    is_closing: AtomicBool,
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
        let name = PathBuf::from(shown(&config));
        Ok(Server {
            config,
            name,
            schema: OnceLock::new(),
            is_closing: AtomicBool::new(false),
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
        self.is_closing.store(true, Ordering::Relaxed);
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
            let failure = match self.connect(patience) {
                Ok(client) => return Ok(client),
                Err(failure) => failure,
            };
            let limit = match patience {
                Patience::Opening => OPENING,
                Patience::Reader => READING,
                Patience::Writer if self.is_closing.load(Ordering::Relaxed) => CLOSING,
                Patience::Writer => Duration::MAX,
            };
            if failure.is_lost && patience == Patience::Opening {
                self.own_session().note_outage();
            }
            if !failure.is_lost || began.elapsed() + pause > limit {
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
        match wait(client.batch_execute(SESSION)) {
            Some(set) => set.map_err(|error| Failure::of(&error))?,
            None => return Err(Failure::silent()),
        }
        if patience == Patience::Writer {
            let mode = client.query_one("SELECT current_setting('transaction_read_only')", &[]);
            let mode = wait(mode).ok_or_else(Failure::silent)?.map_err(|error| Failure::of(&error))?;
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

/// Waits for a future on this thread, whatever thread it is; `None` if it takes too long.
fn wait<F: Future>(future: F) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    let began = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = ANSWER.checked_sub(began.elapsed())?;
        thread::park_timeout(left);
    }
}
