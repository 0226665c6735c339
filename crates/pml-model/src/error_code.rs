//! Error codes: the one type of code for failures, from the sandbox to every transport.
//!
//! Programs, clients and stored records see [`ErrorCode::as_str`], which never changes. `pml::problem` maps a code to
//! its meaning for a transport, such as an HTTP status. Errors of analysis have codes of their own, in `pml_analysis`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $code:ident => $text:literal,)*) => {
        /// The code of a failure, for programs to act on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $code,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$code,)*];

            /// The stable text form.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(ErrorCode::$code => $text,)*
                }
            }

            /// The code with this text form.
            pub fn parse(text: &str) -> Option<ErrorCode> {
                match text {
                    $($text => Some(ErrorCode::$code),)*
                    _ => None,
                }
            }
        }
    };
}

error_codes! {
    /// No such server.
    UnknownServer => "UNKNOWN_SERVER",
    /// No such tool.
    UnknownTool => "UNKNOWN_TOOL",
    /// A tool of earlier versions that was replaced by another one.
    RemovedTool => "REMOVED_TOOL",
    /// The tool is in quarantine.
    Quarantined => "QUARANTINED",
    /// The arguments do not match the schema.
    InvalidArguments => "INVALID_ARGUMENTS",
    /// The server cannot be used now.
    ServerDown => "SERVER_DOWN",
    /// The server is not ready yet.
    ServerStarting => "SERVER_STARTING",
    /// A person has to accept the server before it may be started.
    NotAccepted => "NOT_ACCEPTED",
    /// The server ended while it worked on the request.
    DownstreamDied => "DOWNSTREAM_DIED",
    /// No reply or no end within the time limit.
    Timeout => "TIMEOUT",
    /// The caller cancelled.
    Cancelled => "CANCELLED",
    /// The server limits the rate of requests.
    RateLimited => "RATE_LIMITED",
    /// The key has used up one of its budgets.
    BudgetExhausted => "BUDGET_EXHAUSTED",
    /// The server rejects the credentials.
    Unauthorized => "UNAUTHORIZED",
    /// A person has to sign in to the server.
    LoginRequired => "LOGIN_REQUIRED",
    /// The server's reply cannot be used.
    BadAnswer => "BAD_ANSWER",
    /// The server replied with an error.
    ServerError => "SERVER_ERROR",
    /// The tool needs input, and this caller cannot be asked for it.
    InputRequired => "INPUT_REQUIRED",
    /// The request exceeds the size limit.
    TooLarge => "TOO_LARGE",
    /// The request itself is malformed.
    InvalidRequest => "INVALID_REQUEST",
    /// The policy does not allow it, or a person denied it.
    Denied => "DENIED",
    /// The question was answered before.
    AlreadyAnswered => "ALREADY_ANSWERED",
    /// Another trace was taken at the position of this one.
    TraceForked => "TRACE_FORKED",
    /// The definition of a tool has changed.
    ToolChanged => "TOOL_CHANGED",
    /// Too many questions are open.
    TooManyQuestions => "TOO_MANY_QUESTIONS",
    /// Analysis found errors in the program, so it is not run.
    InvalidProgram => "INVALID_PROGRAM",
    /// Too many requests or runs are active.
    Busy => "BUSY",
    /// The sandbox cannot run programs on this machine.
    Sandbox => "SANDBOX",
    /// No such run.
    UnknownRun => "UNKNOWN_RUN",
    /// No such capability, or no such trace.
    NotFound => "NOT_FOUND",
    /// The record existed and is no longer kept.
    Gone => "GONE",
    /// The database cannot be used.
    Storage => "STORAGE",
    /// The disk of the database is full.
    StorageFull => "STORAGE_FULL",
    /// Another process holds the database.
    StorageBusy => "STORAGE_BUSY",
    /// The database is damaged.
    StorageDamaged => "STORAGE_DAMAGED",
    /// The configuration cannot be used.
    Config => "CONFIG",
    /// The tool reported a failure.
    ToolError => "TOOL_ERROR",
    /// The program threw an error.
    ProgramError => "PROGRAM_ERROR",
    /// A capability that a program called threw an error.
    CapabilityFailed => "CAPABILITY_FAILED",
    /// A call was sent, and its outcome could not be found out.
    OutcomeUnknown => "OUTCOME_UNKNOWN",
    /// The arguments of a task cannot be resolved.
    Unresolved => "UNRESOLVED",
    /// The program waits for something that cannot happen.
    Deadlock => "DEADLOCK",
    /// The program exceeds its memory limit.
    Memory => "MEMORY",
    /// The run exceeds its limit of calls.
    ToolCallLimit => "TOOL_CALL_LIMIT",
    /// The arguments of a call exceed the size limit.
    ArgsTooLarge => "ARGS_TOO_LARGE",
    /// A result exceeds the size limit.
    ResultTooLarge => "RESULT_TOO_LARGE",
    /// A result cannot be serialised as JSON.
    ResultNotJson => "RESULT_NOT_JSON",
    /// Capabilities are nested too deep.
    TooDeep => "TOO_DEEP",
    /// The worker process of a program died.
    WorkerCrashed => "WORKER_CRASHED",
    /// The run was begun by an engine version that is no longer available.
    EngineChanged => "ENGINE_CHANGED",
    /// On replay the program does not do what its journal records.
    Diverged => "DIVERGED",
    /// The journal of a run cannot be read.
    Unreadable => "UNREADABLE",
    /// The run waited longer than its limit.
    Expired => "EXPIRED",
    /// A person or a client ended the run.
    Aborted => "ABORTED",
    /// No reason is known; also a code that only a later version has.
    Unknown => "UNKNOWN",
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ErrorCode {
    /// Accepts codes of any version: a stored run must not become unreadable because a code was added later.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ErrorCode, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(ErrorCode::parse(&text).unwrap_or(ErrorCode::Unknown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_read_as_it_is_written_and_no_two_are_written_the_same() {
        for (place, code) in ErrorCode::ALL.iter().enumerate() {
            let text = code.as_str();
            assert!(text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'), "{text}");
            assert_eq!(ErrorCode::parse(text), Some(*code));
            assert!(ErrorCode::ALL[..place].iter().all(|other| other.as_str() != text), "{text}");
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
        }
    }

    #[test]
    fn a_code_of_a_later_version_is_no_reason_to_refuse_a_record() {
        assert_eq!(ErrorCode::parse("FROM_THE_FUTURE"), None);
        assert_eq!(serde_json::from_str::<ErrorCode>("\"FROM_THE_FUTURE\"").unwrap(), ErrorCode::Unknown);
    }
}
