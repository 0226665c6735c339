// A learned path in words. Pure, so that Node tests it.

/** What only holds calls together says nothing of a path that the calls do not say. */
const SILENT = new Set(['parallel', 'loop', 'operation', 'input', 'return']);

/**
 * The calls and branches of a path in order, as `{ label, times }`: `path` has ids of nodes of the structure, which the nodes
 * of the definition name as their sites. Ids that it does not know stay as they are.
 */
export function pathWords(path, definition) {
  const bySite = new Map(definition.nodes.flatMap((node) => node.sites.map((site) => [site.nodeId, node])));
  const words = [];
  for (const id of path) {
    const node = bySite.get(id);
    if (node && SILENT.has(node.kind)) continue;
    const label = node?.label ?? id;
    const last = words.at(-1);
    if (last?.label === label) last.times += 1;
    else words.push({ label, times: 1 });
  }
  return words;
}
