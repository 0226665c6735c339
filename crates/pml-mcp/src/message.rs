//! JSON-RPC 2.0 messages whose payloads stay raw bytes.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::pieces::Pieces;

/// The largest message read from or written to a peer.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The payload of a message of at least so many bytes keeps the memory the message was read into. That takes a second look
/// at the payload, which is more work than copying it, and saves as much memory as it has bytes.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// One message.
#[derive(Debug)]
pub enum Message {
    /// Wants an answer.
    Request(Request),
    /// Wants none.
    Notification(Notification),
    /// Is one.
    Response(Response),
}

/// A request, with its parameters as they were written.
#[derive(Debug)]
pub struct Request {
    /// What the answer will carry.
    pub id: Id,
    /// Which operation.
    pub method: String,
    /// A JSON object, or nothing.
    pub params: Option<Box<RawValue>>,
}

/// A notification.
#[derive(Debug)]
pub struct Notification {
    /// Which event.
    pub method: String,
    /// A JSON object, or nothing.
    pub params: Option<Box<RawValue>>,
}

/// An answer.
#[derive(Debug)]
pub struct Response {
    /// The request it answers; absent where the peer could not read the request's id.
    pub id: Option<Id>,
    /// The result or the error.
    pub outcome: Result<Box<RawValue>, RpcError>,
}

/// The id of a request: a string or a number, kept as it was written.
#[derive(Debug, Clone)]
pub struct Id(Box<RawValue>);

impl Id {
    /// An id of our own making.
    pub fn number(number: u64) -> Id {
        Id(raw(&number))
    }

    /// The number, where it is one of ours.
    pub fn as_number(&self) -> Option<u64> {
        self.0.get().parse().ok()
    }

    /// The id as JSON.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    fn read(value: &RawValue) -> Option<Id> {
        let first = value.get().as_bytes().first()?;
        (matches!(first, b'"' | b'-') || first.is_ascii_digit()).then(|| Id(value.to_owned()))
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Id::read(&value).ok_or_else(|| serde::de::Error::custom("an id is a string or a number"))
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.get().hash(state);
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// What kind.
    pub code: i64,
    /// In words.
    pub message: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// The same with data.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> RpcError {
        self.data = Some(raw(data));
        self
    }
}

/// Why bytes are no message.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// Not JSON, or not UTF-8.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// JSON, but not JSON-RPC 2.0.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
}

impl ParseError {
    /// The answer a peer gets to such bytes.
    pub fn to_rpc(&self) -> RpcError {
        match self {
            ParseError::Json(_) => RpcError::new(code::PARSE_ERROR, self.to_string()),
            ParseError::Shape(_) => RpcError::new(code::INVALID_REQUEST, self.to_string()),
        }
    }
}

/// Codes of JSON-RPC and MCP.
pub mod code {
    /// Not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// Not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Wrong parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It went wrong here.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// HTTP headers and body disagree.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare a capability that is needed.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The request's protocol version is not spoken here.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// No such resource, before 2026-07-28.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<RpcError>,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Envelope<'a>, ParseError> {
        let other = ParseError::Shape("not one object with the members of a message");
        match serde_json::from_slice(bytes) {
            // An array with the members' values in their order would be read as well.
            Ok(_) if !bytes.trim_ascii_start().starts_with(b"{") => Err(other),
            Ok(envelope) => Ok(envelope),
            Err(error) if error.is_data() && is_json(bytes) => Err(other),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<&RawValue>(bytes).is_ok()
}

impl Message {
    /// Reads one message.
    ///
    /// # Errors
    /// The bytes are not JSON, or JSON of another shape.
    pub fn parse(bytes: &[u8]) -> Result<Message, ParseError> {
        let (head, payload) = Head::read(bytes)?;
        Ok(head.with(payload.map(ToOwned::to_owned)))
    }

