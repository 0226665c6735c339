//! Positions for pictures of graphs: [`layered`] for procedures, [`map`] for the graph of tools.
//!
//! Both are pure and deterministic: the same input gives the same picture, in every process.

mod coordinates;
pub mod layered;
mod level;
pub mod map;
mod order;
mod shape;

#[cfg(test)]
mod tests;
