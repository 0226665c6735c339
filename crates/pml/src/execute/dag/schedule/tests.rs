//! Tests of the scheduler, step by step and with random DAGs.

use proptest::prelude::*;

use super::*;

fn node(after: &[usize]) -> ScheduledTask {
    ScheduledTask { after: after.to_vec(), ..ScheduledTask::default() }
}

fn start(task: usize) -> ScheduleStep {
    ScheduleStep::Start { task, attempt: 1 }
}

#[test]
fn a_task_starts_when_all_it_waits_for_has_ended() {
    let mut schedule = Schedule::new(vec![node(&[]), node(&[]), node(&[0, 1]), node(&[2])], Pause::None);
    assert_eq!(schedule.go_on(), [start(0), start(1)]);
    assert_eq!(schedule.on_attempt_ended(1, AttemptOutcome::Succeeded), []);
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Succeeded), [start(2)]);
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Succeeded), [], "a task ends once");
    assert_eq!(schedule.on_attempt_ended(2, AttemptOutcome::Succeeded), [start(3)]);
    assert_eq!(schedule.on_attempt_ended(3, AttemptOutcome::Succeeded), [ScheduleStep::Over]);
}

#[test]
fn a_failure_takes_its_dependants_with_it_and_no_others() {
    let nodes = vec![node(&[]), node(&[0]), node(&[1]), node(&[])];
    let mut schedule = Schedule::new(nodes, Pause::None);
    schedule.go_on();
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Failed), []);
    assert_eq!(schedule.end_of(2), Some(TaskEnd::Skipped));
    assert_eq!(schedule.on_attempt_ended(3, AttemptOutcome::Succeeded), [ScheduleStep::Over]);
}

#[test]
fn what_waits_for_a_task_that_may_fail_runs_when_it_has_failed() {
    let nodes = vec![ScheduledTask { safe_to_fail: true, ..node(&[]) }, node(&[0])];
    let mut schedule = Schedule::new(nodes, Pause::None);
    schedule.go_on();
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Failed), [start(1)]);
}

#[test]
fn tries_are_made_as_often_as_allowed_and_further_and_further_apart() {
    let mut schedule = Schedule::new(vec![ScheduledTask { retries: 2, ..node(&[]) }], Pause::None);
    schedule.go_on();
    assert_eq!(
        schedule.on_attempt_ended(0, AttemptOutcome::FailedTransiently),
        [ScheduleStep::Rest { task: 0, attempt: 2, ms: 200 }]
    );
    assert_eq!(schedule.rested(0), [ScheduleStep::Start { task: 0, attempt: 2 }]);
    assert_eq!(
        schedule.on_attempt_ended(0, AttemptOutcome::FailedTransiently),
        [ScheduleStep::Rest { task: 0, attempt: 3, ms: 400 }]
    );
    assert_eq!(schedule.rested(0), [ScheduleStep::Start { task: 0, attempt: 3 }]);
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::FailedTransiently), [ScheduleStep::Over]);
    assert_eq!(schedule.end_of(0), Some(TaskEnd::Failed));
}

#[test]
fn a_failure_that_would_come_again_is_not_tried_again() {
    let mut schedule = Schedule::new(vec![ScheduledTask { retries: 2, ..node(&[]) }], Pause::None);
    schedule.go_on();
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Failed), [ScheduleStep::Over]);
}

#[test]
fn each_layer_waits_for_a_word() {
    let nodes = vec![node(&[]), node(&[]), node(&[0]), node(&[1, 2])];
    let mut schedule = Schedule::new(nodes, Pause::PerLayer);
    assert_eq!(schedule.go_on(), [start(0), start(1)]);
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Succeeded), [], "the layer has not run yet");
    assert_eq!(schedule.on_attempt_ended(1, AttemptOutcome::Succeeded), [ScheduleStep::Pause { layer: 0 }]);
    assert_eq!(schedule.next_tasks(), [2]);
    assert_eq!(schedule.go_on(), [start(2)]);
    assert_eq!(schedule.on_attempt_ended(2, AttemptOutcome::Succeeded), [ScheduleStep::Pause { layer: 1 }]);
    assert_eq!(schedule.go_on(), [start(3)]);
    assert_eq!(
        schedule.on_attempt_ended(3, AttemptOutcome::Succeeded),
        [ScheduleStep::Over],
        "nobody is asked when nothing is left"
    );
}

