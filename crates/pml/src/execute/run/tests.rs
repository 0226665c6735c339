//! Tests of the run core, event by event.

use pml_model::Digest;
use serde_json::value::RawValue;

use super::*;
use crate::execute::delivery::CallFailure;
use crate::execute::journal::LoggedCall;

/// Handle 0 is read-only; handle 1 changes things.
fn run(concurrent: usize) -> RunCore<&'static str> {
    let rule = |tool: &str, idempotent| CoreTool {
        tool: tool.to_owned(),
        server: "s".to_owned(),
        idempotent,
        asks: false,
    };
    let rules = CoreLimits { concurrent, concurrent_per_server: 2, park_after_ms: 10_000 };
    RunCore::new(rules, vec![rule("s:read", true), rule("s:write", false)], 1_000)
}

fn issued(call: u32, handle: u32) -> RunEvent<&'static str> {
    RunEvent::Issued(call_of(call, handle, "{}"))
}

fn call_of(call: u32, handle: u32, arguments: &str) -> IssuedCall {
    let digest = Digest::of(arguments.as_bytes());
    IssuedCall {
        call,
        frame: 0,
        handle,
        node: None,
        arguments: arguments.into(),
        value_digest: Some(digest.clone()),
        digest,
        grant: None,
        task_site: None,
    }
}

fn result(call: u32) -> RunDelivery {
    let value = RawValue::from_string(call.to_string()).unwrap();
    RunDelivery::Result { call, value, parts: Vec::new(), saved_ms: None, age_ms: None, not_ahead: None }
}

fn logged(tool: &str, arguments: &str, ended: bool) -> LoggedCall {
    LoggedCall {
        tool: tool.to_owned(),
        frame: 0,
        node: None,
        digest: Digest::of(arguments.as_bytes()),
        arguments: arguments.to_owned(),
        issued_at: 1_000,
        sending_at: None,
        ended_at: ended.then_some(1_001),
        grant_index: None,
    }
}

/// Actions as short texts.
fn words(actions: &[Action<&'static str>]) -> Vec<String> {
    let word = |action: &Action<&'static str>| match action {
        Action::Record(JournalRecord::Issued { issued, .. }) => format!("record call {}", issued.call),
        Action::Record(JournalRecord::Delivered { what, .. }) => format!("record end {:?}", what.call()),
        Action::Record(JournalRecord::Resend { call, .. }) => format!("record again {call}"),
        Action::Record(JournalRecord::Granted { .. }) => "record grant".to_owned(),
        Action::Record(JournalRecord::Allowed { call, grant, .. }) => {
            format!("record {call} allowed by {grant}")
        }
        Action::Record(_) => "record".to_owned(),
        Action::Promise { call } => format!("promise {call}"),
        Action::Send(issued) => format!("send {}", issued.call),
        Action::Deliver { what, .. } => match what {
            RunDelivery::Timer { timer } => format!("deliver timer {timer}"),
            other => format!("deliver {}", other.call().unwrap()),
        },
        Action::Cancel { call } => format!("cancel {call}"),
        Action::Wake { timer, at } => format!("wake {timer} at {at}"),
        Action::Ask { call } => format!("ask {call}"),
        Action::Park { wake_at: Some(at), asking } if asking.is_empty() => format!("park until {at}"),
        Action::Park { wake_at, asking } => format!("park until {wake_at:?} or a word on {asking:?}"),
        Action::Kill => "kill".to_owned(),
        Action::Grace => "grace".to_owned(),
        Action::Finish(over) if over.in_doubt.is_empty() => format!("finish {}", over.ending),
        Action::Finish(over) => format!("finish {} in doubt {:?}", over.ending, over.in_doubt),
        Action::Diverged(divergence) => format!("diverged: {divergence}"),
    };
    actions.iter().map(word).collect()
}

fn on(run: &mut RunCore<&'static str>, event: RunEvent<&'static str>) -> Vec<String> {
    words(&run.on(event, 2_000))
}

