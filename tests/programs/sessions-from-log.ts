// Group the page views of each person into sessions; a pause of more than half an hour starts a new one.
interface Session { user: string; from: string; to: string; pages: string[] }
const { content } = await mcp.fs.read({ path: "access.log" });
const { matches } = await mcp.text.match({ text: content, pattern: "(?m)^(?<time>\\S+) (?<user>\\w+) (?<page>\\S+)$" });

const sessions: Session[] = [];
const last = new Map<string, Session>();
for (const { named: { time, user, page } } of matches) {
  const open = last.get(user);
  const pause = open ? (await mcp.time.diff({ from: open.to, to: time })).seconds / 60 : Infinity;
  if (open && pause <= args.gapMinutes) {
    open.to = time;
    open.pages.push(page);
  } else {
    const session = { user, from: time, to: time, pages: [page] };
    sessions.push(session);
    last.set(user, session);
  }
}
const lengths = await Promise.all(sessions.map((session) => mcp.time.diff({ from: session.from, to: session.to })));
return sessions.map((session, i) => ({ ...session, duration: lengths[i].duration }));
