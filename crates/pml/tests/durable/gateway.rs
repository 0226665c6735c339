//! A `pml stdio` that may end at any moment, and what it answered until then.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{PATIENCE, lives};

/// A running gateway with one client; killed when dropped.
pub struct Gateway {
    pub child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    answers: HashMap<u64, Value>,
    last: u64,
}

impl Gateway {
    /// Starts it and shakes hands, without waiting for the other hand.
    pub fn start(command: Command) -> Gateway {
        Gateway::start_with(command, Stdio::null())
    }

    /// The same, with its log going somewhere.
    pub fn start_with(mut command: Command, log: Stdio) -> Gateway {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut child = loop {
            match command.spawn() {
                // A copy of the program that was just written: another thread's child may hold it open for a moment.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                started => break started.unwrap(),
            }
        };
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // A line that was cut off by a kill is no message.
                let Ok(message) = serde_json::from_str(&line) else { continue };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let mut gateway = Gateway { child, stdin, messages, answers: HashMap::new(), last: 0 };
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
        gateway.begin("initialize", &params);
        gateway.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        gateway
    }

    /// Sends a message; one that is gone hears nothing.
    pub fn send(&mut self, message: &Value) {
        if let Some(stdin) = &mut self.stdin
            && writeln!(stdin, "{message}").is_err()
        {
            self.stdin = None;
        }
    }

    /// Sends a request and gives its number.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        self.last
    }

    /// Asks for a run and gives the number of the request.
    pub fn execute(&mut self, code: &str, arguments: &Value, options: &Value) -> u64 {
        self.begin("tools/call", &execution("a test", code, arguments, options))
    }

    /// The result of a request, when it has come within `patience`.
    pub fn answer(&mut self, request: u64, patience: Duration) -> Option<Value> {
        let until = Instant::now() + patience;
        loop {
            if let Some(answer) = self.answers.remove(&request) {
                return Some(answer);
            }
            match self.messages.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Waits until a request is answered, `patience` at most; the answer stays.
    pub fn wait_until_answered(&mut self, request: u64, patience: Duration) {
        if let Some(answer) = self.answer(request, patience) {
            self.answers.insert(request, answer);
        }
    }

    /// Waits for a notification.
    #[track_caller]
    pub fn wait_for_notification(&mut self, method: &str) -> Value {
        loop {
            let message = self.messages.recv_timeout(PATIENCE).expect("pml says so");
            if message["method"] == method {
                return message;
            }
            self.take(message);
        }
    }

    fn take(&mut self, message: Value) {
        if let (Some(id), None) = (message["id"].as_u64(), message.get("method")) {
            self.answers.insert(id, message);
        }
    }

    /// What a call came to.
    #[track_caller]
    #[expect(clippy::print_stdout, reason = "whoever reads of a failed test sees the error")]
    pub fn outcome(&mut self, request: u64) -> Value {
        let answer = self.answer(request, PATIENCE).expect("pml answers");
        let outcome = answer["result"]["structuredContent"].clone();
        if outcome.is_null() {
            println!("no outcome: {answer}");
        }
        outcome
    }

    /// What the first of these requests to be answered came to.
    #[track_caller]
    pub fn any_outcome(&mut self, requests: &[u64]) -> Value {
        loop {
            if let Some(request) = requests.iter().find(|request| self.answers.contains_key(request)) {
                return self.outcome(*request);
            }
            let message = self.messages.recv_timeout(PATIENCE).expect("pml answers");
            self.take(message);
        }
    }

    /// Runs a program to its end.
    #[track_caller]
    pub fn run(&mut self, code: &str, arguments: &Value) -> Value {
        let request = self.execute(code, arguments, &json!({}));
        self.outcome(request)
    }

    /// Calls one of PML's own tools.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let request = self.begin("tools/call", &json!({ "name": tool, "arguments": arguments }));
        self.outcome(request)
    }

    /// Kills it and gives everything it had answered.
    pub fn kill(mut self) -> HashMap<u64, Value> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        while let Ok(message) = self.messages.recv() {
            self.take(message);
        }
        std::mem::take(&mut self.answers)
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Closes its input.
    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end and gives its exit code; -1 where a signal ended it.
    #[track_caller]
    pub fn ends_within(&mut self, patience: Duration) -> i32 {
        let until = Instant::now() + patience;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(Instant::now() < until, "it has not ended after {patience:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The processes it runs programs in, idle ones included.
    pub fn workers(&self) -> Vec<u32> {
        children(self.child.id()).into_iter().filter(|pid| is_worker(*pid)).collect()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The parameters of a call of `pml_execute`.
pub fn execution(intent: &str, code: &str, arguments: &Value, options: &Value) -> Value {
    let implementation = json!({ "type": "code", "code": code });
    let arguments = json!({
        "intent": intent, "implementation": implementation, "context": arguments, "options": options,
    });
    json!({ "name": "pml_execute", "arguments": arguments })
}

/// The living children of a process, of whichever of its threads.
pub fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: std::fs::DirEntry| {
        std::fs::read_to_string(thread.path().join("children")).unwrap_or_default()
    };
    let all: Vec<String> = threads.flatten().map(of_thread).collect();
    let pids = all.iter().flat_map(|text| text.split_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).filter(|pid| lives(*pid)).collect()
}

fn is_worker(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains("sandbox-worker")
}

/// The process group of a process that lives.
pub fn group_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok()
}

/// Sends a signal to a process.
pub fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}
