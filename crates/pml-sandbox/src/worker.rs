//! The worker side: one process, one thread, one socket, one program.
//!
//! A worker cannot reach files or the network: it is confined before the engine is created. It handles messages in
//! order, and its events depend on nothing else, except for the durations of operations ([`WorkerEvent::Operation`]),
//! which no program can see.
//!
//! [`WorkerEvent::Operation`]: crate::message::WorkerEvent::Operation

mod calls;
mod capabilities;
mod errors;
mod frames;
mod function;
mod heap;
mod json;
mod native;
mod out;
mod output;
mod prelude;
mod preview;
mod probes;
mod program;
mod random;
mod raw;
mod realm;
mod run;
mod timers;
mod waiting;
mod world;

use std::rc::Rc;

use rquickjs::context::intrinsic::{
    Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays,
};
use rquickjs::{Context, Runtime};

use crate::walls::confine;
use crate::wire::{HostMessage, MessageDecoder};
use heap::HeapMeter;
use out::EventWriter;
use program::RunningProgram;

/// Bytes requested per read from the socket.
const READ_BYTES: usize = 16 << 10;
/// Exit code: the process could not be confined.
const NO_WALLS: i32 = 70;
/// Exit code: the engine could not be created, or failed.
const NO_ENGINE: i32 = 71;
/// Exit code: the host sent a malformed or unexpected message.
const NO_SENSE: i32 = 72;
/// Exit code: the worker panicked.
const PANICKED: i32 = 73;

/// Intrinsics of a realm: all of the language except clocks and weak references, which would make a run depend on time
/// and on garbage collection.
type Intrinsics = (Date, Eval, RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise);

/// Serves one program on standard input, which is a socket, and exits the process. Call it first in `main`, while the
/// process has one thread.
pub fn worker_main() -> ! {
    std::panic::set_hook(Box::new(|_| std::process::exit(PANICKED)));
    if confine().is_err() {
        std::process::exit(NO_WALLS);
    }
    match serve() {
        Ok(never) => match never {},
        Err(_) => std::process::exit(NO_ENGINE),
    }
}

enum NoReturn {}

fn serve() -> rquickjs::Result<NoReturn> {
    let out = Rc::new(EventWriter::default());
    let heap = Rc::new(HeapMeter::new(Rc::clone(&out)));
    let runtime = Runtime::new_with_alloc(heap::CountingAllocator(Rc::clone(&heap)))?;
    let context = Context::custom::<Intrinsics>(&runtime)?;
    let rejections = Rc::default();
    runtime.set_host_promise_rejection_tracker(Some(errors::rejection_tracker(Rc::clone(&rejections))));
    context.with(|ctx| {
        let mut incoming = MessageDecoder::default();
        let mut running = RunningProgram::new(&ctx, &out, &heap, &rejections)?;
        out.send_ready();
        let HostMessage::Begin(program) = next(&mut incoming, &out) else { nonsense() };
        heap.set_limit(program.limits.heap_bytes);
        running.begin(&program)?;
        loop {
            match next(&mut incoming, &out) {
                HostMessage::Deliver(delivery) => running.deliver(delivery)?,
                HostMessage::Begin(_) => nonsense(),
            }
        }
    })
}

/// The next message of the host. Pending events are flushed before: the worker may be killed while it handles the
/// message, and events of work already done must be sent whether messages arrive one by one or all at once.
fn next(incoming: &mut MessageDecoder, out: &EventWriter) -> HostMessage {
    out.flush();
    loop {
        match incoming.next_message() {
            Ok(Some(order)) => return order,
            Ok(None) => {}
            Err(_) => nonsense(),
        }
        let buffer = incoming.read_buffer(READ_BYTES);
        let there = buffer.len();
        buffer.resize(there + READ_BYTES, 0);
        let read = loop {
            match rustix::io::read(std::io::stdin(), &mut buffer[there..]) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(0) | Err(_) => std::process::exit(0),
                Ok(read) => break read,
            }
        };
        buffer.truncate(there + read);
    }
}

fn nonsense() -> ! {
    std::process::exit(NO_SENSE)
}
