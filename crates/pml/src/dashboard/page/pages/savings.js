// What PML saved: figures with how they are computed, and days side by side.

import { get } from '../api.js';
import { html, useLayoutEffect, useMemo, useRef, useState } from '../html.js';
import { setQuery } from '../navigation.js';
import { Empty, PageHead } from '../ui/empty.js';
import { Tabs } from '../ui/filter.js';
import { count, day, duration, plural, size } from '../ui/format.js';
import { Sentence } from '../ui/text.js';
import { Ahead } from './savings-ahead.js';
import { everyDay, stackedBars } from './savings-chart.js';

export const title = 'Savings';

const DAYS = ['7', '30', '90'];

const chosenDays = (query) => (DAYS.includes(query.get('days')) ? query.get('days') : '30');

export async function load({ query, signal }) {
  const [saved, ahead] = await Promise.all([get(`/api/savings?days=${chosenDays(query)}`, { signal }), get('/api/speculation', { signal })]);
  return { ...saved, ahead: ahead.tools };
}

export function view({ query, data }) {
  const series = useMemo(() => everyDay(data.series, data.days, Date.now()), [data]);
  const sum = (name) => series.reduce((total, item) => total + (item[name] ?? 0), 0);
  const runs = sum('runs');
  const head = html`<${PageHead} title="Savings" note="What was measured, and how." />
    <${Tabs} label="Period" value=${chosenDays(query)} tabs=${DAYS.map((days) => [days, `${days} days`])} onChange=${(days) => setQuery({ days: days === '30' ? '' : days })} />`;
  if (runs === 0) {
    return html`${head}<${Empty} title="Nothing to count yet"><p>As soon as agents run things through PML, you see here what they did not have to read, wait for or do again.</p></${Empty}>`;
  }
  const tiles = [
    ['Tokens not read', `about ${count(data.tokens.results)}`, data.methods.tokens, `${size(data.tokens.resultBytes)} of results`],
    ['Time by the cache', duration(data.timeMs.cache), data.methods.cacheMs, plural(sum('cacheHits'), 'hit')],
    ['Time by calling ahead', duration(data.timeMs.speculation), data.methods.speculationMs, `${plural(sum('speculatedHits'), 'call')} used`],
    ['Runs', count(runs), 'runs that began in this period'],
  ];
  return html`${head}
    <div class="tiles">${tiles.map(([name, value, how, more]) => html`<section class="panel tile" key=${name}><h2>${name}</h2><p class="figure">${value}</p>
      ${more && html`<p>${more}</p>`}<p class="fine"><${Sentence} text=${how} /></p></section>`)}</div>
    <div class="charts">
      <${Chart} title="Runs a day" items=${series} keys=${['runs']} format=${count} />
      <${Chart} title="Time saved a day" items=${series} keys=${['savedMs']} format=${duration} />
      <${Chart} title="Calls answered from the cache and ahead" items=${series} keys=${['cacheHits', 'speculatedHits']} names=${['from the cache', 'ahead']} format=${count} />
      <${Chart} title="Tokens not read a day" items=${series} keys=${['tokensSaved']} format=${count} />
    </div>
    <${Ahead} tools=${data.ahead} />
    <details class="notes"><summary>The same as a table</summary><div class="scroll"><table class="plain"><thead><tr><th scope="col">Day</th><th scope="col" class="num">Runs</th><th scope="col" class="num">Cache hits</th><th scope="col" class="num">Used ahead</th><th scope="col" class="num">Time saved</th><th scope="col" class="num">Tokens not read</th></tr></thead>
      <tbody>${series.toReversed().map((item) => html`<tr key=${item.day}><th scope="row">${dayText(item.day)}</th><td class="num">${count(item.runs)}</td><td class="num">${count(item.cacheHits)}</td><td class="num">${count(item.speculatedHits)}</td><td class="num">${duration(item.savedMs)}</td><td class="num">${count(item.tokensSaved)}</td></tr>`)}</tbody></table></div></details>`;
}

/** Days begin in UTC; noon is the same day for everybody who reads it. */
function dayText(begins) {
  return day(begins + 43_200_000);
}

const HEIGHT = 120;
/** Room for the number above the topmost line. */
const TOP = 16;

function Chart({ title, items, keys, names, format }) {
  const box = useRef(null);
  const [width, setWidth] = useState(400);
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.max(120, Math.floor(entry.contentRect.width))));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  const { bars, top } = stackedBars({ items, keys, width, height: HEIGHT });
  return html`<section class="panel chart"><h2>${title}</h2>
    <figure ref=${box}><svg width=${width} height=${HEIGHT + TOP + 18} viewBox=${`0 ${-TOP} ${width} ${HEIGHT + TOP + 18}`} role="img" aria-label=${bars.length > 0 ? `${title}: at most ${format(top)}. The table below has every value.` : `${title}: nothing in these days.`}>
      <line class="grid" x1="0" x2=${width} y1="0.5" y2="0.5" /><line class="grid" x1="0" x2=${width} y1=${HEIGHT / 2} y2=${HEIGHT / 2} /><line class="base" x1="0" x2=${width} y1=${HEIGHT + 0.5} y2=${HEIGHT + 0.5} />
      ${bars.map((bar) => html`<rect key=${`${bar.index} ${bar.key}`} class=${`series-${keys.indexOf(bar.key)}`} x=${bar.x} y=${bar.y} width=${bar.width} height=${bar.height} rx="1.5"><title>${`${dayText(items[bar.index].day)}: ${format(items[bar.index][bar.key])}${names ? ` ${names[keys.indexOf(bar.key)]}` : ''}`}</title></rect>`)}
      ${bars.length > 0 ? html`<text x="0" y="-4">${format(top)}</text>` : html`<text x=${width / 2} y=${HEIGHT / 2 - 8} text-anchor="middle">nothing in these days</text>`}
      <text x="0" y=${HEIGHT + 15}>${dayText(items[0].day)}</text><text x=${width} y=${HEIGHT + 15} text-anchor="end">${dayText(items[items.length - 1].day)}</text>
    </svg></figure>
    ${names && html`<p class="legend">${names.map((name, index) => html`<span><i class=${`key-${index}`}></i>${name}</span>`)}</p>`}
  </section>`;
}
