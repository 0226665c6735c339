//! The API under load: so many requests a second, whether or not the ones before are answered, while programs run.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::Method;
use pml::problem::Problem;
use serde_json::json;
use tokio::time::Instant;

use super::gateway::ServedGateway;
use super::{DashboardSize, fill};
use crate::figure::{BenchFigure, failed, milliseconds, quantile};

/// Requests in a second.
const RATE: u32 = 200;
/// Programs that run meanwhile.
const RUNS: usize = 20;
/// What the tool of those programs takes, in milliseconds.
const CALL_MS: u64 = 50;
const TARGET: Duration = Duration::from_millis(20);

pub(super) async fn measure(
    gateway: &ServedGateway,
    long_run: &str,
    size: DashboardSize,
) -> Result<Vec<BenchFigure>, Problem> {
    let requests = requests(gateway, long_run, size).await?;
    // The first time, what is shown is loaded.
    for path in &requests {
        gateway.get(path).await?;
    }
    let agent = gateway.agent().await?;
    let turns = size.seconds * 1000 / CALL_MS + 400;
    let code = format!(
        "for (let i = 0; i < {turns}; i++) await mcp.echo.echo({{ text: args.name + i, wait_ms: {CALL_MS} }});"
    );
    let mut runs = Vec::new();
    for number in 0..RUNS {
        let named = format!("const args = {{ name: 'run {number} ' }};\n{code}");
        runs.push(fill::execute(&agent, &format!("work on task {number}"), &named).await?);
    }
    let mut times = ask_at_rate(gateway, &requests, size.seconds).await?;
    let active = gateway.get_json("/api/runs?status=running&limit=100").await?;
    let active = active["items"].as_array().map_or(0, Vec::len);
    for run in &runs {
        gateway.ask(Method::POST, &format!("/api/runs/{run}/abort"), Some(&json!({}))).await?;
    }
    agent.close().await;
    if active < RUNS {
        return Err(failed(format!("{active} of {RUNS} runs were active to the end")));
    }
    let mut figures = figures(&mut times);
    figures.push(discovery(gateway).await?);
    Ok(figures)
}

/// The playground is asked by people, one at a time: it ranks, suggests a DAG and looks for the capability that would
/// run.
async fn discovery(gateway: &ServedGateway) -> Result<BenchFigure, Problem> {
    let asked = json!({ "intent": "compare the invoices of a customer with the payments" });
    let mut times = Vec::new();
    for _ in 0..20 {
        let began = std::time::Instant::now();
        gateway.ask(Method::POST, "/api/discover", Some(&asked)).await?;
        times.push(began.elapsed());
    }
    Ok(BenchFigure::of("the discovery playground, alone, median", milliseconds(quantile(&mut times, 0.5))))
}

/// What the pages ask for when they are opened.
async fn requests(
    gateway: &ServedGateway,
    long_run: &str,
    size: DashboardSize,
) -> Result<Vec<String>, Problem> {
    let middle = format!("/api/capabilities?recent=true&limit=1&offset={}", size.capabilities / 2);
    let listed = gateway.get_json(&middle).await?;
    let capability = listed["capabilities"][0]["id"].as_str().map(str::to_owned);
    let capability = capability.ok_or_else(|| failed("there is no capability"))?;
    let traces = gateway.get_json(&format!("/api/traces/{capability}?limit=1")).await?;
    let trace = traces["traces"][0]["id"].as_str().ok_or_else(|| failed("there is no trace"))?;
    Ok(vec![
        "/api/session".to_owned(),
        "/api/runs?limit=50".to_owned(),
        format!("/api/runs/{long_run}"),
        format!("/api/runs/{long_run}/calls?limit=200"),
        format!("/api/runs/{long_run}/calls/7"),
        "/api/approvals".to_owned(),
        "/api/quarantine".to_owned(),
        "/api/capabilities?recent=true&limit=50".to_owned(),
        format!("/api/capabilities/{capability}"),
        format!("/api/capabilities/{capability}/definition"),
        format!("/api/traces/{capability}?limit=20"),
        format!("/api/trace/{trace}/invocation"),
        "/api/graph/layout".to_owned(),
        "/api/graph/search?q=invoice".to_owned(),
        "/api/servers".to_owned(),
        "/api/servers/echo".to_owned(),
        "/api/savings?days=30".to_owned(),
    ])
}

/// The times of all requests, by path. A request counts from the moment it was due: one that is late because others
/// are slow is slow itself.
async fn ask_at_rate(
    gateway: &ServedGateway,
    requests: &[String],
    seconds: u64,
) -> Result<BTreeMap<String, Vec<Duration>>, Problem> {
    let count = u64::from(RATE) * seconds;
    let begin = Instant::now() + Duration::from_millis(100);
    let all = (0..count).map(|number| {
        let path = &requests[usize::try_from(number).unwrap_or_default() % requests.len()];
        let due = begin + Duration::from_secs(1) / RATE * u32::try_from(number).unwrap_or(u32::MAX);
        async move {
            tokio::time::sleep_until(due).await;
            // The timer wakes up to a millisecond later, which is no time of the gateway.
            let sent = Instant::now().min(due + Duration::from_millis(1));
            gateway.get(path).await.map(|_| (path.clone(), sent.elapsed()))
        }
    });
    let mut times: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for done in futures_util::future::join_all(all).await {
        let (path, time) = done?;
        times.entry(path).or_default().push(time);
    }
    Ok(times)
}

fn figures(times: &mut BTreeMap<String, Vec<Duration>>) -> Vec<BenchFigure> {
    let mut all: Vec<Duration> = times.values().flatten().copied().collect();
    let p99 = quantile(&mut all, 0.99);
    let what = format!("{RATE} requests/s to the API while {RUNS} programs run, median / p99");
    let mut figures = vec![
        BenchFigure::of(what, format!("{} / {}", milliseconds(quantile(&mut all, 0.5)), milliseconds(p99)))
            .target("p99 ≤ 20 ms", p99 <= TARGET),
    ];
    let mut routes: Vec<(Duration, Duration, &str)> = times
        .iter_mut()
        .map(|(path, times)| (quantile(times, 0.99), quantile(times, 0.5), path.as_str()))
        .collect();
    routes.sort_by(|one, other| other.cmp(one));
    for (p99, median, path) in routes {
        let route = path.split('?').next().unwrap_or_default();
        let told = format!("{} / {}", milliseconds(median), milliseconds(p99));
        figures.push(BenchFigure::of(format!("`{route}` of those, median / p99"), told));
    }
    figures
}
