//! Workers that lie, die or hang: the host ends them, and nobody else notices.

use expect_test::expect;

use crate::host::{block_on, pool, program, settings, value_of};
use crate::tests;
use pml_sandbox::{PoolUnavailable, WorkerEvent, WorkerFault, WorkerPool};

tests![
    a_worker_that_lies_is_ended,
    a_worker_that_does_not_lie_is_not,
    a_worker_that_never_becomes_ready_is_not_given,
    a_crash_is_told,
    a_fault_is_final,
    others_go_on,
    those_that_waited_are_replaced,
];

fn first_of(how: &str) -> Result<WorkerEvent, WorkerFault> {
    block_on(async {
        let pool = WorkerPool::start(settings(&["evil-worker", how])).unwrap();
        let mut worker = pool.take_worker().await.unwrap();
        worker.begin_program(&program("return 1"));
        loop {
            match worker.next_event().await {
                Ok(WorkerEvent::Quiet { .. }) => {}
                // The first of two calls is as it should be.
                Ok(WorkerEvent::Call { .. }) if how == "replayed" => {}
                Ok(WorkerEvent::Operation { .. }) if how == "operations" => {}
                other => {
                    // It was killed, and is dead as soon as the kernel comes to it.
                    while other.is_err() && is_alive(worker.pid()) {
                        std::thread::yield_now();
                    }
                    return other;
                }
            }
        }
    })
}

/// Whether a process runs: a zombie does not.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        !matches!(state, Some('Z' | 'X') | None)
    })
}

fn a_worker_that_lies_is_ended() {
    let evils = "handle realm replayed skipped array no-json no-text no-event left-over ready-again taken twice-quiet \
                 while-quiet timer cleared progress value console frame frame-end preview preview-long \
                 preview-of-frame operations half";
    let mut table = String::new();
    for how in evils.split_whitespace() {
        match first_of(how) {
            Err(WorkerFault::Broke(what)) => table.push_str(&format!("{how}: {what}\n")),
            other => panic!("{how}: {other:?}"),
        }
    }
    expect![[r#"
        handle: a call of handle 99 in frame 0, which was not given
        realm: a call of handle 1 in frame 1, which was not given
        replayed: call 1 after call 1
        skipped: call 2 after call 0
        array: something that is not an object
        no-json: something that is not JSON: expected value at line 1 column 6
        no-text: a frame that is not a message: Tried to parse invalid utf-8
        no-event: a frame that is not a message: Hit the end of buffer, expected more data
        left-over: a frame that is not a message: The original data was not well encoded
        ready-again: that it is ready, a second time
        taken: that it took 1 deliveries, of 0
        twice-quiet: an event while nothing could happen
        while-quiet: an event while nothing could happen
        timer: timer 2 after timer 0
        cleared: 1 timers, more than 0
        progress: progress that is no number, or with a long message
        value: something that is not JSON: EOF while parsing an object at line 1 column 1
        console: 131073 bytes on the console, more than 65536
        frame: a call of program 0 in frame 0, which was not given
        frame-end: something of frame 1, which is not there
        preview: something that is not JSON: EOF while parsing an object at line 1 column 1
        preview-long: 302 bytes of a preview, more than 240
        preview-of-frame: something of frame 1, which is not there
        operations: 1001 operations, more than 1000
        half: half a frame
    "#]]
    .assert_eq(&table);
}

fn a_worker_that_does_not_lie_is_not() {
    assert!(matches!(first_of("fine"), Ok(WorkerEvent::Call { call: 1, handle: 1, .. })));
}

fn a_worker_that_never_becomes_ready_is_not_given() {
    let mut table = String::new();
    for how in ["dies", "garbage", "huge", "early", "fault"] {
        let taken = block_on(async {
            WorkerPool::start(settings(&["evil-worker", how])).unwrap().take_worker().await.map(drop)
        });
        match taken {
            Err(PoolUnavailable::Failed(why)) => table.push_str(&format!("{how}: {why}\n")),
            other => panic!("{how}: {other:?}"),
        }
    }
    expect![[r#"
        dies: the worker process died (exit code 3)
        garbage: the worker process was ended because it sent a frame of 542393671 bytes, more than 16777216
        huge: the worker process was ended because it sent a frame of 2147483648 bytes, more than 16777216
        early: the worker process was ended because it sent an event before a program began
        fault: the worker process died (signal 11)
    "#]]
    .assert_eq(&table);
}

fn a_crash_is_told() {
    let signal = |signal| WorkerFault::Died { exit: None, signal: Some(signal) };
    assert_eq!(first_of("crash"), Err(signal(6)));
    for (name, number) in [("-SEGV", 11), ("-KILL", 9)] {
        let fault = block_on(async {
            let mut worker = pool().take_worker().await.unwrap();
            worker.begin_program(&program("await mcp.fs.read({}); return 1"));
            while !matches!(worker.next_event().await, Ok(WorkerEvent::Quiet { .. })) {}
            let killed =
                std::process::Command::new("kill").args([name, &worker.pid().to_string()]).status().unwrap();
            assert!(killed.success());
            worker.next_event().await
        });
        assert_eq!(fault, Err(signal(number)));
    }
}

fn a_fault_is_final() {
    block_on(async {
        let mut worker = pool().take_worker().await.unwrap();
        worker.begin_program(&program("await mcp.fs.read({})"));
        worker.kill();
        let killed = WorkerFault::Died { exit: None, signal: Some(9) };
        let first = loop {
            match worker.next_event().await {
                Ok(_) => {}
                Err(fault) => break fault,
            }
        };
        assert_eq!(first, killed);
        assert_eq!(worker.next_event().await, Err(killed));
        let mut worker = pool().take_worker().await.unwrap();
        worker.begin_program(&program("return 1"));
        assert!(matches!(worker.next_event().await, Ok(WorkerEvent::Ended(_))));
        assert!(matches!(worker.next_event().await, Err(WorkerFault::Broke(_))));
    });
}

fn others_go_on() {
    block_on(async {
        let mut other = pool().take_worker().await.unwrap();
        other.begin_program(&program("return await mcp.fs.read({})"));
        assert!(matches!(other.next_event().await, Ok(WorkerEvent::Call { .. })));
        for how in ["handle", "no-event", "half"] {
            let evil = WorkerPool::start(settings(&["evil-worker", how])).unwrap();
            let mut worker = evil.take_worker().await.unwrap();
            worker.begin_program(&program("return 1"));
            assert!(worker.next_event().await.is_err());
        }
        assert!(matches!(other.next_event().await, Ok(WorkerEvent::Quiet { .. })));
        let what = pml_sandbox::DeliveryPayload::Result { call: 1, json: "5".to_owned() };
        other.deliver(&pml_sandbox::Delivery { now_ms: 1, what });
        assert_eq!(
            other.next_event().await,
            Ok(WorkerEvent::Ended(pml_sandbox::ProgramEnding::Value("5".to_owned())))
        );
    });
    assert_eq!(value_of("return 1"), "1");
}

fn those_that_waited_are_replaced() {
    block_on(async {
        for round in 0..20 {
            pool().replace_idle_workers();
            // Whoever asks meanwhile gets one all the same.
            let (one, other) = tokio::join!(pool().take_worker(), async {
                pool().replace_idle_workers();
                pool().take_worker().await
            });
            for mut worker in [one.unwrap(), other.unwrap()] {
                worker.begin_program(&program(&format!("return {round}")));
                let ended = pml_sandbox::ProgramEnding::Value(round.to_string());
                assert_eq!(worker.next_event().await, Ok(WorkerEvent::Ended(ended)));
            }
        }
    });
}
