//! What reading ahead saves, and what it costs where it saves nothing.
//!
//! The same programs are run with and without speculation, in turn, over a tool that takes 20 ms.

mod examples;

use std::path::Path;
use std::time::Duration;

use pml::problem::Problem;
use pml_mcp::client::Connection;
use serde_json::{Value, json};

use crate::cpu::{ThreadTimes, children};
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::gateway::{call, open, timed};
use crate::programs::Programs;

/// The latency of the tool, in milliseconds.
const LATENCY_MS: u64 = 20;
/// The calls of the program in which nothing can be speculated.
const PLAIN_CALLS: u32 = 500;
/// The alternations of unrelated calls with and without speculation beside them.
const ALTERNATIONS: usize = 10;
/// The unrelated calls of each: enough to last for several programs.
const UNRELATED: usize = 3_000;

/// Whether reads are made ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speculation {
    On,
    Off,
}

pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench)?;
    let others = children();
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    let process = children().into_iter().find(|child| !others.contains(child));
    // A gateway warms up shortly after its start; wait until that is over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = saved(&gateway, rounds).await?;
    figures.push(chain(&gateway, rounds).await?);
    figures.push(paused_layer(&gateway, rounds).await?);
    figures.extend(plain_calls(&gateway, process, rounds).await?);
    figures.push(unrelated_calls(&gateway).await?);
    gateway.close().await;
    figures.extend(examples::measure(programs, rounds).await?);
    Ok(figures)
}

/// Measures the examples alone.
pub(super) async fn measure_examples(
    programs: &Programs,
    rounds: usize,
) -> Result<Vec<BenchFigure>, Problem> {
    examples::measure(programs, rounds).await
}

