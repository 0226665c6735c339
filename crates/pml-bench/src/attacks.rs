//! Runs hostile programs one after the other and checks how each ends.
//!
//! `engine.jsonl` has one object per line: `id`, `source`, `required`. A source is a script whose value is that of
//! its last expression. A run is the body of a function, so the source is changed a little first:
//! - The final expression is returned: the text after the last `;` or `}` that parses as one expression. Of a final
//!   `try … catch`, the values of both blocks are returned.
//! - `globalThis.RESULT` becomes a local variable, since programs that change `globalThis` are refused.
//! - `__host(x)` passes `x` to a built-in tool that returns the JSON it received. The call is awaited where the source
//!   does not return it itself.
//!
//! A program that analysis or policy refuses is also run directly in a worker, past both, and that outcome is
//! reported as well: a protection is only known to hold when something runs against it.
//!
//! `required` is judged as far as it is one of a few known words; anything else is reported as `read`, with both
//! texts.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::execute::WORKER_COMMAND;
use pml::flow::{self, ExecuteOutcome};
use pml::planning::Work;
use pml::problem::Problem;
use pml::report::{RunReport, RunStatus};
use pml_model::RunState;
use pml_model::json::Fields;
use pml_model::name::{printable, truncate_text};
use pml_sandbox::{
    Delivery, DeliveryPayload, ExceededLimit, GrantedTool, PoolSettings, ProgramEnding, SandboxLimits,
    ThrownError, WorkerEvent, WorkerFault, WorkerPool,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::task::JoinSet;

use crate::execution::execution;
use crate::figure::{BenchFigure, failed, milliseconds, quantile};
use crate::lines::json_lines;
use crate::programs::Programs;

/// The CPU time limit of each program.
const CPU: Duration = Duration::from_secs(1);
/// How soon after its CPU time limit a program must have ended.
const AFTER_DEADLINE: Duration = Duration::from_millis(250);
/// How long anything may take before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between harmless programs that run meanwhile.
const BETWEEN_OTHERS: Duration = Duration::from_millis(200);
/// The interval at which workers are sampled.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// The units of CPU time (ms per tick) and memory (bytes per page) in `/proc` on Linux.
const TICK_MS: u64 = 10;
const PAGE_BYTES: u64 = 4096;
/// The number of characters of a value or a message that are printed.
const SHOWN_CHARACTERS: usize = 70;

#[derive(Deserialize)]
struct Attack {
    id: String,
    source: String,
    required: String,
}

pub(super) async fn measure(programs: &Programs, data: &Path) -> Result<Vec<BenchFigure>, Problem> {
    let attacks = json_lines(&data.join("engine.jsonl"))?;
    let home = tempfile::tempdir().map_err(failed)?;
    let config = home.path().join("pml.toml");
    std::fs::write(&config, format!("[limits]\ncpu = \"{}ms\"\n", CPU.as_millis())).map_err(failed)?;
    let paths = Paths { config, data: home.path().to_owned() };
    let app = App::open(paths, Env::of_process(), home.path().to_owned(), ProcessRole::Command).await?;
    let alone = WorkerPool::start(PoolSettings::new(programs.pml.clone(), vec![WORKER_COMMAND.into()]))
        .map_err(failed)?;
    let figures = all(&app, &alone, &attacks).await;
    app.close().await;
    figures
}

async fn all(app: &Arc<App>, alone: &WorkerPool, attacks: &[Attack]) -> Result<Vec<BenchFigure>, Problem> {
    let mut quiet = Vec::new();
    for _ in 0..20 {
        quiet.push(harmless(app).await?);
    }
    let done = Arc::new(AtomicBool::new(false));
    let mut others = JoinSet::new();
    others.spawn(run_others(Arc::clone(app), Arc::clone(&done)));
    let (mut figures, mut counts) = (Vec::new(), [0; 3]);
    for attack in attacks {
        let ended = run(app, alone, attack).await?;
        // For a refused program the outcome in the worker counts.
        let verdict = ended.last().map_or(AttackVerdict::ToBeRead, |ended| judge(&attack.required, ended));
        counts[verdict as usize] += 1;
        figures.push(BenchFigure::of(&attack.id, line(attack, &ended, verdict)));
    }
    done.store(true, Ordering::Relaxed);
    let ended = others.join_next().await.ok_or_else(|| failed("nothing else was run"))?;
    let mut others = ended.map_err(failed)??;
    let [fine, read, wrong] = counts;
    figures.push(
        BenchFigure::of(
            format!("{} programs", attacks.len()),
            format!("{fine} ok, {wrong} WRONG, {read} to be read"),
        )
        .target("0 wrong", wrong == 0),
    );
    figures.push(BenchFigure::of(
        "a harmless run, alone median / meanwhile median / meanwhile slowest",
        format!(
            "{} / {} / {}",
            milliseconds(quantile(&mut quiet, 0.5)),
            milliseconds(quantile(&mut others, 0.5)),
            milliseconds(quantile(&mut others, 1.0))
        ),
    ));
    Ok(figures)
}

async fn run_others(app: Arc<App>, done: Arc<AtomicBool>) -> Result<Vec<Duration>, Problem> {
    let mut took = Vec::new();
    while !done.load(Ordering::Relaxed) {
        took.push(harmless(&app).await?);
        tokio::time::sleep(BETWEEN_OTHERS).await;
    }
    Ok(took)
}

async fn harmless(app: &Arc<App>) -> Result<Duration, Problem> {
    let started = Instant::now();
    match through_the_flow(app, "return 1".to_owned()).await? {
        FlowOutcome::Over(report) if report.state == RunState::Done => Ok(started.elapsed()),
        _ => Err(failed("`return 1` did not return")),
    }
}

/// The outcome of a program.
#[derive(Debug, Clone, PartialEq)]
struct AttackEnd {
    /// `VALUE`, or the error code.
    code: String,
    /// The value, or the error message.
    text: String,
    /// How long it ran on after its CPU time limit.
    late: Duration,
    /// The largest memory of a worker meanwhile, in bytes; `None` where the system does not report it.
    memory_bytes: Option<u64>,
}

/// The outcome through `flow`; where that refuses the program, also the outcome in a worker.
async fn run(app: &Arc<App>, alone: &WorkerPool, attack: &Attack) -> Result<Vec<AttackEnd>, Problem> {
    let code = as_program(&attack.source);
    let watch = WorkerWatch::start();
    let went = through_the_flow(app, code.clone()).await?;
    let late = watch.late();
    let ended = |code: &str, text: &str| AttackEnd {
        code: code.to_owned(),
        text: text.to_owned(),
        late,
        memory_bytes: watch.most(),
    };
    Ok(match &went {
        FlowOutcome::Over(report) => vec![match (&report.result, &report.error) {
            (Some(result), _) => ended("VALUE", result.get()),
            (None, Some(error)) => ended(error.code.as_str(), &error.message),
            (None, None) => ended("UNKNOWN", "it says nothing"),
        }],
        FlowOutcome::Refused(problem) => {
            let mut both = vec![ended(problem.code.as_str(), &problem.message)];
            both.extend(past_the_flow(app, alone, &code).await?);
            both
        }
        FlowOutcome::Hung => vec![ended("HUNG", "it never ends")],
    })
}

enum FlowOutcome {
    Over(Arc<RunReport>),
    Refused(Problem),
    Hung,
}

async fn through_the_flow(app: &Arc<App>, code: String) -> Result<FlowOutcome, Problem> {
    let execution = execution(app, Work::Code(code));
    match flow::execute(app, execution, |_| true).await? {
        ExecuteOutcome::Running(handle) => match handle.wait(PATIENCE).await {
            RunStatus::Finished(report) => Ok(FlowOutcome::Over(report)),
            RunStatus::Running(_)
            | RunStatus::Waiting { .. }
            | RunStatus::Interrupted
            | RunStatus::Elsewhere => Ok(FlowOutcome::Hung),
        },
        ExecuteOutcome::Refused(refused) => Ok(FlowOutcome::Refused(refused.problem)),
        ExecuteOutcome::Status(..)
        | ExecuteOutcome::AlreadyWaiting(..)
        | ExecuteOutcome::Suggested(_)
        | ExecuteOutcome::Cached(_) => Err(failed("a run that was never asked for is known")),
    }
}

/// Runs a program in a worker without analysis and policy; `None` where it is no valid program.
async fn past_the_flow(app: &App, pool: &WorkerPool, code: &str) -> Result<Option<AttackEnd>, Problem> {
    let Ok(analysis) = pml_analysis::analyse(code, &app.knowledge.tool_catalogue(&app.principal)) else {
        return Ok(None);
    };
    let program = pml_sandbox::SandboxProgram {
        js: analysis.program.js,
        probe: analysis.program.probe,
        entries: Vec::new(),
        arguments: "{}".to_owned(),
        seed: 1,
        now_ms: 0,
        tools: vec![GrantedTool {
            server: "json".to_owned(),
            names: vec!["stringify".to_owned()],
            handle: 0,
        }],
        nested: Vec::new(),
        sees: Vec::new(),
        limits: SandboxLimits { cpu: CPU, ..SandboxLimits::default() },
    };
    let mut worker = pool.take_worker().await.map_err(failed)?;
    let watch = WorkerWatch::start();
    worker.begin_program(&program);
    let told = tokio::time::timeout(PATIENCE, async {
        loop {
            match worker.next_event().await {
                Ok(WorkerEvent::Ended(ending)) => return words(&ending),
                Ok(WorkerEvent::Call { call, arguments, .. }) => {
                    let json = stringified(&arguments);
                    worker.deliver(&Delivery { now_ms: 0, what: DeliveryPayload::Result { call, json } });
                }
                Ok(_) => {}
                Err(WorkerFault::Cpu) => return ("TIMEOUT".to_owned(), String::new()),
                Err(fault) => return ("WORKER_CRASHED".to_owned(), fault.to_string()),
            }
        }
    });
    let (code, text) = told.await.unwrap_or_else(|_| ("HUNG".to_owned(), String::new()));
    Ok(Some(AttackEnd { code, text, late: watch.late(), memory_bytes: watch.most() }))
}

/// The result of `json:stringify`.
fn stringified(arguments: &str) -> String {
    let fields = Fields::parse(arguments).unwrap_or_default();
    let data = fields.get("data").map(RawValue::get).unwrap_or_default();
    serde_json::json!({ "json": data }).to_string()
}

/// The code and the text of an outcome, as a run reports them.
fn words(ending: &ProgramEnding) -> (String, String) {
    let (code, text) = match ending {
        ProgramEnding::Value(json) => ("VALUE", json.clone()),
        ProgramEnding::Thrown(ThrownError { name, message, .. })
        | ProgramEnding::Unhandled(ThrownError { name, message, .. }) => {
            ("PROGRAM_ERROR", format!("{name}: {message}"))
        }
        ProgramEnding::Deadlock => ("DEADLOCK", String::new()),
        ProgramEnding::Limit(ExceededLimit::Memory) => ("MEMORY", String::new()),
        ProgramEnding::Limit(ExceededLimit::Calls) => ("TOOL_CALL_LIMIT", String::new()),
        ProgramEnding::Limit(ExceededLimit::Result) => ("RESULT_TOO_LARGE", String::new()),
    };
    (code.to_owned(), text)
}

/// The verdict on the outcome of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AttackVerdict {
    Fine,
    ToBeRead,
    Wrong,
}

