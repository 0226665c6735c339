//! The configuration files of clients on this machine: finds and reads them, and changes one entry of a file.
//!
//! What stands in which file is known by `pml_clients`, which never opens one. A change is made from the bytes that were
//! read and is written only where the file still has these bytes. [`records`] keeps what is needed to take it back.

pub mod records;

use std::path::{Path, PathBuf};

use pml_clients::{
    CLIENTS, Client, Directories, EntryTrace, LaunchCommand, Put, ResolvedLocation, Scope, ServersRead,
    System,
};

use super::disk;
use super::error::Error;
use super::paths::{Env, Paths};

/// The name of PML's entry in the files of clients.
pub const ENTRY: &str = "pml";

/// A file of a client.
#[derive(Debug, Clone)]
pub struct ClientFile {
    /// Whose it is.
    pub client: &'static Client,
    /// What is known of it.
    pub location: ResolvedLocation,
    /// Its path.
    pub path: PathBuf,
    /// What stands in it.
    pub content: FileContent,
}

/// What stands in a file.
#[derive(Debug, Clone)]
pub enum FileContent {
    /// There is no such file.
    Missing,
    /// Its text and servers.
    Readable {
        /// The text.
        text: String,
        /// The servers.
        read: ServersRead,
    },
    /// It cannot be read, and why.
    Broken(String),
}

/// A change of a client's file that is not written yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientChange {
    /// The text before; `None` where there is no file.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
    /// What taking PML's entry out needs.
    pub trace: EntryTrace,
    /// The servers that are taken out, by name.
    pub taken_out: Vec<String>,
    /// Whether an entry of PML that said something else, or a server of that name that PML has now, makes room.
    pub replaces_entry: bool,
}

impl ClientFile {
    /// The name of the client and the scope, as the command line takes them.
    pub fn label(&self) -> String {
        label(self.client, self.location.scope)
    }

    /// The servers; none where the file is missing or broken.
    pub fn servers(&self) -> &[pml_clients::ClientServer] {
        match &self.content {
            FileContent::Readable { read, .. } => &read.servers,
            FileContent::Missing | FileContent::Broken(_) => &[],
        }
    }

    /// The change that puts PML in and takes the servers `without` out; `None` where nothing is to change.
    ///
    /// # Errors
    /// The file is broken, cannot be edited without changing something else, or has another server called [`ENTRY`]
    /// that is not among `without`.
    pub fn registration(
        &self,
        launch: &LaunchCommand,
        without: &[String],
    ) -> Result<Option<ClientChange>, Error> {
        let before = match &self.content {
            FileContent::Missing => None,
            FileContent::Readable { text, .. } => Some(text.clone()),
            FileContent::Broken(why) => return Err(self.refused(why)),
        };
        if self.has_foreign_entry() && !without.iter().any(|name| name == ENTRY) {
            let message =
                format!("`{}` was left alone: it has another server called `{ENTRY}`", self.path.display());
            let hint =
                "give that server another name in the file, or let `pml init` import it and add `--replace`";
            return Err(Error::refused(message, hint));
        }
        let shape = &self.location.shape;
        let start = before.as_deref().unwrap_or(self.location.starter);
        let put = pml_clients::put(start, shape, ENTRY, launch).map_err(|error| self.refused(&error))?;
        let mut taken_out = Vec::new();
        let (mut after, trace, replaces_entry) = match put {
            Put::Unchanged => (start.to_owned(), EntryTrace::default(), false),
            Put::Inserted { text, trace } => (text, trace, false),
            Put::Replaced { text } => {
                taken_out.extend(self.has_foreign_entry().then(|| ENTRY.to_owned()));
                (text, EntryTrace::default(), true)
            }
        };
        // The new entry stands where a server of the same name stood.
        for name in without.iter().filter(|name| *name != ENTRY) {
            let rest = pml_clients::take_out(&after, shape, name, &EntryTrace::default());
            if let Some(rest) = rest.map_err(|error| self.refused(&error))? {
                after = rest;
                taken_out.push(name.clone());
            }
        }
        let changes = before.as_deref() != Some(after.as_str());
        Ok(changes.then_some(ClientChange { before, after, trace, taken_out, replaces_entry }))
    }

    /// Whether the entry with PML's name is another server, or one that PML cannot read.
    fn has_foreign_entry(&self) -> bool {
        let FileContent::Readable { read, .. } = &self.content else { return false };
        read.servers.iter().any(|server| server.name == ENTRY && !server.is_pml())
            || read.unreadable.iter().any(|entry| entry.name == ENTRY)
    }

    /// The names of the entries of PML itself that do not have its name.
    pub fn other_own_entries(&self) -> impl Iterator<Item = &str> {
        let own = self.servers().iter().filter(|server| server.is_pml() && server.name != ENTRY);
        own.map(|server| server.name.as_str())
    }

    fn refused(&self, why: &impl std::fmt::Display) -> Error {
        Error::refused(format!("`{}` was left alone: {why}", self.path.display()), "mend it, then try again")
    }
}

/// `client` or `client:scope`.
pub fn label(client: &Client, scope: Scope) -> String {
    match scope {
        Scope::User => client.id.to_owned(),
        Scope::Project | Scope::Local => format!("{}:{}", client.id, scope.name()),
    }
}

