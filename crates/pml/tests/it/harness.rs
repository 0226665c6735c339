//! A place for one `pml` to live in, and ways to talk to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long anything in these tests may take before it counts as hung. Never a figure to reach.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a person knows and an agent does not.
pub const PASSPHRASE: &str = "correct horse battery";

/// A directory that is all a `pml` knows: its configuration, database and token.
pub struct Home {
    dir: tempfile::TempDir,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Home {
    /// A home with this `pml.toml`.
    pub fn new(config: &str) -> Home {
        let dir = tempfile::tempdir().unwrap();
        let home = Home { dir };
        home.configure(config);
        home
    }

    /// A path below the home.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Replaces the configuration.
    pub fn configure(&self, config: &str) {
        let store = if config.contains("[store]") { String::new() } else { self.shared_database() };
        std::fs::write(self.path("pml.toml"), format!("{config}{store}")).unwrap();
    }

    /// The setting for a database of this home on the PostgreSQL server whose socket is in the directory that
    /// `PML_TEST_POSTGRES` names: with it, the same tests run on PostgreSQL.
    fn shared_database(&self) -> String {
        let Ok(socket) = std::env::var("PML_TEST_POSTGRES") else { return String::new() };
        let name: String =
            self.dir.path().display().to_string().bytes().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("pml_{}", &name[name.len().saturating_sub(40)..]);
        // It exists when the configuration is replaced; then this fails and nothing is lost.
        let mut create = Command::new("createdb");
        create.args(["-h", &socket, "-U", "postgres", &name]).stderr(Stdio::null());
        create.status().unwrap();
        format!("\n[store]\nurl = \"postgres://postgres@/{name}?host={socket}\"\n")
    }

    /// A `pml` command that runs in the home and sees no environment but what it needs.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pml"));
        command.args(args).current_dir(self.dir.path()).env_clear().env("PML_HOME", self.dir.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", self.path("home"));
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Finished {
        let output = self.command(args).stdin(Stdio::null()).output().unwrap();
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Sets the passphrase without the terminal that `pml passphrase` wants.
    pub fn set_passphrase(&self, passphrase: &str) {
        self.set_passphrase_in(&self.path(""), passphrase);
    }

    /// The same for a `pml` that keeps its data in another directory.
    pub fn set_passphrase_in(&self, data: &Path, passphrase: &str) {
        let paths = pml::config::Paths { config: self.path("pml.toml"), data: data.to_owned() };
        let setting = pml::passphrase::set(&paths, passphrase);
        tokio::runtime::Runtime::new().unwrap().block_on(setting).unwrap();
    }

    /// Runs a command as a person who types the passphrase on a terminal of their own.
    pub fn run_as_person(&self, args: &[&str]) -> Finished {
        if !self.path("passphrase").exists() {
            self.set_passphrase(PASSPHRASE);
        }
        self.run_on_terminal(args, &[PASSPHRASE])
    }

    /// Runs a command on a terminal of its own and types `answers`, one at each `[y/n]` and each prompt that hides what
    /// is typed.
    pub fn run_on_terminal(&self, args: &[&str], answers: &[&str]) -> Finished {
        self.on_terminal(&self.command(args), answers)
    }

    /// The same for any command.
    pub fn on_terminal(&self, command: &Command, answers: &[&str]) -> Finished {
        const TYPIST: &str = r"
import os, pty, sys, termios, time
split = sys.argv.index('--')
answers, command = sys.argv[1:split], sys.argv[split + 1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
shown = b''
while True:
    try:
        some = os.read(terminal, 4096)
    except OSError:
        break
    if not some:
        break
    shown += some
    hides = shown.endswith((b'assphrase: ', b'The same again: '))
    if (hides or shown.rstrip().endswith(b'[y/n]')) and answers:
        while hides and termios.tcgetattr(terminal)[3] & termios.ECHO:
            time.sleep(0.01)
        os.write(terminal, answers.pop(0).encode() + b'\n')
sys.stdout.write(shown.decode().replace('\r\n', '\n'))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
        let mut typist = Command::new(python("python"));
        typist
            .args(["-c", TYPIST])
            .args(answers)
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args());
        typist.env_clear().current_dir(command.get_current_dir().unwrap_or(self.dir.path()));
        typist.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let output = typist.env("NO_COLOR", "1").stdin(Stdio::null()).output().unwrap();
        Finished {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Makes a key of a client without the terminal that `pml keys create` wants; also in the file `CLIENT.key`.
    pub fn key(&self, client: &str, interactive: bool, asks_itself: bool) -> String {
        let wanted =
            pml::keys::KeyRequest { interactive, asks_itself, ..pml::keys::KeyRequest::named(client) };
        self.key_of("local", wanted)
    }

    /// The database that the configuration names.
    pub fn store(&self) -> pml_store::BlockingStore {
        let file = self.path("pml.db");
        let config = std::fs::read_to_string(self.path("pml.toml")).unwrap_or_default();
        let url = config.lines().find_map(|line| Some(line.strip_prefix("url = ")?.trim_matches('"')));
        match url.filter(|url| url.starts_with("postgres://")) {
            Some(url) => pml_store::BlockingStore::open_postgres(url, &file).unwrap(),
            None => pml_store::BlockingStore::open(&file).unwrap(),
        }
    }

    /// Makes a key with these rights for a person; also in the file `CLIENT.key`.
    pub fn key_of(&self, person: &str, wanted: pml::keys::KeyRequest) -> String {
        use std::os::unix::fs::OpenOptionsExt as _;
        let client = wanted.client.clone();
        let store = self.store().into();
        let making = pml::keys::create(&store, pml_model::Principal(person.to_owned()), wanted);
        let (key, _) = tokio::runtime::Runtime::new().unwrap().block_on(making).unwrap();
        let mut file = std::fs::OpenOptions::new();
        let file = file.write(true).create(true).truncate(true).mode(0o600);
        let mut file = file.open(self.path(&format!("{client}.key"))).unwrap();
        writeln!(file, "{}", key.reveal()).unwrap();
        key.reveal().to_owned()
    }

    /// Starts `pml stdio` and shakes hands.
    pub fn stdio(&self, args: &[&str]) -> Client {
        let mut client = self.stdio_unopened(args);
        client.initialize();
        client
    }

    /// Starts `pml stdio` and says nothing yet.
    pub fn stdio_unopened(&self, args: &[&str]) -> Client {
        Client::start(self.command(&[&["stdio"], args].concat()))
    }

    /// Starts `pml serve` on a free port and waits until it listens.
    pub fn serve(&self, args: &[&str]) -> Served {
        self.serve_by(self.command(&[&["serve", "--listen", "127.0.0.1:0"], args].concat()))
    }

    /// The same by a command of one's own.
    pub fn serve_by(&self, command: Command) -> Served {
        self.serve_in(command, &self.path("token"))
    }

    /// The same where the token is kept in another file.
    pub fn serve_in(&self, mut command: Command, token: &Path) -> Served {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.split_once(" at ")?.1.split('\u{1b}').next()?.to_owned()))
            .unwrap_or_else(|| panic!("pml serve did not start: {}", drain(child.stderr.take())));
        let link = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| Some(line.strip_prefix("Dashboard: ")?.to_owned()))
            .expect("the link to the dashboard is printed");
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let mut stderr = child.stderr.take().unwrap();
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let token = std::fs::read_to_string(token).unwrap().trim().to_owned();
        Served { child, url, token, link }
    }
}

/// All that a stream has until its end.
pub fn drain(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    stream.map(|mut stream| stream.read_to_string(&mut text));
    text
}

/// A running `pml serve`; killed when dropped.
pub struct Served {
    /// The process.
    pub child: Child,
    /// The MCP endpoint.
    pub url: String,
    /// The bearer token.
    pub token: String,
    /// The link that opens the dashboard for reading.
    pub link: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A raw JSON-RPC conversation with `pml stdio`; killed when dropped.
pub struct Client {
    /// The process.
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
    /// Messages that came while another was waited for.
    pub aside: Vec<Value>,
}

impl Client {
    /// Starts a command that speaks MCP on its standard streams.
    pub fn start(mut command: Command) -> Client {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).map_err(drop)).ok()
        });
        Client { child, stdin, lines, next_id: 1, aside: Vec::new() }
    }

    /// Opens a session the older way.
    pub fn initialize(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let result = self.request("initialize", &params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        result
    }

    /// Sends a line as it is.
    pub fn send(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("the input is open");
        writeln!(stdin, "{line}").unwrap();
    }

    /// Sends a request and gives its id at once.
    pub fn begin(&mut self, method: &str, params: &Value) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    /// Sends a request and waits for its result; panics on an error.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin(method, params);
        let response = self.response(id);
        assert!(response.get("error").is_none(), "{method}: {response}");
        response["result"].clone()
    }

    /// Waits for the response to `id`; what else comes is put aside.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == json!(id) && message.get("method").is_none() {
                return message;
            }
            self.aside.push(message);
        }
    }

    /// The response to `id`, which may have come already while another was waited for.
    #[track_caller]
    pub fn response_or_aside(&mut self, id: u64) -> Value {
        let come = |message: &Value| message["id"] == json!(id) && message.get("method").is_none();
        match self.aside.iter().position(come) {
            Some(index) => self.aside.remove(index),
            None => self.response(id),
        }
    }

    /// Waits for a notification, which may have come already; takes it and all notifications before it.
    #[track_caller]
    pub fn announced(&mut self, method: &str) -> Value {
        loop {
            if let Some(index) = self.aside.iter().position(|message| message["method"] == method) {
                let mut taken: Vec<Value> = self.aside.drain(..=index).collect();
                let found = taken.pop().expect("the one at the index");
                taken.retain(|message| message.get("id").is_some());
                self.aside.splice(..0, taken);
                return found;
            }
            let message = self.message();
            self.aside.push(message);
        }
    }

    /// The next message.
    #[track_caller]
    pub fn message(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next line, as it came.
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("pml answers")
    }

    /// Calls a tool and gives its result, error or not.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// Closes the input and waits for the end.
    pub fn finish(mut self) -> i32 {
        self.stdin.take();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The folder of test material that is not Rust.
pub fn material(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests").join(below).canonicalize().unwrap_or_else(
        |_| panic!("tests/{below} is missing: run `cargo xtask test`, which installs what the tests need"),
    )
}

/// The Node that was installed for the tests.
pub fn node() -> String {
    material("node_modules/node/bin/node").display().to_string()
}

/// A program of the Python environment that was made for the tests.
pub fn python(program: &str) -> String {
    // Not canonical: a virtual environment is known by the path of its links.
    let path = material("requirements.txt").with_file_name(".venv").join("bin").join(program);
    assert!(path.exists(), "{} is missing: run `cargo xtask test`", path.display());
    path.display().to_string()
}

/// A server of an npm package, as a line of configuration.
pub fn npm_server(package: &str) -> String {
    let script = material(&format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    format!("command = {:?}\nargs = [{:?}]", node(), script.display().to_string())
}

/// Text of a tool result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// Whether a process lives and is no zombie.
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z')))
}

/// Waits until `done`, for as long as anything may take.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let until = std::time::Instant::now() + PATIENCE;
    while !done() {
        assert!(std::time::Instant::now() < until, "it never happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
