// edges: A->C, A->D, B->C
// A subclass adds a member; the inherited method reads only its own.
class Named {
  constructor(protected name: string) {}
  label(): string {
    return `[${this.name}]`;
  }
}
class Team extends Named {
  constructor(name: string, private lead: string) {
    super(name);
  }
  describe(): string {
    return `${this.label()} led by ${this.lead}`;
  }
}
const team = await mcp.db.get({ table: "teams", id: args.team }); // @A
const lead = await mcp.db.get({ table: "users", id: args.lead }); // @B
const made = new Team(team.name, lead.name);
await mcp.chat.post({ channel: "teams", text: made.describe() }); // @C
await mcp.chat.post({ channel: "labels", text: made.label() }); // @D
