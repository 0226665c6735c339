//! Two principals write and read at random; every row that one of them reads is their own.

use pml_model::{Digest, Principal, ToolId};
use pml_store::{BlockingStore, Idempotency, NewApprovalRule, NewMock, NewRun, RunListQuery, RunQuery};

use super::{ann, create, fixture, id, me, new_run, raw};

/// SplitMix64: the same steps for the same seed.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What one of them made.
#[derive(Default)]
struct Made {
    runs: Vec<u128>,
    rules: Vec<i64>,
    mocks: usize,
}

fn write(store: &BlockingStore, who: &Principal, made: &mut Made, number: u64, kind: u64) {
    match kind {
        0 => {
            let number = u128::from(number);
            // Both use the same keys and marks, which must not meet.
            let idempotency =
                Idempotency { key: format!("key {}", number % 50), request: Digest::of(b"request") };
            let run = NewRun {
                principal: who.clone(),
                intent: format!("of {who}"),
                plan: format!("plan of {who}").into_bytes(),
                request_mark: Some(format!("mark {}", number % 50)),
                idempotency: Some(idempotency),
                ..new_run(number)
            };
            if create(store, run).is_ok() {
                made.runs.push(number);
            }
        }
        1 => {
            let rule = NewApprovalRule {
                principal: who.clone(),
                tool: "fs:write".to_owned(),
                definition: Digest::of(b"definition"),
                code_hash: None,
                arguments: None,
                expires_at: 1 << 40,
                by: format!("{who}"),
                now: 1000,
            };
            made.rules.push(store.add_rule(rule, Vec::new()).unwrap());
        }
        _ => {
            let mock = NewMock {
                principal: who.clone(),
                tool: ToolId::parse("fs:read").unwrap(),
                digest: Digest::of(b"definition"),
                arguments: raw(&format!("{{\"path\":\"{number}.txt\"}}")),
                result: raw(&format!("\"of {who}\"")),
            };
            store.record_mocks(vec![mock], 1000).unwrap();
            made.mocks += 1;
        }
    }
}

/// Reads lists of `who`, and everything of the other by its id.
fn read(store: &BlockingStore, who: &Principal, theirs: &Made, pick: u64, kind: u64) {
    let of = |rows: &[i64]| (!rows.is_empty()).then(|| rows[usize::try_from(pick).unwrap() % rows.len()]);
    let run = (!theirs.runs.is_empty())
        .then(|| id(theirs.runs[usize::try_from(pick % 1_000_000).unwrap() % theirs.runs.len()]));
    match (kind, run) {
        (0, _) => {
            let all = RunQuery { state: None, before: None, limit: 200 };
            let rows = store.runs(who, &all).unwrap();
            assert!(rows.iter().all(|row| row.principal == *who && row.intent == format!("of {who}")));
            let listed = RunListQuery {
                state: None,
                text: Some("of".to_owned()),
                capability: None,
                tool: None,
                before: None,
                limit: 200,
            };
            let rows = store.list_runs(who, &listed).unwrap();
            assert!(rows.iter().all(|row| row.run.principal == *who));
        }
        (1, Some(run)) => {
            assert!(store.run(who, &run).unwrap().is_none());
            assert!(store.run_overview(who, &run).unwrap().is_none());
            assert!(!matches!(store.run_history(who, &run), Ok(Some(_))));
            assert!(!matches!(store.run_plan(who, &run), Ok(Some(_))));
            assert!(store.load_run(who, &run).is_err());
        }
        (2, _) => {
            let key = format!("key {}", pick % 50);
            if let Some((run, _)) = store.run_by_idempotency_key(who, &key, 1000).unwrap() {
                assert!(store.run(who, &run).unwrap().is_some(), "the run of a key is one's own");
            }
        }
        (3, _) => {
            let rules = store.rules(who).unwrap().into_iter().chain(store.rules_in_force(who, 1000).unwrap());
            for rule in rules {
                assert_eq!(rule.by, who.to_string());
                assert!(!theirs.rules.contains(&rule.number));
            }
            if let Some(rule) = of(&theirs.rules) {
                assert!(!store.use_rule(who, rule, 1000, Vec::new()).unwrap());
                assert!(!store.revoke_rule(who, rule, 1000, Vec::new()).unwrap());
            }
        }
        _ => {
            for mock in store.mocks(who).unwrap() {
                assert_eq!(mock.result, format!("of {who}"));
                let other = if *who == me() { ann() } else { me() };
                let found = store.mock(&other, &mock.id).unwrap();
                assert!(found.is_none_or(|found| found.result == format!("of {other}")));
            }
        }
    }
}

#[test]
fn no_row_is_seen_by_another_principal() {
    let steps: u64 = std::env::var("PML_TENANT_STEPS").map_or(2_000, |steps| steps.parse().unwrap());
    let fixture = fixture();
    let store = &fixture.store;
    let (people, mut made, mut state) = ([me(), ann()], [Made::default(), Made::default()], 7);
    for number in 0..steps {
        let turn = usize::try_from(next(&mut state) % 2).unwrap();
        // Writes are rarer as the tables fill, so that many steps stay quick; reads go on to cover everything.
        let writes = next(&mut state) % 100 < if number < 2_000 { 40 } else { 1 };
        match writes {
            true => {
                let kind = next(&mut state) % 3;
                write(store, &people[turn], &mut made[turn], number, kind);
            }
            false => {
                let (pick, kind) = (next(&mut state), next(&mut state) % 5);
                read(store, &people[turn], &made[1 - turn], pick, kind);
            }
        }
    }
    for made in &made {
        assert!(made.runs.len() > 10 && made.rules.len() > 10 && made.mocks > 10);
    }
}
