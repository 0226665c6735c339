//! Processes are started, kept, limited and cleared away.

use std::os::fd::AsRawFd;

use crate::faults::is_alive;
use crate::host::{block_on, drive, echo, program, settings};
use crate::tests;
use pml_sandbox::{PoolSettings, PoolUnavailable, WorkerPool};

tests![
    a_process_serves_once,
    too_many_wait_in_turn_and_more_are_refused,
    giving_up_the_wait_gives_back_the_place,
    an_idle_worker_that_died_is_passed_over,
    nothing_is_left_behind,
    closing_ends_every_worker,
    a_missing_program_is_told,
    no_descriptor_and_no_variable_gets_in,
];

fn small(most: usize, queue: usize) -> WorkerPool {
    WorkerPool::start(PoolSettings {
        ready_workers: 1,
        max_running: most,
        max_waiting: queue,
        ..settings(&["sandbox-worker"])
    })
    .unwrap()
}

fn a_process_serves_once() {
    block_on(async {
        let pool = small(1, 1);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..5 {
            let mut worker = pool.take_worker().await.unwrap();
            assert!(seen.insert(worker.pid()));
            drive(&mut worker, &program("return 1"), echo).await.unwrap();
        }
    });
}

fn too_many_wait_in_turn_and_more_are_refused() {
    block_on(async {
        let pool = small(1, 2);
        let first = pool.take_worker().await.unwrap();
        let mut second = Box::pin(pool.take_worker());
        let mut third = Box::pin(pool.take_worker());
        assert!(futures_poll(&mut second).await.is_none());
        assert!(futures_poll(&mut third).await.is_none());
        assert_eq!(pool.take_worker().await.err(), Some(PoolUnavailable::Busy { running: 1, waiting: 2 }));
        drop(first);
        let second = second.await.unwrap();
        assert!(futures_poll(&mut third).await.is_none());
        drop(second);
        third.await.unwrap();
    });
}

/// Polls once, after others have had a turn.
async fn futures_poll<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = tokio::task::yield_now() => None,
    }
}

fn giving_up_the_wait_gives_back_the_place() {
    block_on(async {
        let pool = small(1, 1);
        let first = pool.take_worker().await.unwrap();
        for _ in 0..3 {
            let mut waits = Box::pin(pool.take_worker());
            assert!(futures_poll(&mut waits).await.is_none());
        }
        drop(first);
        pool.take_worker().await.unwrap();
    });
}

/// In a process of its own, because there all children are of one pool.
fn an_idle_worker_that_died_is_passed_over() {
    let host =
        std::process::Command::new(std::env::current_exe().unwrap()).arg("lonely-host").output().unwrap();
    assert!(host.status.success(), "{}", String::from_utf8_lossy(&host.stderr));
}

pub(crate) fn lonely_host() {
    block_on(async {
        let pool = small(1, 1);
        // Whoever is there after one was taken is the next.
        drop(pool.take_worker().await.unwrap());
        for _ in 0..3 {
            let idle = loop {
                match children()[..] {
                    [pid] if is_ready(pid) => break pid,
                    _ => std::thread::yield_now(),
                }
            };
            assert!(
                std::process::Command::new("kill")
                    .args(["-KILL", &idle.to_string()])
                    .status()
                    .unwrap()
                    .success()
            );
            while is_alive(idle) {
                std::thread::yield_now();
            }
            let mut worker = pool.take_worker().await.unwrap();
            assert_ne!(worker.pid(), idle);
            drive(&mut worker, &program("return 1"), echo).await.unwrap();
        }
    });
}

/// Whether it waits behind its walls.
fn is_ready(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.contains("Seccomp:\t2") && status.contains("State:\tS")
}

fn children() -> Vec<u32> {
    let lists = std::fs::read_dir("/proc/self/task")
        .unwrap()
        .map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    lists.collect::<String>().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// The processes of a pool are gone, not even waiting to be buried, once it and its workers are.
fn nothing_is_left_behind() {
    let pids = block_on(async {
        let pool = small(4, 4);
        let mut pids = Vec::new();
        let mut kept = Vec::new();
        for _ in 0..4 {
            let mut worker = pool.take_worker().await.unwrap();
            pids.push(worker.pid());
            worker.begin_program(&program("for (;;) {}"));
            kept.push(worker);
        }
        drop(pool);
        assert!(kept.iter().all(|worker| is_alive(worker.pid())));
        pids
    });
    for pid in pids {
        while std::path::Path::new(&format!("/proc/{pid}")).exists() {
            std::thread::yield_now();
        }
    }
}

/// The thread that started the workers has ended, which the kernel tells those that are still in use.
fn closing_ends_every_worker() {
    block_on(async {
        let pool = small(2, 2);
        let mut busy = pool.take_worker().await.unwrap();
        busy.begin_program(&program("for (;;) {}"));
        pool.close().await;
        while is_alive(busy.pid()) {
            std::thread::yield_now();
        }
        match pool.take_worker().await {
            Err(PoolUnavailable::Failed(why)) => assert_eq!(why, "no programs are run any more"),
            other => panic!("{other:?}"),
        }
        pool.close().await;
    });
}

fn a_missing_program_is_told() {
    block_on(async {
        let pool = WorkerPool::start(PoolSettings::new("/no/such/program".into(), Vec::new())).unwrap();
        match pool.take_worker().await {
            Err(PoolUnavailable::Failed(why)) => assert!(why.contains("No such file"), "{why}"),
            other => panic!("{other:?}"),
        }
    });
}

#[allow(unsafe_code)]
fn no_descriptor_and_no_variable_gets_in() {
    let open = std::fs::File::open("/dev/null").unwrap();
    // SAFETY: the descriptor is open; it may be inherited from here on.
    unsafe { libc::fcntl(open.as_raw_fd(), libc::F_SETFD, 0) };
    block_on(async {
        let pool = small(1, 1);
        let worker = pool.take_worker().await.unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", worker.pid())).unwrap();
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
            line.split_whitespace().nth(1).unwrap_or_default().to_owned()
        };
        assert_eq!(
            (field("NoNewPrivs:"), field("Seccomp:"), field("Threads:")),
            ("1".into(), "2".into(), "1".into())
        );
        // Only root may look into a worker; where this is root, look.
        if let Ok(entries) = std::fs::read_dir(format!("/proc/{}/fd", worker.pid())) {
            assert_eq!(entries.count(), 1);
            let environment = std::fs::read(format!("/proc/{}/environ", worker.pid())).unwrap();
            assert_eq!(environment, b"TZ=UTC0\0");
        }
    });
}
