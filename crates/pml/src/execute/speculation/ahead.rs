//! Follows a program and decides which reads to make ahead of it.
//!
//! [`RunAhead`] is told what the program reaches, issues and receives. Asked while the program is quiet, it returns the
//! reads that the program will probably ask for, that nothing stands before which may change their results, and whose
//! arguments are known. It decides only; the driver makes the calls.

use std::collections::{HashMap, VecDeque};

use pml_model::structure::{Argument, NodeId};
use serde_json::Value;
use serde_json::value::RawValue;

use super::order::NodeSet;
use super::outlook::{Barrier, ForeseenRead, Outlook, ToolEffect};
use super::resolve::{KnownValues, LoopItems};
use super::shares::OutcomeShares;

/// 256 KiB: larger results are not searched for arguments of later calls.
const LARGEST_RESULT: usize = 256 * 1024;
/// The items of a list that are foreseen; what exceeds it is read as usual.
const MOST_ITEMS: usize = 1_000;
/// The confidence that the program asks for a read that it reaches unless it ends early: some programs throw, break or
/// return before.
const CERTAIN: f64 = 0.9;

/// A read to make before the program asks for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadAhead {
    pub(crate) handle: u32,
    /// The arguments, as the bytes that the program would send.
    pub(crate) arguments: String,
    /// The estimated probability that the program asks for it.
    pub(crate) confidence: f64,
}

/// The reads of one run that are still ahead.
#[derive(Debug)]
pub(crate) struct RunAhead {
    outlook: Outlook,
    known: KnownValues,
    reached: NodeSet,
    outcomes: HashMap<NodeId, Vec<String>>,
    /// How likely undecided branches are.
    shares: OutcomeShares,
    ahead: Vec<Remaining>,
    /// How many more reads of undecided branches may be made.
    branches_left: u32,
}

/// The calls of one read that were neither issued nor made ahead.
#[derive(Debug)]
enum Remaining {
    /// The arguments are not all known yet.
    Unknown,
    /// The arguments of the calls, in the order of the program.
    Calls(VecDeque<String>),
    /// The program has passed the read, or will not reach it.
    Over,
}

/// Whether the program will reach a node.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reachability {
    Certain,
    /// With this probability.
    Undecided(f64),
    Never,
}

impl RunAhead {
    /// The reads ahead of a program that starts with `arguments`; at most `branches` of them in undecided branches.
    pub(crate) fn new(
        outlook: Outlook,
        arguments: &RawValue,
        branches: u32,
        shares: OutcomeShares,
    ) -> RunAhead {
        let arguments = serde_json::from_str(arguments.get()).unwrap_or(Value::Null);
        RunAhead {
            known: KnownValues { arguments, results: HashMap::new() },
            reached: outlook.order.empty_set(),
            outcomes: HashMap::new(),
            shares,
            ahead: outlook.reads.iter().map(|_| Remaining::Unknown).collect(),
            branches_left: branches,
            outlook,
        }
    }

    /// The program reached a node.
    pub(crate) fn on_reached(&mut self, node: NodeId) {
        if let Some(node) = self.outlook.order.index(node) {
            self.reached.insert(node);
        }
    }

    /// The program made a decision.
    pub(crate) fn on_decided(&mut self, node: NodeId, outcome: &str) {
        self.on_reached(node);
        let outcomes = self.outcomes.entry(node).or_default();
        if !outcomes.iter().any(|known| known == outcome) {
            outcomes.push(outcome.to_owned());
        }
    }

    /// The program issued a call at a node.
    pub(crate) fn on_issued(&mut self, node: NodeId, arguments: &str) {
        let Some(at) = self.outlook.order.index(node) else { return };
        self.reached.insert(at);
        for place in 0..self.ahead.len() {
            if self.outlook.reads[place].node == at {
                self.remove_issued(place, arguments);
            }
        }
    }

    fn remove_issued(&mut self, place: usize, arguments: &str) {
        if let Remaining::Unknown = self.ahead[place] {
            // A program that iterates knows its list; what is not known here by now never will be.
            let calls = self.calls_of(&self.outlook.reads[place]);
            self.ahead[place] = calls.map_or(Remaining::Over, Remaining::Calls);
        }
        if let Remaining::Calls(calls) = &mut self.ahead[place]
            && let Some(issued) = calls.iter().position(|call| call == arguments)
        {
            // The calls before this one were passed by, or are under way.
            calls.drain(..=issued);
        }
    }

    /// Whether arguments refer to the result of a node.
    pub(crate) fn refers_to(&self, node: NodeId) -> bool {
        self.outlook.referred.contains(&node)
    }

    /// The program received the result of a node.
    pub(crate) fn on_result(&mut self, node: NodeId, result: &str) {
        if self.refers_to(node)
            && result.len() <= LARGEST_RESULT
            && let Ok(value) = serde_json::from_str(result)
        {
            self.known.results.insert(node, value);
        }
    }

