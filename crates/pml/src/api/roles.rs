//! Which role each route needs.
//!
//! Every route stands in one table; a route that does not is closed to all but admins. What a request may do once it is
//! admitted is decided elsewhere: whose rows it sees by its principal, whose answer counts by `flow::authority`.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use pml_mcp::server::access::{AccessRefusal, Admission};
use pml_model::Role;

use super::reply::problem_response;
use crate::app::App;
use crate::problem::{ErrorCode, Problem};

/// The role that each route needs, by its method and its path as the OpenAPI document writes it.
pub const ROUTE_ROLES: [(&str, &str, Role); 66] = [
    ("POST", "/mcp", Role::Agent),
    ("GET", "/mcp", Role::Agent),
    ("DELETE", "/mcp", Role::Agent),
    ("GET", "/events", Role::Agent),
    ("GET", "/metrics", Role::Admin),
    ("GET", "/api/openapi.json", Role::Agent),
    ("GET", "/api/metrics", Role::Admin),
    ("GET", "/api/session", Role::Agent),
    ("GET", "/api/runs", Role::Agent),
    ("GET", "/api/runs/{id}", Role::Agent),
    ("GET", "/api/runs/{id}/calls", Role::Agent),
    ("GET", "/api/runs/{id}/calls/{call}", Role::Agent),
    ("POST", "/api/runs/{id}/abort", Role::Agent),
    ("POST", "/api/execute", Role::Agent),
    ("POST", "/api/dry-run", Role::Agent),
    ("POST", "/api/discover", Role::Agent),
    ("POST", "/api/analyse", Role::Agent),
    ("POST", "/api/explore", Role::Agent),
    ("GET", "/api/approvals", Role::Agent),
    ("POST", "/api/approvals/{run}/{question}", Role::Approver),
    ("GET", "/api/rules", Role::Agent),
    ("DELETE", "/api/rules/{id}", Role::Approver),
    ("GET", "/api/quarantine", Role::Agent),
    ("POST", "/api/quarantine/{tool}", Role::Admin),
    ("GET", "/api/servers", Role::Agent),
    ("GET", "/api/servers/{name}", Role::Agent),
    ("POST", "/api/servers/{name}/restart", Role::Admin),
    ("POST", "/api/servers/{name}/accept", Role::Admin),
    ("GET", "/api/policy/{tool}", Role::Agent),
    ("GET", "/api/audit", Role::Member),
    ("GET", "/api/cache", Role::Agent),
    ("DELETE", "/api/cache", Role::Member),
    ("GET", "/api/savings", Role::Agent),
    ("GET", "/api/capabilities", Role::Agent),
    ("POST", "/api/capabilities", Role::Member),
    ("GET", "/api/capabilities/{name}", Role::Agent),
    ("GET", "/api/capabilities/{name}/definition", Role::Agent),
    ("DELETE", "/api/capabilities/{name}", Role::Member),
    ("GET", "/api/capabilities/{name}/versions", Role::Agent),
    ("GET", "/api/capabilities/{name}/diff", Role::Agent),
    ("POST", "/api/capabilities/{name}/rollback", Role::Member),
    ("POST", "/api/capabilities/{name}/rename", Role::Member),
    ("POST", "/api/capabilities/{name}/merge", Role::Member),
    ("POST", "/api/capabilities/{name}/forget-intent", Role::Member),
    ("POST", "/api/capabilities/{name}/cache", Role::Member),
    ("POST", "/api/capabilities/{name}/publish", Role::Member),
    ("GET", "/api/traces", Role::Agent),
    ("GET", "/api/traces/{capability}", Role::Agent),
    ("GET", "/api/trace/{id}", Role::Agent),
    ("GET", "/api/trace/{id}/invocation", Role::Agent),
    ("GET", "/api/graph", Role::Agent),
    ("GET", "/api/graph/ways", Role::Agent),
    ("GET", "/api/graph/layout", Role::Agent),
    ("GET", "/api/graph/node", Role::Agent),
    ("GET", "/api/graph/search", Role::Agent),
    ("GET", "/api/speculation", Role::Agent),
    ("GET", "/api/mocks", Role::Agent),
    ("GET", "/api/mocks/{id}", Role::Agent),
    ("GET", "/health", Role::Agent),
    ("GET", "/ready", Role::Agent),
    ("GET", "/", Role::Agent),
    ("GET", "/login", Role::Agent),
    ("POST", "/login", Role::Agent),
    ("POST", "/logout", Role::Agent),
    ("GET", "/open/{ticket}", Role::Agent),
    ("GET", "/assets/{name}", Role::Agent),
];

