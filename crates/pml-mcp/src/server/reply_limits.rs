//! How long replies over HTTP may be silent, and in which pieces they are sent.

use std::time::Duration;

/// How long a request may go without output before its reply becomes an event stream.
pub(super) const QUIET: Duration = Duration::from_secs(2);
/// Interval of keep-alive comments on an idle event stream.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Maximum number of bytes of a large reply that are handed to the connection at a time.
pub(super) const PART_BYTES: usize = 64 * 1024;
