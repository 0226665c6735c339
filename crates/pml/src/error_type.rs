//! Classifies failures into the few types that learning distinguishes.
//!
//! Codes written for programs come first: PML's own, those of JSON-RPC, HTTP and the operating system. Only then come
//! the English or French words that tools write for people.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use pml_model::ErrorCode;
use pml_model::trace::ErrorType;
use regex::Regex;
use serde_json::Value;

use pml_model::trace::ErrorType::{
    Cancelled, Internal, Network, NotFound, Permission, RateLimit, Timeout, Unknown, Validation,
};

/// The type of a failure with PML's `code` and `message`; `data` is the tool's own error data as JSON.
pub fn of(code: &str, message: &str, data: Option<&str>) -> ErrorType {
    if let Some(kind) = ErrorCode::parse(code).and_then(of_own_code) {
        return kind;
    }
    let text = message.to_lowercase().replace('’', "'");
    let data: Option<Value> = data.and_then(|data| serde_json::from_str(data).ok());
    data.as_ref()
        .and_then(|data| of_data(data, &text, 3))
        .or_else(|| of_rpc_in_text(&text))
        .or_else(|| of_word(code))
        .or_else(|| message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').find_map(of_word))
        .or_else(|| of_status_in_text(&text))
        .or_else(|| of_phrase(&text))
        .or_else(|| data.as_ref().and_then(|data| of_phrase(&said(data)?.to_lowercase())))
        // Servers use this code for everything, so it counts only if nothing else does.
        .or_else(|| text.contains("-32603").then_some(Internal))
        .unwrap_or(Unknown)
}

/// Whether a failure says nothing about the capability: the run was cancelled, denied, rate limited or wrongly
/// requested, or the server was unusable.
pub fn is_blocked(kind: ErrorType, code: &str) -> bool {
    const BLOCKED: [ErrorCode; 12] = [
        ErrorCode::Aborted,
        ErrorCode::ArgsTooLarge,
        ErrorCode::Denied,
        ErrorCode::InputRequired,
        ErrorCode::InvalidArguments,
        ErrorCode::InvalidRequest,
        ErrorCode::NotAccepted,
        ErrorCode::Quarantined,
        ErrorCode::ServerDown,
        ErrorCode::ServerStarting,
        ErrorCode::LoginRequired,
        ErrorCode::Unauthorized,
    ];
    matches!(kind, Cancelled | RateLimit)
        || ErrorCode::parse(code).is_some_and(|code| BLOCKED.contains(&code))
}

/// The type that one of PML's codes always means; `None` for codes that pass on a foreign failure.
fn of_own_code(code: ErrorCode) -> Option<ErrorType> {
    let kind = match code {
        ErrorCode::Timeout => Timeout,
        ErrorCode::Cancelled | ErrorCode::Aborted => Cancelled,
        ErrorCode::RateLimited | ErrorCode::BudgetExhausted | ErrorCode::Busy => RateLimit,
        ErrorCode::Unauthorized
        | ErrorCode::LoginRequired
        | ErrorCode::Denied
        | ErrorCode::NotAccepted
        | ErrorCode::Quarantined
        | ErrorCode::ToolChanged => Permission,
        ErrorCode::UnknownServer
        | ErrorCode::UnknownTool
        | ErrorCode::RemovedTool
        | ErrorCode::UnknownRun
        | ErrorCode::Gone => NotFound,
        ErrorCode::InvalidArguments
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidProgram
        | ErrorCode::InputRequired
        | ErrorCode::AlreadyAnswered
        | ErrorCode::TraceForked
        | ErrorCode::TooLarge
        | ErrorCode::ArgsTooLarge
        | ErrorCode::ResultTooLarge
        | ErrorCode::ResultNotJson
        | ErrorCode::ToolCallLimit
        | ErrorCode::TooManyQuestions
        | ErrorCode::Deadlock => Validation,
        ErrorCode::ServerDown | ErrorCode::ServerStarting | ErrorCode::DownstreamDied => Network,
        ErrorCode::BadAnswer
        | ErrorCode::Sandbox
        | ErrorCode::Storage
        | ErrorCode::StorageFull
        | ErrorCode::StorageBusy
        | ErrorCode::StorageDamaged
        | ErrorCode::Config
        | ErrorCode::WorkerCrashed
        | ErrorCode::EngineChanged
        | ErrorCode::Memory => Internal,
        ErrorCode::OutcomeUnknown => Unknown,
        ErrorCode::ServerError
        | ErrorCode::NotFound
        | ErrorCode::ToolError
        | ErrorCode::ProgramError
        | ErrorCode::CapabilityFailed
        | ErrorCode::Unresolved
        | ErrorCode::TooDeep
        | ErrorCode::Diverged
        | ErrorCode::Unreadable
        | ErrorCode::Expired
        | ErrorCode::Unknown => return None,
    };
    Some(kind)
}

/// The type by codes in the tool's data, down to `depth` objects.
fn of_data(data: &Value, text: &str, depth: usize) -> Option<ErrorType> {
    const CODES: [&str; 8] =
        ["code", "status", "statusCode", "status_code", "httpStatus", "http_status", "errno", "error_code"];
    let members = data.as_object()?;
    let of_code = |value: &Value| match value {
        Value::String(word) => match word.parse() {
            Ok(number) => of_number(number, text),
            Err(_) => of_word(word).or_else(|| of_phrase(&word.to_lowercase().replace('_', " "))),
        },
        _ => of_number(value.as_i64()?, text),
    };
    let own = CODES.iter().filter_map(|name| members.get(*name)).find_map(of_code);
    let inner =
        || ["error", "response", "cause", "details", "data"].iter().filter_map(|name| members.get(*name));
    own.or_else(|| inner().filter(|_| depth > 0).find_map(|inner| of_data(inner, text, depth - 1)))
}

/// The message in the data.
fn said(data: &Value) -> Option<&str> {
    let members = data.as_object()?;
    let of = |name: &str| members.get(name).and_then(|value| value.as_str().or_else(|| said(value)));
    ["message", "error", "detail", "reason"].into_iter().find_map(of)
}

fn of_number(number: i64, text: &str) -> Option<ErrorType> {
    of_rpc(number).or_else(|| of_status(number, text))
}

fn of_rpc(code: i64) -> Option<ErrorType> {
    match code {
        -32700 | -32600 | -32602 => Some(Validation),
        -32601 | -32002 => Some(NotFound),
        -32001 => Some(Timeout),
        -32800 => Some(Cancelled),
        _ => None,
    }
}

fn of_status(status: i64, text: &str) -> Option<ErrorType> {
    match status {
        // Some servers answer a rate limit with these codes.
        401 | 403 if text.contains("rate limit") => Some(RateLimit),
        401 | 402 | 403 | 407 | 451 => Some(Permission),
        404 | 410 => Some(NotFound),
        408 | 504 | 524 => Some(Timeout),
        429 | 529 => Some(RateLimit),
        499 => Some(Cancelled),
        502 | 503 | 520..=523 => Some(Network),
        400..=499 => Some(Validation),
        500..=599 => Some(Internal),
        _ => None,
    }
}

fn of_rpc_in_text(text: &str) -> Option<ErrorType> {
    let at = text.find("-32")?;
    let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
    of_rpc(text[at..=at + digits].parse().ok()?)
}

fn of_status_in_text(text: &str) -> Option<ErrorType> {
    static STATUS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?x)
            (?:\b(?:http(?:/[0-9.]+)?|httperror|status(?:[\ _-]?code)?|error(?:\ code)?|code|returned|response|answered|got)
                \W{1,3}(?:is\ |was\ |of\ |code\ )? | ^\W{0,3} | \( )
            ([45][0-9]{2}) (?:\b[^0-9.%]|$)
            | \b([45][0-9]{2})\ (?:client\ error|server\ error|not\ found|forbidden|unauthori[sz]ed|bad\ request
                |too\ many|internal\ server|bad\ gateway|service\ unavailable|gateway\ time)",
        )
        .expect("the pattern above is well formed")
    });
    let found = STATUS.captures(text)?;
    let status = found.get(1).or_else(|| found.get(2))?.as_str().parse().ok()?;
    of_status(status, text)
}

