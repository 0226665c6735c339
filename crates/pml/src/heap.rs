//! Memory that is no longer used goes back to the system.
//!
//! Reading a catalogue takes much memory for a moment. The allocator keeps it for later, but there is no such moment for
//! days.

#![allow(unsafe_code)]

/// Has the allocator keep memory in few places, and large blocks not at all. It would have several for each core, of which each grows with the largest
/// work that was ever done there; threads have what they use most at hand anyway.
pub(crate) fn keep_together() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets numbers that the allocator looks at when a thread allocates.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Blocks from this size on are mapped one by one: they grow without being copied, and are given back when they are
/// freed. By itself the allocator would raise this size to that of the largest block ever freed, and keep the memory of
/// every copy of a large result that was there at some time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1024 * 1024;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;

/// Gives back what the allocator keeps and nobody uses, where it can be told to.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it only looks at what the allocator keeps itself, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
