//! Tests of the run core together with the tasks of a DAG, without processes: simulated servers that answer, fail and
//! are slow, programs that call and sleep, people who answer, and a gateway that is killed at any moment and rebuilt
//! from what its journal had on disk.

use pml_model::ErrorCode;
use std::collections::{BTreeMap, BTreeSet};

use pml_analysis::AnalysisCatalogue;
use pml_analysis::dag::{Reference, ReferenceRoot, TaskArguments};
use pml_model::question::{DoubtVerdict, ResolvedDoubt};
use pml_model::structure::{NodeId, NodeKind};
use pml_model::{Digest, ToolId};
use pml_sandbox::{DeliveryPayload, ProgramEnding};
use pml_store::JournalEntry;
use proptest::prelude::*;
use tokio::sync::mpsc;

use super::*;
use crate::execute::journal::JournalRecord;
use crate::execute::run::{self, Action, RunCore};
use crate::plan::{
    AnalysedSource, ApprovalReason, Bounds, Grant, Pause, PlannedTool, PlannedWork, ProgramScope, TaskCode,
};

/// Handles: reading, writing, and writing that needs approval.
const READ: u32 = 0;
const WRITE: u32 = 1;
const ASK: u32 = 2;

/// The properties of a task in a test.
#[derive(Debug, Clone)]
struct Shape {
    after: Vec<usize>,
    safe_to_fail: bool,
    retries: u32,
    /// The handle of the tool it calls; else a program that makes this many calls, and one more that it does not await.
    work: Result<u32, Script>,
}

#[derive(Debug, Clone, Copy)]
struct Script {
    calls: u32,
    handle: u32,
    sleeps: bool,
    leaves: bool,
}

fn shapes(most: usize) -> impl Strategy<Value = Vec<Shape>> {
    let task = |index: usize| {
        let after = prop::collection::btree_set(0..index.max(1), 0..=index.min(4));
        let script = (0..4_u32, 0..3_u32, prop::bool::weighted(0.3), prop::bool::weighted(0.3))
            .prop_map(|(calls, handle, sleeps, leaves)| Script { calls, handle, sleeps, leaves });
        let work = prop_oneof![6 => Just(Ok(READ)), 6 => Just(Ok(WRITE)), 1 => Just(Ok(ASK)), 4 => script.prop_map(Err)];
        (after, prop::bool::weighted(0.3), 0..3_u32, work).prop_map(
            move |(after, safe_to_fail, retries, work)| Shape {
                after: after.into_iter().filter(|before| *before < index).collect(),
                safe_to_fail,
                retries,
                work,
            },
        )
    };
    (1..=most).prop_flat_map(move |count| (0..count).map(task).collect::<Vec<_>>())
}

fn json(text: impl Into<String>) -> Box<RawValue> {
    RawValue::from_string(text.into()).unwrap()
}

/// A task whose arguments are its own id and the results of all its dependencies.
fn task(place: usize, shape: &Shape) -> DagTask {
    let mut given = vec![("me".to_owned(), TaskArguments::Literal(json(format!("{place}"))))];
    for before in &shape.after {
        let reference = Reference { of: ReferenceRoot::Task(format!("t{before}")), path: Vec::new() };
        given.push((format!("t{before}"), TaskArguments::Reference(reference)));
    }
    let work = match shape.work {
        Ok(handle) => TaskWork::Tool { handle },
        Err(script) => {
            let analysis = pml_analysis::analyse("return 1", &AnalysisCatalogue::default()).unwrap();
            TaskWork::Code(Box::new(TaskCode {
                // The simulation parses the script from here.
                source: format!("{} {} {} {}", script.calls, script.handle, script.sleeps, script.leaves),
                program: analysis.program,
                structure: analysis.structure,
                sees: ProgramScope { tools: vec![READ, WRITE, ASK], nested: Vec::new() },
                capability: None,
            }))
        }
    };
    DagTask {
        id: format!("t{place}"),
        node: NodeId { number: u32::try_from(place + 1).unwrap(), ..a_node() },
        work,
        given: TaskArguments::Object(given),
        after: shape.after.clone(),
        safe_to_fail: shape.safe_to_fail,
        timeout_ms: None,
        retries: shape.retries,
        dropped: false,
    }
}

