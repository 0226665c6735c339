//! The engine's memory, counted. Reaching the limit is not an error the program could catch: it is the end.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::allocator::Allocator;

use super::out::Out;
use crate::message::{Ending, Limit};

/// What the allocator itself keeps for each piece.
const OVERHEAD_BYTES: usize = 8;
/// Before a program is there to say how much it may have.
const FIRST_LIMIT_BYTES: usize = 64 << 20;

/// How much is in use, and may be.
pub(super) struct Heap {
    used: Cell<usize>,
    limit: Cell<usize>,
    out: Rc<Out>,
}

impl Heap {
    pub(super) fn new(out: Rc<Out>) -> Heap {
        Heap { used: Cell::new(0), limit: Cell::new(FIRST_LIMIT_BYTES), out }
    }

    pub(super) fn limit(&self, bytes: u64) {
        self.limit.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Whether less than half is left: what a program did not ask for must not be what ends it.
    pub(super) fn is_tight(&self) -> bool {
        self.used.get() > self.limit.get() / 2
    }

    /// Ends the run when `bytes` more are too many.
    fn ask(&self, bytes: usize) {
        if self.used.get().saturating_add(bytes) > self.limit.get() {
            self.full();
        }
    }

    fn full(&self) -> ! {
        self.out.end(Ending::Limit(Limit::Memory))
    }

    /// Counts a new piece in.
    fn took(&self, pointer: *mut u8) -> *mut u8 {
        if pointer.is_null() {
            self.full();
        }
        self.used.set(self.used.get() + size(pointer) + OVERHEAD_BYTES);
        pointer
    }

    fn gave(&self, bytes: usize) {
        self.used.set(self.used.get().saturating_sub(bytes + OVERHEAD_BYTES));
    }
}

/// The C library's allocator, which knows how large its pieces are, with a count.
pub(super) struct Counting(pub(super) Rc<Heap>);

// SAFETY: every pointer comes from `malloc`, `calloc` or `realloc`, which give null or enough memory aligned for
// anything, and `usable_size` asks the same library.
unsafe impl Allocator for Counting {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.0.ask(size);
        // SAFETY: any size may be asked for.
        self.0.took(unsafe { libc::malloc(size.max(1)) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.0.ask(count.saturating_mul(size));
        // SAFETY: any size may be asked for.
        self.0.took(unsafe { libc::calloc(count.max(1), size.max(1)) }.cast())
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        self.0.gave(size(pointer));
        // SAFETY: the caller gives back what it got here.
        unsafe { libc::free(pointer.cast()) }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new: usize) -> *mut u8 {
        if pointer.is_null() {
            return self.alloc(new);
        }
        let old = size(pointer);
        self.0.ask(new.saturating_sub(old));
        // SAFETY: the caller gives what it got here and does not use it again.
        let moved: *mut u8 = unsafe { libc::realloc(pointer.cast(), new.max(1)) }.cast();
        self.0.gave(old);
        self.0.took(moved)
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        size(pointer)
    }
}

/// How large the piece at `pointer` is, which came from this allocator and was not given back.
#[cfg(target_os = "linux")]
fn size(pointer: *mut u8) -> usize {
    // SAFETY: see above.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

/// How large the piece at `pointer` is, which came from this allocator and was not given back.
#[cfg(target_vendor = "apple")]
fn size(pointer: *mut u8) -> usize {
    // SAFETY: see above.
    unsafe { libc::malloc_size(pointer.cast()) }
}
