//! A service that says what texts mean, in the form that OpenAI's has.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::Vector;
use crate::config::Endpoint;
use crate::tls;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest answer taken in: many texts with very many numbers each.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The most numbers that a vector may have: more than any model's.
const MOST_NUMBERS: usize = 8_192;
/// How much is repeated of what a service says when it refuses.
const SAID: usize = 200;

/// A service for texts.
#[derive(Debug)]
pub(super) struct Service {
    endpoint: Endpoint,
    http: OnceCell<reqwest::Client>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedded>,
}

#[derive(Deserialize)]
struct Embedded {
    index: usize,
    embedding: Vec<f32>,
}

impl Service {
    pub(super) fn new(endpoint: Endpoint) -> Service {
        Service { endpoint, http: OnceCell::new() }
    }

    /// What the texts mean.
    pub(super) async fn read(&self, texts: &[String]) -> Result<Vec<Vector>, String> {
        let http = self.http.get_or_try_init(|| async { client() }).await?;
        let address = format!("{}/embeddings", self.endpoint.url.as_str().trim_end_matches('/'));
        let body = serde_json::json!({ "model": self.endpoint.name, "input": texts });
        let mut request = http
            .post(address)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_string());
        if let Some(key) = &self.endpoint.key {
            let mut bearer = HeaderValue::from_str(&format!("Bearer {}", key.reveal()))
                .map_err(|_| "`embedding.key` has characters that a header cannot carry".to_owned())?;
            bearer.set_sensitive(true);
            request = request.header(AUTHORIZATION, bearer);
        }
        let url = &self.endpoint.url;
        let answer = request.send().await.map_err(|error| format!("`{url}` does not answer: {error}"))?;
        let status = answer.status();
        let body = whole(answer).await.map_err(|error| format!("the answer of `{url}` {error}"))?;
        if !status.is_success() {
            let said = String::from_utf8_lossy(&body);
            let said = pml_model::name::shortened(&pml_model::name::printable(&said), SAID);
            return Err(format!("`{url}` refuses with status {}: {said}", status.as_u16()));
        }
        let answer: Answer = serde_json::from_slice(&body)
            .map_err(|error| format!("the answer of `{url}` holds no embeddings: {error}"))?;
        in_order(answer.data, texts.len()).map_err(|error| format!("the answer of `{url}` {error}"))
    }
}

fn client() -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls::trusted()?)
        // A redirect could take the texts and the key elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .timeout(PATIENCE)
        .build()
        .map_err(|error| format!("no HTTP client can be made: {error}"))
}

async fn whole(mut answer: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| format!("ends early: {error}"))? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(format!("is larger than {MAX_ANSWER_BYTES} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The vectors in the order of their texts, each of length one.
fn in_order(data: Vec<Embedded>, texts: usize) -> Result<Vec<Vector>, String> {
    let mut vectors: Vec<Option<Vector>> = vec![None; texts];
    let numbers = data.first().map_or(0, |first| first.embedding.len());
    for Embedded { index, embedding } in data {
        let length = embedding.iter().map(|number| number * number).sum::<f32>().sqrt();
        if embedding.len() != numbers || numbers > MOST_NUMBERS || !length.is_finite() || length <= 0.0 {
            return Err("holds vectors that cannot be compared".to_owned());
        }
        let place = vectors.get_mut(index).ok_or_else(|| format!("has a vector for text {index}"))?;
        *place = Some(embedding.iter().map(|number| number / length).collect());
    }
    vectors.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| "lacks vectors for some texts".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded(index: usize, embedding: &[f32]) -> Embedded {
        Embedded { index, embedding: embedding.to_vec() }
    }

    #[test]
    fn vectors_are_put_in_the_order_of_their_texts_and_made_of_length_one() {
        let vectors = in_order(vec![embedded(1, &[0.0, 2.0]), embedded(0, &[3.0, 4.0])], 2).unwrap();
        assert_eq!(*vectors[0], [0.6, 0.8]);
        assert_eq!(*vectors[1], [0.0, 1.0]);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        for (data, texts, expected) in [
            (vec![embedded(0, &[1.0])], 2, "lacks vectors for some texts"),
            (vec![embedded(2, &[1.0])], 2, "has a vector for text 2"),
            (vec![embedded(0, &[1.0]), embedded(1, &[1.0, 0.0])], 2, "holds vectors that cannot be compared"),
            (vec![embedded(0, &[0.0])], 1, "holds vectors that cannot be compared"),
            (vec![embedded(0, &[f32::MAX, f32::MAX])], 1, "holds vectors that cannot be compared"),
        ] {
            assert_eq!(in_order(data, texts).unwrap_err(), expected);
        }
    }
}
