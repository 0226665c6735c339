// Read the answer, but give up with a default if it takes longer than the patience allows.
const timeout = <T>(ms: number, value: T) => {
  let handle: ReturnType<typeof setTimeout>;
  const promise = new Promise<T>((resolve) => {
    handle = setTimeout(() => resolve(value), ms);
  });
  return { promise, cancel: () => clearTimeout(handle) };
};

const guard = timeout(args.patienceMs, { content: "default" });
const started = await mcp.fs.stat({ path: args.path });
const winner = await Promise.race([mcp.fs.read({ path: args.path }), guard.promise]);
guard.cancel();
const { data } = await mcp.json.parse({ json: winner.content });
return { started: started.exists, answer: data };