/// Judges by the words before the first `;`, separated by `or`. A refusal that no word expects has to be read by a
/// person.
fn judge(required: &str, ended: &AttackEnd) -> AttackVerdict {
    let refused = ["DENIED", "INVALID_PROGRAM"].contains(&ended.code.as_str());
    let head = required.split([';', '–']).next().unwrap_or_default();
    let words: Vec<Option<bool>> = head.split(" or ").map(|word| fits(word.trim(), ended)).collect();
    if words.contains(&Some(true)) {
        let in_time = ended.code != "TIMEOUT" || ended.late <= AFTER_DEADLINE;
        return if in_time { AttackVerdict::Fine } else { AttackVerdict::Wrong };
    }
    match refused || words.contains(&None) {
        true => AttackVerdict::ToBeRead,
        false => AttackVerdict::Wrong,
    }
}

/// Whether the outcome is the one that a word expects; `None` for an unknown word.
fn fits(word: &str, ended: &AttackEnd) -> Option<bool> {
    let is = |code: &str| ended.code == code;
    let threw = |name: &str| is("PROGRAM_ERROR") && ended.text.contains(name);
    // A value without a JSON form is a value too, and some programs catch their error and return it.
    let returned = is("VALUE") || is("RESULT_NOT_JSON");
    let error = (!returned || ended.text.starts_with("\"caught:")) && !is("HUNG") && !is("WORKER_CRASHED");
    Some(match word.split(" (").next().unwrap_or_default() {
        "TIMEOUT" | "TIMEOUT by OS-level kill" => is("TIMEOUT"),
        "MEMORY" => is("MEMORY"),
        "VALUE" | "VALUE ≤ limit" => returned,
        "RESULT_TOO_LARGE" => is("RESULT_TOO_LARGE"),
        "ERROR(range)" => threw("RangeError"),
        "ERROR(stack)" => threw("stack"),
        "ERROR(syntax)" => threw("SyntaxError") || is("INVALID_PROGRAM"),
        "ERROR(args)" => error && ended.text.contains("argument"),
        "ERROR(unhandled rejection)" | "ERROR" => error,
        "DEADLOCK error at once" => is("DEADLOCK"),
        "ReferenceError" => threw("ReferenceError"),
        word if word.starts_with("TypeError:") => threw("TypeError"),
        word if word.starts_with('`') && word.ends_with('`') => {
            is("VALUE") && bare(word) == bare(&ended.text)
        }
        _ => return None,
    })
}

