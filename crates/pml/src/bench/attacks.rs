//! Hostile programs, one after the other, each with the end it must come to.
//!
//! `engine.jsonl` has one object a line: `id`, `source`, `required`. A source is a script whose value is that of its last
//! expression, and a run is the body of a function, so it is changed a little first:
//! - what stands after the last `;` or `}` from which on the text is one expression is returned; of a `try … catch` at the
//!   end, what is tried and what is caught are returned;
//! - `globalThis.RESULT` is a local, since programs that change `globalThis` are not run at all;
//! - `__host(x)` hands `x` to a built-in tool, which gives back the JSON it received, and is waited for where the source
//!   does not return it itself.
//!
//! A program that analysis or policy refuses is run in a worker all the same, past both, and that end is told as well: a
//! wall is only known to stand when something runs against it.
//!
//! What `required` says is judged as far as it is one of a few words; what is not is shown to be read (`read`), with both.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use pml_model::RunState;
use pml_model::json::Fields;
use pml_model::name::{printable, shortened};
use pml_sandbox::{Delivery, Ending, Event, Fault, Granted, Limit, Limits, Pool, Settings, Thrown, What};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Figure, failed, json_lines, milliseconds, quantile};
use crate::app::{App, Role};
use crate::config::{Env, Paths};
use crate::execute::WORKER_COMMAND;
use crate::flow::{self, Executed};
use crate::planning::Asked;
use crate::problem::Problem;
use crate::report::{Report, Standing};

/// How long each may compute.
const CPU: Duration = Duration::from_secs(1);
/// How soon after that it must be over.
const AFTER_DEADLINE: Duration = Duration::from_millis(250);
/// How long anything may take here before it counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often somebody else runs something harmless meanwhile.
const BETWEEN_OTHERS: Duration = Duration::from_millis(200);
/// How often workers are looked at.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);
/// The units in which Linux tells processor time and memory.
const TICK_MS: u64 = 10;
const PAGE_BYTES: u64 = 4096;
/// How much of a value or a message is shown.
const SHOWN_CHARACTERS: usize = 70;

#[derive(Deserialize)]
struct Attack {
    id: String,
    source: String,
    required: String,
}

pub(super) async fn measure(data: &Path) -> Result<Vec<Figure>, Problem> {
    let attacks = json_lines(&data.join("engine.jsonl"))?;
    let home = tempfile::tempdir().map_err(failed)?;
    let config = home.path().join("pml.toml");
    std::fs::write(&config, format!("[limits]\ncpu = \"{}ms\"\n", CPU.as_millis())).map_err(failed)?;
    let paths = Paths { config, data: home.path().to_owned() };
    let app = App::open(paths, Env::of_process(), home.path().to_owned(), Role::Command).await?;
    let program = std::env::current_exe().map_err(failed)?;
    let alone = Pool::open(Settings::new(program, vec![WORKER_COMMAND.into()])).map_err(failed)?;
    let figures = all(&app, &alone, &attacks).await;
    app.close().await;
    figures
}

