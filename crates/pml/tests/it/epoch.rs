//! The write epoch, through real calls of this process and of another one.

use pml::app::{App, ProcessRole};
use pml::config::{Env, Paths};
use pml::epoch::EpochMark;
use pml::tools::{self, AskedByClient, CallContext, CallOutcome, DirectCaller};
use pml_mcp::Caller;
use pml_model::json::{Fields, raw};
use pml_model::{ServerName, ToolId};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::faulty::Remote;
use crate::harness::{Home, eventually};

async fn call(app: &App, tool: &str, arguments: &Value) -> CallOutcome {
    let direct = DirectCaller {
        client: "test".to_owned(),
        key: None,
        // What moves the epoch is the question here, and not who may call.
        asked_by_client: Some(AskedByClient::Listed),
    };
    let context =
        CallContext::direct(app.principal.clone(), direct, Caller::silent(), CancellationToken::new());
    tools::call(&app.tools, &context, &ToolId::parse(tool).unwrap(), &raw(arguments), Fields::default()).await
}

fn mark(app: &App, server: &str) -> EpochMark {
    app.tools.epoch.mark_for_server(&ServerName::new(server).unwrap()).unwrap()
}

#[tokio::test]
async fn calls_that_may_write_move_the_epoch_and_others_do_not() {
    let home = Home::new("");
    // Reached and not started: what starts servers is the program, and this is not it.
    let (s, alone) = (Remote::start(&home, "s", &[]), Remote::start(&home, "alone", &[]));
    home.configure(&format!(
        "[permissions]\n\"s:echo\" = {{ read_only = true }}\nalone = {{ isolated = true }}\n{}{}",
        s.table("s", ""),
        alone.table("alone", ""),
    ));
    let paths = Paths { config: home.path("pml.toml"), data: home.path("") };
    let app = App::open(paths, Env::default(), home.path(""), ProcessRole::Command).await.unwrap();

    let before = mark(&app, "fs");
    for (tool, arguments) in [("s:echo", json!({})), ("math:evaluate", json!({"expression": "1"}))] {
        let outcome = call(&app, tool, &arguments).await;
        assert!(matches!(outcome, CallOutcome::Ok(_)), "{outcome:?}");
    }
    assert_eq!(mark(&app, "fs"), before, "reading moves nothing");

    let not_sent = call(&app, "fs:write", &json!({"nonsense": 1})).await;
    assert!(matches!(not_sent, CallOutcome::NotSent(_)), "{not_sent:?}");
    assert_eq!(mark(&app, "fs"), before, "what is not sent moves nothing");

    for (tool, arguments) in [
        ("fs:write", json!({"path": "x", "content": "y"})),
        ("s:ok", json!({})),
        ("s:status", json!({"status": 500})),
    ] {
        let before = mark(&app, "math");
        call(&app, tool, &arguments).await;
        assert_ne!(mark(&app, "math"), before, "{tool}");
    }

    let (elsewhere, own) = (mark(&app, "fs"), mark(&app, "alone"));
    let outcome = call(&app, "alone:ok", &json!({})).await;
    assert!(matches!(outcome, CallOutcome::Ok(_)), "{outcome:?}");
    assert_eq!(mark(&app, "fs"), elsewhere, "an isolated server moves nothing elsewhere");
    assert_ne!(mark(&app, "alone"), own);

    let (elsewhere, own) = (mark(&app, "fs"), mark(&app, "alone"));
    let done = home.run(&["call", "alone:ok", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    eventually("the write of the other process counts", || mark(&app, "alone") != own);
    assert_eq!(mark(&app, "fs"), elsewhere);
    let done = home.run(&["call", "s:ok", "--yes"]);
    assert_eq!(done.code, 0, "{done:?}");
    eventually("the write of the other process counts", || mark(&app, "fs") != elsewhere);
    app.close().await;
}
