//! The gateway is killed, again and again, at every stage a call can be at. The ledger says what really happened.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::process::Stdio;
use std::time::Duration;

use pml_model::question::{Answer, DoubtVerdict, Question};
use pml_model::{RunId, RunState};
use pml_store::RunRecord;
use serde_json::{Value, json};

use crate::dice::{Dice, number};
use crate::gateway::{Gateway, execution};
use crate::harness::{Home, eventually};
use crate::journal::{self, Journal};
use crate::ledger::{self, Ledger};
use crate::programs::Shape;

/// How many homes are tormented at a time.
const HOMES: u64 = 4;

#[test]
fn whatever_the_moment_of_a_kill_nothing_is_lost_and_nothing_happens_twice() {
    let (kills, seed) = (number("PML_KILLS", 300), number("PML_SEED", 1));
    let homes: Vec<_> = (0..HOMES)
        .map(|home| std::thread::spawn(move || torment(seed + home, kills.div_ceil(HOMES))))
        .collect();
    let mut tally = Tally::default();
    for home in homes {
        tally.take_in(home.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    }
    say(&format!("{kills} kills, {} runs, calls and runs at the moment of a kill:", tally.runs));
    for stage in Stage::ALL {
        let hits = tally.stages.get(&stage).copied().unwrap_or(0);
        say(&format!("{hits:>6} {}", stage.words()));
        // A busy machine moves the moments at which kills strike: one hit shows that the stage is reached.
        assert!(hits >= 1, "no kill hit this stage: {}", stage.words());
    }
    say(&format!("{:>6} questions answered by a person", tally.answered));
}

#[expect(clippy::print_stderr, reason = "how far the test reached is its result")]
fn say(text: &str) {
    eprintln!("{text}");
}

#[derive(Debug, Default)]
struct Tally {
    stages: BTreeMap<Stage, usize>,
    runs: usize,
    answered: usize,
}

impl Tally {
    fn take_in(&mut self, other: Tally) {
        self.runs += other.runs;
        self.answered += other.answered;
        for (stage, hits) in other.stages {
            *self.stages.entry(stage).or_default() += hits;
        }
    }
}

/// Where a call of `add`, or a run without one, stood when the gateway was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Issued,
    Promised,
    Sent,
    Answered,
    Recorded,
    Idle,
}

impl Stage {
    const ALL: [Stage; 6] =
        [Stage::Issued, Stage::Promised, Stage::Sent, Stage::Answered, Stage::Recorded, Stage::Idle];

    fn words(self) -> &'static str {
        match self {
            Stage::Issued => "asked for, not promised",
            Stage::Promised => "promised, not with the server",
            Stage::Sent => "with the server, not answered",
            Stage::Answered => "answered, not recorded",
            Stage::Recorded => "all calls recorded, the run not over",
            Stage::Idle => "no run under way",
        }
    }
}

/// A run somebody wants.
struct Request {
    name: String,
    shape: Shape,
    n: u64,
    params: Value,
    /// Sent again until it is heard of.
    keyed: bool,
    /// The last that was heard of it.
    reply: Option<Value>,
}

/// One home through many lives of its gateway.
struct World {
    seed: u64,
    home: Home,
    dice: Dice,
    requests: Vec<Request>,
    /// How often a person said of an id that it is to be added again.
    again: HashMap<String, usize>,
    /// The questions of runs that wait for a word, and how long the journal was when they were asked.
    still: HashMap<String, usize>,
    tally: Tally,
}

fn torment(seed: u64, kills: u64) -> Tally {
    let settings = "[limits]\nconcurrent_per_server = 3\n";
    let mut world = World {
        seed,
        home: ledger::home(settings),
        dice: Dice(seed),
        requests: Vec::new(),
        again: HashMap::new(),
        still: HashMap::new(),
        tally: Tally::default(),
    };
    for _ in 0..kills {
        world.live_and_die();
    }
    world.come_to_an_end();
    world.tally
}

impl World {
    /// Starts a gateway, gives it work, kills it, and looks at what is left.
    fn live_and_die(&mut self) {
        let slow = self.dice.roll(4) == 0;
        match slow {
            true => std::fs::write(self.home.path("slow-start"), self.dice.roll(150).to_string()).unwrap(),
            false => drop(std::fs::remove_file(self.home.path("slow-start"))),
        }
        if self.dice.roll(3) == 0 {
            self.a_person_answers();
        }
        let mut gateway = Gateway::start(self.home.command(&["stdio"]));
        let mut sent = self.ask_again(&mut gateway);
        for _ in 0..self.dice.roll(4) {
            sent.insert(self.ask_anew(&mut gateway), self.requests.len() - 1);
        }
        self.wait_for_the_moment(&mut gateway, &sent);
        let answers = gateway.kill();
        drop(std::fs::remove_file(self.home.path("aim")));
        for (request, index) in sent {
            if let Some(answer) = answers.get(&request) {
                self.requests[index].reply = Some(answer["result"]["structuredContent"].clone());
            }
        }
        self.look();
    }

