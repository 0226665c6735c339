//! JSON-RPC 2.0 messages whose payloads stay raw bytes.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use pml_model::json::{Fields, raw};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::pieces::ChunkedText;

/// Maximum size of a message in either direction, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// From this size on, in bytes, the payload of a message keeps the memory that the message was read into. That needs a
/// second parse of the payload, which is slower than a copy but saves its size in memory.
pub(crate) const LARGE_BYTES: usize = 1024 * 1024;

/// One JSON-RPC message.
#[derive(Debug)]
pub enum RpcMessage {
    /// A request, which expects a response.
    Request(RpcRequest),
    /// A notification, which expects none.
    Notification(RpcNotification),
    /// A response to a request.
    Response(RpcResponse),
}

/// A request, with its parameters as they were written.
#[derive(Debug)]
pub struct RpcRequest {
    /// Id that the response will carry.
    pub id: RequestId,
    /// The JSON-RPC method.
    pub method: String,
    /// The parameters: a JSON object, if there are any.
    pub params: Option<Box<RawValue>>,
}

/// A notification.
#[derive(Debug)]
pub struct RpcNotification {
    /// The JSON-RPC method.
    pub method: String,
    /// The parameters: a JSON object, if there are any.
    pub params: Option<Box<RawValue>>,
}

/// A response.
#[derive(Debug)]
pub struct RpcResponse {
    /// Id of the request; `None` if the peer could not read it.
    pub id: Option<RequestId>,
    /// The result or the error.
    pub outcome: Result<Box<RawValue>, RpcError>,
}

/// Id of a request: a string or a number, kept as it was written.
#[derive(Debug, Clone)]
pub struct RequestId(Box<RawValue>);

impl RequestId {
    /// An id that PML assigns.
    pub fn from_number(number: u64) -> RequestId {
        RequestId(raw(&number))
    }

    /// The number, if the id is one that PML assigned.
    pub fn as_number(&self) -> Option<u64> {
        self.0.get().parse().ok()
    }

    /// The id as JSON.
    pub fn raw(&self) -> &RawValue {
        &self.0
    }

    fn read(value: &RawValue) -> Option<RequestId> {
        let first = value.get().as_bytes().first()?;
        (matches!(first, b'"' | b'-') || first.is_ascii_digit()).then(|| RequestId(value.to_owned()))
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        RequestId::read(&value).ok_or_else(|| serde::de::Error::custom("an id is a string or a number"))
    }
}

impl Serialize for RequestId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &RequestId) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for RequestId {}

impl Hash for RequestId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.get().hash(state);
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    /// JSON-RPC or MCP error code.
    pub code: i64,
    /// The message for people.
    pub message: String,
    /// Details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Box<RawValue>>,
}

impl RpcError {
    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }

    /// The error with `data` attached.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> RpcError {
        self.data = Some(raw(data));
        self
    }
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum ParseError {
    /// The bytes are not JSON, or not UTF-8.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The bytes are JSON, but not JSON-RPC 2.0.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Shape(&'static str),
}

impl ParseError {
    /// The error that is sent to the peer.
    pub fn to_rpc_error(&self) -> RpcError {
        match self {
            ParseError::Json(_) => RpcError::new(code::PARSE_ERROR, self.to_string()),
            ParseError::Shape(_) => RpcError::new(code::INVALID_REQUEST, self.to_string()),
        }
    }
}

/// Error codes of JSON-RPC and MCP.
pub mod code {
    /// The message is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is not a request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server failed internally.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// HTTP headers and body disagree.
    pub const HEADER_MISMATCH: i64 = -32020;
    /// The client did not declare a capability that is needed.
    pub const MISSING_CAPABILITY: i64 = -32021;
    /// The protocol version of the request is not supported.
    pub const UNSUPPORTED_VERSION: i64 = -32022;
    /// No such resource, in versions before 2026-07-28.
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
            // Serde would also read a struct from an array of its members' values.
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

impl RpcMessage {
    /// Parses one message.
    ///
    /// # Errors
    /// The bytes are not JSON, or not a JSON-RPC message.
    pub fn parse(bytes: &[u8]) -> Result<RpcMessage, ParseError> {
        let (head, payload) = MessageHead::read(bytes)?;
        Ok(head.with(payload.map(ToOwned::to_owned)))
    }

