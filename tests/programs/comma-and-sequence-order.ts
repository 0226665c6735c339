// Number the calls as they are made, to see that every part of an expression runs in the order it is written.
let step = 0;
const mark = async (label: string): Promise<number> => {
  step += 1;
  await mcp.fs.write({ path: "trace.txt", content: `${step}${label} `, append: true });
  return step;
};

const object = { b: await mark("b"), a: await mark("a"), [`k${await mark("key")}`]: await mark("value") };
const list = [await mark("x"), ...[await mark("spread")], await mark("y")];
const sum = (await mark("left")) + (await mark("right")) * (await mark("factor"));
const chosen = (await mark("test")) > 100 ? await mark("yes") : await mark("no");
const last = (await mark("dropped"), await mark("kept"));
const call = ((...values: number[]) => values.join("-"))(await mark("arg1"), await mark("arg2"));
return { object, list, sum, chosen, last, call, trace: (await mcp.fs.read({ path: "trace.txt" })).content };
