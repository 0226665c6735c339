// List the cities of all people. (One of them has no address, which the program does not expect.)
interface Person {
  name: string;
  address: { city: string };
}

const { content } = await mcp.fs.read({ path: "people.json" });
const { data } = await mcp.json.parse({ json: content });
const { matches: names } = await mcp.json.query({ data, path: "$[*].name" });

const cityOf = (person: Person): string =>
  person.address.city;

const cities = (data as Person[]).map(cityOf);
await mcp.fs.write({ path: "cities.txt", content: cities.join("\n") });
return { names, cities };