/// A value without the characters that differ between JSON, nested JSON and prose.
fn bare(value: &str) -> String {
    value.chars().filter(|c| !"`\"\\ ".contains(*c)).collect()
}

fn line(attack: &Attack, ended: &[AttackEnd], verdict: AttackVerdict) -> String {
    let word = match verdict {
        AttackVerdict::Fine => "ok   ",
        AttackVerdict::ToBeRead => "read ",
        AttackVerdict::Wrong => "WRONG",
    };
    let told: Vec<String> = ended.iter().map(AttackEnd::description).collect();
    let told = told.join("; in a worker all the same: ");
    match verdict {
        AttackVerdict::Fine => format!("{word} {told}"),
        AttackVerdict::ToBeRead | AttackVerdict::Wrong => {
            format!("{word} {told}  (required: {})", attack.required)
        }
    }
}

impl AttackEnd {
    fn description(&self) -> String {
        let mut told = self.code.clone();
        if !self.text.is_empty() && !["TIMEOUT", "MEMORY", "DEADLOCK"].contains(&self.code.as_str()) {
            told.push_str(&format!(" {}", truncate_text(&printable(&self.text), SHOWN_CHARACTERS)));
        }
        if self.code == "TIMEOUT" {
            told.push_str(&format!(" {} ms after the deadline", self.late.as_millis()));
        }
        if let (true, Some(bytes)) = (self.code == "MEMORY", self.memory_bytes) {
            told.push_str(&format!(" with {} MiB", bytes >> 20));
        }
        told
    }
}

