// For each topic: use my notes if I have any, else start a note; remember the topic with its word count, and sum the counts.
let total = 0;
for (const topic of args.topics as string[]) {
  const path = `notes/${topic}.md`;
  let text: string;
  try {
    text = (await mcp.filesystem.read_text_file({ path })).content;
  } catch {
    text = `${(await mcp.everything.echo({ message: topic })).slice("Echo: ".length)}: to be written\n`;
    await mcp.filesystem.write_file({ path, content: text });
  }
  const { words } = await mcp.text.count({ text });
  await mcp.memory.create_entities({ entities: [{ name: topic, entityType: "topic", observations: [`${words} words`] }] });
  total = Number(/is (\d+)\./.exec(await mcp.everything.get_sum({ a: total, b: words }))![1]);
}
const { entities } = await mcp.memory.search_nodes({ query: "words" });
return { total, entities };
