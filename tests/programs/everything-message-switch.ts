// Fetch these messages and sort them into a file per severity.
type Kind = "success" | "error" | "debug";
const tally: Record<Kind, number> = { success: 0, error: 0, debug: 0 };
for (const messageType of args.types as Kind[]) {
  const text = await mcp.everything.get_annotated_message({ messageType });
  switch (true) {
    case text.startsWith("Error"):
      tally.error++;
      await mcp.fs.write({ path: "error.log", content: `${text}\n`, append: true });
      break;
    case text.startsWith("Debug"):
      tally.debug++;
      break;
    case text.includes("success"):
      tally.success++;
      await mcp.fs.write({ path: "info.log", content: `${text}\n`, append: true });
      break;
    default:
      await mcp.fs.write({ path: "unknown.log", content: text, append: true });
  }
}
return tally;
