//! Several processes on one file. A child is this test binary again, running one test that is
//! ignored otherwise and does what its environment says.
#![expect(clippy::print_stdout, reason = "a child tells its parent through its output")]

use super::{new_place, open_at, raw_database, this_process, url_at};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;

use pml_model::{RunId, RunState, ToolId};
use pml_store::{AuditVerification, Claim, Urgency};

use super::memory::{dump, get, learn, memory, remember, trace};
use super::{
    LATE, append, append_with, bodies, claim, create, entry, id, listing, me, new_run, park, server, taken,
    told, tool, words,
};

const PATH: &str = "PML_STORE_TEST_PATH";
const ROLE: &str = "PML_STORE_TEST_ROLE";
const NAME: &str = "PML_STORE_TEST_NAME";

/// How often each child changes the tool that all share.
const TURNS: usize = 8;

/// How many runs children claim.
const RUNS: u128 = 200;

struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    fn start(path: &Path, role: &str, name: &str) -> Running {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "suite::processes::child", "--ignored", "--nocapture"])
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
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
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
        "create" => create_one(Path::new(&path), &name),
        "claim" => claim_all(Path::new(&path)),
        "journal" => journal(Path::new(&path), &name),
        "learn_until_killed" => learn_until_killed(Path::new(&path), &name),
        "audit" => audit(Path::new(&path), &name),
        "audit_until_killed" => audit_until_killed(Path::new(&path), &name),
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
                let store = open_at(path).unwrap();
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
    let store = open_at(path).unwrap();
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

/// Makes a run when told to, at the same time as others make the first ones of the file.
fn create_one(path: &Path, name: &str) {
    let store = open_at(path).unwrap();
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    create(&store, new_run(name.parse().unwrap())).unwrap();
}

/// Claims every run there is when told to, and tells which it got.
fn claim_all(path: &Path) {
    let store = open_at(path).unwrap();
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    for number in 0..RUNS {
        match claim(&store, &id(number)) {
            Claim::Taken(lease) => {
                append(&store, &lease, vec![entry(&std::process::id().to_string())], None).unwrap();
                println!("\nwon {}", lease.run());
            }
            Claim::Held { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    // Lives until all have claimed: what an ended process has is anyone's.
    println!("\nclaimed");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Makes a run, adds entries to it for ever, and tells of each once it is durable. Of those in
/// between, which can wait, nothing is told.
fn journal(path: &Path, name: &str) {
    let store = open_at(path).unwrap();
    let lease = create(&store, new_run(name.parse().unwrap())).unwrap();
    for number in 0.. {
        if number % 3 == 2 {
            append_with(&store, &lease, vec![entry(&number.to_string())], None, Urgency::Durable).unwrap();
            println!("\nacked {number}");
        } else {
            store.append_journal(&lease, vec![entry(&number.to_string())], None, Urgency::Lazy, |stored| {
                stored.unwrap();
            });
        }
    }
}

/// Adds to the audit log when told to, at the same time as others, through two handles.
fn audit(path: &Path, name: &str) {
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    thread::scope(|scope| {
        for handle in 0..2 {
            scope.spawn(move || {
                let store = open_at(path).unwrap();
                for turn in 0..TURNS {
                    store.append_audit(told(&format!("{name}.{handle} {turn}"))).unwrap();
                }
            });
        }
    });
}

/// Adds to the audit log and tells of each entry once it is acknowledged, for ever.
fn audit_until_killed(path: &Path, name: &str) {
    let store = open_at(path).unwrap();
    for number in 0.. {
        store.append_audit(told(&format!("{name} {number}"))).unwrap();
        println!("\nstored {name} {number}");
    }
}

/// Stores traces and learns from them, in two threads, and tells of each trace once it is
/// acknowledged, for ever.
fn learn_until_killed(path: &Path, name: &str) {
    let store = open_at(path).unwrap();
    let round: u128 = name.parse().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                remember(&store, memory("p", trace(round * 1_000_000 + number)));
                println!("\nstored {}", round * 1_000_000 + number);
            }
        });
        loop {
            store.learn_traces(3, 1).unwrap();
        }
    });
}

