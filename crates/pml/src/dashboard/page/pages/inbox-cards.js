// The cards of the inbox: what waits for a person, and what the person says to it.
//
// Built of DOM nodes by hand and kept while other pages are open: a card that stays is never drawn anew, so that neither
// a half-typed reason nor a value that was opened is lost, and nothing can be approved that was not shown as it stands.

import { ApiError, send as sendTo } from '../api.js';
import { body, summary } from '../card.js';
import { decoded } from '../router.js';
import { el, fill, said, span } from '../text.js';
import { confirm } from '../ui/dialog.js';
import { look } from '../waiting.js';

/** After cards have moved, a click may have been meant for what stood there before. */
const SETTLING_MS = 600;

/** The element with all cards. */
export const list = el('div', { id: 'list' });
const cards = new Map();
let settledAt = 0;
let linked = null;
let changed = () => {};

/** Tells how many cards wait and how many there are, whenever that changes. */
export function onChange(listener) {
  changed = listener;
  counted();
}

function moved() {
  settledAt = performance.now() + SETTLING_MS;
  list.dataset.settled = 'false';
  setTimeout(() => {
    if (performance.now() >= settledAt - 1) list.dataset.settled = 'true';
  }, SETTLING_MS);
}

/** A tool that is held back, as a question: another definition is another one. */
export function heldBack(tool) {
  return { workflowId: tool.tool, questionId: tool.definition, intent: `${tool.tool} is held back`, question: { type: 'held_back', ...tool } };
}

/** Brings the cards in line with what is asked. Cards that stay are left as they are: a person may be typing. */
export function show(open) {
  const asked = new Set(open.map(keyOf));
  for (const [key, card] of cards) {
    if (!asked.has(key) && !card.over) close(card, 'This is not asked any more: it was answered elsewhere, ended or expired.');
  }
  for (const item of open) {
    if (cards.has(keyOf(item))) continue;
    const card = build(item);
    cards.set(keyOf(item), card);
    list.append(card.node);
    moved();
  }
  counted();
}

function keyOf(item) {
  return `${item.workflowId}/${item.questionId}`;
}

function counted() {
  changed({ waiting: [...cards.values()].filter((card) => !card.over).length, all: cards.size });
}

function build(item) {
  const { workflowId, question } = item;
  const heading = said('h2', item.intent || 'A run without an intent');
  const meta = el('p', { class: 'meta' });
  const problem = el('p', { class: 'problem', role: 'alert', hidden: true });
  const node = el('article', { class: 'card', tabindex: '0', 'data-run': workflowId, 'data-question': item.questionId },
    el('header', {}, heading, meta), body(workflowId, question), problem);
  const card = { item, node, meta, problem, over: false };
  node.append(foot(card));
  node.addEventListener('opened', () => hold(card));
  node.addEventListener('keydown', (event) => keyed(card, event));
  hold(card);
  return card;
}

/** Brings the times on the cards up to date. */
export function times() {
  const now = Date.now();
  for (const { item, meta, over } of cards.values()) {
    if (over) continue;
    const text = item.askedAt === undefined ? [] : [`asked ${span(now - item.askedAt)} ago`];
    if (item.session) text.push(`by ${item.session}`);
    if (item.expiresAt) text.push(`expires in ${span(item.expiresAt - now)}`);
    text.push(item.workflowId);
    const fresh = text.join(' · ');
    if (meta.dataset.text !== fresh) {
      meta.dataset.text = fresh;
      fill((meta.replaceChildren(), meta), fresh);
    }
  }
}

/** What can be said to it. */
function foot(card) {
  const { question } = card.item;
  if (question.type === 'layer') {
    return el('footer', {}, el('div', { class: 'actions' },
      button('Continue', 'primary approve', () => send(card, { approved: true }, 'Continued'))));
  }
  if (question.type === 'sign_in') {
    return el('footer', {}, el('div', { class: 'actions' },
      button('Try again', 'primary approve', () => send(card, { approved: true }, 'Tried again')),
      button('Go on without', 'danger', () => send(card, { approved: false }, 'Gone on without'))));
  }
  if (question.type === 'in_doubt') {
    return el('footer', {}, el('div', { class: 'actions' }, button('Go on', 'primary approve', () => resolve(card))));
  }
  if (question.type === 'held_back') {
    const accept = () => send(card, { definition: question.definition }, 'Accepted');
    return el('footer', {}, el('div', { class: 'actions' }, button('Accept as shown', 'primary approve', accept)));
  }
  const reason = el('input', { type: 'text', placeholder: 'Reason, told to the agent (optional)', 'aria-label': 'Reason', maxlength: '1000' });
  const denial = el('form', { class: 'denial', hidden: true }, reason,
    el('button', { class: 'danger', type: 'submit' }, 'Deny'), button('Cancel', '', () => { denial.hidden = true; }));
  denial.addEventListener('submit', (event) => {
    event.preventDefault();
    if (settled()) send(card, { approved: false, ...(reason.value.trim() && { reason: reason.value.trim() }) }, 'Denied');
  });
  card.deny = () => {
    denial.hidden = false;
    reason.focus();
  };
  return el('footer', {},
    el('div', { class: 'actions' },
      button('Approve', 'primary approve', () => send(card, { approved: true }, 'Approved')),
      button('Deny…', 'danger', card.deny)),
    denial, more(card));
}

