//! Standing rules: how long they count, and for whom.

use super::raw_database::Raw;
use super::{ann, append, create, fixture, id, listing, me, new_run, park, said, told, tool, words};
use super::{open_at, raw_database};
use pml_model::{Definition, Digest};
use pml_store::{AnswerOutcome, BlockingStore, Error, NewAnswer, NewApprovalRule};

fn rule(tool: &str) -> NewApprovalRule {
    NewApprovalRule {
        principal: me(),
        tool: tool.to_owned(),
        definition: Digest::of(b"definition"),
        code_hash: Some("c0de".to_owned()),
        arguments: Some(Digest::of(b"arguments")),
        expires_at: 5000,
        by: "somebody at the terminal".to_owned(),
        now: 1000,
    }
}

/// What the audit log tells of rules: what happened, and to which.
fn told_of_rules(store: &BlockingStore) -> Vec<(String, i64)> {
    let number =
        |body: &str| serde_json::from_str::<serde_json::Value>(body).unwrap()["rule"].as_i64().unwrap();
    let rows = store.audit_entries(0, u32::MAX).unwrap();
    rows.into_iter().map(|row| (row.kind, number(row.body.get()))).collect()
}

fn in_force(store: &BlockingStore, now: i64) -> Vec<i64> {
    store.rules_in_force(&me(), now).unwrap().into_iter().map(|rule| rule.number).collect()
}

#[test]
fn a_rule_comes_back_as_it_was_given() {
    let fixture = fixture();
    assert!(fixture.store.rules(&me()).unwrap().is_empty());
    let number = fixture.store.add_rule(rule("fs:delete"), told("given")).unwrap();
    let any = NewApprovalRule { code_hash: None, arguments: None, ..rule("fs:write") };
    fixture.store.add_rule(any, Vec::new()).unwrap();
    drop(fixture.store);
    let store = open_at(&fixture.path).unwrap();
    let [any, found] = &store.rules(&me()).unwrap()[..] else { panic!("two were given") };
    let given = rule("fs:delete");
    assert_eq!((found.number, &found.principal, &found.tool), (number, &given.principal, &given.tool));
    assert_eq!((&found.definition, &found.code_hash), (&given.definition, &given.code_hash));
    assert_eq!((&found.arguments, found.expires_at), (&given.arguments, given.expires_at));
    assert_eq!((&found.by, found.created_at), (&given.by, given.now));
    assert_eq!((found.revoked_at, found.uses, found.used_at), (None, 0, None));
    assert_eq!((any.tool.as_str(), &any.code_hash, &any.arguments), ("fs:write", &None, &None));
    assert_eq!(words(&store), ["given"]);
}

#[test]
fn a_rule_counts_until_it_expires_or_is_revoked() {
    let fixture = fixture();
    let store = &fixture.store;
    let first = store.add_rule(rule("a:b"), Vec::new()).unwrap();
    let second = store.add_rule(NewApprovalRule { expires_at: 9000, ..rule("a:b") }, Vec::new()).unwrap();
    assert_eq!(in_force(store, 4999), [first, second]);
    assert_eq!(in_force(store, 5000), [second]);
    assert!(store.use_rule(&me(), first, 4999, told("used")).unwrap());
    assert!(!store.use_rule(&me(), first, 5000, told("expired")).unwrap());

    assert!(store.revoke_rule(&me(), second, 6000, told("revoked")).unwrap());
    assert!(!store.revoke_rule(&me(), second, 7000, told("revoked again")).unwrap());
    assert!(!store.use_rule(&me(), second, 6000, told("no longer")).unwrap());
    assert!(in_force(store, 6000).is_empty());
    let rules = store.rules(&me()).unwrap();
    assert_eq!(
        rules.iter().map(|rule| (rule.number, rule.revoked_at)).collect::<Vec<_>>(),
        [(second, Some(6000)), (first, None)]
    );
    assert_eq!((rules[1].uses, rules[1].used_at), (1, Some(4999)));
    assert_eq!(words(store), ["used", "revoked"]);
}