    fn ask_again(&mut self, gateway: &mut Gateway) -> HashMap<u64, usize> {
        let unheard = |(_, request): &(usize, &Request)| request.keyed && request.reply.is_none();
        let unheard = self.requests.iter().enumerate().filter(unheard);
        unheard.map(|(index, request)| (gateway.begin("tools/call", &request.params), index)).collect()
    }

    fn ask_anew(&mut self, gateway: &mut Gateway) -> u64 {
        let name = format!("r{}", self.requests.len());
        let shapes = [Shape::OneByOne, Shape::AtOnce, Shape::Deciding, Shape::Pausing];
        let shape = shapes[self.dice.roll(4) as usize];
        let n = 1 + self.dice.roll(6);
        let arguments =
            json!({ "p": name, "n": n, "before": self.dice.roll(30), "after": self.dice.roll(30) });
        let options = json!({ "detach": self.dice.roll(3) == 0 });
        let mut params = execution(&name, shape.code(), &arguments, &options);
        let keyed = self.dice.roll(2) == 0;
        if keyed {
            params["_meta"] = json!({ "pml/idempotencyKey": name });
        }
        let request = gateway.begin("tools/call", &params);
        self.requests.push(Request { name, shape, n, params, keyed, reply: None });
        request
    }

    /// The moment of the kill: any, that of a call, or that of a reply.
    fn wait_for_the_moment(&mut self, gateway: &mut Gateway, sent: &HashMap<u64, usize>) {
        let any = Duration::from_millis(self.dice.roll(300));
        match self.dice.roll(8) {
            0..=2 => std::thread::sleep(any),
            aimed @ 3..=5 => {
                let stage = ["got", "done", "answered"][aimed as usize - 3];
                std::thread::sleep(any / 2);
                std::fs::write(self.home.path("aim"), stage).unwrap();
                let until = std::time::Instant::now() + Duration::from_millis(300);
                while !gateway.has_ended() && std::time::Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            6 => {
                if let Some(one) = sent.keys().max() {
                    gateway.wait_until_answered(*one, Duration::from_millis(500));
                }
            }
            _ => {
                for request in sent.keys() {
                    gateway.wait_until_answered(*request, Duration::from_secs(2));
                }
            }
        }
    }

    /// Somebody looks at the ledger and says what became of the calls in doubt, of some or of all runs that ask.
    fn a_person_answers(&mut self) {
        for (id, question) in self.questions() {
            let args = self.verdicts(&question);
            let mut command = self.home.command(&["runs", "resume", id.as_str()]);
            for verdict in &args {
                command.args(["--call", verdict]);
            }
            let mut child =
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            self.tally.answered += 1;
            if self.dice.roll(3) == 0 {
                std::thread::sleep(Duration::from_millis(self.dice.roll(150)));
                child.kill().unwrap();
            }
            child.wait().unwrap();
        }
    }

    fn questions(&self) -> Vec<(RunId, Question)> {
        let journal = Journal::of(&self.home);
        let asking = journal.runs().into_iter().filter(|row| row.question_id.is_some());
        let unanswered = asking.map(|row| journal.load(&row.id)).filter(|run| !is_answered(run));
        unanswered.map(|run| (run.run.id, run.question.unwrap().1)).collect()
    }

    fn verdicts(&mut self, question: &Question) -> Vec<String> {
        let Question::InDoubt { calls, .. } = question else { panic!("no tool here needs a person's word") };
        let added: HashSet<String> = Ledger::of(&self.home).added().into_iter().collect();
        let mut verdicts = Vec::new();
        for doubt in calls {
            let id = id_of(&doubt.arguments);
            let verdict = match (added.contains(&id), self.dice.roll(4)) {
                (true, 1..) => json!({ "id": id }).to_string(),
                (false, 1..) => "again".to_owned(),
                (_, _) => "failed".to_owned(),
            };
            if verdict == "again" {
                *self.again.entry(id).or_default() += 1;
            }
            verdicts.push(format!("{}={verdict}", doubt.call));
        }
        verdicts
    }

    /// What must be true whenever nobody is at work.
    fn look(&mut self) {
        let journal = Journal::of(&self.home);
        let runs: HashMap<String, RunRecord> =
            journal.runs().into_iter().map(|row| (row.intent.clone(), journal.load(&row.id))).collect();
        let ledger = Ledger::of(&self.home);
        self.nothing_happened_twice(&ledger);
        self.nothing_happened_unpromised(&ledger, &runs);
        self.nothing_heard_is_lost(&ledger, &runs);
        self.what_waits_stays(&runs);
        self.count(&ledger, &runs);
    }

    fn nothing_happened_twice(&self, ledger: &Ledger) {
        let mut counts: HashMap<String, usize> = HashMap::new();
        for id in ledger.added() {
            *counts.entry(id).or_default() += 1;
        }
        for (id, count) in counts {
            let allowed = 1 + self.again.get(&id).copied().unwrap_or(0);
            assert!(count <= allowed, "seed {}: `{id}` was added {count} times, not {allowed}", self.seed);
        }
    }

    /// What is in the ledger was in the journal first.
    fn nothing_happened_unpromised(&self, ledger: &Ledger, runs: &HashMap<String, RunRecord>) {
        let got: HashSet<String> = ledger.ids("got").into_iter().collect();
        let promised: HashSet<String> = runs
            .values()
            .flat_map(journal::calls)
            .filter(|call| call.tool == "ledger:add" && call.ever_promised)
            .map(|call| id_of(&call.arguments))
            .collect();
        for id in got {
            assert!(promised.contains(&id), "seed {}: `{id}` was sent and no journal says so", self.seed);
        }
    }

    fn nothing_heard_is_lost(&self, ledger: &Ledger, runs: &HashMap<String, RunRecord>) {
        let added: HashSet<String> = ledger.added().into_iter().collect();
        for request in &self.requests {
            let Some(reply) = &request.reply else { continue };
            let name = &request.name;
            let run = runs.get(name);
            let run = run.unwrap_or_else(|| panic!("seed {}: `{name}` is lost after {reply}", self.seed));
            assert_eq!(json!(run.run.id), reply["workflowId"], "seed {}: {name}", self.seed);
            if reply["status"] != "success" {
                continue;
            }
            assert_eq!(run.run.state, RunState::Done, "seed {}: {name}", self.seed);
            assert_eq!(outcome(run)["result"], reply["result"], "seed {}: {name}", self.seed);
            for id in texts(&reply["result"]).iter().filter(|text| !text.starts_with("failed")) {
                assert!(added.contains(id), "seed {}: `{id}` was told and never happened", self.seed);
            }
        }
    }

    /// A run with a call in doubt asks about it, and does nothing until it is answered.
    fn what_waits_stays(&mut self, runs: &HashMap<String, RunRecord>) {
        for run in runs.values() {
            let doubtful: Vec<(u32, String, String)> = journal::calls(run)
                .into_iter()
                .filter(|call| call.promised && !call.ended)
                .map(|call| (call.number, call.tool, call.arguments))
                .collect();
            if run.run.state != RunState::Waiting {
                continue;
            }
            let Some((question, Question::InDoubt { calls, .. })) = &run.question else {
                panic!("seed {}: `{}` waits for nothing", self.seed, run.run.intent);
            };
            let asked: Vec<(u32, String, String)> =
                calls.iter().map(|doubt| (doubt.call, doubt.tool.clone(), doubt.arguments.clone())).collect();
            assert_eq!(asked, doubtful, "seed {}: {}", self.seed, run.run.intent);
            let before = *self.still.entry(question.clone()).or_insert(run.entries.len());
            if !is_answered(run) {
                assert_eq!(run.entries.len(), before, "seed {}: `{}` went on", self.seed, run.run.intent);
            }
        }
    }

    fn count(&mut self, ledger: &Ledger, runs: &HashMap<String, RunRecord>) {
        let [got, answered] =
            ["got", "answered"].map(|event| HashSet::<String>::from_iter(ledger.ids(event)));
        let under_way: Vec<&RunRecord> =
            runs.values().filter(|run| run.run.state == RunState::Running).collect();
        if under_way.is_empty() {
            *self.tally.stages.entry(Stage::Idle).or_default() += 1;
        }
        for run in under_way {
            let pending: Vec<journal::Call> =
                journal::calls(run).into_iter().filter(|call| !call.ended).collect();
            if pending.is_empty() {
                *self.tally.stages.entry(Stage::Recorded).or_default() += 1;
            }
            for call in pending.iter().filter(|call| call.tool == "ledger:add") {
                let id = id_of(&call.arguments);
                let stage = match call.promised {
                    false => Stage::Issued,
                    true if answered.contains(&id) => Stage::Answered,
                    true if got.contains(&id) => Stage::Sent,
                    true => Stage::Promised,
                };
                *self.tally.stages.entry(stage).or_default() += 1;
            }
        }
    }

    /// One more life, without a kill: every question is answered, and every run comes to the end it should have.
    fn come_to_an_end(&mut self) {
        drop(std::fs::remove_file(self.home.path("slow-start")));
        let mut gateway = Gateway::start(self.home.command(&["stdio"]));
        // A request that is asked again may begin its run only now, and one that is detached does not wait for it: the
        // list has all runs only after every request is answered.
        for (request, index) in self.ask_again(&mut gateway) {
            self.requests[index].reply = Some(gateway.outcome(request));
        }
        eventually("every run comes to its end", || {
            // All states in one look: between two a run can go from one to the other and be in neither.
            let list = self.home.run(&["runs", "list", "--json", "--limit", "1000"]);
            let rows: Vec<Value> =
                serde_json::from_str(&list.stdout).unwrap_or_else(|error| panic!("{error}: {list:?}"));
            for row in rows.iter().filter(|row| row["state"] == "waiting") {
                self.answer_at_the_terminal(row["workflowId"].as_str().unwrap());
            }
            rows.iter()
                .all(|row| !["running", "interrupted", "waiting"].iter().any(|open| row["state"] == *open))
        });
        gateway.hang_up();
        assert_eq!(gateway.ends_within(Duration::from_secs(10)), 0);
        self.look();
        let doctor = self.home.run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{doctor:?}");
        self.every_run_did_what_it_says();
    }

    /// The question as the terminal shows it, and an answer to it.
    fn answer_at_the_terminal(&mut self, id: &str) {
        let shown = self.home.run(&["runs", "resume", id, "--json"]);
        // Somebody else may have taken it up meanwhile, or a person have answered in an earlier life.
        let Ok(shown) = serde_json::from_str::<Value>(&shown.stdout) else { return };
        if shown["status"] != "approval_required" {
            return;
        }
        let question: Question = serde_json::from_value(shown["question"].clone()).unwrap();
        let verdicts = self.verdicts(&question);
        let args: Vec<&str> = verdicts.iter().flat_map(|verdict| ["--call", verdict]).collect();
        let resumed = self.home.run(&[&["runs", "resume", id, "--json"], &args[..]].concat());
        let report: Value = serde_json::from_str(&resumed.stdout).unwrap_or_else(|_| panic!("{resumed:?}"));
        assert!(report["state"] == "done" || report["state"] == "failed", "{resumed:?}");
        self.tally.answered += 1;
    }

    fn every_run_did_what_it_says(&mut self) {
        let journal = Journal::of(&self.home);
        let runs: HashMap<String, RunRecord> =
            journal.runs().into_iter().map(|row| (row.intent.clone(), journal.load(&row.id))).collect();
        let added: HashSet<String> = Ledger::of(&self.home).added().into_iter().collect();
        self.tally.runs = runs.len();
        for request in &self.requests {
            let Some(run) = runs.get(&request.name) else {
                // Nobody heard of it, so it may be gone; then it has done nothing.
                let mark = format!("{}.", request.name);
                assert!(!added.iter().any(|id| id.starts_with(&mark)), "seed {}: {mark}", self.seed);
                assert!(request.reply.is_none() && !request.keyed);
                continue;
            };
            let failed = failed(run);
            let expected = request.shape.result(&request.name, request.n, &failed);
            let told = outcome(run);
            let place = format!("seed {}: {} {:?}: {told}", self.seed, request.name, request.shape);
            match expected {
                Some(expected) => {
                    assert_eq!(run.run.state, RunState::Done, "{place}");
                    assert_eq!(texts(&told["result"]), expected, "{place}");
                    for id in expected.iter().filter(|id| !id.starts_with("failed")) {
                        assert!(added.contains(id), "{place}: `{id}` never happened");
                    }
                }
                None => {
                    assert_eq!(run.run.state, RunState::Failed, "{place}");
                    assert_eq!(told["error"]["code"], "OUTCOME_UNKNOWN", "{place}");
                }
            }
        }
    }
}

/// What came of a run.
fn outcome(run: &RunRecord) -> Value {
    serde_json::from_slice(run.outcome.as_ref().expect("it has an end")).unwrap()
}

/// The ids of calls that a person gave up.
fn failed(run: &RunRecord) -> HashSet<String> {
    let calls = journal::calls(run);
    let said = run.answers.iter().flat_map(|answer| match &answer.answer {
        Answer::Doubts { calls } => calls.as_slice(),
        Answer::Approval(_) | Answer::Layer(_) => &[],
    });
    said.filter(|said| said.verdict == DoubtVerdict::Failed)
        .map(|said| id_of(&calls[said.call as usize - 1].arguments))
        .collect()
}

fn is_answered(run: &RunRecord) -> bool {
    run.question.as_ref().is_some_and(|(id, _)| run.answers.iter().any(|answer| answer.question_id == *id))
}

fn id_of(arguments: &str) -> String {
    serde_json::from_str::<Value>(arguments).unwrap()["id"].as_str().unwrap().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}
