//! Resources of PML itself: the results of runs, and the images and other parts that results hold handles of.
//!
//! They are read by the principal whose run it is. `?offset=N&limit=N` reads a page of bytes; without it, everything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pml_mcp::server::IncomingRequest;
use pml_mcp::{Era, RpcError, code};
use pml_model::RunId;
use pml_model::json::{Fields, raw};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::app::App;
use crate::flow;
use crate::problem::{ErrorCode, Problem};

/// The resource that a URI of PML's own names.
#[derive(Debug, PartialEq, Eq)]
enum RunResource {
    /// `pml://runs/ID/result`.
    Result,
    /// `pml://runs/ID/calls/N/parts/N`.
    Part { call: u32 },
}

/// The bytes of a resource that a client asks for.
#[derive(Debug, PartialEq, Eq)]
struct PageRange {
    offset: usize,
    limit: Option<usize>,
}

/// Whether PML itself has the resources with such URIs.
pub(super) fn is_own(uri: &str) -> bool {
    uri.starts_with("pml://runs/")
}

/// The URI of the result of a run.
pub(super) fn result_uri(run: &RunId) -> String {
    format!("pml://runs/{run}/result")
}

/// Answers `resources/read` of a resource of PML's own.
pub(super) async fn read(app: &App, request: &IncomingRequest, uri: &str) -> Result<Box<RawValue>, RpcError> {
    let missing = || not_found(uri, request.caller.era());
    let (bare, range) = split_range(uri)?;
    let (run, resource) = parse(bare).ok_or_else(missing)?;
    let to_rpc = |problem: Problem| match problem.code {
        ErrorCode::NotFound => missing(),
        _ => problem.to_rpc(),
    };
    let whose = &request.client.principal;
    match resource {
        RunResource::Result => {
            let wanted = flow::ResultRequest {
                task: "$result".to_owned(),
                offset: range.offset,
                limit: range.limit.unwrap_or(usize::MAX - range.offset),
                pretty: false,
            };
            let page = flow::task_result(app, whose, &run, &wanted).await.map_err(to_rpc)?;
            let content = json!({ "uri": uri, "mimeType": "application/json", "text": page.content });
            Ok(paged(&content, bare, page.total_bytes, page.next_offset, range.limit))
        }
        RunResource::Part { call } => {
            let contents = flow::run_call(app, whose, &run, call).await.map_err(to_rpc)?;
            let part = contents.parts.into_iter().find(|(known, _)| known == bare).ok_or_else(missing)?.1;
            part_page(&part, uri, bare, &range).ok_or_else(missing)
        }
    }
}

/// The run and the resource in a URI without a range.
fn parse(uri: &str) -> Option<(RunId, RunResource)> {
    let (run, rest) = uri.strip_prefix("pml://runs/")?.split_once('/')?;
    let run = RunId::parse(run).ok()?;
    if rest == "result" {
        return Some((run, RunResource::Result));
    }
    let (call, _) = rest.strip_prefix("calls/")?.split_once("/parts/")?;
    Some((run, RunResource::Part { call: call.parse().ok()? }))
}

/// A URI without the range at its end, and that range.
fn split_range(uri: &str) -> Result<(&str, PageRange), RpcError> {
    let mut range = PageRange { offset: 0, limit: None };
    let Some((bare, query)) = uri.split_once('?') else { return Ok((uri, range)) };
    for pair in query.split('&') {
        let wrong = || {
            let text = format!(
                "`{}` is no range of a resource; give `?offset=N&limit=N` in bytes",
                pml_model::name::printable(pair)
            );
            RpcError::new(code::INVALID_PARAMS, text)
        };
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        let value: usize = value.parse().map_err(|_| wrong())?;
        match name {
            "offset" => range.offset = value,
            "limit" if value > 0 => range.limit = Some(value),
            _ => return Err(wrong()),
        }
    }
    Ok((bare, range))
}