async fn all(app: &Arc<App>, alone: &Pool, attacks: &[Attack]) -> Result<Vec<Figure>, Problem> {
    let mut quiet = Vec::new();
    for _ in 0..20 {
        quiet.push(harmless(app).await?);
    }
    let done = Arc::new(AtomicBool::new(false));
    let others = tokio::spawn(run_others(Arc::clone(app), Arc::clone(&done)));
    let (mut figures, mut counts) = (Vec::new(), [0; 3]);
    for attack in attacks {
        let ended = run(app, alone, attack).await?;
        // Where it was refused, what a worker did with it counts.
        let verdict = ended.last().map_or(Verdict::Read, |ended| judge(&attack.required, ended));
        counts[verdict as usize] += 1;
        figures.push(Figure::of(&attack.id, line(attack, &ended, verdict)));
    }
    done.store(true, Ordering::Relaxed);
    let mut others = others.await.map_err(failed)??;
    let [fine, read, wrong] = counts;
    figures.push(
        Figure::of(
            format!("{} programs", attacks.len()),
            format!("{fine} ok, {wrong} WRONG, {read} to be read"),
        )
        .target("0 wrong", wrong == 0),
    );
    figures.push(Figure::of(
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
        Went::Over(report) if report.state == RunState::Done => Ok(started.elapsed()),
        _ => Err(failed("`return 1` did not return")),
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq)]
struct Ended {
    /// `VALUE`, or the code of the error.
    code: String,
    /// The value, or the message.
    text: String,
    /// How long it went on after it had computed for as long as it may.
    late: Duration,
    /// The most memory a worker had meanwhile.
    memory_bytes: Option<u64>,
}

/// What the flow makes of it; and where that refuses it, what a worker does.
async fn run(app: &Arc<App>, alone: &Pool, attack: &Attack) -> Result<Vec<Ended>, Problem> {
    let code = as_program(&attack.source);
    let watch = Watch::start();
    let went = through_the_flow(app, code.clone()).await?;
    let late = watch.late();
    let ended = |code: &str, text: &str| Ended {
        code: code.to_owned(),
        text: text.to_owned(),
        late,
        memory_bytes: watch.most(),
    };
    Ok(match &went {
        Went::Over(report) => vec![match (&report.result, &report.error) {
            (Some(result), _) => ended("VALUE", result.get()),
            (None, Some(error)) => ended(&error.code, &error.message),
            (None, None) => ended("UNKNOWN", "it says nothing"),
        }],
        Went::Refused(problem) => {
            let mut both = vec![ended(&problem.code_text(), &problem.message)];
            both.extend(past_the_flow(app, alone, &code).await?);
            both
        }
        Went::Hung => vec![ended("HUNG", "it never ends")],
    })
}

enum Went {
    Over(Arc<Report>),
    Refused(Problem),
    Hung,
}

async fn through_the_flow(app: &Arc<App>, code: String) -> Result<Went, Problem> {
    let execution = super::execution(app, Asked::Code(code));
    match flow::execute(app, execution, |_| true).await? {
        Executed::Going(handle) => match handle.wait(PATIENCE).await {
            Standing::Over(report) => Ok(Went::Over(report)),
            Standing::Running(_) | Standing::Waiting { .. } | Standing::Interrupted | Standing::Elsewhere => {
                Ok(Went::Hung)
            }
        },
        Executed::Refused(refused) => Ok(Went::Refused(refused.problem)),
        Executed::Stands(..) | Executed::AsksAlready(..) | Executed::Suggested(_) | Executed::Known(_) => {
            Err(failed("a run that was never asked for is known"))
        }
    }
}

/// Runs a program in a worker without asking whether it may be; nothing where it is no program.
async fn past_the_flow(app: &App, pool: &Pool, code: &str) -> Result<Option<Ended>, Problem> {
    let Ok(analysis) = pml_analysis::analyse(code, &app.knowledge.known_tools(&app.principal)) else {
        return Ok(None);
    };
    let program = pml_sandbox::Program {
        js: analysis.program.js,
        probe: analysis.program.probe,
        entries: Vec::new(),
        arguments: "{}".to_owned(),
        seed: 1,
        now_ms: 0,
        tools: vec![Granted { server: "json".to_owned(), names: vec!["stringify".to_owned()], handle: 0 }],
        nested: Vec::new(),
        sees: Vec::new(),
        limits: Limits { cpu: CPU, ..Limits::default() },
    };
    let mut worker = pool.take().await.map_err(failed)?;
    let watch = Watch::start();
    worker.begin(&program);
    let told = tokio::time::timeout(PATIENCE, async {
        loop {
            match worker.next().await {
                Ok(Event::Ended(ending)) => return words(&ending),
                Ok(Event::Call { call, arguments, .. }) => {
                    let json = stringified(&arguments);
                    worker.deliver(&Delivery { now_ms: 0, what: What::Result { call, json } });
                }
                Ok(_) => {}
                Err(Fault::Cpu) => return ("TIMEOUT".to_owned(), String::new()),
                Err(fault) => return ("WORKER_CRASHED".to_owned(), fault.to_string()),
            }
        }
    });
    let (code, text) = told.await.unwrap_or_else(|_| ("HUNG".to_owned(), String::new()));
    Ok(Some(Ended { code, text, late: watch.late(), memory_bytes: watch.most() }))
}

/// What `json:stringify` answers.
fn stringified(arguments: &str) -> String {
    let fields = Fields::parse(arguments).unwrap_or_default();
    let data = fields.get("data").map(RawValue::get).unwrap_or_default();
    serde_json::json!({ "json": data }).to_string()
}

/// As a run says it.
fn words(ending: &Ending) -> (String, String) {
    let (code, text) = match ending {
        Ending::Value(json) => ("VALUE", json.clone()),
        Ending::Thrown(Thrown { name, message, .. }) | Ending::Unhandled(Thrown { name, message, .. }) => {
            ("PROGRAM_ERROR", format!("{name}: {message}"))
        }
        Ending::Deadlock => ("DEADLOCK", String::new()),
        Ending::Limit(Limit::Memory) => ("MEMORY", String::new()),
        Ending::Limit(Limit::Calls) => ("TOOL_CALL_LIMIT", String::new()),
        Ending::Limit(Limit::Result) => ("RESULT_TOO_LARGE", String::new()),
    };
    (code.to_owned(), text)
}

/// What is required of a program, and what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fine,
    Read,
    Wrong,
}

/// Judges by the words before the first `;`, which `or` separates. A refusal that no word means is to be read.
fn judge(required: &str, ended: &Ended) -> Verdict {
    let refused = ["DENIED", "INVALID_PROGRAM"].contains(&ended.code.as_str());
    let head = required.split([';', '–']).next().unwrap_or_default();
    let words: Vec<Option<bool>> = head.split(" or ").map(|word| fits(word.trim(), ended)).collect();
    if words.contains(&Some(true)) {
        let in_time = ended.code != "TIMEOUT" || ended.late <= AFTER_DEADLINE;
        return if in_time { Verdict::Fine } else { Verdict::Wrong };
    }
    match refused || words.contains(&None) {
        true => Verdict::Read,
        false => Verdict::Wrong,
    }
}