fn assert_sound(path: &Path) {
    if url_at(path).is_some() {
        return;
    }
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
    let store = open_at(&path).unwrap();
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
    let (_directory, path) = new_place();
    // A handle that lives on in every other batch of rounds: with it the survivors share the log
    // with the dead, without it whoever comes next recovers the log alone.
    let mut survivor = None;
    let mut stored = Vec::new();
    for round in 0..50_usize {
        survivor = if round / 5 % 2 == 1 { survivor.or_else(|| Some(open_at(&path).unwrap())) } else { None };
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
    let manifests = open_at(&path).unwrap().manifests(&me()).unwrap();
    for server in &stored {
        let manifest = manifests.iter().find(|manifest| manifest.server.as_str() == server);
        let tools = &manifest.unwrap_or_else(|| panic!("{server} is lost")).tools;
        assert_eq!(tools[0].definition.description.as_ref(), Some(server));
    }
    println!("{} acknowledged writes, {} stored", stored.len(), manifests.len());
}

#[test]
fn processes_that_make_the_first_runs_together_agree_on_the_key() {
    for _ in 0..5 {
        let (_directory, path) = new_place();
        let mut children: Vec<_> =
            (0..4).map(|number| Running::start(&path, "create", &number.to_string())).collect();
        for child in &mut children {
            child.next("ready").unwrap();
        }
        children.iter_mut().for_each(Running::release);
        for child in &mut children {
            assert!(child.child.wait().unwrap().success());
        }
        let store = open_at(&path).unwrap();
        for number in 0..4 {
            assert_eq!(
                store.load_run(&me(), &id(number)).unwrap().plan,
                format!("plan of {number}").as_bytes()
            );
        }
    }
}

#[test]
fn of_processes_that_claim_a_run_one_gets_it() {
    let (_directory, path) = new_place();
    let store = open_at(&path).unwrap();
    for number in 0..RUNS {
        let lease = create(&store, new_run(number)).unwrap();
        append(&store, &lease, Vec::new(), park(None, None)).unwrap();
    }
    let mut children: Vec<_> =
        (0..3).map(|number| Running::start(&path, "claim", &number.to_string())).collect();
    for child in &mut children {
        child.next("ready").unwrap();
    }
    children.iter_mut().for_each(Running::release);
    let mut won: Vec<(String, u32)> = Vec::new();
    for child in &mut children {
        let mut line = String::new();
        while child.output.read_line(&mut line).unwrap() > 0 && line.trim() != "claimed" {
            if let Some(run) = line.strip_prefix("won ") {
                won.push((run.trim().to_owned(), child.child.id()));
            }
            line.clear();
        }
    }
    won.sort();
    assert_eq!(won.len(), RUNS as usize, "a run has no winner or several");
    for (run, winner) in won {
        let run = RunId::parse(&run).unwrap();
        assert_eq!(bodies(&store, &run), [winner.to_string()]);
        assert_eq!(store.run(&me(), &run).unwrap().unwrap().fence, 2);
    }
    for child in &mut children {
        child.release();
        assert!(child.child.wait().unwrap().success());
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_journal_of_a_killed_process_is_whole_and_goes_on_elsewhere() {
    let (_directory, path) = new_place();
    let store = open_at(&path).unwrap();
    // A server is sure of the end of a process only after some seconds.
    let rounds: u32 = if url_at(&path).is_some() { 3 } else { 20 };
    for round in 0..rounds {
        let run = id(u128::from(round));
        let mut running = Running::start(&path, "journal", &round.to_string());
        let mut acked: usize =
            (0..1 + round * 7 % 20).map(|_| running.next("acked ").unwrap().parse().unwrap()).last().unwrap();
        let this = this_process();
        assert!(matches!(store.claim_run(&me(), &run, &this, LATE, 1000).unwrap(), Claim::Held { .. }));
        running.child.kill().unwrap();
        acked =
            std::iter::from_fn(|| running.next("acked ")).last().map_or(acked, |last| last.parse().unwrap());
        running.child.wait().unwrap();

        let mut found = store.release_orphaned_runs(1000).unwrap();
        while found.is_empty() && url_at(&path).is_some() {
            thread::sleep(std::time::Duration::from_millis(50));
            found = store.release_orphaned_runs(1000).unwrap();
        }
        assert_eq!(
            found.iter().map(|found| (&found.run, found.state)).collect::<Vec<_>>(),
            [(&run, RunState::Interrupted)]
        );
        assert!(open_at(&path).unwrap().release_orphaned_runs(1000).unwrap().is_empty());
        let lease = taken(claim(&store, &run));
        let stored = bodies(&store, &run);
        assert!(stored.len() > acked, "{} entries, {acked} was acknowledged", stored.len());
        let expected: Vec<String> = (0..stored.len()).map(|number| number.to_string()).collect();
        assert_eq!(stored, expected);
        append(&store, &lease, vec![entry("on")], None).unwrap();
        assert_eq!(bodies(&store, &run).len(), stored.len() + 1);
    }
    assert_sound(&path);
}

#[test]
fn processes_make_one_chain_of_the_audit_log() {
    const CHILDREN: usize = 4;
    let (_directory, path) = new_place();
    let mut children: Vec<_> =
        (0..CHILDREN).map(|number| Running::start(&path, "audit", &number.to_string())).collect();
    for child in &mut children {
        child.next("ready").unwrap();
    }
    children.iter_mut().for_each(Running::release);
    let store = open_at(&path).unwrap();
    // Also while others add to it.
    for _ in 0..20 {
        assert!(matches!(store.verify_audit().unwrap(), AuditVerification::Whole { .. }));
    }
    for child in &mut children {
        assert!(child.child.wait().unwrap().success());
    }
    let rows = store.audit_entries(0, u32::MAX).unwrap();
    let newest = rows.last().unwrap();
    assert_eq!(newest.seq, (2 * CHILDREN * TURNS) as i64);
    let whole = AuditVerification::Whole { rows: newest.seq, head: newest.hash.clone() };
    assert_eq!(store.verify_audit().unwrap(), whole);
    let head = std::fs::read_to_string(path.with_file_name("audit.head")).unwrap();
    assert_eq!(head, format!("{} {}\n", newest.seq, newest.hash));
    // Each handle's entries are all there, in their order.
    let words = words(&store);
    for child in 0..CHILDREN {
        for handle in 0..2 {
            let of_handle = format!("{child}.{handle} ");
            let turns: Vec<_> = words.iter().filter_map(|word| word.strip_prefix(&of_handle)).collect();
            assert_eq!(turns, (0..TURNS).map(|turn| turn.to_string()).collect::<Vec<_>>());
        }
    }
}

#[test]
fn the_audit_log_of_killed_processes_is_whole() {
    let (_directory, path) = new_place();
    let mut stored = Vec::new();
    for round in 0..20_usize {
        let mut running = Running::start(&path, "audit_until_killed", &round.to_string());
        for _ in 0..1 + round * 7 % 10 {
            stored.push(running.next("stored ").unwrap());
        }
        running.child.kill().unwrap();
        stored.extend(std::iter::from_fn(|| running.next("stored ")));
        running.child.wait().unwrap();
        let store = open_at(&path).unwrap();
        let verified = store.verify_audit().unwrap();
        assert!(matches!(verified, AuditVerification::Whole { .. }), "{verified:?}");
        let words = words(&store);
        assert!(stored.iter().all(|word| words.contains(word)), "an acknowledged entry is lost");
    }
}

#[test]
fn learning_that_is_killed_loses_and_doubles_nothing() {
    let (_directory, path) = new_place();
    let mut stored = 0_usize;
    for round in 0..15_usize {
        let mut running = Running::start(&path, "learn_until_killed", &round.to_string());
        for _ in 0..1 + round * 7 % 20 {
            running.next("stored ").unwrap();
            stored += 1;
        }
        running.child.kill().unwrap();
        stored += std::iter::from_fn(|| running.next("stored ")).count();
        running.child.wait().unwrap();
    }
    let store = open_at(&path).unwrap();
    learn(&store);
    let traces = raw_database(&path).number("SELECT count(*) FROM trace").cast_unsigned();
    assert!(traces >= stored as u64, "an acknowledged trace is lost");
    let known = get(&store, "p");
    assert_eq!((known.statistics.usage_count, known.statistics.success_count), (traces, traces));
    assert_eq!((known.learning.paths[0].count, known.intents[0].count), (traces, traces));
    let before = dump(&path);
    store.relearn_all(1).unwrap();
    assert_eq!(dump(&path), before);
    assert_sound(&path);
}