/// Every known file of a client that exists, in the order of [`CLIENTS`].
pub fn find_files(env: &Env, cwd: &Path) -> Vec<ClientFile> {
    let Some(directories) = directories(env, cwd) else { return Vec::new() };
    let known = CLIENTS.iter().flat_map(|client| {
        client.resolve(&directories).into_iter().map(move |location| open(client, location))
    });
    known.filter(|file| !matches!(file.content, FileContent::Missing)).collect()
}

/// The file of `client` that a new entry goes into: the first of that scope that exists, else the first.
///
/// # Errors
/// There is no home directory, or the scope needs a project and the current directory is none.
pub fn file_to_register(
    env: &Env,
    cwd: &Path,
    client: &'static Client,
    scope: Scope,
) -> Result<ClientFile, Error> {
    let directories = directories(env, cwd)
        .ok_or_else(|| Error::refused("there is no home directory", "set `HOME` to a directory"))?;
    let current = client.resolve(&directories).into_iter().filter(|one| one.scope == scope && one.current);
    let mut files: Vec<ClientFile> = current.map(|location| open(client, location)).collect();
    if files.is_empty() {
        let message = format!("the home directory is no project of {}", client.title);
        return Err(Error::refused(message, "run it in the project's directory"));
    }
    let existing = files.iter().position(|file| !matches!(file.content, FileContent::Missing));
    Ok(files.swap_remove(existing.unwrap_or(0)))
}

/// The file that a registration is about, wherever the command runs.
pub fn registered_file(env: &Env, record: &records::Registration) -> Option<ClientFile> {
    let (client, scope) = pml_clients::find(&record.client)?;
    // All projects have files of the same shape, so any directory serves to find it; path and keys are recorded.
    let directories = directories(env, Path::new("/project"))?;
    let name = record.path.file_name();
    let mut known = client.resolve(&directories).into_iter().filter(|one| one.scope == scope);
    let location = known.find(|one| Path::new(&one.path).file_name() == name)?;
    let shape = pml_clients::FileShape { path: record.keys.clone(), ..location.shape };
    let path = record.path.to_str()?.to_owned();
    Some(open(client, ResolvedLocation { path, shape, ..location }))
}

fn open(client: &'static Client, location: ResolvedLocation) -> ClientFile {
    let path = PathBuf::from(&location.path);
    let content = match disk::read(&path) {
        Ok(None) => FileContent::Missing,
        Ok(Some(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => match pml_clients::read(&text, &location.shape) {
                Ok(read) => FileContent::Readable { text, read },
                Err(error) => FileContent::Broken(error.to_string()),
            },
            Err(_) => FileContent::Broken("it is not UTF-8".to_owned()),
        },
        Err(error) => FileContent::Broken(error.to_string()),
    };
    ClientFile { client, location, path, content }
}

/// The directories that files of clients start with; `None` without a home directory.
fn directories(env: &Env, cwd: &Path) -> Option<Directories> {
    let home = env.home()?;
    let text = |path: PathBuf| path.to_str().map(str::to_owned);
    let system = match () {
        () if cfg!(windows) => System::Windows,
        () if cfg!(target_os = "macos") => System::MacOs,
        () => System::Linux,
    };
    let usual = Directories::below(home.to_str()?, system);
    let config = env.absolute("XDG_CONFIG_HOME").and_then(text).unwrap_or(usual.config);
    let app_data = match system {
        System::Linux => config.clone(),
        System::MacOs => usual.app_data,
        System::Windows => env.absolute("APPDATA").and_then(text).unwrap_or(usual.app_data),
    };
    Some(Directories {
        config,
        app_data,
        codex: env.absolute("CODEX_HOME").and_then(text),
        claude: env.absolute("CLAUDE_CONFIG_DIR").and_then(text),
        // In the home directory the files of a project would be those of the user.
        project: cwd.to_str().filter(|_| cwd != home).map(str::to_owned),
        ..usual
    })
}

/// The command that a client is to start: the name alone where it leads to this program, and the package runner where it
/// fetched this program into a cache.
///
/// # Errors
/// The operating system does not say where this program is.
pub fn launch_command(env: &Env, paths: &Paths, given_config: Option<&Path>) -> Result<LaunchCommand, Error> {
    let program = std::env::current_exe().map_err(Error::io("find", Path::new("pml")))?;
    let mut words = start_words(env, &program).into_iter();
    let command = words.next().unwrap_or_default();
    let mut args: Vec<String> = words.chain(["stdio".to_owned()]).collect();
    if given_config.is_some() {
        args.extend(["--config".to_owned(), paths.config.display().to_string()]);
    }
    // A client does not have the variables of this shell.
    let home = env.get("PML_HOME").filter(|home| !home.is_empty());
    let env = home.map(|home| ("PML_HOME".to_owned(), home.to_owned())).into_iter().collect();
    Ok(LaunchCommand { command, args, env })
}

/// The words that start `program`.
fn start_words(env: &Env, program: &Path) -> Vec<String> {
    let shown = program.display().to_string();
    // Asked first: such a runner puts its cache on the `PATH` of what it starts.
    if let Some(words) = pml_clients::package_command(&shown, cfg!(windows)) {
        return words;
    }
    let name = if cfg!(windows) { "pml.exe" } else { "pml" };
    let on_path = env.get("PATH").is_some_and(|path| {
        let first = std::env::split_paths(path).map(|dir| dir.join(name)).find(|file| file.is_file());
        first.is_some_and(|file| same_file(&file, program))
    });
    vec![if on_path { "pml".to_owned() } else { shown }]
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
