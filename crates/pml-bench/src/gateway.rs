//! The overhead of the gateway between a client and a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pml::problem::Problem;
use pml_mcp::Caller;
use pml_mcp::client::{Connection, Launch, OutgoingRequest, ServerTarget};
use pml_model::json::{Fields, raw};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::programs::Programs;

/// The number of blocks in which direct and proxied calls alternate, so that both see the same load of the machine.
const BLOCKS: usize = 20;
/// The number of gateway starts that are measured.
const STARTS: usize = 15;

pub(super) async fn measure(programs: &Programs, calls: usize) -> Result<Vec<BenchFigure>, Problem> {
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench, 1, 1)?;
    let direct = open(&programs.bench, &["echo-server"], home.path()).await?;
    let through = open(&programs.pml, &["stdio"], home.path()).await?;
    let mut figures = latency(&direct, &through, calls).await?;
    figures.extend(concurrency(&direct, &through).await?);
    direct.close().await;
    through.close().await;
    figures.extend(start_and_memory(programs).await?);
    Ok(figures)
}

async fn latency(
    direct: &Connection,
    through: &Connection,
    calls: usize,
) -> Result<Vec<BenchFigure>, Problem> {
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
        BenchFigure::of(
            "one call, direct, median / p95",
            format!("{} / {}", milliseconds(median_without), milliseconds(quantile(&mut without, 0.95))),
        ),
        BenchFigure::of(
            "one call, through the gateway, median / p95",
            format!("{} / {}", milliseconds(median_with), milliseconds(quantile(&mut with, 0.95))),
        ),
        BenchFigure::of("added by the gateway, median", milliseconds(added))
            .target("≤ 0.25 ms", added <= Duration::from_micros(250)),
    ])
}

async fn concurrency(direct: &Connection, through: &Connection) -> Result<Vec<BenchFigure>, Problem> {
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
        figures.push(BenchFigure::of(what, measured).target("≤ 2", ratio <= 2.0));
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
    let call = OutgoingRequest {
        method: "tools/call",
        params,
        mirrored: Vec::new(),
        caller: &caller,
        deadline,
        extension: None,
        cancel: &cancel,
    };
    let result = connection.request(call).await.map_err(failed)?;
    let elapsed = started.elapsed();
    if result.get().contains("\"isError\":true") {
        return Err(failed(result.get()));
    }
    Ok(elapsed)
}

/// Calls one of PML's own tools. Returns how long it took, and its structured content.
pub(super) async fn call(
    gateway: &Connection,
    tool: &str,
    arguments: &Value,
) -> Result<(Duration, Value), Problem> {
    let mut params = Fields::default();
    params.set("name", raw(&tool));
    params.set("arguments", raw(arguments));
    let (caller, cancel) = (Caller::silent(), CancellationToken::new());
    let started = Instant::now();
    let request = OutgoingRequest {
        method: "tools/call",
        params,
        mirrored: Vec::new(),
        caller: &caller,
        deadline: started + Duration::from_secs(120),
        extension: None,
        cancel: &cancel,
    };
    let result = gateway.request(request).await.map_err(failed)?;
    let elapsed = started.elapsed();
    let mut result: Value = serde_json::from_str(result.get()).map_err(failed)?;
    Ok((elapsed, result["structuredContent"].take()))
}

