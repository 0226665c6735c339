//! A dry run of one principal does not exist for another.

use std::sync::Arc;
use std::time::Duration;

use pml::app::{App, ProcessRole};
use pml::config::{DynamicPolicy, Env, Paths};
use pml::flow::{self, DryRunOptions, DryRunOutcome, KeptIf};
use pml::plan::Pause;
use pml::planning::{RunRequest, Work};
use pml::problem::{ErrorCode, Problem};
use pml_mcp::Caller;
use pml_model::Principal;
use pml_model::json::empty_object;
use pml_model::question::Answerer;
use serde_json::json;

use crate::harness::Home;

/// A document, because this process runs no programs.
fn request(principal: &Principal) -> RunRequest {
    request_to_parse(principal, "[1]")
}

fn request_to_parse(principal: &Principal, text: &str) -> RunRequest {
    let task = json!({ "id": "t", "tool": "json:parse", "arguments": { "json": text } });
    RunRequest {
        key: None,
        principal: principal.clone(),
        session: "session".to_owned(),
        intent: "a test".to_owned(),
        work: Work::Dag { document: json!({ "tasks": [task] }).to_string(), pause: Pause::None },
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: Duration::from_secs(60),
        answerer: Answerer::Human,
        dynamic: DynamicPolicy::Refuse,
        learn: false,
        capability: None,
        use_cache: true,
        speculate: true,
    }
}

async fn confirm(app: &Arc<App>, principal: &Principal, id: &str) -> Result<(), Problem> {
    flow::confirm_dry_run(app, request(principal), id, |_| true).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_dry_run_of_another_principal_looks_like_one_that_does_not_exist() {
    let home = Home::new("");
    let paths = Paths { config: home.path("pml.toml"), data: home.path("") };
    let app = App::open(paths, Env::default(), home.path(""), ProcessRole::Command).await.unwrap();
    let (owner, other) = (Principal::local(), Principal("somebody else".to_owned()));
    let outcome = flow::dry_run(&app, request(&owner), DryRunOptions::default(), |_| true).await.unwrap();
    let DryRunOutcome::Report(report) = outcome else { panic!("there is a report") };

    let refused = confirm(&app, &other, &report.id).await.unwrap_err();
    assert_eq!((refused.code, refused.http_status().as_u16()), (ErrorCode::NotFound, 404));
    let unknown = "dry_00000000000000000000000000";
    let nothing = confirm(&app, &other, unknown).await.unwrap_err();
    let shown = |problem: &Problem, id: &str| serde_json::to_string(problem).unwrap().replace(id, "ID");
    assert_eq!(shown(&refused, &report.id), shown(&nothing, unknown));

    confirm(&app, &owner, &report.id).await.unwrap();
    app.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_try_that_failed_takes_no_place_among_those_that_can_be_confirmed() {
    let home = Home::new("");
    let paths = Paths { config: home.path("pml.toml"), data: home.path("") };
    let app = App::open(paths, Env::default(), home.path(""), ProcessRole::Command).await.unwrap();
    let owner = Principal::local();
    let options = || DryRunOptions { kept: KeptIf::Returned, ..DryRunOptions::default() };
    let mut ids = Vec::new();
    for text in ["[1]", "no JSON"] {
        let outcome = flow::dry_run(&app, request_to_parse(&owner, text), options(), |_| true).await.unwrap();
        let DryRunOutcome::Report(report) = outcome else { panic!("there is a report") };
        ids.push(report.id);
    }
    let refused = confirm(&app, &owner, &ids[1]).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotFound);
    confirm(&app, &owner, &ids[0]).await.unwrap();
    app.close().await;
}
