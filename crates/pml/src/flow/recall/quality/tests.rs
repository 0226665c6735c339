//! Tests: which capabilities are good enough to be suggested.

use super::*;

fn tried(success_count: u64, failure_count: u64) -> CapabilityStatistics {
    let usage_count = success_count + failure_count;
    CapabilityStatistics { usage_count, success_count, failure_count, ..CapabilityStatistics::default() }
}

#[test]
fn one_success_is_enough_to_be_suggested_and_one_failure_does_not_undo_it() {
    assert!(is_worth_suggesting(&tried(1, 0)));
    assert!(is_worth_suggesting(&tried(1, 1)));
    assert!(!is_worth_suggesting(&tried(1, 2)));
}

#[test]
fn each_failure_raises_the_bar_and_each_success_lowers_it() {
    assert!((bar(&tried(0, 0)) - WORTH_IT).abs() < 1e-12, "nothing is known");
    for count in 0..10 {
        assert!(bar(&tried(3, count)) < bar(&tried(3, count + 1)), "{count} failures");
        assert!(bar(&tried(count, 5)) > bar(&tried(count + 1, 5)), "{count} successes");
    }
}

#[test]
fn much_use_does_not_carry_what_mostly_fails() {
    let often = tried(10, 30);
    assert!(often.quality() > WORTH_IT, "a bar that stays where it is would let it pass");
    assert!(!is_worth_suggesting(&often));
}

#[test]
fn the_bar_stays_within_its_bounds() {
    for (success, failure) in [(0, 1_000_000), (1_000_000, 0), (0, 0)] {
        let bar = bar(&tried(success, failure));
        assert!((LOWEST..=HIGHEST).contains(&bar), "{bar}");
    }
}
