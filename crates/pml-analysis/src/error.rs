//! Errors of an analysis.

use pml_model::structure::Position;

/// Reason why there is no analysis. Nothing has been run, and nothing can be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The source is not valid TypeScript.
    #[error("{message}")]
    Syntax {
        /// What is wrong.
        message: String,
        /// Line and column in the source.
        at: Position,
        /// The source line, as written.
        excerpt: String,
        /// What the author can do.
        hint: Option<String>,
    },
    /// The source exceeds the maximum size.
    #[error("the program has {size_bytes} bytes; at most {limit} are allowed")]
    TooLarge {
        /// Size of the source.
        size_bytes: usize,
        /// The maximum, in bytes.
        limit: usize,
    },
    /// The source exceeds the maximum nesting depth.
    #[error("the program is nested more than {limit} levels deep")]
    TooDeep {
        /// The maximum depth.
        limit: usize,
        /// The first node that is too deep.
        at: Position,
        /// The source line, as written.
        excerpt: String,
    },
    /// The analysis would take more time or memory than allowed.
    #[error("the program is too complex to be analysed")]
    TooComplex {
        /// Where the analysis stopped.
        at: Position,
        /// The source line, as written.
        excerpt: String,
    },
    /// Valid TypeScript that programs must not use.
    #[error("{message}")]
    Unsupported {
        /// What is wrong, in words.
        message: String,
        /// Line and column in the source.
        at: Position,
        /// The source line, as written.
        excerpt: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// The analysis itself failed.
    #[error("the analysis of this program failed: {reason}")]
    Crashed {
        /// The reason, in words.
        reason: String,
    },
}

impl Error {
    /// Position in the source; `None` when the error concerns the whole.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::Syntax { at, .. }
            | Error::TooDeep { at, .. }
            | Error::TooComplex { at, .. }
            | Error::Unsupported { at, .. } => Some(*at),
            Error::TooLarge { .. } | Error::Crashed { .. } => None,
        }
    }

    /// The source line, as written.
    pub fn excerpt(&self) -> Option<&str> {
        match self {
            Error::Syntax { excerpt, .. }
            | Error::TooDeep { excerpt, .. }
            | Error::TooComplex { excerpt, .. }
            | Error::Unsupported { excerpt, .. } => Some(excerpt),
            Error::TooLarge { .. } | Error::Crashed { .. } => None,
        }
    }

    /// What the author can do.
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