/// Whether an end is the one that a word means; nothing where the word is none of ours.
fn fits(word: &str, ended: &Ended) -> Option<bool> {
    let is = |code: &str| ended.code == code;
    let threw = |name: &str| is("PROGRAM_ERROR") && ended.text.contains(name);
    // A value that has no JSON is one all the same, and some programs catch their error themselves and return it.
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

/// A value without the signs that are written differently in JSON, in JSON within JSON and in prose.
fn bare(value: &str) -> String {
    value.chars().filter(|c| !"`\"\\ ".contains(*c)).collect()
}

fn line(attack: &Attack, ended: &[Ended], verdict: Verdict) -> String {
    let word = match verdict {
        Verdict::Fine => "ok   ",
        Verdict::Read => "read ",
        Verdict::Wrong => "WRONG",
    };
    let told: Vec<String> = ended.iter().map(Ended::told).collect();
    let told = told.join("; in a worker all the same: ");
    match verdict {
        Verdict::Fine => format!("{word} {told}"),
        Verdict::Read | Verdict::Wrong => format!("{word} {told}  (required: {})", attack.required),
    }
}

impl Ended {
    fn told(&self) -> String {
        let mut told = self.code.clone();
        if !self.text.is_empty() && !["TIMEOUT", "MEMORY", "DEADLOCK"].contains(&self.code.as_str()) {
            told.push_str(&format!(" {}", shortened(&printable(&self.text), SHOWN_CHARACTERS)));
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

/// Looks what workers use up, for as long as it is there.
struct Watch {
    started: Instant,
    seen: Arc<Seen>,
    looking: tokio::task::AbortHandle,
}

#[derive(Default)]
struct Seen {
    most_bytes: AtomicU64,
    /// When a worker had computed for as long as it may: on a busy machine that is later than real time says.
    deadline: OnceLock<Instant>,
}

impl Watch {
    fn start() -> Watch {
        let seen = Arc::new(Seen::default());
        let noted = Arc::clone(&seen);
        // The worker of the last program may not be gone yet; those that wait for one have hardly computed.
        let spent: HashSet<u32> = workers()
            .into_iter()
            .filter(|worker| worker.computed >= CPU / 2)
            .map(|worker| worker.pid)
            .collect();
        let looking = tokio::spawn(async move {
            loop {
                for Worker { bytes, computed, .. } in
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
        Watch { started: Instant::now(), seen, looking: looking.abort_handle() }
    }

    fn most(&self) -> Option<u64> {
        Some(self.seen.most_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Where the system does not tell what workers use, real time has to do.
    fn late(&self) -> Duration {
        match (self.seen.deadline.get(), self.most()) {
            (Some(deadline), _) => deadline.elapsed(),
            (None, Some(_)) => Duration::ZERO,
            (None, None) => self.started.elapsed().saturating_sub(CPU),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.looking.abort();
    }
}

/// What a child of this process uses.
struct Worker {
    pid: u32,
    bytes: u64,
    computed: Duration,
}

/// All of them; none where the system does not tell.
fn workers() -> Vec<Worker> {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let children: Vec<String> = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .collect();
    children.iter().flat_map(|pids| pids.split_whitespace()).filter_map(usage).collect()
}

fn usage(pid: &str) -> Option<Worker> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // What follows the name, which may contain anything.
    let fields: Vec<u64> =
        stat.rsplit(')').next()?.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    let ticks = fields.get(11)? + fields.get(12)?;
    Some(Worker {
        pid: pid.parse().ok()?,
        bytes: fields.get(21)? * PAGE_BYTES,
        computed: Duration::from_millis(ticks * TICK_MS),
    })
}

/// The body of a function that does what the script does and returns its value.
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
    let reads = |text: &String| pml_analysis::analyse(text, &pml_analysis::Catalogue::default()).is_ok();
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
        use Verdict::{Fine, Read, Wrong};
        let ended = |code: &str, text: &str, ms: u64| Ended {
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
            ("hook absent or inert", "VALUE", "1", 1, Read),
            ("VALUE or ERROR or TIMEOUT; soon", "MEMORY", "", 1, Fine),
            ("VALUE", "HUNG", "", 1, Wrong),
            ("VALUE (cheap) – and more", "RESULT_NOT_JSON", "TypeError: the result `$` is …", 1, Fine),
            ("ERROR; re-entry refused at depth 1", "VALUE", r#""caught:TypeError""#, 1, Fine),
            ("ERROR (null is not success)", "VALUE", "null", 1, Wrong),
            ("blocked", "DENIED", "`constructor` is called", 1, Read),
            ("ERROR(syntax)", "INVALID_PROGRAM", "`with` is not allowed", 1, Fine),
        ] {
            assert_eq!(judge(required, &ended(code, text, ms)), expected, "{required}: {code} {text}");
        }
    }
}
