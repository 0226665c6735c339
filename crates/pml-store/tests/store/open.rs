//! Questions that are open: which end with a definition, which a repeated request finds, and how many there may be.

use pml_model::question::{
    Answer, Answerer, ApprovalArguments, ApprovalDecision, ApprovalQuestion, CallToApprove, Question,
};
use pml_model::{Definition, Digest};
use pml_store::{
    AnswerOutcome, AskingRunOutcome, BlockingStore, NewAnswer, NewRun, OpenApprovalLimit, QuestionOutcome,
};

use super::{ann, claim, fixture, id, listing, me, new_run, taken, told, tool};

const ROOMY: OpenApprovalLimit = OpenApprovalLimit { per_client: 100, per_principal: 100 };

fn asks(tools: &[(&str, &Definition)]) -> (String, Question) {
    let call = |(tool, definition): &(&str, &Definition)| CallToApprove {
        tool: (*tool).to_owned(),
        definition: definition.digest.clone(),
        description: String::new(),
        scope: "filesystem".to_owned(),
        because: "it changes things".to_owned(),
        call: None,
        node: None,
        line: None,
        code: None,
        arguments: ApprovalArguments::Known { json: "{}".to_owned(), digest: Digest::of(b"{}") },
        repeats: false,
        origins: Vec::new(),
        differs: Vec::new(),
    };
    let asked = ApprovalQuestion {
        intent: String::new(),
        code_hash: "code".to_owned(),
        by: Answerer::Client,
        begun: false,
        calls: tools.iter().map(call).collect(),
        opaque: Vec::new(),
    };
    ("q".to_owned(), Question::Approval(asked))
}

fn yes(shows: Vec<(String, Digest)>) -> NewAnswer {
    let decision = ApprovalDecision {
        approved: true,
        reason: None,
        any_arguments: None,
        remember: None,
        by: "me".to_owned(),
    };
    NewAnswer {
        question_id: "q".to_owned(),
        answer: Answer::Approval(decision),
        at: 2000,
        shown_definitions: shows,
        allowed: Vec::new(),
        rules: Vec::new(),
        audit: told("answered"),
    }
}

fn record(store: &BlockingStore, tools: Vec<Definition>, now: i64) -> usize {
    store.record_manifest(&me(), listing("fs", tools), now).unwrap().voided_questions.len()
}

fn open(store: &BlockingStore, number: u128, tools: &[(&str, &Definition)]) -> AskingRunOutcome {
    store.create_asking_run(new_run(number), asks(tools), ROOMY).unwrap()
}

#[test]
fn a_question_ends_with_the_definition_it_showed_also_where_that_comes_back() {
    let fixture = fixture();
    let store = &fixture.store;
    let (first, second, other) = (tool("delete", "one"), tool("delete", "two"), tool("read", "reads"));
    record(store, vec![first.clone(), other.clone()], 1000);
    assert_eq!(open(store, 1, &[("fs:delete", &first), ("fs:read", &other)]), AskingRunOutcome::Created);
    assert_eq!(open(store, 2, &[("fs:read", &other)]), AskingRunOutcome::Created);
    assert_eq!(store.asking_runs(&me()).unwrap().len(), 2);
    assert_eq!(record(store, vec![second, other.clone()], 1100), 1);
    assert_eq!(record(store, vec![first.clone(), other], 1200), 0, "it is void already");
    assert_eq!(store.asking_runs(&me()).unwrap().len(), 1, "nobody is shown it any more");
    let changed = AnswerOutcome::DefinitionChanged { tool: "fs:delete".to_owned() };
    assert_eq!(store.store_answer(&me(), &id(1), yes(Vec::new())).unwrap(), changed);
    assert_eq!(store.store_answer(&me(), &id(2), yes(Vec::new())).unwrap(), AnswerOutcome::Stored);
    // Whoever takes the run up is told, by whichever way.
    assert_eq!(store.due_runs(2000).unwrap().len(), 2);
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().voided_by.as_deref(), Some("fs:delete"));
    let lease = taken(claim(store, &id(1)));
    assert_eq!(
        store.question_outcome(&lease).unwrap(),
        Some(QuestionOutcome::DefinitionChanged { tool: "fs:delete".to_owned() })
    );
    let rows = store.audit_entries(0, 100).unwrap();
    let kinds: Vec<&str> = rows.iter().map(|row| row.kind.as_str()).collect();
    assert_eq!(kinds, ["question voided", "told"]);
}