    /// Reads one message out of `buffer`. A large payload keeps the memory of the buffer, which is empty afterwards; in any
    /// other case the buffer is left as it is.
    ///
    /// # Errors
    /// The bytes are not JSON, or JSON of another shape.
    pub(crate) fn take(buffer: &mut Vec<u8>) -> Result<Message, ParseError> {
        if buffer.len() < LARGE_BYTES {
            return Message::parse(buffer);
        }
        let (head, payload) = Head::read(buffer)?;
        let Some(place) = payload.map(|payload| place(payload, buffer)) else { return Ok(head.with(None)) };
        Ok(head.with(Some(cut_out(std::mem::take(buffer), place)?)))
    }

    /// The id a malformed request carried, where one can be made out, so that its sender can be told.
    pub fn salvage_id(bytes: &[u8]) -> Option<Id> {
        let text = std::str::from_utf8(bytes).ok()?;
        Fields::parse(text).ok()?.get("id").and_then(Id::read)
    }
}

/// A message without its payload: the parameters or the result.
struct Head {
    id: Option<Id>,
    kind: Kind,
}

enum Kind {
    Method(String),
    Result,
    Error(RpcError),
}

impl Head {
    fn read(bytes: &[u8]) -> Result<(Head, Option<&RawValue>), ParseError> {
        let envelope = Envelope::read(bytes)?;
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(ParseError::Shape("`jsonrpc` is not \"2.0\""));
        }
        let id = match envelope.id {
            None => None,
            Some(id) => Some(Id::read(id).ok_or(ParseError::Shape("`id` is neither a string nor a number"))?),
        };
        if let Some(method) = envelope.method {
            if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
                return Err(ParseError::Shape("`params` is not an object"));
            }
            return Ok((Head { id, kind: Kind::Method(method.into_owned()) }, envelope.params));
        }
        match (envelope.result, envelope.error) {
            (Some(result), None) => Ok((Head { id, kind: Kind::Result }, Some(result))),
            (None, Some(error)) => Ok((Head { id, kind: Kind::Error(error) }, None)),
            _ => Err(ParseError::Shape("neither a method, nor exactly one of result and error")),
        }
    }

    fn with(self, payload: Option<Box<RawValue>>) -> Message {
        let answers = |id, outcome| Message::Response(Response { id, outcome });
        match (self.kind, self.id) {
            (Kind::Method(method), Some(id)) => Message::Request(Request { id, method, params: payload }),
            (Kind::Method(method), None) => Message::Notification(Notification { method, params: payload }),
            (Kind::Result, id) => answers(id, Ok(payload.expect("a result was read with its head"))),
            (Kind::Error(error), id) => answers(id, Err(error)),
        }
    }
}

/// Where in `bytes` a value lies that was read from them.
fn place(value: &RawValue, bytes: &[u8]) -> Range<usize> {
    let start = value.get().as_ptr().addr() - bytes.as_ptr().addr();
    start..start + value.get().len()
}

/// The value at a place in `bytes`, in their memory.
fn cut_out(mut bytes: Vec<u8>, place: Range<usize>) -> Result<Box<RawValue>, serde_json::Error> {
    bytes.truncate(place.end);
    bytes.drain(..place.start);
    RawValue::from_string(String::from_utf8(bytes).expect("JSON was read there"))
}

/// A request as one line of JSON.
pub fn request(id: &Id, method: &str, params: Option<&RawValue>) -> String {
    #[derive(Serialize)]
    struct Wire<'a> {
        jsonrpc: &'static str,
        id: &'a Id,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    line(&Wire { jsonrpc: "2.0", id, method, params })
}

/// A notification as one line of JSON.
pub fn notification(method: &str, params: Option<&RawValue>) -> String {
    #[derive(Serialize)]
    struct Wire<'a> {
        jsonrpc: &'static str,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    line(&Wire { jsonrpc: "2.0", method, params })
}

/// A response as one line of JSON.
pub fn response(id: Option<&Id>, outcome: &Result<Box<RawValue>, RpcError>) -> String {
    #[derive(Serialize)]
    struct Wire<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a Id>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    line(&Wire { jsonrpc: "2.0", id, result: outcome.as_deref().ok(), error: outcome.as_ref().err() })
}

/// The answer to a client's request as one line of JSON. A large result keeps its memory.
pub(crate) fn answer(id: &Id, outcome: Result<Pieces, RpcError>) -> Pieces {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return response(Some(id), &Err(error)).into(),
    };
    let mut line = Pieces::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#));
    line.append(result);
    line.push("}");
    line
}

