//! A host that answers by script.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::OnceLock;

use pml_sandbox::{
    Delivery, DeliveryPayload, GrantedTool, PoolSettings, ProgramEnding, SandboxLimits, SandboxProgram,
    ThrownError, Worker, WorkerEvent, WorkerFault, WorkerPool,
};

pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// The workers of all tests that need nothing special.
pub(crate) fn pool() -> &'static WorkerPool {
    static POOL: OnceLock<WorkerPool> = OnceLock::new();
    POOL.get_or_init(|| WorkerPool::start(settings(&["sandbox-worker"])).unwrap())
}

/// This binary as a worker, with these arguments.
pub(crate) fn settings(arguments: &[&str]) -> PoolSettings {
    PoolSettings::new(std::env::current_exe().unwrap(), arguments.iter().map(Into::into).collect())
}

/// A program with three tools: `fs:read` (1), `fs:write-file` (2) and `my-server:go` (3).
pub(crate) fn program(js: &str) -> SandboxProgram {
    let tool = |server: &str, names: &[&str], handle| GrantedTool {
        server: server.to_owned(),
        names: names.iter().map(ToString::to_string).collect(),
        handle,
    };
    SandboxProgram {
        js: js.to_owned(),
        probe: "P".to_owned(),
        entries: Vec::new(),
        arguments: r#"{"dir":"/d","n":3}"#.to_owned(),
        seed: 7,
        now_ms: START_MS,
        tools: vec![
            tool("fs", &["read"], 1),
            tool("fs", &["write-file", "write_file"], 2),
            tool("my-server", &["go"], 3),
        ],
        nested: Vec::new(),
        sees: Vec::new(),
        limits: SandboxLimits::default(),
    }
}

/// What the host gives when it is asked: a tool's result is its own arguments.
pub(crate) fn echo(event: &WorkerEvent) -> Option<DeliveryPayload> {
    match event {
        WorkerEvent::Call { call, arguments, .. } => {
            Some(DeliveryPayload::Result { call: *call, json: arguments.clone() })
        }
        WorkerEvent::Timer { timer, .. } => Some(DeliveryPayload::Timer { timer: *timer }),
        _ => None,
    }
}

/// Runs a program to its end, delivering what `answer` gives, one at a time and each ten milliseconds later.
pub(crate) fn play(
    program: &SandboxProgram,
    answer: impl FnMut(&WorkerEvent) -> Option<DeliveryPayload>,
) -> Result<Vec<WorkerEvent>, WorkerFault> {
    block_on(async {
        let mut worker = pool().take_worker().await.unwrap();
        drive(&mut worker, program, answer).await
    })
}

pub(crate) async fn drive(
    worker: &mut Worker,
    program: &SandboxProgram,
    mut answer: impl FnMut(&WorkerEvent) -> Option<DeliveryPayload>,
) -> Result<Vec<WorkerEvent>, WorkerFault> {
    worker.begin_program(program);
    let (mut events, mut waiting, mut now_ms) = (Vec::new(), VecDeque::new(), program.now_ms);
    loop {
        let event = worker.next_event().await?;
        waiting.extend(answer(&event));
        if let WorkerEvent::TimerCleared { timer } = event {
            waiting.retain(|what| *what != DeliveryPayload::Timer { timer });
        }
        events.push(event);
        match events.last() {
            Some(WorkerEvent::Ended(_)) => return Ok(events),
            Some(WorkerEvent::Quiet { .. }) => {
                now_ms += 10;
                let what = waiting.pop_front().expect("a quiet program waits for something");
                worker.deliver(&Delivery { now_ms, what });
            }
            _ => {}
        }
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The JSON a program returns, or how else it ended.
pub(crate) fn value_of(js: &str) -> String {
    ending_of(&program(js))
}

pub(crate) fn ending_of(program: &SandboxProgram) -> String {
    match play(program, echo) {
        Ok(events) => ending(events.last().unwrap()),
        Err(fault) => format!("fault {fault:?}"),
    }
}

/// All events in words, without those that say that nothing happens.
pub(crate) fn story(
    program: &SandboxProgram,
    answer: impl FnMut(&WorkerEvent) -> Option<DeliveryPayload>,
) -> String {
    let mut text = String::new();
    for event in play(program, answer).unwrap() {
        if !matches!(event, WorkerEvent::Quiet { .. }) {
            writeln!(text, "{}", words(&event)).unwrap();
        }
    }
    text
}

fn words(event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::Call { call, frame, point, context, handle, arguments } => {
            format!("{}call {call} of {handle} at {point}@{context} {arguments}", within(*frame))
        }
        WorkerEvent::Timer { timer, delay_ms } => format!("timer {timer} in {delay_ms}"),
        WorkerEvent::TimerCleared { timer } => format!("timer {timer} cleared"),
        WorkerEvent::Console { frame, level, text } => format!("{}{level:?} {text}", within(*frame)),
        WorkerEvent::FrameBegan { frame, parent, nested, point, context, arguments } => {
            format!("{}frame {frame} of {nested} at {point}@{context} {arguments}", within(*parent))
        }
        WorkerEvent::FrameEnded { frame, end: Ok(json) } => format!("frame {frame} gave {json}"),
        WorkerEvent::FrameEnded { frame, end: Err(thrown) } => {
            format!("frame {frame} threw {}", error(thrown))
        }
        WorkerEvent::Reached { frame, places } => {
            let reached = places
                .iter()
                .map(|it| format!("{:?} {}@{} {} ×{}", it.kind, it.point, it.context, it.outcome, it.count));
            format!("{}reached {}", within(*frame), reached.collect::<Vec<_>>().join(", "))
        }
        WorkerEvent::Operation { frame, point, context, gave, .. } => {
            let whole = if gave.whole { "" } else { " in part" };
            format!("{}{point}@{context} gave{whole} {}", within(*frame), gave.json)
        }
        WorkerEvent::Ended(_) => ending(event),
        WorkerEvent::ConsoleCut
        | WorkerEvent::Progress { .. }
        | WorkerEvent::Hint { .. }
        | WorkerEvent::Quiet { .. } => {
            format!("{event:?}")
        }
    }
}

/// Says where something happened, unless that is the program itself.
fn within(frame: u32) -> String {
    if frame == 0 { String::new() } else { format!("[{frame}] ") }
}

fn ending(event: &WorkerEvent) -> String {
    match event {
        WorkerEvent::Ended(ProgramEnding::Value(json)) => json.clone(),
        WorkerEvent::Ended(ProgramEnding::Thrown(thrown)) => format!("threw {}", error(thrown)),
        WorkerEvent::Ended(ProgramEnding::Unhandled(thrown)) => format!("unhandled {}", error(thrown)),
        other => format!("{other:?}"),
    }
}

fn error(thrown: &ThrownError) -> String {
    let ThrownError { name, message, code, call, frame, line, column, .. } = thrown;
    let mut text = format!("{name}: {message}");
    if let Some(code) = code {
        write!(text, " [{code}]").unwrap();
    }
    if let Some(call) = call {
        write!(text, " call {call}").unwrap();
    }
    if let Some(frame) = frame {
        write!(text, " frame {frame}").unwrap();
    }
    if *line > 0 {
        write!(text, " at {line}:{column}").unwrap();
    }
    text
}