#[test]
fn an_answer_that_nobody_has_taken_up_yet_ends_with_the_definition_too() {
    let fixture = fixture();
    let store = &fixture.store;
    let (first, second) = (tool("delete", "one"), tool("delete", "two"));
    record(store, vec![first.clone()], 1000);
    open(store, 1, &[("fs:delete", &first)]);
    assert_eq!(store.store_answer(&me(), &id(1), yes(Vec::new())).unwrap(), AnswerOutcome::Stored);
    assert_eq!(record(store, vec![second], 1100), 1);
    assert_eq!(store.load_run(&me(), &id(1)).unwrap().voided_by.as_deref(), Some("fs:delete"));
}

#[test]
fn a_question_that_shows_another_definition_than_there_is_cannot_be_answered() {
    let fixture = fixture();
    let store = &fixture.store;
    let (first, second) = (tool("delete", "one"), tool("delete", "two"));
    record(store, vec![second.clone()], 1000);
    open(store, 1, &[("fs:delete", &first)]);
    let shown = |definition: &Definition| vec![("fs:delete".to_owned(), definition.digest.clone())];
    let changed = AnswerOutcome::DefinitionChanged { tool: "fs:delete".to_owned() };
    assert_eq!(store.store_answer(&me(), &id(1), yes(shown(&first))).unwrap(), changed);
    // It stays so.
    assert_eq!(store.store_answer(&me(), &id(1), yes(shown(&second))).unwrap(), changed);
    assert_eq!(record(store, vec![first.clone()], 1100), 0);
    assert_eq!(store.store_answer(&me(), &id(1), yes(shown(&first))).unwrap(), changed);
}

#[test]
fn a_repeated_request_finds_the_run_whose_question_is_open() {
    let fixture = fixture();
    let (store, delete) = (&fixture.store, tool("delete", "one"));
    let marked = |number| NewRun { request_mark: Some("m".to_owned()), ..new_run(number) };
    let open = |run| store.create_asking_run(run, asks(&[("fs:delete", &delete)]), ROOMY).unwrap();
    assert_eq!(open(marked(1)), AskingRunOutcome::Created);
    assert_eq!(open(marked(2)), AskingRunOutcome::AlreadyAsked(id(1)));
    assert_eq!(
        open(NewRun { principal: ann(), ..marked(3) }),
        AskingRunOutcome::Created,
        "another principal's is another"
    );
    assert_eq!(open(NewRun { request_mark: Some("n".to_owned()), ..new_run(4) }), AskingRunOutcome::Created);
    assert_eq!(open(new_run(5)), AskingRunOutcome::Created);
    assert!(store.run(&me(), &id(2)).unwrap().is_none(), "nothing was made");
    assert_eq!(store.run_of_open_request(&me(), "m", 1500).unwrap(), Some(id(1)));
    store.store_answer(&me(), &id(1), yes(Vec::new())).unwrap();
    assert_eq!(store.run_of_open_request(&me(), "m", 1500).unwrap(), None);
    assert_eq!(open(NewRun { expires_at: Some(3000), ..marked(6) }), AskingRunOutcome::Created);
    assert_eq!(
        open(NewRun { now: 3000, ..marked(7) }),
        AskingRunOutcome::Created,
        "nobody can answer the other any more"
    );
}

#[test]
fn only_so_many_questions_are_open_for_a_client_and_for_a_principal() {
    let fixture = fixture();
    let (store, delete) = (&fixture.store, tool("delete", "one"));
    let limit = OpenApprovalLimit { per_client: 2, per_principal: 3 };
    let open = |number: u128, session: &str| {
        let run = NewRun { session: session.to_owned(), ..new_run(number) };
        store.create_asking_run(run, asks(&[("fs:delete", &delete)]), limit).unwrap()
    };
    assert_eq!((open(1, "a/1"), open(2, "a/2")), (AskingRunOutcome::Created, AskingRunOutcome::Created));
    assert_eq!(
        open(3, "a/7"),
        AskingRunOutcome::TooManyOpen(vec![id(1), id(2)]),
        "another session of the same client"
    );
    assert_eq!(open(4, "a/b/1"), AskingRunOutcome::Created, "a client may have any name");
    assert_eq!(
        open(5, "c"),
        AskingRunOutcome::TooManyOpen(vec![id(1), id(2), id(4)]),
        "other names are no way around it"
    );
    store.store_answer(&me(), &id(1), yes(Vec::new())).unwrap();
    assert_eq!(open(6, "a/1"), AskingRunOutcome::Created);
    assert_eq!(store.open_approvals(&me(), 1500).unwrap().len(), 3);
}
