//! The overhead of DAG runs over their critical path, the cost of scheduling, and the memory of waiting runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::execute::rehearse;
use pml::execute::schedule::{AttemptOutcome, Schedule, ScheduleStep, ScheduledTask};
use pml::flow::{self, ExecuteOutcome};
use pml::plan::Pause;
use pml::planning::{RunRequest, Work};
use pml::problem::Problem;
use pml::report::RunStatus;
use pml_mcp::client::Connection;
use serde_json::{Value, json};

use crate::cpu::children;
use crate::execution::execution;
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::gateway::{call, open, timed};
use crate::programs::Programs;

/// The latency of the tool, in milliseconds.
const LATENCY_MS: u64 = 20;
/// The number of tasks that are scheduled.
const TASKS: usize = 10_000;
/// The number of waiting runs.
const WAITING: usize = 1_000;

pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench)?;
    let direct = open(&programs.bench, &["echo-server"], home.path()).await?;
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    // A gateway warms up shortly after its start; wait until that is over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = critical_path(&direct, &gateway, rounds).await?;
    direct.close().await;
    gateway.close().await;
    figures.push(scheduling());
    let env = Env::from_iter([("PML_HOME", home.path().display().to_string())]);
    let app = App::open(Paths::discover(&env)?, env, home.path().to_owned(), ProcessRole::Command).await?;
    let more = in_process(&app).await;
    app.close().await;
    figures.extend(more?);
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
"math:evaluate" = {{ approval_mode = "auto" }}
[limits]
concurrent_per_server = 128
calls = {TASKS}
[runs]
durable = "normal"
[memory]
cache = false
"#
    );
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// The dependencies of each task, by index.
type DagShape = Vec<Vec<usize>>;

fn chain(length: usize) -> DagShape {
    (0..length).map(|task| task.checked_sub(1).into_iter().collect()).collect()
}

fn layered(layers: usize, wide: usize) -> DagShape {
    let before = |task: usize| match task / wide {
        0 => Vec::new(),
        layer => (0..wide).map(|place| (layer - 1) * wide + place).collect(),
    };
    (0..layers * wide).map(before).collect()
}

/// A random DAG: each task depends on up to three earlier ones. The seed makes it reproducible.
fn random(tasks: usize, mut seed: u64) -> DagShape {
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap_or(0) % sides.max(1)
    };
    let shape = (0..tasks).map(|task| {
        let mut after: Vec<usize> = (0..roll(4)).filter(|_| task > 0).map(|_| roll(task)).collect();
        after.sort_unstable();
        after.dedup();
        after
    });
    shape.collect()
}

/// The number of tasks on the longest path.
fn longest(shape: &DagShape) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(shape.len());
    for after in shape {
        depths.push(1 + after.iter().map(|before| depths[*before]).max().unwrap_or(0));
    }
    depths.into_iter().max().unwrap_or(0)
}

fn document(shape: &DagShape, tool: &str, arguments: &Value) -> Value {
    let task = |(task, after): (usize, &Vec<usize>)| {
        let after: Vec<String> = after.iter().map(|before| format!("t{before}")).collect();
        json!({ "id": format!("t{task}"), "tool": tool, "arguments": arguments, "dependsOn": after })
    };
    json!({ "tasks": shape.iter().enumerate().map(task).collect::<Vec<_>>() })
}

async fn critical_path(
    direct: &Connection,
    gateway: &Connection,
    rounds: usize,
) -> Result<Vec<BenchFigure>, Problem> {
    let mut alone = Vec::with_capacity(rounds * 5);
    for _ in 0..rounds * 5 {
        alone.push(timed(direct, "echo", LATENCY_MS).await?);
    }
    let call = quantile(&mut alone, 0.5);
    let shapes = [
        ("a chain of 5 tasks", chain(5), 0.05),
        ("a chain of 20 tasks", chain(20), 0.05),
        ("5 tasks at random", random(5, 3), 0.05),
        ("20 tasks at random", random(20, 3), 0.05),
        ("10 layers of 20 tasks", layered(10, 20), 0.10),
    ];
    let mut figures = vec![BenchFigure::of(
        format!("a call of a tool that takes {LATENCY_MS} ms, direct"),
        milliseconds(call),
    )];
    for (what, shape, share) in shapes {
        let document = document(&shape, "echo:echo", &json!({ "text": "x", "wait_ms": LATENCY_MS }));
        run(gateway, &document).await?;
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            times.push(run(gateway, &document).await?);
        }
        let (time, path) = (quantile(&mut times, 0.5), call * longest(&shape));
        let over = time.saturating_sub(path);
        let most = path.mul_f64(share).max(Duration::from_millis(3));
        figures.push(
            BenchFigure::of(
                format!("{what}, beyond the longest way of {}", longest(&shape)),
                format!("{} − {} = {}", milliseconds(time), milliseconds(path), milliseconds(over)),
            )
            .target(format!("≤ {}", milliseconds(most)), over <= most),
        );
    }
    Ok(figures)
}

