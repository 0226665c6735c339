//! Lists the tools of a server, and says why that failed.

use std::time::Instant;

use pml_mcp::client::{Connection, NotSentReason, RequestFailure, ServerProfile};
use pml_model::Definition;
use pml_model::name::printable;

/// The tool list of a server, from opening the connection or after a change.
#[derive(Debug, Clone)]
pub struct ToolListing {
    /// The server's description of itself.
    pub about: ServerProfile,
    /// The definitions of its tools.
    pub tools: Vec<Definition>,
    /// The definitions that were rejected, each with the reason.
    pub refused: Vec<String>,
}

/// Why a server could not be opened, or its tools not be listed.
pub(super) enum StartFailure {
    /// A person has to sign in, for this reason.
    SignInRequired(String),
    /// Anything else.
    Failed(String),
}

impl StartFailure {
    pub(super) fn of(failure: &RequestFailure) -> StartFailure {
        match failure {
            RequestFailure::NotSent(NotSentReason::SignInRequired(why)) => {
                StartFailure::SignInRequired(printable(why))
            }
            other => StartFailure::Failed(printable(&other.to_string())),
        }
    }
}

pub(super) fn needs_sign_in(failure: &RequestFailure) -> bool {
    matches!(failure, RequestFailure::NotSent(NotSentReason::SignInRequired(_)))
}

pub(super) async fn list(connection: &Connection, deadline: Instant) -> Result<ToolListing, StartFailure> {
    let raw = if connection.profile().has_capability("tools") {
        connection.list("tools/list", deadline).await.map_err(|failure| StartFailure::of(&failure))?
    } else {
        Vec::new()
    };
    let (mut tools, mut refused) = (Vec::with_capacity(raw.len()), Vec::new());
    for definition in raw {
        match Definition::parse(definition) {
            Ok(definition) => tools.push(definition),
            Err(error) => refused.push(printable(&error.to_string())),
        }
    }
    Ok(ToolListing { about: connection.profile().clone(), tools, refused })
}
