// Make a slug of this title by running the named steps one after the other, and show each stage.
type Step = (text: string) => Promise<string> | string;
const steps = {
  trim: (text) => text.trim(),
  lower: async (text) => (await mcp.text.case({ text, to: "lower" })).text,
  "stop-words": async (text) =>
    (await mcp.text.replace({ text, find: "\\b(the|a|an)\\b\\s*", with: "", regex: true })).text,
  slug: async (text) => (await mcp.text.case({ text, to: "kebab" })).text,
} satisfies Record<string, Step>;

const stages: string[] = [];
let text: string = args.text;
for (const name of args.steps as (keyof typeof steps)[]) {
  text = await steps[name](text);
  stages.push(`${name}: ${text}`);
}
return { slug: text, stages };