fn document() -> pml_analysis::DagAnalysis {
    let text = r#"{"tasks": [{"id": "a", "code": "return 1"}]}"#;
    pml_analysis::analyse_dag(text, &AnalysisCatalogue::default()).unwrap()
}

fn a_node() -> NodeId {
    document().structure.nodes.iter().find(|node| matches!(node.kind, NodeKind::Task { .. })).unwrap().id
}

fn plan(tasks: Vec<DagTask>, pause: Pause, calls: u32) -> Arc<Plan> {
    let tool = |name: &str, idempotent, asks: bool| PlannedTool {
        id: ToolId::parse(name).unwrap(),
        names: Vec::new(),
        digest: Digest::of(b"d"),
        idempotent,
        routing: pml_model::remote::Routing::Server,
        asks: asks.then(|| ApprovalReason { scope: "any".to_owned(), because: "it writes".to_owned() }),
    };
    let tools = vec![tool("s:read", true, false), tool("s:write", false, false), tool("s:ask", false, true)];
    let limits = Bounds {
        calls,
        concurrent: 8,
        concurrent_per_server: 6,
        heap_bytes: 1 << 20,
        stack_bytes: 1 << 16,
        cpu_ms: 1_000,
        wall_ms: 1_000_000,
        argument_bytes: 1 << 20,
        result_bytes: 1 << 20,
        console_bytes: 1_000,
        nesting: 64,
        park_after_ms: 10_000,
        speculated_calls: 0,
    };
    let analysis = document();
    let work = PlannedWork::Dag(DagPlan { tasks, pause, single: false, direct: false });
    Arc::new(Plan::new(
        "test".to_owned(),
        String::new(),
        AnalysedSource { identity: analysis.identity, structure: analysis.structure, work },
        json("{}"),
        tools,
        limits,
        (7, 1_000),
    ))
}

/// Deterministic random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }
}

/// A simulated task program in place of a worker; deterministic, as real ones are.
struct Program {
    script: Script,
    deliveries: mpsc::Receiver<Delivery>,
    taken: u32,
    called: u32,
    says: VecDeque<WorkerEvent>,
}

impl Program {
    fn begin(script: Script, deliveries: mpsc::Receiver<Delivery>) -> Program {
        let mut program = Program { script, deliveries, taken: 0, called: 0, says: VecDeque::new() };
        match script.sleeps {
            true => program.says.push_back(WorkerEvent::Timer { timer: 1, delay_ms: 5_000 }),
            false => program.go_on(),
        }
        program.quiet();
        program
    }

    fn quiet(&mut self) {
        self.says.push_back(WorkerEvent::Quiet { taken: self.taken, calls: 0, timers: 0 });
    }

    fn call(&mut self, handle: u32, what: &str) {
        self.called += 1;
        let arguments = format!("{{\"{what}\":{}}}", self.called);
        self.says.push_back(WorkerEvent::Call {
            call: self.called,
            frame: 0,
            point: 0,
            context: 0,
            handle,
            arguments,
        });
    }

    fn go_on(&mut self) {
        if self.called < self.script.calls {
            self.call(self.script.handle, "step");
            return;
        }
        if self.script.leaves {
            self.call(WRITE, "left");
            self.says.push_back(WorkerEvent::Timer { timer: 2, delay_ms: 60_000 });
        }
        self.says.push_back(WorkerEvent::Ended(ProgramEnding::Value(format!("\"ended {}\"", self.called))));
    }

    /// Its next message, if any.
    fn say(&mut self) -> Option<WorkerEvent> {
        if self.says.is_empty()
            && let Ok(delivery) = self.deliveries.try_recv()
        {
            self.taken += 1;
            match delivery.what {
                DeliveryPayload::Error { .. } => {
                    self.says.push_back(WorkerEvent::Ended(ProgramEnding::Value("\"gave up\"".to_owned())));
                }
                DeliveryPayload::Result { .. } | DeliveryPayload::Timer { .. } => self.go_on(),
            }
            self.quiet();
        }
        self.says.pop_front()
    }
}

/// A call that was sent to the server.
struct Sent {
    issued: IssuedCall,
    acted: bool,
}

