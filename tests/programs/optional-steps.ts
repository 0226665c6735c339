// Save the plan; archive it and notify people only where the options ask for it.
const { options = {} } = args as { title: string; options?: { archive?: boolean; notify?: { who: string } | null; suffix?: string } };
const settings: { suffix?: string; tries?: number | null; owner?: string } = { tries: null, owner: "" };
settings.suffix ??= (await mcp.text.case({ text: args.title, to: "snake" })).text;
settings.tries ??= 3;
settings.owner ||= "nobody";

await mcp.fs.write({ path: `${settings.suffix}.md`, content: `# ${args.title}\n` });
options.archive && (await mcp.fs.write({ path: `archive/${settings.suffix}.md`, content: "archived" }));
options.notify?.who && (await mcp.fs.write({ path: "notify.txt", content: options.notify.who }));
const extra = options.suffix || (await mcp.fs.stat({ path: `${settings.suffix}.md` })).size;
return { settings, extra };