/// Samples the resource use of workers until it is dropped.
struct WorkerWatch {
    started: Instant,
    seen: Arc<WorkerPeaks>,
    /// The sampling task, which ends when this is dropped.
    _looking: JoinSet<()>,
}

#[derive(Default)]
struct WorkerPeaks {
    most_bytes: AtomicU64,
    /// When a worker reached its CPU time limit; on a busy machine that is later than in real time.
    deadline: OnceLock<Instant>,
}

impl WorkerWatch {
    fn start() -> WorkerWatch {
        let seen = Arc::new(WorkerPeaks::default());
        let noted = Arc::clone(&seen);
        // The worker of the previous program may still exist; idle workers have used hardly any CPU time.
        let spent: HashSet<u32> = workers()
            .into_iter()
            .filter(|worker| worker.computed >= CPU / 2)
            .map(|worker| worker.pid)
            .collect();
        let mut looking = JoinSet::new();
        looking.spawn(async move {
            loop {
                for WorkerUsage { bytes, computed, .. } in
                    workers().into_iter().filter(|worker| !spent.contains(&worker.pid))
                {
                    noted.most_bytes.fetch_max(bytes, Ordering::Relaxed);
                    if computed >= CPU {
                        noted.deadline.get_or_init(Instant::now);
                    }
                }
                tokio::time::sleep(BETWEEN_LOOKS).await;
            }
        });
        WorkerWatch { started: Instant::now(), seen, _looking: looking }
    }

    fn most(&self) -> Option<u64> {
        Some(self.seen.most_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// The time since the CPU limit was reached; measured in real time where the system does not report CPU time.
    fn late(&self) -> Duration {
        match (self.seen.deadline.get(), self.most()) {
            (Some(deadline), _) => deadline.elapsed(),
            (None, Some(_)) => Duration::ZERO,
            (None, None) => self.started.elapsed().saturating_sub(CPU),
        }
    }
}

/// The resource use of a child process.
struct WorkerUsage {
    pid: u32,
    bytes: u64,
    computed: Duration,
}

/// All child processes; empty where the system does not list them.
fn workers() -> Vec<WorkerUsage> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let children: Vec<String> = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    children.iter().flat_map(|pids| pids.split_whitespace()).filter_map(usage).collect()
}

fn usage(pid: &str) -> Option<WorkerUsage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields after the process name, which may contain anything, even `)`.
    let fields: Vec<u64> =
        stat.rsplit(')').next()?.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let ticks = fields.get(11)? + fields.get(12)?;
    Some(WorkerUsage {
        pid: pid.parse().ok()?,
        bytes: fields.get(21)? * PAGE_BYTES,
        computed: Duration::from_millis(ticks * TICK_MS),
    })
}