struct World {
    plan: Arc<Plan>,
    dice: Dice,
    now: i64,
    run: RunCore<RunEnding>,
    dag: DagRun,
    pending: VecDeque<RunEvent<RunEnding>>,
    programs: BTreeMap<usize, Program>,
    with_server: BTreeMap<u32, Sent>,
    promised: Vec<(u32, usize)>,
    timers: BTreeSet<(i64, u64)>,
    journal: Vec<JournalEntry>,
    /// The number of journal entries on disk.
    durable: usize,
    /// How often the server acted, by frame and arguments.
    acts: HashMap<(u32, String), u32>,
    /// The final outcome of each task, tracked independently of `DagRun`.
    ended: HashMap<usize, Result<String, ErrorCode>>,
    tries: HashMap<usize, u32>,
    /// The tasks of the latest plan.
    tasks: Vec<DagTask>,
    grace: bool,
    over: Option<RunEnding>,
    kills: u32,
    parks: u32,
    replans: u32,
    /// The number of programs that ended during replay.
    ended_early: u32,
    issued: u32,
}

impl World {
    fn new(plan: Arc<Plan>, seed: u64) -> World {
        let history = History::default();
        let tasks = plan.dag().unwrap().tasks.clone();
        let mut world = World {
            run: RunCore::new(run::core_setup(&plan).0, run::core_setup(&plan).1, plan.start),
            dag: DagRun::new(&plan, plan.dag().unwrap(), &history),
            plan,
            dice: Dice(seed),
            now: 1_000,
            pending: VecDeque::new(),
            programs: BTreeMap::new(),
            with_server: BTreeMap::new(),
            promised: Vec::new(),
            timers: BTreeSet::new(),
            journal: Vec::new(),
            durable: 0,
            acts: HashMap::new(),
            ended: HashMap::new(),
            tries: HashMap::new(),
            tasks,
            grace: false,
            over: None,
            kills: 0,
            parks: 0,
            replans: 0,
            ended_early: 0,
            issued: 0,
        };
        world.begin(history);
        world
    }

    /// Starts as a driver does.
    fn begin(&mut self, history: History) {
        self.run =
            RunCore::new(run::core_setup(&self.plan).0, run::core_setup(&self.plan).1, self.plan.start);
        self.dag = DagRun::new(&self.plan, self.plan.dag().unwrap(), &history);
        self.dag.begin();
        for action in self.run.restore(history.grants, history.calls, history.deliveries) {
            let Action::Deliver { at, what } = action else { unreachable!("replay delivers") };
            self.dag.deliver(at, &what);
            self.listen();
        }
        self.listen();
    }

    fn listen(&mut self) {
        while !self.dag.stopped
            && let Some(task) = self.dag.programs.next_queued()
        {
            let TaskWork::Code(code) = &self.dag.tasks[task].work else { unreachable!("only programs do") };
            let words: Vec<&str> = code.source.split(' ').collect();
            let script = Script {
                calls: words[0].parse().unwrap(),
                handle: words[1].parse().unwrap(),
                sleeps: words[2] == "true",
                leaves: words[3] == "true",
            };
            let deliveries = self.dag.programs.get_mut(task).unwrap().attach();
            self.programs.insert(task, Program::begin(script, deliveries));
        }
        self.pending.extend(self.dag.take_events());
    }

    fn on(&mut self, event: RunEvent<RunEnding>) {
        self.ended_early += u32::from(matches!(event, RunEvent::FrameOver(_)) && self.run.is_replaying());
        for action in self.run.on(event, self.now) {
            self.act(action);
        }
    }

    fn record(&mut self, record: &JournalRecord) {
        self.journal.push(record.entry(self.now));
    }

