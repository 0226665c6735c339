//! Spans for a collector: `[telemetry]`.

use std::collections::BTreeMap;
use std::path::Path;

use url::Url;

use super::error::ConfigComplaint;
use super::paths::Env;
use super::reference;
use super::secret::Secret;
use super::section::Section;
use super::variables::{ExpandError, VariableExpander};

/// The collector that spans are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryCollector {
    /// The base URL; `/v1/traces` is appended.
    pub endpoint: Url,
    /// HTTP headers of every request, such as an API key.
    pub headers: BTreeMap<String, Secret>,
}

/// Reads `[telemetry]`; `None` if no spans are sent.
pub(super) fn telemetry(
    root: &Section<'_>,
    env: &Env,
    base: &Path,
) -> Result<Option<TelemetryCollector>, ConfigComplaint> {
    let Some(table) = root.section("telemetry", &reference::keys("telemetry"))? else { return Ok(None) };
    let complaint = |key: &str, message: String| {
        table.file.complaint(table.get(key).map_or(table.at, |node| node.at), message)
    };
    let headers = table.text_map("headers")?;
    let Some(endpoint) = table.text("otlp_endpoint")? else {
        return match table.get("headers") {
            None => Ok(None),
            Some(_) => {
                Err(complaint("headers", "`telemetry.headers` stands without `otlp_endpoint`".to_owned())
                    .hint("give the address of the collector, or remove it"))
            }
        };
    };
    let mut variables = VariableExpander::new(env, base);
    let mut expand = |key: &str, text: &str| {
        variables.expand(text).map_err(|ExpandError { message, hint }| complaint(key, message).hint(hint))
    };
    let endpoint = plain_address(&expand("otlp_endpoint", endpoint)?).ok_or_else(|| {
        complaint("otlp_endpoint", "`telemetry.otlp_endpoint` is no plain address".to_owned())
            .hint("write it as `http://127.0.0.1:4318`, without `/v1/traces`; credentials go into `headers`")
    })?;
    let mut expanded = BTreeMap::new();
    for (name, value) in headers {
        let value = expand("headers", &value)?;
        let is_header = reqwest::header::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && reqwest::header::HeaderValue::from_str(&value).is_ok();
        if !is_header {
            return Err(complaint("headers", format!("`telemetry.headers.{name}` is no HTTP header"))
                .hint("a name has no spaces, and a value has no line breaks"));
        }
        expanded.insert(name, Secret::new(value));
    }
    Ok(Some(TelemetryCollector { endpoint, headers: expanded }))
}

fn plain_address(text: &str) -> Option<Url> {
    let is_plain = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
    };
    Url::parse(text).ok().filter(is_plain)
}
