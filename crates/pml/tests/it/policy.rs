//! `pml policy`: why programs may do what they may, and whether that is what was wanted.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::cli::with_notes;
use crate::harness::Home;

fn home() -> Home {
    let home = with_notes();
    let configured = std::fs::read_to_string(home.path("pml.toml")).unwrap();
    home.configure(&format!(
        "{configured}[permissions]\nnotes = {{ scope = \"filesystem\", isolated = true }}\n\
         \"notes:search_*\" = {{ read_only = true }}\n\"notes:fail\" = {{ deny = true }}\n"
    ));
    home
}

#[track_caller]
fn check(home: &Home, args: &[&str], code: i32, expected: &Expect) {
    let done = home.run(args);
    assert_eq!(done.code, code, "{done:?}");
    let told = done.stdout + &done.stderr;
    expected.assert_eq(&told.replace(&home.path("").display().to_string(), "~/"));
}

#[test]
fn every_attribute_of_a_tool_is_explained() {
    let home = home();
    check(
        &home,
        &["policy", "explain", "notes:search_notes"],
        0,
        &expect![[r#"
            notes:search_notes
            ATTRIBUTE      VALUE       BECAUSE                                                                 WHERE
            approval_mode  auto        `notes:search_*` in [permissions] says that it only reads               ~/pml.toml:14
            read_only      yes         `notes:search_*` in [permissions] says so                               ~/pml.toml:14
            idempotent     yes         it only reads
            open_world     yes         no rule says otherwise, and what its server says of it is not believed
            scope          filesystem  `notes` in [permissions] says so                                        ~/pml.toml:13
            isolated       yes         `notes` in [permissions] says so                                        ~/pml.toml:13
            closed         no          no rule says that it is
            cache_ttl      none        no rule gives one
            speculate      yes         it only reads and needs no approval
            rule: `notes:search_*` in [permissions] at ~/pml.toml:14
            rule: `notes` in [permissions] at ~/pml.toml:13
            annotations: readOnlyHint true; not believed, because server `notes` has no `trust = "annotations"`, so they only make stricter
            definition: 8f49e9c17675, in use
        "#]],
    );
    check(
        &home,
        &["policy", "explain", "notes:fail"],
        0,
        &expect![[r#"
            notes:fail
            ATTRIBUTE      VALUE       BECAUSE                                                                 WHERE
            approval_mode  deny        `notes:fail` in [permissions] denies it                                 ~/pml.toml:15
            read_only      no          no rule says otherwise, and what its server says of it is not believed
            idempotent     no          no rule says otherwise, and what its server says of it is not believed
            open_world     yes         no rule says otherwise, and what its server says of it is not believed
            scope          filesystem  `notes` in [permissions] says so                                        ~/pml.toml:13
            isolated       yes         `notes` in [permissions] says so                                        ~/pml.toml:13
            closed         no          no rule says that it is
            cache_ttl      none        no rule gives one
            speculate      no          it needs approval
            rule: `notes:fail` in [permissions] at ~/pml.toml:15
            rule: `notes` in [permissions] at ~/pml.toml:13
            annotations: none; not believed, because server `notes` has no `trust = "annotations"`, so they only make stricter
            definition: 12e68bb32620, in use
        "#]],
    );
    check(
        &home,
        &["policy", "explain", "notes:serch_notes"],
        1,
        &expect![[r#"
        error: no tool is called `notes:serch_notes`
        hint: did you mean `notes:search_notes`?
    "#]],
    );
    let json = home.run(&["--json", "policy", "explain", "notes:search_notes"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["mode"], &json["heldBack"]), (&json!("auto"), &Value::Null));
    assert_eq!(json["attributes"]["read_only"]["value"], "yes");
    assert!(json["attributes"]["read_only"]["place"].as_str().unwrap().contains("pml.toml:"), "{json}");
    assert_eq!(json["annotations"]["believed"], false);
}

#[test]
fn a_tool_that_is_held_back_is_explained_too() {
    let home = home();
    let mut tools = crate::cli::notes_tools();
    tools[1]["annotations"] = json!({"readOnlyHint": false});
    std::fs::write(home.path("tools.json"), tools.to_string()).unwrap();
    assert_eq!(home.run(&["doctor"]).code, 0);
    check(
        &home,
        &["policy", "explain", "notes:search_notes"],
        0,
        &expect![[r#"
            notes:search_notes
            ATTRIBUTE      VALUE       BECAUSE                                                                                               WHERE
            approval_mode  hil         `notes:search_*` in [permissions] says that it only reads, but the tool itself does not               ~/pml.toml:14
            read_only      no          `notes:search_*` in [permissions] says that it only reads, but the tool itself says that it does not  ~/pml.toml:14
            idempotent     no          no rule says otherwise, and what its server says of it is not believed
            open_world     yes         no rule says otherwise, and what its server says of it is not believed
            scope          filesystem  `notes` in [permissions] says so                                                                      ~/pml.toml:13
            isolated       yes         `notes` in [permissions] says so                                                                      ~/pml.toml:13
            closed         no          no rule says that it is
            cache_ttl      none        no rule gives one
            speculate      no          it needs approval
            rule: `notes:search_*` in [permissions] at ~/pml.toml:14
            rule: `notes` in [permissions] at ~/pml.toml:13
            annotations: readOnlyHint false; not believed, because server `notes` has no `trust = "annotations"`, so they only make stricter
            definition: 51c596bd8a74, held back, because its definition changed after it was accepted (annotations)
        "#]],
    );
}

#[test]
fn expectations_are_checked_against_the_tools_there_are() {
    let home = home();
    let write = |name: &str, text: &str| std::fs::write(home.path(name), text).unwrap();
    write("good.toml", "\"notes:*\" = \"hil\"\n\"notes:search_*\" = \"auto\"\n\"notes:fail\" = \"deny\"\n");
    check(
        &home,
        &["policy", "test", "good.toml"],
        0,
        &expect![[r#"
        3 tools are as expected
    "#]],
    );
    write("good.yaml", "notes: hil\n\"notes:s*\": auto\nnotes:fail: deny\n");
    check(
        &home,
        &["policy", "test", "good.yaml"],
        0,
        &expect![[r#"
        3 tools are as expected
    "#]],
    );
    write("bad.toml", "notes = \"deny\"\n\"notes:search_notes\" = \"hil\"\n\"shell:*\" = \"deny\"\n");
    check(
        &home,
        &["policy", "test", "bad.toml"],
        1,
        &expect![[r#"
        TOOL                EXPECTED  IS    BECAUSE                                                    WHERE
        notes:add_note      deny      hil   nothing in [permissions] allows it                         ~/bad.toml:1
        notes:search_notes  hil       auto  `notes:search_*` in [permissions] says that it only reads  ~/bad.toml:2
        shell:*             deny      -     it is about no tool there is                               ~/bad.toml:3
    "#]],
    );
    let json: Value =
        serde_json::from_str(&home.run(&["--json", "policy", "test", "bad.toml"]).stdout).unwrap();
    assert_eq!((&json["checked"], json["differences"].as_array().unwrap().len()), (&json!(3), 3));
    write("wrong.toml", "notes = \"maybe\"\n");
    check(
        &home,
        &["policy", "test", "wrong.toml"],
        2,
        &expect![[r#"
        error: ~/wrong.toml:1:9: `notes` is `maybe`
        hint: write "auto", "hil" or "deny"
    "#]],
    );
    write("twice.toml", "notes = \"hil\"\n\"notes:*\" = \"auto\"\n");
    check(
        &home,
        &["policy", "test", "twice.toml"],
        2,
        &expect![[r#"
        error: ~/twice.toml:2:1: `notes:*` is about the same tools as ~/twice.toml:1
        hint: keep one of them
    "#]],
    );
    check(
        &home,
        &["policy", "test", "absent.toml"],
        2,
        &expect![[r#"
            error: there is no file `~/absent.toml`
            hint: write lines such as `"github:search_*" = "auto"` into it
        "#]],
    );
}

#[test]
fn the_doctor_warns_where_a_persons_word_may_not_be_a_persons() {
    let warns = |config: &str| {
        let doctor = Home::new(config).run(&["doctor"]);
        assert_eq!(doctor.code, 0, "{doctor:?}");
        (doctor.stdout.contains("can approve its own calls"), doctor.stdout.contains("no passphrase is set"))
    };
    assert_eq!(warns("[approvals]\nby = \"client\"\n"), (true, true));
    assert_eq!(warns("[approvals]\nby = \"human\"\n"), (false, true));
}
