// Load kim's profile; if there is none, make one from the default profile.
let profile: Record<string, unknown>;
let created = false;
const path = `profiles/${args.user}.json`;

try {
  const file = await mcp.fs.read({ path });
  profile = (await mcp.json.parse({ json: file.content })).data;
} catch (error) {
  if (!(error instanceof Error) || !error.message.includes("does not exist")) throw error;
  const fallback = await mcp.fs.read({ path: "profiles/default.json" });
  profile = { ...(await mcp.json.parse({ json: fallback.content })).data, user: args.user };
  await mcp.fs.create({ path, content: JSON.stringify(profile) });
  created = true;
}
return { profile, created };