    fn act(&mut self, action: Action<RunEnding>) {
        match action {
            Action::Record(record) => {
                if let JournalRecord::Issued { issued, .. } = &record {
                    self.issued += 1;
                    assert_eq!(issued.call, self.issued, "calls are recorded in their order");
                }
                if let (JournalRecord::Delivered { at, what }, true) = (&record, self.grace) {
                    self.dag.deliver(*at, what);
                }
                self.record(&record);
            }
            Action::Promise { call } => {
                self.record(&JournalRecord::Sending { call, at: self.now });
                self.promised.push((call, self.journal.len()));
            }
            Action::Send(issued) => self.send(issued),
            Action::Deliver { at, what } => {
                self.note(&what);
                self.dag.deliver(at, &what);
                if let RunDelivery::Frame { frame, .. } = what {
                    self.programs.remove(&task_of(frame).unwrap());
                }
                self.listen();
            }
            Action::Cancel { call } => drop(self.with_server.remove(&call)),
            Action::Wake { timer, at } => drop(self.timers.insert((at, timer))),
            Action::Ask { call } => match self.dice.roll(3) {
                0 => {
                    let error = CallFailure::denied("s:ask", None);
                    self.pending.push_front(RunEvent::Answered(RunDelivery::Error { call, error }));
                }
                1 => self.pending.push_front(RunEvent::Granted(grant(call))),
                _ => self.pending.push_back(RunEvent::Undecided),
            },
            Action::Park { wake_at, asking, .. } => self.park(wake_at, &asking),
            Action::Kill => self.dag.stop(),
            Action::Grace => self.grace = true,
            Action::Finish(over) => self.over = Some(over.ending),
            Action::Diverged(divergence) => panic!("it does not do what was recorded: {divergence}"),
        }
    }

    /// Sends a call, and checks that it is its task's turn and that its arguments are the results of its dependencies.
    fn send(&mut self, issued: IssuedCall) {
        let task = task_of(issued.frame).unwrap();
        for before in self.tasks[task].after.clone() {
            let safe = self.tasks[before].safe_to_fail;
            match self.ended.get(&before) {
                Some(Ok(_)) => {}
                Some(Err(_)) if safe => {}
                other => panic!("t{task} runs though t{before} has come to {other:?}"),
            }
            if let TaskWork::Tool { .. } = self.tasks[task].work {
                let given: Value = serde_json::from_str(&issued.arguments).unwrap();
                let seen = &given[format!("t{before}")];
                match &self.ended[&before] {
                    Ok(value) => assert_eq!(seen.to_string(), *value, "t{task} is given what t{before} gave"),
                    Err(code) => assert_eq!(seen["error"]["code"], code.as_str()),
                }
            }
        }
        let acted = self.acts.get(&(issued.frame, issued.arguments.to_string())).copied().unwrap_or(0);
        let (_, place) = (issued.call, self.dag.numbers.places[&issued.call]);
        if let TaskWork::Tool { .. } = self.tasks[task].work {
            let tries = self.tries.entry(task).or_default();
            *tries = (*tries).max(place.1);
            assert!(*tries <= self.tasks[task].retries + 1, "t{task} is tried too often");
        }
        if issued.handle != READ {
            assert_eq!(acted, 0, "what changes something is sent once: {issued:?}");
        }
        self.with_server.insert(issued.call, Sent { issued, acted: false });
    }

    fn note(&mut self, what: &RunDelivery) {
        let ended = match what {
            RunDelivery::Result { call, value, .. } => Some((*call, Ok(value.get().to_owned()))),
            RunDelivery::Error { call, error } => Some((*call, Err(error.code))),
            RunDelivery::Frame { frame, value, error, .. } => {
                let end = match (value, error) {
                    (Some(value), _) => Ok(value.get().to_owned()),
                    (None, error) => Err(error.as_ref().unwrap().code),
                };
                self.ended.insert(task_of(*frame).unwrap(), end);
                None
            }
            RunDelivery::Timer { .. } | RunDelivery::Layer { .. } | RunDelivery::Pause => None,
        };
        if let Some((call, end)) = ended {
            let task = task_of(self.dag.numbers.places[&call].0).unwrap();
            if let TaskWork::Tool { .. } = self.tasks[task].work {
                self.ended.insert(task, end);
            }
        }
    }

