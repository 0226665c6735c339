//! From files to a [`Config`].

use std::path::{Path, PathBuf};

use pml_model::Digest;

use super::error::{Complaint, Error, Problem, nearest};
use super::launch::Warning;
use super::names::Names;
use super::node::{self, File};
use super::paths::{Env, Paths};
use super::permission::{self, Form, Rule, YAML_FILE};
use super::section::Section;
use super::server::Draft;
use super::settings::{self, BUILT_IN, Settings};
use super::trust::{self, Project};
use super::variables::Variables;
use super::{Config, Server, Source, disk, yaml};

/// Reads the user's config, what it imports, and the trusted config of the project that `cwd` is in.
/// Without any of them the defaults hold.
///
/// # Errors
/// A file cannot be read, or its content is wrong; the first such place is told.
pub fn load(paths: &Paths, cwd: &Path, env: &Env) -> Result<Config, Error> {
    let mut loading = Loading { env, sources: Vec::new(), problems: Vec::new(), warnings: Vec::new() };
    let mut settings = loading.user(&paths.config)?;
    loading.permissions(&disk::parent(&paths.config).join(YAML_FILE), &mut settings.permissions)?;
    loading.warnings.extend(settings.outdated.into_iter().map(|outdated| Warning {
        message: outdated.place_and_message(),
        hint: outdated.hint.unwrap_or_default(),
    }));
    let mut drafts = settings.drafts;
    for (path, named_at) in settings.imports {
        drafts.extend(loading.import(&path, &named_at)?);
    }
    let (project, untrusted) = loading.project(paths, cwd)?;
    drafts.extend(project);

    let mut names = Names::new(&settings.builtin);
    let mut servers = Vec::new();
    for draft in drafts {
        match loading.server(draft, &mut names) {
            Ok(server) => servers.push(server),
            Err(problem) => loading.problems.push(problem),
        }
    }
    loading.check_subjects(&settings.permissions, &servers);
    Ok(Config {
        servers,
        expose: settings.expose,
        clients: settings.clients,
        builtin: settings.builtin,
        serve: settings.serve,
        names: settings.names,
        permissions: settings.permissions,
        approvals: settings.approvals,
        memory: settings.memory,
        embedding: settings.embedding,
        limits: settings.limits,
        runs: settings.runs,
        sources: loading.sources,
        untrusted,
        problems: loading.problems,
        warnings: loading.warnings,
    })
}

struct Loading<'e> {
    env: &'e Env,
    sources: Vec<Source>,
    problems: Vec<Problem>,
    warnings: Vec<Warning>,
}

impl Loading<'_> {
    /// The bytes of `path`, remembering what they were.
    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let bytes = disk::read(path)?;
        self.remember(Source { path: path.to_owned(), digest: bytes.as_deref().map(Digest::of) });
        Ok(bytes)
    }

    fn remember(&mut self, source: Source) {
        if !self.sources.iter().any(|known| known.path == source.path) {
            self.sources.push(source);
        }
    }

    fn user(&mut self, path: &Path) -> Result<Settings, Error> {
        let Some(bytes) = self.read(path)? else { return Ok(Settings::default()) };
        self.check_mode(path);
        let file = File::new(path, bytes, self.env)?;
        Ok(settings::user(&file, self.env)?)
    }

    /// Adds the rules of the file beside the user's, where there is one.
    fn permissions(&mut self, path: &Path, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let Some(bytes) = self.read(path)? else { return Ok(()) };
        self.check_mode(path);
        let file = File::new(path, bytes, self.env)?;
        let root = yaml::yaml(&file)?;
        Ok(permission::read(&Section::open(&file, &root, "")?, Form::Yaml, rules)?)
    }

    /// A misspelled name must not make a rule that forbids something idle. A name that is like no other
    /// may belong to a project that is not open now.
    fn check_subjects(&mut self, rules: &[Rule], servers: &[Server]) {
        let left_out = self.problems.iter().map(|problem| problem.server.as_str());
        let known: Vec<&str> = servers
            .iter()
            .map(|server| server.name.as_str())
            .chain(left_out)
            .chain(BUILT_IN.iter().copied())
            .collect();
        let mut warnings = Vec::new();
        for rule in rules {
            if known.iter().any(|name| rule.subject.server.matches(name)) {
                continue;
            }
            if let Some(near) = nearest(rule.subject.server.as_str(), &known) {
                warnings.push(Warning {
                    message: format!("{}: {} is about no server there is", rule.place, rule.shown),
                    hint: format!("did you mean `{near}`?"),
                });
            }
        }
        self.warnings.extend(warnings);
    }

    /// Who can write the config can have any program started.
    fn check_mode(&mut self, path: &Path) {
        for path in [path, &disk::parent(path)] {
            if disk::open_to_others(path, 0o022) != 0 {
                let shown = self.env.shown(path);
                self.warnings.push(Warning {
                    message: format!("other users can write `{shown}`, and so have programs started as you"),
                    hint: format!("run `chmod go-w {shown}`"),
                });
            }
        }
    }

    /// The servers of another program's file. One of them that makes no sense to us is left out; it is
    /// not the user's to mend.
    fn import(&mut self, path: &Path, named_at: &Complaint) -> Result<Vec<Draft>, Error> {
        let Some(bytes) = self.read(path)? else {
            let shown = self.env.shown(path);
            self.warnings.push(Warning {
                message: format!("{}:{}: the file `{shown}` does not exist", named_at.shown, named_at.line),
                hint: "remove it from `import`; it is used as soon as it exists".to_owned(),
            });
            return Ok(Vec::new());
        };
        self.check_mode(path);
        let file = File::new(path, bytes, self.env)?;
        let mut drafts = Vec::new();
        for member in node::json(&file, &["mcpServers", "servers"])? {
            let servers = Section::open(&file, &member.node, &member.key)?;
            for member in servers.members() {
                match Draft::from_json(&file, member) {
                    Ok(draft) => drafts.push(draft),
                    Err(complaint) => {
                        self.problems
                            .push(Problem { server: member.key.clone(), complaint: Box::new(complaint) });
                    }
                }
            }
        }
        Ok(drafts)
    }

    /// The servers of the nearest trusted project, and the files on the way that are not trusted. A
    /// file that nobody trusts does not hide one further up that somebody does.
    fn project(&mut self, paths: &Paths, cwd: &Path) -> Result<(Vec<Draft>, Vec<PathBuf>), Error> {
        let mut untrusted = Vec::new();
        let trusted = trust::Store::open(paths)?;
        self.remember(trusted.source());
        for project in Project::around(cwd, paths)? {
            self.remember(project.source());
            if !trusted.has(&project) {
                untrusted.push(project.path);
                continue;
            }
            self.check_mode(&project.path);
            let file = File::new(&project.path, project.content, self.env)?;
            return Ok((settings::project(&file)?, untrusted));
        }
        Ok((Vec::new(), untrusted))
    }

    fn server(&mut self, draft: Draft, names: &mut Names) -> Result<Server, Problem> {
        let name = names.claim(&draft)?;
        let base = trust::base(draft.file());
        let mut variables = Variables::new(self.env, &base);
        let server = draft.resolve(name, &mut variables, self.env, &base);
        for source in variables.read {
            self.remember(source);
        }
        server
    }
}
