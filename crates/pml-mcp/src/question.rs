//! Screens the questions of downstream servers before a person sees them.
//!
//! The person uses a client and does not know the server, so the text names the server that asks and gets the answer.
//! Characters that hide or move others are escaped, in the message and in every text of the form. A question for PML's
//! own passphrase is refused: that is typed only at PML's own terminal or dashboard.

mod words;

use std::collections::HashMap;

use pml_model::json::{Fields, raw};
use pml_model::name::{is_plain, printable};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::{RpcError, code};

/// The method of the only kind of question that is shown to a person.
pub(crate) const ELICITATION: &str = "elicitation/create";

/// Maximum size of a question in bytes. A form has a few fields; more than this hides what matters.
const MAX_BYTES: usize = 64 * 1024;

/// The texts of a form that were escaped: shown text to original.
#[derive(Debug, Default)]
pub(crate) struct OriginalTexts(HashMap<String, String>);

impl OriginalTexts {
    /// The answer with names and choices as the server wrote them.
    pub(crate) fn restore(&self, answer: Box<RawValue>) -> Box<RawValue> {
        if self.0.is_empty() {
            return answer;
        }
        let Ok(mut fields) = Fields::parse(answer.get()) else { return answer };
        let Some(content) = fields.read::<Value>("content") else { return answer };
        fields.set("content", raw(&self.restored(content)));
        fields.to_raw()
    }

