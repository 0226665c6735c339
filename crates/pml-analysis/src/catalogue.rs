//! Catalogue of the tools and capabilities that a program may name.

use std::sync::{Arc, OnceLock};

use pml_model::ToolId;
use rustc_hash::FxHashMap;
use serde_json::Value;
use serde_json::value::RawValue;

/// Tools and capabilities, by the names programs use.
#[derive(Debug, Default)]
pub struct AnalysisCatalogue {
    tools: Arc<ToolTable>,
    capabilities: FxHashMap<String, AnalysisCapability>,
    /// Names of further existing capabilities; used for suggestions only.
    others: Vec<String>,
    /// Servers whose tools are not known yet.
    unready: FxHashMap<String, UnreadyServer>,
}

/// Reason why the tools of a configured server are not known.
#[derive(Debug, Clone)]
pub struct UnreadyServer {
    /// Whether the server is starting, so that its tools will be known soon.
    pub starting: bool,
    /// Reason, as a sentence about the server.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Tools of all servers. The same for every principal, so catalogues share it.
#[derive(Debug, Default, Clone)]
struct ToolTable {
    servers: FxHashMap<String, FxHashMap<String, usize>>,
    tools: Vec<AnalysisTool>,
    withheld: FxHashMap<(String, String), WithheldTool>,
    off: FxHashMap<String, WithheldTool>,
}

/// A tool that a server offers but programs may not use.
#[derive(Debug, Clone)]
pub struct WithheldTool {
    /// Reason, as a sentence about the tool.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

/// A tool.
#[derive(Debug, Clone)]
pub struct AnalysisTool {
    /// `server:tool`.
    pub id: ToolId,
    /// Identifier in programs (`get-sum` is `get_sum`).
    pub identifier: String,
    /// Whether it changes nothing, according to the creator of the catalogue.
    pub read_only: bool,
    input: LazySchema,
    output: Option<LazySchema>,
}

/// A capability.
#[derive(Debug)]
pub struct AnalysisCapability {
    /// `name`, or `namespace:action`.
    pub name: String,
    input: LazySchema,
}

/// A JSON Schema that is parsed on first use.
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
        // Raw values are valid JSON by construction; one nested too deeply for the parser becomes `true`, which allows
        // anything.
        self.parsed.get_or_init(|| serde_json::from_str(self.raw.get()).unwrap_or(Value::Bool(true)))
    }
}

impl AnalysisTool {
    /// A tool as its server defines it.
    pub fn new(
        id: ToolId,
        identifier: String,
        input: Box<RawValue>,
        output: Option<Box<RawValue>>,
        read_only: bool,
    ) -> AnalysisTool {
        AnalysisTool {
            id,
            identifier,
            read_only,
            input: LazySchema::new(input),
            output: output.map(LazySchema::new),
        }
    }

    /// JSON Schema of its arguments.
    pub fn input_schema(&self) -> &Value {
        self.input.get()
    }

    /// JSON Schema of its result; `None` when not declared.
    pub fn output_schema(&self) -> Option<&Value> {
        self.output.as_ref().map(LazySchema::get)
    }
}

impl AnalysisCapability {
    /// A capability with the JSON Schema of its arguments.
    pub fn new(name: String, input: Box<RawValue>) -> AnalysisCapability {
        AnalysisCapability { name, input: LazySchema::new(input) }
    }

    /// JSON Schema of its arguments.
    pub fn input_schema(&self) -> &Value {
        self.input.get()
    }
}

impl AnalysisCatalogue {
    /// Adds a tool; programs may name it by identifier or by its original name.
    pub fn add_tool(&mut self, tool: AnalysisTool) {
        let table = Arc::make_mut(&mut self.tools);
        let index = table.tools.len();
        let names = table.servers.entry(tool.id.server.as_str().to_owned()).or_default();
        names.insert(tool.id.tool.clone(), index);
        names.insert(tool.identifier.clone(), index);
        table.tools.push(tool);
    }

    /// The same tools with these capabilities. `others` are names of further capabilities, for suggestions.
    #[must_use]
    pub fn with_capabilities(
        &self,
        capabilities: impl IntoIterator<Item = AnalysisCapability>,
        others: Vec<String>,
    ) -> AnalysisCatalogue {
        let by_name = capabilities.into_iter().map(|capability| (capability.name.clone(), capability));
        let (tools, unready) = (Arc::clone(&self.tools), self.unready.clone());
        AnalysisCatalogue { tools, capabilities: by_name.collect(), others, unready }
    }

    /// The same tools without capabilities, with the servers whose tools are not known.
    #[must_use]
    pub fn with_unready(
        &self,
        servers: impl IntoIterator<Item = (String, UnreadyServer)>,
    ) -> AnalysisCatalogue {
        AnalysisCatalogue {
            tools: Arc::clone(&self.tools),
            unready: servers.into_iter().collect(),
            ..AnalysisCatalogue::default()
        }
    }

    /// Reason why the tools of a configured server are not known; `None` when they are.
    pub fn unready_server(&self, server: &str) -> Option<&UnreadyServer> {
        self.unready.get(server)
    }

    /// Records that a tool, which programs may name by any of `names`, exists and may not be used.
    pub fn withhold_tool(&mut self, server: &str, names: &[&str], withheld: &WithheldTool) {
        let table = Arc::make_mut(&mut self.tools);
        for name in names {
            table.withheld.insert((server.to_owned(), (*name).to_owned()), withheld.clone());
        }
    }

    /// Records that a server is off, so that none of its tools may be used.
    pub fn withhold_server(&mut self, server: &str, withheld: WithheldTool) {
        Arc::make_mut(&mut self.tools).off.insert(server.to_owned(), withheld);
    }

    /// Reason why the tool that `mcp.server.name` would call may not be used.
    pub fn withheld_tool(&self, server: &str, name: &str) -> Option<&WithheldTool> {
        let tool = self.tools.withheld.get(&(server.to_owned(), name.to_owned()));
        tool.or_else(|| self.tools.off.get(server))
    }

    /// Adds a capability.
    pub fn add_capability(&mut self, capability: AnalysisCapability) {
        self.capabilities.insert(capability.name.clone(), capability);
    }

    /// The tool that `mcp.server.name` calls.
    pub fn tool(&self, server: &str, name: &str) -> Option<&AnalysisTool> {
        Some(&self.tools.tools[*self.tools.servers.get(server)?.get(name)?])
    }

    /// The capability with the name `name`.
    pub fn capability(&self, name: &str) -> Option<&AnalysisCapability> {
        self.capabilities.get(name)
    }

    /// Names of all capabilities.
    pub fn capability_names(&self) -> impl Iterator<Item = &str> {
        self.capabilities.keys().chain(&self.others).map(String::as_str)
    }

    /// Whether a server of that name is connected.
    pub fn has_server(&self, server: &str) -> bool {
        self.tools.servers.contains_key(server)
    }

    /// All tools, in the order they were added.
    pub fn tools(&self) -> &[AnalysisTool] {
        &self.tools.tools
    }
}