    /// Lets one of all possible events happen.
    fn step(&mut self, may_stop: bool) {
        self.now += 1;
        if let Some(event) = self.pending.pop_front() {
            self.on(event);
            return;
        }
        match self.dice.roll(if may_stop { 400 } else { 390 }) {
            0..=4 => return self.kill(),
            390.. if !self.grace => {
                let stop = [RunEnding::Cancelled, RunEnding::Aborted(None)][self.dice.roll(2)].clone();
                return self.on(RunEvent::Stop(stop));
            }
            _ => {}
        }
        let talking: Vec<usize> = self.programs.keys().copied().collect();
        for _ in 0..4 {
            let (kind, which) = (self.dice.roll(6), self.dice.roll(1_000));
            match kind {
                0 if !self.promised.is_empty() => {
                    let (call, on_disk) = self.promised.remove(which % self.promised.len());
                    self.durable = self.durable.max(on_disk);
                    return self.on(RunEvent::Stored { call });
                }
                1 | 2 if !self.with_server.is_empty() => {
                    let call = *self.with_server.keys().nth(which % self.with_server.len()).unwrap();
                    return self.serve(call);
                }
                3 if !talking.is_empty() => {
                    let task = talking[which % talking.len()];
                    if let Some(seen) = self.programs.get_mut(&task).and_then(Program::say) {
                        self.dag.on_frame_message(task, FrameMessage::Event(seen));
                        return self.listen();
                    }
                }
                4 if !self.timers.is_empty() => {
                    let (at, timer) = self.timers.pop_first().unwrap();
                    self.now = self.now.max(at);
                    return self.on(RunEvent::TimerDue { timer });
                }
                5 => self.durable = self.journal.len(),
                _ => {}
            }
        }
        if self.grace && self.with_server.is_empty() && self.over.is_none() {
            self.on(RunEvent::GraceOver);
        }
    }

    /// The server acts, or answers.
    fn serve(&mut self, call: u32) {
        let luck = self.dice.roll(12);
        let sent = self.with_server.get_mut(&call).unwrap();
        if !sent.acted && luck > 1 {
            sent.acted = true;
            let what = (sent.issued.frame, sent.issued.arguments.to_string());
            let acts = self.acts.entry(what).or_default();
            *acts += 1;
            assert!(*acts == 1 || sent.issued.handle == READ, "it acts once: {:?}", sent.issued);
            return;
        }
        let sent = self.with_server.remove(&call).unwrap();
        let error =
            |code: ErrorCode| RunDelivery::Error { call, error: CallFailure::new(code, "no".to_owned()) };
        let what = match luck {
            0 => error(ErrorCode::ToolError),
            1 => error(ErrorCode::ServerDown),
            _ => result(call, &sent.issued),
        };
        // A call that had no effect may be retried.
        self.on(RunEvent::Answered(what));
    }

    /// Kills the process; another one resumes the run from what was on disk.
    fn kill(&mut self) {
        self.kills += 1;
        self.is_rebuilt_the_same();
        let kept = self.durable + self.dice.roll(self.journal.len() - self.durable + 1);
        self.journal.truncate(kept);
        for (_, mut sent) in std::mem::take(&mut self.with_server) {
            // A call at the server may still take effect.
            if !sent.acted && self.dice.roll(2) == 0 {
                sent.acted = true;
                *self.acts.entry((sent.issued.frame, sent.issued.arguments.to_string())).or_default() += 1;
            }
        }
        self.take_up();
    }

    /// Checks that a state rebuilt from the complete journal equals this one.
    fn is_rebuilt_the_same(&self) {
        let history = History::read(self.journal.clone()).unwrap();
        let again = DagRun::restore(&self.plan, &history).unwrap();
        assert_eq!(state(&again), state(&self.dag));
    }

