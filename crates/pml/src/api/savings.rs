//! `GET /api/savings`: what caches, calls made ahead and short results saved.
//!
//! Every figure says how it is computed; what cannot be known is left out.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::get;
use pml_model::Principal;
use pml_store::DailySavings;
use serde::{Deserialize, Serialize};
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiQuery;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow;
use crate::problem::{ErrorCode, Problem};

/// The days that are shown, unless the client says otherwise, and at most.
const DAYS: u32 = 30;
const MOST_DAYS: u32 = 366;
/// Bytes of JSON per token, as a rule of thumb for cl100k.
const BYTES_PER_TOKEN: u64 = 4;

#[derive(OpenApi)]
#[openapi(paths(show))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/savings", get(show))
}

/// Which days to show.
#[derive(Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SavingsQuery {
    /// The number of days until today, from 1 to 366; 30 by default.
    #[param(minimum = 1, maximum = 366)]
    days: Option<u32>,
}

/// What was saved.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SavingsReply {
    schema_version: u32,
    days: u32,
    tokens: TokenSavings,
    time_ms: TimeSavings,
    /// The days on which something happened, oldest first, in UTC.
    series: Vec<SavingsDay>,
    /// How each figure is computed.
    methods: SavingsMethods,
}

/// Tokens that agents did not have to read.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TokenSavings {
    /// An estimate; see `methods`.
    results: u64,
    /// The bytes that it is computed from.
    result_bytes: u64,
}

/// Milliseconds that nobody had to wait.
#[derive(Serialize, ToSchema)]
struct TimeSavings {
    cache: u64,
    speculation: u64,
}

/// How the figures are computed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SavingsMethods {
    tokens: &'static str,
    cache_ms: &'static str,
    speculation_ms: &'static str,
}

/// One day.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SavingsDay {
    /// The beginning of the day.
    day: i64,
    runs: u64,
    cache_hits: u64,
    speculated_hits: u64,
    saved_ms: u64,
    tokens_saved: u64,
}

impl From<&DailySavings> for SavingsDay {
    fn from(saved: &DailySavings) -> SavingsDay {
        SavingsDay {
            day: saved.day,
            runs: saved.runs,
            cache_hits: saved.cache_hits,
            speculated_hits: saved.speculated_calls,
            saved_ms: saved.cache_saved_ms + saved.speculation_saved_ms,
            tokens_saved: saved.kept_bytes / BYTES_PER_TOKEN,
        }
    }
}

const METHODS: SavingsMethods = SavingsMethods {
    tokens: "for each run, the bytes of the results of its calls less those of its own result, which is all that the \
             agent reads; 4 bytes are taken for one token",
    cache_ms: "for each request that was answered from the cache, the average duration of that capability's runs",
    speculation_ms: "for each call made before its program asked, the time from its start to that moment, at most its \
                     whole duration; measured",
};

/// Tells what was saved.
#[utoipa::path(get, path = "/api/savings", tag = "learning", params(SavingsQuery), responses((status = 200, body = SavingsReply)))]
async fn show(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    ApiQuery(query): ApiQuery<SavingsQuery>,
) -> Result<Reply<SavingsReply>, Problem> {
    let days = query.days.unwrap_or(DAYS);
    if days == 0 || days > MOST_DAYS {
        let text = format!("`days` is {days} and must be between 1 and {MOST_DAYS}");
        return Err(Problem::new(ErrorCode::InvalidRequest, text));
    }
    let saved = flow::daily_savings(&app, &principal, days).await?;
    let sum = |figure: fn(&DailySavings) -> u64| saved.iter().map(figure).sum::<u64>();
    let result_bytes = sum(|day| day.kept_bytes);
    Ok(Reply(SavingsReply {
        schema_version: SCHEMA_VERSION,
        days,
        tokens: TokenSavings { results: result_bytes / BYTES_PER_TOKEN, result_bytes },
        time_ms: TimeSavings {
            cache: sum(|day| day.cache_saved_ms),
            speculation: sum(|day| day.speculation_saved_ms),
        },
        series: saved.iter().map(SavingsDay::from).collect(),
        methods: METHODS,
    }))
}
