//! `/api/rules`: the standing rules that people made, and revoking one.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, State};
use axum::routing::{delete, get};
use pml_mcp::server::access::Admission;
use pml_model::{Digest, Principal};
use pml_store::{ApprovalRule, RuleMaker};
use serde::Serialize;
use utoipa::{OpenApi, ToSchema};

use super::extract::ApiPath;
use super::reply::{Reply, SCHEMA_VERSION};
use crate::app::App;
use crate::flow::{self, AnswerChannel};
use crate::problem::{ErrorCode, Problem};

#[derive(OpenApi)]
#[openapi(paths(list, revoke))]
pub(super) struct Docs;

pub(super) fn router() -> Router<Arc<App>> {
    Router::new().route("/api/rules", get(list)).route("/api/rules/{id}", delete(revoke))
}

/// The standing rules, newest first, expired and revoked ones included.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RulesReply {
    schema_version: u32,
    items: Vec<RuleItem>,
}

/// A standing rule: calls that a person approved for later runs too.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleItem {
    id: i64,
    tool: String,
    /// The digest of the tool's definition; the rule covers no other one.
    #[schema(value_type = String)]
    definition: Digest,
    /// The code that it covers; absent for any code.
    #[serde(skip_serializing_if = "Option::is_none")]
    code_hash: Option<String>,
    /// The digest of the arguments that it covers; absent for any arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    arguments: Option<Digest>,
    created_at: i64,
    expires_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked_at: Option<i64>,
    /// The channel through which it was given.
    by: String,
    made_by_person: bool,
    uses: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<i64>,
}

impl From<ApprovalRule> for RuleItem {
    fn from(rule: ApprovalRule) -> RuleItem {
        RuleItem {
            id: rule.number,
            tool: rule.tool,
            definition: rule.definition,
            code_hash: rule.code_hash,
            arguments: rule.arguments,
            created_at: rule.created_at,
            expires_at: rule.expires_at,
            revoked_at: rule.revoked_at,
            by: rule.by,
            made_by_person: rule.maker == RuleMaker::Person,
            uses: rule.uses,
            used_at: rule.used_at,
        }
    }
}

/// Lists the standing rules.
#[utoipa::path(get, path = "/api/rules", tag = "approvals", responses((status = 200, body = RulesReply)))]
async fn list(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
) -> Result<Reply<RulesReply>, Problem> {
    let rules = flow::rules(&app, &principal).await?;
    let items = rules.into_iter().map(RuleItem::from).collect();
    Ok(Reply(RulesReply { schema_version: SCHEMA_VERSION, items }))
}

/// A standing rule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleReply {
    schema_version: u32,
    #[serde(flatten)]
    rule: RuleItem,
}

/// Revokes a standing rule: its calls need approval again.
#[utoipa::path(delete, path = "/api/rules/{id}", tag = "approvals", params(("id" = i64, Path, description = "The number of the rule")), responses((status = 200, body = RuleReply)))]
async fn revoke(
    State(app): State<Arc<App>>,
    Extension(principal): Extension<Principal>,
    Extension(admitted): Extension<Admission>,
    ApiPath(id): ApiPath<String>,
) -> Result<Reply<RuleReply>, Problem> {
    let id = id.parse().map_err(|_| Problem::new(ErrorCode::NotFound, "there is no such rule"))?;
    let by = match admitted {
        Admission::Session(person) => AnswerChannel::Dashboard { person },
        Admission::Token(_) | Admission::Key(..) | Admission::Open | Admission::Viewer(_) => {
            AnswerChannel::Api
        }
    };
    let rule = flow::revoke_rule(&app, &principal, id, &by).await?.into();
    Ok(Reply(RuleReply { schema_version: SCHEMA_VERSION, rule }))
}
