// Addresses of pages: which page a path is, and the path of a page. No DOM here, so that Node can test it.

/** The pages by name, with their patterns; `{x}` is one segment. The server answers all of them with the same HTML. */
export const ROUTES = [
  ['runs', '/runs'],
  ['run', '/runs/{id}'],
  ['capabilities', '/capabilities'],
  ['capability', '/capabilities/{name}'],
  ['graph', '/graph'],
  ['inbox', '/inbox'],
  ['rules', '/rules'],
  ['discover', '/discover'],
  ['test', '/test'],
  ['servers', '/servers'],
  ['savings', '/savings'],
];

/** The page of a path: `{ page, params }`, or `null` where no page has this address. */
export function match(path) {
  const parts = split(path);
  for (const [page, pattern] of ROUTES) {
    const wanted = split(pattern);
    if (wanted.length !== parts.length) continue;
    const params = {};
    const fits = wanted.every((part, index) => {
      if (part[0] !== '{') return part === parts[index];
      params[part.slice(1, -1)] = parts[index];
      return parts[index] !== '';
    });
    if (fits) return { page, params };
  }
  return null;
}

/** The address of a page. Values of the query that are empty are left out. */
export function href(page, params = {}, query = {}) {
  const pattern = ROUTES.find(([name]) => name === page)?.[1] ?? '/';
  const path = pattern.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''));
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/** What a part of an address says. One that is not escaped as it should be is taken as it is: anybody can write a link. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function split(path) {
  return path.split('/').slice(1).filter((part, index) => index === 0 || part !== '').map(decoded);
}
