//! The event streams of a server: the one that answers a request, resumed where it is cut, and the one for everything
//! else.

use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reqwest::{Response as HttpResponse, StatusCode};
use serde_json::value::RawValue;

use super::{HttpTransport, Refused, is_event_stream};
use crate::client::failure::{LostReason, RequestFailure};
use crate::message::{MAX_MESSAGE_BYTES, RpcResponse};
use crate::sse::{EventTooLong, SseDecoder};

/// The pause before the event stream of a server is opened again, which doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before the event stream of a server is opened again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Attempts in a row that may fail to resume the answer to a request: about 20 s with pauses of 0.5 s that double, so
/// that a server can be restarted or a proxy reloaded in between.
const MAX_FAILED_RESUMPTIONS: u32 = 6;

impl HttpTransport {
    /// Opens the event stream of a legacy server, if it has one.
    pub(crate) fn spawn_listener(&self) {
        let link = self.clone();
        self.inner.tasks.spawn(async move {
            link.inner.stop.run_until_cancelled(link.keep_listening()).await;
        });
    }

    async fn keep_listening(&self) {
        let mut decoder = SseDecoder::default();
        let mut pause = FIRST_PAUSE;
        loop {
            // A token that is refused here may be good for requests, whose refusal is what renews it.
            match self.get(decoder.last_id(), Refused::Final).await {
                Ok(response) if is_event_stream(&response) => {
                    let opened = Instant::now();
                    decoder = decoder.continued();
                    if let Err(error) = self.read_events(response, &mut decoder, None).await {
                        tracing::debug!(error, "an event stream was left");
                    }
                    // A stream that lasted was cut by something temporary.
                    if opened.elapsed() > LONGEST_PAUSE {
                        pause = FIRST_PAUSE;
                    }
                }
                Ok(response) if !may_stream_later(response.status()) => return,
                Ok(response) => tracing::debug!(status = %response.status(), "no event stream for now"),
                Err(error) => tracing::debug!(%error, "no event stream for now"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Reads the event stream that answers a request, and resumes it as often as it is cut.
    pub(super) async fn follow(
        &self,
        mut response: HttpResponse,
        id: u64,
    ) -> Result<Box<RawValue>, RequestFailure> {
        // A connection that carries no event with an id is resumed after the last event of an earlier one.
        let mut decoder = SseDecoder::default();
        loop {
            let read = self.read_events(response, &mut decoder, Some(id)).await;
            let answer =
                read.map_err(|reason| RequestFailure::Unknown(LostReason::UnusableAnswer(reason)))?;
            if let Some(answer) = answer {
                return self.settle(id, answer).await;
            }
            decoder = decoder.continued();
            response = self.resume(&decoder).await?;
        }
    }

    /// The rest of a stream that was cut. The request was accepted: whatever fails now, the server may have acted on it.
    async fn resume(&self, cut: &SseDecoder) -> Result<HttpResponse, RequestFailure> {
        let ended = |why: String| RequestFailure::Unknown(LostReason::ServerEnded(why));
        let Some(last_id) = cut.last_id() else {
            return Err(ended("it ended the stream without an answer".to_owned()));
        };
        let mut pause = resume_pause(cut);
        // One refusal may be about a token that ended meanwhile.
        let mut refused = Refused::NewToken;
        let mut why = String::new();
        for _ in 0..MAX_FAILED_RESUMPTIONS {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            match self.get(Some(last_id), std::mem::replace(&mut refused, Refused::Final)).await {
                Ok(response) if is_event_stream(&response) => return Ok(response),
                Ok(response) if !may_stream_later(response.status()) => {
                    return Err(ended("it cut the stream and did not take it up again".to_owned()));
                }
                Ok(response) => {
                    why = format!("it cut the stream, and then answered HTTP {}", response.status());
                }
                Err(failure) => why = failure.to_string(),
            }
            tracing::debug!(why, "a stream is not resumed yet");
        }
        Err(ended(why))
    }

    /// Reads events until the stream ends or the response to `id` arrives.
    async fn read_events(
        &self,
        response: HttpResponse,
        decoder: &mut SseDecoder,
        id: Option<u64>,
    ) -> Result<Option<RpcResponse>, String> {
        let mut chunks = response.bytes_stream();
        let mut events = Vec::new();
        while let Some(chunk) = chunks.next().await {
            // A broken stream is treated like one that ended: it may be resumed.
            let Ok(chunk) = chunk else { break };
            let pushed = decoder.push(&chunk, MAX_MESSAGE_BYTES, |event| events.push(event));
            pushed.map_err(|EventTooLong| "an event longer than a message may be".to_owned())?;
            for event in events.drain(..) {
                if let Some(answer) = self.take(event, id).await {
                    return Ok(Some(answer));
                }
            }
        }
        Ok(None)
    }
}

/// The pause before a stream is resumed: what the server asked for, within bounds.
fn resume_pause(cut: &SseDecoder) -> Duration {
    Duration::from_millis(cut.retry_ms().unwrap_or(500).clamp(50, 30_000))
}

/// Whether a server that answers a request for its event stream like this may have one later: most say 405 where there
/// is none, and 404 where the session has ended.
fn may_stream_later(status: StatusCode) -> bool {
    let for_now = [
        StatusCode::UNAUTHORIZED,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::CONFLICT,
        StatusCode::TOO_EARLY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED) || for_now.contains(&status)
}

#[cfg(test)]
mod tests;
