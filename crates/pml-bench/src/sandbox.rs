//! The cost of running a program, from `return 1` to a thousand calls, compared with other engines.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::execute::{self, ResumeOutcome, WORKER_COMMAND};
use pml::flow::{self, ExecuteOutcome};
use pml::planning::Work;
use pml::problem::Problem;
use pml::report::RunStatus;
use pml_mcp::Caller;
use pml_mcp::client::Connection;
use pml_sandbox::{PoolSettings, WorkerPool};
use serde_json::{Value, json};

use crate::execution::execution;
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::gateway::{call, command, open, timed};
use crate::programs::Programs;

/// 8 ms between two programs, so that the worker pool is full again before each measurement.
const BREATH: Duration = Duration::from_millis(8);

/// The number of programs that run at once.
const TOGETHER: usize = 64;

pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench)?;
    let direct = open(&programs.bench, &["echo-server"], home.path()).await?;
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    // A gateway warms up shortly after its start; wait until that is over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = small(&direct, &gateway, rounds).await?;
    figures.extend(many(&gateway, rounds).await?);
    figures.extend(crowd(&gateway).await?);
    figures.push(verdict(&gateway).await?);
    direct.close().await;
    gateway.close().await;
    figures.extend(pool(&programs.pml).await?);
    figures.push(resume(home.path()).await?);
    figures.extend(others(home.path()).await?);
    Ok(figures)
}

fn configure(home: &Path, echo: &Path) -> Result<(), Problem> {
    let command = serde_json::to_string(echo).unwrap_or_default();
    let text = format!(
        r#"[servers.echo]
command = {command}
args = ["echo-server"]
[permissions]
"echo:echo" = {{ approval_mode = "auto", read_only = true }}
"text:*" = {{ approval_mode = "auto", read_only = false, idempotent = false }}
[limits]
concurrent_per_server = 128
calls = 2000
[runs]
durable = "normal"
workers = 4
[memory]
cache = false
"#
    );
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// The time of a program through `pml_execute`, and its result.
async fn run(gateway: &Connection, code: &str, options: Value) -> Result<(Duration, Value), Problem> {
    let implementation = json!({ "type": "code", "code": code });
    let request = json!({ "intent": "measure", "implementation": implementation, "options": options });
    call(gateway, "pml_execute", &request).await
}

async fn run_well(gateway: &Connection, code: &str) -> Result<Duration, Problem> {
    let (elapsed, said) = run(gateway, code, json!({})).await?;
    if said["status"] == "success" { Ok(elapsed) } else { Err(failed(said)) }
}

async fn median(gateway: &Connection, code: &str, rounds: usize) -> Result<Duration, Problem> {
    let mut samples = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        samples.push(run_well(gateway, code).await?);
        tokio::time::sleep(BREATH).await;
    }
    Ok(quantile(&mut samples, 0.5))
}

/// A program that makes calls one after the other.
fn in_turn(call: &str, times: usize) -> String {
    format!("let last; for (let i = 0; i < {times}; i++) last = await {call}; return last")
}

