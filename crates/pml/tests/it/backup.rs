//! Backups by the real program, and what it says of a damaged database.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, eventually, python};

/// Runs a program, so that there is something to lose.
fn use_it(home: &Home) {
    let mut client = home.stdio(&[]);
    let code = "return (await mcp.math.evaluate({ expression: args.what })).result";
    let asked = json!({"intent": "work out 6 * 7", "implementation": {"type": "code", "code": code}, "context": {"what": "6 * 7"}});
    let reply = client.call("pml_execute", &asked);
    assert_eq!(reply["structuredContent"]["status"], "success", "{reply}");
    assert_eq!(client.finish(), 0);
}

/// Runs a statement as another program would, and gives the first value of what it returns.
fn sql(home: &Home, statement: &str) -> String {
    const RUN: &str = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as database:\n    \
                       print((database.execute(sys.argv[2]).fetchone() or [''])[0])";
    let output = std::process::Command::new(python("python"))
        .args(["-c", RUN])
        .arg(home.path("pml.db"))
        .arg(statement)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn capabilities(home: &Home) -> Value {
    let listed = home.run(&["capabilities", "list", "--json"]);
    assert_eq!(listed.code, 0, "{listed:?}");
    serde_json::from_str(&listed.stdout).unwrap()
}

#[test]
fn a_backup_is_made_while_a_gateway_runs_and_put_back_when_none_does() {
    let home = Home::new("");
    use_it(&home);
    let before = capabilities(&home);
    let served = home.serve(&[]);
    let made = home.run(&["backup"]);
    assert_eq!(made.code, 0, "{made:?}");
    assert!(made.stdout.contains("It includes `seal.key`"), "{}", made.stdout);
    assert!(made.stdout.contains("Not included: the configuration, the passphrase"), "{}", made.stdout);
    let named = home.run(&["backup", "mine.db", "--without-key", "--json"]);
    let named: Value = serde_json::from_str(&named.stdout).unwrap();
    assert_eq!((&named["keyIncluded"], &named["damagedRows"]), (&json!(false), &json!(0)));
    let backup = fs::read_dir(home.path("backups")).unwrap().next().unwrap().unwrap().path();
    #[cfg(unix)]
    for path in [&backup, &home.path("mine.db")] {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
    let shown = backup.to_str().unwrap();
    let refused = home.run(&["restore", shown]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("is in use by another PML process"), "{}", refused.stderr);
    drop(served);
    // Something happens after the backup, and is undone by it.
    let id = before["capabilities"][0]["name"].as_str().or(before[0]["name"].as_str()).unwrap().to_owned();
    assert_eq!(home.run(&["capabilities", "delete", &id]).code, 0);
    assert_ne!(capabilities(&home), before);
    let mut restored = home.run(&["restore", shown]);
    eventually("the gateway is gone", || {
        if restored.code != 0 {
            restored = home.run(&["restore", shown]);
        }
        restored.code == 0
    });
    assert!(restored.stdout.contains("What was there before is in"), "{}", restored.stdout);
    assert_eq!(capabilities(&home), before);
    let log = home.run(&["audit", "verify"]);
    assert_eq!(log.code, 0, "{log:?}");
    assert!(home.run(&["audit", "list"]).stdout.contains("database restored"));
}

#[test]
fn a_damaged_database_is_named_with_the_way_out() {
    let home = Home::new("");
    use_it(&home);
    assert_eq!(home.run(&["backup", "good.db"]).code, 0);
    let mut bytes = fs::read(home.path("pml.db")).unwrap();
    let (start, end) = (bytes.len() / 3, bytes.len());
    bytes[start..end].fill(0);
    fs::write(home.path("pml.db"), bytes).unwrap();
    fs::remove_file(home.path("pml.db-wal")).ok();
    let found = home.run(&["capabilities", "list"]);
    assert_eq!(found.code, 1, "{found:?}");
    assert!(found.stderr.contains("is damaged"), "{}", found.stderr);
    let told: Value = serde_json::from_str(&home.run(&["capabilities", "list", "--json"]).stdout).unwrap();
    assert_eq!(told["error"]["code"], "STORAGE_DAMAGED", "{told}");
    assert!(found.stderr.contains("`pml restore PATH`"), "{}", found.stderr);
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.stdout.contains("pml restore"), "{}", doctor.stdout);
    assert!(!found.stderr.contains("panicked") && !doctor.stderr.contains("panicked"));
    let restored = home.run(&["restore", "good.db"]);
    assert_eq!(restored.code, 0, "{restored:?}");
    let doctor = home.run(&["doctor"]);
    assert!(doctor.stdout.contains("every page and row as it was stored"), "{}", doctor.stdout);
}

#[test]
fn a_row_that_was_altered_is_left_out_and_doctor_names_it() {
    let home = Home::new("");
    use_it(&home);
    let before = capabilities(&home);
    sql(&home, "UPDATE capability SET success_count = success_count + 1000");
    let listed = home.run(&["capabilities", "list", "--json"]);
    assert_ne!(serde_json::from_str::<Value>(&listed.stdout).unwrap(), before);
    assert!(!listed.stdout.contains("1001"), "{}", listed.stdout);
    assert!(
        listed.stderr.contains("is damaged or was altered, and is left out: capability 1"),
        "{}",
        listed.stderr
    );
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 1);
    assert!(doctor.stdout.contains("left out: capability 1"), "{}", doctor.stdout);
    assert!(doctor.stdout.contains("pml restore"), "{}", doctor.stdout);
}

#[test]
fn after_an_unclean_end_the_next_gateway_checks_the_database() {
    let home = Home::new("");
    use_it(&home);
    let mut client = home.stdio(&[]);
    let entered = || sql(&home, "SELECT count(*) FROM process");
    eventually("the gateway is known", || entered() == "1");
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    assert_eq!(entered(), "1", "it could not say goodbye");
    let _next = home.stdio(&[]);
    // It is forgotten only once the database was found sound.
    let dead = format!("SELECT count(*) FROM process WHERE pid = {}", client.child.id());
    eventually("the database was checked", || sql(&home, &dead) == "0");
}
