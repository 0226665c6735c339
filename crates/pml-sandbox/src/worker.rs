//! The worker's side: one process, one thread, one socket, one program.
//!
//! It never touches a file or the network, and could not: the walls go up before the engine is made. It does what it is
//! told in order, and what it tells depends on nothing else, but for how long operations took ([`Event::Operation`]), which
//! no program can see.
//!
//! [`Event::Operation`]: crate::message::Event::Operation

mod calls;
mod errors;
mod frames;
mod heap;
mod json;
mod native;
mod out;
mod preview;
mod program;
mod random;
mod raw;
mod realm;
mod run;
mod timers;
mod world;

use std::rc::Rc;

use rquickjs::context::intrinsic::{
    Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays,
};
use rquickjs::{Context, Runtime};

use crate::walls::confine;
use crate::wire::{Incoming, Order};
use heap::Heap;
use out::Out;
use program::Running;

const READ_BYTES: usize = 16 << 10;
const NO_WALLS: i32 = 70;
const NO_ENGINE: i32 = 71;
const NO_SENSE: i32 = 72;
const PANICKED: i32 = 73;

/// What an engine here has: everything of the language but clocks and weak references, which show what a run must
/// not depend on.
type Intrinsics = (Date, Eval, RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise);

/// Serves one program on standard input, which is a socket, and ends the process. To be called first thing, while
/// the process has one thread.
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

enum Never {}

fn serve() -> rquickjs::Result<Never> {
    let out = Rc::new(Out::default());
    let heap = Rc::new(Heap::new(Rc::clone(&out)));
    let runtime = Runtime::new_with_alloc(heap::Counting(Rc::clone(&heap)))?;
    let context = Context::custom::<Intrinsics>(&runtime)?;
    let rejections = Rc::default();
    runtime.set_host_promise_rejection_tracker(Some(errors::tracker(Rc::clone(&rejections))));
    context.with(|ctx| {
        let mut incoming = Incoming::default();
        let mut running = Running::new(&ctx, &out, &heap, &rejections)?;
        out.ready();
        let Order::Begin(program) = next(&mut incoming, &out) else { nonsense() };
        heap.limit(program.limits.heap_bytes);
        running.begin(&program)?;
        loop {
            match next(&mut incoming, &out) {
                Order::Deliver(delivery) => running.deliver(delivery)?,
                Order::Begin(_) => nonsense(),
            }
        }
    })
}

/// The next order. Before it takes one it sends what there is to send: what follows may be ended by a kill, and what was
/// done until then is told whether orders come one by one or all at once.
fn next(incoming: &mut Incoming, out: &Out) -> Order {
    out.flush();
    loop {
        match incoming.take() {
            Ok(Some(order)) => return order,
            Ok(None) => {}
            Err(_) => nonsense(),
        }
        let buffer = incoming.buffer(READ_BYTES);
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