fn line(message: &impl Serialize) -> String {
    let text = serde_json::to_string(message).expect("messages serialise to JSON");
    // Raw members keep the layout they came with; a line break between tokens would end the line.
    if text.bytes().any(|byte| byte == b'\n' || byte == b'\r') {
        text.replace(['\n', '\r'], " ")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match Message::parse(text.as_bytes()) {
            Ok(Message::Request(r)) => format!("request {} {}", r.id, r.method),
            Ok(Message::Notification(n)) => format!("notification {}", n.method),
            Ok(Message::Response(r)) => {
                format!("response {:?} {}", r.id.map(|id| id.to_string()), r.outcome.is_ok())
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#), r#"request "a" m"#);
        assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"m","params":{}}"#), "notification m");
        assert_eq!(kind(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), r#"response Some("7") true"#);
        assert_eq!(
            kind(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#),
            "response None false"
        );
    }

    #[test]
    fn what_is_no_message_says_why() {
        for (text, expected) in [
            ("[]", "not one object"),
            ("42", "not one object"),
            (r#"["2.0",1,"m",{},null,null]"#, "not one object"),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "not one object"),
            (r#"{"jsonrpc":"2.0","id":1,"method":5"#, "not JSON"),
            ("{}", "`jsonrpc` is not \"2.0\""),
            (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, "`id` is neither"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}"#, "`params` is not an object"),
            (r#"{"jsonrpc":"2.0","id":1}"#, "neither a method"),
            ("log text", "not JSON"),
        ] {
            assert!(kind(text).contains(expected), "{text}: {}", kind(text));
        }
    }

    #[test]
    fn raw_members_never_break_the_line() {
        let params = RawValue::from_string("{\n \"a\": 1\n}".to_owned()).unwrap();
        let line = request(&Id::number(1), "m", Some(&params));
        assert!(!line.contains('\n'));
        assert!(Message::parse(line.as_bytes()).is_ok());
    }

    #[test]
    fn a_large_payload_keeps_its_memory_and_a_small_one_leaves_the_buffer() {
        let result = format!(r#"{{"a": "{}"}}"#, "é".repeat(LARGE_BYTES));
        let mut buffer = format!(r#"{{"result": {result} ,"id":7,"jsonrpc":"2.0"}}"#).into_bytes();
        let at = buffer.as_ptr();
        let Ok(Message::Response(Response { outcome: Ok(taken), .. })) = Message::take(&mut buffer) else {
            panic!("a response was written")
        };
        assert_eq!(taken.get(), result);
        assert_eq!((taken.get().as_ptr(), buffer.len()), (at, 0));

        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":1,"message":"{}"}}}}"#,
                "e".repeat(LARGE_BYTES)
            ),
            format!(r#"{{"jsonrpc":"2.0","method":"{}"}}"#, "m".repeat(LARGE_BYTES)),
            "no message".repeat(LARGE_BYTES),
        ] {
            let mut buffer = text.clone().into_bytes();
            let taken = Message::take(&mut buffer);
            assert_eq!(format!("{taken:?}"), format!("{:?}", Message::parse(text.as_bytes())));
            assert_eq!(buffer, text.as_bytes());
        }
    }

    #[test]
    fn an_answer_is_one_line_like_any_other_message() {
        let id: Id = serde_json::from_str(r#""a\n""#).unwrap();
        let result = RawValue::from_string("{\n\"a\": 1 }".to_owned()).unwrap();
        for outcome in [Ok(result), Err(RpcError::new(code::INTERNAL_ERROR, "no\n"))] {
            let line = response(Some(&id), &outcome);
            let answered: Vec<u8> =
                answer(&id, outcome.map(Pieces::from)).into_parts(usize::MAX).flatten().collect();
            assert_eq!(String::from_utf8(answered).unwrap(), line);
        }
    }

    #[test]
    fn a_nesting_bomb_is_just_bytes() {
        let bomb =
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}{}}}"#, "[".repeat(500_000), "]".repeat(500_000));
        assert_eq!(kind(&bomb), r#"response Some("1") true"#);
    }
}
