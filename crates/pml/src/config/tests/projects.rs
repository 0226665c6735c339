//! Tests: which files take effect, and who may write them.

use super::*;

#[test]
fn a_project_counts_only_as_it_was_trusted() {
    let text = "[servers.project]\ncommand = \"./run\"\n";
    let home = Home::new(&[
        ("work/.pml/pml.toml", text),
        ("work/.mcp.json", r#"{"mcpServers":{"x":{"command":"x"}}}"#),
    ]);
    let file = home.path("work/.pml/pml.toml");
    let seen = |home: &Home| {
        let config = home.load().unwrap();
        (config.servers.len(), config.findings.untrusted)
    };
    assert_eq!(seen(&home), (0, vec![file.clone()]));

    trust_all(&home, "work");
    assert_eq!(seen(&home), (1, vec![]));
    let ServerTransport::Stdio { command, .. } = &home.load().unwrap().servers[0].transport else { panic!() };
    assert_eq!(Path::new(command), home.path("work/run"));

    for at in 0..text.len() {
        let mut bytes = text.as_bytes().to_vec();
        bytes[at] ^= 1;
        fs::write(&file, bytes).unwrap();
        assert_eq!(seen(&home), (0, vec![file.clone()]), "byte {at}");
    }
    fs::write(&file, text).unwrap();
    assert_eq!(seen(&home), (1, vec![]), "the content that was trusted is back");

    fs::create_dir_all(home.path("work/sub/.pml")).unwrap();
    fs::copy(&file, home.path("work/sub/.pml/pml.toml")).unwrap();
    assert_eq!(seen(&home).1, [home.path("work/sub/.pml/pml.toml")], "trust is not for copies elsewhere");
    assert_eq!(seen(&home).0, 1, "nor does a copy hide the trusted one");

    assert!(trust::untrust(&home.paths(), &home.path("work")).unwrap());
    assert!(!trust::untrust(&home.paths(), &home.path("work")).unwrap());
    assert_eq!(seen(&home).0, 0);
}

#[test]
fn a_change_between_showing_and_trusting_is_not_trusted() {
    let home = Home::new(&[("work/pml.toml", "[servers.good]\ncommand = \"x\"\n")]);
    let shown = trust::ProjectConfig::find(&home.path("work")).unwrap().remove(0);
    home.write("work/pml.toml", "[servers.evil]\ncommand = \"x\"\n");
    trust::trust(&home.paths(), &shown).unwrap();
    let now = trust::ProjectConfig::find(&home.path("work")).unwrap().remove(0);
    assert!(trust::is_trusted(&home.paths(), &shown).unwrap());
    assert!(!trust::is_trusted(&home.paths(), &now).unwrap());
    assert!(home.load().unwrap().servers.is_empty());
}

#[cfg(unix)]
#[test]
fn a_planted_pipe_does_not_make_loading_wait() {
    let home = Home::new(&[]);
    let made = std::process::Command::new("mkfifo").arg(home.path("work/pml.toml")).status().unwrap();
    assert!(made.success());
    assert!(home.load().unwrap().findings.untrusted.is_empty());
}

#[test]
fn a_project_may_add_servers_and_nothing_else() {
    let home = Home::new(&[("work/pml.toml", "[serve]\nlisten = \"0.0.0.0:80\"\n")]);
    trust_all(&home, "work");
    expect![[r#"
        ~/work/pml.toml:1:2: a project cannot set `serve`
        hint: move it to your own `pml.toml`; a project may have `servers` only"#]]
    .assert_eq(&home.load().unwrap_err().to_string());
}

#[test]
fn a_project_says_nothing_of_what_programs_may_call() {
    for (text, expected) in [
        (
            "[servers.x]\ncommand = \"x\"\n[servers.y]\ncommand = \"y\"\ntrust = \"annotations\"\n",
            expect![[r#"
                ~/work/pml.toml:3:10: a project cannot set `servers.y.trust`
                hint: remove it; what programs may call is said in your own `pml.toml`"#]],
        ),
        (
            "[servers.x]\ncommand = \"x\"\ndefinitions = \"follow\"\n",
            expect![[r#"
                ~/work/pml.toml:1:10: a project cannot set `servers.x.definitions`
                hint: remove it; what programs may call is said in your own `pml.toml`"#]],
        ),
        (
            "[permissions]\nfs = { approval_mode = \"auto\" }\n",
            expect![[r#"
                ~/work/pml.toml:1:2: a project cannot set `permissions`
                hint: move it to your own `pml.toml`; a project may have `servers` only"#]],
        ),
    ] {
        let home = Home::new(&[("work/pml.toml", text)]);
        trust_all(&home, "work");
        expected.assert_eq(&home.load().unwrap_err().to_string());
    }
    let home = Home::new(&[("work/mcp-permissions.yaml", "fs: { approvalMode: auto }")]);
    trust_all(&home, "work");
    assert_eq!(home.load().unwrap().permissions, []);
}

#[test]
fn the_users_own_config_is_no_project() {
    let home = user("[servers.x]\ncommand = \"x\"\n");
    let config = load(&home.paths(), &home.path("pml"), &home.env).unwrap();
    assert_eq!((names(&config), config.findings.untrusted.len()), (vec!["x"], 0));
}

#[test]
fn a_damaged_list_of_trusted_files_trusts_nothing_and_says_so() {
    let home = Home::new(&[("pml/trust.json", "{\"trusted\": 1}")]);
    let said = home.load().unwrap_err().to_string();
    assert!(said.ends_with("hint: delete it and trust your projects again with `pml trust <dir>`"), "{said}");
}

#[cfg(unix)]
#[test]
fn files_that_others_can_write_are_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = user("");
    assert_eq!(home.load().unwrap().findings.warnings, []);
    fs::set_permissions(home.path("pml"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(home.path("pml/pml.toml"), fs::Permissions::from_mode(0o620)).unwrap();
    let said: String =
        home.load().unwrap().findings.warnings.iter().map(|warning| format!("{warning}\n")).collect();
    expect![[r#"
        other users can write `~/pml/pml.toml`, and so have programs started as you
        hint: run `chmod go-w ~/pml/pml.toml`
        other users can write `~/pml`, and so have programs started as you
        hint: run `chmod go-w ~/pml`
    "#]]
    .assert_eq(&said);

    home.write("pml/trust.json", "{\"trusted\": {}}");
    fs::set_permissions(home.path("pml/trust.json"), fs::Permissions::from_mode(0o666)).unwrap();
    let said = home.load().unwrap_err().to_string();
    assert!(said.starts_with("other users can write"), "{said}");
}
