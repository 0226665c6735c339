//! What the worker has to say, kept until it is quiet, or until it is much.

use std::cell::RefCell;

use crate::message::{Ending, Event};
use crate::wire::{self, Said};

const MUCH_BYTES: usize = 64 << 10;

/// The way out.
#[derive(Default)]
pub(super) struct Out {
    bytes: RefCell<Vec<u8>>,
}

impl Out {
    pub(super) fn ready(&self) {
        self.put(&Said::Ready);
        self.flush();
    }

    pub(super) fn say(&self, event: Event) {
        self.put(&Said::Event(event));
        if self.bytes.borrow().len() > MUCH_BYTES {
            self.flush();
        }
    }

    /// The last word: ends the process.
    pub(super) fn end(&self, ending: Ending) -> ! {
        self.put(&Said::Event(Event::Ended(ending)));
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
                // Nobody listens any more.
                Err(_) => std::process::exit(0),
            }
        }
        bytes.clear();
    }

    fn put(&self, said: &Said) {
        // Everything a program can put into an event is bounded well below the longest frame.
        wire::put(&mut self.bytes.borrow_mut(), said).expect("events are short");
    }
}
