//! The configuration files of MCP clients.
//!
//! [`CLIENTS`] says which files a client reads on each system and where its servers stand in them. [`read`] takes the
//! servers out of a text; [`put`] and [`take_out`] change one entry of a text and no other byte: comments, trailing
//! commas, order, indentation, line endings, byte order mark and unknown keys stay.
//!
//! Text goes in and text comes out. There is no I/O, clock or environment here, and nothing of ours is imported.

mod bracketed;
mod container;
mod dialect;
mod edit;
mod json;
mod known;
mod layout;
mod merge;
mod own_entry;
mod toml;
mod tree;
mod variables;
mod yaml;

pub use container::EntryTrace;
pub use dialect::{ClientServer, Dialect, LaunchCommand, ServerAddress, UnreadableServer};
pub use edit::{FileShape, Format, Put, ServersRead, put, read, take_out};
pub use known::{
    CLIENTS, Client, ConfigLocation, Directories, ResolvedLocation, Scope, System, find, nearest,
};
pub use merge::{MergedServer, merge};
pub use own_entry::package_command;
pub use tree::Error;
pub use variables::VariableValues;
