//! The passphrase on the terminal: typed by a person, and taken from nowhere else.

use std::ffi::OsStr;
use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::harness::{Finished, python};
use crate::place::{PASSPHRASE, Place, now};
use crate::wire::{Person, log_in};

/// Runs a command on a terminal of its own and types a line at each prompt that hides what is typed.
fn typed(place: &Place, args: &[&str], lines: &[&str]) -> Finished {
    let pml = place.home.command(args);
    let args: Vec<&OsStr> = pml.get_args().collect();
    on_terminal(place, pml.get_program(), &args, lines)
}

/// The same for any program.
fn on_terminal(place: &Place, program: &OsStr, args: &[&OsStr], lines: &[&str]) -> Finished {
    const TYPIST: &str = r#"
import os, pty, re, sys, termios, time
lines = sys.argv[1:sys.argv.index('--')]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[sys.argv.index('--') + 1], sys.argv[sys.argv.index('--') + 1:])
shown = b''
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:
        break
    if not some:
        break
    shown += some
    if shown.endswith(b': ') and lines:
        while termios.tcgetattr(terminal)[3] & termios.ECHO:
            time.sleep(0.01)
        line = lines.pop(0).encode()
        if line == b'{code}':
            line = re.findall(rb'type this code: (\S+)', shown)[-1]
        os.write(terminal, line + b'\n')
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;
    let output = Command::new(python("python"))
        .args(["-c", TYPIST])
        .args(lines)
        .arg("--")
        .arg(program)
        .args(args)
        .env("PML_HOME", place.home.path(""))
        .current_dir(place.home.path(""))
        .output()
        .unwrap();
    finished(&output)
}

