//! The passphrase on the terminal: typed by a person, and taken from nowhere else.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};

use crate::harness::{Finished, python};
use crate::place::{PASSPHRASE, Place};

/// Runs a command on a terminal of its own and types a line at each prompt that hides what is typed.
fn typed(place: &Place, args: &[&str], lines: &[&str]) -> Finished {
    const TYPIST: &str = r#"
import os, pty, sys, termios, time
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
        os.write(terminal, lines.pop(0).encode() + b'\n')
sys.stdout.write(shown.decode())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;
    let pml = place.home.command(args);
    let output = Command::new(python("python"))
        .args(["-c", TYPIST])
        .args(lines)
        .arg("--")
        .arg(pml.get_program())
        .args(pml.get_args())
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
    let set = typed(&place, &["passphrase"], &["first horse here", "first horse here"]);
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
