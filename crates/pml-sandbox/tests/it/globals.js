// Everything a program can reach without calling anything, and the names it has there.
const lines = [], seen = new Set(), queue = [["globalThis", globalThis], ["async function", async () => {}],
  ["generator", function* () {}], ["async generator", async function* () {}], ["iterator of an array", [][Symbol.iterator]()],
  ["iterator of a map", new Map()[Symbol.iterator]()], ["iterator of a set", new Set()[Symbol.iterator]()],
  ["iterator of a string", ""[Symbol.iterator]()], ["matches", "a".matchAll(/a/g)], ["helper", [].values().map((x) => x)],
  ["wrapped", Iterator.from({ next() {} })]];
while (queue.length > 0) {
  const [path, value] = queue.shift();
  if (seen.has(value)) continue;
  seen.add(value);
  const names = [];
  for (const key of Reflect.ownKeys(value)) {
    const name = typeof key === "symbol" ? `@@${key.description}` : key;
    const { writable, enumerable, configurable, ...how } = Object.getOwnPropertyDescriptor(value, key);
    const accessor = "get" in how ? "?" : "";
    names.push(`${name}${accessor}`);
    for (const next of [how.value, how.get, how.set]) {
      if ((typeof next === "object" && next !== null) || typeof next === "function") queue.push([`${path}.${name}`, next]);
    }
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null) queue.push([`${path}.[[Prototype]]`, prototype]);
  // What is in every function says nothing.
  const plain = names.filter((name) => typeof value !== "function" || (name !== "length" && name !== "name"));
  if (plain.length > 0) lines.push(`${path}: ${plain.sort().join(" ")}`);
}
return lines.join("\n") + "\n";
