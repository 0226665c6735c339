//! Several processes on one file. A child is this test binary again, running one test that is
//! ignored otherwise and does what its environment says.
#![expect(clippy::print_stdout, reason = "a child tells its parent through its output")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use pml_model::ToolId;
use pml_store::Store;

use super::{listing, me, server, tool};

const PATH: &str = "PML_STORE_TEST_PATH";
const ROLE: &str = "PML_STORE_TEST_ROLE";
const NAME: &str = "PML_STORE_TEST_NAME";

/// How often each child changes the tool that all share.
const TURNS: usize = 8;

struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(path: &Path, role: &str, name: &str) -> Running {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::child", "--ignored", "--nocapture"])
            .envs([(ROLE, role), (NAME, name)])
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output }
    }

    /// The next line that starts with `word`, without it; `None` at the end.
    fn next(&mut self, word: &str) -> Option<String> {
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            if let Some(rest) = line.strip_prefix(word) {
                return Some(rest.trim().to_owned());
            }
            line.clear();
        }
        None
    }

    fn release(&mut self) {
        self.child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    }
}

#[test]
#[ignore = "the child of the tests below; does nothing without its environment"]
fn child() {
    let Ok(path) = std::env::var(PATH) else { return };
    let name = std::env::var(NAME).unwrap();
    match std::env::var(ROLE).unwrap().as_str() {
        "share" => share(Path::new(&path), &name),
        "until_killed" => until_killed(Path::new(&path), &name),
        other => panic!("no role {other}"),
    }
}

/// Opens the file when told to, at the same time as others, and writes through two handles.
fn share(path: &Path, name: &str) {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    thread::scope(|scope| {
        for handle in 0..2 {
            scope.spawn(move || {
                let store = Store::open(path).unwrap();
                for turn in 0..TURNS / 2 {
                    let unique = format!("{name}_{handle}_{turn}");
                    store.record_manifest(&me(), listing(&unique, vec![tool("own", "d")]), 1).unwrap();
                    store.record_manifest(&me(), listing("shared", vec![tool("t", &unique)]), 1).unwrap();
                }
            });
        }
    });
}

/// Writes from several threads and tells of each write once it is acknowledged, for ever.
fn until_killed(path: &Path, name: &str) {
    let store = Store::open(path).unwrap();
    thread::scope(|scope| {
        for writer in 0..3 {
            let store = &store;
            scope.spawn(move || {
                for number in 0.. {
                    let server = format!("{name}_{writer}_{number}");
                    store.record_manifest(&me(), listing(&server, vec![tool("a", &server)]), 1).unwrap();
                    println!("\nstored {server}");
                }
            });
        }
    });
}

fn assert_sound(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let verdict: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(verdict, "ok");
    let dangling = connection.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap();
    assert!(!dangling, "a row refers to one that is not there");
}

#[test]
fn processes_that_open_a_fresh_file_together_lose_no_write() {
    const CHILDREN: usize = 6;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("new/pml.db");
    let mut children: Vec<_> =
        (0..CHILDREN).map(|number| Running::start(&path, "share", &format!("p{number}"))).collect();
    for child in &mut children {
        child.next("ready").unwrap();
    }
    children.iter_mut().for_each(Running::release);
    for child in &mut children {
        assert!(child.child.wait().unwrap().success());
    }
    let store = Store::open(&path).unwrap();
    assert_eq!(store.manifests(&me()).unwrap().len(), CHILDREN * TURNS + 1);
    // Every write changed the shared tool, so each has its place in the history.
    let shared = ToolId { server: server("shared"), tool: "t".to_owned() };
    let history = store.definition_history(&me(), &shared).unwrap();
    assert_eq!(history.len(), CHILDREN * TURNS);
    let mut digests: Vec<_> = history.iter().map(|known| &known.digest).collect();
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), CHILDREN * TURNS);
    assert_eq!(store.catalogue_version().unwrap(), (2 * CHILDREN * TURNS) as u64);
    assert_sound(&path);
}

#[test]
fn what_was_acknowledged_survives_kills() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pml.db");
    // A handle that lives on in every other batch of rounds: with it the survivors share the log
    // with the dead, without it whoever comes next recovers the log alone.
    let mut survivor = None;
    let mut stored = Vec::new();
    for round in 0..50_usize {
        survivor =
            if round / 5 % 2 == 1 { survivor.or_else(|| Some(Store::open(&path).unwrap())) } else { None };
        let mut running = Running::start(&path, "until_killed", &format!("r{round}"));
        for _ in 0..1 + round * 7 % 20 {
            stored.push(running.next("stored ").unwrap());
        }
        running.child.kill().unwrap();
        // What it managed to say before it died counts too.
        stored.extend(std::iter::from_fn(|| running.next("stored ")));
        running.child.wait().unwrap();
        assert_sound(&path);
    }
    drop(survivor);
    let manifests = Store::open(&path).unwrap().manifests(&me()).unwrap();
    for server in &stored {
        let manifest = manifests.iter().find(|manifest| manifest.server.as_str() == server);
        let tools = &manifest.unwrap_or_else(|| panic!("{server} is lost")).tools;
        assert_eq!(tools[0].definition.description.as_ref(), Some(server));
    }
    println!("{} acknowledged writes, {} stored", stored.len(), manifests.len());
}
