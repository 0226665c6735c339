//! A home with a passphrase, questions that wait in it, and a `pml serve` that shows them.

use std::sync::mpsc::channel;
use std::time::{SystemTime, UNIX_EPOCH};

use pml::config::Paths;
use pml_model::question::{Answer, Answerer, ApprovalArguments, ApprovalQuestion, CallToApprove, Question};
use pml_model::{Digest, Principal, RunId, RunState};
use pml_store::{BlockingStore, NewRun, ProcessIdentity, RunChange, RunKind, Urgency};

use serde_json::json;

use crate::harness::{Home, Served};

pub const PASSPHRASE: &str = "correct horse battery";

/// A home whose questions are put before its `pml serve` starts.
pub struct Place {
    pub home: Home,
}

impl Place {
    /// With a passphrase.
    pub fn new() -> Place {
        let place = Place::without_passphrase();
        place.set_passphrase(PASSPHRASE);
        place
    }

    pub fn set_passphrase(&self, passphrase: &str) {
        let paths = Paths { config: self.home.path("pml.toml"), data: self.home.path("") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(pml::passphrase::set(&paths, passphrase)).unwrap();
    }

    pub fn without_passphrase() -> Place {
        Place { home: Home::new("[approvals]\nby = \"human\"\n") }
    }

    pub fn serve(&self) -> Served {
        self.home.serve(&[])
    }

    /// Has a run of its own ask `question`, and gives the run and the name of the question.
    pub fn ask(&self, intent: &str, question: Question) -> (RunId, String) {
        self.ask_as(&Principal::local(), intent, question)
    }

    /// The same for somebody.
    pub fn ask_as(&self, whose: &Principal, intent: &str, question: Question) -> (RunId, String) {
        let store = self.store();
        let mut random = [0; 16];
        getrandom::fill(&mut random).unwrap();
        let (id, now) = (RunId::new(u128::from_be_bytes(random)), now());
        let run = NewRun {
            id: id.clone(),
            principal: whose.clone(),
            session: "claude-code".to_owned(),
            kind: RunKind::Code,
            intent: intent.to_owned(),
            code_hash: "hash".to_owned(),
            capability: None,
            client_key: None,
            key_runs_at_once: None,
            plan: b"{}".to_vec(),
            expires_at: Some(now + 24 * 3600 * 1000),
            idempotency: None,
            request_mark: None,
            owner: ProcessIdentity::current().unwrap(),
            lease_until: now + 60_000,
            audit: Vec::new(),
            now,
        };
        let (told, hears) = channel();
        let tell = told.clone();
        let lease = store.create_run(run, Urgency::Durable, move |done| tell.send(done).unwrap()).unwrap();
        hears.recv().unwrap().unwrap();
        let name = format!("q_{}", &id.as_str()[4..12]);
        let change = RunChange {
            state: Some(RunState::Waiting),
            question: Some(Some((name.clone(), question))),
            release: true,
            at: now,
            ..RunChange::default()
        };
        store.append_journal(&lease, Vec::new(), Some(change), Urgency::Durable, move |done| {
            told.send(done).unwrap();
        });
        hears.recv().unwrap().unwrap();
        (id, name)
    }

    /// A real run that an agent asks for and that waits for a person before it writes `file`.
    pub fn wants_to_write(&self, file: &str) -> RunId {
        let code = format!("await mcp.fs.write({{ path: {file:?}, content: 'hello' }}); return 'saved'");
        let implementation = json!({"type": "code", "code": code});
        let mut agent = self.home.stdio(&[]);
        let told =
            agent.call("pml_execute", &json!({"intent": "save the notes", "implementation": implementation}));
        let told = &told["structuredContent"];
        assert_eq!(told["status"], "approval_required", "{told}");
        RunId::parse(told["workflowId"].as_str().unwrap()).unwrap()
    }

    /// What has been said to a run.
    pub fn answers(&self, run: &RunId) -> Vec<Answer> {
        let recorded = self.store().load_run(&Principal::local(), run).unwrap();
        recorded.answers.into_iter().map(|stored| stored.answer).collect()
    }

    pub fn store(&self) -> BlockingStore {
        BlockingStore::open(&self.home.path("pml.db")).unwrap()
    }
}

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// A call of `tool` with these arguments.
pub fn call(tool: &str, json: &str) -> CallToApprove {
    CallToApprove {
        tool: tool.to_owned(),
        definition: Digest::of(b"definition"),
        description: String::new(),
        scope: "filesystem".to_owned(),
        because: "nobody has said that it only reads".to_owned(),
        call: None,
        node: Some("n3".to_owned()),
        line: Some(4),
        code: Some("await mcp.fs.write({ path, content: text });".to_owned()),
        arguments: ApprovalArguments::Known { json: json.to_owned(), digest: Digest::of(json.as_bytes()) },
        repeats: false,
        origins: Vec::new(),
        differs: Vec::new(),
    }
}

/// A question on `calls`.
pub fn approval(calls: Vec<CallToApprove>) -> Question {
    Question::Approval(ApprovalQuestion {
        intent: "ignored: the run has one".to_owned(),
        code_hash: "hash".to_owned(),
        by: Answerer::Human,
        begun: false,
        calls,
        opaque: Vec::new(),
    })
}