/// The type by an identifier that programs use: of the operating system, of Python, of databases.
fn of_word(word: &str) -> Option<ErrorType> {
    let kind = match word {
        "ETIMEDOUT"
        | "ESOCKETTIMEDOUT"
        | "UND_ERR_CONNECT_TIMEOUT"
        | "TimeoutError"
        | "TimeoutException"
        | "ReadTimeout"
        | "ConnectTimeout"
        | "TimeoutExpired"
        | "DEADLINE_EXCEEDED" => Timeout,
        "EACCES"
        | "EPERM"
        | "EROFS"
        | "EAUTH"
        | "PermissionError"
        | "PERMISSION_DENIED"
        | "UNAUTHENTICATED"
        | "AccessDenied"
        | "AccessDeniedException" => Permission,
        "ENOENT"
        | "ESRCH"
        | "FileNotFoundError"
        | "ModuleNotFoundError"
        | "MODULE_NOT_FOUND"
        | "NOT_FOUND"
        | "NoSuchKey"
        | "NoSuchBucket"
        | "ResourceNotFoundException" => NotFound,
        "EINVAL"
        | "EEXIST"
        | "EISDIR"
        | "ENOTDIR"
        | "ENOTEMPTY"
        | "ENAMETOOLONG"
        | "E2BIG"
        | "ERANGE"
        | "ValueError"
        | "KeyError"
        | "ValidationError"
        | "JSONDecodeError"
        | "SyntaxError"
        | "ZodError"
        | "FileExistsError"
        | "IsADirectoryError"
        | "NotADirectoryError"
        | "UnicodeDecodeError"
        | "ValidationException"
        | "INVALID_ARGUMENT"
        | "ALREADY_EXISTS"
        | "FAILED_PRECONDITION"
        | "SQLITE_CONSTRAINT" => Validation,
        "ECONNREFUSED"
        | "ECONNRESET"
        | "ECONNABORTED"
        | "ENOTFOUND"
        | "EAI_AGAIN"
        | "EHOSTUNREACH"
        | "ENETUNREACH"
        | "ENETDOWN"
        | "EPIPE"
        | "ENOTCONN"
        | "ConnectionError"
        | "ConnectionRefusedError"
        | "ConnectionResetError"
        | "BrokenPipeError"
        | "ConnectError"
        | "SSLError"
        | "gaierror"
        | "UNAVAILABLE" => Network,
        "RateLimitError"
        | "RESOURCE_EXHAUSTED"
        | "ThrottlingException"
        | "Throttling"
        | "TooManyRequestsException"
        | "SlowDown" => RateLimit,
        "ABORT_ERR" | "AbortError" | "CancelledError" | "KeyboardInterrupt" | "ECANCELED" => Cancelled,
        "ENOSPC"
        | "ENOMEM"
        | "EIO"
        | "EMFILE"
        | "ENFILE"
        | "MemoryError"
        | "RecursionError"
        | "AssertionError"
        | "ZeroDivisionError"
        | "AttributeError"
        | "NameError"
        | "IndexError"
        | "NotImplementedError"
        | "ReferenceError"
        | "SQLITE_BUSY"
        | "SQLITE_CORRUPT"
        | "INTERNAL" => Internal,
        _ => return None,
    };
    Some(kind)
}