#[test]
fn a_reading_call_is_sent_at_once_and_a_writing_one_when_its_promise_is_stored() {
    let mut run = run(8);
    assert_eq!(on(&mut run, issued(1, 0)), ["record call 1", "send 1"]);
    assert_eq!(on(&mut run, issued(2, 1)), ["record call 2", "promise 2"]);
    assert_eq!(on(&mut run, RunEvent::Stored { call: 2 }), ["send 2"]);
    assert!(on(&mut run, RunEvent::Stored { call: 2 }).is_empty(), "a promise is kept once");
    assert_eq!(on(&mut run, RunEvent::Answered(result(2))), ["record end Some(2)", "deliver 2"]);
    assert!(on(&mut run, RunEvent::Answered(result(2))).is_empty(), "a call ends once");
}

#[test]
fn calls_wait_for_their_turn_and_other_servers_do_not_wait_for_them() {
    let mut run = run(3);
    run.tools.push(CoreTool {
        tool: "t:read".to_owned(),
        server: "t".to_owned(),
        idempotent: true,
        asks: false,
    });
    for call in 1..=3 {
        on(&mut run, issued(call, 0));
    }
    assert_eq!(on(&mut run, issued(4, 2)), ["record call 4", "send 4"], "the third of `s` lets it pass");
    assert_eq!(on(&mut run, issued(5, 2)), ["record call 5"], "three are under way");
    assert_eq!(on(&mut run, RunEvent::Answered(result(4))), ["record end Some(4)", "deliver 4", "send 5"]);
    assert_eq!(on(&mut run, RunEvent::Answered(result(1))), ["record end Some(1)", "deliver 1", "send 3"]);
}

#[test]
fn a_program_that_ends_leaves_reading_calls_and_waits_for_writing_ones() {
    let mut run = run(8);
    on(&mut run, issued(1, 0));
    on(&mut run, issued(2, 1));
    on(&mut run, RunEvent::Stored { call: 2 });
    on(&mut run, issued(3, 1));
    assert_eq!(on(&mut run, RunEvent::Ended("value")), ["cancel 1", "grace"]);
    assert!(on(&mut run, RunEvent::Stored { call: 3 }).is_empty(), "nothing is sent after the end");
    assert_eq!(on(&mut run, RunEvent::Answered(result(2))), ["record end Some(2)", "finish value"]);
    assert!(on(&mut run, RunEvent::GraceOver).is_empty());
}

#[test]
fn a_promise_that_was_not_kept_is_taken_back() {
    let mut run = run(8);
    assert_eq!(on(&mut run, issued(1, 1)), ["record call 1", "promise 1"]);
    assert_eq!(on(&mut run, RunEvent::Stop("ended")), ["kill", "record again 1", "finish ended"]);
    assert!(on(&mut run, RunEvent::Stored { call: 1 }).is_empty(), "nothing is sent after the end");
}

#[test]
fn what_has_no_end_when_the_grace_is_over_is_in_doubt() {
    let mut run = run(8);
    on(&mut run, issued(1, 1));
    on(&mut run, RunEvent::Stored { call: 1 });
    assert_eq!(on(&mut run, RunEvent::Stop("cancelled")), ["kill", "grace"]);
    assert!(on(&mut run, RunEvent::Stop("again")).is_empty(), "a run ends once");
    assert_eq!(on(&mut run, RunEvent::GraceOver), ["cancel 1", "finish cancelled in doubt [1]"]);
}

#[test]
fn a_failed_call_is_delivered_as_well() {
    let mut run = run(8);
    on(&mut run, issued(1, 0));
    let error = CallFailure {
        code: pml_model::ErrorCode::ToolError,
        message: "x".into(),
        hint: None,
        data: None,
        unknown: false,
    };
    let failed = RunDelivery::Error { call: 1, error };
    assert_eq!(on(&mut run, RunEvent::Answered(failed)), ["record end Some(1)", "deliver 1"]);
}

#[test]
fn a_run_is_put_aside_only_when_a_distant_timer_is_all_it_waits_for() {
    let mut run = run(8);
    on(&mut run, issued(1, 0));
    assert_eq!(
        on(&mut run, RunEvent::TimerSet { timer: 1, delay_ms: 60_000, from: None }),
        ["wake 1 at 61000"]
    );
    assert!(on(&mut run, RunEvent::Quiet { taken: 0 }).is_empty(), "a call is under way");
    on(&mut run, RunEvent::Answered(result(1)));
    assert!(on(&mut run, RunEvent::Quiet { taken: 0 }).is_empty(), "its end is not taken yet");
    assert_eq!(on(&mut run, RunEvent::Quiet { taken: 1 }), ["kill", "park until 61000"]);
}