#[test]
fn a_rule_is_for_its_principal_alone() {
    let fixture = fixture();
    let store = &fixture.store;
    let number = store.add_rule(rule("a:b"), Vec::new()).unwrap();
    assert!(store.rules(&ann()).unwrap().is_empty());
    assert!(store.rules_in_force(&ann(), 2000).unwrap().is_empty());
    assert!(!store.use_rule(&ann(), number, 2000, told("used")).unwrap());
    assert!(!store.revoke_rule(&ann(), number, 2000, told("revoked")).unwrap());
    assert_eq!(in_force(store, 2000), [number]);
    assert!(words(store).is_empty());
}

#[test]
fn a_rule_that_this_program_did_not_give_counts_for_nothing() {
    for forgery in [
        "UPDATE approval_rule SET tool = 'fs:delete'",
        "UPDATE approval_rule SET definition = 'aa' || substr(definition, 3)",
        "UPDATE approval_rule SET code_hash = NULL",
        "UPDATE approval_rule SET arguments = NULL",
        "UPDATE approval_rule SET expires_at = 1 << 50",
        "UPDATE approval_rule SET given_by = 'me'",
        "UPDATE approval_rule SET created_at = 7",
        "UPDATE approval_rule SET number = 7",
        "UPDATE approval_rule SET mark = 'x'",
    ] {
        let fixture = fixture();
        fixture.store.add_rule(rule("a:b"), Vec::new()).unwrap();
        raw_database(&fixture.path).execute(forgery);
        assert!(in_force(&fixture.store, 2000).is_empty(), "{forgery}");
        assert!(fixture.store.rules(&me()).unwrap().is_empty(), "{forgery}");
    }
    let fixture = fixture();
    fixture.store.add_rule(NewApprovalRule { principal: ann(), ..rule("a:b") }, Vec::new()).unwrap();
    let other = fixture.store.add_rule(rule("a:c"), Vec::new()).unwrap();
    fixture.store.revoke_rule(&me(), other, 2000, Vec::new()).unwrap();
    let database = raw_database(&fixture.path);
    database.execute("UPDATE approval_rule SET principal = 'local' WHERE principal = 'ann'");
    // What was revoked cannot be brought back by taking that away.
    database.execute(
        "UPDATE approval_rule SET revoked_at = NULL, mark = (SELECT mark FROM approval_rule WHERE number = 1)
         WHERE number = 2",
    );
    assert!(in_force(&fixture.store, 2000).is_empty());
}

#[test]
fn without_the_key_no_rule_counts() {
    let fixture = fixture();
    fixture.store.add_rule(rule("a:b"), Vec::new()).unwrap();
    drop(fixture.store);
    std::fs::remove_file(fixture.path.with_file_name("seal.key")).unwrap();
    let store = match open_at(&fixture.path) {
        Ok(store) => store,
        // A database on a server is not even opened.
        Err(error) => return assert!(matches!(error, Error::KeyMissing { .. }), "{error}"),
    };
    assert!(matches!(store.rules_in_force(&me(), 2000), Err(Error::KeyMissing { .. })));
    assert!(matches!(store.add_rule(rule("a:b"), Vec::new()), Err(Error::KeyMissing { .. })));
}

#[test]
fn another_definition_of_its_tool_ends_a_rule_for_good() {
    let fixture = fixture();
    let store = &fixture.store;
    let (first, second) = (tool("delete", "deletes one file"), tool("delete", "deletes everything"));
    let record = |definition: &Definition, now| {
        store.record_manifest(&me(), listing("fs", vec![definition.clone()]), now).unwrap();
    };
    record(&first, 1000);
    let of = |definition: &Definition, tool: &str| NewApprovalRule {
        definition: definition.digest.clone(),
        ..rule(tool)
    };
    let voided = store.add_rule(of(&first, "fs:delete"), Vec::new()).unwrap();
    let other = store.add_rule(of(&first, "other:delete"), Vec::new()).unwrap();
    record(&first, 1100);
    assert_eq!(in_force(store, 1200), [voided, other], "the same again changes nothing");
    assert!(told_of_rules(store).is_empty());
    record(&second, 1300);
    assert_eq!(in_force(store, 1300), [other]);
    assert_eq!(told_of_rules(store), [("rule voided".to_owned(), voided)]);
    let given_anew = store.add_rule(of(&second, "fs:delete"), Vec::new()).unwrap();
    record(&second, 1400);
    assert_eq!(in_force(store, 1400), [other, given_anew]);
    record(&first, 1500);
    assert_eq!(in_force(store, 1500), [other], "neither comes back with its definition");
    assert_eq!(told_of_rules(store)[1..], [("rule voided".to_owned(), given_anew)]);
    assert!(matches!(store.verify_audit().unwrap(), pml_store::AuditVerification::Whole { rows: 2, .. }));
}

