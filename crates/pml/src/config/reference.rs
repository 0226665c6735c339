//! Describes every setting of a `pml.toml`: its type, its default and what it does.
//!
//! The parser takes its lists of accepted keys from here and `docs/configuration.md` is generated from here, so a key
//! that is not documented is not accepted. This module reads no file.

use std::fmt::Write as _;

/// One table of a `pml.toml`.
#[derive(Debug)]
pub struct ReferenceTable {
    /// Its path as headers write it; capital letters stand for a name that the user chooses.
    pub path: &'static str,
    /// What it is for, in Markdown.
    pub about: &'static str,
    /// Its keys, in the order in which they are shown.
    pub settings: &'static [ReferenceSetting],
}

/// One key of a table.
#[derive(Debug)]
pub struct ReferenceSetting {
    /// Key in the configuration file.
    pub key: &'static str,
    /// Other spellings of the same key.
    pub aliases: &'static [&'static str],
    /// The values that it takes, in Markdown.
    pub kind: &'static str,
    /// The default as TOML; empty where there is none.
    pub default: &'static str,
    /// What it does, in Markdown.
    pub meaning: &'static str,
}

const fn setting(
    key: &'static str,
    kind: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> ReferenceSetting {
    ReferenceSetting { key, aliases: &[], kind, default, meaning }
}

const fn spelled(
    key: &'static str,
    also: &'static [&'static str],
    kind: &'static str,
    meaning: &'static str,
) -> ReferenceSetting {
    ReferenceSetting { key, aliases: also, kind, default: "", meaning }
}

const DURATION: &str = "duration";
const TEXT: &str = "text";
const TEXTS: &str = "list of texts";
const TEXT_MAP: &str = "table of texts";
const FLAG: &str = "`true`, `false`";

const ENABLED: ReferenceSetting = setting("enabled", FLAG, "true", "`false` switches the server off.");

