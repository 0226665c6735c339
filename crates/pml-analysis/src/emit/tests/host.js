// A probe object. `reports` holds what was reported, `site()` where the tool call being made comes from.
(() => {
  const reports = [];
  let from = null;
  let entering = null;
  // Operations that have begun and not ended, each within the one before; what threw is left behind.
  const begun = [];
  const ends = (key) => {
    const place = begun.lastIndexOf(key);
    if (place >= 0) begun.length = place;
    return place >= 0;
  };
  // A `?.` found nothing and the next probe is that of a link further out in the same chain.
  let ended = false;

  const end = Object.freeze({ done: true, value: undefined });
  const nothing = Object.freeze({ [Symbol.iterator]: () => nothing, next: () => end });
  const apply = Reflect.apply;

  const report = (...words) => void reports.push(words.join(" "));
  const tested = (point, value, context, more) => {
    const absent = value === null || value === undefined;
    if (point !== null) report("has", point, !absent, context);
    ended = more && absent;
  };

  const P = Object.freeze({
    at(point, context = 0) { from = `${point}@${context}`; return nothing; },
    enter(point, context = 0) { entering = [point, context]; return nothing; },
    take(called, outer = 0) {
      const entered = entering;
      entering = null;
      return entered === null ? outer : `${called}<${entered[0]}@${entered[1]}>`;
    },
    is(point, value, context = 0) { report("is", point, !!value, context); return value; },
    has(point, value, context = 0, more = false) {
      if (ended) ended = more;
      else tested(point, value, context, more);
      return value;
    },
    bound(point, object, key, context = 0, more = false) {
      if (ended) { ended = more; return undefined; }
      const value = object[key];
      tested(point, value, context, more);
      return typeof value === "function" ? (...given) => apply(value, object, given) : value;
    },
    case(point, index, context = 0) { report("case", point, index, context); },
    loop(point, context = 0) { report("loop", point, context); },
    turn(point, context = 0) { report("turn", point, context); },
    caught(point, context = 0) { report("caught", point, context); },
    does(point, value, context = 0) { begun.push(`${point}@${context}`); return value; },
    did(point, value, context = 0) {
      if (!ends(`${point}@${context}`)) report("had not begun", point, context);
      report("did", point, context);
      return value;
    },
    may(point, context = 0) { return { key: `${point}@${context}`, since: begun.length, point, context }; },
    doing(point, context = 0) {
      begun.push(`${point}@${context}`);
      report("did", point, context);
      return nothing;
    },
    got(may, value) {
      if (begun.length > may.since && ends(may.key)) report("got", may.point, may.context);
      return value;
    },
    fork(point, value, context = 0) { report("fork", point, context); return value; },
  });

  return { P, reports, site() { const site = from; from = null; return site; } };
})()
