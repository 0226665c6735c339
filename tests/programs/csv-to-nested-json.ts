// Turn the flat organisation list into nested JSON: departments with teams with people.
const { rows } = await mcp.csv.parse({ csv: (await mcp.fs.read({ path: "org.csv" })).content });
const tree = rows.reduce((all: any, { department, team, person }: any) => {
  const teams = (all[department] ??= {});
  (teams[team || "none"] ??= []).push(person);
  return all;
}, {});

await mcp.fs.write({ path: "org.json", content: (await mcp.json.stringify({ data: tree, indent: 1 })).json });
const { matches } = await mcp.json.query({ data: tree, path: "$['R&D'][*][*]" });
return { tree, research: matches };