/// Every table, in the order in which they are shown.
pub const TABLES: &[ReferenceTable] = &[
    ReferenceTable {
        path: "",
        about: "These keys stand before the first table.",
        settings: &[
            setting(
                "expose",
                "`\"meta\"`, `\"full\"`, list of tools and capabilities",
                "\"meta\"",
                "The tools that clients are shown. `\"meta\"` shows PML's own tools, `\"full\"` adds every tool of every \
                 server, a list such as `[\"fs:read\", \"git:*\", \"wordCount\"]` adds these tools and learned \
                 capabilities; `\"capabilities:*\"` stands for all that have worked.",
            ),
            setting(
                "names",
                "`\"qualified\"`, `\"plain\"`",
                "\"qualified\"",
                "The names of tools in `\"full\"`. `\"qualified\"` is `server__tool`; `\"plain\"` is the tool's own name \
                 where no other tool has it.",
            ),
            setting(
                "client_wait",
                DURATION,
                "\"45s\"",
                "How long a client waits for a reply. A call or a run that takes longer goes on, and the client is told its \
                 `workflowId`. Most clients give up after 60 s, also those that ask for progress.",
            ),
            setting(
                "import",
                TEXTS,
                "[]",
                "Configuration files of other programs. PML uses the servers under `mcpServers` or `servers`.",
            ),
        ],
    },
    ReferenceTable {
        path: "servers.NAME",
        about: "A downstream MCP server. It has either `command` (PML starts it) or `url` (PML connects to it). `${VAR}` \
                and `${file:path}` expand in `command`, `args`, `env`, `cwd`, `url`, `headers`, `bearer` and `client_secret`.",
        settings: &[
            setting(
                "command",
                TEXT,
                "",
                "The program to start. PML starts it directly, never through a shell.",
            ),
            setting("args", TEXTS, "[]", "The arguments of `command`."),
            setting(
                "env",
                TEXT_MAP,
                "{}",
                "Environment variables of the process. It gets these and a small base (`PATH`, `HOME`, …), nothing else.",
            ),
            setting("cwd", TEXT, "", "The working directory of the process; PML's own where absent."),
            setting("url", TEXT, "", "The address of a streamable HTTP server."),
            setting("headers", TEXT_MAP, "", "HTTP headers of every request."),
            setting("bearer", TEXT, "", "A bearer token: short for an `Authorization` header."),
            setting(
                "client_id",
                TEXT,
                "",
                "The client that was registered for PML at the authorization server of `url`; without it PML registers \
                 itself. `pml login` uses this key and the five below.",
            ),
            setting(
                "client_secret",
                TEXT,
                "",
                "Its secret, such as `${file:…}`. It needs `client_id` and `issuer`.",
            ),
            setting(
                "client_metadata",
                TEXT,
                "",
                "The URL of a client metadata document, for authorization servers that take one instead of a registration.",
            ),
            setting("scopes", TEXTS, "[]", "The scopes to ask for, instead of those that the server names."),
            setting("issuer", TEXT, "", "The only authorization server that PML uses, at any address."),
            setting(
                "redirect_port",
                "1 – 65535",
                "",
                "The port of this machine that the browser returns to; a free one where absent.",
            ),
            ENABLED,
            setting(
                "start",
                "`\"lazy\"`, `\"eager\"`",
                "\"lazy\"",
                "`\"lazy\"` starts the server when it is first needed, `\"eager\"` with PML.",
            ),
            setting(
                "idle_stop",
                DURATION,
                "",
                "PML stops the server when it was not called for this long; never where absent.",
            ),
            setting(
                "call_timeout",
                DURATION,
                "\"60s\"",
                "The longest time one call may take. A server that reports progress has this long until its next report.",
            ),
            setting(
                "longest_call",
                DURATION,
                "\"1h\"",
                "The longest time one call may take, whatever progress its server reports.",
            ),
            setting(
                "start_timeout",
                DURATION,
                "\"30s\"",
                "The longest time the server may take to be ready.",
            ),
            setting("description", TEXT, "", "What the server is for, shown to agents."),
            setting(
                "trust",
                "`\"annotations\"`",
                "",
                "PML believes the MCP annotations of this server's tools (`readOnlyHint`, …). Without it annotations can \
                 only make a policy stricter.",
            ),
            setting(
                "definitions",
                "`\"pinned\"`, `\"follow\"`",
                "\"pinned\"",
                "`\"pinned\"` quarantines tools that appear or change until `pml accept`; `\"follow\"` uses them at once.",
            ),
            setting(
                "routing",
                "`\"server\"`, `\"client\"`",
                "\"server\"",
                "`\"client\"`: the tools are on the machines of clients, which [run programs with them themselves](remote.md).",
            ),
        ],
    },
    ReferenceTable {
        path: "builtin.fs",
        about: "The built-in file tools.",
        settings: &[
            ENABLED,
            setting(
                "root",
                TEXT,
                "",
                "The directory that `fs` works below; PML's working directory where absent. A home directory or `/` is \
                 used only when it is named here.",
            ),
        ],
    },
    ReferenceTable {
        path: "builtin.http",
        about: "The built-in HTTP tools. They are off until `hosts` names a host.",
        settings: &[
            ENABLED,
            setting(
                "hosts",
                TEXTS,
                "[]",
                "The hosts that `http` may reach: a name, `*.example.org`, `*` for every public host, or an origin such \
                 as `http://127.0.0.1:8080`.",
            ),
        ],
    },
    ReferenceTable {
        path: "builtin.NAME",
        about: "The other built-in servers: `json`, `text`, `csv`, `time` and `math`.",
        settings: &[ENABLED],
    },
    ReferenceTable {
        path: "serve",
        about: "Settings of `pml serve`.",
        settings: &[
            setting("listen", TEXT, "\"127.0.0.1:7717\"", "The IP address and port."),
            setting("hosts", TEXTS, "[]", "Further names allowed in the `Host` header."),
            setting("origins", TEXTS, "[]", "Web origins that may call it from a browser."),
        ],
    },
    ReferenceTable {
        path: "clients.NAME",
        about: "Settings for one client, by the name of its key, else by the name it gives itself. A client can give \
                itself any name, so this is a convenience and no protection.",
        settings: &[
            setting("expose", "as above", "", "The tools that this client is shown."),
            setting(
                "client_wait",
                DURATION,
                "",
                "How long this client waits for a reply, for clients whose limit is longer, or moves with progress.",
            ),
            setting(
                "interactive",
                FLAG,
                "",
                "Has no effect any more; PML warns about it. Use `pml keys create --client NAME --interactive`.",
            ),
        ],
    },
    ReferenceTable {
        path: "permissions",
        about: "The policy. Beside `dynamic` every key is a rule; see the next table.",
        settings: &[setting(
            "dynamic",
            "`\"ask\"`, `\"refuse\"`",
            "\"ask\"",
            "Whether an opaque program runs. `\"ask\"` runs it and checks each call when it is made.",
        )],
    },
    ReferenceTable {
        path: "permissions.PATTERN",
        about: "A rule. `PATTERN` is a server (`github`), a tool (`\"github:search\"`) or a pattern with `*` \
                (`\"github:get_*\"`). What a rule leaves out comes from the next wider rule, then from annotations that are \
                believed. [Approvals and policy](approvals.md) tells how rules combine.",
        settings: &[
            spelled(
                "scope",
                &[],
                "`\"minimal\"`, `\"readonly\"`, `\"filesystem\"`, `\"network-api\"`, `\"mcp-standard\"`",
                "The kind of access, shown to people.",
            ),
            spelled(
                "approval_mode",
                &["approvalMode"],
                "`\"auto\"`, `\"hil\"`",
                "`\"auto\"` calls without approval, `\"hil\"` (human in the loop) asks a person.",
            ),
            setting("deny", FLAG, "false", "The tools are never called, whatever other rules say."),
            spelled("read_only", &["readOnly"], FLAG, "The tools change nothing."),
            spelled(
                "idempotent",
                &[],
                FLAG,
                "Repeating a call with the same arguments changes nothing more.",
            ),
            spelled(
                "open_world",
                &["openWorld"],
                FLAG,
                "The tools reach an open set of things, such as the web.",
            ),
            spelled("isolated", &[], FLAG, "No other server sees what the tools change."),
            spelled("closed", &[], FLAG, "Results depend on the arguments alone, so PML may cache them."),
            spelled(
                "cache_ttl",
                &["cacheTtl"],
                "duration, at most 24 h",
                "PML may answer from its cache for this long.",
            ),
            spelled(
                "speculate",
                &[],
                FLAG,
                "`false` keeps PML from calling the tools before a program does.",
            ),
            spelled(
                "routing",
                &[],
                "`\"server\"`, `\"client\"`",
                "Where the calls are made, whatever `routing` of the server is; see [remote](remote.md).",
            ),
        ],
    },
    ReferenceTable {
        path: "prices",
        about: "What calls cost. [Dry runs](dry-run.md) add it up; prices decide nothing.",
        settings: &[setting(
            "PATTERN",
            "text such as `\"0.002 USD\"`",
            "",
            "The price of one call, with the code of its currency. `PATTERN` is a server, a tool or a pattern with `*`, as \
             in a rule; the most specific one counts.",
        )],
    },
    ReferenceTable {
        path: "approvals",
        about: "Who approves, and how long a question waits.",
        settings: &[
            setting(
                "by",
                "`\"human\"`, `\"client\"`",
                "",
                "Whose answers count. `\"human\"` accepts only a person who knows the passphrase or sits in front of a \
                 client with an interactive key. `\"client\"` also accepts what a client answers. Where absent, `pml \
                 serve` is `\"human\"` and `pml stdio` is `\"client\"`.",
            ),
            setting(
                "expire",
                "duration, 1 s to 720 h",
                "\"24h\"",
                "How long a question waits for its answer.",
            ),
            setting(
                "open",
                "number, 1 to 10000",
                "32",
                "How many questions of one client may wait at a time.",
            ),
        ],
    },
    ReferenceTable {
        path: "memory",
        about: "Learning and caching.",
        settings: &[
            setting("learn", FLAG, "true", "Successful runs become capabilities."),
            setting("cache", FLAG, "true", "PML answers from its cache where the result is still valid."),
            setting(
                "earlier_results",
                FLAG,
                "false",
                "Where nothing runs, PML shows the result of a nearly equal intent of the last hour.",
            ),
            setting(
                "golden_runs",
                FLAG,
                "true",
                "The sealed records of the first three runs of a capability are kept as long as it is there: tests and \
                 repairs replay them.",
            ),
            setting(
                "keep_traces",
                "duration, 1 h to 87600 h",
                "",
                "How long the details of traces are kept: arguments, results and paths. What was learned from them stays. \
                 Without this setting they are kept for good.",
            ),
            setting(
                "confidence",
                "number, 85 to 100",
                "85",
                "The confidence, in per cent, above which a capability runs without being named.",
            ),
        ],
    },
    ReferenceTable {
        path: "speculation",
        about: "Reads that PML makes before programs ask for them. A budget of 0 switches speculation off. \
                [Programs](programs.md) tells when PML reads ahead.",
        settings: &[
            setting("enabled", FLAG, "true", "PML reads ahead of programs."),
            setting(
                "preset",
                "`\"eager\"`, `\"balanced\"`, `\"cautious\"`",
                "\"balanced\"",
                "How sure PML must be that a program asks for a read: 55, 70 or 85 per cent. What came of a tool's \
                 earlier reads moves it.",
            ),
            setting(
                "concurrent",
                "number, at most 128",
                "16",
                "Reads of one run that are under way or not asked for yet.",
            ),
            setting("per_run", "number, at most 100000", "500", "Reads ahead of one run in all."),
            setting(
                "per_server",
                "number, at most 1024",
                "32",
                "Reads ahead under way at one server, of all runs and predictions.",
            ),
            setting(
                "per_minute",
                "number, at most 1000000",
                "6000",
                "Reads ahead of all runs and predictions within a minute.",
            ),
            setting(
                "branches",
                "number, at most 1000",
                "8",
                "Reads of one run in branches that are not decided yet.",
            ),
            setting("ttl", "duration, 1 s to 1 h", "\"5m\"", "How long a result may wait for its program."),
            setting(
                "sample",
                "number, at most 100",
                "1",
                "The share of used results, in per cent, that PML reads again and compares.",
            ),
        ],
    },
    ReferenceTable {
        path: "embedding",
        about: "The embedding model. Give one of `model`, `directory` and `url`. `${VAR}` expands in `url` and `key`.",
        settings: &[
            setting(
                "model",
                "`\"built-in\"`, `\"none\"`",
                "\"built-in\"",
                "`\"none\"` ranks tools by their words alone.",
            ),
            setting("directory", TEXT, "", "A model of the BERT or XLM-R family as safetensors."),
            setting(
                "url",
                TEXT,
                "",
                "A service with OpenAI's `/embeddings` interface. PML sends texts to it.",
            ),
            setting("name", TEXT, "", "The name of the model at that service; required with `url`."),
            setting("key", TEXT, "", "The bearer token of that service."),
        ],
    },
    ReferenceTable {
        path: "store",
        about: "The database, see [operations](operations.md#a-shared-database). Without `url` it is a file in the data directory, which is right for one machine. Changes take effect when PML starts again.",
        settings: &[setting(
            "url",
            TEXT,
            "",
            "The address of a PostgreSQL database that several gateways share, such as `\"postgres://pml@db.example/pml\"`. `${VAR}` expands, so that the password can stay out of the file. All gateways need the same `seal.key`.",
        )],
    },
    ReferenceTable {
        path: "telemetry",
        about: "Spans for an OpenTelemetry collector, see [operations](operations.md#traces). Off unless `otlp_endpoint` is set. `${VAR}` expands in both. Changes take effect when PML starts again.",
        settings: &[
            setting(
                "otlp_endpoint",
                TEXT,
                "",
                "The address of a collector that takes OTLP over HTTP, such as `\"http://127.0.0.1:4318\"`. PML sends spans to `/v1/traces` there.",
            ),
            setting("headers", TEXT_MAP, "", "HTTP headers of every request, such as an API key."),
        ],
    },
    ReferenceTable {
        path: "limits",
        about: "Limits of one run. A limit that is exceeded ends that run and no other.",
        settings: &[
            setting("calls", "number, at most 100000", "1000", "Tool calls."),
            setting("concurrent", "number, at most 1024", "128", "Tool calls at the same time."),
            setting(
                "concurrent_per_server",
                "number, at most 1024",
                "32",
                "Tool calls to one server at the same time.",
            ),
            setting("heap", "size, 2 MiB to 256 MiB", "\"64MiB\"", "Memory of the program."),
            setting("stack", "size, 64 KiB to 4 MiB", "\"512KiB\"", "Stack of the program."),
            setting("cpu", "duration, at most 5 m", "\"5s\"", "CPU time of the program."),
            setting(
                "wall",
                "duration, at most 24 h",
                "\"5m\"",
                "Time from start to end. Waiting for approval and sleeping without a process do not count.",
            ),
            setting("source", "size, at most 256 KiB", "\"256KiB\"", "Source text."),
            setting("arguments", "size, at most 8 MiB", "\"256KiB\"", "Arguments of one call."),
            setting("result", "size, at most 8 MiB", "\"4MiB\"", "Result of one call, and of the program."),
            setting("console", "size, at most 8 MiB", "\"64KiB\"", "Console output."),
            setting(
                "nesting",
                "number, at most 128",
                "128",
                "Levels of a JSON value that enters or leaves the program.",
            ),
        ],
    },
    ReferenceTable {
        path: "runs",
        about: "How runs are kept.",
        settings: &[
            setting("resume", FLAG, "true", "Interrupted runs resume by themselves."),
            setting(
                "durable",
                "`\"full\"`, `\"normal\"`",
                "\"full\"",
                "What a record of a call that must not be repeated survives before the call is sent: `\"full\"` a power \
                 cut, `\"normal\"` the end of PML.",
            ),
            setting(
                "keep_results",
                "duration, 1 s to 720 h",
                "\"1h\"",
                "How long results and journals are kept, except those of golden runs (`golden_runs` in `[memory]`).",
            ),
            setting("workers", "number, 1 to 64", "2", "Sandbox processes that are kept ready."),
            setting(
                "park_after",
                "duration, 1 s to 24 h",
                "\"10s\"",
                "A run that waits longer than this for a timer gives its process back.",
            ),
        ],
    },
];

