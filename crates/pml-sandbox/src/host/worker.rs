//! One worker process, driven through one program.
//!
//! What it says is checked before it is passed on (`check`), and the moment it says something it cannot say, or has
//! used its processor time, it is killed. A fault is final: every later `next` gives it again.

use std::io;
use std::os::unix::net::UnixStream as Blocking;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::check::Check;
use super::processes::Process;
use crate::cpu;
use crate::message::{Delivery, Event, Program};
use crate::wire::{self, Incoming, Said, Sent};

const READ_BYTES: usize = 16 << 10;
const SHORTEST_ALARM: Duration = Duration::from_millis(1);

/// Why a worker is gone. In every case it has been killed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It used up [`Limits::cpu`](crate::Limits::cpu).
    #[error("the program used up its processor time")]
    Cpu,
    /// It ended without saying so: a crash, or [`Worker::kill`].
    #[error("the worker process died ({})", ending(*exit, *signal))]
    Died {
        /// Its exit code.
        exit: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
    },
    /// It said what a worker never says.
    #[error("the worker process was ended because it sent {0}")]
    Broke(String),
}

fn ending(exit: Option<i32>, signal: Option<i32>) -> String {
    match (exit, signal) {
        (_, Some(signal)) => format!("signal {signal}"),
        (Some(exit), None) => format!("exit code {exit}"),
        (None, None) => "unknown cause".to_owned(),
    }
}

/// A process that runs one program. Dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    process: Process,
    stream: UnixStream,
    incoming: Incoming,
    outgoing: Vec<u8>,
    /// How much of `outgoing` is sent.
    sent: usize,
    check: Check,
    budget: Budget,
    fault: Option<Fault>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Worker {
    /// Waits until the process says that it is ready.
    pub(super) async fn ready(process: Process, stream: Blocking) -> Result<Worker, Fault> {
        let stream =
            UnixStream::from_std(stream).map_err(|error| Fault::Broke(format!("no socket: {error}")))?;
        let mut worker = Worker {
            process,
            stream,
            incoming: Incoming::default(),
            outgoing: Vec::new(),
            sent: 0,
            check: Check::default(),
            budget: Budget::default(),
            fault: None,
            permit: None,
        };
        match worker.said().await? {
            Said::Ready if worker.incoming.is_empty() => worker.still_there().await,
            Said::Ready | Said::Event(_) => Err(Fault::Broke("an event before a program began".to_owned())),
        }
    }

    /// It may have become ready long ago and have died since.
    async fn still_there(mut self) -> Result<Worker, Fault> {
        match self.stream.try_read_buf(self.incoming.buffer(READ_BYTES)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(self),
            Ok(bytes) if bytes > 0 => Err(Fault::Broke("an event before a program began".to_owned())),
            Ok(_) | Err(_) => Err(self.died().await),
        }
    }

    /// Keeps the place among the running ones until it is dropped.
    pub(super) fn hold(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }

    /// Begins the one program.
    ///
    /// # Panics
    /// When one has begun before.
    pub fn begin(&mut self, program: &Program) {
        self.check.begin(program);
        self.budget.begin(self.process.pid(), program.limits.cpu);
        self.send(&Sent::Begin(program));
    }

    /// Delivers something. Several may be sent ahead; they are taken one by one, in order.
    pub fn deliver(&mut self, delivery: &Delivery) {
        self.check.deliver();
        self.budget.busy();
        self.send(&Sent::Deliver(delivery));
    }

    /// What the program does next. Nothing is lost when the wait is given up. Events come only while this is waited
    /// for, and only meanwhile the processor time is watched. After [`Event::Ended`] there is no next.
    pub async fn next(&mut self) -> Result<Event, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let event = match self.event().await {
            Ok(event) => event,
            Err(fault) => return Err(self.fail(fault)),
        };
        if self.check.is_idle() {
            self.budget.idle();
        }
        if let Event::Ended(_) = event {
            self.fail(Fault::Broke("something after its end".to_owned()));
        }
        Ok(event)
    }

    /// Ends it now, whatever it does.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// The number of the process.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.process.kill();
        self.fault.insert(fault).clone()
    }

    async fn event(&mut self) -> Result<Event, Fault> {
        match self.said().await? {
            Said::Ready => Err(Fault::Broke("that it is ready, a second time".to_owned())),
            Said::Event(event) => {
                self.check.event(&event).map_err(Fault::Broke)?;
                Ok(event)
            }
        }
    }

    async fn said(&mut self) -> Result<Said, Fault> {
        loop {
            if let Some(said) = self.incoming.take().map_err(|error| Fault::Broke(error.to_string()))? {
                return Ok(said);
            }
            self.exchange().await?;
        }
    }

    fn send(&mut self, message: &Sent<'_>) {
        match wire::put(&mut self.outgoing, message) {
            // What cannot be written at once goes out while `next` waits.
            Ok(()) => self.write(),
            Err(error) => drop(self.fail(Fault::Broke(format!("nothing, and was to get {error}")))),
        }
    }

    /// Sends and receives until something came, or the processor time is to be looked at.
    async fn exchange(&mut self) -> Result<(), Fault> {
        loop {
            self.write();
            match self.stream.try_read_buf(self.incoming.buffer(READ_BYTES)) {
                Ok(bytes) if bytes > 0 => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => return Err(self.died().await),
            }
            let interest = match self.outgoing.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            tokio::select! {
                // An error shows when reading.
                _ = self.stream.ready(interest) => {}
                () = alarm(self.budget.alarm()) => self.budget.look(self.process.pid())?,
            }
        }
    }

    fn write(&mut self) {
        while self.sent < self.outgoing.len() {
            match self.stream.try_write(&self.outgoing[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It reads no more, so it is gone: reading tells how.
                Err(_) => break,
            }
        }
        self.outgoing.clear();
        self.sent = 0;
    }

    /// The other end is closed: why.
    async fn died(&mut self) -> Fault {
        match self.process.end().await {
            Some(status) if status.signal() == Some(libc::SIGXCPU) => Fault::Cpu,
            Some(status) if status.code().is_some() && !self.incoming.is_empty() => {
                Fault::Broke("half a frame".to_owned())
            }
            status => Fault::Died {
                exit: status.and_then(|status: ExitStatus| status.code()),
                signal: status.and_then(|status| status.signal()),
            },
        }
    }
}

async fn alarm(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// How much processor time is left. The clock of the process is looked at only when that much real time has
/// passed while it was busy: before that it cannot have used more.
#[derive(Debug, Default)]
struct Budget {
    limit: Duration,
    /// What the process had used before the program began.
    before: Duration,
    /// What the program had used when the clock was last looked at.
    used: Duration,
    /// Since when it has been busy, or was last looked at.
    since: Option<Instant>,
}

impl Budget {
    fn begin(&mut self, pid: u32, limit: Duration) {
        self.limit = limit;
        self.before = cpu::used(pid).unwrap_or_default();
        self.busy();
    }

    fn busy(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    fn idle(&mut self) {
        self.since = None;
    }

    fn alarm(&self) -> Option<Instant> {
        self.since.map(|since| since + self.limit.saturating_sub(self.used).max(SHORTEST_ALARM))
    }

    fn look(&mut self, pid: u32) -> Result<(), Fault> {
        let now = Instant::now();
        let real = self.since.map_or(Duration::ZERO, |since| now - since);
        // Where the clock of another process cannot be read, real time stands in for it.
        self.used = cpu::used(pid).map_or(self.used + real, |used| used.saturating_sub(self.before));
        self.since = Some(now);
        match self.used < self.limit {
            true => Ok(()),
            false => Err(Fault::Cpu),
        }
    }
}
