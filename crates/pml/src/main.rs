//! The `pml` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(unix)]
    {
        // Before anything else: a guard must stay small and must not initialise the rest of the program.
        let arguments: Vec<std::ffi::OsString> = std::env::args_os().collect();
        if arguments.get(1).is_some_and(|first| first == pml_mcp::guard::COMMAND) {
            return pml_mcp::guard::main(&arguments[2..]);
        }
        if arguments.get(1).is_some_and(|first| first == pml::execute::WORKER_COMMAND) {
            pml_sandbox::worker_main();
        }
    }
    pml::cli::main()
}
