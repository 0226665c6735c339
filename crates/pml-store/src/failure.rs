//! Errors of PostgreSQL, carried by those of `rusqlite`, which all queries return.

use std::fmt;

use tokio_postgres::error::SqlState;

/// Why PostgreSQL did not do what it was asked.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The connection is gone, or there was none.
    pub(crate) is_lost: bool,
    /// PostgreSQL's code of the error.
    pub(crate) code: Option<SqlState>,
    text: String,
}

impl Failure {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Failure {
        let code = error.code().cloned();
        let ended = |code: &SqlState| {
            // Shutdown, crash, start-up, a session that was idle for too long, too many clients, a server that only
            // reads because another one takes over from it, and errors of the connection itself.
            matches!(code.code(), "57P01" | "57P02" | "57P03" | "25P03" | "57P05" | "53300" | "25006")
                || code.code().starts_with("08")
        };
        let io = std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        let is_lost = error.is_closed() || io || code.as_ref().is_some_and(ended);
        let text = match error.as_db_error() {
            Some(error) => error.message().to_owned(),
            None => innermost(error),
        };
        Failure { is_lost, code, text }
    }

    /// No answer came.
    pub(crate) fn silent() -> Failure {
        Failure { is_lost: true, code: None, text: "it gives no answer".to_owned() }
    }

    /// The server takes no changes now.
    pub(crate) fn read_only() -> Failure {
        let text = "it is read-only now".to_owned();
        Failure { is_lost: true, code: None, text }
    }

    /// A transaction could not be repeated.
    pub(crate) fn overtaken() -> Failure {
        let text =
            "the connection was cut, and another process changed the same rows meanwhile; nothing was stored";
        Failure { is_lost: false, code: None, text: text.to_owned() }
    }

    /// The failure that an error carries.
    pub(crate) fn within(error: &rusqlite::Error) -> Option<&Failure> {
        match error {
            rusqlite::Error::UserFunctionError(carried) => carried.downcast_ref(),
            _ => None,
        }
    }

    /// Whether a lock was not released in time.
    pub(crate) fn is_lock_timeout_in(error: &rusqlite::Error) -> bool {
        let code = Failure::within(error).and_then(|failure| failure.code.as_ref());
        code.is_some_and(|code| *code == SqlState::LOCK_NOT_AVAILABLE)
    }

    pub(crate) fn is_lost_in(error: &rusqlite::Error) -> bool {
        Failure::within(error).is_some_and(|failure| failure.is_lost)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for rusqlite::Error {
    fn from(failure: Failure) -> rusqlite::Error {
        rusqlite::Error::UserFunctionError(Box::new(failure))
    }
}

/// The message of the error behind an error; the outer one only says what kind it is.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
