//! The crate from outside, with real worker processes: this binary is host and worker, and what a worker must not
//! be as well.

#![allow(clippy::unwrap_used)]

mod boundary;
mod endings;
mod evil;
mod faults;
mod host;
mod nested;
mod pool;
mod probes;
mod surface;
mod walls;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let given: Vec<String> = std::env::args().collect();
    match given.get(1).map(String::as_str) {
        Some("sandbox-worker") => pml_sandbox::worker_main(),
        Some("evil-worker") => evil::main(&given[2]),
        Some("lonely-host") => return pool::lonely_host(),
        Some(_) | None => {}
    }
    let tests = [
        boundary::tests(),
        endings::tests(),
        faults::tests(),
        nested::tests(),
        pool::tests(),
        probes::tests(),
        surface::tests(),
        walls::tests(),
    ]
    .concat();
    let trials = tests.into_iter().map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}

/// A name and what to do.
type Test = (&'static str, fn());

/// Names functions after themselves.
#[macro_export]
macro_rules! tests {
    ($($test:ident),* $(,)?) => {
        pub(crate) fn tests() -> Vec<$crate::Test> {
            vec![$((concat!(module_path!(), "::", stringify!($test)), $test as fn())),*]
        }
    };
}
