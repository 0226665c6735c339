//! The calls of a plan, as what feeds what is asked of them.

use super::fields::{Input, Output, Tool};

/// Whether the calls come in the order they are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Yes: a call takes only from those before it.
    Given,
    /// No: any that makes sense.
    Free,
}

/// How alike the descriptions of a result's field and of a parameter are, from 0 to 1.
pub type Similar<'a> = &'a dyn Fn(&Output, &Input) -> f32;

/// The calls of a plan.
#[derive(Clone, Copy)]
pub struct Calls<'a> {
    /// The tool of each call; one tool may be called several times.
    pub tools: &'a [&'a Tool],
    /// Whether they are in order.
    pub order: Order,
    /// What was asked for, where it is known.
    pub request: Option<&'a str>,
    /// Arguments that are known already: the number of a call and the parameter.
    pub known: &'a [(usize, &'a str)],
    /// Compares descriptions; by their words where absent.
    pub similar: Option<Similar<'a>>,
}
