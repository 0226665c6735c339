//! `pml doctor`: checks the installation and gives a hint for each problem.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use pml_model::question::Answerer;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::call::embed_with_bar;
use super::{CommandContext, out};
use crate::app::{App, ProcessRole};
use crate::config::{self, DeclaredTransport};
use crate::passphrase;
use crate::problem::Problem;
use crate::servers::ServerHandle;

/// The result of one check.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    verdict: FindingLevel,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingLevel {
    Good,
    Warning,
    Bad,
}

pub(super) async fn run(here: &CommandContext) -> Result<ExitCode, Problem> {
    let findings = collect_findings(here).await;
    if here.json {
        out::json(&findings);
    } else {
        findings.iter().for_each(show);
    }
    Ok(exit_code(&findings))
}

/// Runs all checks.
pub(super) async fn collect_findings(here: &CommandContext) -> Vec<Finding> {
    let mut findings = Vec::new();
    match here.open_app(ProcessRole::Command).await {
        Ok(app) => {
            run_checks(&app, &mut findings).await;
            app.close().await;
        }
        Err(problem) => findings.push(bad(problem.message, problem.hint)),
    }
    findings
}

/// A failure where any finding is bad.
pub(super) fn exit_code(findings: &[Finding]) -> ExitCode {
    let worst = findings.iter().any(|finding| finding.verdict == FindingLevel::Bad);
    if worst { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

async fn run_checks(app: &Arc<App>, findings: &mut Vec<Finding>) {
    let config = app.config();
    findings.push(good(match app.settings.paths.config.exists() {
        true => format!("configuration {}", app.settings.paths.config.display()),
        false => format!(
            "no configuration at {}; the defaults are used (`pml init` writes one)",
            app.settings.paths.config.display()
        ),
    }));
    findings.extend(check_database(app).await);
    for problem in &config.findings.problems {
        findings.push(bad(problem.complaint.place_and_message(), problem.complaint.hint.clone()));
    }
    for warning in &config.findings.warnings {
        findings.push(warn(warning.message.clone(), Some(warning.hint.clone())));
    }
    for server in &config.servers {
        findings.extend(
            config::launch_warnings(server.name.as_str(), &server.declared)
                .into_iter()
                .map(|w| warn(w.message, Some(w.hint))),
        );
        findings.extend(plain_secrets(server.name.as_str(), &server.declared));
    }
    for path in &config.findings.untrusted {
        let hint = "read it, then run `pml trust` in its directory";
        findings.push(warn(format!("{} is not trusted and not used", path.display()), Some(hint.to_owned())));
    }
    findings.extend(app.tools.why_fs_is_off().map(|Problem { message, hint, .. }| warn(message, hint)));
    findings.extend(check_approvals(app));
    findings.push(check_process_guard());
    findings.push(check_walls());
    findings.push(check_sandbox(app).await);
    let trying: Vec<_> = app
        .tools
        .servers
        .all()
        .into_iter()
        .map(|slot| async move { check_server(app, &slot).await })
        .collect();
    for found in futures_util::future::join_all(trying).await {
        findings.extend(found);
    }
    findings.extend(check_embeddings(app).await);
    let snapshot = app.tools.snapshot();
    for held in &snapshot.quarantined {
        let Problem { message, hint, .. } = held.problem();
        findings.push(warn(pml_model::name::printable(&message), hint));
    }
    for tool in &snapshot.tools {
        if let Some(reason) = app.tools.validators.schema_problem(&tool.definition) {
            let text = format!(
                "the input schema of `{}` cannot be used, so its arguments are not checked: {}",
                tool.id,
                pml_model::name::printable(&reason)
            );
            findings.push(warn(text, Some("tell the author of the server".to_owned())));
        }
    }
}

/// Checks the integrity of the database: every page, and every row that decisions depend on.
async fn check_database(app: &Arc<App>) -> Vec<Finding> {
    let shown = app.store.path().display().to_string();
    let restore = || Some("end PML, then put a backup in its place with `pml restore PATH`".to_owned());
    let whole = match app.store.check_integrity().await {
        Ok(whole) => whole,
        Err(error) => {
            let Problem { message, hint, .. } = error.into();
            return vec![bad(message, hint.or_else(restore))];
        }
    };
    let file = whole
        .file_errors
        .iter()
        .map(|complaint| bad(format!("database {shown} is damaged: {complaint}"), restore()));
    let rows = whole.damaged_rows.iter().map(|row| {
        bad(format!("a row of the database is damaged or was altered, and is left out: {row}"), restore())
    });
    let found: Vec<Finding> = file.chain(rows).collect();
    if found.is_empty() {
        vec![good(format!("database {shown}, every page and row as it was stored"))]
    } else {
        found
    }
}

/// Checks whether tools and intents get embeddings; `None` where no model is configured.
pub(super) async fn check_embeddings(app: &Arc<App>) -> Option<Finding> {
    embed_with_bar(app).await;
    let progress = app.knowledge.embeddings.progress()?;
    let (model, left) = (pml_model::name::printable(&progress.model), progress.remaining);
    Some(match progress.last_error {
        Some(trouble) => {
            let text =
                format!("tools are found by their words alone: {}", pml_model::name::printable(&trouble));
            warn(text, Some("mend `[embedding]`, or write `model = \"built-in\"` there".to_owned()))
        }
        None if left > 0 => good(format!("{model} reads tools and intents; {left} are left")),
        None => good(format!("{model} has read all tools and intents")),
    })
}

/// Checks whether approvals that need a person can only come from a person.
fn check_approvals(app: &App) -> Vec<Finding> {
    let mut findings = Vec::new();
    if app.config().approvals.answerer == Some(Answerer::Client) {
        let text = "with `approvals.by = \"client\"` whoever reaches `pml serve` can approve its own calls";
        let hint = "take it out, or write \"human\": then only a person may approve";
        findings.push(warn(text.to_owned(), Some(hint.to_owned())));
    }
    match passphrase::is_set(&app.settings.paths, &app.store) {
        Ok(true) => {}
        Ok(false) => {
            let text = "no passphrase is set, so nobody can sign in at the dashboard or approve as a person";
            let hint = "run `pml passphrase` in a terminal";
            findings.push(warn(text.to_owned(), Some(hint.to_owned())));
        }
        Err(problem) => findings.push(bad(problem.message, problem.hint)),
    }
    findings
}

/// Checks whether server processes end with PML, even if PML is killed.
fn check_process_guard() -> Finding {
    if cfg!(target_os = "linux") {
        good("server processes end with PML, however it ends".to_owned())
    } else {
        let hint = "on this system a server may outlive PML when PML is killed";
        warn("server processes are not tied to PML".to_owned(), Some(hint.to_owned()))
    }
}

/// Checks which protections the sandbox has on this system.
pub(super) fn check_walls() -> Finding {
    let missing = pml_sandbox::available_walls().missing_walls();
    if missing.is_empty() {
        return good(
            "programs run behind all walls: own process, limits, no privileges, no files, no network, few system calls"
                .to_owned(),
        );
    }
    let hint = "programs still run in a process of their own without environment or descriptors; a newer kernel has the rest";
    warn(format!("programs run without these walls: {}", missing.join(", ")), Some(hint.to_owned()))
}

/// Checks whether a program can be run at all.
pub(super) async fn check_sandbox(app: &App) -> Finding {
    let started = Instant::now();
    match crate::execute::check_worker_available(&app.runs).await {
        Ok(()) => good(format!("a sandbox was ready after {} ms", started.elapsed().as_millis())),
        Err(problem) => bad(problem.message, problem.hint),
    }
}

async fn check_server(app: &App, slot: &Arc<ServerHandle>) -> Vec<Finding> {
    let started = Instant::now();
    let deadline = started + slot.settings().start_timeout;
    let name = slot.name();
    match slot.connection(deadline, &CancellationToken::new()).await {
        Ok(connection) => {
            app.tools.wait_until_listed(slot).await;
            let tools = app.tools.snapshot().tools_of(name).count();
            let about = connection.profile();
            let text = format!(
                "server `{name}`: {tools} tools, protocol {}, ready after {} ms",
                about.version,
                started.elapsed().as_millis()
            );
            let refused = app
                .tools
                .refused_definitions(name)
                .into_iter()
                .map(|reason| warn(format!("server `{name}`: {reason}"), None));
            std::iter::once(good(text)).chain(refused).collect()
        }
        Err(unavailable) => {
            let Problem { message, .. } = unavailable.0;
            vec![bad(
                message,
                Some(format!(
                    "start it by hand to see more: {}",
                    super::list::describe_transport(
                        &slot.settings().declared,
                        &app.knowledge.memory.sanitiser()
                    )
                )),
            )]
        }
    }
}

/// Values in the configuration that look like credentials in plain text.
fn plain_secrets(name: &str, declared: &DeclaredTransport) -> Vec<Finding> {
    let values = match declared {
        DeclaredTransport::Stdio { env, .. } => env,
        DeclaredTransport::Http { headers, .. } => headers,
    };
    let telling = ["token", "key", "secret", "password", "authorization"];
    values
        .iter()
        .filter(|(key, value)| {
            let key = key.to_ascii_lowercase();
            value.len() >= 12 && !value.contains("${") && telling.iter().any(|word| key.contains(word))
        })
        .map(|(key, _)| {
            let hint = format!(
                "put it into the environment and write `${{{key}}}`, or into a file and write `${{file:…}}`"
            );
            warn(format!("`{key}` of server `{name}` stands in the configuration as it is"), Some(hint))
        })
        .collect()
}

pub(super) fn good(what: String) -> Finding {
    Finding { verdict: FindingLevel::Good, what, hint: None }
}

fn warn(what: String, hint: Option<String>) -> Finding {
    Finding { verdict: FindingLevel::Warning, what, hint }
}

pub(super) fn bad(what: String, hint: Option<String>) -> Finding {
    Finding { verdict: FindingLevel::Bad, what, hint }
}

pub(super) fn show(finding: &Finding) {
    let mark = match finding.verdict {
        FindingLevel::Good => format!("{}ok{}  ", out::GREEN, out::RESET),
        FindingLevel::Warning => format!("{}warn{}", out::YELLOW, out::RESET),
        FindingLevel::Bad => format!("{}bad{} ", out::BOLD_RED, out::RESET),
    };
    out::line(format!("{mark} {}", finding.what));
    if let Some(hint) = &finding.hint {
        out::line(format!("     {}hint{}: {hint}", out::CYAN, out::RESET));
    }
}