#[test]
fn a_near_timer_is_waited_for_and_a_cleared_one_is_not() {
    let mut run = run(8);
    on(&mut run, RunEvent::TimerSet { timer: 1, delay_ms: 5_000, from: None });
    on(&mut run, RunEvent::TimerSet { timer: 2, delay_ms: 20_000, from: None });
    assert!(on(&mut run, RunEvent::Quiet { taken: 0 }).is_empty());
    on(&mut run, RunEvent::TimerCleared { timer: 1 });
    assert!(on(&mut run, RunEvent::TimerDue { timer: 1 }).is_empty());
    assert_eq!(on(&mut run, RunEvent::TimerDue { timer: 2 }), ["record end None", "deliver timer 2"]);
}

#[test]
fn a_resumed_run_gets_what_it_got_and_sends_what_has_no_end_when_it_stands_where_it_stood() {
    let mut run = run(8);
    let calls = vec![logged("s:read", "{}", true), logged("s:read", "{}", false)];
    let given = words(&run.restore(Vec::new(), calls, vec![(1_500, result(1))]));
    assert_eq!(given, ["deliver 1"]);
    assert!(on(&mut run, issued(1, 0)).is_empty(), "it has its end in the journal");
    assert!(on(&mut run, RunEvent::Quiet { taken: 0 }).is_empty());
    assert!(on(&mut run, issued(2, 0)).is_empty(), "the past is not over");
    assert!(on(&mut run, issued(3, 1)).is_empty());
    assert_eq!(on(&mut run, RunEvent::Quiet { taken: 1 }), ["record call 3", "send 2", "promise 3"]);
    assert!(!run.is_replaying());
}

#[test]
fn timers_of_a_resumed_run_are_due_when_they_were() {
    let mut run = run(8);
    run.restore(
        Vec::new(),
        vec![logged("s:read", "{}", true)],
        vec![(5_000, result(1)), (9_000, RunDelivery::Timer { timer: 1 })],
    );
    on(&mut run, issued(1, 0));
    on(&mut run, RunEvent::Quiet { taken: 0 });
    assert!(
        on(&mut run, RunEvent::TimerSet { timer: 1, delay_ms: 4_000, from: None }).is_empty(),
        "it is in the journal"
    );
    let set = |timer| RunEvent::TimerSet { timer, delay_ms: 3_600_000, from: None };
    assert_eq!(words(&run.on(set(2), 60_000)), ["wake 2 at 3605000"]);
    assert_eq!(words(&run.on(set(3), 2_000)), ["wake 3 at 3602000"], "the clock was set back");
}

