//! Services of the process: threads for blocking work, the executable that workers start from, and the log.

mod json_log;

use std::path::PathBuf;
use std::sync::OnceLock;

use crate::config::Env;
use json_log::JsonLines;

/// Runs blocking work, such as reading a file, on a thread that serves no requests.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, and no caller waits for the result any more.
        Err(_) => std::future::pending().await,
    }
}

/// Runs work that takes milliseconds of processor time on this thread, while other threads take over its tasks. Without that
/// all requests would wait for it: the thread that computes may be the one that listens to the network for all of them.
pub fn compute<T>(work: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    let has_other_threads =
        Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    if has_other_threads { tokio::task::block_in_place(work) } else { work() }
}

/// The executable for workers and guards, if it is not the one of this process.
static PROGRAM_OF_PARTS: OnceLock<PathBuf> = OnceLock::new();

/// Starts sandbox workers and guards from `pml`. A program that uses this library and is not `pml` itself calls this
/// before it starts anything; only the first call counts.
pub fn start_parts_from(pml: PathBuf) {
    PROGRAM_OF_PARTS.get_or_init(|| pml);
}

/// The executable that sandbox workers and guards start from. It is that of this process, even if its file was removed
/// or replaced since the start, because a worker must have the same version.
///
/// # Errors
/// The operating system does not say where the executable is.
pub fn program_of_parts() -> std::io::Result<PathBuf> {
    if let Some(program) = PROGRAM_OF_PARTS.get() {
        return Ok(program.clone());
    }
    let own = PathBuf::from("/proc/self/exe");
    if own.exists() { Ok(own) } else { std::env::current_exe() }
}

/// Logs to standard error. `PML_LOG` sets the filter. Without it, `usual` does, or a more detailed one if `verbose` is
/// not 0. `PML_LOG_FORMAT=json` makes each line a JSON object. Standard output is reserved for results and the protocol.
pub fn log_to_stderr(env: &Env, usual: &str, verbose: u8) {
    use tracing_subscriber::EnvFilter;
    let wanted = match verbose {
        0 => usual,
        1 => "pml=debug,pml_mcp=debug,pml_store=debug,info",
        _ => "trace",
    };
    let filter = env
        .get("PML_LOG")
        .and_then(|text| EnvFilter::try_new(text).ok())
        .unwrap_or_else(|| EnvFilter::new(wanted));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match env.get("PML_LOG_FORMAT") {
        Some("json") => log.with_ansi(false).event_format(JsonLines).init(),
        None | Some("" | "text") => log.with_ansi(colours).init(),
        Some(other) => {
            log.with_ansi(colours).init();
            let format = pml_model::name::printable(other);
            tracing::error!(%format, "`PML_LOG_FORMAT` is neither `text` nor `json`; the log is text");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn others_go_on_while_one_computes() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let heard = runtime.block_on(async {
            let (tell, hear) = mpsc::channel();
            let computing = tokio::spawn(async move {
                // There is one worker, so this task waits for the one that computes to give it up.
                tokio::spawn(async move { tell.send("done").unwrap() });
                compute(|| hear.recv_timeout(Duration::from_secs(60)))
            });
            computing.await.unwrap()
        });
        assert_eq!(heard, Ok("done"));
    }

    #[test]
    fn a_runtime_of_one_thread_computes_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { compute(|| 6 * 7) }), 42);
        assert_eq!(compute(|| 6 * 7), 42);
    }
}
