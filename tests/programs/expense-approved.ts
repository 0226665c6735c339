// Approve the expense if it is within the limit, otherwise reject it; leave a note in the right folder.
const { content } = await mcp.fs.read({ path: args.expense });
const { data: expense } = await mcp.json.parse({ json: content });

if (expense.amount <= args.limit) {
  await mcp.fs.write({ path: `approved/${expense.id}.txt`, content: `${expense.who}: ${expense.amount} approved\n` });
} else {
  await mcp.fs.write({ path: `rejected/${expense.id}.txt`, content: `${expense.who}: ${expense.amount} is over ${args.limit}\n` });
}

await mcp.fs.delete({ path: args.expense });
return expense.amount <= args.limit ? "approved" : "rejected";
