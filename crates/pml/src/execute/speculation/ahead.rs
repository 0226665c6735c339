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
/// How often a read outside of loops is made anew because the program slept before it asked for it: a program that sleeps
/// again and again wants what is there then.
const MOST_SLEPT: u32 = 1;
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
    /// One for each read of the outlook.
    places: Vec<ReadPlace>,
    /// How many more reads of undecided branches may be made.
    branches_left: u32,
}

/// What became of one read of the outlook.
#[derive(Debug)]
struct ReadPlace {
    remaining: Remaining,
    /// The arguments of the calls that were made ahead and not issued yet, in the order of the program.
    made: VecDeque<String>,
    /// How often what was made here was dropped because the program slept.
    slept: u32,
    /// The call that may change what is read, and for which the read was last held back.
    held_by: Option<usize>,
}

impl ReadPlace {
    fn new() -> ReadPlace {
        ReadPlace { remaining: Remaining::Unknown, made: VecDeque::new(), slept: 0, held_by: None }
    }
}

/// What becomes of a read that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOffer {
    /// It is made.
    Taken,
    /// It is not made now, nor are the others of its tool here.
    NotNow,
    /// Nothing more is made now.
    Full,
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
            places: outlook.reads.iter().map(|_| ReadPlace::new()).collect(),
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

    /// The program issued a call at a node. Returns the call for which it was not made ahead, if one held it back.
    pub(crate) fn on_issued(&mut self, node: NodeId, arguments: &str) -> Option<NodeId> {
        let at = self.outlook.order.index(node)?;
        self.reached.insert(at);
        let mut held_by = None;
        for place in 0..self.places.len() {
            if self.outlook.reads[place].node == at {
                held_by = held_by.or(self.remove_issued(place, arguments));
            }
        }
        held_by.map(|node| self.outlook.order.id(node))
    }

    /// Takes a call that was issued out of what is ahead. Returns the node that held it back, if it was not made.
    fn remove_issued(&mut self, place: usize, arguments: &str) -> Option<usize> {
        let made = &mut self.places[place].made;
        if let Some(issued) = made.iter().position(|call| call == arguments) {
            made.remove(issued);
            return None;
        }
        if let Remaining::Unknown = self.places[place].remaining {
            // A program that iterates knows its list; what is not known here by now never will be.
            let calls = self.calls_of(&self.outlook.reads[place]);
            self.places[place].remaining = calls.map_or(Remaining::Over, Remaining::Calls);
        }
        let place = &mut self.places[place];
        if let Remaining::Calls(calls) = &mut place.remaining
            && let Some(issued) = calls.iter().position(|call| call == arguments)
        {
            // The calls before this one were passed by, or are under way.
            calls.drain(..=issued);
        }
        place.held_by
    }

    /// Calls at these nodes, which may change something, are under way: the reads behind them are held back.
    pub(crate) fn on_changes_under_way(&mut self, nodes: &[NodeId]) {
        let nodes: Vec<usize> = nodes.iter().filter_map(|node| self.outlook.order.index(*node)).collect();
        for (place, read) in self.places.iter_mut().zip(&self.outlook.reads) {
            if let Some(barrier) = read.barriers.iter().find(|barrier| nodes.contains(&barrier.node)) {
                place.held_by = Some(barrier.node);
            }
        }
    }

    /// The program slept, and what was made before was dropped. What it reads outside of loops is made once more; in a loop
    /// it may sleep in every turn.
    pub(crate) fn on_slept(&mut self) {
        for (place, read) in self.places.iter_mut().zip(&self.outlook.reads) {
            if place.made.is_empty() {
                continue;
            }
            place.slept += 1;
            let made = std::mem::take(&mut place.made);
            match &mut place.remaining {
                Remaining::Calls(calls) if read.lists.is_empty() && place.slept <= MOST_SLEPT => {
                    made.into_iter().rev().for_each(|call| calls.push_front(call));
                }
                remaining => *remaining = Remaining::Over,
            }
        }
    }

    /// Takes the reads that were made and that the program will not ask for: it has passed them, or decided otherwise.
    pub(crate) fn take_passed(&mut self) -> Vec<(u32, String)> {
        let mut passed = Vec::new();
        for place in 0..self.places.len() {
            let read = &self.outlook.reads[place];
            if !self.places[place].made.is_empty() && self.reachability(read) == Reachability::Never {
                let place = &mut self.places[place];
                place.remaining = Remaining::Over;
                passed.extend(place.made.drain(..).map(|arguments| (read.handle, arguments)));
            }
        }
        passed
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

    /// Offers the reads that could be made now, in the order of the program. What is not taken stays: a decision may make it
    /// certain, or there may be room for it later.
    pub(crate) fn offer_reads(&mut self, mut offer: impl FnMut(&ReadAhead) -> ReadOffer) {
        for place in 0..self.places.len() {
            let Some((confidence, is_certain)) = self.prepare(place) else { continue };
            let handle = self.outlook.reads[place].handle;
            let ReadPlace { remaining: Remaining::Calls(calls), made, .. } = &mut self.places[place] else {
                continue;
            };
            while (is_certain || self.branches_left > 0)
                && let Some(arguments) = calls.pop_front()
            {
                let read = ReadAhead { handle, arguments, confidence };
                let answer = offer(&read);
                if answer == ReadOffer::Taken {
                    self.branches_left -= u32::from(!is_certain);
                    made.push_back(read.arguments);
                    continue;
                }
                calls.push_front(read.arguments);
                if answer == ReadOffer::Full {
                    return;
                }
                break;
            }
        }
    }

    /// Finds out whether a read can be made now, with which confidence the program asks for it, and whether all
    /// decisions before it are made.
    fn prepare(&mut self, place: usize) -> Option<(f64, bool)> {
        if let Remaining::Over = self.places[place].remaining {
            return None;
        }
        let read = &self.outlook.reads[place];
        let (confidence, is_certain) = match (self.reachability(read), &read.effect) {
            (Reachability::Never, _) => {
                self.places[place].remaining = Remaining::Over;
                return None;
            }
            (Reachability::Certain, _) => (CERTAIN, true),
            // Nothing that no decision asked for leaves the machine.
            (Reachability::Undecided(share), ToolEffect::ReadsClosed) => (share.min(CERTAIN), false),
            (Reachability::Undecided(_), _) => return None,
        };
        let barrier = read.barriers.iter().find(|barrier| !self.is_behind(**barrier));
        self.places[place].held_by = barrier.map(|barrier| barrier.node);
        if barrier.is_some() {
            return None;
        }
        if let Remaining::Unknown = self.places[place].remaining {
            self.places[place].remaining = Remaining::Calls(self.calls_of(read)?);
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
        match self.outlook.order.is_passed(read.node, &self.reached) {
            true => Reachability::Never,
            false => self.reachability_of(read.node),
        }
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
