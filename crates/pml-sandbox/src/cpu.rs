//! Processor time of another process, where the system provides it.

#![allow(unsafe_code)]

#[cfg(target_os = "linux")]
use std::mem::MaybeUninit;
use std::time::Duration;

/// Processor time that process `pid` has used so far; None when it does not exist or the system does not tell.
#[cfg(target_os = "linux")]
pub(crate) fn used(pid: u32) -> Option<Duration> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the pointer is to a live `clockid_t`, which is written on success.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: the pointer is to room for a `timespec`, which is written on success.
    if unsafe { libc::clock_gettime(clock, time.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: `clock_gettime` succeeded, so it has written the time.
    let time = unsafe { time.assume_init() };
    Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
}

/// Always None: this system does not provide it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn used(_pid: u32) -> Option<Duration> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn time_spent_is_seen_and_strangers_have_none() {
        let before = used(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while used(std::process::id()).unwrap() < before + Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(used(std::process::id()).unwrap() > before);
        assert_eq!(used(0x7fff_fff0), None);
    }
}
