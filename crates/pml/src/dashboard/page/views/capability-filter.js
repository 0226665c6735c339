// Which capabilities a list shows. Pure, so that Node tests it.

/** Those in `state` (any if empty) that have every word of `text` in their name, purpose, intents or tools. */
export function matching(capabilities, text, state) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return capabilities.filter((capability) => {
    if (state && capability.state !== state) return false;
    if (words.length === 0) return true;
    const intents = (capability.intents ?? []).map((intent) => intent.text);
    const tools = (capability.toolsUsed ?? []).map((tool) => tool.id);
    const all = [capability.name, capability.id, capability.description, ...intents, ...tools].join('\n').toLowerCase();
    return words.every((word) => all.includes(word));
  });
}
