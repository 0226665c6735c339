//! A remote embedding service with the API of OpenAI.

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::Vector;
use crate::config::EmbeddingEndpoint;
use crate::tls;

/// 10 s: the timeout of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// 16 MiB: the largest response, enough for many texts with long vectors.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// The largest vector dimension: more than any model has.
const MOST_NUMBERS: usize = 8_192;
/// The number of characters quoted from an error response.
const SAID: usize = 200;

/// The client of an embedding service.
#[derive(Debug)]
pub(super) struct EmbeddingService {
    endpoint: EmbeddingEndpoint,
    http: OnceCell<reqwest::Client>,
}

#[derive(Deserialize)]
struct EmbeddingResponse {
    data: Vec<EmbeddingItem>,
}

#[derive(Deserialize)]
struct EmbeddingItem {
    index: usize,
    embedding: Vec<f32>,
}

impl EmbeddingService {
    pub(super) fn new(endpoint: EmbeddingEndpoint) -> EmbeddingService {
        EmbeddingService { endpoint, http: OnceCell::new() }
    }

    /// Requests the embeddings of the texts.
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Vector>, String> {
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
            let said = pml_model::name::truncate_text(&pml_model::name::printable(&said), SAID);
            return Err(format!("`{url}` refuses with status {}: {said}", status.as_u16()));
        }
        let answer: EmbeddingResponse = serde_json::from_slice(&body)
            .map_err(|error| format!("the answer of `{url}` holds no embeddings: {error}"))?;
        in_order(answer.data, texts.len()).map_err(|error| format!("the answer of `{url}` {error}"))
    }
}

fn client() -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls::tls_client_config()?)
        // A redirect could send the texts and the key elsewhere.
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

/// The vectors in the order of their texts, each normalised to length one.
fn in_order(data: Vec<EmbeddingItem>, texts: usize) -> Result<Vec<Vector>, String> {
    let mut vectors: Vec<Option<Vector>> = vec![None; texts];
    let numbers = data.first().map_or(0, |first| first.embedding.len());
    for EmbeddingItem { index, embedding } in data {
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

    fn embedded(index: usize, embedding: &[f32]) -> EmbeddingItem {
        EmbeddingItem { index, embedding: embedding.to_vec() }
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
