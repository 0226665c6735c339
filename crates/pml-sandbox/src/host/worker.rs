//! One worker process, driven through one program.
//!
//! Every event is checked before it is passed on (`check`). A worker that sends an impossible event or exceeds its
//! processor time is killed immediately. A fault is final: every later `next_event` returns it again.

use std::io;
use std::os::unix::net::UnixStream as Blocking;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::check::EventChecker;
use super::processes::WorkerProcess;
use crate::cpu;
use crate::message::{Delivery, SandboxProgram, WorkerEvent};
use crate::wire::{self, HostMessageRef, MessageDecoder, WorkerMessage};

/// Bytes requested per read from the socket.
const READ_BYTES: usize = 16 << 10;
/// Minimum delay until the next check of the processor time, so that a nearly used-up limit is not polled in a busy
/// loop.
const SHORTEST_ALARM: Duration = Duration::from_millis(1);

/// Reason why a worker is gone. In every case it has been killed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkerFault {
    /// It used up [`SandboxLimits::cpu`](crate::SandboxLimits::cpu).
    #[error("the program used up its processor time")]
    Cpu,
    /// It ended without a last event: a crash, or [`Worker::kill`].
    #[error("the worker process died ({})", ending(*exit, *signal))]
    Died {
        /// Exit code of the process; None when a signal ended it.
        exit: Option<i32>,
        /// The signal that ended it; None when it exited.
        signal: Option<i32>,
    },
    /// It sent a message that a sound worker never sends; the reason.
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
    /// First, so that it is dropped while the process is still there.
    meter: CpuMeter,
    process: WorkerProcess,
    stream: UnixStream,
    incoming: MessageDecoder,
    outgoing: Vec<u8>,
    /// Number of bytes of `outgoing` that are sent.
    sent: usize,
    check: EventChecker,
    budget: CpuBudget,
    fault: Option<WorkerFault>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Worker {
    /// Waits until the process reports that it is ready.
    pub(super) async fn wait_until_ready(
        process: WorkerProcess,
        stream: Blocking,
    ) -> Result<Worker, WorkerFault> {
        let stream = UnixStream::from_std(stream)
            .map_err(|error| WorkerFault::Broke(format!("no socket: {error}")))?;
        let mut worker = Worker {
            meter: CpuMeter::default(),
            process,
            stream,
            incoming: MessageDecoder::default(),
            outgoing: Vec::new(),
            sent: 0,
            check: EventChecker::default(),
            budget: CpuBudget::default(),
            fault: None,
            permit: None,
        };
        match worker.said().await? {
            WorkerMessage::Ready if worker.incoming.is_empty() => worker.still_there().await,
            WorkerMessage::Ready | WorkerMessage::Event(_) => {
                Err(WorkerFault::Broke("an event before a program began".to_owned()))
            }
        }
    }

    /// Checks that a worker that became ready long ago has not died since.
    async fn still_there(mut self) -> Result<Worker, WorkerFault> {
        match self.stream.try_read_buf(self.incoming.read_buffer(READ_BYTES)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(self),
            Ok(bytes) if bytes > 0 => Err(WorkerFault::Broke("an event before a program began".to_owned())),
            Ok(_) | Err(_) => Err(self.died().await),
        }
    }

    /// Reports the processor time of the program, once, when the worker is dropped.
    pub fn report_cpu_to(&mut self, report: impl FnOnce(Duration) + Send + Sync + 'static) {
        let pid = self.process.pid();
        self.meter =
            CpuMeter { pid, before: cpu::used(pid).unwrap_or_default(), report: Some(Box::new(report)) };
    }

    /// Holds the permit of a running worker until the worker is dropped.
    pub(super) fn hold_permit(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }

    /// Begins the program.
    ///
    /// # Panics
    /// When a program has begun before.
    pub fn begin_program(&mut self, program: &SandboxProgram) {
        self.check.begin_program(program);
        self.budget.begin(self.process.pid(), program.limits.cpu);
        self.send(&HostMessageRef::Begin(program));
    }

    /// Sends a delivery. Several may be sent ahead; the worker takes them one by one, in order.
    pub fn deliver(&mut self, delivery: &Delivery) {
        self.check.count_delivery();
        self.budget.busy();
        self.send(&HostMessageRef::Deliver(delivery));
    }

    /// The next event of the program. Cancelling the wait loses nothing. Events are received, and processor time is
    /// checked, only while this is awaited. After [`WorkerEvent::Ended`] no event follows.
    pub async fn next_event(&mut self) -> Result<WorkerEvent, WorkerFault> {
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
        if let WorkerEvent::Ended(_) = event {
            self.fail(WorkerFault::Broke("something after its end".to_owned()));
        }
        Ok(event)
    }

    /// Kills the process immediately.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Process id of the worker.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    fn fail(&mut self, fault: WorkerFault) -> WorkerFault {
        self.process.kill();
        self.fault.insert(fault).clone()
    }

    async fn event(&mut self) -> Result<WorkerEvent, WorkerFault> {
        match self.said().await? {
            WorkerMessage::Ready => Err(WorkerFault::Broke("that it is ready, a second time".to_owned())),
            WorkerMessage::Event(event) => {
                self.check.check_event(&event).map_err(WorkerFault::Broke)?;
                Ok(event)
            }
        }
    }

    async fn said(&mut self) -> Result<WorkerMessage, WorkerFault> {
        loop {
            if let Some(said) =
                self.incoming.next_message().map_err(|error| WorkerFault::Broke(error.to_string()))?
            {
                return Ok(said);
            }
            self.exchange().await?;
        }
    }

    fn send(&mut self, message: &HostMessageRef<'_>) {
        match wire::encode_message(&mut self.outgoing, message) {
            // Bytes that cannot be written now are sent while `next_event` waits.
            Ok(()) => self.write(),
            Err(error) => drop(self.fail(WorkerFault::Broke(format!("nothing, and was to get {error}")))),
        }
    }

    /// Sends and receives until bytes arrive or the processor time is due for a check.
    async fn exchange(&mut self) -> Result<(), WorkerFault> {
        loop {
            self.write();
            match self.stream.try_read_buf(self.incoming.read_buffer(READ_BYTES)) {
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
                // The worker has closed its end, so it is gone: reading tells how.
                Err(_) => break,
            }
        }
        self.outgoing.clear();
        self.sent = 0;
    }

    /// The fault of a worker that has closed its socket.
    async fn died(&mut self) -> WorkerFault {
        match self.process.kill_and_wait().await {
            Some(status) if status.signal() == Some(libc::SIGXCPU) => WorkerFault::Cpu,
            Some(status) if status.code().is_some() && !self.incoming.is_empty() => {
                WorkerFault::Broke("half a frame".to_owned())
            }
            status => WorkerFault::Died {
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

/// Reports the processor time of a program at its end.
#[derive(Default)]
struct CpuMeter {
    pid: u32,
    /// Processor time of the process before the program began.
    before: Duration,
    report: Option<Box<dyn FnOnce(Duration) + Send + Sync>>,
}

impl std::fmt::Debug for CpuMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuMeter").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Drop for CpuMeter {
    fn drop(&mut self) {
        if let (Some(report), Some(used)) = (self.report.take(), cpu::used(self.pid)) {
            report(used.saturating_sub(self.before));
        }
    }
}

/// Remaining processor time. The process clock is read only after as much wall-clock time has passed while the worker
/// was busy: before that it cannot have used more.
#[derive(Debug, Default)]
struct CpuBudget {
    limit: Duration,
    /// Processor time of the process before the program began.
    before: Duration,
    /// Processor time of the program at the last check.
    used: Duration,
    /// Since when the worker has been busy, or the time of the last check.
    since: Option<Instant>,
}

impl CpuBudget {
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

    fn look(&mut self, pid: u32) -> Result<(), WorkerFault> {
        let now = Instant::now();
        let real = self.since.map_or(Duration::ZERO, |since| now - since);
        // Where the clock of another process cannot be read, wall-clock time is used instead.
        self.used = cpu::used(pid).map_or(self.used + real, |used| used.saturating_sub(self.before));
        self.since = Some(now);
        match self.used < self.limit {
            true => Ok(()),
            false => Err(WorkerFault::Cpu),
        }
    }
}
