//! Gives a gateway a past: traces and capabilities straight into the store, tools from servers, and runs of its own.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use pml::problem::Problem;
use pml_mcp::client::Connection;
use pml_store::BlockingStore;
use serde_json::{Value, json};

use super::DashboardSize;
use super::gateway::ServedGateway;
use crate::figure::failed;
use crate::gateway::call;
use crate::memory::{store_many, trace};
use crate::programs::Programs;

/// The tools of one server.
const TOOLS_OF_A_SERVER: usize = 100;
/// The time that the traces are spread over.
const PAST_MS: i64 = 90 * 24 * 3600 * 1000;

/// What tools take and give: some hundred kinds, so that a result fits some tools and not most.
const KINDS: [&str; 24] = [
    "invoice", "customer", "order", "ticket", "branch", "commit", "photo", "flight", "hotel", "recipe",
    "sensor", "contract", "letter", "meeting", "backup", "account", "payment", "parcel", "vehicle",
    "article", "image", "song", "route", "report",
];
const VERBS: [&str; 10] =
    ["find", "create", "update", "archive", "merge", "compare", "export", "check", "translate", "send"];

/// Writes `pml.toml` and the catalogue that its servers list.
pub(super) fn configure(home: &Path, programs: &Programs, size: DashboardSize) -> Result<(), Problem> {
    let (bench, catalogue) = (json!(programs.bench), home.join("tools.jsonl"));
    let mut text = format!(
        "[limits]\ncalls = 100000\ncpu = \"1m\"\n[runs]\nkeep_results = \"24h\"\n[permissions]\n\
         \"echo\" = {{ approval_mode = \"auto\", read_only = true }}\n\
         [servers.echo]\ncommand = {bench}\nargs = [\"echo-server\"]\n"
    );
    let mut tools = String::new();
    for server in 0..size.tools.div_ceil(TOOLS_OF_A_SERVER) {
        let args = json!(["echo-server", "--catalogue", catalogue, "--server", format!("s{server}")]);
        writeln!(text, "[servers.s{server}]\ncommand = {bench}\nargs = {args}").map_err(failed)?;
        for number in 0..TOOLS_OF_A_SERVER.min(size.tools - server * TOOLS_OF_A_SERVER) {
            writeln!(tools, "{}", tool(server, number)).map_err(failed)?;
        }
    }
    std::fs::write(&catalogue, tools).map_err(failed)?;
    std::fs::write(home.join("pml.toml"), text).map_err(failed)
}

/// A tool that takes one thing and gives another.
fn tool(server: usize, number: usize) -> Value {
    let (verb, at) = (VERBS[number % VERBS.len()], server * 7 + number / VERBS.len());
    let (takes, gives) = (KINDS[at % KINDS.len()], KINDS[(at * 5 + number) % KINDS.len()]);
    let field = |kind: &str| json!({ format!("{kind}_id_{}", server % 8): { "type": "string", "description": format!("which {kind}") } });
    let name = format!("{verb}_{takes}_{number}");
    json!({
        "id": format!("s{server}:{name}"), "server": format!("s{server}"), "name": name,
        "description": format!("Can {verb} the {takes} of department {server}, which gives the {gives} that belongs to it."),
        "input_schema": { "type": "object", "properties": field(takes) },
        "output_schema": { "type": "object", "properties": field(gives) },
    })
}

/// Stores the traces, and learns from them.
pub(super) fn store_past(home: &Path, size: DashboardSize) -> Result<(), Problem> {
    let store = BlockingStore::open(&home.join("pml.db")).map_err(failed)?;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_err(failed)?;
    let begin = i64::try_from(now.as_millis()).map_err(failed)? - PAST_MS;
    let step = PAST_MS / i64::try_from(size.traces.max(1)).map_err(failed)?;
    let traces = (0_i64..).zip(0..size.traces).map(|(at, number)| {
        let mut memory = trace(number, number % size.capabilities.max(1));
        memory.trace.created_at = begin + at * step;
        memory
    });
    store_many(&store, traces)?;
    while store.learn_traces(500, 0).map_err(failed)?.has_more {}
    Ok(())
}

/// Runs small programs and one with many calls. Returns the id of the long run.
pub(super) async fn run_programs(gateway: &ServedGateway, size: DashboardSize) -> Result<String, Problem> {
    let agent = gateway.agent().await?;
    for number in 0..size.runs {
        let code = format!("return await mcp.math.evaluate({{ expression: '{number} + 1' }})");
        execute(&agent, &format!("add one to {number}"), &code).await?;
    }
    let code = format!(
        "let n = 0; for (let i = 0; i < {}; i++) {{ const r = await mcp.echo.echo({{ text: 'row ' + i }}); n += 1; }} return n",
        size.calls
    );
    let run = execute(&agent, "a run with very many calls", &code).await?;
    agent.close().await;
    let until = Instant::now() + Duration::from_secs(240);
    loop {
        let shown = gateway.get_json(&format!("/api/runs/{run}")).await?;
        match shown["status"].as_str() {
            Some("done") => return Ok(run),
            Some("running") if Instant::now() < until => tokio::time::sleep(Duration::from_millis(200)).await,
            _ => return Err(failed(shown)),
        }
    }
}

/// Starts a program and does not wait for its end. Returns the id of its run.
pub(super) async fn execute(agent: &Connection, intent: &str, code: &str) -> Result<String, Problem> {
    let implementation = json!({ "type": "code", "code": code });
    let options = json!({ "detach": true, "cache": false });
    let asked = json!({ "intent": intent, "implementation": implementation, "options": options });
    let (_, told) = call(agent, "pml_execute", &asked).await?;
    told["workflowId"].as_str().map(str::to_owned).ok_or_else(|| failed(&told))
}

/// Waits until the background has nothing left to do: embedding takes a whole processor for a while after many new tools.
pub(super) async fn wait_until_embedded(gateway: &ServedGateway) -> Result<(), Problem> {
    let until = Instant::now() + Duration::from_secs(900);
    loop {
        let metrics = String::from_utf8(gateway.get("/metrics").await?).map_err(failed)?;
        let left = metrics
            .lines()
            .find_map(|line| line.strip_prefix("pml_embedding_texts_remaining ")?.parse::<f64>().ok());
        match left {
            Some(left) if left <= 0.0 => return Ok(()),
            _ if Instant::now() > until => return Err(failed("the tools were not embedded in time")),
            _ => tokio::time::sleep(Duration::from_millis(500)).await,
        }
    }
}
