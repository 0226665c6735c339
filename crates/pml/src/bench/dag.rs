//! What a run of tasks costs beside the longest way through them, what scheduling takes, and what waiting runs hold.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_mcp::client::{Call, Connection};
use pml_model::json::{Fields, raw};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::gateway::{open, timed};
use super::{Figure, failed, milliseconds, quantile};
use crate::app::{App, Role};
use crate::config::{Env, Paths};
use crate::execute::rehearse;
use crate::execute::schedule::{Node, Schedule, Step, Tried};
use crate::flow::{self, Executed};
use crate::plan::Pause;
use crate::planning::{Asked, Execution};
use crate::problem::Problem;
use crate::report::Standing;

/// How long the tool takes.
const LATENCY_MS: u64 = 20;
/// So many tasks are scheduled.
const TASKS: usize = 10_000;
/// So many runs wait.
const WAITING: usize = 1_000;

pub(super) async fn measure(rounds: usize) -> Result<Vec<Figure>, Problem> {
    let program = std::env::current_exe().map_err(failed)?;
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &program)?;
    let direct = open(&program, &["bench", "echo-server"], home.path()).await?;
    let gateway = open(&program, &["stdio"], home.path()).await?;
    // Past the moment at which a gateway that was just started warms up.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = critical_path(&direct, &gateway, rounds).await?;
    direct.close().await;
    gateway.close().await;
    figures.push(scheduling());
    let env = Env::from_iter([("PML_HOME", home.path().display().to_string())]);
    let app = App::open(Paths::discover(&env)?, env, home.path().to_owned(), Role::Command).await?;
    let more = in_process(&app).await;
    app.close().await;
    figures.extend(more?);
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

/// Tasks by what each waits for.
type Shape = Vec<Vec<usize>>;

fn chain(length: usize) -> Shape {
    (0..length).map(|task| task.checked_sub(1).into_iter().collect()).collect()
}

fn layered(layers: usize, wide: usize) -> Shape {
    let before = |task: usize| match task / wide {
        0 => Vec::new(),
        layer => (0..wide).map(|place| (layer - 1) * wide + place).collect(),
    };
    (0..layers * wide).map(before).collect()
}

/// Each waits for up to three of those before it; the same each time.
fn random(tasks: usize, mut seed: u64) -> Shape {
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

/// How many tasks the longest way has.
fn longest(shape: &Shape) -> u32 {
    let mut depths: Vec<u32> = Vec::with_capacity(shape.len());
    for after in shape {
        depths.push(1 + after.iter().map(|before| depths[*before]).max().unwrap_or(0));
    }
    depths.into_iter().max().unwrap_or(0)
}

fn document(shape: &Shape, tool: &str, arguments: &Value) -> Value {
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
) -> Result<Vec<Figure>, Problem> {
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
    let mut figures =
        vec![Figure::of(format!("a call of a tool that takes {LATENCY_MS} ms, direct"), milliseconds(call))];
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
            Figure::of(
                format!("{what}, beyond the longest way of {}", longest(&shape)),
                format!("{} − {} = {}", milliseconds(time), milliseconds(path), milliseconds(over)),
            )
            .target(format!("≤ {}", milliseconds(most)), over <= most),
        );
    }
    Ok(figures)
}

/// How long a document takes through `pml_execute`.
async fn run(gateway: &Connection, document: &Value) -> Result<Duration, Problem> {
    let mut params = Fields::default();
    params.set("name", raw(&"pml_execute"));
    let implementation = json!({ "type": "dag", "dagStructure": document });
    params.set("arguments", raw(&json!({ "intent": "measure", "implementation": implementation })));
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
    let said = &result["structuredContent"];
    if said["status"] == "success" { Ok(elapsed) } else { Err(failed(said)) }
}

/// The turns of many tasks, and nothing else.
fn scheduling() -> Figure {
    let shape = random(TASKS, 7);
    let mut times: Vec<Duration> = (0..11).map(|_| turns(&shape)).collect();
    let time = quantile(&mut times, 0.5);
    Figure::of(format!("the turns of {TASKS} tasks at random"), milliseconds(time))
        .target("≤ 20 ms", time <= Duration::from_millis(20))
}

fn turns(shape: &Shape) -> Duration {
    let node = |after: &Vec<usize>| Node { after: after.clone(), ..Node::default() };
    let nodes = shape.iter().map(node).collect();
    let started = Instant::now();
    let mut schedule = Schedule::new(nodes, Pause::None);
    let mut steps = schedule.go_on();
    while let Some(step) = steps.pop() {
        if let Step::Start { task, .. } = step {
            steps.extend(schedule.tried(task, Tried::Worked));
        }
    }
    started.elapsed()
}

async fn in_process(app: &Arc<App>) -> Result<Vec<Figure>, Problem> {
    let mut figures = vec![rehearsal(app).await?];
    figures.extend(waiting(app).await?);
    Ok(figures)
}

/// The same with arguments that hold the results of others, as the run core is told of them.
async fn rehearsal(app: &Arc<App>) -> Result<Figure, Problem> {
    let shape = random(TASKS, 7);
    let mut document = document(&shape, "math:evaluate", &json!({ "expression": "1" }));
    for (task, after) in shape.iter().enumerate() {
        if let Some(before) = after.first() {
            document["tasks"][task]["arguments"] = json!({ "expression": format!("{{{{t{before}}}}}") });
        }
    }
    let plan = Arc::new(flow::dry(app, &execution(app, document.to_string(), Pause::None)).await?);
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
    Ok(Figure::of(format!("{TASKS} tasks with references, arguments and calls made"), milliseconds(time)))
}

fn execution(app: &App, document: String, pause: Pause) -> Execution {
    super::execution(app, Asked::Dag { document, pause })
}

/// Runs that wait after a layer.
async fn waiting(app: &Arc<App>) -> Result<Vec<Figure>, Problem> {
    let document = document(&chain(3), "math:evaluate", &json!({ "expression": "1+1" })).to_string();
    // What the first ones have made room for the others use.
    wait_each(app, &document, 200).await?;
    let (before, servers) = (resident_bytes(), children());
    wait_each(app, &document, WAITING).await?;
    let each = resident_bytes().saturating_sub(before) / WAITING as u64;
    let processes = children().saturating_sub(servers);
    Ok(vec![
        Figure::of(
            format!("{WAITING} runs that wait after a layer: memory of each"),
            format!("{each} bytes"),
        )
        .target("≤ 1 kB", each <= 1_000),
        Figure::of("processes for them", processes.to_string()).target("0", processes == 0),
    ])
}

async fn wait_each(app: &Arc<App>, document: &str, runs: usize) -> Result<(), Problem> {
    for _ in 0..runs {
        let execution = execution(app, document.to_owned(), Pause::PerLayer);
        let Executed::Going(handle) = flow::execute(app, execution, |_| true).await? else {
            return Err(failed("the document is not run"));
        };
        match handle.wait(Duration::from_secs(30)).await {
            Standing::Waiting { question: Some(_), .. } => {}
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

/// How many processes this one has started and that live.
fn children() -> usize {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return 0 };
    let of = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("children")).ok();
    threads.flatten().filter_map(of).map(|text| text.split_ascii_whitespace().count()).sum()
}
