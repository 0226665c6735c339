//! Servers of several files become one list.

use pml_clients::{ClientServer, ServerAddress, merge};

fn server(name: &str, command: &str, enabled: bool) -> ClientServer {
    ClientServer {
        name: name.to_owned(),
        address: ServerAddress::Stdio {
            command: command.to_owned(),
            args: vec!["stdio".to_owned()],
            env: Vec::new(),
            cwd: None,
        },
        enabled,
        call_timeout_ms: None,
        start_timeout_ms: None,
        description: None,
        line: 1,
    }
}

#[test]
fn equal_servers_are_one_and_different_ones_of_a_name_are_a_choice() {
    let merged = merge([
        (0, server("git", "git-mcp", false)),
        (0, server("time", "time-mcp", true)),
        (1, server("Git", "other-git-mcp", true)),
        (1, server("clock", "time-mcp", true)),
        (2, server("git", "git-mcp", true)),
        (2, server("pml", "/usr/bin/pml", true)),
    ]);
    let shown: Vec<String> = merged
        .iter()
        .map(|one| {
            let choices: Vec<_> =
                one.choices.iter().map(|(file, s)| format!("{file}:{}", s.enabled)).collect();
            let entries: Vec<_> = one.entries.iter().map(|(file, name)| format!("{file}:{name}")).collect();
            format!("{} {} <- {}", one.name, choices.join(" or "), entries.join(" "))
        })
        .collect();
    assert_eq!(
        shown,
        ["git 0:true or 1:true <- 0:git 1:Git 2:git", "time 0:true <- 0:time 1:clock"],
        "the disabled one is enabled, since another client uses it"
    );
}