/// Runs a command that no terminal belongs to, with lines on its standard input.
fn without_terminal(place: &Place, args: &[&str], line: &str) -> Finished {
    let pml = place.home.command(args);
    let mut child = Command::new("setsid")
        .arg("--wait")
        .arg(pml.get_program())
        .args(args)
        .env("PML_HOME", place.home.path(""))
        .current_dir(place.home.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may be gone before it is given anything.
    child.stdin.take().unwrap().write_all(format!("{line}\n{line}\n").as_bytes()).ok();
    finished(&child.wait_with_output().unwrap())
}

fn finished(output: &Output) -> Finished {
    Finished {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn it_is_set_at_a_terminal_and_changed_by_who_knows_it() {
    let place = Place::without_passphrase();
    let guessed = typed(&place, &["passphrase"], &["0000-0000", "first horse here", "first horse here"]);
    assert_eq!(guessed.code, 1, "{guessed:?}");
    assert!(guessed.stdout.contains("that is not the code"), "{}", guessed.stdout);
    assert!(!place.home.path("passphrase").exists());
    let set = typed(&place, &["passphrase"], &["{code}", "first horse here", "first horse here"]);
    assert_eq!(set.code, 0, "{set:?}");
    assert!(!set.stdout.contains("horse"), "what is typed does not show: {}", set.stdout);
    let hash = std::fs::read_to_string(place.home.path("passphrase")).unwrap();
    assert!(hash.starts_with("$argon2id$"), "{hash}");

    let unknown = typed(&place, &["passphrase"], &["something else"]);
    assert_eq!(unknown.code, 1, "{unknown:?}");
    assert!(unknown.stdout.contains("that is not the passphrase"), "{}", unknown.stdout);
    let mistyped =
        typed(&place, &["passphrase"], &["first horse here", "second horse here", "second horse there"]);
    assert_eq!(mistyped.code, 2, "{mistyped:?}");
    let short = typed(&place, &["passphrase"], &["first horse here", "short", "short"]);
    assert_eq!(short.code, 2, "{short:?}");
    assert_eq!(std::fs::read_to_string(place.home.path("passphrase")).unwrap(), hash, "nothing was changed");

    let changed =
        typed(&place, &["passphrase"], &["first horse here", "second horse here", "second horse here"]);
    assert_eq!(changed.code, 0, "{changed:?}");
    assert_ne!(std::fs::read_to_string(place.home.path("passphrase")).unwrap(), hash);
}

#[test]
fn what_is_piped_in_is_not_taken() {
    let place = Place::without_passphrase();
    let piped = without_terminal(&place, &["passphrase"], "a long passphrase");
    assert_eq!(piped.code, 2, "{piped:?}");
    assert!(piped.stderr.contains("standard input is no terminal"), "{}", piped.stderr);
    assert!(!place.home.path("passphrase").exists());
}

#[test]
fn a_run_is_approved_on_the_terminal_by_who_knows_it() {
    let place = Place::new();
    let run = place.wants_to_write("notes.md");
    let approve = ["runs", "approve", run.as_str()];
    let piped = without_terminal(&place, &approve, PASSPHRASE);
    assert_eq!(piped.code, 1, "{piped:?}");
    assert!(piped.stderr.contains("there is no terminal"), "{}", piped.stderr);
    let wrong = typed(&place, &approve, &["not this one"]);
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(wrong.stdout.contains("that is not the passphrase"), "{}", wrong.stdout);
    assert!(!place.home.path("notes.md").exists(), "nothing has run");
    let right = typed(&place, &approve, &[PASSPHRASE]);
    assert_eq!(right.code, 0, "{right:?}");
    assert_eq!(std::fs::read_to_string(place.home.path("notes.md")).unwrap(), "hello");
}

#[test]
fn the_code_for_the_first_passphrase_is_in_no_pipe() {
    let place = Place::without_passphrase();
    let pml = place.home.command(&["passphrase", "-vv"]);
    let quoted = format!("{} passphrase -vv >piped 2>&1", pml.get_program().display());
    // What the command prints goes to a file; the terminal shows the code all the same.
    let shown = on_terminal(&place, "sh".as_ref(), &["-c".as_ref(), quoted.as_ref()], &["wrong"]).stdout;
    let code =
        shown.split("type this code: ").nth(1).and_then(|rest| rest.split_whitespace().next()).unwrap();
    assert_eq!(code.len(), 9, "{shown}");
    let piped = std::fs::read_to_string(place.home.path("piped")).unwrap();
    assert!(!piped.contains(code), "{piped}");
    assert!(!place.home.path("passphrase").exists());
}

#[test]
fn guessing_at_one_door_is_slowed_in_every_process_and_keeps_nobody_from_the_other() {
    let place = Place::new();
    let run = place.wants_to_write("notes.md");
    let approve = ["runs", "approve", run.as_str()];
    let served = place.serve();
    let person = Person::sign_in(&served);
    // Two wrong ones cost nothing, wherever they were given; the third does.
    for _ in 0..2 {
        assert_eq!(log_in(&served, "not this one", &[]).status, 401);
        assert!(typed(&place, &approve, &["not this one"]).stdout.contains("that is not the passphrase"));
    }
    guess_often(&place, "web");
    let slowed = log_in(&served, PASSPHRASE, &[]);
    assert_eq!(slowed.status, 429, "also the right one has to wait");
    let hint = slowed.json()["error"]["hint"].as_str().unwrap().to_owned();
    let seconds: u32 = hint.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!((1..=30).contains(&seconds), "{hint}");
    assert_eq!(log_in(&place.serve(), PASSPHRASE, &[]).status, 429, "another process knows of it");
    assert_eq!(person.get("/api/approvals").status, 200, "who has signed in stays so");
    let right = typed(&place, &approve, &[PASSPHRASE]);
    assert_eq!(right.code, 0, "the terminal has a delay of its own: {right:?}");
    guess_often(&place, "terminal");
    let slowed = typed(&place, &["passphrase"], &[PASSPHRASE]);
    assert_eq!(slowed.code, 1, "{slowed:?}");
    assert!(slowed.stdout.contains("too many wrong passphrases"), "{}", slowed.stdout);
}

/// As many wrong passphrases as make the longest wait, the last one just now.
fn guess_often(place: &Place, door: &'static str) {
    let (store, now) = (place.store(), now());
    for _ in 0..8 {
        store.attempt_sign_in(door, now - 100_000, |_| 0).unwrap();
    }
    store.attempt_sign_in(door, now, |_| 30_000).unwrap();
}
