//! A PostgreSQL server for the tests of one process, as a user that is not root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A server that ends with this process.
pub(crate) struct Server {
    directory: PathBuf,
}

/// The server that most tests share.
fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        remove_leftovers();
        let server = Server::start();
        server.make_template();
        server
    })
}

/// The directory of the socket of the server that most tests share.
pub(crate) fn shared_directory() -> PathBuf {
    shared().directory.clone()
}

/// Directories of processes that have ended: nothing removes the one of a server that ends with its process.
fn remove_leftovers() {
    for entry in std::fs::read_dir("/tmp").unwrap().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix("pml-postgres-").and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

/// The address of an empty database of its own, with all tables.
pub(crate) fn new_database() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = shared();
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    server.execute("postgres", &format!("CREATE DATABASE {name} TEMPLATE pml_template"));
    server.url(&name)
}

impl Server {
    pub(crate) fn start() -> Server {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("/tmp/pml-postgres-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let server = Server { directory: PathBuf::from(name) };
        std::fs::create_dir_all(&server.directory).unwrap();
        if is_root() {
            assert!(Command::new("chown").arg("postgres").arg(&server.directory).status().unwrap().success());
        }
        let data = server.directory.join("data");
        let made = as_user("initdb")
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success(), "initdb failed");
        server.run();
        server
    }

    /// Starts the server process and waits until it accepts connections.
    pub(crate) fn run(&self) {
        let mut command = as_user("postgres");
        command.arg("-D").arg(self.directory.join("data")).arg("-k").arg(&self.directory);
        for setting in [
            "listen_addresses=",
            "fsync=off",
            "full_page_writes=off",
            "max_connections=300",
            "shared_buffers=32MB",
            "log_min_messages=fatal",
        ] {
            command.args(["-c", setting]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        // The server ends with the thread that started it, so that thread stays until the process ends.
        let (started, is_started) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut child = command.spawn().unwrap();
            started.send(()).unwrap();
            drop(child.wait());
            loop {
                thread::park();
            }
        });
        is_started.recv().unwrap();
        while !self.accepts() {
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn accepts(&self) -> bool {
        let asked =
            Command::new(installed().join("pg_isready")).args(["-q", "-h"]).arg(&self.directory).status();
        asked.unwrap().success()
    }

    /// Runs a statement as the owner of everything.
    pub(crate) fn execute(&self, database: &str, sql: &str) {
        let done = Command::new(installed().join("psql"))
            .args(["-q", "-X", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database, "-c", sql, "-h"])
            .arg(&self.directory)
            .status();
        assert!(done.unwrap().success(), "{sql}");
    }

    fn make_template(&self) {
        self.execute("postgres", "CREATE DATABASE pml_template");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pml.db");
        let url = self.url("pml_template");
        drop(pml_store::BlockingStore::open_postgres(&url, &path).unwrap());
        // Each test has a key of its own.
        self.execute("pml_template", "UPDATE store SET key_fingerprint = NULL; DELETE FROM gateway");
    }

    /// The address of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}", self.directory.display())
    }

    /// Ends the server at once, as a crash does.
    pub(crate) fn kill(&self) {
        let pid = std::fs::read_to_string(self.directory.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        assert!(Command::new("kill").args(["-QUIT", &pid]).status().unwrap().success());
        while Path::new("/proc").join(&pid).exists() {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.directory));
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A program of the server, to be run as a user that is not root.
fn as_user(program: &str) -> Command {
    let path = installed().join(program);
    if !is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=QUIT"]).arg(path);
    command
}

/// The directory of the newest server that is installed.
fn installed() -> PathBuf {
    let versions =
        std::fs::read_dir("/usr/lib/postgresql").expect("`cargo xtask install` installs PostgreSQL");
    let version =
        |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().to_str()?.parse::<u32>().ok();
    let newest = versions.filter_map(version).max().expect("a version is installed");
    PathBuf::from(format!("/usr/lib/postgresql/{newest}/bin"))
}
