//! `POST /api/analyse`: analyses a program or a DAG document without running it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use pml_analysis::render::ComplaintReport;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiJson;
use super::reply::{ErrorReply, SCHEMA_VERSION, error_response, json_response};
use crate::app::App;
use crate::flow::{self, AnalysisOutcome};
use crate::problem::{ErrorCode, Problem};

#[derive(OpenApi)]
#[openapi(paths(analyse))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/analyse", post(analyse))
}

/// What to analyse: exactly one of the two fields.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AnalyseBody {
    /// A program in TypeScript.
    code: Option<String>,
    /// A DAG document.
    #[schema(value_type = Option<Object>)]
    dag_structure: Option<Box<RawValue>>,
}

/// The analysis, complaints included.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnalyseReply<A> {
    schema_version: u32,
    #[serde(flatten)]
    analysis: A,
}

/// Why a program cannot be parsed.
#[derive(Serialize)]
struct NotUnderstood {
    code: ErrorCode,
    #[serde(flatten)]
    complaint: ComplaintReport,
}

/// Analyses a program or a DAG document; nothing runs.
#[utoipa::path(post, path = "/api/analyse", tag = "programs", request_body = AnalyseBody, responses(
    (status = 200, description = "The analysis, complaints included", body = Object),
    (status = 422, description = "The program cannot be parsed", body = ErrorReply),
))]
async fn analyse(
    State(app): State<Arc<App>>,
    ApiJson(body): ApiJson<AnalyseBody>,
) -> Result<Response, Problem> {
    let analysed = match (body.code, body.dag_structure) {
        (Some(code), None) => flow::analyse(&app, code).await,
        (None, Some(dag)) => flow::analyse_dag(&app, dag.get().to_owned()).await,
        _ => {
            return Err(Problem::new(ErrorCode::InvalidRequest, "give either `code` or `dagStructure`")
                .hint("send `{\"code\": \"…\"}` or `{\"dagStructure\": {…}}`"));
        }
    };
    Ok(match analysed {
        AnalysisOutcome::Program(analysis) => {
            json_response(StatusCode::OK, &AnalyseReply { schema_version: SCHEMA_VERSION, analysis })
        }
        AnalysisOutcome::Dag(analysis) => {
            json_response(StatusCode::OK, &AnalyseReply { schema_version: SCHEMA_VERSION, analysis })
        }
        AnalysisOutcome::NotUnderstood(complaint) => {
            let code = ErrorCode::InvalidProgram;
            error_response(StatusCode::UNPROCESSABLE_ENTITY, &NotUnderstood { code, complaint })
        }
    })
}
