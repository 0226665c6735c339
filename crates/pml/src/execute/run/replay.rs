//! Replays a resumed run up to where it stood: recorded deliveries are made again, and every call is compared with its
//! record before anything is sent.

use std::collections::HashSet;

use super::{Action, Divergence, RunCore};
use crate::execute::delivery::RunDelivery;
use crate::execute::issued_call::IssuedCall;
use crate::execute::journal::LoggedCall;
use crate::plan::Grant;

/// The recorded history, and how much of it the program has repeated.
#[derive(Debug)]
pub(super) struct ReplayState {
    calls: Vec<LoggedCall>,
    /// The calls that were issued again, or need not be because their frame has ended.
    seen: Vec<bool>,
    pub(super) deliveries: u32,
    pub(super) timers: HashSet<u64>,
    /// The calls without an end, to be made once the replay is complete.
    held: Vec<(IssuedCall, bool)>,
    /// The ends of frames that arrived during the replay, and whether a pause was requested.
    pub(super) over: Vec<RunDelivery>,
}

impl ReplayState {
    /// Compares an issued call with the recorded one of the same number. A call that has no end is held back until the
    /// replay is complete.
    pub(super) fn compare(&mut self, mut issued: IssuedCall, tool: &str) -> Option<Divergence> {
        let index = issued.call as usize - 1;
        let Some(logged) = self.calls.get(index) else {
            self.held.push((issued, false));
            return None;
        };
        self.seen[index] = true;
        if logged.tool != tool {
            let (recorded, now) = (logged.tool.clone(), tool.to_owned());
            return Some(Divergence::Other { call: issued.call, recorded, now });
        }
        if logged.digest != issued.digest {
            return Some(Divergence::Arguments { call: issued.call, tool: tool.to_owned() });
        }
        if logged.ended_at.is_none() {
            issued.grant = logged.grant_index;
            self.held.push((issued, true));
        }
        None
    }
}

impl<E> RunCore<E> {
    /// Restores the run from its history. Must be the first call, and happen only once.
    pub(in crate::execute) fn restore(
        &mut self,
        grants: Vec<Grant>,
        calls: Vec<LoggedCall>,
        deliveries: Vec<(i64, RunDelivery)>,
    ) -> Vec<Action<E>> {
        self.grants = grants
            .into_iter()
            .map(|grant| {
                let left = grant.calls;
                (grant, left)
            })
            .collect();
        for used in calls.iter().filter_map(|call| call.grant_index) {
            if let Some((_, left)) = self.grants.get_mut(used as usize) {
                *left = left.saturating_sub(1);
            }
        }
        if calls.is_empty() && deliveries.is_empty() {
            return Vec::new();
        }
        let timers = deliveries.iter().filter_map(|(_, what)| match what {
            RunDelivery::Timer { timer } => Some(*timer),
            _ => None,
        });
        let over: HashSet<u32> = deliveries
            .iter()
            .filter_map(|(_, what)| match what {
                RunDelivery::Frame { frame, .. } => Some(*frame),
                _ => None,
            })
            .collect();
        self.replay = Some(ReplayState {
            seen: calls.iter().map(|call| over.contains(&call.frame)).collect(),
            calls,
            deliveries: u32::try_from(deliveries.len()).unwrap_or(u32::MAX),
            timers: timers.collect(),
            held: Vec::new(),
            over: Vec::new(),
        });
        deliveries.into_iter().map(|(at, what)| self.deliver(at, what)).collect()
    }

    /// Whether the program is still being replayed.
    pub(in crate::execute) fn is_replaying(&self) -> bool {
        self.replay.is_some()
    }

    /// Makes the calls that were held back, except those of frames that have ended by now, whose results nothing
    /// awaits.
    pub(super) fn go_on_after(&mut self, replay: ReplayState, now: i64, actions: &mut Vec<Action<E>>) {
        let is_over = |issued: &IssuedCall| {
            replay
                .over
                .iter()
                .any(|what| matches!(what, RunDelivery::Frame { frame, .. } if *frame == issued.frame))
        };
        for (issued, recorded) in replay.held {
            if !recorded {
                self.record(&issued, actions);
            }
            if !is_over(&issued) {
                self.queue(issued, now, actions);
            }
        }
        for what in replay.over {
            match what {
                RunDelivery::Pause => self.on_pause(now, actions),
                over => self.on_frame_over(over, now, actions),
            }
        }
        self.pump(actions);
    }

    /// A recorded call that the program has not made.
    pub(super) fn missing(&self) -> Option<Divergence> {
        let replay = self.replay.as_ref()?;
        let index = replay.seen.iter().position(|seen| !seen)?;
        let call = u32::try_from(index + 1).unwrap_or(u32::MAX);
        Some(Divergence::Missing { call, recorded: replay.calls[index].tool.clone() })
    }
}
