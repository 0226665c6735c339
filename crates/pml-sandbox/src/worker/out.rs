//! Buffer of outgoing events, flushed when the worker is quiet or the buffer is large.

use std::cell::RefCell;

use crate::message::{ProgramEnding, WorkerEvent};
use crate::wire::{self, WorkerMessage};

/// Size of the buffer, in bytes, above which events are sent before the worker is quiet.
const MUCH_BYTES: usize = 64 << 10;

/// Writes events to the host.
#[derive(Default)]
pub(super) struct EventWriter {
    bytes: RefCell<Vec<u8>>,
}

impl EventWriter {
    pub(super) fn send_ready(&self) {
        self.put(&WorkerMessage::Ready);
        self.flush();
    }

    pub(super) fn send_event(&self, event: WorkerEvent) {
        self.put(&WorkerMessage::Event(event));
        if self.bytes.borrow().len() > MUCH_BYTES {
            self.flush();
        }
    }

    /// Sends the last event and exits the process.
    pub(super) fn send_ending_and_exit(&self, ending: ProgramEnding) -> ! {
        self.put(&WorkerMessage::Event(WorkerEvent::Ended(ending)));
        self.flush();
        std::process::exit(0)
    }

    pub(super) fn flush(&self) {
        let mut bytes = self.bytes.borrow_mut();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(std::io::stdin(), rest) {
                Ok(written) => rest = &rest[written..],
                Err(rustix::io::Errno::INTR) => {}
                // The host has closed the socket.
                Err(_) => std::process::exit(0),
            }
        }
        bytes.clear();
    }

    fn put(&self, said: &WorkerMessage) {
        // Everything a program can put into an event is bounded well below the maximum size of a message.
        wire::encode_message(&mut self.bytes.borrow_mut(), said).expect("events are short");
    }
}
