//! The error type for people and agents: a code, a sentence and a hint.
//!
//! Stages have their own error types; here they become MCP results, JSON for programs and text for terminals, all with
//! the same content.

use std::sync::Arc;

use axum::http::StatusCode;
use pml_mcp::client::{LostReason, NotSentReason, RequestFailure};
use pml_mcp::{RpcError, code};
use pml_model::ToolId;
use pml_model::json::raw;
use pml_model::name::{nearest, printable};
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::config;

pub use pml_model::ErrorCode;

/// An error, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The stable code for programs.
    pub code: ErrorCode,
    /// The message: one sentence that names the subject.
    pub message: String,
    /// The hint: what to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// For a call: whether it can have had an effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentStatus>,
    /// After how many seconds the request may succeed.
    #[serde(rename = "retryAfter", skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<u64>,
    /// The underlying error, for the log only.
    #[serde(skip)]
    pub(crate) cause: Option<Cause>,
}

/// Whether a call without an answer can have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SentStatus {
    /// Nothing reached the server.
    No,
    /// The call was sent, and its effect is unknown.
    Unknown,
}

/// The underlying error. It does not count when problems are compared.
#[derive(Debug, Clone)]
pub(crate) struct Cause(Arc<dyn std::error::Error + Send + Sync>);

impl PartialEq for Cause {
    fn eq(&self, _: &Cause) -> bool {
        true
    }
}

impl Eq for Cause {}

