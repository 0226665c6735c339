//! The session that a request belongs to.
//!
//! A session is a principal, a client, and what tells the client's conversations apart: the `sessionId` of the
//! request's context, else what the door knows (a trace id, a connection). Its latest tools and results are likely to
//! matter for its next request. The principal is a separate part of every key, so an id never reaches another's session.

use pml_model::Digest;
use pml_model::json::Fields;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{RunRequest, Work};

/// The member of a request's context that names its session.
pub(crate) const SESSION_ID: &str = "sessionId";

/// The hexadecimal digits of a session id's digest: enough to tell all sessions of a client apart.
const DIGITS: usize = 24;

/// The session of a client's request: the one that its context names, else `otherwise`.
pub(crate) fn session_of(client: &str, context: &RawValue, otherwise: impl FnOnce() -> String) -> String {
    match given_session_id(context) {
        Some(id) => named_session(client, &id),
        None => format!("{client}/{}", otherwise()),
    }
}

/// The session of a client with this id. Only a digest of the id is kept: it is as long for every id, has no `/`, and
/// does not give away an id that is a secret elsewhere.
pub(crate) fn named_session(client: &str, id: &str) -> String {
    format!("{client}/id-{}", &Digest::of(id.as_bytes()).as_str()[..DIGITS])
}

/// The session id in a context, if it is a text or a number.
pub(crate) fn given_session_id(context: &RawValue) -> Option<String> {
    let fields = Fields::parse(context.get()).ok()?;
    match serde_json::from_str(fields.get(SESSION_ID)?.get()).ok()? {
        Value::String(id) if !id.is_empty() => Some(id),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

/// Whether a schema of parameters declares one called `sessionId`.
pub(crate) fn declares_session_id(parameters: &Value) -> bool {
    parameters.get("properties").is_some_and(|members| members.get(SESSION_ID).is_some())
}

/// The arguments of a program with these parameters. The id of the session is an argument only if the program has a
/// parameter of that name: otherwise it is about the request, and the same work has the same arguments in all sessions.
pub(crate) fn program_arguments(context: &RawValue, parameters: &Value) -> Box<RawValue> {
    let mut fields = Fields::parse(context.get()).unwrap_or_default();
    if declares_session_id(parameters) || !fields.remove(SESSION_ID) {
        return context.to_owned();
    }
    fields.to_raw()
}

impl RunRequest {
    /// The arguments of the requested work, which has these parameters.
    pub(super) fn arguments_for(&self, parameters: &Value) -> Box<RawValue> {
        match &self.work {
            // A direct call has no context, only the arguments of its tool.
            Work::Call(_) => self.arguments.clone(),
            _ => program_arguments(&self.arguments, parameters),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        pml_model::json::raw(value)
    }

    #[test]
    fn a_session_is_named_by_its_id_else_by_its_door() {
        let of = |context: &Value| session_of("client", &raw(context), || "7".to_owned());
        assert_eq!(of(&json!({})), "client/7");
        assert_eq!(of(&json!({"sessionId": ""})), "client/7");
        assert_eq!(of(&json!({"sessionId": ["x"]})), "client/7");
        assert_ne!(of(&json!({"sessionId": "7"})), "client/7");
        assert_eq!(of(&json!({"sessionId": "a"})), of(&json!({"x": 1, "sessionId": "a"})));
        assert_ne!(of(&json!({"sessionId": "a"})), of(&json!({"sessionId": "b"})));
        assert_eq!(of(&json!({"sessionId": 7})), of(&json!({"sessionId": "7"})));
    }

    #[test]
    fn a_session_id_of_any_length_and_text_keeps_the_client_apart() {
        for id in ["x".repeat(1 << 20), "other/id".to_owned(), "a\u{0}b".to_owned()] {
            let session = named_session("my/client", &id);
            assert_eq!(session.rsplit_once('/').unwrap().0, "my/client");
            assert!(session.len() < 64, "{session}");
        }
    }

    #[test]
    fn the_id_is_an_argument_only_where_it_is_a_parameter() {
        let context = raw(&json!({"sessionId": "a", "path": "p"}));
        let declares = json!({"properties": {"sessionId": {}}});
        assert_eq!(program_arguments(&context, &declares).get(), context.get());
        assert_eq!(
            program_arguments(&context, &json!({"properties": {"path": {}}})).get(),
            r#"{"path":"p"}"#
        );
    }
}