    /// Parses the message in `buffer`. A large payload keeps the memory of the buffer, which is empty afterwards.
    /// Otherwise the buffer is unchanged.
    ///
    /// # Errors
    /// The bytes are not JSON, or not a JSON-RPC message.
    pub(crate) fn parse_from_buffer(buffer: &mut Vec<u8>) -> Result<RpcMessage, ParseError> {
        if buffer.len() < LARGE_BYTES {
            return RpcMessage::parse(buffer);
        }
        let (head, payload) = MessageHead::read(buffer)?;
        let Some(place) = payload.map(|payload| place(payload, buffer)) else { return Ok(head.with(None)) };
        Ok(head.with(Some(cut_out(std::mem::take(buffer), place)?)))
    }

    /// The id of a malformed request, if one can be found, so that its sender gets a reply.
    pub fn salvage_id(bytes: &[u8]) -> Option<RequestId> {
        let text = std::str::from_utf8(bytes).ok()?;
        Fields::parse(text).ok()?.get("id").and_then(RequestId::read)
    }
}

/// A message without its payload (parameters or result).
struct MessageHead {
    id: Option<RequestId>,
    kind: MessageHeadKind,
}

enum MessageHeadKind {
    Method(String),
    Result,
    Error(RpcError),
}

impl MessageHead {
    fn read(bytes: &[u8]) -> Result<(MessageHead, Option<&RawValue>), ParseError> {
        let envelope = Envelope::read(bytes)?;
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(ParseError::Shape("`jsonrpc` is not \"2.0\""));
        }
        let id = match envelope.id {
            None => None,
            Some(id) => {
                Some(RequestId::read(id).ok_or(ParseError::Shape("`id` is neither a string nor a number"))?)
            }
        };
        if let Some(method) = envelope.method {
            if envelope.params.is_some_and(|params| !params.get().starts_with('{')) {
                return Err(ParseError::Shape("`params` is not an object"));
            }
            return Ok((
                MessageHead { id, kind: MessageHeadKind::Method(method.into_owned()) },
                envelope.params,
            ));
        }
        match (envelope.result, envelope.error) {
            (Some(result), None) => Ok((MessageHead { id, kind: MessageHeadKind::Result }, Some(result))),
            (None, Some(error)) => Ok((MessageHead { id, kind: MessageHeadKind::Error(error) }, None)),
            _ => Err(ParseError::Shape("neither a method, nor exactly one of result and error")),
        }
    }

    fn with(self, payload: Option<Box<RawValue>>) -> RpcMessage {
        let answers = |id, outcome| RpcMessage::Response(RpcResponse { id, outcome });
        match (self.kind, self.id) {
            (MessageHeadKind::Method(method), Some(id)) => {
                RpcMessage::Request(RpcRequest { id, method, params: payload })
            }
            (MessageHeadKind::Method(method), None) => {
                RpcMessage::Notification(RpcNotification { method, params: payload })
            }
            (MessageHeadKind::Result, id) => {
                answers(id, Ok(payload.expect("a result was read with its head")))
            }
            (MessageHeadKind::Error(error), id) => answers(id, Err(error)),
        }
    }
}

/// The byte range of a value within the `bytes` it was parsed from.
fn place(value: &RawValue, bytes: &[u8]) -> Range<usize> {
    let start = value.get().as_ptr().addr() - bytes.as_ptr().addr();
    start..start + value.get().len()
}

