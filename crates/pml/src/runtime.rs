//! What the process offers its parts: threads for work that blocks, and the path of its own program.

use std::path::PathBuf;

/// Runs work that blocks, such as reading a file, on a thread that serves no requests.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The program is ending, and nobody waits for this any more.
        Err(_) => std::future::pending().await,
    }
}

/// The program of this process, also where its file was removed or replaced since it was started: what it starts as a
/// part of itself must be of the same version.
///
/// # Errors
/// The operating system does not tell.
pub fn this_program() -> std::io::Result<PathBuf> {
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}