    /// At most `most` reads to make now, in the order of the program. Those of a tool and with a confidence that are not
    /// `admitted` stay: a decision may make them certain.
    pub(crate) fn take_reads(&mut self, most: usize, admitted: impl Fn(u32, f64) -> bool) -> Vec<ReadAhead> {
        let mut reads = Vec::new();
        for place in 0..self.ahead.len() {
            if reads.len() >= most {
                break;
            }
            let handle = self.outlook.reads[place].handle;
            if let Some((confidence, is_certain)) = self.prepare(place)
                && let Remaining::Calls(calls) = &mut self.ahead[place]
                && !calls.is_empty()
                && admitted(handle, confidence)
            {
                let mut room = calls.len().min(most - reads.len());
                if !is_certain {
                    let branches = u32::try_from(room).unwrap_or(u32::MAX).min(self.branches_left);
                    self.branches_left -= branches;
                    room = branches as usize;
                }
                let taken = calls.drain(..room);
                reads.extend(taken.map(|arguments| ReadAhead { handle, arguments, confidence }));
            }
        }
        reads
    }

    /// Finds out whether a read can be made now, with which confidence the program asks for it, and whether all
    /// decisions before it are made.
    fn prepare(&mut self, place: usize) -> Option<(f64, bool)> {
        if let Remaining::Over = self.ahead[place] {
            return None;
        }
        let read = &self.outlook.reads[place];
        let reachability = match self.outlook.order.is_passed(read.node, &self.reached) {
            true => Reachability::Never,
            false => self.reachability(read),
        };
        let (confidence, is_certain) = match (reachability, &read.effect) {
            (Reachability::Never, _) => {
                self.ahead[place] = Remaining::Over;
                return None;
            }
            (Reachability::Certain, _) => (CERTAIN, true),
            // Nothing that no decision asked for leaves the machine.
            (Reachability::Undecided(share), ToolEffect::ReadsClosed) => (share.min(CERTAIN), false),
            (Reachability::Undecided(_), _) => return None,
        };
        if read.barriers.iter().any(|barrier| !self.is_behind(*barrier)) {
            return None;
        }
        if let Remaining::Unknown = self.ahead[place] {
            self.ahead[place] = Remaining::Calls(self.calls_of(read)?);
        }
        Some((confidence, is_certain))
    }

    /// Whether a call that may change something has been made for the last time, or never will be. Calls in flight are
    /// the driver's business.
    fn is_behind(&self, barrier: Barrier) -> bool {
        let (order, Barrier { node, single }) = (&self.outlook.order, barrier);
        (single && self.reached.contains(node) && !order.is_in_loop(node))
            || order.is_passed(node, &self.reached)
            || self.reachability_of(node) == Reachability::Never
    }

    fn reachability(&self, read: &ForeseenRead) -> Reachability {
        self.reachability_of(read.node)
    }

    fn reachability_of(&self, node: usize) -> Reachability {
        let order = &self.outlook.order;
        let mut undecided = None;
        for condition in order.conditions_of(node) {
            let Some(decision) = order.index(condition.decision) else { continue };
            // A decision in a loop is made anew in each turn.
            let outcomes = self.outcomes.get(&condition.decision).filter(|_| !order.is_in_loop(decision));
            match outcomes {
                None => undecided = Some(undecided.unwrap_or(1.0) * self.shares.of(condition)),
                Some(taken) if taken.iter().any(|outcome| condition.outcomes.contains(outcome)) => {}
                Some(_) => return Reachability::Never,
            }
        }
        undecided.map_or(Reachability::Certain, Reachability::Undecided)
    }

    /// The arguments of all calls of a read, in the order of the program; `None` while some are not known.
    fn calls_of(&self, read: &ForeseenRead) -> Option<VecDeque<String>> {
        let mut calls = VecDeque::new();
        self.add_calls(read, &read.lists, &mut LoopItems::new(), &mut calls)?;
        Some(calls)
    }

    fn add_calls(
        &self,
        read: &ForeseenRead,
        lists: &[(NodeId, Argument)],
        items: &mut LoopItems,
        calls: &mut VecDeque<String>,
    ) -> Option<()> {
        let Some(((around, list), inner)) = lists.split_first() else {
            if calls.len() < MOST_ITEMS {
                calls.push_back(self.known.resolve_call(&read.arguments, items)?);
            }
            return Some(());
        };
        for item in 0..self.known.list_length(list, items)?.min(MOST_ITEMS) {
            items.insert(*around, item);
            self.add_calls(read, inner, items, calls)?;
        }
        items.remove(around);
        Some(())
    }
}

#[cfg(test)]
mod tests;
