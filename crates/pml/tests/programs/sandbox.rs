//! A worker alone: programs run in it whatever analysis and policy would have said.
//!
//! It grants `fs:read` and nothing else, so a call of anything else is one that should not have been possible.

use std::time::Duration;

use pml_analysis::{AnalysisCatalogue, AnalysisTool};
use pml_model::ToolId;
use pml_model::json::empty_object;
use pml_sandbox::{
    Delivery, DeliveryPayload, GrantedTool, PoolSettings, ProgramEnding, SandboxLimits, SandboxProgram,
    WorkerEvent, WorkerPool,
};

/// The number `fs:read` goes by.
pub const READ: u32 = 7;
/// The time programs start at.
const START_MS: i64 = 1_700_000_000_000;
/// How often a program may wait before it counts as waiting for ever.
const MOST_TIMERS: usize = 200;

/// Workers, and the tools programs know of.
pub struct Sandbox {
    pool: WorkerPool,
    catalogue: AnalysisCatalogue,
}

/// What a program did in a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Played {
    /// The numbers of the tools it called.
    pub handles: Vec<u32>,
    /// How it ended, in short: `= value`, `threw TypeError`, `unhandled TypeError`, or another word.
    pub ending: String,
    /// Everything it said.
    pub events: Vec<WorkerEvent>,
}

impl Sandbox {
    /// Has workers ready. Within a runtime.
    pub fn open() -> Sandbox {
        let mut settings = PoolSettings::new(env!("CARGO_BIN_EXE_pml").into(), vec!["sandbox-worker".into()]);
        settings.ready_workers = 4;
        let mut catalogue = AnalysisCatalogue::default();
        for tool in ["fs:read", "fs:write", "fs:delete", "danger:delete", "danger:pay", "danger:send"] {
            let id = ToolId::parse(tool).unwrap();
            catalogue.add_tool(AnalysisTool::new(id.clone(), id.tool, empty_object(), None, false));
        }
        Sandbox { pool: WorkerPool::start(settings).unwrap(), catalogue }
    }

    /// The program to run, where analysis can read it at all; what it complains about does not count.
    pub fn program(&self, code: &str, arguments: &str) -> Option<SandboxProgram> {
        let program = pml_analysis::analyse(code, &self.catalogue).ok()?.program;
        let entry = |entry: &pml_analysis::ContextEntry| pml_sandbox::ProbeEntry {
            point: entry.point,
            context: entry.context,
            function: entry.function,
            enters: entry.enters,
        };
        Some(SandboxProgram {
            entries: program.entries.iter().map(entry).collect(),
            js: program.js,
            probe: program.probe,
            arguments: arguments.to_owned(),
            seed: 42,
            now_ms: START_MS,
            tools: vec![GrantedTool {
                server: "fs".to_owned(),
                names: vec!["read".to_owned()],
                handle: READ,
            }],
            nested: Vec::new(),
            sees: Vec::new(),
            limits: SandboxLimits { calls: 50, cpu: Duration::from_secs(2), ..SandboxLimits::default() },
        })
    }

    /// Runs it to its end. Each call is answered with an object, each timer is due at once.
    pub async fn play(&self, program: &SandboxProgram) -> Played {
        let mut worker = self.pool.take_worker().await.unwrap();
        worker.begin_program(program);
        let mut played = Played { handles: Vec::new(), ending: String::new(), events: Vec::new() };
        let (mut now_ms, mut timers) = (START_MS, 0);
        loop {
            let event = match worker.next_event().await {
                Ok(event) => event,
                Err(fault) => {
                    played.ending = format!("fault: {fault}");
                    return played;
                }
            };
            played.events.push(without_times(event.clone()));
            now_ms += 1;
            match event {
                WorkerEvent::Call { call, handle, .. } => {
                    played.handles.push(handle);
                    let json = r#"{"content":"text"}"#.to_owned();
                    worker.deliver(&Delivery { now_ms, what: DeliveryPayload::Result { call, json } });
                }
                WorkerEvent::Timer { .. } if timers == MOST_TIMERS => {
                    played.ending = "waits for ever".to_owned();
                    return played;
                }
                WorkerEvent::Timer { timer, .. } => {
                    timers += 1;
                    worker.deliver(&Delivery { now_ms, what: DeliveryPayload::Timer { timer } });
                }
                WorkerEvent::Ended(ending) => {
                    played.ending = in_short(&ending);
                    return played;
                }
                WorkerEvent::TimerCleared { .. }
                | WorkerEvent::Console { .. }
                | WorkerEvent::ConsoleCut
                | WorkerEvent::Progress { .. }
                | WorkerEvent::Hint { .. }
                | WorkerEvent::Reached { .. }
                | WorkerEvent::Operation { .. }
                | WorkerEvent::FrameBegan { .. }
                | WorkerEvent::FrameEnded { .. }
                | WorkerEvent::Quiet { .. } => {}
            }
        }
    }
}

/// How long operations took is the one thing that two runs of a program tell differently.
fn without_times(event: WorkerEvent) -> WorkerEvent {
    match event {
        WorkerEvent::Operation { frame, point, context, gave, .. } => {
            WorkerEvent::Operation { frame, point, context, gave, took: Duration::ZERO }
        }
        other => other,
    }
}

fn in_short(ending: &ProgramEnding) -> String {
    match ending {
        ProgramEnding::Value(json) => format!("= {json}"),
        ProgramEnding::Thrown(thrown) => format!("threw {}", thrown.name),
        ProgramEnding::Unhandled(thrown) => format!("unhandled {}", thrown.name),
        ProgramEnding::Deadlock => "deadlock".to_owned(),
        ProgramEnding::Limit(limit) => format!("limit: {limit:?}").to_lowercase(),
    }
}