/// Phrases from messages for people, separated by bars. The more specific types come first: "connection timed out" is a
/// timeout, and "invalid credentials" is about permission.
const PHRASES: [(ErrorType, &str); 8] = [
    (
        RateLimit,
        "rate limit|rate-limit|ratelimit|too many requests|quota exceeded|exceeded your current quota|\
         throttl|trop de requêtes|limite de débit|quota dépassé|overloaded",
    ),
    (
        Timeout,
        "timed out|timeout|time out|deadline exceeded|took too long|délai d'attente|délai dépassé|\
         temps imparti",
    ),
    (
        Cancelled,
        "cancelled|canceled|aborted by|was aborted|interrupted by|user rejected|user declined|annulé|\
         interrompu",
    ),
    (
        Permission,
        "access denied|permission denied|permission|not permitted|not allowed|forbidden|unauthorized|\
         unauthorised|unauthenticated|authentication failed|authentication required|authentication|\
         bad credentials|invalid credentials|invalid api key|incorrect api key|invalid token|\
         token expired|token has expired|outside allowed director|outside of the allowed|readonly|\
         read-only|must be logged in|could not read username|access is denied|resource not accessible|\
         accès refusé|accès interdit|permission non accordée|non autorisé|droits insuffisants|\
         identifiants incorrects|mot de passe incorrect|lecture seule",
    ),
    (
        Network,
        "connection refused|connection reset|connection closed|connection error|connect error|network|\
         could not resolve|name or service not known|name resolution|failed to resolve|\
         nodename nor servname|no route to host|unreachable|fetch failed|failed to fetch|socket hang up|\
         broken pipe|certificate|ssl error|ssl:|max retries exceeded|all connection attempts failed|\
         service unavailable|bad gateway|server disconnected|remote end closed|connexion refusée|\
         connexion interrompue|réseau|injoignable|hôte inconnu",
    ),
    (
        NotFound,
        "not found|no such|does not exist|doesn't exist|could not find|cannot find|can't find|\
         couldn't find|unknown revision|unknown tool|method not found|did not match any|\
         not a git repository|unable to open database file|no results|introuvable|n'existe pas|\
         non trouvé|aucun fichier|inexistant|pas de fichier",
    ),
    (
        Validation,
        "invalid|validation|must be|must have|must match|required|missing|expected|malformed|\
         unsupported|not valid|bad request|parse error|cannot parse|failed to parse|syntax error|\
         unprocessable|constraint failed|already exists|too large|too long|out of range|non-fast-forward|\
         would be overwritten|nothing to commit|could not convert|not unique|is not a|is a directory|\
         ambiguous|exactly one match|invalide|obligatoire|requis|manquant|incorrect|mal formé|doit être|\
         existe déjà|non valide|attendu",
    ),
    (
        Internal,
        "internal error|internal server error|traceback|panicked|unhandled|segmentation fault|\
         out of memory|no space left|database is locked|null pointer|runtimeerror|stack overflow|\
         assertion failed|erreur interne|mémoire insuffisante|espace insuffisant",
    ),
];

fn of_phrase(text: &str) -> Option<ErrorType> {
    // Broken programs report their own errors in words that otherwise describe a wrong request.
    const BROKE: [&str; 3] = ["cannot read properties", "is not a function", "disk image is malformed"];
    if BROKE.iter().any(|phrase| text.contains(phrase)) {
        return Some(Internal);
    }
    PHRASES
        .iter()
        .find(|(_, phrases)| phrases.split('|').any(|phrase| text.contains(phrase)))
        .map(|(kind, _)| *kind)
}