/// The keys that the table `path` takes, other spellings last.
pub(super) fn keys(path: &str) -> Vec<&'static str> {
    let settings = || TABLES.iter().filter(|table| table.path == path).flat_map(|table| table.settings);
    let also = settings().flat_map(|setting| setting.aliases.iter().copied());
    settings().map(|setting| setting.key).chain(also).collect()
}

/// The keys at the top of a file: plain ones, then tables.
pub(super) fn top_keys() -> Vec<&'static str> {
    let mut all = keys("");
    for table in TABLES.iter().filter(|table| !table.path.is_empty()) {
        let name = table.path.split('.').next().unwrap_or_default();
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// The reference as Markdown: a heading and a table for each [`ReferenceTable`].
pub fn markdown() -> String {
    let mut text = String::new();
    for table in TABLES {
        let heading =
            if table.path.is_empty() { "Top level".to_owned() } else { format!("`[{}]`", table.path) };
        write!(
            text,
            "\n### {heading}\n\n{}\n\n| key | values | default | what it does |\n|---|---|---|---|\n",
            table.about
        )
        .expect("a text takes all");
        for setting in table.settings {
            writeln!(text, "{}", row(setting)).expect("a text takes all");
        }
    }
    text
}

fn row(setting: &ReferenceSetting) -> String {
    let default =
        if setting.default.is_empty() { "—".to_owned() } else { format!("`{}`", setting.default) };
    format!("| `{}` | {} | {default} | {} |", setting.key, setting.kind, setting.meaning)
}