#[test]
fn the_first_difference_ends_a_resumed_run_and_nothing_is_sent() {
    let log = || vec![logged("s:read", "{}", true), logged("s:write", "{}", false)];
    let mut other = run(8);
    other.restore(Vec::new(), log(), vec![(1_500, result(1))]);
    assert_eq!(on(&mut other, issued(1, 1)), ["diverged: call 1 was `s:read` and is now `s:write`"]);
    let mut arguments = run(8);
    arguments.restore(Vec::new(), log(), vec![(1_500, result(1))]);
    let seen = on(&mut arguments, RunEvent::Issued(call_of(1, 0, r#"{"a":1}"#)));
    assert_eq!(seen, ["diverged: call 1, `s:read`, is made with other arguments than were recorded"]);
    let mut missing = run(8);
    missing.restore(Vec::new(), log(), vec![(1_500, result(1))]);
    on(&mut missing, issued(1, 0));
    on(&mut missing, RunEvent::Quiet { taken: 0 });
    assert_eq!(
        on(&mut missing, RunEvent::Quiet { taken: 1 }),
        ["diverged: call 2, `s:write`, is no longer made"]
    );
    let mut early = run(8);
    early.restore(Vec::new(), log(), vec![(1_500, result(1))]);
    on(&mut early, issued(1, 0));
    assert_eq!(on(&mut early, RunEvent::Ended("value")), ["diverged: call 2, `s:write`, is no longer made"]);
}

/// Handle 2 needs approval, and changes things.
fn asking_run() -> RunCore<&'static str> {
    let mut run = run(8);
    run.tools.push(CoreTool {
        tool: "s:pay".to_owned(),
        server: "s".to_owned(),
        idempotent: false,
        asks: true,
    });
    run
}

fn grant(arguments: Option<&str>, calls: u32) -> Grant {
    Grant {
        tool: "s:pay".to_owned(),
        definition: Digest::of(b"definition"),
        defined_at: None,
        arguments: arguments.map(|text| Digest::of(text.as_bytes())),
        call: None,
        calls,
        expires_at: 9_000,
        by: "somebody".to_owned(),
    }
}

#[test]
fn a_call_that_needs_a_word_waits_for_it_and_the_run_is_put_aside() {
    let mut run = asking_run();
    assert_eq!(on(&mut run, issued(1, 2)), ["record call 1", "ask 1"]);
    assert_eq!(on(&mut run, issued(2, 0)), ["record call 2", "send 2"], "others do not wait for it");
    assert!(on(&mut run, RunEvent::Quiet { taken: 0 }).is_empty(), "one is under way");
    on(&mut run, RunEvent::Answered(result(2)));
    assert_eq!(on(&mut run, RunEvent::Quiet { taken: 1 }), ["kill", "park until None or a word on [1]"]);
}

#[test]
fn a_grant_is_used_by_the_calls_it_is_for_and_by_no_more_than_it_says() {
    let mut run = asking_run();
    on(&mut run, issued(1, 2));
    assert_eq!(
        on(&mut run, RunEvent::Granted(grant(Some("other"), 1))),
        ["record grant"],
        "not for these arguments"
    );
    let allowed = ["record grant", "record 1 allowed by 1", "promise 1"];
    assert_eq!(on(&mut run, RunEvent::Granted(grant(Some("{}"), 1))), allowed);
    assert_eq!(on(&mut run, issued(2, 2)), ["record call 2", "ask 2"], "it was for one call");
    on(&mut run, RunEvent::Granted(grant(None, 2)));
    on(&mut run, RunEvent::Stored { call: 1 });
    on(&mut run, RunEvent::Answered(result(1)));
    assert_eq!(on(&mut run, issued(3, 2)), ["record call 3", "record 3 allowed by 2", "promise 3"]);
    assert_eq!(on(&mut run, issued(4, 2)), ["record call 4", "ask 4"]);
}

#[test]
fn a_grant_that_has_expired_allows_nothing() {
    let mut run = asking_run();
    on(&mut run, RunEvent::Granted(Grant { expires_at: 2_000, ..grant(None, 9) }));
    assert_eq!(on(&mut run, issued(1, 2)), ["record call 1", "ask 1"]);
}

#[test]
fn a_call_that_is_not_allowed_ends_without_being_sent() {
    let mut run = asking_run();
    on(&mut run, issued(1, 2));
    let denied = RunDelivery::Error { call: 1, error: CallFailure::denied("s:pay", None) };
    assert_eq!(on(&mut run, RunEvent::Answered(denied)), ["record end Some(1)", "deliver 1"]);
    assert_eq!(on(&mut run, issued(2, 1)), ["record call 2", "promise 2"], "it took nobody's turn");
}

#[test]
fn a_run_that_is_taken_up_again_asks_again_only_for_what_was_not_allowed() {
    let mut run = asking_run();
    let used = LoggedCall { grant_index: Some(0), ..logged("s:pay", "{}", true) };
    let open = logged("s:pay", "{}", false);
    let begun = run.restore(vec![grant(None, 2)], vec![used, open.clone(), open], vec![(1_001, result(1))]);
    assert_eq!(words(&begun), ["deliver 1"]);
    (1..=3).for_each(|call| drop(on(&mut run, issued(call, 2))));
    let now = on(&mut run, RunEvent::Quiet { taken: 1 });
    assert_eq!(now, ["record 2 allowed by 0", "ask 3", "promise 2"], "one use of two was left");
}
