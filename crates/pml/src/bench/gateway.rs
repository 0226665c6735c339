//! What stands between a client and a server costs something; here is how much.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pml_mcp::Caller;
use pml_mcp::client::{Call, Connection, Launch, Target};
use pml_model::json::{Fields, raw};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Figure, failed, milliseconds, quantile};
use crate::problem::Problem;

/// Blocks in which direct and proxied calls alternate, so that both meet the same weather.
const BLOCKS: usize = 20;
/// Starts of the gateway.
const STARTS: usize = 15;

pub(super) async fn measure(calls: usize) -> Result<Vec<Figure>, Problem> {
    let program = std::env::current_exe().map_err(failed)?;
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &program, 1, 1)?;
    let direct = open(&program, &["bench", "echo-server"], home.path()).await?;
    let through = open(&program, &["stdio"], home.path()).await?;
    let mut figures = latency(&direct, &through, calls).await?;
    figures.extend(concurrency(&direct, &through).await?);
    direct.close().await;
    through.close().await;
    figures.extend(start_and_memory(&program).await?);
    Ok(figures)
}

async fn latency(direct: &Connection, through: &Connection, calls: usize) -> Result<Vec<Figure>, Problem> {
    let (mut without, mut with) = (Vec::with_capacity(calls), Vec::with_capacity(calls));
    for _ in 0..BLOCKS {
        for _ in 0..calls / BLOCKS {
            without.push(timed(direct, "echo", 0).await?);
        }
        for _ in 0..calls / BLOCKS {
            with.push(timed(through, "echo__echo", 0).await?);
        }
    }
    let (median_without, median_with) = (quantile(&mut without, 0.5), quantile(&mut with, 0.5));
    let added = median_with.saturating_sub(median_without);
    Ok(vec![
        Figure::of(
            "one call, direct, median / p95",
            format!("{} / {}", milliseconds(median_without), milliseconds(quantile(&mut without, 0.95))),
        ),
        Figure::of(
            "one call, through the gateway, median / p95",
            format!("{} / {}", milliseconds(median_with), milliseconds(quantile(&mut with, 0.95))),
        ),
        Figure::of("added by the gateway, median", milliseconds(added))
            .target("≤ 0.25 ms", added <= Duration::from_micros(250)),
    ])
}

async fn concurrency(direct: &Connection, through: &Connection) -> Result<Vec<Figure>, Problem> {
    let mut figures = Vec::new();
    for wait_ms in [0, 10] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..BLOCKS {
            without.push(together(direct, "echo", wait_ms).await?);
            with.push(together(through, "echo__echo", wait_ms).await?);
        }
        let (without, with) = (quantile(&mut without, 0.5), quantile(&mut with, 0.5));
        let ratio = with.as_secs_f64() / without.as_secs_f64().max(1e-9);
        let what = format!("100 calls at once, each {wait_ms} ms at the server: gateway / direct");
        let measured = format!("{} / {} = {ratio:.2}", milliseconds(with), milliseconds(without));
        figures.push(Figure::of(what, measured).target("≤ 2", ratio <= 2.0));
    }
    Ok(figures)
}

async fn together(connection: &Connection, tool: &str, wait_ms: u64) -> Result<Duration, Problem> {
    let started = Instant::now();
    let calls = (0..100).map(|_| timed(connection, tool, wait_ms));
    for call in futures_util::future::join_all(calls).await {
        call?;
    }
    Ok(started.elapsed())
}

pub(super) async fn timed(connection: &Connection, tool: &str, wait_ms: u64) -> Result<Duration, Problem> {
    let mut params = Fields::default();
    params.set("name", raw(&tool));
    params.set("arguments", raw(&json!({ "text": "hello", "wait_ms": wait_ms })));
    let (caller, cancel) = (Caller::silent(), CancellationToken::new());
    let started = Instant::now();
    let deadline = started + Duration::from_secs(30);
    let call = Call {
        method: "tools/call",
        params,
        mirrored: Vec::new(),
        caller: &caller,
        deadline,
        cancel: &cancel,
    };
    let result = connection.request(call).await.map_err(failed)?;
    let elapsed = started.elapsed();
    if result.get().contains("\"isError\":true") {
        return Err(failed(result.get()));
    }
    Ok(elapsed)
}

