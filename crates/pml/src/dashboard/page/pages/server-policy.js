// The policy for one tool, explained: each attribute, and the rule that sets it.

import { get } from '../api.js';
import { html, useEffect, useState } from '../html.js';
import { Loading } from '../ui/empty.js';
import { Mark } from '../ui/status.js';
import { Code, Problem, Sentence, Text, plain } from '../ui/text.js';
import { VERDICTS } from './server-verdicts.js';

export function Policy({ tool, onClose }) {
  const [policy, setPolicy] = useState(null);
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    const abort = new AbortController();
    get(`/api/policy/${encodeURIComponent(tool.id)}`, { signal: abort.signal }).then(setPolicy, (error) => { if (!abort.signal.aborted) setProblem(error); });
    return () => abort.abort();
  }, [tool.id]);
  const verdict = policy?.mode ?? tool.policy?.verdict;
  const [kind, text, sentence] = VERDICTS[verdict] ?? ['', verdict ?? '', ''];
  const attributes = policy?.attributes ?? [];
  const keyed = (event) => {
    if (event.key === 'Escape') onClose();
  };
  return html`<section class="panel stack" aria-label=${`Policy for ${plain(tool.id)}`} onKeyDown=${keyed}>
    <div class="actions"><h2><${Code} text=${tool.id} /></h2><${Mark} kind=${kind}><${Text} text=${text} /></${Mark}><button type="button" class="quiet push" onClick=${onClose}>Close</button></div>
    <p>${sentence} <span class="soft">Because <${Sentence} text=${policy?.because ?? tool.policy?.reason} />.</span></p>
    ${tool.quarantined && html`<p class="notice">It is in quarantine: <a href="/inbox">see in the inbox</a> what changed, and accept it there.</p>`}
    <${Problem} error=${problem} />
    ${!policy && !problem && html`<${Loading} />`}
    ${attributes.length > 0 && html`<div class="scroll"><table class="plain"><thead><tr><th scope="col">Attribute</th><th scope="col">Value</th><th scope="col">Because</th></tr></thead>
      <tbody>${attributes.map(({ name, value, because, place }) => html`<tr key=${name}><th scope="row"><code>${name}</code></th><td><${Text} text=${value} /></td>
        <td class="soft"><${Sentence} text=${because} />${place && html` <span class="fine"><${Text} text=${place} /></span>`}</td></tr>`)}</tbody></table></div>`}
    ${policy?.rules?.length > 0 && html`<h4>Rules that name it</h4><ul class="reasons">${policy.rules.map(({ rule, place }) => html`<li><code><${Text} text=${rule} /></code> <span class="fine"><${Text} text=${place} /></span></li>`)}</ul>`}
    ${policy?.annotations && html`<p class="fine">What the server says of it is ${policy.annotations.believed ? 'believed' : 'not believed'}, because <${Sentence} text=${policy.annotations.because} />.</p>`}
    ${tool.description && html`<details><summary>What the server says of this tool</summary><p class="fine">The words of the server. Nobody has checked them.</p><blockquote class="quoted"><${Text} text=${tool.description} breaks="plain" /></blockquote></details>`}
  </section>`;
}