/// The time of a DAG document through `pml_execute`.
async fn run(gateway: &Connection, document: &Value) -> Result<Duration, Problem> {
    let implementation = json!({ "type": "dag", "dagStructure": document });
    let request = json!({ "intent": "measure", "implementation": implementation });
    let (elapsed, said) = call(gateway, "pml_execute", &request).await?;
    if said["status"] == "success" { Ok(elapsed) } else { Err(failed(said)) }
}

/// Scheduling alone, without calls.
fn scheduling() -> BenchFigure {
    let shape = random(TASKS, 7);
    let mut times: Vec<Duration> = (0..11).map(|_| turns(&shape)).collect();
    let time = quantile(&mut times, 0.5);
    BenchFigure::of(format!("the turns of {TASKS} tasks at random"), milliseconds(time))
        .target("≤ 20 ms", time <= Duration::from_millis(20))
}

fn turns(shape: &DagShape) -> Duration {
    let node = |after: &Vec<usize>| ScheduledTask { after: after.clone(), ..ScheduledTask::default() };
    let nodes = shape.iter().map(node).collect();
    let started = Instant::now();
    let mut schedule = Schedule::new(nodes, Pause::None);
    let mut steps = schedule.go_on();
    while let Some(step) = steps.pop() {
        if let ScheduleStep::Start { task, .. } = step {
            steps.extend(schedule.on_attempt_ended(task, AttemptOutcome::Succeeded));
        }
    }
    started.elapsed()
}

async fn in_process(app: &Arc<App>) -> Result<Vec<BenchFigure>, Problem> {
    let mut figures = vec![rehearsal(app).await?];
    figures.extend(waiting(app).await?);
    Ok(figures)
}

/// Scheduling with arguments that refer to the results of other tasks, through the run core.
async fn rehearsal(app: &Arc<App>) -> Result<BenchFigure, Problem> {
    let shape = random(TASKS, 7);
    let mut document = document(&shape, "math:evaluate", &json!({ "expression": "1" }));
    for (task, after) in shape.iter().enumerate() {
        if let Some(before) = after.first() {
            document["tasks"][task]["arguments"] = json!({ "expression": format!("{{{{t{before}}}}}") });
        }
    }
    let plan = Arc::new(
        flow::plan_without_running(app, &dag_execution(app, document.to_string(), Pause::None)).await?,
    );
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = Instant::now();
        let calls = rehearse(&plan).ok_or_else(|| failed("there are no tasks"))?;
        times.push(started.elapsed());
        if calls as usize != TASKS {
            return Err(failed(format!("{calls} of {TASKS} tasks were called")));
        }
    }
    let time = quantile(&mut times, 0.5);
    Ok(BenchFigure::of(
        format!("{TASKS} tasks with references, arguments and calls made"),
        milliseconds(time),
    ))
}

fn dag_execution(app: &App, document: String, pause: Pause) -> RunRequest {
    execution(app, Work::Dag { document, pause })
}

/// Memory and processes of runs that wait after a layer.
async fn waiting(app: &Arc<App>) -> Result<Vec<BenchFigure>, Problem> {
    let document = document(&chain(3), "math:evaluate", &json!({ "expression": "1+1" })).to_string();
    // The first runs grow buffers that the later ones reuse.
    wait_each(app, &document, 200).await?;
    let (before, servers) = (resident_bytes(), children().len());
    wait_each(app, &document, WAITING).await?;
    let each = resident_bytes().saturating_sub(before) / WAITING as u64;
    let processes = children().len().saturating_sub(servers);
    Ok(vec![
        BenchFigure::of(
            format!("{WAITING} runs that wait after a layer: memory of each"),
            format!("{each} bytes"),
        )
        .target("≤ 1 kB", each <= 1_000),
        BenchFigure::of("processes for them", processes.to_string()).target("0", processes == 0),
    ])
}

async fn wait_each(app: &Arc<App>, document: &str, runs: usize) -> Result<(), Problem> {
    for _ in 0..runs {
        let execution = dag_execution(app, document.to_owned(), Pause::PerLayer);
        let ExecuteOutcome::Running(handle) = flow::execute(app, execution, |_| true).await? else {
            return Err(failed("the document is not run"));
        };
        match handle.wait(Duration::from_secs(30)).await {
            RunStatus::Waiting { question: Some(_), .. } => {}
            other => return Err(failed(format!("a run does not wait: {other:?}"))),
        }
    }
    Ok(())
}

fn resident_bytes() -> u64 {
    const PAGE: u64 = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default()
        * PAGE
}
