//! Free names: those a program may use, and those of other environments that it does not have.

/// Whether the name is a global of the language or of the sandbox.
pub(crate) fn is_global(name: &str) -> bool {
    GLOBALS.binary_search(&name).is_ok()
}

/// Whether the name belongs to another environment: browsers, Node, Deno.
pub(crate) fn is_ambient(name: &str) -> bool {
    AMBIENT.binary_search(&name).is_ok()
}

/// Hint what to use instead of an ambient name.
pub(crate) fn replacement_hint(name: &str) -> Option<&'static str> {
    match name {
        "fetch" | "XMLHttpRequest" | "WebSocket" | "EventSource" => Some(
            "programs reach the network only through tools: find one with pml_discover and call it through `mcp`",
        ),
        "require" | "module" | "exports" | "__dirname" | "__filename" => {
            Some("there are no modules; tools are in `mcp`, arguments in `args`")
        }
        "process" | "Deno" | "Bun" => {
            Some("there is no process or environment; pass what is needed as an argument")
        }
        "eval" | "Function" => Some("write the code out; text cannot be run"),
        "performance" => Some("`Date.now()` gives the time of the last result"),
        "localStorage" | "sessionStorage" | "indexedDB" => Some("return what must be kept"),
        "alert" | "prompt" | "confirm" => {
            Some("`pml.progress(done, total, message)` tells the user how far it is")
        }
        _ => None,
    }
}

/// The global name most similar to `name`.
pub(crate) fn nearest_global(name: &str) -> Option<&'static str> {
    GLOBALS.iter().find(|global| global.eq_ignore_ascii_case(name)).copied()
}

const GLOBALS: &[&str] = &[
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DataView",
    "Date",
    "Error",
    "EvalError",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakSet",
    "args",
    "capabilities",
    "clearInterval",
    "clearTimeout",
    "console",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "globalThis",
    "isFinite",
    "isNaN",
    "mcp",
    "parseFloat",
    "parseInt",
    "pml",
    "queueMicrotask",
    "setInterval",
    "setTimeout",
    "structuredClone",
    "undefined",
    "unescape",
];

const AMBIENT: &[&str] = &[
    "AbortController",
    "Atomics",
    "Blob",
    "Buffer",
    "Bun",
    "Deno",
    "EventSource",
    "File",
    "FinalizationRegistry",
    "FormData",
    "Function",
    "Headers",
    "Intl",
    "Request",
    "Response",
    "SharedArrayBuffer",
    "TextDecoder",
    "TextEncoder",
    "URL",
    "URLSearchParams",
    "WeakRef",
    "WebAssembly",
    "WebSocket",
    "Worker",
    "XMLHttpRequest",
    "__dirname",
    "__filename",
    "alert",
    "atob",
    "btoa",
    "confirm",
    "crypto",
    "document",
    "eval",
    "exports",
    "fetch",
    "global",
    "importScripts",
    "indexedDB",
    "localStorage",
    "location",
    "module",
    "navigator",
    "performance",
    "postMessage",
    "process",
    "prompt",
    "require",
    "self",
    "sessionStorage",
    "setImmediate",
    "window",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_sorted_and_apart() {
        assert!(GLOBALS.is_sorted() && AMBIENT.is_sorted());
        assert!(!GLOBALS.iter().any(|name| is_ambient(name)));
    }
}
