//! Commands that change the set of servers: `add`, `remove`, `trust`; and the review of new servers.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use pml_model::{Definition, ServerName};
use tokio_util::sync::CancellationToken;

use super::ask::read_confirmation;
use super::{CommandContext, out};
use crate::accepted::{self, AcceptedCommands};
use crate::app::{App, ProcessRole};
use crate::catalogue::QuarantinedTool;
use crate::config::edit::{self, ExistingServer, NewPermissionRule, NewServer};
use crate::config::trust::ProjectConfig;
use crate::config::{self, ApprovalMode, DeclaredTransport};
use crate::problem::{ErrorCode, Problem, unknown_server};

/// Arguments of `pml add`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pml add time -- uvx mcp-server-time\n  pml add github --env GITHUB_PERSONAL_ACCESS_TOKEN='${GITHUB_TOKEN}' -- npx -y @modelcontextprotocol/server-github\n  pml add search --url https://example.com/mcp --header Authorization='Bearer ${SEARCH_TOKEN}'"
)]
pub(super) struct AddServerArgs {
    /// The name of the server
    name: String,
    /// The address of an HTTP server, instead of a command
    #[arg(long, conflicts_with = "command")]
    url: Option<String>,
    /// An environment variable of the server; `${VAR}` expands when it starts
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, conflicts_with = "url")]
    env: Vec<(String, String)>,
    /// An HTTP header of every request
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair, requires = "url")]
    header: Vec<(String, String)>,
    /// The working directory of the server
    #[arg(long, conflicts_with = "url")]
    cwd: Option<String>,
    /// What it is for, shown to agents
    #[arg(long)]
    description: Option<String>,
    /// Replace a server of the same name
    #[arg(long)]
    replace: bool,
    /// Allow tools that declare themselves read-only, ask about all others, and do not prompt
    #[arg(long)]
    yes: bool,
    /// The command and its arguments, after --
    #[arg(last = true)]
    command: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Shows the tools of servers that have no rules yet, imported ones included, and writes rules for those that a
/// person accepts.
pub(super) async fn review_new_servers(here: &CommandContext) -> Result<(), Problem> {
    let app = here.open_app(ProcessRole::Command).await?;
    let config = app.config();
    let is_new = |server: &&config::ServerConfig| {
        server.enabled
            && !config.permissions.iter().any(|rule| rule.subject.server.matches(server.name.as_str()))
    };
    let mut done = Ok(());
    for server in config.servers.iter().filter(is_new) {
        done = match start_and_list(&app, &server.name, IntroducedBy::Init).await {
            Ok(offered) => {
                let (reading, writing) = offered.split_by_claim();
                out::line(format!("`{}`: {} tools", server.name, reading.len() + writing.len()));
                review_tools(here, &app, &server.name, &offered, false).await
            }
            // One server's failure does not keep the others from being shown.
            Err(problem) => {
                out::error(&problem);
                Ok(())
            }
        };
        if done.is_err() {
            break;
        }
    }
    app.close().await;
    done
}

pub(super) async fn add(here: &CommandContext, add: AddServerArgs) -> Result<ExitCode, Problem> {
    let server = new_server(&add)?;
    for warning in config::launch_warnings(&add.name, &server.declared) {
        out::note(format!("{}warning{}: {warning}", out::YELLOW, out::RESET));
    }
    let existing = if add.replace { ExistingServer::Replace } else { ExistingServer::Keep };
    edit::add_server(&here.paths.config, &server, existing)?;
    let app = here.open_app(ProcessRole::Command).await?;
    let added = add_tools(here, &app, &server.name, add.yes).await;
    app.close().await;
    added.map(|()| ExitCode::SUCCESS)
}

/// Starts a server that was just added. Adding it is the person's consent to run its command.
async fn add_tools(here: &CommandContext, app: &App, name: &ServerName, yes: bool) -> Result<(), Problem> {
    let config = app.config();
    if let Some(server) = config.servers.iter().find(|server| server.name == *name) {
        AcceptedCommands::open(&app.settings.paths).accept(std::iter::once(config::launch_digest(server)))?;
    }
    let offered = start_and_list(app, name, IntroducedBy::Add).await?;
    if !here.json {
        let (reading, writing) = offered.split_by_claim();
        let count = reading.len() + writing.len();
        out::line(format!("added `{name}` to {}: {count} tools", here.paths.config.display()));
    }
    review_tools(here, app, name, &offered, yes).await
}

