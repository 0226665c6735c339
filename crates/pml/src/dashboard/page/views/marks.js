// What belongs together in the definition, the invocations and the source of a capability. Pure, so that Node tests it.
//
// Everything that can be marked carries tokens: the ids of nodes of the structure, and `tool:<id>` where a trace no longer
// fits the structure. Pointing at one thing marks all things that share a token with it.

/** The token of a tool. Tokens are kept in one attribute, so that a blank in a name must not split them. */
export function toolToken(tool) {
  return `tool:${encodeURIComponent(tool)}`;
}

/** The tokens of a node of the definition: its places in the program, and its tool. */
export function definitionTokens(node) {
  const tokens = node.sites.map((site) => site.nodeId);
  if (node.tool) tokens.push(toolToken(node.tool));
  else if (node.kind === 'capability') tokens.push(toolToken(node.label));
  return tokens;
}

/**
 * The token of every call of an invocation, by id. A call inside of a capability is marked as the call of that capability:
 * its own node is one of another program.
 */
export function callTokens(invocation) {
  const byId = new Map(invocation.nodes.map((node) => [node.id, node]));
  const tokens = new Map();
  for (const node of invocation.nodes) {
    let outer = node;
    // Parents come before what they contain, so that no chain is longer than the list.
    for (let step = 0; outer.parent && step < 32; step += 1) outer = byId.get(outer.parent) ?? { ...outer, parent: undefined };
    const known = invocation.structureKnown && outer.nodeId;
    tokens.set(node.id, known ? outer.nodeId : toolToken(outer.kind === 'capability' ? outer.label : outer.tool));
  }
  return tokens;
}

/** Whether two lists of tokens share one. */
export function shares(tokens, marked) {
  return tokens.some((token) => marked.has(token));
}

/** The node to go to from `current` with an arrow key: the nearest in that direction. Nodes are `{ x, y }` of their centres. */
export function neighbourInDirection(nodes, current, key) {
  const [dx, dy] = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[key] ?? [0, 0];
  let best = null;
  let least = Infinity;
  for (const node of nodes) {
    const [x, y] = [node.x - current.x, node.y - current.y];
    const along = x * dx + y * dy;
    if (node === current || along <= 0.5) continue;
    const aside = Math.abs(x * dy) + Math.abs(y * dx);
    const cost = along + aside * 2;
    if (cost < least) [best, least] = [node, cost];
  }
  return best;
}
