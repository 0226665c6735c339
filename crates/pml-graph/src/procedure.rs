//! Which steps serve an intent, judged by what was done for earlier intents.
//!
//! Every earlier intent says which tools served it and how they were linked. A new one is compared with
//! all of them, by meaning and by which tools the catalogue alone would offer for both. The nearest ones
//! vote, and what they say corrects what the catalogue says: a tool that it offered to them as well, and
//! that was not used, is not believed this time either. That gives every tool and every link a
//! probability, and the answer is the graph that will most likely share most with the right one: one of
//! the earlier graphs, or one put together from the likeliest tools, in the order in which the request
//! speaks of them and in which they were used before.
//!
//! Nothing here knows where vectors and ranking come from, and nothing is run.

mod compose;
mod kernel;
mod memory;
mod order;
mod recall;
mod row;

pub use compose::{Known, Neighbour, Suggestion, suggest};
pub use memory::{Match, Memory, ToolText, Trace, matches};
pub(crate) use recall::Recall;

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// In words.
    pub intent: &'a str,
    /// Its vector, of the same model as those of the traces; `None` while no model is there.
    pub vector: Option<&'a [f32]>,
    /// What the catalogue alone offers for it, see [`matches`]; only tools that the memory was made for.
    pub matches: &'a [Match],
}