/// Start to first answer with 20 servers whose tools are known, and the memory 500 tools take.
async fn start_and_memory(program: &Path) -> Result<Vec<Figure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), program, 20, 25)?;
    warm_up(program, home.path()).await?;
    let (mut starts, mut bare) = (Vec::new(), Vec::new());
    let mut resident = 0;
    for _ in 0..STARTS {
        let started = Instant::now();
        let version = command(program, home.path()).arg("--version").output().await.map_err(failed)?;
        bare.push(started.elapsed());
        if !version.status.success() {
            return Err(failed("`pml --version` does not run"));
        }
        let (elapsed, memory) = first_answer(program, home.path()).await?;
        starts.push(elapsed);
        resident = resident.max(memory);
    }
    let (start, bare) = (quantile(&mut starts, 0.5), quantile(&mut bare, 0.5));
    Ok(vec![
        Figure::of("the same program printing its version, median", milliseconds(bare)),
        Figure::of("start to first `tools/list`, 20 servers, 500 tools, median", milliseconds(start))
            .target("≤ 50 ms", start <= Duration::from_millis(50)),
        Figure::of(
            "resident after listing and discovering, 500 tools",
            format!("{:.1} MB", resident as f64 / 1e6),
        )
        .target("≤ 30 MB", resident <= 30_000_000),
    ])
}

pub(super) fn command(program: &Path, home: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.env_clear().env("PML_HOME", home).current_dir(home).kill_on_drop(true);
    command
}

/// Has every server started once, so that its tools are known.
async fn warm_up(program: &Path, home: &Path) -> Result<(), Problem> {
    let checked = command(program, home).arg("doctor").output().await.map_err(failed)?;
    if checked.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&checked.stdout))) }
}

/// From the start of the process to its answer; then a discovery, and the memory it has by then.
async fn first_answer(program: &Path, home: &Path) -> Result<(Duration, u64), Problem> {
    let started = Instant::now();
    let mut child = command(program, home);
    child.arg("stdio").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().map_err(failed)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("the gateway has no streams"));
    };
    let mut lines = BufReader::new(stdout).lines();
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let mut ask = async |request: serde_json::Value| -> Result<String, Problem> {
        stdin.write_all(format!("{request}\n").as_bytes()).await.map_err(failed)?;
        lines.next_line().await.map_err(failed)?.ok_or_else(|| failed("the gateway ended"))
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    ask(list).await?;
    let elapsed = started.elapsed();
    let discover = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "_meta": meta, "name": "pml_discover", "arguments": { "intent": "give back a text" } } });
    ask(discover).await?;
    let memory = resident_bytes(child.id().unwrap_or_default());
    child.kill().await.map_err(failed)?;
    Ok((elapsed, memory))
}

/// Resident memory of a process, where the system tells.
fn resident_bytes(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

fn configure(home: &Path, program: &Path, servers: usize, tools: usize) -> Result<(), Problem> {
    let mut text = "expose = \"full\"\n".to_owned();
    for number in 0..servers {
        let name = if servers == 1 { "echo".to_owned() } else { format!("echo{number}") };
        let command = serde_json::to_string(program).unwrap_or_default();
        text.push_str(&format!("[servers.{name}]\ncommand = {command}\nargs = [\"bench\", \"echo-server\", \"--tools\", \"{tools}\"]\n"));
    }
    if servers > 1 {
        text = text.replacen("full", "meta", 1);
    }
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

pub(super) async fn open(program: &Path, args: &[&str], home: &Path) -> Result<Connection, Problem> {
    let launch = Launch {
        command: program.display().to_string(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::from([("PML_HOME".to_owned(), home.display().to_string())]),
        cwd: Some(PathBuf::from(home)),
        guard: None,
    };
    let (events, mut heard) = mpsc::channel(64);
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    Connection::open("bench", &Target::Process(launch), None, Duration::from_secs(30), events)
        .await
        .map_err(failed)
}
