//! A host that answers by script.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::OnceLock;

use pml_sandbox::{
    Delivery, Ending, Event, Fault, Granted, Limits, Pool, Program, Settings, Thrown, What, Worker,
};

pub(crate) const START_MS: i64 = 1_700_000_000_000;

/// The workers of all tests that need nothing special.
pub(crate) fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::open(settings(&["sandbox-worker"])).unwrap())
}

/// This binary as a worker, with these arguments.
pub(crate) fn settings(arguments: &[&str]) -> Settings {
    Settings::new(std::env::current_exe().unwrap(), arguments.iter().map(Into::into).collect())
}

/// A program with three tools: `fs:read` (1), `fs:write-file` (2) and `my-server:go` (3).
pub(crate) fn program(js: &str) -> Program {
    let tool = |server: &str, names: &[&str], handle| Granted {
        server: server.to_owned(),
        names: names.iter().map(ToString::to_string).collect(),
        handle,
    };
    Program {
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
        limits: Limits::default(),
    }
}

/// What the host gives when it is asked: a tool's result is its own arguments.
pub(crate) fn echo(event: &Event) -> Option<What> {
    match event {
        Event::Call { call, arguments, .. } => Some(What::Result { call: *call, json: arguments.clone() }),
        Event::Timer { timer, .. } => Some(What::Timer { timer: *timer }),
        _ => None,
    }
}

/// Runs a program to its end, delivering what `answer` gives, one at a time and each ten milliseconds later.
pub(crate) fn play(
    program: &Program,
    answer: impl FnMut(&Event) -> Option<What>,
) -> Result<Vec<Event>, Fault> {
    block_on(async {
        let mut worker = pool().take().await.unwrap();
        drive(&mut worker, program, answer).await
    })
}

pub(crate) async fn drive(
    worker: &mut Worker,
    program: &Program,
    mut answer: impl FnMut(&Event) -> Option<What>,
) -> Result<Vec<Event>, Fault> {
    worker.begin(program);
    let (mut events, mut waiting, mut now_ms) = (Vec::new(), VecDeque::new(), program.now_ms);
    loop {
        let event = worker.next().await?;
        waiting.extend(answer(&event));
        if let Event::TimerCleared { timer } = event {
            waiting.retain(|what| *what != What::Timer { timer });
        }
        events.push(event);
        match events.last() {
            Some(Event::Ended(_)) => return Ok(events),
            Some(Event::Quiet { .. }) => {
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

pub(crate) fn ending_of(program: &Program) -> String {
    match play(program, echo) {
        Ok(events) => ending(events.last().unwrap()),
        Err(fault) => format!("fault {fault:?}"),
    }
}

/// All events in words, without those that say that nothing happens.
pub(crate) fn story(program: &Program, answer: impl FnMut(&Event) -> Option<What>) -> String {
    let mut text = String::new();
    for event in play(program, answer).unwrap() {
        if !matches!(event, Event::Quiet { .. }) {
            writeln!(text, "{}", words(&event)).unwrap();
        }
    }
    text
}

fn words(event: &Event) -> String {
    match event {
        Event::Call { call, frame, point, context, handle, arguments } => {
            format!("{}call {call} of {handle} at {point}@{context} {arguments}", within(*frame))
        }
        Event::Timer { timer, delay_ms } => format!("timer {timer} in {delay_ms}"),
        Event::TimerCleared { timer } => format!("timer {timer} cleared"),
        Event::Console { frame, level, text } => format!("{}{level:?} {text}", within(*frame)),
        Event::FrameBegan { frame, parent, nested, point, context, arguments } => {
            format!("{}frame {frame} of {nested} at {point}@{context} {arguments}", within(*parent))
        }
        Event::FrameEnded { frame, end: Ok(json) } => format!("frame {frame} gave {json}"),
        Event::FrameEnded { frame, end: Err(thrown) } => format!("frame {frame} threw {}", error(thrown)),
        Event::Reached { frame, places } => {
            let reached = places
                .iter()
                .map(|it| format!("{:?} {}@{} {} ×{}", it.kind, it.point, it.context, it.outcome, it.count));
            format!("{}reached {}", within(*frame), reached.collect::<Vec<_>>().join(", "))
        }
        Event::Operation { frame, point, context, gave, .. } => {
            let whole = if gave.whole { "" } else { " in part" };
            format!("{}{point}@{context} gave{whole} {}", within(*frame), gave.json)
        }
        Event::Ended(_) => ending(event),
        Event::ConsoleCut | Event::Progress { .. } | Event::Hint { .. } | Event::Quiet { .. } => {
            format!("{event:?}")
        }
    }
}

/// Says where something happened, unless that is the program itself.
fn within(frame: u32) -> String {
    if frame == 0 { String::new() } else { format!("[{frame}] ") }
}

fn ending(event: &Event) -> String {
    match event {
        Event::Ended(Ending::Value(json)) => json.clone(),
        Event::Ended(Ending::Thrown(thrown)) => format!("threw {}", error(thrown)),
        Event::Ended(Ending::Unhandled(thrown)) => format!("unhandled {}", error(thrown)),
        other => format!("{other:?}"),
    }
}

fn error(thrown: &Thrown) -> String {
    let Thrown { name, message, code, call, frame, line, column, .. } = thrown;
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
