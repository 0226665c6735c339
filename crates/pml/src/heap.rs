//! Memory that is no longer used goes back to the system.
//!
//! Reading a catalogue takes much memory for a moment. The allocator keeps it for later, but there is no such moment for
//! days.

#![allow(unsafe_code)]

/// Gives back what the allocator keeps and nobody uses, where it can be told to.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it only looks at what the allocator keeps itself, under the allocator's own locks.
    unsafe {
        libc::malloc_trim(0);
    }
}
