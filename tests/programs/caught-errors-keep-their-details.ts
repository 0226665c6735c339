// Try four things that cannot work and tell for each what kind of error it was and that the program could go on.
const attempts: Record<string, () => Promise<unknown>> = {
  missing: () => mcp.fs.read({ path: "nothing.txt" }),
  full: () => mcp.fs.delete({ path: "folder" }),
  outside: () => mcp.fs.read({ path: "/etc/hostname" }),
  own: async () => {
    throw Object.assign(new TypeError("mine"), { extra: [1, { deep: true }] });
  },
};
const outcome: Record<string, unknown> = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    outcome[name] = "worked";
  } catch (error: unknown) {
    if (error instanceof TypeError) outcome[name] = { kind: "type", extra: (error as any).extra };
    else if (error instanceof Error) outcome[name] = { kind: error.name, text: error.message.length > 0, path: /`([^`]+)`/.exec(error.message)?.[1] };
    else outcome[name] = "not an error";
  }
}
return outcome;
