//! Any failure, as a person or an agent is told of it: a code, a sentence and what to do.
//!
//! Stages have error types of their own; here they become MCP results, JSON for programs and text
//! for terminals, all saying the same.

use pml_mcp::client::{Failure, Lost, NotSent};
use pml_mcp::{RpcError, code};
use pml_model::json::raw;
use pml_model::name::printable;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config;

/// What went wrong, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// For programs; stable.
    pub code: Code,
    /// One sentence that names the thing.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For a call: whether anything can have happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<Sent>,
}

/// Whether a call that has no answer can have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sent {
    /// Nothing reached the server.
    No,
    /// It was sent, and nobody knows.
    Unknown,
}

/// The kinds of problem a caller may act on differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Code {
    /// No such server.
    UnknownServer,
    /// No such tool.
    UnknownTool,
    /// A tool of earlier versions that another one replaces.
    RemovedTool,
    /// A tool that is held back.
    Quarantined,
    /// The arguments break the schema.
    InvalidArguments,
    /// The server cannot be used now.
    ServerDown,
    /// The server is not ready yet.
    ServerStarting,
    /// The server waits for a person's word before it may be started.
    NotAccepted,
    /// The server ended while it worked on the request.
    DownstreamDied,
    /// No answer in time.
    Timeout,
    /// The caller cancelled.
    Cancelled,
    /// The server wants fewer requests.
    RateLimited,
    /// The server wants other credentials.
    Unauthorized,
    /// The server's answer cannot be used.
    BadAnswer,
    /// The server answered with an error.
    ServerError,
    /// The tool needs input that this caller cannot be asked for.
    InputRequired,
    /// The request is larger than may be.
    TooLarge,
    /// The request itself is malformed.
    InvalidRequest,
    /// The rules do not allow it.
    Denied,
    /// Somebody answered before.
    AlreadyAnswered,
    /// A tool is no longer what it was.
    ToolChanged,
    /// Too many questions wait for an answer already.
    TooManyQuestions,
    /// The program has mistakes and is not run.
    InvalidProgram,
    /// Too much is going on already.
    Busy,
    /// Programs cannot be run here.
    Sandbox,
    /// No such run.
    UnknownRun,
    /// No such capability, or no such trace.
    NotFound,
    /// It was there and is no longer kept.
    Gone,
    /// The database cannot be used.
    Storage,
    /// No space is left for the database.
    StorageFull,
    /// Another process holds the database.
    StorageBusy,
    /// The database is damaged.
    StorageDamaged,
    /// The configuration cannot be used.
    Config,
}

