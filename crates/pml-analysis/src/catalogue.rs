//! The tools and capabilities a program may name.

use std::sync::{Arc, OnceLock};

use pml_model::ToolId;
use rustc_hash::FxHashMap;
use serde_json::Value;
use serde_json::value::RawValue;

/// All tools and capabilities, by the names programs use.
#[derive(Debug, Default)]
pub struct Catalogue {
    tools: Arc<ToolTable>,
    capabilities: FxHashMap<String, Capability>,
    /// Names of capabilities that exist but were not asked for; used for suggestions only.
    others: Vec<String>,
    /// Servers whose tools are not known yet.
    unready: FxHashMap<String, Unready>,
}

/// Why the tools of a configured server are not known.
#[derive(Debug, Clone)]
pub struct Unready {
    /// The server is starting; the tools will be known in a moment.
    pub starting: bool,
    /// Why, as a sentence about the server.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The tools of all servers. The same for every principal, so catalogues share it.
#[derive(Debug, Default, Clone)]
struct ToolTable {
    servers: FxHashMap<String, FxHashMap<String, usize>>,
    tools: Vec<Tool>,
    withheld: FxHashMap<(String, String), Withheld>,
    off: FxHashMap<String, Withheld>,
}

/// A tool that a server offers but programs may not use.
#[derive(Debug, Clone)]
pub struct Withheld {
    /// Why, as a sentence about it.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// One tool.
#[derive(Debug, Clone)]
pub struct Tool {
    /// `server:tool`.
    pub id: ToolId,
    /// Its name in programs.
    pub identifier: String,
    /// It changes nothing, according to whoever made the catalogue.
    pub read_only: bool,
    input: LazySchema,
    output: Option<LazySchema>,
}

/// One capability.
#[derive(Debug)]
pub struct Capability {
    /// Its name: `name`, or `namespace:action`.
    pub name: String,
    input: LazySchema,
}

/// A JSON Schema that is parsed when it is first read.
#[derive(Debug, Clone)]
struct LazySchema {
    raw: Box<RawValue>,
    parsed: OnceLock<Value>,
}

impl LazySchema {
    fn new(raw: Box<RawValue>) -> LazySchema {
        LazySchema { raw, parsed: OnceLock::new() }
    }

    fn get(&self) -> &Value {
        // Raw values are valid JSON by construction; one nested too deeply for the parser says nothing.
        self.parsed.get_or_init(|| serde_json::from_str(self.raw.get()).unwrap_or(Value::Bool(true)))
    }
}

impl Tool {
    /// A tool as its server defines it.
    pub fn new(
        id: ToolId,
        identifier: String,
        input: Box<RawValue>,
        output: Option<Box<RawValue>>,
        read_only: bool,
    ) -> Tool {
        Tool { id, identifier, read_only, input: LazySchema::new(input), output: output.map(LazySchema::new) }
    }

    /// JSON Schema of its arguments.
    pub fn input(&self) -> &Value {
        self.input.get()
    }

    /// JSON Schema of its result, where declared.
    pub fn output(&self) -> Option<&Value> {
        self.output.as_ref().map(LazySchema::get)
    }
}

impl Capability {
    /// A capability with the JSON Schema of its arguments.
    pub fn new(name: String, input: Box<RawValue>) -> Capability {
        Capability { name, input: LazySchema::new(input) }
    }

    /// JSON Schema of its arguments.
    pub fn input(&self) -> &Value {
        self.input.get()
    }
}

impl Catalogue {
    /// Adds a tool; programs may name it by identifier or by its own name.
    pub fn add(&mut self, tool: Tool) {
        let table = Arc::make_mut(&mut self.tools);
        let index = table.tools.len();
        let names = table.servers.entry(tool.id.server.as_str().to_owned()).or_default();
        names.insert(tool.id.tool.clone(), index);
        names.insert(tool.identifier.clone(), index);
        table.tools.push(tool);
    }

    /// The same tools with these capabilities. `others` are names of capabilities that nobody asked for: they are what
    /// somebody may have meant.
    #[must_use]
    pub fn with_capabilities(
        &self,
        capabilities: impl IntoIterator<Item = Capability>,
        others: Vec<String>,
    ) -> Catalogue {
        let by_name = capabilities.into_iter().map(|capability| (capability.name.clone(), capability));
        let (tools, unready) = (Arc::clone(&self.tools), self.unready.clone());
        Catalogue { tools, capabilities: by_name.collect(), others, unready }
    }

    /// The same tools and no capabilities, with the servers whose tools are not known.
    #[must_use]
    pub fn with_unready(&self, servers: impl IntoIterator<Item = (String, Unready)>) -> Catalogue {
        Catalogue {
            tools: Arc::clone(&self.tools),
            unready: servers.into_iter().collect(),
            ..Catalogue::default()
        }
    }

    /// Why the tools of a server are not known, where it is configured and they are not.
    pub fn unready(&self, server: &str) -> Option<&Unready> {
        self.unready.get(server)
    }

    /// Notes that a tool, which programs may name by any of `names`, is there and may not be used.
    pub fn withhold(&mut self, server: &str, names: &[&str], withheld: &Withheld) {
        let table = Arc::make_mut(&mut self.tools);
        for name in names {
            table.withheld.insert((server.to_owned(), (*name).to_owned()), withheld.clone());
        }
    }

    /// Notes that a server is off, so that none of its tools may be used.
    pub fn withhold_server(&mut self, server: &str, withheld: Withheld) {
        Arc::make_mut(&mut self.tools).off.insert(server.to_owned(), withheld);
    }

    /// Why the tool that `mcp.server.name` would call may not be used.
    pub fn withheld(&self, server: &str, name: &str) -> Option<&Withheld> {
        let tool = self.tools.withheld.get(&(server.to_owned(), name.to_owned()));
        tool.or_else(|| self.tools.off.get(server))
    }

    /// Adds a capability.
    pub fn add_capability(&mut self, capability: Capability) {
        self.capabilities.insert(capability.name.clone(), capability);
    }

    /// The tool that `mcp.server.name` calls.
    pub fn tool(&self, server: &str, name: &str) -> Option<&Tool> {
        Some(&self.tools.tools[*self.tools.servers.get(server)?.get(name)?])
    }

    /// The capability called `name`.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.get(name)
    }

    /// The names of all capabilities.
    pub fn capability_names(&self) -> impl Iterator<Item = &str> {
        self.capabilities.keys().chain(&self.others).map(String::as_str)
    }

    /// Whether a server of that name is connected.
    pub fn has_server(&self, server: &str) -> bool {
        self.tools.servers.contains_key(server)
    }

    /// All tools, in the order they were added.
    pub fn tools(&self) -> &[Tool] {
        &self.tools.tools
    }
}