#[test]
fn a_rule_that_expired_is_told_of_once() {
    let fixture = fixture();
    let store = &fixture.store;
    let first = store.add_rule(rule("a:b"), Vec::new()).unwrap();
    let theirs = store.add_rule(NewApprovalRule { principal: ann(), ..rule("a:b") }, Vec::new()).unwrap();
    let later = store.add_rule(NewApprovalRule { expires_at: 9000, ..rule("a:b") }, Vec::new()).unwrap();
    let revoked = store.add_rule(rule("a:b"), Vec::new()).unwrap();
    store.revoke_rule(&me(), revoked, 2000, Vec::new()).unwrap();
    assert!(store.end_expired_rules(4999).unwrap().is_empty());
    let ended: Vec<i64> =
        store.end_expired_rules(5000).unwrap().into_iter().map(|rule| rule.number).collect();
    assert_eq!(ended, [first, theirs]);
    assert!(store.end_expired_rules(5001).unwrap().is_empty());
    let expired = |number| ("rule expired".to_owned(), number);
    assert_eq!(told_of_rules(store), [expired(first), expired(theirs)]);
    assert_eq!(in_force(store, 5001), [later]);
    let found = store.rules(&me()).unwrap().into_iter().find(|rule| rule.number == first).unwrap();
    assert_eq!(found.revoked_at, Some(5000));
}

/// The process dies, or the disk fails, after the answer was written and before the rule is: neither is there, and the
/// question is open.
#[test]
fn an_answer_and_its_rule_are_stored_together_or_not_at_all() {
    let fixture = fixture();
    let store = &fixture.store;
    let lease = create(store, new_run(1)).unwrap();
    append(store, &lease, Vec::new(), park(None, Some("q"))).unwrap();
    let made = |tool| (rule(tool), told("rule made").remove(0));
    let answer =
        || NewAnswer { rules: vec![made("a:one"), made("a:two")], ..said("q", "1", 2000, told("answered")) };
    let fault = raw_database(&fixture.path);
    let [begin, end] = match &fault {
        Raw::File(_) => [
            "CREATE TRIGGER fault BEFORE INSERT ON approval_rule WHEN new.tool = 'a:two'
             BEGIN SELECT RAISE(ABORT, 'the disk failed'); END",
            "DROP TRIGGER fault",
        ],
        Raw::Server { .. } => [
            "ALTER TABLE approval_rule ADD CONSTRAINT fault CHECK (tool <> 'a:two')",
            "ALTER TABLE approval_rule DROP CONSTRAINT fault",
        ],
    };
    fault.execute(begin);
    store.store_answer(&me(), &id(1), answer()).unwrap_err();
    assert!(store.rules(&me()).unwrap().is_empty(), "the first rule went with the second");
    assert_eq!(store.asking_runs(&me()).unwrap().len(), 1, "the question is open");
    assert!(words(store).is_empty(), "nothing happened, and nothing is told");

    fault.execute(end);
    assert_eq!(store.store_answer(&me(), &id(1), answer()).unwrap(), AnswerOutcome::Stored);
    assert_eq!(store.store_answer(&me(), &id(1), answer()).unwrap(), AnswerOutcome::AlreadyAnswered);
    let tools: Vec<_> = store.rules(&me()).unwrap().into_iter().map(|rule| rule.tool).collect();
    assert_eq!(tools, ["a:two", "a:one"], "each once");
    assert_eq!(words(store), ["rule made", "rule made", "answered"]);
}
