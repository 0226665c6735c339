//! Loads the files into a [`Config`].

use std::path::Path;

use pml_model::Digest;

use super::error::{ConfigComplaint, Error, LeftOutServer, nearest_word};
use super::launch::ConfigWarning;
use super::names::ClaimedNames;
use super::node::{self, ConfigFile};
use super::paths::{Env, Paths};
use super::permission::{self, PermissionRule, RuleFormat, RuleSubject, YAML_FILE};
use super::section::Section;
use super::server::ServerDraft;
use super::settings::{self, BUILT_IN, UserSettings};
use super::trust::{self, ProjectConfig};
use super::variables::VariableExpander;
use super::{CLIENT_WAIT, Config, ConfigFindings, ConfigSource, ServerConfig, disk, yaml};

/// Reads the user's configuration, its imports, and the trusted configuration of the project that `cwd` is in.
/// Without any of these files the defaults hold.
///
/// # Errors
/// A file cannot be read, or its content is invalid; the error names the first invalid position.
pub fn load(paths: &Paths, cwd: &Path, env: &Env) -> Result<Config, Error> {
    let mut loading = ConfigLoader { env, findings: ConfigFindings::default() };
    let mut settings = loading.user(&paths.config)?;
    loading.permissions(&disk::parent(&paths.config).join(YAML_FILE), &mut settings.permissions)?;
    loading.findings.warnings.extend(settings.outdated_settings.into_iter().map(|outdated| ConfigWarning {
        message: outdated.place_and_message(),
        hint: outdated.hint.unwrap_or_default(),
    }));
    let mut drafts = settings.drafts;
    for (path, named_at) in settings.imports {
        drafts.extend(loading.import(&path, &named_at)?);
    }
    drafts.extend(loading.project(paths, cwd)?);

    let mut names = ClaimedNames::new(&settings.builtin);
    let mut servers = Vec::new();
    for draft in drafts {
        match loading.server(draft, &mut names) {
            Ok(server) => servers.push(server),
            Err(problem) => loading.findings.problems.push(problem),
        }
    }
    let rules = settings.permissions.iter().map(|rule| (&rule.subject, &*rule.label, &*rule.place));
    let prices = settings.prices.iter().map(|price| (&price.subject, &*price.label, &*price.place));
    loading.check_subjects(rules.chain(prices), &servers);
    Ok(Config {
        servers,
        expose: settings.expose,
        client_wait: settings.client_wait.unwrap_or(CLIENT_WAIT),
        clients: settings.clients,
        builtin: settings.builtin,
        serve: settings.serve,
        names: settings.names,
        permissions: settings.permissions,
        prices: settings.prices,
        approvals: settings.approvals,
        memory: settings.memory,
        speculation: settings.speculation,
        embedding: settings.embedding,
        store: settings.store,
        telemetry: settings.telemetry,
        limits: settings.limits,
        runs: settings.runs,
        findings: loading.findings,
    })
}

struct ConfigLoader<'e> {
    env: &'e Env,
    findings: ConfigFindings,
}