    fn take_up(&mut self) {
        self.grace = false;
        self.pending.clear();
        self.programs.clear();
        self.promised.clear();
        self.timers.clear();
        self.durable = self.journal.len();
        let mut history = History::read(self.journal.clone()).unwrap();
        let said: Vec<ResolvedDoubt> = history
            .calls_in_doubt()
            .into_iter()
            .map(|doubt| {
                let frame = history.calls[doubt.call as usize - 1].frame;
                let acted = self.acts.contains_key(&(frame, doubt.arguments.clone()));
                let verdict = match (acted, self.dice.roll(2)) {
                    (true, _) => DoubtVerdict::Done { result: format!("\"r{}\"", doubt.call) },
                    (false, 0) => DoubtVerdict::Again,
                    (false, _) => DoubtVerdict::Failed,
                };
                ResolvedDoubt { call: doubt.call, verdict }
            })
            .collect();
        for record in history.resolve(&said, self.now).unwrap() {
            self.record(&record);
        }
        history = History::read(self.journal.clone()).unwrap();
        self.issued = u32::try_from(history.calls.len()).unwrap();
        // What only the ended process knew is lost.
        self.ended.clear();
        self.tasks = self.plan.dag().unwrap().tasks.clone();
        self.dag = DagRun::new(&self.plan, self.plan.dag().unwrap(), &history);
        for (_, what) in &history.deliveries {
            if let RunDelivery::Layer { replan: Some(replan), .. } = what {
                self.tasks.clone_from(&replan.tasks);
            }
        }
        for (_, what) in &history.deliveries {
            self.note(what);
        }
        self.durable = self.journal.len();
        self.begin(history);
    }

    /// Parks the run: people answer, and it is resumed.
    fn park(&mut self, wake_at: Option<i64>, asking: &[u32]) {
        self.parks += 1;
        self.is_rebuilt_the_same();
        assert!(self.with_server.is_empty(), "nothing is put aside while calls are under way");
        assert!(
            wake_at.is_none() || self.dag.paused_layer().is_none(),
            "what a program left behind wakes nobody"
        );
        if let Some(at) = wake_at {
            self.now = self.now.max(at);
        }
        for call in asking {
            match self.dice.roll(2) {
                0 => self.record(&JournalRecord::Granted { grant: grant(*call), at: self.now }),
                _ => {
                    let error = CallFailure::denied("s:ask", None);
                    let what = RunDelivery::Error { call: *call, error };
                    self.record(&JournalRecord::Delivered { at: self.now, what });
                }
            }
        }
        if asking.is_empty() && self.dag.paused_layer().is_some() {
            let replan = (self.replans < 3 && self.dice.roll(3) == 0).then(|| Box::new(self.replanned()));
            let what = RunDelivery::Layer { layer: 0, replan };
            self.record(&JournalRecord::Delivered { at: self.now, what });
        }
        self.take_up();
    }

    /// A replan: finished tasks stay, the rest is dropped, and a few new ones come.
    fn replanned(&mut self) -> Replan {
        self.replans += 1;
        let history = History::read(self.journal.clone()).unwrap();
        let standing = DagRun::restore(&self.plan, &history).unwrap().into_tasks();
        let mut tasks = standing.tasks;
        let mut usable = Vec::new();
        for (place, task) in tasks.iter_mut().enumerate() {
            if standing.has_run[place] {
                task.safe_to_fail |= standing.failed[place];
                usable.push(place);
            } else {
                task.dropped = true;
                task.after.clear();
            }
        }
        for _ in 0..1 + self.dice.roll(8) {
            let place = tasks.len();
            let after: BTreeSet<usize> = (0..self.dice.roll(3))
                .filter_map(|_| usable.get(self.dice.roll(usable.len())).copied())
                .collect();
            let work =
                [Ok(READ), Ok(WRITE), Err(Script { calls: 1, handle: WRITE, sleeps: false, leaves: true })]
                    [self.dice.roll(3)];
            let shape = Shape { after: after.into_iter().collect(), safe_to_fail: false, retries: 1, work };
            tasks.push(task(place, &shape));
            usable.push(place);
        }
        Replan { tasks, tools: standing.tools, nested: Vec::new(), code_hash: None, by: None }
    }
}

fn result(call: u32, issued: &IssuedCall) -> RunDelivery {
    // Each call has a distinct result, so that none can be confused with another.
    let value = format!("\"r{call} of {}\"", issued.frame);
    RunDelivery::Result {
        call,
        value: json(value),
        parts: Vec::new(),
        saved_ms: None,
        age_ms: None,
        not_ahead: None,
    }
}

fn grant(call: u32) -> Grant {
    Grant {
        tool: "s:ask".to_owned(),
        definition: Digest::of(b"d"),
        defined_at: None,
        arguments: None,
        call: Some(call),
        calls: 1,
        expires_at: i64::MAX,
        by: "test".to_owned(),
    }
}

