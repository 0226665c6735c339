//! The walls around a worker: kernel restrictions that hold even when the engine is compromised.
//!
//! A worker needs memory and one socket, nothing else. [`confine`] puts up every wall that this machine supports and
//! returns which ones stand. It cannot be undone, so only a worker calls it. [`available_walls`] probes without
//! confining.

use std::io;

/// Processor seconds after which the kernel kills a worker. A backstop: the host's own limit comes first.
const CPU_SECONDS: u64 = 600;
/// Address space, in bytes, on top of what the process has reserved when it starts.
const ADDRESS_SPACE_BYTES: u64 = 512 << 20;

/// The walls that stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walls {
    /// Limits on memory, files, processes and processor time.
    pub limits: bool,
    /// No new privileges, and no access to its memory by other processes.
    pub privileges: bool,
    /// The kernel kills the worker when its host dies, in addition to the closed socket.
    pub parent: bool,
    /// No file can be opened (Landlock).
    pub files: bool,
    /// No address can be reached (Landlock; without it seccomp alone prevents that).
    pub network: bool,
    /// Only a few system calls are permitted (seccomp).
    pub calls: bool,
}

impl Walls {
    /// Names of the missing walls, for messages.
    pub fn missing_walls(&self) -> Vec<&'static str> {
        let all = [
            (self.limits, "resource limits"),
            (self.privileges, "no new privileges"),
            (self.parent, "end with the host"),
            (self.files, "no files (Landlock)"),
            (self.network, "no network (Landlock)"),
            (self.calls, "few system calls (seccomp)"),
        ];
        all.into_iter().filter(|(stands, _)| !stands).map(|(_, name)| name).collect()
    }
}

/// The walls that a worker would have on this machine.
pub fn available_walls() -> Walls {
    system::walls()
}

/// Confines this process permanently: closes every descriptor except standard input, and puts up the walls. Call it
/// while the process has one thread. Fails when a wall that every such system supports cannot be put up.
pub fn confine() -> io::Result<Walls> {
    system::confine()
}

#[cfg(target_os = "linux")]
mod system {
    //! Linux: all walls.

    #![allow(unsafe_code)]

