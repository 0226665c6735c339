// Draw the folder as a tree in a text file, directories first.
type Node = { name: string; type: "file" | "directory"; children?: Node[] };
const { content } = await mcp.filesystem.directory_tree({ path: "site" });
const { data } = await mcp.json.parse({ json: content });

function* draw(nodes: Node[], indent = ""): Generator<string> {
  const sorted = nodes.toSorted((a, b) => Number(b.type === "directory") - Number(a.type === "directory") || (a.name < b.name ? -1 : 1));
  for (const [i, node] of sorted.entries()) {
    const last = i === sorted.length - 1;
    yield `${indent}${last ? "└" : "├"}─ ${node.name}${node.children ? "/" : ""}`;
    if (node.children) yield* draw(node.children, indent + (last ? "   " : "│  "));
  }
}
const lines = ["site/", ...draw(data)];
await mcp.filesystem.write_file({ path: "tree.txt", content: lines.join("\n") });
return lines;
