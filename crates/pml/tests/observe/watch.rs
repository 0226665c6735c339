//! `pml runs watch`: lines as things happen, colours on a terminal only.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::door::ALL;
use crate::harness::{Home, PATIENCE};

struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    /// Starts to watch and waits until it does.
    fn start(home: &Home, args: &[&str]) -> Watching {
        let mut command = home.command(&[&["runs", "watch"], args].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.starts_with("watching"), "{first}");
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).map_err(drop)).ok()
        });
        Watching { child, lines }
    }

    /// The lines up to one with `last`.
    #[track_caller]
    fn until(&self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let line =
                self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no {last} in {lines:#?}"));
            let is_last = line.contains(last);
            lines.push(line);
            if is_last {
                return lines;
            }
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn code(code: &str) -> Value {
    json!({"intent": "read a file", "implementation": {"type": "code", "code": code}, "options": {"cache": false}})
}

#[test]
fn runs_of_other_processes_are_shown_as_they_happen() {
    let home = Home::new(ALL);
    std::fs::write(home.path("a.txt"), "one").unwrap();
    let mut agent = home.stdio(&[]);
    let (people, program) = (Watching::start(&home, &[]), Watching::start(&home, &["--json"]));
    let reply = agent.call("pml_execute", &code("return (await mcp.fs.read({ path: 'a.txt' })).content"));
    let id = reply["structuredContent"]["workflowId"].as_str().unwrap().to_owned();
    let shown = people.until("run_end");
    assert!(shown.iter().all(|line| !line.contains('\u{1b}')), "no colours in a pipe: {shown:#?}");
    let fields: Vec<Vec<&str>> = shown.iter().map(|line| line.split_whitespace().collect()).collect();
    let names: Vec<&str> = fields.iter().map(|fields| fields[2]).collect();
    assert_eq!(names, ["run_start", "task_start", "task_complete", "run_end"], "{shown:#?}");
    assert!(fields.iter().all(|fields| id.starts_with(fields[1])), "{shown:#?}");
    let place = |line: &String| line.find(id.get(..12).unwrap()).unwrap();
    assert!(shown.iter().all(|line| place(line) == place(&shown[0])), "aligned: {shown:#?}");
    assert!(shown[2].contains("fs:read") && shown[2].contains("one"), "{shown:#?}");
    let lines = program.until("run_end");
    let events: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names, ["run_start", "task_start", "task_complete", "run_end"]);
    assert!(events.iter().all(|event| event["run"] == *id));
}

#[test]
fn one_run_is_watched_to_its_end() {
    let home = Home::new(ALL);
    let mut agent = home.stdio(&[]);
    let waits = "const text = await mcp.fs.stat({ path: 'a.txt' }); await new Promise(r => setTimeout(r, 3000)); throw new Error('no')";
    let call = agent.begin("tools/call", &json!({"name": "pml_execute", "arguments": code(waits)}));
    let mut id = String::new();
    crate::harness::eventually("the run is stored", || {
        let listed: Value = serde_json::from_str(&home.run(&["runs", "list", "--json"]).stdout).unwrap();
        id = listed[0]["workflowId"].as_str().unwrap_or_default().to_owned();
        !id.is_empty()
    });
    let mut watching = Watching::start(&home, &[&id]);
    assert!(watching.until("run_end").last().unwrap().contains("failed"));
    assert_eq!(watching.child.wait().unwrap().code(), Some(1));
    agent.response(call);
    let after = home.run(&["runs", "watch", &id]);
    assert_eq!(after.code, 1, "it has ended already: {after:?}");
    assert!(after.stdout.contains("failed"), "{after:?}");
    let unknown = home.run(&["runs", "watch", "run_00000000000000000000000000000000"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("there is no run"), "{unknown:?}");
}
