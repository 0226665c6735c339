// Runs `program`, an async function of (args, log, mcp, P), and tells what it did.
(program) => {
  const host = HOST;
  const lines = [];
  const show = (value, depth = 0) => {
    if (depth > 4) return "...";
    if (typeof value === "function") return `function ${value.name}/${value.length}`;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    if (typeof value === "bigint" || typeof value === "symbol") return String(value);
    if (Object.is(value, -0)) return "-0";
    if (Array.isArray(value)) return `[${Array.from(value, (item) => show(item, depth + 1)).join(", ")}]`;
    if (value !== null && typeof value === "object") {
      return `{${Object.keys(value).map((key) => `${key}: ${show(value[key], depth + 1)}`).join(", ")}}`;
    }
    return typeof value === "string" ? JSON.stringify(value) : String(value);
  };
  const log = (...values) => { lines.push(values.map((value) => show(value)).join(" ")); return values[0]; };
  const tool = (name) => async (...given) => {
    const site = host.site();
    if (site !== null) host.reports.push(`call ${name} ${site}`);
    log(name, ...given);
    if (given[0]?.fail) throw new Error(`${name} failed`);
    return { ok: true, given: given.length, items: [1, 2, 3] };
  };
  const mcp = { fs: { read: tool("read"), write: tool("write") }, gone: undefined };
  globalThis.outcome = undefined;
  const end = (how) => (value) => {
    globalThis.outcome = [...lines, `${how} ${show(value)}`].join("\n") + "\0" + host.reports.join("\n");
  };
  program({ n: 3, list: [1, 2, 3], text: "abc", nothing: null }, log, mcp, host.P).then(end("returned"), end("threw"));
}
