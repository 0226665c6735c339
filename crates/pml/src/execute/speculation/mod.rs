//! Speculation: reads that are made before the program asks for them.
//!
//! Programs often await one call after the other although nothing depends on anything. The structure tells which reads
//! come next, with which arguments, and what stands before them. While the program waits for one call, the reads that
//! follow are made, and the program finds their results ready.
//!
//! `inline` adds the capabilities that a program calls, `outlook` says which reads can be foreseen, `ahead` which of them
//! to make now (all pure). `speculator` makes them within `budget` and hands out their results, and `records` tells what
//! came of them. A run that confirms a dry run starts with the reads that were made there (`earlier`). Nothing here
//! changes what a program does: a result is used only for a call that the program issued itself, with the same bytes,
//! while nothing may have been written since.

mod ahead;
mod budget;
mod earlier;
mod inline;
mod order;
mod outlook;
mod prepared;
mod reads;
mod records;
mod resolve;
mod shares;
mod speculative_call;
mod speculator;
mod trial;
mod trust;
mod turn_marks;

pub(super) use ahead::{ReadOffer, RunAhead};
pub(crate) use earlier::EarlierRead;
pub(super) use inline::{InlinedPlaces, InlinedStructure};
pub(super) use outlook::{CallEffects, CalledTool, Outlook, ToolEffect};
pub(crate) use records::{SpeculationMiss, speculation_threshold};
pub(super) use shares::OutcomeShares;
pub(super) use speculator::{AskedCall, ClaimedResult, NewRead, Speculator};
pub(crate) use trial::try_ahead;
pub(super) use trust::LEAST_CONFIDENCE;