/// The source as the body of a function that returns the value of the script.
fn as_program(source: &str) -> String {
    let source = source.replace("globalThis.RESULT", "RESULT");
    let mut program = awaited(&source);
    program = returning(&program).unwrap_or(program);
    let mut head = String::new();
    if source.contains("RESULT") {
        head.push_str("let RESULT;");
    }
    if source.contains("__host(") {
        head.push_str("const __host = async (data) => (await mcp.json.stringify({ data })).json;");
    }
    head + &program
}

fn awaited(source: &str) -> String {
    let mut pieces = source.split("__host(");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let returned = text.trim_end().ends_with("return");
        text.push_str(if returned { "__host(" } else { "await __host(" });
        text.push_str(piece);
    }
    text
}

fn returning(source: &str) -> Option<String> {
    let reads =
        |text: &String| pml_analysis::analyse(text, &pml_analysis::AnalysisCatalogue::default()).is_ok();
    let ends = source.char_indices().filter(|(_, c)| [';', '}'].contains(c)).map(|(at, _)| at + 1);
    let starts: Vec<usize> = std::iter::once(0).chain(ends).collect();
    let whole = starts.into_iter().rev().filter_map(|at| {
        let (before, last) = source.split_at(at);
        let last = last.trim().trim_end_matches(';');
        (!last.is_empty()).then(|| format!("{before} return ({last})"))
    });
    let caught = || {
        let (before, rest) = source.rsplit_once("try{")?;
        let (tried, rest) = rest.split_once("}catch(e){")?;
        let handler = rest.trim().strip_suffix('}')?;
        Some(format!("{before} try{{ return ({tried}) }} catch(e) {{ return ({handler}) }}"))
    };
    whole.into_iter().chain(caught()).find(|text| reads(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_a_script_is_returned() {
        for (source, expected) in [
            ("1+1", " return (1+1)"),
            ("let a=1;a+1;", "let a=1; return (a+1)"),
            ("function f(){return 1} f()", "function f(){return 1} return (f())"),
            ("(function f(){f();f()})()", " return ((function f(){f();f()})())"),
            ("while(true){}", "while(true){}"),
            ("throw null", "throw null"),
            ("try{null.x}catch(e){e.stack}", " try{ return (null.x) } catch(e) { return (e.stack) }"),
            ("globalThis.RESULT=1", "let RESULT; return (RESULT=1)"),
        ] {
            assert_eq!(as_program(source), expected);
        }
        let called = as_program("const o={toJSON(){return __host(o)}};__host({a:1})");
        assert!(
            called.ends_with("const o={toJSON(){return __host(o)}}; return (await __host({a:1}))"),
            "{called}"
        );
    }

    #[test]
    fn ends_are_judged_by_what_is_required() {
        use AttackVerdict::{Fine, ToBeRead, Wrong};
        let ended = |code: &str, text: &str, ms: u64| AttackEnd {
            code: code.to_owned(),
            text: text.to_owned(),
            late: Duration::from_millis(ms),
            memory_bytes: None,
        };
        for (required, code, text, ms, expected) in [
            ("TIMEOUT", "TIMEOUT", "", 100, Fine),
            ("TIMEOUT", "TIMEOUT", "", 300, Wrong),
            ("TIMEOUT by OS-level kill", "VALUE", "1", 1, Wrong),
            ("TIMEOUT or MEMORY", "MEMORY", "", 1, Fine),
            (
                "ERROR(stack) or MEMORY",
                "PROGRAM_ERROR",
                "RangeError: Maximum call stack size exceeded",
                1,
                Fine,
            ),
            ("ERROR(range)", "MEMORY", "", 1, Wrong),
            ("`{a:1}`", "VALUE", r#""{\"a\":1}""#, 1, Fine),
            ("`{a:1}`", "VALUE", r#""{\"forged\":1}""#, 1, Wrong),
            ("hook absent or inert", "VALUE", "1", 1, ToBeRead),
            ("VALUE or ERROR or TIMEOUT; soon", "MEMORY", "", 1, Fine),
            ("VALUE", "HUNG", "", 1, Wrong),
            ("VALUE (cheap) – and more", "RESULT_NOT_JSON", "TypeError: the result `$` is …", 1, Fine),
            ("ERROR; re-entry refused at depth 1", "VALUE", r#""caught:TypeError""#, 1, Fine),
            ("ERROR (null is not success)", "VALUE", "null", 1, Wrong),
            ("blocked", "DENIED", "`constructor` is called", 1, ToBeRead),
            ("ERROR(syntax)", "INVALID_PROGRAM", "`with` is not allowed", 1, Fine),
        ] {
            assert_eq!(judge(required, &ended(code, text, ms)), expected, "{required}: {code} {text}");
        }
    }
}