/// The HTTP status of each code. A code that is not listed is an internal error.
fn http_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::UnknownRun | ErrorCode::UnknownTool | ErrorCode::UnknownServer | ErrorCode::NotFound => {
            StatusCode::NOT_FOUND
        }
        ErrorCode::AlreadyAnswered | ErrorCode::ToolChanged | ErrorCode::TraceForked => StatusCode::CONFLICT,
        ErrorCode::Gone => StatusCode::GONE,
        ErrorCode::Denied => StatusCode::FORBIDDEN,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::InvalidRequest | ErrorCode::InvalidArguments | ErrorCode::InvalidProgram => {
            StatusCode::BAD_REQUEST
        }
        ErrorCode::Busy | ErrorCode::StorageBusy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        ErrorCode::TooManyQuestions | ErrorCode::RateLimited | ErrorCode::BudgetExhausted => {
            StatusCode::TOO_MANY_REQUESTS
        }
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl Problem {
    /// A problem without a hint.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), hint: None, sent: None, retry_after_s: None, cause: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// Sets whether the call was sent.
    #[must_use]
    pub fn sent(mut self, sent: SentStatus) -> Problem {
        self.sent = Some(sent);
        self
    }

    /// Sets after how many seconds the request may succeed.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Problem {
        self.retry_after_s = Some(seconds);
        self
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn caused_by(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Problem {
        self.cause = Some(Cause(Arc::new(cause)));
        self
    }

    /// The HTTP status of the response.
    pub fn http_status(&self) -> StatusCode {
        http_status(self.code)
    }

    /// The exit code of a command: 2 for wrong input, 1 for a failure.
    pub fn exit_code(&self) -> u8 {
        if matches!(self.code, ErrorCode::Config | ErrorCode::InvalidRequest) { 2 } else { 1 }
    }

    /// The result of a call of one of PML's own tools.
    pub fn to_tool_result(&self) -> Box<RawValue> {
        raw(&json!({
            "content": [{ "type": "text", "text": self.to_string() }],
            "structuredContent": { "status": "failed", "error": self },
            "isError": true,
        }))
    }

    /// The result of a call of a tool with an output schema: clients check structured content against the schema, and
    /// would show their own error instead of this one.
    pub fn to_typed_tool_result(&self) -> Box<RawValue> {
        raw(&json!({
            "content": [{ "type": "text", "text": self.to_string() }],
            "isError": true,
            "_meta": { "pml/error": self },
        }))
    }

    /// The JSON-RPC error.
    pub fn to_rpc(&self) -> RpcError {
        RpcError::new(code::INVALID_PARAMS, self.to_string()).with_data(&json!({ "error": self }))
    }

    /// The problem for a failed request to `server`.
    pub fn of_failure(server: &str, failure: &RequestFailure) -> Problem {
        let retry = "whether it acted is not known: check before you call again";
        let problem = match failure {
            RequestFailure::NotSent(reason) => Problem::of_not_sent(server, reason),
            RequestFailure::Rpc(error) => Problem::new(
                ErrorCode::ServerError,
                format!("server `{server}` answered: {}", printable(&error.message)),
            ),
            RequestFailure::Unknown(LostReason::ServerEnded(reason)) => Problem::new(
                ErrorCode::DownstreamDied,
                format!("server `{server}` ended during the call: {reason}"),
            )
            .hint(format!("{retry}; it is started again when next needed, and `pml doctor` tells more")),
            RequestFailure::Unknown(LostReason::Timeout) => {
                Problem::new(ErrorCode::Timeout, format!("server `{server}` did not answer in time"))
                    .hint(format!(
                        "{retry}; `call_timeout` of the server sets the time, and `longest_call` that of a call that reports \
                         progress"
                    ))
            }
            RequestFailure::Unknown(LostReason::Cancelled) => {
                Problem::new(ErrorCode::Cancelled, format!("the call to server `{server}` was cancelled"))
                    .hint(retry)
            }
            RequestFailure::Unknown(LostReason::UnusableAnswer(reason)) => Problem::new(
                ErrorCode::BadAnswer,
                format!("server `{server}` gave an unusable answer: {}", printable(reason)),
            )
            .hint(retry),
        };
        problem.caused_by(failure.clone())
    }

    /// The problem that a tool is on the machines of clients, so this gateway does not call it.
    pub(crate) fn on_client_only(tool: &ToolId) -> Problem {
        let text =
            format!("`{tool}` is called on the machine of the client (`routing = \"client\"`), not here");
        Problem::new(ErrorCode::Denied, text).hint(
            "run a program with `pml_execute` from a client that runs such programs itself (`pml/client`), or set \
             `routing = \"server\"`",
        )
    }

    /// The problem that a person has to sign in to `server`.
    pub fn sign_in_required(server: &str, why: &str) -> Problem {
        let text = format!("server `{server}` needs a sign-in: {}", printable(why));
        Problem::new(ErrorCode::LoginRequired, text).hint(format!(
            "run `pml login {server}`, or set `bearer` or `headers` of `[servers.{server}]` in pml.toml"
        ))
    }

    fn of_not_sent(server: &str, reason: &NotSentReason) -> Problem {
        let text =
            format!("the request was not sent to server `{server}`: {}", printable(&reason.to_string()));
        match reason {
            NotSentReason::Closed(_)
            | NotSentReason::Connect(_)
            | NotSentReason::SessionEnded
            | NotSentReason::Stalled => Problem::new(ErrorCode::ServerDown, text)
                .hint("nothing was done; try again, or see `pml doctor`"),
            NotSentReason::Cancelled => Problem::new(ErrorCode::Cancelled, text),
            NotSentReason::Unauthorized(_) => Problem::new(ErrorCode::Unauthorized, text)
                .hint(format!("set `bearer` or `headers` of `[servers.{server}]` in pml.toml")),
            NotSentReason::SignInRequired(why) => Problem::sign_in_required(server, why),
            NotSentReason::RateLimited(wait) => Problem::new(ErrorCode::RateLimited, text)
                .hint(format!("try again after {} s", wait.as_secs_f64().ceil())),
            NotSentReason::TooLarge => Problem::new(ErrorCode::TooLarge, text).hint("send less, or in parts"),
        }
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let cause: &(dyn std::error::Error + 'static) = &*self.cause.as_ref()?.0;
        Some(cause)
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl From<pml_store::Error> for Problem {
    fn from(error: pml_store::Error) -> Problem {
        use pml_store::Error;
        let problem = Problem::new(storage_code(&error), error.to_string()).caused_by(error.clone());
        match error {
            Error::DiskFull { .. } => problem.hint("free some space; nothing has to be restarted"),
            Error::Busy { .. } => problem.hint("try again; `pml doctor` tells which processes run"),
            Error::Corrupt { .. } | Error::NotADatabase { .. } => problem.hint(
                "end PML, then put a backup in its place with `pml restore PATH`; `pml doctor` tells what is damaged",
            ),
            Error::Unreachable { .. } => problem.hint("start the server, or correct `store.url` in the configuration"),
            Error::Refused { .. } | Error::BadDatabaseUrl { .. } => {
                problem.hint("correct `store.url` in the configuration")
            }
            _ => problem,
        }
    }
}

/// The error code for an error of the store.
pub fn storage_code(error: &pml_store::Error) -> ErrorCode {
    match error {
        pml_store::Error::DiskFull { .. } => ErrorCode::StorageFull,
        pml_store::Error::Busy { .. } => ErrorCode::StorageBusy,
        pml_store::Error::Corrupt { .. } | pml_store::Error::NotADatabase { .. } => ErrorCode::StorageDamaged,
        _ => ErrorCode::Storage,
    }
}

impl From<config::Error> for Problem {
    fn from(error: config::Error) -> Problem {
        let problem = match &error {
            config::Error::Invalid(complaint) => Problem::from(&**complaint),
            config::Error::Refused { message, hint } => Problem::new(ErrorCode::Config, message).hint(hint),
            config::Error::Io { .. } => Problem::new(ErrorCode::Config, error.to_string()),
        };
        problem.caused_by(error)
    }
}

impl From<&config::ConfigComplaint> for Problem {
    fn from(complaint: &config::ConfigComplaint) -> Problem {
        let problem = Problem::new(ErrorCode::Config, complaint.place_and_message());
        match &complaint.hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

/// The problem that no server has this name, with the most similar names.
pub fn unknown_server<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Problem {
    let hint = did_you_mean(&nearest(name, known))
        .unwrap_or_else(|| "`pml list` shows the servers there are".to_owned());
    Problem::new(ErrorCode::UnknownServer, format!("no server is called `{}`", printable(name))).hint(hint)
}

/// The hint "did you mean …" for the most similar names; `None` without any.
pub fn did_you_mean(nearest: &[&str]) -> Option<String> {
    let quoted: Vec<String> = nearest.iter().map(|word| format!("`{word}`")).collect();
    (!quoted.is_empty()).then(|| format!("did you mean {}?", quoted.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_keeps_what_led_to_it_and_tells_nobody() {
        use std::error::Error as _;
        let damaged = pml_store::Error::WriterStopped { path: "pml.db".into() };
        let problem = Problem::from(damaged.clone());
        assert_eq!(problem.source().unwrap().to_string(), damaged.to_string());
        assert!(problem.source().unwrap().downcast_ref::<pml_store::Error>().is_some());
        let lost = Problem::of_failure("s", &RequestFailure::Unknown(LostReason::Timeout));
        let failure = lost.source().unwrap();
        assert_eq!(failure.source().unwrap().to_string(), "no answer before the deadline");
        let json = serde_json::to_string(&problem).unwrap();
        assert!(json.starts_with(r#"{"code":"STORAGE","message":"#) && !json.contains("cause"), "{json}");
        assert_eq!(problem, Problem::new(problem.code, problem.message.clone()).caused_by(damaged));
    }

    #[test]
    fn every_code_has_one_status_and_one_exit_code() {
        let told = |code: &ErrorCode| {
            let problem = Problem::new(*code, "x");
            (problem.http_status().as_u16(), problem.exit_code())
        };
        assert_eq!(told(&ErrorCode::Config), (500, 2));
        assert_eq!(told(&ErrorCode::InvalidRequest), (400, 2));
        assert_eq!(told(&ErrorCode::UnknownRun), (404, 1));
        assert_eq!(told(&ErrorCode::TooManyQuestions), (429, 1));
        assert!(ErrorCode::ALL.iter().all(|code| (400..600).contains(&told(code).0)));
    }

    #[test]
    fn one_problem_says_the_same_everywhere() {
        let problem = Problem::new(ErrorCode::UnknownTool, "no tool `x`").hint("did you mean `y`?");
        assert_eq!(problem.to_string(), "UNKNOWN_TOOL: no tool `x`\nhint: did you mean `y`?");
        assert_eq!(
            problem.to_tool_result().get(),
            r#"{"content":[{"type":"text","text":"UNKNOWN_TOOL: no tool `x`\nhint: did you mean `y`?"}],"structuredContent":{"status":"failed","error":{"code":"UNKNOWN_TOOL","message":"no tool `x`","hint":"did you mean `y`?"}},"isError":true}"#
        );
    }
}
