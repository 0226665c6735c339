//! Returns unused memory to the system.
//!
//! Building a catalogue takes much memory for a moment. The allocator would keep it for the next time, which may be
//! days away.

#![allow(unsafe_code)]

/// Limits the allocator to few arenas, and has large blocks mapped separately. By default it has several arenas per
/// core, each of which grows to the largest work ever done there; threads cache what they use most anyway.
pub fn limit_allocator_arenas() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: this sets numbers that the allocator reads when a thread allocates.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, ARENAS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// 1 MiB: larger blocks are mapped one by one, so they grow without being copied and are returned when freed. By
/// default the allocator would raise this threshold to the largest block ever freed, and keep the memory of every past
/// copy of a large result.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1024 * 1024;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const ARENAS: libc::c_int = 2;

/// Returns the memory that the allocator holds unused, where the platform supports it.
pub(crate) fn release_unused_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it only touches the allocator's own free memory, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
