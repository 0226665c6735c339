//! `GET /events`: the live feed as server-sent events.
//!
//! A reader that comes back with `Last-Event-ID` goes on where it was. If this process does not have what it missed,
//! because it was restarted, the journal tells most of it, after an event `resumed`. If that is too much, or the reader is
//! too slow, it gets an event `reset` and has to load anew.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use pml_model::{Principal, RunId};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use utoipa::OpenApi;

use super::reply::problem_response;
use crate::app::App;
use crate::clock::now_ms;
use crate::events::{EventId, FeedDelivery, FeedReader, MissedEvent, PublishedEvent};
use crate::execute;
use crate::problem::{ErrorCode, Problem};

/// 15 s: the interval of comments that keep proxies from cutting an idle stream, and by which a page knows that we are
/// there.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// 10 min: the longest life of a stream. The reader comes back at once, and is asked anew who it is: a session that has
/// ended or a key that was revoked must not go on reading.
const LONGEST: Duration = Duration::from_secs(10 * 60);
/// 1 s: when a reader tries again after a lost connection.
const RETRY_MS: u64 = 1_000;

/// The events that only the process of a run knows, so that they are not told again.
const NOT_STORED: [&str; 6] =
    ["log", "progress", "layer_complete", "capability_start", "capability_end", "capability_hint"];

#[derive(OpenApi)]
#[openapi(paths(events))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/events", get(events))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventsQuery {
    run: Option<String>,
    /// The same as the header, for programs that cannot set it.
    #[serde(rename = "lastEventId")]
    last_event_id: Option<String>,
}

/// What happens to the runs of the principal, live.
#[utoipa::path(get, path = "/events", tag = "runs", params(
    ("run" = Option<String>, Query, description = "Only the events of this run"),
    ("lastEventId" = Option<String>, Query, description = "Goes on after this event, as the header `Last-Event-ID` does"),
), responses(
    (status = 200, description = "A stream of server-sent events", body = String, content_type = "text/event-stream"),
))]
async fn events(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    query: Result<Query<EventsQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let wanted = match query {
        Ok(Query(wanted)) => wanted,
        Err(error) => {
            let problem =
                Problem::new(ErrorCode::InvalidRequest, format!("the query cannot be read: {error}"));
            return problem_response(&problem.hint("give `run` and `lastEventId` at most"));
        }
    };
    let run = match known_run(&app, &principal, wanted.run.as_deref()).await {
        Ok(run) => run,
        Err(problem) => return problem_response(&problem),
    };
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let last = header.or(wanted.last_event_id).filter(|id| !id.is_empty());
    let stream = EventStream::begin(&app, principal, run, last.as_deref()).await;
    let body = futures_util::stream::unfold(stream, |mut stream| async move {
        let text = stream.next().await?;
        Some((Ok::<String, Infallible>(text), stream))
    });
    // nginx buffers event streams unless it is told not to.
    let headers = [(CONTENT_TYPE.as_str(), "text/event-stream"), ("x-accel-buffering", "no")];
    (headers, Body::from_stream(body)).into_response()
}

/// The run that the reader asks for. One of somebody else looks like one that does not exist.
async fn known_run(app: &App, principal: &Principal, run: Option<&str>) -> Result<Option<RunId>, Problem> {
    let Some(text) = run else { return Ok(None) };
    let unknown = || {
        let shown = pml_model::name::printable(text);
        Problem::new(ErrorCode::UnknownRun, format!("there is no run `{shown}`"))
            .hint("`pml runs list` shows the runs there are")
    };
    let id = RunId::parse(text).map_err(|_| unknown())?;
    // The row of a run that was just begun may not be stored yet.
    let local = app.runs.local_handle(&id).is_some_and(|handle| handle.principal == *principal);
    if local || app.store.run(principal, &id).await?.is_some() {
        return Ok(Some(id));
    }
    Err(unknown())
}

/// One reader's stream.
struct EventStream {
    reader: FeedReader,
    /// What is sent before the next event of the feed.
    first: VecDeque<String>,
    until: Instant,
}

impl EventStream {
    async fn begin(app: &App, principal: Principal, run: Option<RunId>, last: Option<&str>) -> EventStream {
        let after = last.and_then(EventId::parse);
        let feed = &app.runs.feed;
        let mut reader = feed.subscribe(principal.clone(), run.clone(), after.as_ref());
        feed.wait_until_following().await;
        let mut first = VecDeque::from([format!("retry: {RETRY_MS}\n: connected\n\n")]);
        let missed = reader.take_missed() || last.is_some() && after.is_none();
        if missed {
            match missed_events(app, (&principal, run.as_ref()), after.as_ref()).await {
                Some(missed) => {
                    first.push_back(event(
                        "resumed",
                        None,
                        &json!({ "at": now_ms(), "notRepeated": NOT_STORED }),
                    ));
                    first.extend(missed.iter().map(missed_event));
                }
                None => first.push_back(reset(&reader, "unknown_position")),
            }
        }
        EventStream { reader, first, until: Instant::now() + LONGEST }
    }

    /// The next part of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        if let Some(first) = self.first.pop_front() {
            return Some(first);
        }
        let delivery = tokio::select! {
            delivery = self.reader.next() => delivery,
            () = tokio::time::sleep(HEARTBEAT) => return Some(": heartbeat\n\n".to_owned()),
            () = tokio::time::sleep_until(self.until) => return None,
        };
        match delivery {
            FeedDelivery::Events(events) => {
                let text = |published: &Arc<PublishedEvent>| {
                    let id = self.reader.id_of(published);
                    frame(published.event.name(), Some(&id), &published.data)
                };
                Some(events.iter().map(text).collect())
            }
            FeedDelivery::Reset => Some(reset(&self.reader, "too_slow")),
            FeedDelivery::Closed => None,
        }
    }
}

/// What the reader missed, if the store can tell.
async fn missed_events(
    app: &App,
    (principal, run): (&Principal, Option<&RunId>),
    after: Option<&EventId>,
) -> Option<Vec<MissedEvent>> {
    let since = after?.missed_since();
    match execute::missed_events(&app.runs, principal, run, since).await {
        Ok(missed) => missed,
        Err(problem) => {
            tracing::warn!(%problem, "what a reader missed could not be read");
            None
        }
    }
}

fn missed_event(missed: &MissedEvent) -> String {
    frame(missed.name, Some(&EventId::of_missed(missed.at)), &missed.data)
}

/// Tells the reader that events are missing: it has to load anew, and goes on from here.
fn reset(reader: &FeedReader, reason: &str) -> String {
    event("reset", Some(&reader.position()), &json!({ "at": now_ms(), "reason": reason }))
}

fn event(name: &str, id: Option<&EventId>, data: &Value) -> String {
    frame(name, id, &data.to_string())
}

/// An event on the wire. JSON has no line breaks outside of its strings, and escapes those within.
fn frame(name: &str, id: Option<&EventId>, data: &str) -> String {
    match id {
        Some(id) => format!("event: {name}\nid: {id}\ndata: {data}\n\n"),
        None => format!("event: {name}\ndata: {data}\n\n"),
    }
}
