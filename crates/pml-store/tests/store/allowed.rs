//! What a person last allowed: whose it is, that it comes with the answer, and what the files tell of it.

use super::{open_at, raw_database, url_at};
use std::fs;

use super::{ann, append, create, fixture, id, me, new_run, park, said, told};
use pml_model::Digest;
use pml_store::{AllowedArguments, AnswerOutcome, BlockingStore, NewAnswer};

fn allowed(tool: &str, arguments: &[&str]) -> AllowedArguments {
    let arguments = arguments.iter().map(|&json| json.to_owned()).collect();
    AllowedArguments { tool: tool.to_owned(), definition: Digest::of(b"definition"), arguments }
}

/// Answers the question `q` of a new run.
fn answer(store: &BlockingStore, run: u128, at: i64, allowed: Vec<AllowedArguments>) -> AnswerOutcome {
    let lease = create(store, new_run(run)).unwrap();
    append(store, &lease, Vec::new(), park(None, Some("q"))).unwrap();
    store.store_answer(&me(), &id(run), NewAnswer { allowed, ..said("q", "1", at, Vec::new()) }).unwrap()
}

fn last(store: &BlockingStore, tools: &[&str]) -> Vec<AllowedArguments> {
    let tools: Vec<String> = tools.iter().map(|&tool| tool.to_owned()).collect();
    store.last_allowed_arguments(&me(), &tools).unwrap()
}

#[test]
fn the_last_that_was_allowed_for_each_tool_is_known_after_a_restart_and_without_the_run() {
    let fixture = fixture();
    assert!(last(&fixture.store, &["fs:write"]).is_empty());
    let both = vec![allowed("fs:write", &[r#"{"n":1}"#]), allowed("fs:delete", &["{}"])];
    assert_eq!(answer(&fixture.store, 1, 2000, both), AnswerOutcome::Stored);
    let later = allowed("fs:write", &[r#"{"n":2}"#, r#"{"n":3}"#]);
    answer(&fixture.store, 2, 3000, vec![later.clone()]);
    assert_eq!(last(&fixture.store, &["fs:write", "fs:read"]), std::slice::from_ref(&later));
    let end = super::to(pml_model::RunState::Aborted, 3000);
    for run in [1, 2] {
        append(
            &fixture.store,
            &super::taken(super::claim(&fixture.store, &id(run))),
            Vec::new(),
            end.clone(),
        )
        .unwrap();
    }
    assert_eq!(fixture.store.purge_ended_runs(9000, 0).unwrap(), 2);
    drop(fixture.store);
    let store = open_at(&fixture.path).unwrap();
    assert_eq!(last(&store, &["fs:write", "fs:delete"]), [later, allowed("fs:delete", &["{}"])]);
    assert!(store.last_allowed_arguments(&ann(), &["fs:write".to_owned()]).unwrap().is_empty());
}

#[test]
fn only_the_answer_that_counts_allows_anything() {
    let fixture = fixture();
    answer(&fixture.store, 1, 2000, vec![allowed("a:b", &["1"])]);
    let second = NewAnswer { allowed: vec![allowed("a:b", &["2"])], ..said("q", "1", 3000, told("late")) };
    let again = fixture.store.store_answer(&me(), &id(1), second.clone()).unwrap();
    assert_eq!(again, AnswerOutcome::AlreadyAnswered);
    let other = NewAnswer { question_id: "p".to_owned(), ..second };
    assert_eq!(fixture.store.store_answer(&me(), &id(1), other).unwrap(), AnswerOutcome::NotAsked);
    assert_eq!(last(&fixture.store, &["a:b"]), [allowed("a:b", &["1"])]);
}

#[test]
fn what_was_allowed_is_sealed_and_counts_for_nothing_once_it_was_altered() {
    let fixture = fixture();
    answer(&fixture.store, 1, 2000, vec![allowed("a:b", &["\"hush\""]), allowed("a:c", &["2"])]);
    if url_at(&fixture.path).is_none() {
        for file in ["pml.db", "pml.db-wal"] {
            let bytes = fs::read(fixture.path.with_file_name(file)).unwrap();
            assert!(!bytes.windows(4).any(|window| window == b"hush"), "{file}");
        }
    }
    let stored = raw_database(&fixture.path).texts("SELECT body FROM allowed");
    assert!(stored.len() == 2 && !stored.concat().concat().contains("68757368"), "{stored:?}");
    assert_eq!(last(&fixture.store, &["a:b", "a:c"]).len(), 2);
    for forgery in [
        "UPDATE allowed SET body = (SELECT body FROM allowed WHERE tool = 'a:c') WHERE tool = 'a:b'",
        "UPDATE allowed SET definition = 'aa' || substr(definition, 3)",
        "UPDATE allowed SET at = 7",
        "UPDATE allowed SET body = x'00'",
    ] {
        let forged = super::fixture();
        answer(&forged.store, 1, 2000, vec![allowed("a:b", &["1"]), allowed("a:c", &["2"])]);
        raw_database(&forged.path).execute(forgery);
        assert!(last(&forged.store, &["a:b"]).is_empty(), "{forgery}");
    }
}

#[test]
fn what_was_allowed_long_ago_is_forgotten() {
    let fixture = fixture();
    answer(&fixture.store, 1, 2000, vec![allowed("a:b", &["1"])]);
    answer(&fixture.store, 2, 3000, vec![allowed("a:c", &["1"])]);
    fixture.store.forget_allowed_arguments(2000).unwrap();
    assert_eq!(last(&fixture.store, &["a:b", "a:c"]), [allowed("a:c", &["1"])]);
}