#[test]
fn tasks_that_wait_are_told_with_their_distance_and_not_behind_one_that_holds_back() {
    // 0 → 1 → 2 → 3, and 4 beside them.
    let nodes = || vec![node(&[]), node(&[0]), node(&[1]), node(&[2]), node(&[0])];
    let waiting = |pause: Pause, holds_back: usize| {
        let mut schedule = Schedule::new(nodes(), pause);
        schedule.go_on();
        let waiting = schedule.waiting_tasks(&|task| task == holds_back);
        waiting.into_iter().map(|waiting| (waiting.task, waiting.steps)).collect::<Vec<_>>()
    };
    assert_eq!(waiting(Pause::None, 9), [(1, 1), (4, 1), (2, 2), (3, 3)]);
    assert_eq!(waiting(Pause::None, 1), [(1, 1), (4, 1)], "what holds back may itself be looked at");
    assert_eq!(waiting(Pause::None, 4), [(1, 1), (4, 1), (2, 2), (3, 3)], "it holds back nothing beside it");
    assert_eq!(waiting(Pause::PerLayer, 4), [(1, 1), (4, 1)], "layers are run one after the other");
    assert_eq!(waiting(Pause::None, 0), []);
}

#[test]
fn a_failure_waits_for_a_word_where_that_was_asked_for() {
    let nodes = vec![node(&[]), node(&[]), node(&[1]), node(&[0])];
    let mut schedule = Schedule::new(nodes, Pause::OnError);
    schedule.go_on();
    assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Failed), []);
    assert_eq!(
        schedule.on_attempt_ended(1, AttemptOutcome::Succeeded),
        [ScheduleStep::Pause { layer: 0 }],
        "task 3 was skipped, task 2 is held"
    );
    assert_eq!(schedule.go_on(), [start(2)]);
    assert_eq!(
        schedule.on_attempt_ended(2, AttemptOutcome::Succeeded),
        [ScheduleStep::Over],
        "one word is enough"
    );
}

#[test]
fn a_failure_waits_for_a_word_also_when_it_leaves_nothing_to_do() {
    for pause in [Pause::OnError, Pause::PerLayer] {
        let mut schedule = Schedule::new(vec![node(&[]), node(&[0])], pause);
        schedule.go_on();
        assert_eq!(schedule.on_attempt_ended(0, AttemptOutcome::Failed), [ScheduleStep::Pause { layer: 0 }]);
        assert_eq!(schedule.go_on(), [ScheduleStep::Over], "{pause:?}");
    }
}

#[test]
fn what_has_run_stays_so_when_the_rest_is_planned_anew() {
    let before = Schedule::new(vec![node(&[]), node(&[])], Pause::PerLayer);
    let ends = [Some(TaskEnd::Done), Some(TaskEnd::Failed), None, None];
    let nodes = vec![node(&[]), node(&[]), node(&[0]), node(&[1])];
    let mut schedule = before.with_tasks(nodes, &ends);
    assert_eq!(schedule.go_on(), [start(2)], "task 3 waits for one that failed");
    assert_eq!(schedule.end_of(3), Some(TaskEnd::Skipped));
    assert_eq!(schedule.on_attempt_ended(2, AttemptOutcome::Succeeded), [ScheduleStep::Over]);
}

#[test]
fn what_is_planned_anew_is_in_layers_of_its_own() {
    let before = Schedule::new(vec![node(&[]), node(&[0]), node(&[1])], Pause::PerLayer);
    let ends = [Some(TaskEnd::Done), Some(TaskEnd::Done), Some(TaskEnd::Skipped), None, None];
    let nodes = vec![node(&[]), node(&[0]), node(&[]), node(&[]), node(&[0])];
    let mut schedule = before.with_tasks(nodes, &ends);
    assert_eq!((schedule.layers[3], schedule.layers[4], schedule.layer_count()), (2, 2, 3));
    assert_eq!(schedule.go_on(), [start(3), start(4)]);
}

