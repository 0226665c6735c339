//! What running a program costs: from `return 1` to a thousand calls, beside the same program in other engines.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_mcp::client::{Call, Connection};
use pml_model::json::{Fields, raw};
use pml_sandbox::{Pool, Settings};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::gateway::{command, open, timed};
use super::{Figure, failed, milliseconds, quantile};
use crate::app::{App, Role};
use crate::config::{Env, Paths};
use crate::execute::{self, Resumed, WORKER_COMMAND};
use crate::problem::Problem;
use crate::report::Standing;

/// Between two programs, so that what is measured is a pool that is full.
const BREATH: Duration = Duration::from_millis(8);

/// Calls of the echo server under way at once.
const TOGETHER: usize = 64;

pub(super) async fn measure(rounds: usize) -> Result<Vec<Figure>, Problem> {
    let program = std::env::current_exe().map_err(failed)?;
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &program)?;
    let direct = open(&program, &["bench", "echo-server"], home.path()).await?;
    let gateway = open(&program, &["stdio"], home.path()).await?;
    // Past the moment at which a gateway that was just started warms up.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = small(&direct, &gateway, rounds).await?;
    figures.extend(many(&gateway, rounds).await?);
    figures.extend(crowd(&gateway).await?);
    figures.push(verdict(&gateway).await?);
    direct.close().await;
    gateway.close().await;
    figures.extend(pool(&program).await?);
    figures.push(resume(home.path()).await?);
    figures.extend(others(home.path()).await?);
    Ok(figures)
}

