// Ask the sum service by its real name, echo what it says, and compare it with exact arithmetic.
const said = await mcp.everything["get-sum"]({ a: args.a, b: args.b });
const echoed = await mcp.everything["echo"]({ message: said });
const exact = await mcp["math"].evaluate({ expression: "a + b", variables: { a: args.a, b: args.b } });
return { echoed, exact: exact.value, differs: !said.includes(`is ${exact.value}.`) };
