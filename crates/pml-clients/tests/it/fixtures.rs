//! Every fixture is read, gets an entry, and loses it again.
//!
//! A fixture is called `NUMBER-what.EXTENSION` in a directory with the name of its client; the number says which
//! location of that client it is a file of.

use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use pml_clients::{
    CLIENTS, Client, ClientServer, Directories, LaunchCommand, Put, ResolvedLocation, ServerAddress, System,
};

struct Fixture {
    name: String,
    text: String,
    client: &'static Client,
    location: ResolvedLocation,
}

fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let directories = Directories {
        project: Some("/work/app".to_owned()),
        ..Directories::below("/home/ada", System::Linux)
    };
    let mut found = Vec::new();
    for client in CLIENTS {
        let folder = root.join(client.id);
        let mut names: Vec<String> = std::fs::read_dir(&folder)
            .unwrap_or_else(|_| panic!("{} has no fixture", client.id))
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let locations = client.resolve(&directories);
        for index in 0..locations.len() {
            let start = format!("{index}-");
            assert!(
                names.iter().any(|name| name.starts_with(&start)),
                "{} {index} has no fixture",
                client.id
            );
        }
        for name in names {
            let index: usize = name.split('-').next().unwrap().parse().unwrap();
            found.push(Fixture {
                text: std::fs::read_to_string(folder.join(&name)).unwrap(),
                name: format!("{}/{name}", client.id),
                client,
                location: locations[index].clone(),
            });
        }
    }
    found
}

fn launch() -> LaunchCommand {
    LaunchCommand { command: "/opt/my tools/pml".to_owned(), args: vec!["stdio".to_owned()], env: Vec::new() }
}

fn describe(server: &ClientServer) -> String {
    let mut out = format!("line {} {}", server.line, server.name);
    match &server.address {
        ServerAddress::Stdio { command, args, env, cwd } => {
            write!(out, ": {command} {args:?}").unwrap();
            env.iter().for_each(|(name, value)| write!(out, " {name}={value}").unwrap());
            cwd.iter().for_each(|cwd| write!(out, " in {cwd}").unwrap());
        }
        ServerAddress::Http { url, headers } => {
            write!(out, ": {url}").unwrap();
            headers.iter().for_each(|(name, value)| write!(out, " {name}: {value}").unwrap());
        }
    }
    if !server.enabled {
        out.push_str(" (disabled)");
    }
    server.call_timeout_ms.iter().for_each(|ms| write!(out, " call {ms} ms").unwrap());
    server.start_timeout_ms.iter().for_each(|ms| write!(out, " start {ms} ms").unwrap());
    server.description.iter().for_each(|text| write!(out, " {text:?}").unwrap());
    out
}

#[test]
fn the_servers_of_every_fixture_are_read() {
    let mut out = String::new();
    for fixture in fixtures() {
        writeln!(out, "{}", fixture.name).unwrap();
        let read = pml_clients::read(&fixture.text, &fixture.location.shape).unwrap();
        read.servers.iter().for_each(|server| writeln!(out, "  {}", describe(server)).unwrap());
        for left in &read.unreadable {
            writeln!(out, "  line {} {} is left out: {}", left.line, left.name, left.reason).unwrap();
        }
    }
    expect_file!["servers.txt"].assert_eq(&out);
}

#[test]
fn an_entry_goes_in_and_out_of_every_fixture() {
    let mut out = String::new();
    for fixture in fixtures() {
        let shape = &fixture.location.shape;
        let Put::Inserted { text, trace } = pml_clients::put(&fixture.text, shape, "pml", &launch())
            .unwrap_or_else(|error| panic!("{}: {error}", fixture.name))
        else {
            panic!("{} has no entry yet", fixture.name)
        };
        assert_eq!(pml_clients::put(&text, shape, "pml", &launch()), Ok(Put::Unchanged), "{}", fixture.name);
        let read = pml_clients::read(&text, shape).unwrap();
        let ours = read.servers.iter().find(|server| server.name == "pml").unwrap();
        assert!(ours.is_pml() && ours.enabled, "{}: {ours:?}", fixture.name);

        let other =
            LaunchCommand { command: "pml".to_owned(), args: vec!["stdio".to_owned()], env: Vec::new() };
        // Dotted keys cannot become a table where they stand.
        match pml_clients::put(&text, shape, "pml", &other) {
            Ok(Put::Replaced { text: again }) => {
                let back = pml_clients::take_out(&again, shape, "pml", &trace).unwrap().unwrap();
                assert_eq!(back, fixture.text, "{} after a replacement\n{again}", fixture.name);
            }
            other => panic!("{}: {other:?}", fixture.name),
        }

        let back = pml_clients::take_out(&text, shape, "pml", &trace).unwrap().unwrap();
        assert_eq!(back, fixture.text, "{}\n{text}", fixture.name);
        assert_eq!(pml_clients::take_out(&back, shape, "pml", &trace), Ok(None), "{}", fixture.name);
        writeln!(out, "==== {} ({})", fixture.name, fixture.client.title).unwrap();
        writeln!(out, "{}", text.replace("\r\n", "␍\n").replace('\u{feff}', "<mark>")).unwrap();
    }
    expect_file!["registered.txt"].assert_eq(&out);
}

/// Taking out what was imported leaves the rest, and the entry of PML.
#[test]
fn every_server_of_a_fixture_can_be_taken_out() {
    for fixture in fixtures() {
        let shape = &fixture.location.shape;
        let Ok(Put::Inserted { mut text, trace }) = pml_clients::put(&fixture.text, shape, "pml", &launch())
        else {
            panic!("{}", fixture.name)
        };
        let read = pml_clients::read(&fixture.text, shape).unwrap();
        for server in &read.servers {
            text = pml_clients::take_out(&text, shape, &server.name, &Default::default())
                .unwrap_or_else(|error| panic!("{} {}: {error}\n{text}", fixture.name, server.name))
                .unwrap();
        }
        let left: Vec<String> =
            pml_clients::read(&text, shape).unwrap().servers.into_iter().map(|server| server.name).collect();
        assert_eq!(left, ["pml"], "{}\n{text}", fixture.name);
        assert!(pml_clients::take_out(&text, shape, "pml", &trace).unwrap().is_some());
    }
}
