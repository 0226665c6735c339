//! PML: one MCP server in front of all of an agent's MCP servers.
//!
//! Reading order: [`config`], [`app`], [`gateway`], [`flow`], then the stages `flow` calls.

pub mod accepted;
pub mod api;
pub mod app;
pub mod approve;
pub mod builtin;
pub mod capability;
pub mod catalogue;
pub mod cli;
pub mod clock;
pub mod config;
pub mod dashboard;
pub mod discover;
pub mod dry_runs;
pub mod epoch;
pub mod error_type;
pub mod events;
pub mod execute;
pub mod flow;
pub mod gateway;
pub mod heap;
pub mod keys;
pub mod knowledge;
pub mod metrics;
pub mod package;
pub mod passphrase;
pub mod people;
pub mod plan;
pub mod planning;
pub mod problem;
pub mod progress;
mod public_address;
pub mod report;
pub mod reuse;
pub mod runtime;
pub mod sanitise;
pub mod servers;
pub mod settings;
pub mod sign_in;
pub mod suggest;
mod telemetry;
mod tls;
pub mod tools;
pub mod trace;
pub mod validate;
pub mod views;