/// Shows the tools of a new server, and writes rules for those that a person accepts.
async fn review_tools(
    here: &CommandContext,
    app: &App,
    name: &ServerName,
    offered: &OfferedTools,
    yes: bool,
) -> Result<(), Problem> {
    let (reading, writing) = offered.split_by_claim();
    if !here.json {
        show_tools(&reading, &writing);
    }
    let asks = !here.json && std::io::stdin().is_terminal();
    let accepts = match yes {
        true => true,
        false if asks => {
            read_confirmation("let programs call those that read, and ask about the others?").await
                == Some(true)
        }
        false => false,
    };
    if accepts {
        accept(app, name, offered, (&reading, &writing)).await?;
    }
    if here.json {
        let names =
            |tools: &[&Definition]| -> Vec<String> { tools.iter().map(|tool| tool.name.clone()).collect() };
        let all: Vec<String> = names(&[&reading[..], &writing[..]].concat());
        out::json(&serde_json::json!({
            "server": name, "tools": all, "reading": names(&reading), "accepted": accepts,
        }));
    } else if accepts {
        out::line(format!(
            "programs may call {} of them without asking; [permissions] of {} says so",
            reading.len(),
            here.paths.config.display()
        ));
    } else {
        out::note(
            "no permissions were written: a person is asked before programs call them (`--yes` accepts what is shown)",
        );
    }
    Ok(())
}

/// Writes rules for the tools of a new server, unless it has some, and accepts their definitions.
async fn accept(
    app: &App,
    name: &ServerName,
    offered: &OfferedTools,
    (reading, writing): (&[&Definition], &[&Definition]),
) -> Result<(), Problem> {
    let config = app.config();
    if let Some(server) = config.servers.iter().find(|server| server.name == *name) {
        AcceptedCommands::open(&app.settings.paths).accept(std::iter::once(config::launch_digest(server)))?;
        accepted::accept_definitions(
            (&app.tools, &app.store, &app.principal),
            server,
            &offered.held_back,
            offered.by.command(),
        )
        .await?;
    }
    // A `*` in a rule would match other tools too.
    let plain = reading.iter().filter(|tool| !tool.name.contains('*'));
    let mut rules: Vec<NewPermissionRule> = plain
        .map(|tool| NewPermissionRule {
            subject: format!("{name}:{}", tool.name),
            approval: ApprovalMode::Auto,
        })
        .collect();
    if !writing.is_empty() {
        rules.insert(0, NewPermissionRule { subject: name.to_string(), approval: ApprovalMode::Hil });
    }
    rules.retain(|rule| {
        let (server, tool) = rule.subject.split_once(':').unwrap_or((&rule.subject, "*"));
        !config
            .permissions
            .iter()
            .any(|known| known.subject.server.as_str() == server && known.subject.tool.as_str() == tool)
    });
    Ok(edit::add_rules(&app.settings.paths.config, &rules)?)
}

fn new_server(add: &AddServerArgs) -> Result<NewServer, Problem> {
    let invalid = |text: String| Problem::new(ErrorCode::InvalidRequest, text);
    let name = ServerName::new(&add.name).map_err(|error| invalid(error.to_string()))?;
    let declared = match (&add.url, add.command.split_first()) {
        (Some(url), _) => {
            DeclaredTransport::Http { url: url.clone(), headers: add.header.iter().cloned().collect() }
        }
        (None, Some((command, args))) => DeclaredTransport::Stdio {
            command: command.clone(),
            args: args.to_vec(),
            env: add.env.iter().cloned().collect::<BTreeMap<_, _>>(),
            cwd: add.cwd.clone(),
        },
        (None, None) => {
            return Err(invalid("a server needs a command after `--`, or `--url`".to_owned())
                .hint("for example `pml add time -- uvx mcp-server-time`"));
        }
    };
    Ok(NewServer { description: add.description.clone(), ..NewServer::new(name, declared) })
}

/// The command that shows the server.
#[derive(Clone, Copy)]
enum IntroducedBy {
    Add,
    Init,
}

impl IntroducedBy {
    fn past_phrase(self) -> &'static str {
        match self {
            IntroducedBy::Add => "was added",
            IntroducedBy::Init => "is configured",
        }
    }

    fn command(self) -> &'static str {
        match self {
            IntroducedBy::Add => "pml add",
            IntroducedBy::Init => "pml init",
        }
    }
}