    use std::collections::BTreeMap;
    use std::io;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError,
        RulesetStatus, Scope,
    };
    use rustix::process::{
        DumpableBehavior, Resource, Signal, set_dumpable_behavior, set_parent_process_death_signal,
    };
    use rustix::thread::{secure_computing_mode, set_no_new_privs};
    use seccompiler::{
        SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    use super::{ADDRESS_SPACE_BYTES, CPU_SECONDS, Walls};

    /// The newest Landlock ABI requested; the kernel applies the part it supports.
    const NEWEST: ABI = ABI::V6;
    /// First version of the Landlock ABI that restricts the network.
    const FIRST_WITH_NETWORK: i64 = 4;

    pub(super) fn walls() -> Walls {
        let landlock = landlock_version();
        Walls {
            limits: true,
            privileges: true,
            parent: true,
            files: landlock >= 1,
            network: landlock >= FIRST_WITH_NETWORK,
            calls: secure_computing_mode().is_ok(),
        }
    }

    pub(super) fn confine() -> io::Result<Walls> {
        close_all_but_stdin()?;
        die_of_faults();
        set_parent_process_death_signal(Some(Signal::KILL))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
        set_no_new_privs(true)?;
        let address_space = address_space().saturating_add(ADDRESS_SPACE_BYTES);
        // Making Landlock rules needs a descriptor, so this comes before the limit on descriptors.
        let files = no_files().is_ok_and(|status| status != RulesetStatus::NotEnforced);
        super::limit(&[
            (Resource::As, address_space),
            (Resource::Nproc, 0),
            (Resource::Core, 0),
            (Resource::Fsize, 0),
            (Resource::Nofile, 1),
            (Resource::Cpu, CPU_SECONDS),
        ])?;
        let network = files && landlock_version() >= FIRST_WITH_NETWORK;
        let calls = few_calls().is_ok();
        Ok(Walls { limits: true, privileges: true, parent: true, files, network, calls })
    }

    /// Address space reserved so far, in bytes.
    fn address_space() -> u64 {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: u64 =
            statm.split_ascii_whitespace().next().and_then(|pages| pages.parse().ok()).unwrap_or(0);
        pages * rustix::param::page_size() as u64
    }

    fn close_all_but_stdin() -> io::Result<()> {
        // SAFETY: takes no pointers. Nothing in this process owns a descriptor yet but standard output and error,
        // which may be closed at any time.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) };
        if closed == 0 {
            return Ok(());
        }
        // Kernels before 5.9.
        let most = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        for descriptor in 1..i32::try_from(most).unwrap_or(i32::MAX) {
            // SAFETY: as above; closing what is not open does nothing.
            unsafe { libc::close(descriptor) };
        }
        Ok(())
    }

    /// Restores the default handlers of faults. The handler of the Rust runtime would reset itself with a system call
    /// that is not permitted, so the same fault would repeat forever.
    fn die_of_faults() {
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: the default action needs nothing of this process.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }

    fn landlock_version() -> i64 {
        const VERSION: libc::c_uint = 1;
        // SAFETY: with this flag the kernel reads nothing and gives a number.
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) }
    }

    fn no_files() -> Result<RulesetStatus, RulesetError> {
        let status = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(NEWEST))?
            .handle_access(AccessNet::from_all(NEWEST))?
            .scope(Scope::from_all(NEWEST))?
            .create()?
            .restrict_self()?;
        Ok(status.ruleset)
    }

    /// System calls that memory, one socket and exiting need. All others fail with `EPERM`.
    const CALLS: &[i64] = &[
        libc::SYS_read,
        libc::SYS_write,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_brk,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_exit,
        libc::SYS_exit_group,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
    ];

    fn few_calls() -> Result<(), seccompiler::Error> {
        /// Index of the `prot` argument of `mmap` and `mprotect`.
        const PROTECTION: u8 = 2;
        let not_executable = SeccompCondition::new(
            PROTECTION,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64),
            0,
        )?;
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
            CALLS.iter().map(|call| (*call, Vec::new())).collect();
        for call in [libc::SYS_mmap, libc::SYS_mprotect] {
            rules.insert(call, vec![SeccompRule::new(vec![not_executable.clone()])?]);
        }
        let refused = SeccompAction::Errno(libc::EPERM as u32);
        let filter =
            SeccompFilter::new(rules, refused, SeccompAction::Allow, std::env::consts::ARCH.try_into()?)?;
        let program: seccompiler::BpfProgram = filter.try_into()?;
        seccompiler::apply_filter(&program)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! Other systems: resource limits and process isolation only.

    use std::io;

    use rustix::process::Resource;

    use super::{ADDRESS_SPACE_BYTES, CPU_SECONDS, Walls};

    pub(super) fn walls() -> Walls {
        Walls { limits: true, privileges: false, parent: false, files: false, network: false, calls: false }
    }

    pub(super) fn confine() -> io::Result<Walls> {
        super::limit(&[
            (Resource::As, ADDRESS_SPACE_BYTES),
            (Resource::Nproc, 0),
            (Resource::Core, 0),
            (Resource::Fsize, 0),
            (Resource::Cpu, CPU_SECONDS),
        ])?;
        Ok(walls())
    }
}

fn limit(limits: &[(rustix::process::Resource, u64)]) -> io::Result<()> {
    for (resource, most) in limits {
        // One second between soft and hard limit, so that a worker dies of the signal that names the reason.
        let grace = u64::from(*resource == rustix::process::Resource::Cpu);
        let limit = rustix::process::Rlimit { current: Some(*most), maximum: Some(*most + grace) };
        rustix::process::setrlimit(*resource, limit)?;
    }
    Ok(())
}