async fn small(
    direct: &Connection,
    gateway: &Connection,
    rounds: usize,
) -> Result<Vec<BenchFigure>, Problem> {
    const CALLS: u32 = 100;
    let mut one = Vec::with_capacity(rounds);
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    let program = in_turn(r#"mcp.echo.echo({ text: "hello", wait_ms: 0 })"#, CALLS as usize);
    run_well(gateway, &program).await?;
    for _ in 0..rounds {
        one.push(run_well(gateway, "return 1").await?);
        tokio::time::sleep(BREATH).await;
    }
    for _ in 0..rounds.div_ceil(10) {
        for _ in 0..CALLS {
            alone.push(timed(direct, "echo", 0).await?);
        }
        with.push(run_well(gateway, &program).await?);
        tokio::time::sleep(BREATH).await;
    }
    let (one_median, one_p95) = (quantile(&mut one, 0.5), quantile(&mut one, 0.95));
    let alone = quantile(&mut alone, 0.5);
    let each = quantile(&mut with, 0.5).saturating_sub(one_median) / CALLS;
    let added = each.saturating_sub(alone);
    Ok(vec![
        BenchFigure::of(
            "`return 1` through `pml_execute`, median / p95",
            format!("{} / {}", milliseconds(one_median), milliseconds(one_p95)),
        )
        .target("≤ 1.5 ms", one_median <= Duration::from_micros(1_500)),
        BenchFigure::of(
            "a call from a program, beside the same call direct: added",
            format!("{} − {} = {}", milliseconds(each), milliseconds(alone), milliseconds(added)),
        )
        .target("≤ 0.3 ms", added <= Duration::from_micros(300)),
    ])
}

async fn many(gateway: &Connection, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let rounds = rounds.div_ceil(10);
    let reading =
        median(gateway, &in_turn(r#"mcp.math.evaluate({ expression: "1+1" })"#, 1_000), rounds).await?;
    let writing =
        median(gateway, &in_turn(r#"mcp.text.case({ text: "a", to: "upper" })"#, 1_000), rounds).await?;
    let side_by_side = "const all = Array.from({ length: 100 }, () => mcp.echo.echo({ text: 'x', wait_ms: 10 }));\
                        return (await Promise.all(all)).length";
    let parallel = median(gateway, side_by_side, rounds).await?;
    Ok(vec![
        BenchFigure::of("1,000 calls in turn to a tool in the process, reading", milliseconds(reading))
            .target("≤ 100 ms", reading <= Duration::from_millis(100)),
        BenchFigure::of("1,000 calls in turn that must not be repeated, NORMAL", milliseconds(writing))
            .target("≤ 250 ms", writing <= Duration::from_millis(250)),
        BenchFigure::of("100 calls of 10 ms side by side", milliseconds(parallel))
            .target("≤ 20 ms", parallel <= Duration::from_millis(20)),
    ])
}

/// Many programs at once, compared with one alone.
async fn crowd(gateway: &Connection) -> Result<Vec<BenchFigure>, Problem> {
    let program = in_turn("mcp.echo.echo({ text: 'x', wait_ms: 10 })", 10);
    let solo = median(gateway, &program, 5).await?;
    let all = (0..TOGETHER).map(|_| run_well(gateway, &program));
    let mut times = Vec::with_capacity(TOGETHER);
    for time in futures_util::future::join_all(all).await {
        times.push(time?);
    }
    let slowest = quantile(&mut times, 1.0);
    let ratio = slowest.as_secs_f64() / solo.as_secs_f64().max(1e-9);
    let measured = format!("{} / {} = {ratio:.2}", milliseconds(slowest), milliseconds(solo));
    Ok(vec![
        BenchFigure::of(format!("{TOGETHER} programs of ten 10 ms calls at once: slowest / alone"), measured)
            .target("≤ 3", ratio <= 3.0),
    ])
}

/// How long after its deadline an endless program is reported as timed out.
async fn verdict(gateway: &Connection) -> Result<BenchFigure, Problem> {
    const LIMIT: Duration = Duration::from_millis(200);
    let mut late = Vec::new();
    for program in ["while (true) {}", "new Array(4294967295).join('')", "for (;;) await null"] {
        for _ in 0..5 {
            let (elapsed, said) = run(gateway, program, json!({ "timeoutMs": LIMIT.as_millis() })).await?;
            if said["error"]["code"] != "TIMEOUT" {
                return Err(failed(said));
            }
            late.push(elapsed.saturating_sub(LIMIT));
        }
    }
    let (median, worst) = (quantile(&mut late, 0.5), quantile(&mut late, 1.0));
    Ok(BenchFigure::of(
        "verdict on an endless program after its deadline, median / worst",
        format!("{} / {}", milliseconds(median), milliseconds(worst)),
    )
    .target("≤ 10 ms", worst <= Duration::from_millis(10)))
}

/// The time to refill an emptied worker pool, and the memory of an idle worker.
async fn pool(program: &Path) -> Result<Vec<BenchFigure>, Problem> {
    const SIZE: usize = 4;
    let mut settings = PoolSettings::new(program.to_owned(), vec![WORKER_COMMAND.into()]);
    (settings.ready_workers, settings.max_running) = (SIZE, 64);
    let mut times = Vec::new();
    let mut own = 0;
    for _ in 0..10 {
        let pool = WorkerPool::start(settings.clone()).map_err(failed)?;
        let mut taken = Vec::new();
        for _ in 0..SIZE {
            taken.push(pool.take_worker().await.map_err(failed)?);
        }
        let started = Instant::now();
        for _ in 0..SIZE {
            taken.push(pool.take_worker().await.map_err(failed)?);
        }
        times.push(started.elapsed());
        own = taken.iter().map(|worker| own_bytes(worker.pid())).max().unwrap_or_default().max(own);
    }
    let time = quantile(&mut times, 0.5);
    Ok(vec![
        BenchFigure::of(format!("a pool of {SIZE}, emptied, full again"), milliseconds(time))
            .target("≤ 20 ms", time <= Duration::from_millis(20)),
        BenchFigure::of("memory of a waiting worker that is its own", format!("{:.1} MB", own as f64 / 1e6))
            .target("≤ 3 MB", own > 0 && own <= 3_000_000),
    ])
}

/// The memory that a process shares with no other, in bytes, as far as the system reports it.
fn own_bytes(pid: u32) -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut pages = statm.split_ascii_whitespace().map(|field| field.parse::<u64>().unwrap_or_default());
    let (resident, shared) = (pages.nth(1).unwrap_or_default(), pages.next().unwrap_or_default());
    resident.saturating_sub(shared) * PAGE
}

/// The time to resume a run from a journal of 1,000 events.
async fn resume(home: &Path) -> Result<BenchFigure, Problem> {
    let env = Env::from_iter([("PML_HOME", home.display().to_string())]);
    let paths = Paths::discover(&env)?;
    let app = App::open(paths, env, home.to_owned(), ProcessRole::Command).await?;
    let outcome = resumed(&app).await;
    app.close().await;
    let mut times = outcome?;
    let time = quantile(&mut times, 0.5);
    Ok(BenchFigure::of("a run with a journal of 1,000 events stands where it stood", milliseconds(time))
        .target("≤ 50 ms", time <= Duration::from_millis(50)))
}

async fn resumed(app: &Arc<App>) -> Result<Vec<Duration>, Problem> {
    let code = "for (let i = 0; i < 500; i++) await mcp.math.evaluate({ expression: '1+1' });\
                await new Promise((done) => setTimeout(done, 3600000))"
        .to_owned();
    let execution = execution(app, Work::Code(code));
    let ExecuteOutcome::Running(handle) = flow::execute(app, execution, |_| true).await? else {
        return Err(failed("the program is not run"));
    };
    let asleep = |standing: &RunStatus| matches!(standing, RunStatus::Waiting { .. });
    if !asleep(&handle.wait(Duration::from_secs(30)).await) {
        return Err(failed("the program does not sleep"));
    }
    let mut times = Vec::new();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let started = Instant::now();
        let resumed = execute::resume(&app.runs, &app.principal, &handle.id, Caller::silent()).await?;
        let ResumeOutcome::Running(again) = resumed else { return Err(failed("the run does not go on")) };
        if !asleep(&again.wait(Duration::from_secs(30)).await) {
            return Err(failed("the run does not sleep again"));
        }
        times.push(started.elapsed());
    }
    Ok(times)
}

/// The same computation in a process of each other engine that is installed.
async fn others(home: &Path) -> Result<Vec<BenchFigure>, Problem> {
    let env = Env::of_process();
    let path = env.get("PATH").unwrap_or_default();
    let program = "1";
    let node = format!(
        "const vm = require('node:vm'); const times = []; for (let i = 0; i < 200; i++) {{ const t = process.hrtime.bigint(); \
         new vm.Script({program:?}).runInContext(vm.createContext({{}})); times.push(Number(process.hrtime.bigint() - t)); }} \
         times.sort((a, b) => a - b); console.log(times[100] / 1e6)"
    );
    let script = home.join("one.ts");
    std::fs::write(&script, format!("console.log({program})\n")).map_err(failed)?;
    let mut figures = Vec::new();
    let warm = command(Path::new("node"), home).env("PATH", path).args(["-e", &node]).output().await;
    if let Ok(done) = &warm
        && done.status.success()
    {
        let time = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        figures.push(BenchFigure::of(
            "beside it: a new context of Node's `vm`, in one process",
            format!("{time} ms"),
        ));
    }
    let script = script.display().to_string();
    for (what, arguments) in [
        ("node", vec!["-e".to_owned(), format!("require('node:vm').runInNewContext({program:?})")]),
        ("deno", vec!["run".to_owned(), "--no-check".to_owned(), "--no-remote".to_owned(), script]),
    ] {
        let mut times = Vec::new();
        for _ in 0..10 {
            let started = Instant::now();
            let ended = command(Path::new(what), home).env("PATH", path).args(&arguments).output().await;
            match ended {
                Ok(done) if done.status.success() => times.push(started.elapsed()),
                Ok(done) => return Err(failed(String::from_utf8_lossy(&done.stderr))),
                Err(_) => break,
            }
        }
        let measured = if times.is_empty() {
            "not on this machine".to_owned()
        } else {
            milliseconds(quantile(&mut times, 0.5))
        };
        figures.push(BenchFigure::of(format!("beside it: a fresh `{what}` process"), measured));
    }
    Ok(figures)
}