/// The tools of a new server.
struct OfferedTools {
    by: IntroducedBy,
    usable: Vec<Arc<Definition>>,
    /// Quarantined tools, because another server had the same name before.
    held_back: Vec<QuarantinedTool>,
}

impl OfferedTools {
    /// The tools that declare themselves read-only, and the others.
    fn split_by_claim(&self) -> (Vec<&Definition>, Vec<&Definition>) {
        let held = self.held_back.iter().map(|held| &held.definition);
        self.usable
            .iter()
            .chain(held)
            .map(AsRef::as_ref)
            .partition(|tool| tool.annotations.read_only_hint == Some(true))
    }
}

/// Starts a server and lists its tools.
async fn start_and_list(app: &App, name: &ServerName, by: IntroducedBy) -> Result<OfferedTools, Problem> {
    let config = app.config();
    let Some(server) = config.servers.iter().find(|server| server.name == *name) else {
        let why = config.findings.problems.iter().find(|problem| problem.server == name.as_str());
        return Err(Problem::new(
            ErrorCode::Config,
            why.map_or_else(|| format!("server `{name}` cannot be used"), ToString::to_string),
        ));
    };
    let slot = app
        .tools
        .servers
        .get(name)
        .ok_or_else(|| Problem::new(ErrorCode::Config, format!("server `{name}` is not enabled")))?;
    let deadline = Instant::now() + server.start_timeout;
    slot.connection(deadline, &CancellationToken::new()).await.map_err(|unavailable| {
        let Problem { message, code, .. } = unavailable.0;
        let text = format!("`{name}` {}, but {message}", by.past_phrase());
        if code == ErrorCode::LoginRequired {
            return Problem::new(code, text).hint(format!("run `pml login {name}`"));
        }
        Problem::new(ErrorCode::ServerDown, text)
            .hint(format!("correct it in {} or run `pml remove {name}`", app.settings.paths.config.display()))
    })?;
    app.tools.wait_until_listed(&slot).await;
    let snapshot = app.tools.snapshot();
    let held =
        snapshot.quarantined.iter().filter(|held| held.id.server == *name && held.reason.needs_acceptance());
    Ok(OfferedTools {
        by,
        usable: snapshot.tools_of(name).map(|tool| Arc::clone(&tool.definition)).collect(),
        held_back: held.cloned().collect(),
    })
}

/// Prints tools grouped by whether they claim to only read.
fn show_tools(reading: &[&Definition], writing: &[&Definition]) {
    for (title, tools) in [("reading, by their own word", reading), ("writing, or silent about it", writing)]
    {
        if !tools.is_empty() {
            let names: Vec<String> =
                tools.iter().map(|tool| pml_model::name::printable(&tool.name)).collect();
            out::line(format!("  {title}: {}", names.join(", ")));
        }
    }
}

pub(super) async fn remove(here: &CommandContext, name: &str) -> Result<ExitCode, Problem> {
    let removed = edit::remove_server(&here.paths.config, name)?;
    if !removed {
        let config = config::load(&here.paths, &here.cwd, &here.env)?;
        return Err(unknown_server(name, config.servers.iter().map(|server| server.name.as_str())));
    }
    if let Ok(server) = ServerName::new(name) {
        let store = here.open_store().await?;
        let principal = pml_model::Principal::local();
        store.remove_server(&principal, &server).await?;
    }
    if here.json {
        out::json(&serde_json::json!({ "removed": name, "config": here.paths.config }));
    } else {
        out::line(format!("removed `{name}` from {}", here.paths.config.display()));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn trust(here: &CommandContext, dir: &Path) -> Result<ExitCode, Problem> {
    let projects = ProjectConfig::find(&here.cwd.join(dir))?;
    let Some(project) = projects.first() else {
        return Err(Problem::new(
            ErrorCode::Config,
            format!("there is no pml.toml in or above `{}`", dir.display()),
        )
        .hint("a project's file is called pml.toml or .pml/pml.toml"));
    };
    config::trust::trust(&here.paths, project)?;
    if here.json {
        out::json(&serde_json::json!({ "trusted": project.path }));
        return Ok(ExitCode::SUCCESS);
    }
    out::line(format!(
        "trusted {} as it is now; a change of it needs `pml trust` again",
        project.path.display()
    ));
    Ok(ExitCode::SUCCESS)
}
