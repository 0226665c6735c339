//! The files of the dashboard, compiled into the binary.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use pml_model::Digest;

/// Every file below `page/` with its content, by name. The build script writes the table.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

struct Asset {
    content_type: &'static str,
    body: &'static [u8],
    etag: String,
}

static ASSETS: LazyLock<HashMap<&'static str, Asset>> = LazyLock::new(|| {
    let asset = |&(name, body): &(&'static str, &'static [u8])| {
        let etag = format!("\"{}\"", Digest::of(body));
        (name, Asset { content_type: content_type(name), body, etag })
    };
    FILES.iter().map(asset).collect()
});

/// Serves one file. Another version of the program has other content under the same name, so browsers ask each time.
pub(super) async fn asset(name: Result<Path<String>, PathRejection>, headers: HeaderMap) -> Response {
    let name = name.map(|Path(name)| name).unwrap_or_default();
    let Some(asset) = ASSETS.get(name.as_str()).filter(|_| !is_page(&name)) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let caching = [(ETAG, asset.etag.as_str()), (CACHE_CONTROL, "no-cache")];
    let known = headers.get(IF_NONE_MATCH).is_some_and(|tags| lists(tags.as_bytes(), &asset.etag));
    if known {
        return (StatusCode::NOT_MODIFIED, caching).into_response();
    }
    (caching, [(CONTENT_TYPE, asset.content_type)], asset.body).into_response()
}

/// A page, whoever asks.
pub(super) fn page(name: &str) -> Response {
    match ASSETS.get(name) {
        Some(asset) => ([(CONTENT_TYPE, asset.content_type)], asset.body).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Whether a file is answered under an address of its own.
fn is_page(name: &str) -> bool {
    content_type(name).starts_with("text/html")
}

fn lists(tags: &[u8], etag: &str) -> bool {
    tags.split(|&byte| byte == b',').any(|tag| tag.trim_ascii() == etag.as_bytes())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