/// All state that decides how the run continues.
fn state(dag: &DagRun) -> String {
    let results: BTreeMap<&String, &str> = dag.results.iter().map(|(id, value)| (id, value.get())).collect();
    let mut frames: Vec<(usize, u32)> =
        dag.programs.iter().map(|(task, frame)| (task, frame.clock.delivered())).collect();
    frames.sort_unstable();
    let ends: Vec<Option<TaskEnd>> = (0..dag.tasks.len()).map(|task| dag.schedule.end_of(task)).collect();
    let stood: Vec<String> = dag.progress.iter().map(|stood| format!("{stood:?}")).collect();
    format!(
        "{ends:?}\n{:?}\n{results:?}\n{frames:?}\n{stood:?}\n{} {} {:?} {:?}",
        dag.schedule, dag.taken, dag.now, dag.ended_since_pause, dag.paused
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_every_task_runs_in_its_turn_and_all_ends(
        shapes in shapes(200),
        pause in 0..3_usize,
        seed in any::<u64>(),
        may_stop in prop::bool::weighted(0.3),
    ) {
        let pause = [Pause::None, Pause::PerLayer, Pause::OnError][pause];
        let tasks: Vec<DagTask> = shapes.iter().enumerate().map(|(place, shape)| task(place, shape)).collect();
        let mut world = World::new(plan(tasks, pause, 1_000), seed);
        let mut steps = 0;
        while world.over.is_none() {
            world.step(may_stop);
            steps += 1;
            prop_assert!(steps < 400_000, "it does not end: {}", state(&world.dag));
        }
        let stopped = matches!(world.over, Some(RunEnding::Cancelled | RunEnding::Aborted(_)));
        let open = (0..world.dag.tasks.len()).filter(|task| world.dag.schedule.end_of(*task).is_none()).count();
        prop_assert!(stopped || open == 0, "{open} tasks have no end");
        prop_assert!(world.issued <= 1_000);
    }
}

#[test]
fn what_can_happen_happens() {
    let mut seen = [0; 4];
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let shape = |place: usize, dice: &mut Dice| Shape {
            after: (0..dice.roll(3))
                .filter(|_| place > 0)
                .map(|_| dice.roll(place))
                .collect::<BTreeSet<_>>()
                .into_iter()
                .collect(),
            safe_to_fail: dice.roll(2) == 0,
            retries: 1,
            work: match dice.roll(5) {
                0 => Ok(READ),
                1 => Ok(WRITE),
                2 => Ok(ASK),
                _ => Err(Script {
                    calls: 2,
                    handle: WRITE,
                    sleeps: dice.roll(2) == 0,
                    leaves: dice.roll(2) == 0,
                }),
            },
        };
        let tasks = (0..30).map(|place| task(place, &shape(place, &mut dice))).collect();
        let pause = [Pause::None, Pause::PerLayer, Pause::OnError][dice.roll(3)];
        let mut world = World::new(plan(tasks, pause, 1_000), seed);
        while world.over.is_none() {
            world.step(false);
        }
        let counts = [world.kills, world.parks, world.replans, world.ended_early];
        seen.iter_mut().zip(counts).for_each(|(all, count)| *all += count);
    }
    assert!(seen.iter().all(|times| *times > 20), "kills, waits, plans, early ends: {seen:?}");
}

#[test]
fn all_tasks_together_make_no_more_calls_than_a_run_may() {
    let script = Script { calls: 3, handle: READ, sleeps: false, leaves: false };
    let shape = |work| Shape { after: Vec::new(), safe_to_fail: true, retries: 0, work };
    let tasks: Vec<DagTask> = (0..8)
        .map(|place| task(place, &shape(if place % 2 == 0 { Err(script) } else { Ok(READ) })))
        .collect();
    let mut limited = 0;
    for seed in 0..50 {
        let mut world = World::new(plan(tasks.clone(), Pause::None, 10), seed);
        while world.over.is_none() {
            world.step(false);
        }
        assert!(world.issued <= 10);
        let refused = |stood: &&TaskProgress| {
            stood.error.as_ref().is_some_and(|error| error.code == ErrorCode::ToolCallLimit)
        };
        limited += world.dag.progress.iter().filter(refused).count();
    }
    assert!(limited > 50, "{limited}");
}
