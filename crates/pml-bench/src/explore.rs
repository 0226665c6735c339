//! What exploring costs: a dry run beside the run it stands for, paths in a second, hyperpaths over many tools. And how
//! right the explored paths are, on public data sets.

mod hyperpaths;
mod quality;

use std::path::Path;
use std::time::{Duration, Instant};

use pml::problem::Problem;
use pml_mcp::client::Connection;
use serde_json::{Value, json};

use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::gateway::{call, open};
use crate::programs::Programs;

pub(super) use quality::measure as measure_quality;

/// The calls of the measured program.
const CALLS: u32 = 20;
/// The dry runs under way at a time: as many as there are cores, and one more that waits.
const AT_ONCE: usize = 3;

pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench)?;
    let gateway = open(&programs.pml, &["stdio"], home.path()).await?;
    // A gateway warms up shortly after its start; wait until that is over.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut figures = vec![
        overhead(&gateway, rounds).await?,
        program_rate(&gateway, rounds).await?,
        document_rate(&gateway, rounds).await?,
    ];
    gateway.close().await;
    figures.extend(hyperpaths::measure(rounds)?);
    Ok(figures)
}

fn configure(home: &Path, echo: &Path) -> Result<(), Problem> {
    let command = serde_json::to_string(echo).unwrap_or_default();
    let text = format!(
        r#"[servers.echo]
command = {command}
args = ["echo-server"]
[permissions]
"echo:echo" = {{ approval_mode = "auto", read_only = true, open_world = false }}
[runs]
durable = "normal"
"#
    );
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// The same program run and run dry in turn, over a tool that answers at once.
async fn overhead(gateway: &Connection, rounds: usize) -> Result<BenchFigure, Problem> {
    let code = format!(
        "let all = 0; for (let n = 0; n < {CALLS}; n++) {{ all += (await mcp.echo.echo({{ text: `x${{n}}` }})).length; }} return all;"
    );
    let real = json!({ "learn": false, "cache": false, "speculate": false });
    let dry = json!({ "dryRun": true });
    let (mut real_times, mut dry_times) = (Vec::new(), Vec::new());
    execute(gateway, &code, &dry).await?;
    for _ in 0..rounds {
        real_times.push(execute(gateway, &code, &real).await?.0);
        dry_times.push(execute(gateway, &code, &dry).await?.0);
    }
    let (real, dry) = (quantile(&mut real_times, 0.5), quantile(&mut dry_times, 0.5));
    let more = dry.as_secs_f64() / real.as_secs_f64() - 1.0;
    Ok(BenchFigure::of(
        format!("a dry run of {CALLS} instant calls beside the run itself"),
        format!("{:+.1} % ({} / {})", more * 100.0, milliseconds(dry), milliseconds(real)),
    )
    .target("≤ 20 %", more <= 0.2))
}

/// Dry runs of a program with a branch that is never taken, as many at a time as there are cores.
async fn program_rate(gateway: &Connection, rounds: usize) -> Result<BenchFigure, Problem> {
    let code = "const r = await mcp.echo.echo({ text: 'x' }); if (JSON.stringify(r).length > 1e9) await mcp.echo.echo({ text: 'y' }); return 1;";
    let options = json!({ "dryRun": { "mode": "mocked", "explore": true, "maxBranches": 100 } });
    let started = Instant::now();
    let mut paths = 0;
    for _ in 0..rounds.div_ceil(4) {
        let all = (0..AT_ONCE).map(|_| execute(gateway, code, &options));
        for done in futures_util::future::join_all(all).await {
            paths += done?.1["report"]["branches"]["runs"].as_u64().unwrap_or(0);
        }
    }
    Ok(in_a_second("dry paths of a program in a second", paths, started))
}

/// Dry runs of DAG documents, as `pml_explore` makes them: three calls, the second and third with earlier results.
async fn document_rate(gateway: &Connection, rounds: usize) -> Result<BenchFigure, Problem> {
    let task =
        |id: &str, text: Value| json!({ "id": id, "tool": "echo:echo", "arguments": { "text": text } });
    let document = json!({ "tasks": [
        task("t1", json!("x")),
        task("t2", json!({ "$ref": "t1" })),
        task("t3", json!({ "$ref": "t2" })),
    ] });
    let implementation = json!({ "type": "dag", "dagStructure": document });
    let options = json!({ "dryRun": { "mode": "mocked" } });
    let request = json!({ "intent": "measure", "implementation": implementation, "options": options });
    let started = Instant::now();
    let mut paths = 0;
    for _ in 0..rounds * 10 {
        let all = (0..AT_ONCE).map(|_| call(gateway, "pml_execute", &request));
        for done in futures_util::future::join_all(all).await {
            check_status(&done?.1)?;
            paths += 1;
        }
    }
    Ok(in_a_second("dry paths of three calls in a second", paths, started))
}

fn in_a_second(what: &str, paths: u64, started: Instant) -> BenchFigure {
    #[expect(clippy::cast_precision_loss, reason = "a count of some thousands")]
    let rate = paths as f64 / started.elapsed().as_secs_f64();
    BenchFigure::of(what, format!("{rate:.0}")).target("≥ 300", rate >= 300.0)
}

async fn execute(gateway: &Connection, code: &str, options: &Value) -> Result<(Duration, Value), Problem> {
    let implementation = json!({ "type": "code", "code": code });
    let request = json!({ "intent": "measure", "implementation": implementation, "options": options });
    let (time, told) = call(gateway, "pml_execute", &request).await?;
    check_status(&told)?;
    Ok((time, told))
}

fn check_status(told: &Value) -> Result<(), Problem> {
    match told["status"].as_str() {
        Some("success" | "dry_run") => Ok(()),
        _ => Err(failed(told)),
    }
}
