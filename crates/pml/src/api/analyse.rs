//! `POST /api/analyse`: analyses a program or a DAG document without running it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use pml_analysis::dag::DagDocument;
use pml_analysis::render::ComplaintReport;
use pml_analysis::{
    Analysis, Complaint, DagAnalysis, InstrumentedProgram, Parameters, Permissions, ProgramIdentity,
};
use pml_model::structure::Structure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
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

/// The analysis of a program or of a DAG document, complaints included.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum AnalyseReply<'a> {
    /// That of a program.
    Program {
        #[serde(rename = "schemaVersion")]
        schema_version: u32,
        /// The JavaScript that would run, and the meaning of its probes.
        #[schema(value_type = Object)]
        program: &'a InstrumentedProgram,
        #[serde(flatten)]
        common: AnalysisParts<'a>,
    },
    /// That of a DAG document.
    Dag {
        #[serde(rename = "schemaVersion")]
        schema_version: u32,
        /// The tasks that could be understood, as an equivalent document.
        #[schema(value_type = Object)]
        dag: &'a DagDocument,
        #[serde(flatten)]
        common: AnalysisParts<'a>,
    },
}

/// What the analyses of programs and of DAG documents have in common.
#[derive(Serialize, ToSchema)]
struct AnalysisParts<'a> {
    /// Nodes and edges: every call, and in which order.
    #[schema(value_type = Object)]
    structure: &'a Structure,
    #[schema(value_type = ParametersShape)]
    parameters: &'a Parameters,
    #[schema(value_type = PermissionsShape)]
    permissions: &'a Permissions,
    /// Errors, warnings and notes, in the order of the source.
    #[schema(value_type = Vec<ComplaintShape>)]
    complaints: &'a [Complaint],
    #[schema(value_type = IdentityShape)]
    identity: &'a ProgramIdentity,
}

/// The arguments that it takes.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct ParametersShape {
    /// The JSON Schema of `args`.
    #[schema(value_type = Object)]
    schema: Value,
    /// The literals passed to tools, which a capability can vary.
    #[schema(value_type = Vec<Object>)]
    literals: Vec<Value>,
}

/// The tools that it can call.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct PermissionsShape {
    /// `server:tool` of every call that is known.
    declared: Vec<String>,
    /// The names of the capabilities it calls.
    capabilities: Vec<String>,
    /// Why further calls cannot be known; empty when all are known.
    opaque: Vec<RemarkShape>,
    /// Uses of names of other environments that do not exist in the sandbox.
    ambient: Vec<RemarkShape>,
}

/// A fact and its position.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct RemarkShape {
    what: String,
    at: PositionShape,
}

/// A position in the source.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct PositionShape {
    /// The line, from 1.
    line: u32,
    /// The column, from 1, in characters.
    column: u32,
    /// The offset of the first byte.
    start: u32,
    /// The offset of the byte after the last.
    end: u32,
}

/// What is wrong, where, and what to do about it.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct ComplaintShape {
    /// `error`, `warning` or `note`.
    severity: String,
    /// The rule that was violated.
    code: String,
    message: String,
    hint: Option<String>,
    at: PositionShape,
    /// The line of the source, as written.
    excerpt: String,
    /// The node concerned, if any.
    node: Option<String>,
}

/// The hashes that identify it.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "it describes a type of another crate")]
struct IdentityShape {
    /// The same for programs that differ only in names, layout, types, comments and lifted literals.
    identity: String,
    /// The hash of the exact source.
    code_hash: String,
    analysis_version: u32,
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
    (status = 200, description = "The analysis, complaints included", body = AnalyseReply),
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
            let Analysis { structure, parameters, permissions, complaints, identity, program } = &*analysis;
            let common = AnalysisParts { structure, parameters, permissions, complaints, identity };
            let reply = AnalyseReply::Program { schema_version: SCHEMA_VERSION, program, common };
            json_response(StatusCode::OK, &reply)
        }
        AnalysisOutcome::Dag(analysis) => {
            let DagAnalysis { dag, structure, parameters, permissions, complaints, identity } = &*analysis;
            let common = AnalysisParts { structure, parameters, permissions, complaints, identity };
            json_response(StatusCode::OK, &AnalyseReply::Dag { schema_version: SCHEMA_VERSION, dag, common })
        }
        AnalysisOutcome::NotUnderstood(complaint) => {
            let code = ErrorCode::InvalidProgram;
            error_response(StatusCode::UNPROCESSABLE_ENTITY, &NotUnderstood { code, complaint })
        }
    })
}