/// The time from start to the first answer with 20 known servers, and the memory for 500 tools.
async fn start_and_memory(programs: &Programs) -> Result<Vec<BenchFigure>, Problem> {
    let program = programs.pml.as_path();
    let home = tempfile::tempdir().map_err(failed)?;
    configure(home.path(), &programs.bench, 20, 25)?;
    warm_up(program, home.path()).await?;
    let (mut starts, mut bare) = (Vec::new(), Vec::new());
    let mut resident = ResidentMemory::default();
    for _ in 0..STARTS {
        let started = Instant::now();
        let version = command(program, home.path()).arg("--version").output().await.map_err(failed)?;
        bare.push(started.elapsed());
        if !version.status.success() {
            return Err(failed("`pml --version` does not run"));
        }
        let (elapsed, memory) = first_answer(program, home.path()).await?;
        starts.push(elapsed);
        if memory.all > resident.all {
            resident = memory;
        }
    }
    let (start, bare) = (quantile(&mut starts, 0.5), quantile(&mut bare, 0.5));
    Ok(vec![
        BenchFigure::of("the same program printing its version, median", milliseconds(bare)),
        BenchFigure::of("start to first `tools/list`, 20 servers, 500 tools, median", milliseconds(start))
            .target("≤ 50 ms", start <= Duration::from_millis(50)),
        BenchFigure::of(
            "resident after listing and discovering, 500 tools",
            format!(
                "{:.1} MB, {:.1} MB apart from files",
                resident.all as f64 / 1e6,
                resident.own as f64 / 1e6
            ),
        )
        .target("≤ 30 MB", resident.all <= 30_000_000),
    ])
}

pub(super) fn command(program: &Path, home: &Path) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(program);
    command.env_clear().env("PML_HOME", home).current_dir(home).kill_on_drop(true);
    command
}

/// Starts every server once, so that its tools are stored.
pub(super) async fn warm_up(program: &Path, home: &Path) -> Result<(), Problem> {
    let checked = command(program, home).arg("doctor").output().await.map_err(failed)?;
    if checked.status.success() { Ok(()) } else { Err(failed(String::from_utf8_lossy(&checked.stdout))) }
}

/// The time from the start of the process to its first answer, and its memory after a discovery.
async fn first_answer(program: &Path, home: &Path) -> Result<(Duration, ResidentMemory), Problem> {
    let started = Instant::now();
    let mut child = command(program, home);
    child.arg("stdio").stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = child.spawn().map_err(failed)?;
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("the gateway has no streams"));
    };
    let mut lines = BufReader::new(stdout).lines();
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
    let mut ask = async |request: Value| -> Result<String, Problem> {
        stdin.write_all(format!("{request}\n").as_bytes()).await.map_err(failed)?;
        lines.next_line().await.map_err(failed)?.ok_or_else(|| failed("the gateway ended"))
    };
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
    ask(list).await?;
    let elapsed = started.elapsed();
    let discover = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "_meta": meta, "name": "pml_discover", "arguments": { "intent": "give back a text" } } });
    ask(discover).await?;
    let memory = ResidentMemory::of(child.id().unwrap_or_default());
    child.kill().await.map_err(failed)?;
    Ok((elapsed, memory))
}

/// The resident memory of a process in bytes; 0 where the system does not report it.
#[derive(Default)]
struct ResidentMemory {
    /// With the pages of the program file. The system maps them in larger or smaller pieces, depending on how the file
    /// came into its cache, so that the same program differs by several megabytes.
    all: u64,
    /// The memory that is the process's own.
    own: u64,
}

impl ResidentMemory {
    fn of(pid: u32) -> ResidentMemory {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let bytes = |name: &str| {
            let kilobytes = status.lines().find_map(|line| {
                line.strip_prefix(name)?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
            });
            kilobytes.unwrap_or_default() * 1024
        };
        ResidentMemory { all: bytes("VmRSS:"), own: bytes("RssAnon:") }
    }
}

fn configure(home: &Path, echo: &Path, servers: usize, tools: usize) -> Result<(), Problem> {
    let mut text = "expose = \"full\"\n".to_owned();
    for number in 0..servers {
        let name = if servers == 1 { "echo".to_owned() } else { format!("echo{number}") };
        let command = serde_json::to_string(echo).unwrap_or_default();
        text.push_str(&format!(
            "[servers.{name}]\ncommand = {command}\nargs = [\"echo-server\", \"--tools\", \"{tools}\"]\n"
        ));
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
    // Notifications of the server are dropped.
    let (events, _) = mpsc::channel(1);
    let (target, patience, tasks) =
        (ServerTarget::Process(launch), Duration::from_secs(30), TaskTracker::new());
    Connection::open("bench", &target, None, patience, events, &tasks).await.map_err(failed)
}
