// What a program finds in its world besides ECMAScript, and what it does not find.
//
// Run once, before anything of the program, so whatever is taken from the engine here is the engine's own. The
// program may change every object it can reach, so nothing below looks anything up in them later: no iteration of
// arrays, no methods, no descriptors that inherit, and no template literals, which this engine puts together with
// whatever `String.prototype.concat` is.
(function (native) {
  "use strict";
  const { apply, construct, defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const { Object, Date: RealDate, String, Number, Map, Set, ArrayBuffer, DataView, RegExp } = globalThis;
  const { EvalError, Error, RangeError, TypeError } = globalThis;
  const { create, freeze, is } = Object;
  const stringify = JSON.stringify;
  const NOTHING = freeze([]);

  const method = (object, name) => object.prototype[name];
  const getter = (prototype, name) => getOwnPropertyDescriptor(prototype, name).get;
  const mapForEach = method(Map, "forEach"), mapSize = getter(Map.prototype, "size");
  const mapGet = method(Map, "get"), mapSet = method(Map, "set"), mapHas = method(Map, "has");
  const setForEach = method(Set, "forEach"), setAdd = method(Set, "add"), setSize = getter(Set.prototype, "size");
  const TypedArray = getPrototypeOf(Uint8Array);
  const typedLength = getter(TypedArray.prototype, "length"), typedBuffer = getter(TypedArray.prototype, "buffer");
  const typedOffset = getter(TypedArray.prototype, "byteOffset");
  const viewBuffer = getter(DataView.prototype, "buffer"), viewOffset = getter(DataView.prototype, "byteOffset");
  const viewLength = getter(DataView.prototype, "byteLength");
  const bufferSlice = method(ArrayBuffer, "slice"), bufferLength = getter(ArrayBuffer.prototype, "byteLength");
  const getTime = method(RealDate, "getTime"), toISOString = method(RealDate, "toISOString");
  const dateToString = method(RealDate, "toString");
  const regexpSource = getter(RegExp.prototype, "source"), regexpFlags = getter(RegExp.prototype, "flags");
  const slice = method(String, "slice"), indexOf = method(String, "indexOf"), charCodeAt = method(String, "charCodeAt");
  const symbolToString = method(Symbol, "toString");
  const weakGet = method(WeakMap, "get"), weakSet = method(WeakMap, "set");
  const unbox = {
    __proto__: null,
    Number: method(Number, "valueOf"),
    String: method(String, "valueOf"),
    Boolean: method(Boolean, "valueOf"),
    BigInt: method(BigInt, "valueOf"),
    Symbol: method(Symbol, "valueOf"),
  };
  const typed = { __proto__: null };
  const TYPED = "Int8Array Uint8Array Uint8ClampedArray Int16Array Uint16Array Int32Array Uint32Array BigInt64Array " +
    "BigUint64Array Float16Array Float32Array Float64Array";
  for (const name of TYPED.split(" ")) if (name in globalThis) typed[name] = globalThis[name];

  const hidden = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
  const shown = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  const fixed = (object, name, value) =>
    defineProperty(object, name, { __proto__: null, value, writable: false, enumerable: false, configurable: false });
  // The value of a property that is plain data, without asking anybody.
  const data = (object, name) => {
    const found = getOwnPropertyDescriptor(object, name);
    if (found === undefined) return undefined;
    const value = getOwnPropertyDescriptor(found, "value");
    return value === undefined ? undefined : value.value;
  };

  // ── What there is not ──

  for (const name of ["SharedArrayBuffer", "Atomics", "WeakRef", "FinalizationRegistry", "performance", "navigator",
    "DOMException", "gc", "print", "std", "os", "bjson", "scriptArgs"]) delete globalThis[name];
  for (const name of ["fileName", "lineNumber", "columnNumber"]) delete getPrototypeOf(() => {})[name];
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;

  // What the engine alone calls an InternalError, such as a string that is too long, others call a RangeError.
  const internal = InternalError.prototype;
  Object.setPrototypeOf(internal, RangeError.prototype);
  delete internal.name;
  delete internal.message;
  hidden(internal, "constructor", RangeError);
  delete globalThis.InternalError;

  const refuse = () => {
    throw new EvalError("text cannot be run as code here");
  };
  hidden(globalThis, "eval", { eval(text) { refuse(text); } }.eval);
  const blocked = (name, prototype, writable) => {
    const made = { [name]: function (text) { refuse(text); } }[name];
    defineProperty(made, "prototype", { __proto__: null, value: prototype, writable: false });
    defineProperty(prototype, "constructor", { __proto__: null, value: made, writable });
    return made;
  };
  hidden(globalThis, "Function", blocked("Function", getPrototypeOf(refuse), true));
  blocked("AsyncFunction", getPrototypeOf(async function () {}), false);
  blocked("GeneratorFunction", getPrototypeOf(function* () {}), false);
  blocked("AsyncGeneratorFunction", getPrototypeOf(async function* () {}), false);

  // ── Time and chance ──

  const now = native.now;
  const Date = { Date: function (...parts) {
    if (new.target === undefined) return apply(dateToString, new RealDate(now()), NOTHING);
    return construct(RealDate, parts.length === 0 ? [now()] : parts, new.target);
  } }.Date;
  defineProperty(Date, "length", { __proto__: null, value: 7 });
  defineProperty(Date, "prototype", { __proto__: null, value: RealDate.prototype, writable: false });
  hidden(Date, "now", now);
  hidden(Date, "parse", RealDate.parse);
  hidden(Date, "UTC", RealDate.UTC);
  hidden(RealDate.prototype, "constructor", Date);
  hidden(globalThis, "Date", Date);
  hidden(Math, "random", native.random);

  const { setTimeout, setInterval, clearTimeout, clearInterval } = native;
  shown(globalThis, "setTimeout", setTimeout);
  shown(globalThis, "setInterval", setInterval);
  shown(globalThis, "clearTimeout", clearTimeout);
  shown(globalThis, "clearInterval", clearInterval);

  const queue = queueMicrotask;
  shown(globalThis, "queueMicrotask", { queueMicrotask(then) {
    if (typeof then !== "function") throw new TypeError("queueMicrotask needs a function");
    queue(() => {
      try {
        apply(then, undefined, NOTHING);
      } catch (error) {
        native.uncaught(error);
      }
    });
  } }.queueMicrotask);

  // ── Errors that come from outside ──

  // What the host knows of an error, by its identity: a program can copy the words but not be taken for the host.
  const origins = new WeakMap();
  class ToolError extends Error {}
  hidden(ToolError.prototype, "name", "ToolError");
  class CapabilityError extends Error {}
  hidden(CapabilityError.prototype, "name", "CapabilityError");
  // Else a program could give them another parent, and be called whenever one is made.
  freeze(ToolError);
  freeze(CapabilityError);
  const outside = (error, code, call, hint, frame) => {
    shown(error, "code", code);
    if (hint !== undefined) shown(error, "hint", hint);
    apply(weakSet, origins, [error, freeze([code, call, frame])]);
    return error;
  };
  const toolError = (message, code, call, tool, hint, details, isThere) => {
    const error = outside(new ToolError(message), code, call, hint);
    if (isThere) shown(error, "data", details);
    shown(error, "tool", tool);
    return error;
  };
  const capabilityError = (message, code, call, frame, capability) => {
    const error = outside(new CapabilityError(message), code, call, undefined, frame);
    shown(error, "capability", capability);
    return error;
  };
  const typeError = (message, code) => outside(new TypeError(message), code, 0);
  const rangeError = (message, code) => outside(new RangeError(message), code, 0);
  const origin = (error) => apply(weakGet, origins, [error]);

  // ── Showing values ──

  const ITEMS = 100, DEPTH = 4, TEXT = 10000;
  const quoted = (text) => apply(stringify, undefined, [text]);
  const cut = (text, most) => (text.length > most ? apply(slice, text, [0, most]) + "…" : text);
  const isName = (text) => {
    for (let i = 0; i < text.length; i++) {
      const c = apply(charCodeAt, text, [i]);
      const letter = (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || c === 95 || c === 36;
      if (!letter && !(i > 0 && c >= 48 && c <= 57)) return false;
    }
    return text.length > 0;
  };
  let room = 0;

  // `above` is the chain of values this one is in, to see circles.
  const show = (value, depth, above) => {
    if (room <= 0) return "…";
    const text = shape(value, depth, above);
    room -= text.length;
    return text;
  };
  const shape = (value, depth, above) => {
    switch (typeof value) {
      case "string": return quoted(cut(value, TEXT));
      case "bigint": return cut(String(value), TEXT) + "n";
      case "symbol": return apply(symbolToString, value, NOTHING);
      case "number": return is(value, -0) ? "-0" : "" + value;
      case "object": break;
      case "function": return functionShape(value);
      default: return "" + value;
    }
    if (value === null) return "null";
    for (let at = above; at !== null; at = at.above) if (at.value === value) return "[Circular]";
    const inside = { __proto__: null, value, above };
    const kind = native.kind(value);
    switch (kind) {
      case "Array": return list(value, value.length, depth, inside, "");
      case "Map": return entries(value, apply(mapSize, value, NOTHING), mapForEach, "Map", depth, inside);
      case "Set": return entries(value, apply(setSize, value, NOTHING), setForEach, "Set", depth, inside);
      case "Date": {
        const time = apply(getTime, value, NOTHING);
        return time === time ? apply(toISOString, value, NOTHING) : "Invalid Date";
      }
      case "RegExp": return "/" + apply(regexpSource, value, NOTHING) + "/" + apply(regexpFlags, value, NOTHING);
      case "Error": return errorShape(value, depth, inside);
      case "Number": case "String": case "Boolean": case "BigInt": case "Symbol":
        return "[" + kind + ": " + shape(apply(unbox[kind], value, NOTHING), depth, inside) + "]";
      case "ArrayBuffer": return "ArrayBuffer { byteLength: " + apply(bufferLength, value, NOTHING) + " }";
      case "Proxy": return "[Proxy]";
      case "Object": case "Arguments": return members(value, depth, inside, named(value));
      default:
        if (kind in typed) return list(value, apply(typedLength, value, NOTHING), depth, inside, kind);
        return kind + " {}";
    }
  };
  const functionShape = (value) => {
    const name = native.kind(value) === "Proxy" ? undefined : data(value, "name");
    return typeof name === "string" && name !== "" ? ("[Function: " + cut(name, ITEMS) + "]") : "[Function (anonymous)]";
  };
  const named = (value) => {
    const prototype = getPrototypeOf(value);
    if (prototype === null) return "[Object: null prototype] ";
    if (native.kind(prototype) === "Proxy") return "";
    const maker = data(prototype, "constructor");
    const name = typeof maker === "function" && native.kind(maker) !== "Proxy" ? data(maker, "name") : undefined;
    return typeof name === "string" && name !== "" && name !== "Object" ? (cut(name, ITEMS) + " ") : "";
  };
  const list = (value, length, depth, inside, kind) => {
    const start = kind === "" ? "[" : (kind + "(" + length + ") [");
    if (length === 0) return start + "]";
    if (depth >= DEPTH) return kind === "" ? "[Array]" : "[" + kind + "]";
    let text = start, i = 0;
    for (; i < length && i < ITEMS && room > 0; i++) {
      const found = getOwnPropertyDescriptor(value, i);
      text += i === 0 ? " " : ", ";
      text += found === undefined ? "<empty>" : member(found, depth, inside);
    }
    return i < length ? (text + ", … " + (length - i) + " more ]") : text + " ]";
  };
  const entries = (value, size, forEach, kind, depth, inside) => {
    if (size === 0) return kind + "(0) {}";
    if (depth >= DEPTH) return "[" + kind + "]";
    let text = (kind + "(" + size + ") {"), i = 0;
    apply(forEach, value, [(item, key) => {
      if (i++ >= ITEMS || room <= 0) return;
      text += i === 1 ? " " : ", ";
      if (kind === "Map") text += show(key, depth + 1, inside) + " => ";
      text += show(item, depth + 1, inside);
    }]);
    return i > ITEMS ? (text + ", … " + (i - ITEMS) + " more }") : text + " }";
  };
  const errorShape = (value, depth, inside) => {
    const name = value.name, message = value.message;
    let text = typeof name === "string" ? cut(name, ITEMS) : "Error";
    if (typeof message === "string" && message !== "") text += ": " + cut(message, TEXT);
    const cause = getOwnPropertyDescriptor(value, "cause");
    return cause === undefined || depth >= DEPTH ? "[" + text + "]" : ("[" + text + "] { cause: " + member(cause, depth, inside) + " }");
  };
  const members = (value, depth, inside, name) => {
    const keys = ownKeys(value), length = keys.length;
    if (length > 0 && depth >= DEPTH) return "[" + (name === "" ? "Object" : apply(slice, name, [0, -1])) + "]";
    let text = (name + "{"), i = 0, told = 0;
    for (; i < length && told < ITEMS && room > 0; i++) {
      const key = keys[i], found = getOwnPropertyDescriptor(value, key);
      if (found === undefined || found.enumerable !== true) continue;
      const word = typeof key === "symbol" ? "[" + apply(symbolToString, key, NOTHING) + "]" : isName(key) ? key : quoted(cut(key, TEXT));
      room -= word.length;
      text += ((told++ === 0 ? " " : ", ") + word + ": " + member(found, depth, inside));
    }
    if (i < length) return text + ", … " + (length - i) + " more }";
    return told === 0 ? (text + "}") : text + " }";
  };
  const member = (found, depth, inside) =>
    getOwnPropertyDescriptor(found, "value") === undefined ? "[Getter]" : show(found.value, depth + 1, inside);

  const inspect = (value, most) => {
    room = most;
    try {
      return cut(show(value, 0, null), most);
    } catch {
      return "[cannot be shown]";
    }
  };

  // `%s` and its like, then everything else, with spaces between.
  const line = (values, most) => {
    let text = "", next = 0;
    const plain = (value) => (typeof value === "string" ? cut(value, most) : inspect(value, most));
    if (typeof values[0] === "string" && values.length > 1 && apply(indexOf, values[0], ["%"]) >= 0) {
      const format = cut(values[0], most);
      next = 1;
      for (let i = 0; i < format.length; i++) {
        const letter = format[i], how = format[i + 1];
        if (letter !== "%" || how === undefined) text += letter;
        else if (how === "%") { text += "%"; i++; }
        else if (next < values.length && apply(indexOf, "sdifjoOc", [how]) >= 0) {
          const value = values[next++];
          if (how === "s") text += plain(value);
          else if (how === "d" || how === "i" || how === "f") text += typeof value === "object" ? "NaN" : numberText(value, how);
          else if (how !== "c") text += inspect(value, most);
          i++;
        } else text += letter;
        if (text.length > most) return text;
      }
    }
    for (; next < values.length && text.length <= most; next++) text += (next > 0 ? " " : "") + plain(values[next]);
    return text;
  };
  const numberText = (value, how) => {
    if (typeof value === "symbol") return "NaN";
    const number = Number(value);
    return how === "i" ? ("" + (number < 0 ? -floor(-number) : floor(number))) : "" + number;
  };
  const floor = Math.floor;

  // ── The console ──

  const counts = new Map(), starts = new Map();
  let indent = "";
  const say = (level, values) => {
    const most = native.consoleRoom();
    if (most < 0) return;
    native.console(level, indent + line(values, most));
  };
  const label = (given) => (given === undefined ? "default" : typeof given === "string" ? cut(given, ITEMS) : inspect(given, ITEMS));
  const count = (name) => {
    const so = (apply(mapGet, counts, [name]) ?? 0) + 1;
    apply(mapSet, counts, [name, so]);
    return so;
  };
  const since = (name) => (name + ": " + (now() - (apply(mapGet, starts, [name]) ?? now())) + "ms");
  const DEBUG = 0, LOG = 1, INFO = 2, WARN = 3, ERROR = 4;
  const console = {
    log(...values) { say(LOG, values); },
    info(...values) { say(INFO, values); },
    warn(...values) { say(WARN, values); },
    error(...values) { say(ERROR, values); },
    debug(...values) { say(DEBUG, values); },
    trace(...values) { say(DEBUG, values); },
    dir(value) { say(LOG, [value]); },
    table(value) { say(LOG, [value]); },
    assert(holds, ...values) {
      if (!holds) say(ERROR, ["Assertion failed" + (values.length > 0 ? ": " : "") + line(values, TEXT)]);
    },
    count(name) { say(LOG, [label(name) + ": " + count(label(name))]); },
    countReset(name) { apply(mapSet, counts, [label(name), 0]); },
    group(...values) {
      if (values.length > 0) say(LOG, values);
      if (indent.length < 20) indent += "  ";
    },
    groupCollapsed(...values) { apply(console.group, console, values); },
    groupEnd() { indent = apply(slice, indent, [2]); },
    time(name) { apply(mapSet, starts, [label(name), now()]); },
    timeLog(name) { say(LOG, [since(label(name))]); },
    timeEnd(name) { say(LOG, [since(label(name))]); },
  };
  shown(globalThis, "console", console);

  // ── Copies ──

  const uncloneable = (what) => {
    const error = new Error(what + " cannot be cloned");
    hidden(error, "name", "DataCloneError");
    return error;
  };
  const clone = (value, known) => {
    if (typeof value === "symbol") throw uncloneable("a symbol");
    if (typeof value === "function") throw uncloneable("a function");
    if (typeof value !== "object" || value === null) return value;
    if (apply(mapHas, known, [value])) return apply(mapGet, known, [value]);
    const keep = (made) => {
      apply(mapSet, known, [value, made]);
      return made;
    };
    const kind = native.kind(value);
    switch (kind) {
      case "Number": case "String": case "Boolean": case "BigInt":
        return keep(Object(apply(unbox[kind], value, NOTHING)));
      case "Date": return keep(construct(RealDate, [apply(getTime, value, NOTHING)]));
      case "RegExp": return keep(new RegExp(apply(regexpSource, value, NOTHING), apply(regexpFlags, value, NOTHING)));
      case "ArrayBuffer": return keep(apply(bufferSlice, value, [0]));
      case "DataView":
        return keep(new DataView(clone(apply(viewBuffer, value, NOTHING), known), apply(viewOffset, value, NOTHING), apply(viewLength, value, NOTHING)));
      case "Map": {
        const made = keep(new Map());
        apply(mapForEach, value, [(item, key) => apply(mapSet, made, [clone(key, known), clone(item, known)])]);
        return made;
      }
      case "Set": {
        const made = keep(new Set());
        apply(setForEach, value, [(item) => apply(setAdd, made, [clone(item, known)])]);
        return made;
      }
      case "Error": return cloneError(value, keep, known);
      case "Array": {
        const made = keep([]);
        made.length = value.length;
        return cloneMembers(value, made, known);
      }
      case "Object": case "Arguments": return cloneMembers(value, keep({}), known);
      default:
        if (kind in typed) {
          const buffer = clone(apply(typedBuffer, value, NOTHING), known);
          return keep(new typed[kind](buffer, apply(typedOffset, value, NOTHING), apply(typedLength, value, NOTHING)));
        }
        throw uncloneable(kind === "Promise" ? "a promise" : ("an object of kind " + kind));
    }
  };
  const ERRORS = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const cloneError = (value, keep, known) => {
    const name = value.name, message = getOwnPropertyDescriptor(value, "message");
    const made = keep(construct(typeof name === "string" && name in ERRORS ? ERRORS[name] : Error, NOTHING));
    if (message !== undefined) hidden(made, "message", String(value.message));
    const cause = getOwnPropertyDescriptor(value, "cause");
    if (cause !== undefined) hidden(made, "cause", clone(value.cause, known));
    return made;
  };
  const cloneMembers = (value, made, known) => {
    const keys = ownKeys(value), length = keys.length;
    for (let i = 0; i < length; i++) {
      const key = keys[i];
      if (typeof key === "symbol") continue;
      const found = getOwnPropertyDescriptor(value, key);
      if (found !== undefined && found.enumerable === true) shown(made, key, clone(value[key], known));
    }
    return made;
  };
  shown(globalThis, "structuredClone", { structuredClone(value) {
    return clone(value, new Map());
  } }.structuredClone);

  // ── Tools, arguments, and what is told about the run ──

  const mcp = create(null), capabilities = create(null);
  fixed(globalThis, "mcp", mcp);
  fixed(globalThis, "capabilities", capabilities);
  fixed(globalThis, "pml", freeze({ __proto__: null, progress: freeze(native.progress), hint: freeze(native.hint) }));
  const addTool = (server, name, tool) => {
    mcp[server] ??= create(null);
    mcp[server][name] = tool;
    freeze(tool);
  };
  const addCapability = (name, capability) => {
    capabilities[name] = freeze(capability);
  };
  const begin = (args) => {
    freeze(capabilities);
    const servers = ownKeys(mcp);
    for (let i = 0; i < servers.length; i++) freeze(mcp[servers[i]]);
    freeze(mcp);
    fixed(globalThis, "args", args);
  };

  // ── Probes ──

  const IS = 0, HAS = 1, CASE = 2, LOOP = 3, TURN = 4, CAUGHT = 5, DID = 6, FORK = 7;
  const visited = { __proto__: null };
  for (let kind = IS; kind <= FORK; kind++) visited[kind] = { __proto__: null };
  let reached = { __proto__: null }, reachedCount = 0;
  const reach = (kind, point, context, outcome, key) => {
    const contexts = visited[kind];
    const places = (contexts[context] ??= { __proto__: null });
    const place = (places[key] ??= { __proto__: null, kind, point, context, outcome, count: 0, after: 0, began: 0, told: false });
    if (place.count++ === 0) {
      place.after = native.made();
      reached[reachedCount++] = place;
    }
    return place;
  };
  const drain = () => {
    for (let i = 0; i < reachedCount; i++) {
      const place = reached[i];
      native.reached(place.kind, place.point, place.context, place.outcome, place.count, place.after);
      place.count = 0;
    }
    if (reachedCount > 0) reached = { __proto__: null };
    reachedCount = 0;
  };

  // The first few operations of each place are told with what they gave and how long they took. Between its beginning and
  // its end an operation does not wait, so the one that began last and did not throw is the one that ends.
  const TOLD = 20;
  const operations = visited[DID];
  const operation = (point, context) => {
    const places = (operations[context] ??= { __proto__: null });
    return (places[point] ??= { __proto__: null, kind: DID, point, context, outcome: 0, count: 0, after: 0, began: 0, told: false });
  };
  const start = (place) => {
    place.told = place.began < TOLD;
    if (place.told) {
      place.began++;
      native.began(place.point, place.context);
    }
  };
  const gave = (place, value) => {
    if (place.told) {
      place.told = false;
      native.gave(place.point, place.context, value);
    }
    return value;
  };

  // Which contexts calls enter: by context, point and function.
  const ways = { __proto__: null };
  const addEntry = (point, context, called, enters) => {
    const points = (ways[context] ??= { __proto__: null });
    (points[point] ??= { __proto__: null })[called] = enters;
  };
  let entering;
  // A `?.` found nothing, and the next probe is that of a link further out in the same chain.
  let ended = false;
  const tested = (point, value, context, more) => {
    const there = value !== null && value !== undefined;
    if (point !== null) reach(HAS, point, context, there ? 1 : 0, point * 2 + (there ? 1 : 0));
    ended = more && !there;
  };
  // Spread into a call it adds no argument.
  const end = freeze({ __proto__: null, done: true, value: undefined });
  const nothing = { __proto__: null, next: () => end };
  nothing[Symbol.iterator] = () => nothing;
  freeze(nothing);

  const probe = freeze({
    __proto__: null,
    at(point, context = 0) {
      native.at(point, context);
      return nothing;
    },
    enter(point, context = 0) {
      const points = ways[context];
      entering = points === undefined ? undefined : points[point];
      return nothing;
    },
    take(called, outer = 0) {
      const enters = entering === undefined ? undefined : entering[called];
      entering = undefined;
      return enters === undefined ? outer : enters;
    },
    is(point, value, context = 0) {
      if (value) reach(IS, point, context, 1, point * 2 + 1);
      else reach(IS, point, context, 0, point * 2);
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
      return typeof value === "function" ? (...given) => apply(value, object, given) : value;
    },
    case(point, index, context = 0) { reach(CASE, point, context, index, point + ":" + index); },
    loop(point, context = 0) { reach(LOOP, point, context, 0, point); },
    turn(point, context = 0) { reach(TURN, point, context, 0, point); },
    caught(point, context = 0) { reach(CAUGHT, point, context, 0, point); },
    // These two stand around every operation of a loop: all but the first times they call nothing.
    does(point, value, context = 0) {
      const places = operations[context], place = places === undefined ? undefined : places[point];
      if (place === undefined || place.began < TOLD) start(operation(point, context));
      else place.told = false;
      return value;
    },
    did(point, value, context = 0) {
      const places = operations[context], place = places === undefined ? undefined : places[point];
      if (place === undefined || place.count === 0) return gave(reach(DID, point, context, 0, point), value);
      place.count++;
      return place.told ? gave(place, value) : value;
    },
    may(point, context = 0) {
      const place = operation(point, context);
      place.told = false;
      return place;
    },
    doing(point, context = 0) {
      start(reach(DID, point, context, 0, point));
      return nothing;
    },
    got(place, value) { return gave(place, value); },
    fork(point, value, context = 0) {
      reach(FORK, point, context, 0, point);
      return value;
    },
  });

  return {
    addTool, addCapability, addEntry, begin, probe, drain, toolError, capabilityError, typeError, rangeError, origin, inspect,
    isArray: Array.isArray, mapSize, setSize, mapForEach, setForEach, getTime, toISOString, typedLength,
    unboxNumber: unbox.Number, unboxString: unbox.String, unboxBoolean: unbox.Boolean, unboxBigInt: unbox.BigInt,
  };
})
