// The world a program runs in: tools that answer later, a console that remembers, and the other end of the probes.
// Everything is decided by what the program does, so that equal programs see equal worlds.
(function (entries) {
  "use strict";
  const log = [], calls = [], reports = [], waiting = [];
  let end = "never settled", next = null, pending = null, order = 0;

  function show(value, depth = 0) {
    if (typeof value === "string") return JSON.stringify(value);
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value === "symbol") return value.toString();
    if (typeof value === "function") return `[function ${String(value.name)} ${value.length}]`;
    if (value === null || typeof value !== "object") return Object.is(value, -0) ? "-0" : String(value);
    if (value instanceof Promise) return "[promise]";
    if (value instanceof RegExp) return String(value);
    if (value instanceof Error) {
      const inner = value instanceof AggregateError ? show(value.errors, depth + 1) : "";
      return `[${value.name}: ${value.message}]${"cause" in value ? `<${show(value.cause, depth + 1)}>` : ""}${inner}`;
    }
    if (depth > 5) return "…";
    if (Array.isArray(value)) {
      const items = [];
      for (let i = 0; i < value.length && i < 60; i++) items.push(i in value ? show(value[i], depth + 1) : "hole");
      return `[${items.join(",")}]`;
    }
    const made = Object.getPrototypeOf(value)?.constructor;
    const name = typeof made === "function" && made !== Object ? made.name + " " : "";
    const members = Reflect.ownKeys(value).map((key) => {
      const found = Object.getOwnPropertyDescriptor(value, key);
      return `${String(key)}:${"value" in found ? show(found.value, depth + 1) : "accessor"}`;
    });
    return `${name}{${members.join(",")}}`;
  }

  function hash(text) {
    let sum = 2166136261;
    for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619) >>> 0;
    return sum;
  }

  const record = (n) => ({
    id: n % 7,
    name: `r${n % 5}`,
    tags: n % 2 ? ["t1", "t2"] : [],
    next: n % 3 ? { id: (n + 1) % 7, name: `r${(n + 1) % 5}`, tags: ["t3"], next: null } : null,
    ...(n % 4 === 1 ? { score: n % 11 } : {}),
  });
  const answers = {
    "fs:read": record,
    "fs:list": (n) => Array.from({ length: 1 + (n % 3) }, (_, i) => record(n + i * 5)),
    "fs:write": (n) => ({ ok: n % 2 === 0 }),
    "math:add": (n, given) => (Number(given?.a ?? n) + Number(given?.b ?? 1)) % 97 || 0,
    "math:get-sum": (n) => n % 13,
    "my-server:get-items": (n) => [record(n), record(n + 3)],
    "net:flaky": (n) => {
      if (n % 3 === 0) throw n % 2 ? new Error(`flaky ${n % 10}`) : new TypeError(`refused ${n % 10}`);
      return `s${n % 6}`;
    },
    "db:query": (n) => (n % 5 ? [record(n), record(n + 1), record(n + 2)] : []),
    "db:insert": record,
    "capability:summarise": (n) => `sum${n % 4}`,
  };

  function tool(name) {
    // A method definition: no prototype, not a constructor, no name of its own to see but this one.
    const call = (...given) => {
      const at = next;
      next = null;
      const text = JSON.stringify(given[0]) ?? "undefined";
      const number = hash(`${name} ${text} ${calls.length % 4}`);
      calls.push({ tool: name, arguments: text, given: given.length, at });
      return new Promise((resolve, reject) => {
        const settle = () => {
          try {
            resolve(answers[name](number, given[0]));
          } catch (error) {
            reject(error);
          }
        };
        const way = (number >>> 8) % 6;
        if (way === 0) settle();
        else if (way < 4) {
          let after = Promise.resolve();
          for (let i = 1; i < way; i++) after = after.then(() => {});
          after.then(settle);
        } else waiting.push({ due: 1 + ((number >>> 12) % 5), order: order++, settle });
      });
    };
    return Object.freeze(call);
  }

  const bare = (members) => Object.freeze(Object.assign(Object.create(null), members));
  const servers = {};
  for (const id of Object.keys(answers)) {
    const [server, name] = id.split(":");
    if (server === "capability") continue;
    servers[server] ??= {};
    const made = tool(id);
    servers[server][name] = made;
    servers[server][name.replaceAll("-", "_")] = made;
  }
  for (const server of Object.keys(servers)) servers[server] = bare(servers[server]);

  const print = (...values) => void log.push(values.map((value) => show(value)).join(" "));
  Object.assign(globalThis, {
    args: { dir: "d1", n: 3, flag: true, text: "abc", none: null, items: [record(1), record(2), record(5)], deep: { a: { b: 4 } } },
    mcp: bare(servers),
    capabilities: bare({ summarise: tool("capability:summarise") }),
    console: bare({ log: print, info: print, warn: print, error: print }),
    pml: bare({ progress: (...values) => print("progress", ...values), hint: (value) => print("hint", value) }),
    setTimeout: (then, ms = 0, ...values) => {
      const mine = { due: Number(ms) || 0, order: order++, settle: () => then(...values) };
      waiting.push(mine);
      return mine.order;
    },
    clearTimeout: (id) => {
      const at = waiting.findIndex((one) => one.order === id);
      if (at >= 0) waiting.splice(at, 1);
    },
  });

  const report = (kind, point, context, value) => void reports.push({ kind, point, context, value });
  // A `?.` found nothing, and the next probe is that of a link further out in the same chain.
  let ended = false;
  const tested = (point, value, context, more) => {
    const there = value !== null && value !== undefined;
    if (point !== null) report("has", point, context, there);
    ended = more && !there;
  };
  const probe = bare({
    at(point, context = 0) {
      const mine = (next = { point, context });
      // The call follows at once or, where there is nothing to call, never.
      Promise.resolve().then(() => {
        if (next === mine) next = null;
      });
      return [];
    },
    enter(point, context = 0) {
      pending = entries.filter((entry) => entry.point === point && entry.context === context);
      return [];
    },
    take(number, outer = 0) {
      const entry = pending?.find((one) => one.function === number);
      pending = null;
      return entry ? entry.enters : outer;
    },
    is(point, value, context = 0) {
      report("is", point, context, !!value);
      return value;
    },
    has(point, value, context = 0, more = false) {
      if (ended) ended = more;
      else tested(point, value, context, more);
      return value;
    },
    bound(point, object, key, context = 0, more = false) {
      if (ended) {
        ended = more;
        return undefined;
      }
      const value = object[key];
      tested(point, value, context, more);
      return typeof value === "function" ? (...given) => Reflect.apply(value, object, given) : value;
    },
    case(point, index, context = 0) {
      report("case", point, context, index);
      return false;
    },
    loop: (point, context = 0) => report("loop", point, context, null),
    turn: (point, context = 0) => report("turn", point, context, null),
    caught: (point, context = 0) => report("caught", point, context, null),
    does: (_point, value) => value,
    may: () => null,
    got: (_place, value) => value,
    did(point, value, context = 0) {
      report("did", point, context, null);
      return value;
    },
    doing(point, context = 0) {
      report("did", point, context, null);
      return [];
    },
    fork(point, value, context = 0) {
      report("fork", point, context, null);
      return value;
    },
  });

  return {
    // `program` takes the probe object and gives the async function.
    start(program) {
      program(probe)().then(
        (value) => (end = `value ${show(value)}`),
        (error) => (end = `error ${show(error)}`),
      );
    },
    // One delivery; false when nothing waits.
    deliver() {
      if (waiting.length === 0) return false;
      waiting.sort((a, b) => a.due - b.due || a.order - b.order);
      waiting.shift().settle();
      return true;
    },
    report: () => JSON.stringify({ outcome: { end, log, calls: calls.map(({ at, ...call }) => call) }, at: calls.map((call) => call.at), reports }),
  };
})
