// The map of tools and capabilities: what feeds what, what was used with what, and ways from one to another.

import { get } from '../api.js';
import { html, useEffect, useMemo, useRef, useState } from '../html.js';
import { setQuery } from '../navigation.js';
import { Empty, PageHead } from '../ui/empty.js';
import { FilterField } from '../ui/filter.js';
import { count, plural } from '../ui/format.js';
import { Problem, Text } from '../ui/text.js';
import { MapView } from '../views/map-view.js';
import { NodePanel, WaysPanel } from '../views/graph-panels.js';

export const title = 'Graph';

const KINDS = [['dependency', 'result passed on'], ['provides', 'could feed'], ['contains', 'calls'], ['sequence', 'came after']];

/** Query: `expand` (communities), `id` (selected node), `from` and `to` (ways), `q` (search). */
export async function load({ query, signal }) {
  const layout = await get(layoutPath(query.get('expand')), { signal });
  return { layout };
}

function layoutPath(expand) {
  return expand ? `/api/graph/layout?${new URLSearchParams({ expand })}` : '/api/graph/layout';
}

export function view({ query, data }) {
  const { layout } = data;
  const expanded = useMemo(() => (query.get('expand') ?? '').split(',').filter(Boolean), [query]);
  const id = query.get('id');
  const [from, to] = [query.get('from'), query.get('to')];
  const [node, nodeProblem] = useReply(id && `/api/graph/node?${new URLSearchParams({ id })}`);
  const [ways, waysProblem] = useReply(from && to && `/api/graph/ways?${new URLSearchParams({ from, to })}`);
  const [focusOn, setFocusOn] = useState(null);
  const stamp = useRef(0);
  const goTo = (target) => {
    stamp.current += 1;
    setFocusOn({ id: target, stamp: stamp.current });
  };

  // A node in a closed community can only be shown when that is open.
  useEffect(() => {
    if (!node) return;
    const community = layout.communities.find((one) => one.id === node.community);
    if (community && !community.expanded) setQuery({ expand: [...expanded, node.community].join(',') });
    else goTo(node.id);
  }, [node, layout]);

  const [neighbours, path] = useMemo(() => [
    new Set(node?.neighbours.map((one) => one.id) ?? []),
    new Set(ways?.ways[0]?.through ?? []),
  ], [node, ways]);

  if (layout.total === 0) {
    return html`<${PageHead} title="Graph" /><${Empty} title="No tools yet">
      <p>The map shows the tools of the connected <a href="/servers">servers</a> and what agents did with them.</p></${Empty}>`;
  }
  const toggle = (community) => {
    const next = expanded.includes(community) ? expanded.filter((one) => one !== community) : [...expanded, community];
    setQuery({ expand: next.join(',') });
  };
  const pick = (target) => {
    if (target.startsWith('community:')) {
      toggle(target.slice('community:'.length));
      goTo(target);
    } else setQuery({ id: target });
  };
  const select = (target) => setQuery({ id: target, q: '' });
  return html`
    <${PageHead} title="Graph" note=${`${plural(layout.total, 'tool or capability', 'tools and capabilities')} in ${plural(layout.communities.length, 'community', 'communities')}.`} />
    <div class="toolbar">
      <${FilterField} value=${query.get('q') ?? ''} label="Find a tool or capability" onChange=${(q) => setQuery({ q })} />
      <${Legend} omitted=${layout.omittedEdges} />
    </div>
    <div class="graph-page">
      <${MapView} layout=${layout} selected=${node?.id ?? null} neighbours=${neighbours} path=${path} focusOn=${focusOn} onPick=${pick} />
      <aside class="graph-side" aria-label="Details">
        <${Found} text=${query.get('q') ?? ''} onSelect=${select} />
        <${Problem} error=${nodeProblem ?? waysProblem} />
        ${from && html`<${WaysPanel} from=${from} to=${to} ways=${ways} onSelect=${select} onSwap=${() => setQuery({ from: to, to: from })} onClose=${() => setQuery({ from: '', to: '' })} />`}
        ${node && html`<${NodePanel} node=${node} waysFrom=${from} onSelect=${select} onClose=${() => setQuery({ id: '' })}
          onFrom=${() => setQuery({ from: node.id, to: '' })} onTo=${() => setQuery({ to: node.id })} />`}
        <${Communities} layout=${layout} expanded=${expanded} onToggle=${(community) => pick(`community:${community}`)} onCloseAll=${() => setQuery({ expand: '' })} />
      </aside>
    </div>`;
}

/** What `get` answers for a path, kept until the next answer is there. */
function useReply(path) {
  const [state, setState] = useState([null, null]);
  useEffect(() => {
    if (!path) {
      setState([null, null]);
      return undefined;
    }
    const abort = new AbortController();
    get(path, { signal: abort.signal }).then((reply) => setState([reply, null]), (error) => {
      if (!abort.signal.aborted) setState([null, error]);
    });
    return () => abort.abort();
  }, [path]);
  return state;
}

function Found({ text, onSelect }) {
  const [found, problem] = useReply(text && `/api/graph/search?${new URLSearchParams({ q: text })}`);
  if (!text) return null;
  return html`<section class="panel"><h2>Found</h2><${Problem} error=${problem} />
    ${found && (found.items.length === 0
      ? html`<p class="fine">No tool or capability has this in its name.</p>`
      : html`<ul class="plain-list scroll" aria-label="Found">${found.items.map((item) => html`<li><button type="button" class="link" onClick=${() => onSelect(item.id)}><${Text} text=${item.label} /></button> <span class="soft">${item.kind}</span></li>`)}</ul>`)}
  </section>`;
}

function Communities({ layout, expanded, onToggle, onCloseAll }) {
  const closable = layout.communities.some((community) => !community.expanded) || expanded.length > 0;
  return html`<section class="panel"><h2>Communities</h2>
    ${expanded.length > 1 && html`<p><button type="button" class="link" onClick=${onCloseAll}>Close all</button></p>`}
    <ul class="plain-list scroll">${layout.communities.map((community) => html`<li>
      ${closable
        ? html`<button type="button" class="link" aria-expanded=${community.expanded ? 'true' : 'false'} onClick=${() => onToggle(community.id)}><span aria-hidden="true" class="twist">${community.expanded ? '▾' : '▸'}</span><${Text} text=${community.label} /></button>`
        : html`<${Text} text=${community.label} />`} <span class="soft">${count(community.size)}</span></li>`)}</ul>
  </section>`;
}

function Legend({ omitted }) {
  return html`<ul class="picture-legend push" aria-label="Signs"><li><i class="swatch round"></i>tool</li><li><i class="swatch square"></i>capability</li>
    ${KINDS.map(([kind, text]) => html`<li><i class=${`swatch ${kind}`}></i>${text}</li>`)}
    ${omitted > 0 && html`<li class="soft">${count(omitted)} lighter lines are not drawn</li>`}</ul>`;
}
