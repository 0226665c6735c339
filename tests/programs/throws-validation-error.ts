// Accept the order if all its quantities are positive; otherwise fail and say which item is wrong.
class ValidationError extends Error {
  override name = "ValidationError";
}

const { content } = await mcp.fs.read({ path: args.file });
const { data: order } = await mcp.json.parse({ json: content });
await mcp.fs.write({ path: "audit.log", content: `checking ${order.id}\n`, append: true });

for (const [index, item] of order.items.entries()) {
  if (!(item.qty > 0)) {
    throw new ValidationError(`item ${index + 1} of ${order.id}: quantity ${item.qty} is not positive`);
  }
}
await mcp.fs.write({ path: `accepted/${order.id}.json`, content });
return "accepted";
