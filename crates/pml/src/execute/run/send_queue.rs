//! The calls that wait for their turn within the concurrency limits.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::CoreLimits;

/// The queued calls and the number of calls under way, by server.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    /// The queued calls by server, in the order of issue.
    waiting: BTreeMap<String, VecDeque<u32>>,
    /// The number of calls under way, by server and in total.
    at_once: HashMap<String, usize>,
    under_way: usize,
}

impl SendQueue {
    /// Queues a call to `server`.
    pub(super) fn push(&mut self, server: &str, call: u32) {
        match self.waiting.get_mut(server) {
            Some(queue) => queue.push_back(call),
            None => drop(self.waiting.insert(server.to_owned(), VecDeque::from([call]))),
        }
    }

    /// The oldest call that the limits allow to be sent; no call waits for a server other than its own. From now on it
    /// counts as under way. Calls that are not `wanted` any more are dropped.
    pub(super) fn next(&mut self, limits: &CoreLimits, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        while self.under_way < limits.concurrent {
            let free = self.waiting.iter_mut().filter(|(server, queue)| {
                let at_once = self.at_once.get(*server).copied().unwrap_or(0);
                !queue.is_empty() && at_once < limits.concurrent_per_server
            });
            let (server, queue) = free.min_by_key(|(_, queue)| queue[0])?;
            let call = queue.pop_front()?;
            if wanted(call) {
                *self.at_once.entry(server.clone()).or_default() += 1;
                self.under_way += 1;
                return Some(call);
            }
        }
        None
    }

    /// Notes that a call to `server` is no longer under way.
    pub(super) fn release(&mut self, server: &str) {
        self.under_way -= 1;
        if let Some(at_once) = self.at_once.get_mut(server) {
            *at_once -= 1;
        }
    }

    /// Whether any call is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way > 0
    }

    /// Drops the queued calls.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