/// A DAG of up to 200 tasks, each depending on some of those before it, and the outcome of each attempt of each task.
fn dags() -> impl Strategy<Value = (Vec<ScheduledTask>, Vec<Vec<u8>>, u8)> {
    let task = |index: usize| {
        let after = prop::collection::btree_set(0..index.max(1), 0..=index.min(4));
        (after, prop::bool::weighted(0.2), 0..3_u32, prop::collection::vec(0..10_u8, 4)).prop_map(
            move |(after, safe_to_fail, retries, luck)| {
                let after = after.into_iter().filter(|before| *before < index).collect();
                (ScheduledTask { after, safe_to_fail, retries }, luck)
            },
        )
    };
    ((1..=200_usize).prop_flat_map(move |count| (0..count).map(task).collect::<Vec<_>>()), 0..3_u8).prop_map(
        |(tasks, pause)| {
            let (nodes, luck) = tasks.into_iter().unzip();
            (nodes, luck, pause)
        },
    )
}

fn tried(luck: u8) -> AttemptOutcome {
    match luck {
        0 => AttemptOutcome::Failed,
        1 | 2 => AttemptOutcome::FailedTransiently,
        _ => AttemptOutcome::Succeeded,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_task_ends_and_none_starts_too_early_or_too_often((nodes, luck, pause) in dags(), order in any::<u64>()) {
        let pause = [Pause::None, Pause::PerLayer, Pause::OnError][usize::from(pause)];
        let mut schedule = Schedule::new(nodes.clone(), pause);
        let mut tries = vec![0_u32; nodes.len()];
        let (mut running, mut over, mut seed) = (Vec::new(), false, order);
        let mut steps = schedule.go_on();
        loop {
            for step in std::mem::take(&mut steps) {
                match step {
                    ScheduleStep::Start { task, attempt } => {
                        tries[task] += 1;
                        prop_assert_eq!(attempt, tries[task]);
                        prop_assert!(attempt <= nodes[task].retries + 1);
                        for before in &nodes[task].after {
                            let end = schedule.end_of(*before);
                            let passes = end == Some(TaskEnd::Done)
                                || (end == Some(TaskEnd::Failed) && nodes[*before].safe_to_fail);
                            prop_assert!(passes, "task {} began although {} ended as {:?}", task, before, end);
                        }
                        running.push((task, false));
                    }
                    ScheduleStep::Rest { task, .. } => running.push((task, true)),
                    ScheduleStep::Pause { .. } => {
                        prop_assert!(running.is_empty() && pause != Pause::None);
                        steps = schedule.go_on();
                        prop_assert!(!steps.is_empty(), "a word leads on");
                    }
                    ScheduleStep::Over => over = true,
                }
            }
            if !steps.is_empty() {
                continue;
            }
            if running.is_empty() {
                break;
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = usize::try_from(seed >> 33).unwrap() % running.len();
            let (task, resting) = running.swap_remove(pick);
            steps = match resting {
                true => schedule.rested(task),
                false => schedule.on_attempt_ended(task, tried(luck[task][(tries[task] as usize - 1).min(3)])),
            };
        }
        prop_assert!(over, "it comes to an end");
        for (task, node) in nodes.iter().enumerate() {
            let end = schedule.end_of(task);
            prop_assert!(end.is_some());
            let blocked = node.after.iter().any(|before| match schedule.end_of(*before) {
                Some(TaskEnd::Done) => false,
                Some(TaskEnd::Failed) => !nodes[*before].safe_to_fail,
                Some(TaskEnd::Skipped) | None => true,
            });
            prop_assert_eq!(end == Some(TaskEnd::Skipped), blocked);
        }
    }
}
