//! How long things take here: `cargo run --release -p pml-sandbox --example timing`.

#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use pml_sandbox::{
    Delivery, DeliveryPayload, GrantedTool, PoolSettings, SandboxLimits, SandboxProgram, Worker, WorkerEvent,
    WorkerPool,
};

fn main() {
    if std::env::args().nth(1).as_deref() == Some("sandbox-worker") {
        pml_sandbox::worker_main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(1).build();
    runtime.expect("a runtime").block_on(measure());
}

async fn measure() {
    let here = std::env::current_exe().expect("this program has a path");
    let settings =
        PoolSettings { ready_workers: 1, ..PoolSettings::new(here, vec!["sandbox-worker".into()]) };
    let started = Instant::now();
    let pool = WorkerPool::start(settings).expect("a thread");
    drop(pool.take_worker().await.expect("a worker"));
    println!("start of the pool to ready: {:?}", started.elapsed());

    let mut times = Vec::new();
    for _ in 0..200 {
        let mut worker = pool.take_worker().await.expect("a worker");
        // The next one is being started meanwhile; a run is measured when that is done.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let begun = Instant::now();
        worker.begin_program(&program("return 1"));
        until_end(&mut worker).await;
        times.push(begun.elapsed());
    }
    tell("begin to end of `return 1`", times);

    let calls = 1_000;
    let mut times = Vec::new();
    for _ in 0..5 {
        let mut worker = pool.take_worker().await.expect("a worker");
        tokio::time::sleep(Duration::from_millis(10)).await;
        worker.begin_program(&program("for (let i = 0; i < 1000; i++) await mcp.s.t({ i }); return 1"));
        let begun = Instant::now();
        until_end(&mut worker).await;
        times.push(begun.elapsed() / calls);
    }
    tell("one call and its result", times);

    // What probes cost in a loop that does nothing else, and what the first operations of a place cost, which are looked at.
    for (what, times, operation) in [
        ("an operation without probes", 100_000_u32, "Math.max(i, 3)"),
        ("one that is counted", 100_000, "P.did(1, Math.max(i, 3))"),
        ("one that is timed the first times", 100_000, "P.did(1, Math.max(i, P.does(1, 3)))"),
        ("one of those that are timed and looked at", 20, "P.did(1, Math.max(i, P.does(1, 3)))"),
        ("one whose value is an array of objects", 20, "P.did(1, P.does(1, rows).slice())"),
    ] {
        let rows = "const rows = Array.from({ length: 1000 }, (_, id) => ({ id, name: 'row ' + id }));";
        let js = format!("{rows} for (let i = 0; i < {times}; i++) {operation}; return 1");
        let mut all = Vec::new();
        for _ in 0..9 {
            let mut worker = pool.take_worker().await.expect("a worker");
            tokio::time::sleep(Duration::from_millis(10)).await;
            worker.begin_program(&program(&js));
            let begun = Instant::now();
            until_end(&mut worker).await;
            all.push(begun.elapsed() / times);
        }
        tell(what, all);
    }

    let worker = pool.take_worker().await.expect("a worker");
    let memory = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", worker.pid())).unwrap_or_default();
    for line in memory.lines().filter(|line| line.starts_with("Rss") || line.starts_with("Private_Dirty")) {
        println!("idle worker: {line}");
    }
}

fn tell(what: &str, mut times: Vec<Duration>) {
    times.sort();
    println!("{what}: {:?} at best, {:?} median", times[0], times[times.len() / 2]);
}

async fn until_end(worker: &mut Worker) {
    let mut call = 0;
    loop {
        match worker.next_event().await.expect("a program that ends") {
            WorkerEvent::Call { call: number, .. } => call = number,
            WorkerEvent::Quiet { .. } => {
                let what = DeliveryPayload::Result { call, json: "{\"ok\":true}".to_owned() };
                worker.deliver(&Delivery { now_ms: 0, what });
            }
            WorkerEvent::Ended(_) => return,
            _ => {}
        }
    }
}

fn program(js: &str) -> SandboxProgram {
    SandboxProgram {
        js: js.to_owned(),
        probe: "P".to_owned(),
        entries: Vec::new(),
        arguments: "{}".to_owned(),
        seed: 1,
        now_ms: 0,
        nested: Vec::new(),
        sees: Vec::new(),
        tools: vec![GrantedTool { server: "s".to_owned(), names: vec!["t".to_owned()], handle: 1 }],
        limits: SandboxLimits::default(),
    }
}
