//! Tests of decisions about servers of clients.

use expect_test::expect;

use super::*;
use crate::config::{Env, load};

fn decided(config: &str, servers: &[ClientServer]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { config: dir.path().join("pml.toml"), data: dir.path().join("data") };
    std::fs::write(&paths.config, config.replace("DIR", dir.path().to_str().unwrap())).unwrap();
    let env = Env::default();
    let known = known_servers(&load(&paths, dir.path(), &env).unwrap(), &paths).unwrap();
    let mut taken = Vec::new();
    let mut out = String::new();
    for server in servers {
        match decide(server, &known, &taken, (&paths, SecretPlacement::InFiles)) {
            ImportDecision::Import(import) => {
                taken.push(import.server.name.clone());
                write_secrets(&import).unwrap();
                let NewServer { name, declared, enabled, call_timeout, .. } = &import.server;
                let detail = match declared {
                    DeclaredTransport::Stdio { args, env, .. } => format!("{args:?} {env:?}"),
                    DeclaredTransport::Http { url, headers } => format!("{url} {headers:?}"),
                };
                out.push_str(&format!("{name}: {detail} {enabled} {call_timeout:?}\n"));
                for secret in &import.secrets {
                    let held = std::fs::read_to_string(&secret.path).unwrap();
                    out.push_str(&format!("  {} holds {held:?}\n", secret.path.display()));
                }
            }
            ImportDecision::AlreadyThere(name) => out.push_str(&format!("{name} is there\n")),
            ImportDecision::LeftOut(reason) => out.push_str(&format!("left out: {reason}\n")),
        }
    }
    out.replace(dir.path().to_str().unwrap(), "DIR")
}

fn stdio(name: &str, args: &[&str], env: &[(&str, &str)]) -> ClientServer {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    ClientServer {
        name: name.to_owned(),
        address: ServerAddress::Stdio {
            command: "run".to_owned(),
            args: args.iter().map(ToString::to_string).collect(),
            env: env.iter().map(pair).collect(),
            cwd: None,
        },
        enabled: true,
        call_timeout_ms: Some(1_500),
        start_timeout_ms: None,
        description: None,
        line: 1,
    }
}

fn http(name: &str, url: &str, headers: &[(&str, &str)]) -> ClientServer {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let address = ServerAddress::Http { url: url.to_owned(), headers: headers.iter().map(pair).collect() };
    ClientServer { address, ..stdio(name, &[], &[]) }
}

#[test]
fn secrets_go_into_files_wherever_they_stand() {
    let found = decided(
        "",
        &[
            stdio(
                "a",
                &[
                    "--token",
                    "abcdefgh",
                    "--api-key=ijkl$$mno",
                    "--name",
                    "ada",
                    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                ],
                &[("API_KEY", "s3cr3t-value"), ("MODE", "fast"), ("OTHER_TOKEN", "${FROM_ENV}")],
            ),
            http("b", "https://x.example/mcp", &[("Authorization", "Bearer abcd1234"), ("Accept", "*/*")]),
        ],
    );
    expect![[r#"
        a: ["--token", "${file:DIR/data/secrets/a.argument-2}", "--api-key=${file:DIR/data/secrets/a.argument-3}", "--name", "ada", "${file:DIR/data/secrets/a.argument-6}"] {"API_KEY": "${file:DIR/data/secrets/a.API_KEY}", "MODE": "fast", "OTHER_TOKEN": "${FROM_ENV}"} true Some(1.5s)
          DIR/data/secrets/a.API_KEY holds "s3cr3t-value"
          DIR/data/secrets/a.argument-2 holds "abcdefgh"
          DIR/data/secrets/a.argument-3 holds "ijkl$mno"
          DIR/data/secrets/a.argument-6 holds "ghp_0123456789abcdefghijABCDEFGHIJ012345"
        b: https://x.example/mcp {"Accept": "*/*", "Authorization": "Bearer ${file:DIR/data/secrets/b.Authorization}"} true Some(1.5s)
          DIR/data/secrets/b.Authorization holds "abcd1234"
    "#]].assert_eq(&found);
}

#[test]
fn names_are_free_and_servers_that_are_there_are_recognised() {
    let config = "[servers.git]\ncommand = \"run\"\nargs = [\"same\"]\n\n[servers.moved]\ncommand = \"run\"\n\
                  env = { API_KEY = \"${file:DIR/data/secrets/moved.API_KEY}\" }\n";
    let found = decided(
        config,
        &[
            stdio("other-name", &["same"], &[]),
            stdio("GIT", &["different"], &[]),
            stdio("moved", &[], &[("API_KEY", "s3cr3t-value")]),
            stdio("time", &[], &[]),
            stdio("my server!", &["1"], &[]),
            stdio("my_server", &["2"], &[]),
            stdio("pml_x", &[], &[]),
        ],
    );
    expect![[r#"
        git is there
        left out: PML has a server `git` with other settings, which stay
        moved is there
        time-mcp: [] {} true Some(1.5s)
        my-server: ["1"] {} true Some(1.5s)
        my_server-mcp: ["2"] {} true Some(1.5s)
        left out: no name like `pml_x` is free
    "#]]
    .assert_eq(&found);
}
