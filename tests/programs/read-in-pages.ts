// Read the big file in small pages and collect the words that begin with a vowel.
let offset: number | null = 0;
let pages = 0;
let carry = "";
const words: string[] = [];

while (offset !== null) {
  const page: { content: string; nextOffset: number | null } = await mcp.fs.read({ path: args.path, offset, limit: args.pageSize });
  pages++;
  const parts = (carry + page.content).split(" ");
  carry = page.nextOffset === null ? "" : parts.pop() ?? "";
  words.push(...parts);
  offset = page.nextOffset;
}
return { pages, vowels: words.filter((word) => /^[aeiou]/.test(word)), count: words.length };
