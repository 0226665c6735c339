//! What was learned for one principal is never used for another: neither lifted programs, nor intents, nor examples.

use std::sync::Arc;
use std::time::Duration;

use pml::app::{App, ProcessRole};
use pml::config::{DynamicPolicy, Env, Paths};
use pml::discover::DiscoverRequest;
use pml::flow::{self, ExecuteOutcome, Suggestions};
use pml::planning::{RunRequest, Work};
use pml::problem::{ErrorCode, Problem};
use pml_mcp::Caller;
use pml_model::Principal;
use pml_model::json::empty_object;
use pml_model::question::Answerer;
use serde_json::json;

use crate::place::{ALL, Place};

const AVERAGE: &str = "const f = await mcp.fs.read({ path: \"staff.csv\" });\n\
    const { rows } = await mcp.csv.parse({ csv: f.content });\n\
    const mine = rows.filter((r) => r.department === \"Engineering\").map((r) => Number(r.salary));\n\
    return (await mcp.math.statistics({ values: mine })).mean;";

const FIRST: &str = "average salary of the Engineering department in staff.csv";
const SECOND: &str = "average salary of the Sales department in staff.csv";
/// In other words, so that it is offered and not run.
const REWORDED: &str = "mean pay that the Sales department hands out, see staff.csv";

/// Asks for something in this process, which runs no programs.
async fn ask(app: &Arc<App>, who: &Principal, intent: &str, work: Work) -> Result<Box<Suggestions>, Problem> {
    let request = RunRequest {
        key: None,
        principal: who.clone(),
        session: "session".to_owned(),
        intent: intent.to_owned(),
        work,
        arguments: empty_object(),
        timeout: None,
        caller: Caller::silent(),
        idempotency: None,
        max_wait: Duration::from_secs(60),
        answerer: Answerer::Human,
        dynamic: DynamicPolicy::Refuse,
        learn: true,
        capability: None,
        use_cache: true,
        speculate: true,
    };
    match flow::execute(app, request, |_| true).await? {
        ExecuteOutcome::Suggested(suggested) => Ok(suggested),
        _ => panic!("{}: {intent}: is not only suggested", who.0),
    }
}

/// What `pml_discover` says for an intent, as JSON.
async fn discovered(app: &Arc<App>, who: &Principal, intent: &str) -> String {
    let request = DiscoverRequest::new(intent.to_owned(), 10);
    let page = flow::discover(app, (who, None), &request, |_| true).await.unwrap();
    serde_json::to_string(&page.results).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_principal_taught_is_unknown_to_another() {
    let mut place = Place::start(ALL);
    let csv = "name,department,salary\nAnn,Engineering,100\nBob,Sales,50\n";
    std::fs::write(place.home.path("staff.csv"), csv).unwrap();
    let first = place.run(FIRST, AVERAGE, &json!({}));
    assert_eq!(first["parametersMade"], json!(["department"]), "{first}");
    assert_eq!(place.wish(SECOND)["result"], json!(50));
    let known = place.capability();
    assert_eq!(known.intents.len(), 2, "{:?}", known.intents);

    let paths = Paths { config: place.home.path("pml.toml"), data: place.home.path("") };
    let app = App::open(paths, Env::default(), place.home.path(""), ProcessRole::Command).await.unwrap();
    let (owner, other) = (Principal::local(), Principal("somebody else".to_owned()));

    // Its owner is offered it, with what was taught.
    let offered = ask(&app, &owner, REWORDED, Work::Intent).await.unwrap();
    assert_eq!(offered.candidates.first().map(|first| &first.id), Some(&known.procedure.id));
    assert!(discovered(&app, &owner, SECOND).await.contains(known.procedure.id.as_str()));

    for intent in [FIRST, SECOND, REWORDED] {
        let suggested = ask(&app, &other, intent, Work::Intent).await.unwrap();
        assert!(suggested.candidates.is_empty(), "{intent}: {:?}", suggested.candidates);
        assert!(suggested.earlier.is_none() && suggested.ready_call(intent).is_none(), "{intent}");
        let shown = discovered(&app, &other, intent).await;
        for secret in [known.procedure.id.as_str(), known.name.as_str(), "Engineering"] {
            assert!(!shown.contains(secret), "{intent}: {shown}");
        }
    }
    for named in [known.procedure.id.as_str(), known.name.as_str()] {
        let refused = ask(&app, &other, SECOND, Work::Capability(named.to_owned())).await.err();
        assert_eq!(refused.map(|problem| problem.code), Some(ErrorCode::NotFound), "{named}");
        let shown = flow::capability(&app, &other, named).await.err();
        assert_eq!(shown.map(|problem| problem.code), Some(ErrorCode::NotFound), "{named}");
        let taken = flow::forget_intent(&app, &other, named, FIRST).await.err();
        assert_eq!(taken.map(|problem| problem.code), Some(ErrorCode::NotFound), "{named}");
    }
    assert_eq!(place.capability().intents.len(), 2);
    app.close().await;
}