impl ConfigLoader<'_> {
    /// The bytes of `path`; the file and its digest are added to the sources.
    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, Error> {
        let bytes = disk::read(path)?;
        self.remember(ConfigSource { path: path.to_owned(), digest: bytes.as_deref().map(Digest::of) });
        Ok(bytes)
    }

    fn remember(&mut self, source: ConfigSource) {
        let sources = &mut self.findings.sources;
        if !sources.iter().any(|known| known.path == source.path) {
            sources.push(source);
        }
    }

    fn user(&mut self, path: &Path) -> Result<UserSettings, Error> {
        let Some(bytes) = self.read(path)? else { return Ok(UserSettings::default()) };
        self.check_mode(path);
        let file = ConfigFile::new(path, bytes, self.env)?;
        Ok(settings::read_user(&file, self.env)?)
    }

    /// Adds the rules of `mcp-permissions.yaml` beside the user's `pml.toml`, where it exists.
    fn permissions(&mut self, path: &Path, rules: &mut Vec<PermissionRule>) -> Result<(), Error> {
        let Some(bytes) = self.read(path)? else { return Ok(()) };
        self.check_mode(path);
        let file = ConfigFile::new(path, bytes, self.env)?;
        let root = yaml::parse_yaml(&file)?;
        Ok(permission::read_rules(&Section::open(&file, &root, "")?, RuleFormat::Yaml, rules)?)
    }

    /// Warns about rules and prices whose server name is a probable misspelling, since such a rule would forbid nothing.
    /// Each comes with its label and its place. A name unlike any other may belong to a project that is not open now.
    fn check_subjects<'r>(
        &mut self,
        rules: impl Iterator<Item = (&'r RuleSubject, &'r str, &'r str)>,
        servers: &[ServerConfig],
    ) {
        let left_out = self.findings.problems.iter().map(|problem| problem.server.as_str());
        let known: Vec<&str> = servers
            .iter()
            .map(|server| server.name.as_str())
            .chain(left_out)
            .chain(BUILT_IN.iter().copied())
            .collect();
        let mut warnings = Vec::new();
        for (subject, label, place) in rules {
            if known.iter().any(|name| subject.server.matches(name)) {
                continue;
            }
            if let Some(near) = nearest_word(subject.server.as_str(), &known) {
                warnings.push(ConfigWarning {
                    message: format!("{place}: {label} is about no server there is"),
                    hint: format!("did you mean `{near}`?"),
                });
            }
        }
        self.findings.warnings.extend(warnings);
    }

    /// Warns where other users can write the configuration: they could have any program started.
    fn check_mode(&mut self, path: &Path) {
        for path in [path, &disk::parent(path)] {
            if disk::open_to_others(path, 0o022) != 0 {
                let shown = self.env.display_path(path);
                self.findings.warnings.push(ConfigWarning {
                    message: format!("other users can write `{shown}`, and so have programs started as you"),
                    hint: format!("run `chmod go-w {shown}`"),
                });
            }
        }
    }

    /// The servers of another program's file. A server that cannot be read is left out, since the file is not the
    /// user's to fix.
    fn import(&mut self, path: &Path, named_at: &ConfigComplaint) -> Result<Vec<ServerDraft>, Error> {
        let Some(bytes) = self.read(path)? else {
            let shown = self.env.display_path(path);
            self.findings.warnings.push(ConfigWarning {
                message: format!(
                    "{}:{}: the file `{shown}` does not exist",
                    named_at.shown_path, named_at.line
                ),
                hint: "remove it from `import`; it is used as soon as it exists".to_owned(),
            });
            return Ok(Vec::new());
        };
        self.check_mode(path);
        let file = ConfigFile::new(path, bytes, self.env)?;
        let mut drafts = Vec::new();
        for member in node::parse_json_members(&file, &["mcpServers", "servers"])? {
            let servers = Section::open(&file, &member.node, &member.key)?;
            for member in servers.members() {
                match ServerDraft::from_json(&file, member) {
                    Ok(draft) => drafts.push(draft),
                    Err(complaint) => {
                        self.findings.problems.push(LeftOutServer {
                            server: member.key.clone(),
                            complaint: Box::new(complaint),
                        });
                    }
                }
            }
        }
        Ok(drafts)
    }

    /// The servers of the nearest trusted project. An untrusted project file on the way up does not hide a trusted one.
    fn project(&mut self, paths: &Paths, cwd: &Path) -> Result<Vec<ServerDraft>, Error> {
        let trusted = trust::TrustStore::open(paths)?;
        self.remember(trusted.source());
        for project in ProjectConfig::find_upwards(cwd, paths)? {
            self.remember(project.source());
            if !trusted.trusts(&project) {
                self.findings.untrusted.push(project.path);
                continue;
            }
            self.check_mode(&project.path);
            let file = ConfigFile::new(&project.path, project.content, self.env)?;
            return Ok(settings::read_project(&file)?);
        }
        Ok(Vec::new())
    }

    fn server(
        &mut self,
        draft: ServerDraft,
        names: &mut ClaimedNames,
    ) -> Result<ServerConfig, LeftOutServer> {
        let name = names.claim(&draft)?;
        let base = trust::base_dir(draft.file());
        let mut variables = VariableExpander::new(self.env, &base);
        let server = draft.resolve(name, &mut variables, self.env, &base);
        for source in variables.files_read {
            self.remember(source);
        }
        server
    }
}