fn configure(home: &Path, program: &Path) -> Result<(), Problem> {
    let command = serde_json::to_string(program).unwrap_or_default();
    let text = format!(
        r#"[servers.echo]
command = {command}
args = ["bench", "echo-server"]
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

/// How long a program takes through `pml_execute`.
async fn run(gateway: &Connection, code: &str, options: Value) -> Result<(Duration, Value), Problem> {
    let mut params = Fields::default();
    params.set("name", raw(&"pml_execute"));
    let implementation = json!({ "type": "code", "code": code });
    params.set(
        "arguments",
        raw(&json!({ "intent": "measure", "implementation": implementation, "options": options })),
    );
    let (caller, cancel) = (Caller::silent(), CancellationToken::new());
    let started = Instant::now();
    let call = Call {
        method: "tools/call",
        params,
        mirrored: Vec::new(),
        caller: &caller,
        deadline: started + Duration::from_secs(120),
        cancel: &cancel,
    };
    let result = gateway.request(call).await.map_err(failed)?;
    let elapsed = started.elapsed();
    let result: Value = serde_json::from_str(result.get()).map_err(failed)?;
    Ok((elapsed, result["structuredContent"].clone()))
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

/// Calls one after the other, as a program makes them.
fn in_turn(call: &str, times: usize) -> String {
    format!("let last; for (let i = 0; i < {times}; i++) last = await {call}; return last")
}

async fn small(direct: &Connection, gateway: &Connection, rounds: usize) -> Result<Vec<Figure>, Problem> {
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
        Figure::of(
            "`return 1` through `pml_execute`, median / p95",
            format!("{} / {}", milliseconds(one_median), milliseconds(one_p95)),
        )
        .target("≤ 1.5 ms", one_median <= Duration::from_micros(1_500)),
        Figure::of(
            "a call from a program, beside the same call direct: added",
            format!("{} − {} = {}", milliseconds(each), milliseconds(alone), milliseconds(added)),
        )
        .target("≤ 0.3 ms", added <= Duration::from_micros(300)),
    ])
}

async fn many(gateway: &Connection, rounds: usize) -> Result<Vec<Figure>, Problem> {
    let rounds = rounds.div_ceil(10);
    let reading =
        median(gateway, &in_turn(r#"mcp.math.evaluate({ expression: "1+1" })"#, 1_000), rounds).await?;
    let writing =
        median(gateway, &in_turn(r#"mcp.text.case({ text: "a", to: "upper" })"#, 1_000), rounds).await?;
    let side_by_side = "const all = Array.from({ length: 100 }, () => mcp.echo.echo({ text: 'x', wait_ms: 10 }));\
                        return (await Promise.all(all)).length";
    let parallel = median(gateway, side_by_side, rounds).await?;
    Ok(vec![
        Figure::of("1,000 calls in turn to a tool in the process, reading", milliseconds(reading))
            .target("≤ 100 ms", reading <= Duration::from_millis(100)),
        Figure::of("1,000 calls in turn that must not be repeated, NORMAL", milliseconds(writing))
            .target("≤ 250 ms", writing <= Duration::from_millis(250)),
        Figure::of("100 calls of 10 ms side by side", milliseconds(parallel))
            .target("≤ 20 ms", parallel <= Duration::from_millis(20)),
    ])
}

/// Many programs at once, each as one alone.
async fn crowd(gateway: &Connection) -> Result<Vec<Figure>, Problem> {
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
        Figure::of(format!("{TOGETHER} programs of ten 10 ms calls at once: slowest / alone"), measured)
            .target("≤ 3", ratio <= 3.0),
    ])
}

/// How long after its time an endless program is known to be over.
async fn verdict(gateway: &Connection) -> Result<Figure, Problem> {
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
    Ok(Figure::of(
        "verdict on an endless program after its deadline, median / worst",
        format!("{} / {}", milliseconds(median), milliseconds(worst)),
    )
    .target("≤ 10 ms", worst <= Duration::from_millis(10)))
}

/// How soon a pool that was emptied is full again, and what a waiting worker costs.
async fn pool(program: &Path) -> Result<Vec<Figure>, Problem> {
    const SIZE: usize = 4;
    let mut settings = Settings::new(program.to_owned(), vec![WORKER_COMMAND.into()]);
    (settings.size, settings.most) = (SIZE, 64);
    let mut times = Vec::new();
    let mut own = 0;
    for _ in 0..10 {
        let pool = Pool::open(settings.clone()).map_err(failed)?;
        let mut taken = Vec::new();
        for _ in 0..SIZE {
            taken.push(pool.take().await.map_err(failed)?);
        }
        let started = Instant::now();
        for _ in 0..SIZE {
            taken.push(pool.take().await.map_err(failed)?);
        }
        times.push(started.elapsed());
        own = taken.iter().map(|worker| own_bytes(worker.pid())).max().unwrap_or_default().max(own);
    }
    let time = quantile(&mut times, 0.5);
    Ok(vec![
        Figure::of(format!("a pool of {SIZE}, emptied, full again"), milliseconds(time))
            .target("≤ 20 ms", time <= Duration::from_millis(20)),
        Figure::of("memory of a waiting worker that is its own", format!("{:.1} MB", own as f64 / 1e6))
            .target("≤ 3 MB", own > 0 && own <= 3_000_000),
    ])
}

/// Memory that a process shares with no other, as far as the system tells.
fn own_bytes(pid: u32) -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut pages = statm.split_ascii_whitespace().map(|field| field.parse::<u64>().unwrap_or_default());
    let (resident, shared) = (pages.nth(1).unwrap_or_default(), pages.next().unwrap_or_default());
    resident.saturating_sub(shared) * PAGE
}

/// How long it takes to bring a run with a journal of 1,000 events to where it stood.
async fn resume(home: &Path) -> Result<Figure, Problem> {
    let env = Env::from_iter([("PML_HOME", home.display().to_string())]);
    let paths = Paths::discover(&env)?;
    let app = App::open(paths, env, home.to_owned(), Role::Command).await?;
    let outcome = resumed(&app).await;
    app.close().await;
    let mut times = outcome?;
    let time = quantile(&mut times, 0.5);
    Ok(Figure::of("a run with a journal of 1,000 events stands where it stood", milliseconds(time))
        .target("≤ 50 ms", time <= Duration::from_millis(50)))
}

async fn resumed(app: &Arc<App>) -> Result<Vec<Duration>, Problem> {
    let code = "for (let i = 0; i < 500; i++) await mcp.math.evaluate({ expression: '1+1' });\
                await new Promise((done) => setTimeout(done, 3600000))"
        .to_owned();
    let execution = super::execution(app, crate::planning::Asked::Code(code));
    let crate::flow::Executed::Going(handle) = crate::flow::execute(app, execution, |_| true).await? else {
        return Err(failed("the program is not run"));
    };
    let asleep = |standing: &Standing| matches!(standing, Standing::Waiting { .. });
    if !asleep(&handle.wait(Duration::from_secs(30)).await) {
        return Err(failed("the program does not sleep"));
    }
    let mut times = Vec::new();
    for _ in 0..10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let started = Instant::now();
        let resumed = execute::resume(&app.runs, &app.principal, &handle.id, Caller::silent()).await?;
        let Resumed::Going(again) = resumed else { return Err(failed("the run does not go on")) };
        if !asleep(&again.wait(Duration::from_secs(30)).await) {
            return Err(failed("the run does not sleep again"));
        }
        times.push(started.elapsed());
    }
    Ok(times)
}

/// The same computation in a process of each engine that is there.
async fn others(home: &Path) -> Result<Vec<Figure>, Problem> {
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
        figures.push(Figure::of(
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
        figures.push(Figure::of(format!("beside it: a fresh `{what}` process"), measured));
    }
    Ok(figures)
}
