//! Why a program was not understood.

use pml_model::structure::Position;

/// Why there is no analysis. Nothing has been run, and nothing can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is not TypeScript.
    #[error("{message}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Where.
        at: Position,
        /// The line as written.
        excerpt: String,
        /// What the writer can do.
        hint: Option<String>,
    },
    /// Longer than a program may be.
    #[error("the program has {size_bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Its size.
        size_bytes: usize,
        /// The most that is allowed.
        limit: usize,
    },
    /// Nested deeper than a program may be.
    #[error("the program is nested more than {limit} levels deep")]
    TooDeep {
        /// The most that is allowed.
        limit: usize,
        /// The first thing that lies too deep.
        at: Position,
        /// The line as written.
        excerpt: String,
    },
    /// Understanding it would take more time or memory than one program may.
    #[error("the program is too complex to be analysed")]
    TooComplex {
        /// How far the analysis came.
        at: Position,
        /// The line as written.
        excerpt: String,
    },
    /// TypeScript, but not for a program of ours.
    #[error("{message}")]
    Unsupported {
        /// What it is.
        message: String,
        /// Where.
        at: Position,
        /// The line as written.
        excerpt: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// The analysis itself failed.
    #[error("the analysis of this program failed: {reason}")]
    Crashed {
        /// How.
        reason: String,
    },
}

impl Error {
    /// Where in the source, unless it is about the whole.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::Syntax { at, .. }
            | Error::TooDeep { at, .. }
            | Error::TooComplex { at, .. }
            | Error::Unsupported { at, .. } => Some(*at),
            Error::TooLarge { .. } | Error::Crashed { .. } => None,
        }
    }

    /// The line as written.
    pub fn excerpt(&self) -> Option<&str> {
        match self {
            Error::Syntax { excerpt, .. }
            | Error::TooDeep { excerpt, .. }
            | Error::TooComplex { excerpt, .. }
            | Error::Unsupported { excerpt, .. } => Some(excerpt),
            Error::TooLarge { .. } | Error::Crashed { .. } => None,
        }
    }

    /// What the writer can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Syntax { hint, .. } | Error::Unsupported { hint, .. } => hint.clone(),
            Error::TooLarge { .. } => {
                Some("hand large data in through `args`, or split the work into several programs".to_owned())
            }
            Error::TooDeep { .. } => {
                Some("name the inner parts with `const`, or build long chains in a loop".to_owned())
            }
            Error::TooComplex { .. } => {
                Some("build large values in loops, or split the work into several programs".to_owned())
            }
            Error::Crashed { .. } => {
                Some("simplify the program; the one sent has been neither run nor kept".to_owned())
            }
        }
    }
}