    fn restored(&self, value: Value) -> Value {
        let original = |text: String| self.0.get(&text).cloned().unwrap_or(text);
        match value {
            Value::String(text) => Value::String(original(text)),
            Value::Array(items) => items.into_iter().map(|item| self.restored(item)).collect(),
            Value::Object(members) => {
                members.into_iter().map(|(name, value)| (original(name), self.restored(value))).collect()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }
}

/// Screens the parameters of an elicitation by `server`.
///
/// # Errors
/// The question must not be shown: it is malformed, too large, opens something other than a web page, or asks for
/// PML's passphrase.
pub(crate) fn screen_question(
    server: &str,
    params: Option<&RawValue>,
) -> Result<(Box<RawValue>, OriginalTexts), RpcError> {
    let refused =
        |why: &str| RpcError::new(code::INVALID_PARAMS, format!("the question of `{server}` {why}"));
    let text = params.map_or("{}", RawValue::get);
    if text.len() > MAX_BYTES {
        return Err(refused(&format!("is larger than {} KiB", MAX_BYTES >> 10)));
    }
    let mut fields = Fields::parse(text).map_err(|_| refused("is no JSON object"))?;
    let message: String = fields.read("message").unwrap_or_default();
    let form: Option<Value> = fields.read("requestedSchema");
    let url: Option<String> = fields.read("url");

    let mut texts = vec![message.as_str()];
    form.iter().for_each(|form| collect(form, &mut texts));
    let about = words::QuestionTopic::of(&texts);
    if about.our_passphrase {
        tracing::warn!(server, "a server asked for PML's passphrase and was refused; do not trust it");
        return Err(refused("asks for PML's passphrase, which no server may have"));
    }
    let host = match &url {
        Some(url) => Some(host(url).ok_or_else(|| refused("opens an address that is no web page"))?),
        None => None,
    };
    fields.set("message", raw(&told(server, &message, host.as_deref(), about.secret)));
    if let Some(url) = url {
        fields.set("url", raw(&percent_encoded(&url)));
    }
    let mut originals = OriginalTexts::default();
    if let Some(form) = form {
        let shown = shown(&form, LineLimit::One, &mut originals);
        // A form that needs no change keeps its bytes, so that numbers keep their spelling.
        if shown != form {
            fields.set("requestedSchema", raw(&shown));
        }
    }
    Ok((fields.to_raw(), originals))
}

/// Screens the questions in a result that asks for input.
///
/// # Errors
/// As [`screen_question`]. Also if a name or choice in a form would have to be escaped: it could not be restored in
/// the answer, which comes with another request.
pub(crate) fn screen_result(server: &str, result: &RawValue) -> Result<Box<RawValue>, RpcError> {
    let malformed =
        |_| RpcError::new(code::INTERNAL_ERROR, format!("the question of `{server}` is malformed"));
    let mut fields = Fields::parse(result.get()).map_err(malformed)?;
    let asked = fields.get("inputRequests").map_or("{}", RawValue::get).to_owned();
    let mut requests = Fields::parse(&asked).map_err(malformed)?;
    let mut edited = Vec::new();
    for (key, request) in requests.iter() {
        let mut request = Fields::parse(request.get()).map_err(malformed)?;
        if request.read::<String>("method").as_deref() != Some(ELICITATION) {
            continue;
        }
        let (params, originals) = screen_question(server, request.get("params"))?;
        if originals.0.values().any(|text| !text.chars().all(is_plain)) {
            let text =
                format!("the question of `{server}` has names or choices with characters that do not show");
            return Err(RpcError::new(code::INVALID_PARAMS, text));
        }
        request.set("params", params);
        edited.push((key.to_owned(), request.to_raw()));
    }
    edited.into_iter().for_each(|(key, request)| requests.set(key, request));
    fields.set("inputRequests", requests.to_raw());
    Ok(fields.to_raw())
}

/// Whether a question opens a page instead of showing a form.
pub(crate) fn is_url_mode(params: Option<&RawValue>) -> bool {
    let mode = params.and_then(|params| Fields::parse(params.get()).ok()?.read::<String>("mode"));
    mode.as_deref() == Some("url")
}

/// The message after a prefix that names the server. The server's own text cannot be mistaken for PML's.
fn told(server: &str, message: &str, host: Option<&str>, secret: bool) -> String {
    let server = printable(server);
    let message = printable(message);
    let goes = match host {
        None => format!("Server `{server}` asks (the answer goes to server `{server}`):"),
        Some(host) => {
            let host = printable(host);
            format!(
                "Server `{server}` asks to open a page of `{host}` (the answer goes to server `{server}` by way of `{host}`):"
            )
        }
    };
    let mut text = match message.lines().count() {
        0 | 1 => format!("{goes} {}", message.trim_end()),
        _ => message.lines().fold(goes, |text, line| format!("{text}\n> {line}")),
    };
    if secret {
        text.push_str(&format!(
            "\nThis asks for something secret: answer only if server `{server}` should have it."
        ));
    }
    text
}

/// Whether a text of a form may have several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineLimit {
    One,
    Many,
}

/// A form with hidden characters escaped.
fn shown(value: &Value, line: LineLimit, originals: &mut OriginalTexts) -> Value {
    let mut clean = |text: &str, line: LineLimit| {
        let mut clean = printable(text);
        if line == LineLimit::One {
            clean = clean.replace('\n', "\\n").replace('\t', "\\t");
        }
        if clean != text {
            originals.0.insert(clean.clone(), text.to_owned());
        }
        clean
    };
    match value {
        Value::String(text) => Value::String(clean(text, line)),
        Value::Array(items) => items.iter().map(|item| shown(item, LineLimit::One, originals)).collect(),
        Value::Object(members) => {
            let names: Vec<String> = members.keys().map(|name| clean(name, LineLimit::One)).collect();
            let values = members.iter().map(|(name, value)| {
                shown(value, if name == "description" { LineLimit::Many } else { LineLimit::One }, originals)
            });
            names.into_iter().zip(values).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Collects every text in `value`, member names included.
fn collect<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            texts.push(name);
            collect(value, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The host of a web address, as a browser would resolve it.
fn host(url: &str) -> Option<String> {
    let url = reqwest::Url::parse(url).ok()?;
    matches!(url.scheme(), "http" | "https").then(|| url.host_str().map(str::to_owned)).flatten()
}

/// A URL with hidden characters percent-encoded.
fn percent_encoded(url: &str) -> String {
    let mut encoded = String::with_capacity(url.len());
    for c in url.chars() {
        if is_plain(c) {
            encoded.push(c);
        } else {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| encoded.push_str(&format!("%{byte:02X}")));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn screen(params: &Value) -> Result<Value, String> {
        let (shown, _) = screen_question("notes", Some(&raw(params))).map_err(|error| error.message)?;
        Ok(serde_json::from_str(shown.get()).unwrap())
    }

    #[expect(clippy::needless_pass_by_value, reason = "callers hand over what `expect!` has just made")]
    fn check(params: Value, expected: Expect) {
        let shown = screen(&params).unwrap_or_else(Value::String);
        expected.assert_eq(&shown.to_string());
    }

    #[test]
    fn a_question_names_who_asks_and_who_gets_the_answer() {
        check(
            json!({"message": "Which colour?", "requestedSchema": {"type": "object", "properties": {"c": {"type": "string"}}}}),
            expect![[
                r#"{"requestedSchema":{"type":"object","properties":{"c":{"type":"string"}}},"message":"Server `notes` asks (the answer goes to server `notes`): Which colour?"}"#
            ]],
        );
        check(
            json!({"message": "one\n\nPML asks: two"}),
            expect![[
                r#"{"message":"Server `notes` asks (the answer goes to server `notes`):\n> one\n> \n> PML asks: two"}"#
            ]],
        );
        check(
            json!({"mode": "url", "message": "Sign in", "url": "https://a.example@b.example/x\u{200b}y", "elicitationId": "1"}),
            expect![[
                r#"{"mode":"url","elicitationId":"1","message":"Server `notes` asks to open a page of `b.example` (the answer goes to server `notes` by way of `b.example`): Sign in","url":"https://a.example@b.example/x%E2%80%8By"}"#
            ]],
        );
        check(
            json!({"mode": "url", "message": "x", "url": "javascript:alert(1)"}),
            expect![[r#""the question of `notes` opens an address that is no web page""#]],
        );
        check(
            json!({"message": "x".repeat(70_000)}),
            expect![[r#""the question of `notes` is larger than 64 KiB""#]],
        );
    }

    #[test]
    fn what_does_not_show_is_written_out_and_put_back() {
        let form = json!({
            "message": "a\u{202e}b\u{1b}[2J\u{200b}c\u{7}",
            "requestedSchema": {"type": "object", "required": ["na\u{200d}me"], "properties": {
                "na\u{200d}me": {"type": "string", "title": "T\u{2066}x\ny", "description": "two\nlines\u{feff}"},
                "pick": {"type": "string", "enum": ["yes\u{202e}", "no"], "enumNames": ["Y\u{0}es", "No"], "maximum": 1e2},
            }},
        });
        let (shown, originals) = screen_question("notes", Some(&raw(&form))).unwrap();
        assert!(!shown.get().contains("\\u00") && shown.get().chars().all(is_plain), "{}", shown.get());
        expect![[r#"{"message":"Server `notes` asks (the answer goes to server `notes`): a\\u{202e}b\\u{1b}[2J\\u{200b}c\\u{7}","requestedSchema":{"type":"object","required":["na\\u{200d}me"],"properties":{"na\\u{200d}me":{"type":"string","title":"T\\u{2066}x\\ny","description":"two\nlines\\u{feff}"},"pick":{"type":"string","enum":["yes\\u{202e}","no"],"enumNames":["Y\\u{0}es","No"],"maximum":100.0}}}}"#]].assert_eq(shown.get());
        let answer = json!({"action": "accept", "content": {"na\\u{200d}me": "ada", "pick": "yes\\u{202e}"}});
        let restored: Value = serde_json::from_str(originals.restore(raw(&answer)).get()).unwrap();
        assert_eq!(
            restored,
            json!({"action": "accept", "content": {"na\u{200d}me": "ada", "pick": "yes\u{202e}"}})
        );
    }

    #[test]
    fn a_form_that_needs_no_change_is_passed_as_it_is() {
        let form = r#"{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":10e2}}}}"#;
        let (shown, _) =
            screen_question("notes", Some(&RawValue::from_string(form.into()).unwrap())).unwrap();
        assert!(shown.get().contains(r#"{"type":"number","maximum":10e2}"#), "{}", shown.get());
    }

    #[test]
    fn questions_in_a_result_are_screened_and_the_rest_stays() {
        let result = json!({"resultType": "input_required", "requestState": "s\u{202e}", "inputRequests": {
            "a": {"method": ELICITATION, "params": {"message": "Your\u{202e} name?"}},
            "b": {"method": "roots/list"},
        }});
        let shown: Value =
            serde_json::from_str(screen_result("notes", &raw(&result)).unwrap().get()).unwrap();
        assert_eq!(shown["inputRequests"]["b"], result["inputRequests"]["b"]);
        assert_eq!(shown["requestState"], result["requestState"]);
        let message = shown["inputRequests"]["a"]["params"]["message"].as_str().unwrap();
        assert_eq!(message, "Server `notes` asks (the answer goes to server `notes`): Your\\u{202e} name?");
        for bad in [
            json!({"message": "Enter the PML passphrase"}),
            json!({"message": "Pick", "requestedSchema": {"properties": {"x": {"enum": ["a\u{202e}"]}}}}),
        ] {
            let result = json!({"resultType": "input_required", "inputRequests": {"a": {"method": ELICITATION, "params": bad}}});
            screen_result("notes", &raw(&result)).unwrap_err();
        }
    }

    #[test]
    fn what_asks_for_our_passphrase_is_refused() {
        for (message, field) in [
            ("Enter your PML passphrase to go on", "x"),
            ("PML needs your pass phrase", "x"),
            ("Pour continuer, entrez la phrase secrète de PML", "x"),
            ("Mot de passe PML :", "x"),
            ("Please confirm", "pml_passphrase"),
            ("Please confirm", "pmlPassphrase"),
            ("PML: please confirm", "passphrase"),
            ("Enter your P\u{200b}ML pass\u{200b}phrase", "x"),
            ("Enter the Р\u{41c}L password", "x"),
            ("Type the passphrase of the approval dashboard", "x"),
            ("Type the passphrase you approve calls with", "x"),
            ("P.M.L. wants the p-a-s-s-p-h-r-a-s-e", "x"),
            ("Procedural Memory Layer: sign in with your password", "x"),
        ] {
            let form = json!({"type": "object", "properties": {field: {"type": "string"}}});
            let refused = screen(&json!({"message": message, "requestedSchema": form})).unwrap_err();
            assert_eq!(
                refused,
                "the question of `notes` asks for PML's passphrase, which no server may have"
            );
        }
        for message in [
            "Enter the passphrase of your SSH key",
            "Which PML version do you use?",
            "Approve the deployment?",
            "Payment gateway: choose a currency",
        ] {
            screen(&json!({"message": message})).unwrap();
        }
    }

    #[test]
    fn what_is_called_secret_is_said_to_be() {
        let says = |message: &str, field: Value| {
            let form = json!({"type": "object", "properties": field});
            let shown = screen(&json!({"message": message, "requestedSchema": form})).unwrap();
            shown["message"].as_str().unwrap().contains("something secret")
        };
        let plain = || json!({"x": {"type": "string"}});
        for message in [
            "Your password?",
            "Give me the API key",
            "Votre mot de passe ?",
            "Entrez le code PIN",
            "Clé d'API",
            "Enter the one-time code",
            "Jeton d'accès",
            "PASSPHRASE of the key",
            "your OTP",
        ] {
            assert!(says(message, plain()), "{message}");
        }
        for field in ["apiKey", "github_token", "mdp", "clientSecret", "pin"] {
            assert!(says("Please fill in", json!({field: {"type": "string"}})), "{field}");
        }
        assert!(says("Please fill in", json!({"x": {"type": "string", "title": "Mot de passe"}})));
        for message in
            ["Which colour?", "Pin the message?", "Spinning wheel size", "How many tokens to generate?"]
        {
            let expected = message.contains("Pin") || message.contains("tokens");
            assert_eq!(says(message, plain()), expected, "{message}");
        }
    }
}