impl Problem {
    /// A problem and, mostly, a way out.
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), hint: None, sent: None }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// The same, saying whether the call was sent.
    #[must_use]
    pub fn sent(mut self, sent: Sent) -> Problem {
        self.sent = Some(sent);
        self
    }

    /// The code as it is written.
    pub fn code_text(&self) -> String {
        self.code.text()
    }

    /// As the result of a call of one of our own tools.
    pub fn to_tool_result(&self) -> Box<RawValue> {
        raw(&json!({
            "content": [{ "type": "text", "text": self.to_string() }],
            "structuredContent": { "status": "failed", "error": self },
            "isError": true,
        }))
    }

    /// As the result of a call of a tool that says what its results look like: clients check structured content
    /// against that, and would show their own complaint instead of this one.
    pub fn to_typed_tool_result(&self) -> Box<RawValue> {
        raw(&json!({
            "content": [{ "type": "text", "text": self.to_string() }],
            "isError": true,
            "_meta": { "pml/error": self },
        }))
    }

    /// As a protocol error.
    pub fn to_rpc(&self) -> RpcError {
        RpcError::new(code::INVALID_PARAMS, self.to_string()).with_data(&json!({ "error": self }))
    }

    /// Why a request to server `server` has no result.
    pub fn of_failure(server: &str, failure: &Failure) -> Problem {
        let retry = "whether it acted is not known: check before you call again";
        match failure {
            Failure::NotSent(reason) => Problem::of_not_sent(server, reason),
            Failure::Rpc(error) => Problem::new(
                Code::ServerError,
                format!("server `{server}` answered: {}", printable(&error.message)),
            ),
            Failure::Unknown(Lost::Died(reason)) => Problem::new(
                Code::DownstreamDied,
                format!("server `{server}` ended during the call: {reason}"),
            )
            .hint(format!("{retry}; it is started again when next needed, and `pml doctor` tells more")),
            Failure::Unknown(Lost::Timeout) => {
                Problem::new(Code::Timeout, format!("server `{server}` did not answer in time"))
                    .hint(format!("{retry}; `call_timeout` of the server sets the time"))
            }
            Failure::Unknown(Lost::Cancelled) => {
                Problem::new(Code::Cancelled, format!("the call to server `{server}` was cancelled"))
                    .hint(retry)
            }
            Failure::Unknown(Lost::Garbage(reason)) => Problem::new(
                Code::BadAnswer,
                format!("server `{server}` gave an unusable answer: {}", printable(reason)),
            )
            .hint(retry),
        }
    }

    fn of_not_sent(server: &str, reason: &NotSent) -> Problem {
        let text =
            format!("the request was not sent to server `{server}`: {}", printable(&reason.to_string()));
        match reason {
            NotSent::Closed(_) | NotSent::Connect(_) | NotSent::SessionEnded | NotSent::Stalled => {
                Problem::new(Code::ServerDown, text).hint("nothing was done; try again, or see `pml doctor`")
            }
            NotSent::Cancelled => Problem::new(Code::Cancelled, text),
            NotSent::Unauthorized(_) => Problem::new(Code::Unauthorized, text)
                .hint(format!("set `bearer` or `headers` of `[servers.{server}]` in pml.toml")),
            NotSent::RateLimited(wait) => Problem::new(Code::RateLimited, text)
                .hint(format!("try again after {} s", wait.as_secs_f64().ceil())),
            NotSent::TooLarge => Problem::new(Code::TooLarge, text).hint("send less, or in parts"),
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code_text(), self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<pml_store::Error> for Problem {
    fn from(error: pml_store::Error) -> Problem {
        use pml_store::Error;
        let problem = Problem::new(storage_code(&error), error.to_string());
        match error {
            Error::Full { .. } => problem.hint("free some space; nothing has to be restarted"),
            Error::Busy { .. } => problem.hint("try again; `pml doctor` tells which processes run"),
            Error::Corrupt { .. } | Error::NotADatabase { .. } => problem.hint(
                "end PML, then put a backup in its place with `pml restore PATH`; `pml doctor` tells what is damaged",
            ),
            _ => problem,
        }
    }
}

/// Which kind of trouble with the database an error tells of.
pub fn storage_code(error: &pml_store::Error) -> Code {
    match error {
        pml_store::Error::Full { .. } => Code::StorageFull,
        pml_store::Error::Busy { .. } => Code::StorageBusy,
        pml_store::Error::Corrupt { .. } | pml_store::Error::NotADatabase { .. } => Code::StorageDamaged,
        _ => Code::Storage,
    }
}

impl Code {
    /// The code as it is written.
    pub fn text(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

impl From<config::Error> for Problem {
    fn from(error: config::Error) -> Problem {
        match error {
            config::Error::Invalid(complaint) => Problem::from(&*complaint),
            config::Error::Refused { message, hint } => Problem::new(Code::Config, message).hint(hint),
            config::Error::Io { .. } => Problem::new(Code::Config, error.to_string()),
        }
    }
}

impl From<&config::Complaint> for Problem {
    fn from(complaint: &config::Complaint) -> Problem {
        let problem = Problem::new(Code::Config, complaint.place_and_message());
        match &complaint.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// That no server has this name, with the nearest of those there are.
pub fn unknown_server<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Problem {
    let hint = did_you_mean(&nearest(name, known))
        .unwrap_or_else(|| "`pml list` shows the servers there are".to_owned());
    Problem::new(Code::UnknownServer, format!("no server is called `{}`", printable(name))).hint(hint)
}

/// The words nearest to `wanted`, best first, at most three.
pub fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = known
        .map(|word| {
            let lower = word.to_lowercase();
            (likeness(&wanted, &lower), word)
        })
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, word)| word).collect()
}

/// How alike two names are, from 0 to 1. A server both have in common says nothing about the tool.
fn likeness(wanted: &str, known: &str) -> f64 {
    let (wanted_server, wanted_tool) = wanted.split_once(':').unwrap_or(("", wanted));
    let (server, tool) = known.split_once(':').unwrap_or(("", known));
    let tools = strsim::jaro_winkler(wanted_tool, tool);
    if server == wanted_server { tools } else { strsim::jaro_winkler(wanted, known).max(tools - 0.02) }
}

/// "did you mean …" for the nearest words, where there are any.
pub fn did_you_mean(nearest: &[&str]) -> Option<String> {
    let quoted: Vec<String> = nearest.iter().map(|word| format!("`{word}`")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["fs:read", "fs:write", "git:log", "everything:get-sum"];
        assert_eq!(nearest("fs:raed", known.into_iter())[0], "fs:read");
        assert_eq!(nearest("everything:get_sum", known.into_iter())[0], "everything:get-sum");
        assert_eq!(nearest("get-sum", known.into_iter())[0], "everything:get-sum");
        assert!(nearest("zzz", known.into_iter()).is_empty());
        assert!(nearest("everything:unlike", known.into_iter()).is_empty());
        assert_eq!(nearest("fss:read", known.into_iter()), ["fs:read"]);
    }

    #[test]
    fn one_problem_says_the_same_everywhere() {
        let problem = Problem::new(Code::UnknownTool, "no tool `x`").hint("did you mean `y`?");
        assert_eq!(problem.to_string(), "UNKNOWN_TOOL: no tool `x`\nhint: did you mean `y`?");
        assert_eq!(
            problem.to_tool_result().get(),
            r#"{"content":[{"type":"text","text":"UNKNOWN_TOOL: no tool `x`\nhint: did you mean `y`?"}],"structuredContent":{"status":"failed","error":{"code":"UNKNOWN_TOOL","message":"no tool `x`","hint":"did you mean `y`?"}},"isError":true}"#
        );
    }
}