/// The role that a request needs. A HEAD is a GET without a body.
fn required_role(method: &Method, path: &str) -> Role {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let known = ROUTE_ROLES.iter().find(|(listed, route, _)| *listed == method && *route == path);
    known.map_or(Role::Admin, |(_, _, role)| *role)
}

/// The role of whoever was admitted; `None` if they were removed meanwhile. The token is the operator's own.
pub(super) fn role_of(app: &App, admission: &Admission) -> Option<Role> {
    match admission {
        Admission::Key(_, key) => app.keys.role(Some(*key)),
        Admission::Session(principal) => app.people.role(principal),
        Admission::Token(_) => Some(Role::Admin),
        // A viewer is refused what changes something.
        Admission::Viewer(_) | Admission::Open => None,
    }
}

/// Admits a request whose sender has the role that the route needs.
pub async fn check_role(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let role = match request.extensions().get::<Admission>() {
        Some(Admission::Key(_, key)) => app.keys.role(Some(*key)),
        Some(Admission::Session(principal)) => app.people.role(principal),
        // The token is the operator's own; a viewer was refused what changes something before.
        Some(Admission::Token(_) | Admission::Viewer(_) | Admission::Open) | None => {
            return next.run(request).await;
        }
    };
    let Some(path) = request.extensions().get::<MatchedPath>() else {
        // No route has the path; the router says so.
        return next.run(request).await;
    };
    // The router answers other methods than those that the route has.
    let is_routed = |listed: &&(&str, &str, Role)| listed.1 == path.as_str();
    let known_path = ROUTE_ROLES.iter().find(is_routed).is_some();
    let method_known = ROUTE_ROLES.iter().filter(is_routed).any(|(method, _, _)| {
        *method == request.method().as_str() || (*method == "GET" && *request.method() == Method::HEAD)
    });
    if known_path && !method_known {
        return next.run(request).await;
    }
    let needed = required_role(request.method(), path.as_str());
    match role {
        None => axum::response::IntoResponse::into_response(AccessRefusal::Token),
        Some(role) if role >= needed => next.run(request).await,
        Some(role) => problem_response(&refusal(role, needed)),
    }
}

fn refusal(role: Role, needed: Role) -> Problem {
    Problem::new(
        ErrorCode::Denied,
        format!("this needs the role `{needed}`, and this request has the role `{role}`"),
    )
    .hint(format!(
        "use a key with that role (`pml keys create --role {needed}`), or sign in as somebody who has it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_of_the_document_stands_in_the_table_once() {
        let document = serde_json::to_value(super::super::openapi::document_of_all_routes()).unwrap();
        let mut routes: Vec<(String, String)> = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for method in item.as_object().unwrap().keys() {
                routes.push((method.to_uppercase(), path.clone()));
            }
        }
        let mut listed: Vec<(String, String)> =
            ROUTE_ROLES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
        routes.sort();
        listed.sort();
        assert_eq!(listed, routes);
    }

    #[test]
    fn a_route_that_is_not_in_the_table_is_for_admins() {
        assert_eq!(required_role(&Method::GET, "/api/new"), Role::Admin);
        assert_eq!(required_role(&Method::PUT, "/api/runs"), Role::Admin);
        assert_eq!(required_role(&Method::HEAD, "/api/runs"), Role::Agent);
    }
}