function more(card) {
  const most = el('input', { type: 'number', min: '1', max: '1000', value: '10', 'aria-label': 'Most calls' });
  const only = el('select', { 'aria-label': 'Where it counts' },
    el('option', { value: 'code' }, 'this code'), el('option', { value: 'tool' }, 'these tools in any code'));
  const days = el('input', { type: 'number', min: '1', max: '365', value: '30', 'aria-label': 'Days' });
  const any = el('input', { type: 'checkbox' });
  return el('details', { class: 'ways' }, el('summary', {}, 'More ways to approve'),
    el('div', { class: 'way' },
      el('p', {}, 'In this run, allow these tools with any arguments, each for at most ', most, ' calls.'),
      button('Approve any arguments', 'approve', () => {
        if (most.reportValidity()) send(card, { approved: true, anyArguments: most.valueAsNumber }, 'Approved, with any arguments');
      })),
    el('div', { class: 'way' },
      el('p', {}, 'Do not ask again for ', only, ' for ', days, ' days, ', el('label', {}, any, ' whatever the arguments'), '.'),
      button('Approve and don’t ask again', 'approve', () => {
        if (!days.reportValidity()) return;
        const remember = { only: only.value, anyArguments: any.checked, days: days.valueAsNumber };
        send(card, { approved: true, remember }, 'Approved, and not asked again');
      })));
}

function button(text, style, act) {
  const node = el('button', { type: 'button', class: style || undefined }, text);
  node.addEventListener('click', () => {
    if (settled()) act();
  });
  return node;
}

function settled() {
  return performance.now() >= settledAt;
}

/** Nothing can be approved that has not been seen. */
function hold(card) {
  const unseen = card.node.querySelector('[data-unopened]') !== null;
  for (const approve of card.node.querySelectorAll('button.approve')) approve.disabled = unseen || Boolean(card.busy);
}

function resolve(card) {
  const calls = [];
  for (const { call } of card.item.question.calls) {
    const chosen = card.node.querySelector(`input[data-call="${call}"]:checked`);
    if (!chosen) return complain(card, `Say what became of call ${call}.`);
    calls.push({ call, verdict: chosen.value });
  }
  return send(card, { calls }, 'Answered');
}

async function send(card, answer, done) {
  if (card.busy || card.over) return;
  card.busy = true;
  hold(card);
  card.problem.hidden = true;
  try {
    await sendTo('POST', where(card.item), answer);
    close(card, `${done}.`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 'UNREACHABLE') {
      complain(card, 'PML does not answer, so it is not known whether your answer arrived. Try again: only the first one counts.');
    } else if (error.status === 409 || error.status === 410 || error.status === 404) {
      close(card, error.text);
    } else {
      complain(card, error.text);
    }
  } finally {
    card.busy = false;
    if (!card.over) hold(card);
    look();
  }
}

function where({ workflowId, questionId, question }) {
  const [first, second] = [workflowId, questionId].map(encodeURIComponent);
  return question.type === 'held_back' ? `/api/quarantine/${first}` : `/api/approvals/${first}/${second}`;
}

function complain(card, text) {
  fill((card.problem.replaceChildren(), card.problem), text);
  card.problem.hidden = false;
}

/** Leaves one line of a card: what became of it. */
function close(card, text) {
  card.over = true;
  const key = keyOf(card.item);
  const line = said('p', text, { class: 'outcome', role: 'status' });
  const away = button('Dismiss', 'quiet', () => {
    cards.delete(key);
    card.node.remove();
    moved();
    counted();
  });
  card.node.classList.add('over');
  card.node.replaceChildren(el('div', {}, said('h2', card.item.intent || 'A run without an intent'), line), away);
  moved();
  counted();
}

async function keyed(card, event) {
  // Only on the card itself: letters typed into its fields are letters.
  if (event.target !== card.node || event.ctrlKey || event.metaKey || event.altKey || card.over) return;
  if (event.key === 'd' && card.deny) {
    event.preventDefault();
    card.deny();
  }
  if (event.key === 'a' && card.item.question.type === 'approval') {
    event.preventDefault();
    if (card.node.querySelector('[data-unopened]')) return complain(card, 'Open the large values first.');
    const asked = { title: 'Approve?', text: `${card.item.intent}\n${summary(card.item.question)}`, yes: 'Approve' };
    if (await confirm(asked)) send(card, { approved: true }, 'Approved');
    else card.node.focus();
  }
}

/** Goes to the run that the address names, once. Says whether the run asks something; `true` if none is named. */
export function follow(hash) {
  const wanted = decoded(hash.slice(1));
  if (!wanted || linked === wanted) return true;
  linked = wanted;
  const card = [...cards.values()].find(({ item }) => item.workflowId === wanted);
  if (!card) return false;
  card.node.scrollIntoView({ block: 'start' });
  card.node.focus({ preventScroll: true });
  return true;
}

/** Forgets which link was followed, so that the same one leads there again. */
export function unfollow() {
  linked = null;
}
