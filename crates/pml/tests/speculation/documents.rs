//! Generated documents. What they return does not depend on which of their tasks ends first: whatever may change something
//! waits for all tasks before it, and all tasks after it wait for that.

use serde_json::{Value, json};

use crate::dice::Dice;

/// A generated document.
pub struct Document {
    pub tasks: Value,
    /// Whether the run waits after each layer.
    pub paused: bool,
}

impl Document {
    /// Whether its calls are issued in the same order each time: those of a layer are, if each of its tasks is one call and
    /// the layer begins as a whole.
    pub fn is_in_order(&self) -> bool {
        let tasks = self.tasks.as_array().expect("a document has tasks");
        self.paused && tasks.iter().all(|task| task.get("tool").is_some())
    }
}

pub fn document(dice: &mut Dice) -> Document {
    let mut writer = DocumentWriter {
        dice,
        tasks: Vec::new(),
        results: Vec::new(),
        barrier: None,
        since_barrier: Vec::new(),
        has_failure: false,
    };
    for _ in 0..1 + writer.dice.roll(3) {
        for _ in 0..1 + writer.dice.roll(5) {
            writer.reading_task();
        }
        if writer.dice.roll(2) == 0 {
            writer.writing_task();
        }
    }
    writer.reading_task();
    let tasks = json!(writer.tasks);
    Document { tasks, paused: dice.roll(2) == 0 }
}

struct DocumentWriter<'d> {
    dice: &'d mut Dice,
    tasks: Vec<Value>,
    /// The tasks with a result that has `given.key` and `writes`.
    results: Vec<String>,
    /// The latest task that may change something.
    barrier: Option<String>,
    /// The tasks after it.
    since_barrier: Vec<String>,
    /// Whether the failure of a task ends the run.
    has_failure: bool,
}

impl DocumentWriter<'_> {
    /// A task that only reads. It waits for few of the tasks before it, or for none.
    fn reading_task(&mut self) {
        let id = format!("t{}", self.tasks.len());
        let server = self.server();
        let arguments = json!({ "key": self.key(), "wait": self.dice.roll(4) });
        let (mut work, has_result) = match self.dice.roll(12) {
            0 => (json!({ "code": READS_TWO }), true),
            1 => (json!({ "code": FOLLOWS_A_BRANCH }), true),
            2 => (json!({ "capability": "readsTwo" }), false),
            3 => (json!({ "capability": "decides" }), false),
            4 | 5 => (json!({ "tool": format!("{server}:fail"), "safeToFail": self.is_safe() }), false),
            6 => (json!({ "tool": format!("{server}:web") }), true),
            _ => (json!({ "tool": format!("{server}:read") }), true),
        };
        let mut after: Vec<String> = self.barrier.iter().cloned().collect();
        for earlier in &self.since_barrier {
            if self.dice.roll(4) == 0 {
                after.push(earlier.clone());
            }
        }
        work["arguments"] = match work.get("capability") {
            Some(_) => json!({ "key": arguments["key"] }),
            None => arguments,
        };
        self.add(id, work, &after, has_result);
    }

    /// A task that may change something. It waits for all before it.
    fn writing_task(&mut self) {
        let id = format!("w{}", self.tasks.len());
        let server = self.server();
        let (mut work, has_result) = match self.dice.roll(6) {
            0 => (json!({ "code": WRITES }), true),
            1 => (json!({ "capability": "writesBetween" }), false),
            2 => (json!({ "tool": format!("{server}:look") }), true),
            _ => (json!({ "tool": format!("{server}:write") }), true),
        };
        work["arguments"] = json!({ "key": self.key() });
        let after: Vec<String> = self.barrier.iter().chain(&self.since_barrier).cloned().collect();
        self.since_barrier.clear();
        self.add(id.clone(), work, &after, has_result);
        self.since_barrier.clear();
        self.barrier = Some(id);
    }

    fn add(&mut self, id: String, mut task: Value, after: &[String], has_result: bool) {
        task["id"] = json!(id);
        if !after.is_empty() {
            task["dependsOn"] = json!(after);
        }
        self.tasks.push(task);
        if has_result {
            self.results.push(id.clone());
        }
        self.since_barrier.push(id);
    }

    /// Whether the tasks behind a failure go on. At most one failure ends a run: of two, either might be the first.
    fn is_safe(&mut self) -> bool {
        let is_safe = self.has_failure || self.dice.roll(4) > 0;
        self.has_failure |= !is_safe;
        is_safe
    }

    fn server(&mut self) -> &'static str {
        ["a", "b"][self.dice.roll(2) as usize]
    }

    /// The text of a `key`.
    fn key(&mut self) -> Value {
        let known = match self.results.len() as u64 {
            0 => None,
            known => Some(self.results[self.dice.roll(known) as usize].clone()),
        };
        match (self.dice.roll(5), known) {
            (0, Some(task)) => json!({ "$ref": format!("{task}.given.key") }),
            (1, Some(task)) => json!(format!("w{{{{{task}.writes}}}}")),
            (2, _) => json!({ "$ref": "args.x" }),
            _ => json!(format!("k{}", self.dice.roll(5))),
        }
    }
}

const READS_TWO: &str = "const one = await mcp.a.read({ key: args.key });\n\
    const two = await mcp.b.read({ key: one.given.key, wait: 1 });\n\
    return { given: two.given, writes: one.writes + two.writes };";

const FOLLOWS_A_BRANCH: &str = "const one = await mcp.b.read({ key: args.key });\n\
    if (one.writes % 2 === 0) { return await mcp.a.read({ key: 'even' }); }\n\
    return await mcp.a.web({ key: 'odd' });";

const WRITES: &str = "await mcp.b.write({ key: args.key });\n\
    return await mcp.a.read({ key: `after ${args.key}` });";