fn configure(home: &Path, echo: &Path) -> Result<(), Problem> {
    let command = serde_json::to_string(echo).unwrap_or_default();
    let text = format!(
        r#"[servers.echo]
command = {command}
args = ["echo-server"]
[permissions]
"echo:echo" = {{ approval_mode = "auto", read_only = true, open_world = false }}
[limits]
calls = 10000
[runs]
durable = "normal"
"#
    );
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

fn read(text: &str) -> String {
    format!("await mcp.echo.echo({{ text: {text}, wait_ms: {LATENCY_MS} }});")
}

/// Independent reads that a program awaits one after the other.
async fn saved(gateway: &Connection, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let ten: String = (0..10).map(|number| read(&format!("\"x{number}\""))).collect();
    let (on, off) = in_turn(gateway, &ten, &json!({}), rounds).await?;
    let items: Vec<String> = (0..20).map(|number| format!("x{number}")).collect();
    let each = format!("for (const text of args.items) {{ {} }}", read("text"));
    let (loop_on, loop_off) = in_turn(gateway, &each, &json!({ "items": items }), rounds).await?;
    let ms = Duration::from_millis;
    Ok(vec![
        figure("10 independent reads in sequence", on, off)
            .target("≤ 30 ms, off ≥ 200 ms", on <= ms(30) && off >= ms(200)),
        figure("a loop over 20 known items", loop_on, loop_off).target("≤ 60 ms", loop_on <= ms(60)),
    ])
}

fn figure(what: &str, on: Duration, off: Duration) -> BenchFigure {
    BenchFigure::of(
        format!("{what} of a tool that takes {LATENCY_MS} ms, on / off"),
        format!("{} / {}", milliseconds(on), milliseconds(off)),
    )
}

/// Reads of which each needs the result of the one before.
async fn chain(gateway: &Connection, rounds: usize) -> Result<BenchFigure, Problem> {
    let step = |number: usize| match number {
        0 => format!("const r0 = {}", read("\"x\"")),
        _ => format!("const r{number} = {}", read(&format!("r{}", number - 1))),
    };
    let source: String = (0..5).map(step).collect();
    let (on, off) = in_turn(gateway, &source, &json!({}), rounds).await?;
    let loss = on.as_secs_f64() / off.as_secs_f64() - 1.0;
    Ok(BenchFigure::of(
        "a chain of 5 reads that need each other: what speculation costs",
        format!("{:+.1} % ({} / {})", loss * 100.0, milliseconds(on), milliseconds(off)),
    )
    .target("≤ 2 %", loss <= 0.02))
}

/// The reads of a layer that waited for an answer: how long after it they took.
async fn paused_layer(gateway: &Connection, rounds: usize) -> Result<BenchFigure, Problem> {
    let task = |id: &str, after: &[&str]| {
        let arguments = json!({ "text": id, "wait_ms": LATENCY_MS });
        json!({ "id": id, "tool": "echo:echo", "arguments": arguments, "dependsOn": after })
    };
    let tasks = json!({ "tasks": [task("a", &[]), task("b", &["a"]), task("c", &["a"])] });
    let options = json!({ "perLayerValidation": true, "learn": false, "cache": false });
    let mut slowest = Vec::new();
    for _ in 0..rounds {
        let implementation = json!({ "type": "dag", "dagStructure": tasks });
        let request = json!({ "intent": "measure", "implementation": implementation, "options": options });
        let waiting = call(gateway, "pml_execute", &request).await?.1;
        // Longer than the reads take, as a person does.
        tokio::time::sleep(Duration::from_millis(3 * LATENCY_MS)).await;
        let answer = json!({ "workflow_id": waiting["workflowId"], "approved": true });
        let over = call(gateway, "pml_continue", &answer).await?.1;
        let took = over["tasks"].as_array().into_iter().flatten().skip(1);
        let took = took.filter_map(|task| task["executionTimeMs"].as_u64()).max();
        slowest.push(Duration::from_millis(took.ok_or_else(|| failed(&over))?));
    }
    let time = quantile(&mut slowest, 0.5);
    Ok(BenchFigure::of("the slowest read of a layer that waited, after `continue`", milliseconds(time))
        .target("≤ 1 ms", time <= Duration::from_millis(1)))
}

/// Calls of which none can be foreseen: what speculation costs each of them, as processor time of the gateway and as time
/// of the whole program.
async fn plain_calls(
    gateway: &Connection,
    process: Option<u32>,
    rounds: usize,
) -> Result<Vec<BenchFigure>, Problem> {
    let source = format!(
        "for (let n = 0; n < {PLAIN_CALLS}; n++) {{ await mcp.math.evaluate({{ expression: `${{n}} + 1` }}); }}
         await mcp.math.evaluate({{ expression: \"1\" }}); await mcp.math.evaluate({{ expression: \"2\" }});"
    );
    let (on, off) = in_turn(gateway, &source, &json!({}), rounds).await?;
    let mut figures = vec![BenchFigure::of(
        "time of a call where nothing can be speculated: what speculation adds",
        format!(
            "{:+.1} µs ({} / {})",
            (on.as_secs_f64() - off.as_secs_f64()) * 1e6 / f64::from(PLAIN_CALLS),
            milliseconds(on),
            milliseconds(off)
        ),
    )];
    // A waiting gateway takes no processor time, so what it takes meanwhile is what the program takes.
    if let Some((on, off)) = processor_times(gateway, process, &source, rounds).await? {
        let each = (on.as_secs_f64() - off.as_secs_f64()) * 1e6 / f64::from(PLAIN_CALLS);
        let figure = BenchFigure::of(
            "processor time of a call where nothing can be speculated: what speculation adds",
            format!("{each:+.1} µs ({} / {})", milliseconds(on), milliseconds(off)),
        );
        figures.push(figure.target("≤ 20 µs", each <= 20.0));
    }
    Ok(figures)
}

/// The medians of the processor time of the gateway for a program with and without speculation; `None` where the system
/// does not report it.
async fn processor_times(
    gateway: &Connection,
    process: Option<u32>,
    source: &str,
    rounds: usize,
) -> Result<Option<(Duration, Duration)>, Problem> {
    let (mut on, mut off) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        for (speculation, times) in [(Speculation::On, &mut on), (Speculation::Off, &mut off)] {
            let Some(before) = process.and_then(ThreadTimes::of) else { return Ok(None) };
            execute(gateway, source, &json!({}), speculation).await?;
            let Some(after) = process.and_then(ThreadTimes::of) else { return Ok(None) };
            times.push(after.since(&before));
        }
    }
    Ok(Some((quantile(&mut on, 0.5), quantile(&mut off, 0.5))))
}

/// The 99th percentile of calls beside programs that are read ahead of, compared with the same without reading ahead.
async fn unrelated_calls(gateway: &Connection) -> Result<BenchFigure, Problem> {
    let mut ratios = Vec::new();
    for _ in 0..ALTERNATIONS {
        let off = beside(gateway, Speculation::Off).await?;
        let on = beside(gateway, Speculation::On).await?;
        ratios.push(on.as_secs_f64() / off.as_secs_f64());
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    Ok(BenchFigure::of(
        format!("p99 of unrelated calls beside programs that are read ahead of, median of {ALTERNATIONS}"),
        format!("× {ratio:.2}"),
    )
    .target("≤ 1.10", ratio <= 1.10))
}

async fn beside(gateway: &Connection, speculation: Speculation) -> Result<Duration, Problem> {
    let reads: String = (0..5).map(|number| read(&format!("\"x{number}\""))).collect();
    let none = json!({});
    let busy = async {
        loop {
            // At the same pace with and without speculation, so that both do the same work.
            let pace = tokio::time::sleep(Duration::from_millis(8 * LATENCY_MS));
            let (done, ()) = tokio::join!(execute(gateway, &reads, &none, speculation), pace);
            done?;
        }
    };
    let calls = async {
        let mut times = Vec::with_capacity(UNRELATED);
        for _ in 0..UNRELATED {
            times.push(timed(gateway, "echo:echo", 0).await?);
        }
        Ok(quantile(&mut times, 0.99))
    };
    tokio::select! {
        never = busy => never,
        measured = calls => measured,
    }
}

/// The medians of a program's times with and without speculation.
async fn in_turn(
    gateway: &Connection,
    code: &str,
    context: &Value,
    rounds: usize,
) -> Result<(Duration, Duration), Problem> {
    let (mut on, mut off) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    execute(gateway, code, context, Speculation::On).await?;
    for _ in 0..rounds {
        on.push(execute(gateway, code, context, Speculation::On).await?);
        off.push(execute(gateway, code, context, Speculation::Off).await?);
    }
    Ok((quantile(&mut on, 0.5), quantile(&mut off, 0.5)))
}

async fn execute(
    gateway: &Connection,
    code: &str,
    context: &Value,
    speculation: Speculation,
) -> Result<Duration, Problem> {
    let options = json!({ "speculate": speculation == Speculation::On, "learn": false, "cache": false });
    let implementation = json!({ "type": "code", "code": code });
    let request = json!({ "intent": "measure", "implementation": implementation, "context": context, "options": options });
    let (time, said) = call(gateway, "pml_execute", &request).await?;
    if said["status"] == "success" { Ok(time) } else { Err(failed(said)) }
}
