//! Allocator that counts the engine's memory. Reaching the limit ends the run; the program cannot catch it.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::rc::Rc;

use rquickjs::allocator::Allocator;

use super::out::EventWriter;
use crate::message::{ExceededLimit, ProgramEnding};

/// Bytes that the allocator itself needs for each block.
const OVERHEAD_BYTES: usize = 8;
/// Limit in bytes until a program brings its own.
const FIRST_LIMIT_BYTES: usize = 64 << 20;

/// Memory in use, and its limit.
pub(super) struct HeapMeter {
    used: Cell<usize>,
    limit: Cell<usize>,
    out: Rc<EventWriter>,
}

impl HeapMeter {
    pub(super) fn new(out: Rc<EventWriter>) -> HeapMeter {
        HeapMeter { used: Cell::new(0), limit: Cell::new(FIRST_LIMIT_BYTES), out }
    }

    pub(super) fn set_limit(&self, bytes: u64) {
        self.limit.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Whether less than half of the limit is left. Previews then list no names: they must not be what ends a program.
    pub(super) fn is_half_full(&self) -> bool {
        self.used.get() > self.limit.get() / 2
    }

    /// Ends the run when `bytes` more would exceed the limit.
    fn ask(&self, bytes: usize) {
        if self.used.get().saturating_add(bytes) > self.limit.get() {
            self.full();
        }
    }

    fn full(&self) -> ! {
        self.out.send_ending_and_exit(ProgramEnding::Limit(ExceededLimit::Memory))
    }

    /// Counts a new block.
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

/// The allocator of the C library, which knows the size of its blocks, with a counter.
pub(super) struct CountingAllocator(pub(super) Rc<HeapMeter>);

// SAFETY: every pointer comes from `malloc`, `calloc` or `realloc`, which give null or enough memory aligned for
// anything, and `usable_size` asks the same library.
unsafe impl Allocator for CountingAllocator {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        self.0.ask(size);
        // SAFETY: `malloc` accepts any size.
        self.0.took(unsafe { libc::malloc(size.max(1)) }.cast())
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        self.0.ask(count.saturating_mul(size));
        // SAFETY: `calloc` accepts any count and size.
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

/// Size of the block at `pointer`, which this allocator returned and which is not freed yet.
#[cfg(target_os = "linux")]
fn size(pointer: *mut u8) -> usize {
    // SAFETY: see above.
    unsafe { libc::malloc_usable_size(pointer.cast()) }
}

/// Size of the block at `pointer`, which this allocator returned and which is not freed yet.
#[cfg(target_vendor = "apple")]
fn size(pointer: *mut u8) -> usize {
    // SAFETY: see above.
    unsafe { libc::malloc_size(pointer.cast()) }
}
