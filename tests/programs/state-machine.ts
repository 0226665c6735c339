// Follow the order through its states; note every event that is not allowed where it stands.
const transitions = {
  new: { open: "pending" },
  pending: { pay: "paid", cancel: "cancelled" },
  paid: { ship: "shipped" },
  shipped: { deliver: "delivered" },
  delivered: {},
  cancelled: {},
} as const satisfies Record<string, Record<string, string>>;
type State = keyof typeof transitions;

let state: State = "new";
const refused: string[] = [];
for (const event of args.events as string[]) {
  const next = (transitions[state] as Record<string, State>)[event];
  if (next === undefined) {
    refused.push(`${event} while ${state}`);
    await mcp.fs.write({ path: "refused.log", content: `${event}\n`, append: true });
    continue;
  }
  await mcp.fs.write({ path: "history.log", content: `${state} -> ${next}\n`, append: true });
  state = next;
}
return { state, refused };