/// The value at a byte range of `bytes`, in their memory.
fn cut_out(mut bytes: Vec<u8>, place: Range<usize>) -> Result<Box<RawValue>, serde_json::Error> {
    bytes.truncate(place.end);
    bytes.drain(..place.start);
    RawValue::from_string(String::from_utf8(bytes).expect("JSON was read there"))
}

/// A request as one line of JSON.
pub fn encode_request(id: &RequestId, method: &str, params: Option<&RawValue>) -> String {
    #[derive(Serialize)]
    struct RequestWire<'a> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    line(&RequestWire { jsonrpc: "2.0", id, method, params })
}

/// A notification as one line of JSON.
pub fn encode_notification(method: &str, params: Option<&RawValue>) -> String {
    #[derive(Serialize)]
    struct NotificationWire<'a> {
        jsonrpc: &'static str,
        method: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'a RawValue>,
    }
    line(&NotificationWire { jsonrpc: "2.0", method, params })
}

/// A response as one line of JSON.
pub fn encode_response(id: Option<&RequestId>, outcome: &Result<Box<RawValue>, RpcError>) -> String {
    #[derive(Serialize)]
    struct ResponseWire<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a RequestId>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<&'a RawValue>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a RpcError>,
    }
    line(&ResponseWire { jsonrpc: "2.0", id, result: outcome.as_deref().ok(), error: outcome.as_ref().err() })
}

/// The response to a client's request as one line of JSON. A large result keeps its memory.
pub(crate) fn encode_answer(id: &RequestId, outcome: Result<ChunkedText, RpcError>) -> ChunkedText {
    let result = match outcome {
        Ok(result) => result,
        Err(error) => return encode_response(Some(id), &Err(error)).into(),
    };
    let mut line = ChunkedText::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#));
    line.append(result);
    line.push("}");
    line
}

fn line(message: &impl Serialize) -> String {
    let text = serde_json::to_string(message).expect("messages serialise to JSON");
    // Raw members keep their original layout; a line break between tokens would end the line.
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
        match RpcMessage::parse(text.as_bytes()) {
            Ok(RpcMessage::Request(r)) => format!("request {} {}", r.id, r.method),
            Ok(RpcMessage::Notification(n)) => format!("notification {}", n.method),
            Ok(RpcMessage::Response(r)) => {
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
        let line = encode_request(&RequestId::from_number(1), "m", Some(&params));
        assert!(!line.contains('\n'));
        assert!(RpcMessage::parse(line.as_bytes()).is_ok());
    }

    #[test]
    fn a_large_payload_keeps_its_memory_and_a_small_one_leaves_the_buffer() {
        let result = format!(r#"{{"a": "{}"}}"#, "é".repeat(LARGE_BYTES));
        let mut buffer = format!(r#"{{"result": {result} ,"id":7,"jsonrpc":"2.0"}}"#).into_bytes();
        let at = buffer.as_ptr();
        let Ok(RpcMessage::Response(RpcResponse { outcome: Ok(taken), .. })) =
            RpcMessage::parse_from_buffer(&mut buffer)
        else {
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
            let taken = RpcMessage::parse_from_buffer(&mut buffer);
            assert_eq!(format!("{taken:?}"), format!("{:?}", RpcMessage::parse(text.as_bytes())));
            assert_eq!(buffer, text.as_bytes());
        }
    }

    #[test]
    fn an_answer_is_one_line_like_any_other_message() {
        let id: RequestId = serde_json::from_str(r#""a\n""#).unwrap();
        let result = RawValue::from_string("{\n\"a\": 1 }".to_owned()).unwrap();
        for outcome in [Ok(result), Err(RpcError::new(code::INTERNAL_ERROR, "no\n"))] {
            let line = encode_response(Some(&id), &outcome);
            let answered: Vec<u8> =
                encode_answer(&id, outcome.map(ChunkedText::from)).into_parts(usize::MAX).flatten().collect();
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
