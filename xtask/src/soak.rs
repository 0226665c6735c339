//! Soak tests: runs on demand the full counts of which the normal tests run a sample.
//!
//! Each soak is a test that takes its count from an environment variable, so that sample and full count run the same
//! code. A new one is a line in [`SOAKS`].

use crate::{Done, cargo, run};

struct Soak {
    name: &'static str,
    what: &'static str,
    /// Package, test binary and test filter.
    test: (&'static str, &'static str, &'static str),
    /// Environment variable for the count, and the default count.
    variable: &'static str,
    count: u64,
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "tenants",
        what: "random requests of two people to one gateway, none of which shows anything of the other",
        test: ("pml", "tenants", "random::"),
        variable: "PML_TENANT_STEPS",
        count: 100_000,
    },
    Soak {
        name: "tenants-store",
        what: "random reads and writes of two principals on one store",
        test: ("pml-store", "store", "tenants::"),
        variable: "PML_TENANT_STEPS",
        count: 100_000,
    },
    Soak {
        name: "corruption",
        what: "databases with flipped bytes and lost pages",
        test: ("pml-store", "store", "corruption::whatever_page_is_damaged"),
        variable: "PML_SOAK_SEEDS",
        count: 200,
    },
    Soak {
        name: "connections",
        what: "connections that send their bodies slowly",
        test: ("pml", "it", "load::slow_bodies"),
        variable: "PML_SOAK_CONNECTIONS",
        count: 1100,
    },
    Soak {
        name: "reuse",
        what: "tasks asked again with other values, or all there are",
        test: ("pml", "memory", "reuse::second_intents"),
        variable: "PML_REUSE_TASKS",
        count: 1000,
    },
    Soak {
        name: "speculation",
        what: "programs and documents that do the same with and without speculation",
        test: ("pml", "speculation", "soundness::"),
        variable: "PML_SPECULATION_PROGRAMS",
        count: 20_000,
    },
    Soak {
        name: "dry-run",
        what: "programs and documents run dry, in both modes, against servers that write down every call",
        test: ("pml", "dry_run", "honeypot::generated"),
        variable: "PML_DRY_PROGRAMS",
        count: 10_000,
    },
    Soak {
        name: "speculation-kills",
        what: "kills of a gateway that reads ahead",
        test: ("pml", "speculation", "kills::"),
        variable: "PML_SPECULATION_KILLS",
        count: 300,
    },
    Soak {
        name: "explore",
        what: "explorations that call nothing that could have an effect",
        test: ("pml", "explore", "honeypot::"),
        variable: "PML_EXPLORATIONS",
        count: 1000,
    },
    Soak {
        name: "api",
        what: "generated requests that the HTTP API answers as its OpenAPI document says",
        test: ("pml", "dashboard", "openapi::generated"),
        variable: "PML_API_CASES",
        count: 5000,
    },
    Soak {
        name: "replicas",
        what: "kills of one of three gateways, or of their database server, while clients go round",
        test: ("pml", "durable", "replicas::whichever"),
        variable: "PML_REPLICA_KILLS",
        count: 500,
    },
    Soak {
        name: "long-life",
        what: "minutes of a gateway whose servers die and whose clients leave, and which holds no more at the end",
        test: ("pml", "it", "long_life::"),
        variable: "PML_LONG_LIFE_MINUTES",
        count: 15,
    },
    Soak {
        name: "long-call",
        what: "seconds of one call through clients that wait for a minute",
        test: ("pml", "it", "clients::a_call_longer"),
        variable: "PML_LONG_CALL_SECONDS",
        count: 600,
    },
    Soak {
        name: "hyperpaths",
        what: "random hypergraphs whose cheapest hyperpaths are those of brute force",
        test: ("pml-graph", "hyperpaths", ""),
        variable: "PML_HYPERGRAPHS",
        count: 10_000,
    },
];

/// Runs the named soak with an optional count, or all soaks when none is named.
pub(crate) fn soak(arguments: &[&str]) -> Done {
    match arguments {
        [] => SOAKS.iter().try_for_each(|soak| soak.run(soak.count)),
        [name] => find(name)?.run(find(name)?.count),
        [name, count] => {
            let count = count.parse().map_err(|_| format!("`{count}` is no number"))?;
            find(name)?.run(count)
        }
        _ => Err("give the name of a soak and, if you like, a count".to_owned()),
    }
}

fn find(name: &str) -> Result<&'static Soak, String> {
    SOAKS.iter().find(|soak| soak.name == name).ok_or_else(|| {
        let known = SOAKS.iter().map(|soak| format!("  {} ({} {})", soak.name, soak.count, soak.what));
        format!("there is no soak `{name}`; those there are:\n{}", known.collect::<Vec<_>>().join("\n"))
    })
}

impl Soak {
    fn run(&self, count: u64) -> Done {
        crate::say(&format!("{}: {count} {}", self.name, self.what));
        let (package, binary, filter) = self.test;
        let mut test = cargo();
        test.args(["test", "--quiet", "--package", package, "--test", binary, filter]);
        run(test.env(self.variable, count.to_string()))
    }
}