/// A page of an image, a sound or an embedded resource; `None` if the content block is none of these.
fn part_page(part: &RawValue, uri: &str, bare: &str, range: &PageRange) -> Option<Box<RawValue>> {
    let block = Fields::parse(part.get()).ok()?;
    let resource: Value = block.read("resource").unwrap_or_default();
    let mime: Option<String> =
        block.read("mimeType").or_else(|| resource["mimeType"].as_str().map(str::to_owned));
    let mut content = json!({ "uri": uri });
    if let Some(mime) = mime {
        content["mimeType"] = mime.into();
    }
    let own: Option<String> = block.read("data");
    let (total, end) = match (own.as_deref().or(resource["blob"].as_str()), resource["text"].as_str()) {
        (Some(base64), _) if *range == (PageRange { offset: 0, limit: None }) => {
            content["blob"] = base64.into();
            (STANDARD.decode(base64).map_or(base64.len() * 3 / 4, |bytes| bytes.len()), None)
        }
        (Some(base64), _) => {
            let bytes = STANDARD.decode(base64).ok()?;
            let (start, end) = range.within(bytes.len());
            content["blob"] = STANDARD.encode(&bytes[start..end]).into();
            (bytes.len(), Some(end))
        }
        (None, Some(text)) => {
            let (start, end) = range.within(text.len());
            let start = floor_boundary(text, start);
            // A page has at least one character.
            let end =
                floor_boundary(text, end).max(start + text[start..].chars().next().map_or(0, char::len_utf8));
            content["text"] = text[start..end].into();
            (text.len(), Some(end))
        }
        (None, None) => return None,
    };
    let next = end.filter(|end| *end < total && *end > range.offset);
    Some(paged(&content, bare, total, next, range.limit))
}

/// The last boundary between characters at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl PageRange {
    /// The range within `total` bytes.
    fn within(&self, total: usize) -> (usize, usize) {
        let start = self.offset.min(total);
        (start, start.saturating_add(self.limit.unwrap_or(usize::MAX)).min(total))
    }
}

/// The result of a read: the content, the size of the whole, and the URI of the next page.
fn paged(
    content: &Value,
    bare: &str,
    total: usize,
    next: Option<usize>,
    limit: Option<usize>,
) -> Box<RawValue> {
    let mut meta = json!({ "pml/totalBytes": total });
    if let Some(next) = next {
        let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        meta["pml/next"] = format!("{bare}?offset={next}{limit}").into();
    }
    raw(&json!({ "contents": [content], "_meta": meta }))
}

/// The refusal of a resource that nobody has.
pub(super) fn not_found(uri: &str, era: Era) -> RpcError {
    let code = if era == Era::Modern { code::INVALID_PARAMS } else { code::RESOURCE_NOT_FOUND };
    let message = format!("no server has a resource `{}`", pml_model::name::printable(uri));
    RpcError::new(code, message).with_data(&json!({ "uri": uri }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_part(part: &Value, query: &str) -> Value {
        let uri = format!("pml://runs/r/calls/1/parts/0{query}");
        let (bare, range) = split_range(&uri).unwrap();
        serde_json::from_str(part_page(&raw(part), &uri, bare, &range).unwrap().get()).unwrap()
    }

    #[test]
    fn pages_of_bytes_make_up_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        let image = json!({ "type": "image", "mimeType": "image/png", "data": STANDARD.encode(&bytes) });
        let whole = read_part(&image, "");
        assert_eq!(whole["contents"][0]["blob"], image["data"]);
        assert_eq!(whole["contents"][0]["mimeType"], "image/png");
        assert_eq!(whole["_meta"], json!({ "pml/totalBytes": 256 }));
        let (mut query, mut read) = ("?offset=0&limit=100".to_owned(), Vec::new());
        loop {
            let page = read_part(&image, &query);
            read.extend(STANDARD.decode(page["contents"][0]["blob"].as_str().unwrap()).unwrap());
            let Some(next) = page["_meta"]["pml/next"].as_str() else { break };
            query = next[next.find('?').unwrap()..].to_owned();
        }
        assert_eq!(read, bytes);
    }

    #[test]
    fn a_page_of_text_ends_between_characters() {
        let block = json!({ "type": "resource", "resource": { "uri": "x:1", "text": "aéé" } });
        let page = read_part(&block, "?limit=2");
        assert_eq!(page["contents"][0]["text"], "a");
        assert_eq!(page["_meta"]["pml/next"], "pml://runs/r/calls/1/parts/0?offset=1&limit=2");
        assert_eq!(read_part(&block, "?offset=1&limit=2")["contents"][0]["text"], "é");
        assert_eq!(read_part(&block, "?offset=1&limit=1")["contents"][0]["text"], "é");
        assert!(read_part(&block, "?offset=9")["_meta"].get("pml/next").is_none());
    }

    #[test]
    fn a_range_that_makes_no_sense_is_refused() {
        for bad in ["?limit=0", "?offset=-1", "?page=2", "?", "?offset"] {
            split_range(&format!("pml://runs/r/result{bad}")).unwrap_err();
        }
    }
}
