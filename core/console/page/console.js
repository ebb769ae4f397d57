// SPDX-License-Identifier: Apache-2.0
//
// The console. Whatever comes from a message or a server is made a text node, never markup: there is no innerHTML here, and the
// page's security policy allows none. A page is a function that returns what to show; what is on it is asked for anew while it is
// looked at, and put in place of the old where it differs.
'use strict';

const $ = (id) => document.getElementById(id);
const state = { session: null, status: null, before: [], plan: [], history: null, isLive: false, failed: null, told: null, next: null, seeks: false };

// ---- elements -------------------------------------------------------------------------------

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

// What would show as nothing, or turn the text around it, is shown by its name.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
function nameOf(character) {
  const code = character.charCodeAt(0);
  return code < 0x20 ? '\\x' + code.toString(16).padStart(2, '0') : 'U+' + code.toString(16).toUpperCase().padStart(4, '0');
}
function visible(text) {
  const parts = [];
  let from = 0;
  for (const match of String(text).matchAll(hidden)) {
    if (parts.length > 4000) break;
    parts.push(text.slice(from, match.index), el('span', { class: 'control' }, nameOf(match[0])));
    from = match.index + match[0].length;
  }
  return [...parts, String(text).slice(from)];
}

// What is no plain text comes in hexadecimal digits, under another name.
function value(object, name) {
  if (object[name] !== undefined && object[name] !== null) return object[name];
  const digits = object[name + '_hex'];
  if (digits === undefined) return '';
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(digits.match(/../g) || [], (pair) => parseInt(pair, 16)));
  } catch (error) { return '0x' + digits; }
}

// ---- numbers and times ----------------------------------------------------------------------

function number(n) {
  if (n === null || n === undefined) return '\u2013';
  const size = Math.abs(n);
  if (size >= 1e6) return (n / 1e6).toFixed(size >= 1e7 ? 0 : 1) + ' M';
  if (size >= 1e4) return (n / 1e3).toFixed(size >= 1e5 ? 0 : 1) + ' k';
  if (size >= 100 || Number.isInteger(n)) return n.toFixed(0);
  return n.toFixed(size >= 10 ? 1 : 2).replace(/\.?0+$/, '');
}
function span(seconds) {
  if (seconds === null || seconds === undefined) return '\u2013';
  if (seconds === 0) return '0\u00a0s';
  if (seconds < 0.00995) return number(Math.round(seconds * 1e5) / 100) + '\u00a0ms';
  if (seconds < 1) return Math.round(seconds * 1000) + '\u00a0ms';
  if (seconds < 120) return number(seconds) + '\u00a0s';
  if (seconds < 7200) return Math.round(seconds / 60) + '\u00a0min';
  if (seconds < 172800) return number(Math.round(seconds / 360) / 10) + '\u00a0h';
  return Math.round(seconds / 86400) + '\u00a0d';
}
function bytes(n) {
  if (n < 1024) return n + (n === 1 ? ' byte' : ' bytes');
  return n < 1048576 ? (n / 1024).toFixed(1) + ' KiB' : (n / 1048576).toFixed(1) + ' MiB';
}
const whole = (n) => n.toLocaleString('en');
function when(text) {
  if (!text) return '\u2013';
  const distance = (Date.now() - Date.parse(text)) / 1000;
  const words = Math.abs(distance) < 2 ? 'now' : distance < 0 ? 'in ' + span(Math.round(-distance)) : span(Math.round(distance)) + ' ago';
  return el('time', { datetime: text, title: text.replace('T', ' ').replace('Z', ' UTC') }, words);
}
const utc = (text) => (text || '').replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
const plural = (n, one, many) => (n === 'all' ? 'all' : n) + ' ' + (n === 1 ? one : many || one + 's');

// ---- asking -----------------------------------------------------------------------------------

class Refusal extends Error {
  constructor(status, text) { super(text); this.status = status; }
}
async function reach(path, options) {
  try {
    return await fetch(path, { credentials: 'same-origin', cache: 'no-store', redirect: 'error', ...options });
  } catch (error) {
    throw new Refusal(0, 'Waybill does not answer. It may have stopped.');
  }
}
async function ask(path, options) {
  const answer = await reach(path, options);
  const content = await answer.json().catch(() => ({}));
  if (answer.status === 401 && state.session.signed_in) {
    state.session = { ...state.session, signed_in: false };
    route();
  }
  if (!answer.ok) throw new Refusal(answer.status, content.error || 'status ' + answer.status);
  return content;
}
const query = (given) => '?' + new URLSearchParams(Object.entries(given).filter((one) => one[1])).toString();

// ---- changing something -----------------------------------------------------------------------

const mayWrite = () => state.session && state.session.write;
const send = (path, given) => ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Waybill-Token': state.session.token || '' }, body: JSON.stringify(given) });

// Where the process was started anew and somebody signed in on another page of this browser, this one has the token of a session that is gone.
async function post(path, given) {
  const token = state.session.token;
  try { return await send(path, given); } catch (error) {
    if (error.status !== 403) throw error;
    state.session = await ask('/api/session');
    if (!state.session.signed_in) route();
    if (!state.session.token || state.session.token === token) throw error;
  }
  return send(path, given);
}

// Whether somebody means it; or what he filled in.
function confirmed(title, text, yes, kind, field) {
  return new Promise((resolve) => {
    const dialog = el('dialog', { 'aria-labelledby': 'asked' }), done = (value) => { dialog.close(); dialog.remove(); resolve(value); };
    const form = el('form', { onsubmit: (event) => { event.preventDefault(); done(field ? field.value || true : true); } }, el('h2', { id: 'asked' }, title), el('p', { class: 'muted' }, text),
      field ? el('label', null, field.getAttribute('aria-label'), field) : null,
      el('div', { class: 'row' }, el('button', { type: 'button', onclick: () => done(null) }, 'Cancel'), el('button', { type: 'submit', class: kind || 'main', autofocus: !field || null }, yes)));
    dialog.addEventListener('cancel', (event) => { event.preventDefault(); done(null); });
    dialog.append(form);
    document.body.append(dialog);
    dialog.showModal();
  });
}
function say(kind, ...words) {
  state.told = el('div', { class: 'note ' + kind, role: 'status', id: 'told' }, words);
  refresh(true);
}
// Many are done in several steps, each of which says whether there are more. What fails again meanwhile is not among them.
async function change(path, given, did) {
  let done = 0, left = 0, isOver = false;
  const unread = new Set(); // of all steps: one may come again
  try {
    while (!isOver) {
      const answer = await post(path, given);
      given = { ...given, until: answer.until };
      done += answer.done;
      left += answer.left_alone;
      for (const failure of answer.unreadable || []) unread.add(failure);
      isOver = !answer.more || !(answer.done || (answer.unreadable || []).length);
      if (!isOver) say('', `${done} ${did}, and more \u2026`);
    }
    const others = left ? ` ${plural(left, 'was', 'were')} left alone: somebody else has seen to ${left === 1 ? 'it' : 'them'} meanwhile.` : '';
    const unreadable = unread.size;
    const broken = unreadable ? ` ${plural(unreadable, 'cannot be read and waits', 'cannot be read and wait')} as before: open one to see why.` : '';
    say(done && !unreadable ? 'good' : 'warn', (done ? `${done} ${did}.` : `Nothing was ${did}.`) + others + broken);
  } catch (error) {
    say('bad', (done ? `${done} ${did}. Then: ` : '') + (error.status ? '' : 'Whether it was done is not known; look again, nothing is done twice. '), visible(error.message));
  }
}
async function retry(given, count, queue) {
  if (await confirmed('Retry ' + plural(count, 'message') + '?', ['Each goes back to the queue it failed in', queue ? [', ', visible(queue)] : null, ', with its id, once.'], 'Retry'))
    await change('/api/failures/retry', given, 'retried');
}
async function archive(given, count) {
  if (await confirmed('Archive ' + plural(count, 'message') + '?', 'Nothing is done with what is archived; it is kept until the retention is over.', 'Archive', 'danger'))
    await change('/api/failures/archive', given, 'archived');
}
const button = (name, kind, focus, click, type) => el('button', { type: type || 'button', class: kind, 'data-focus': focus, onclick: click }, name);

// ---- plots --------------------------------------------------------------------------------------

// Lines over the last hour; null: nothing is known of that step. Those that are higher than 1.2 times the rest still fit.
function plot(title, lines, unit, isLarge) {
  const max = state.history ? state.history.samples_max : 360, width = 360, height = 100;
  const top = Math.max(...lines.flatMap((line) => line.values.filter((v) => v !== null)), 0) * 1.1 || 1;
  const x = (i, length) => ((max - length + i) * width) / (max - 1), y = (v) => height - (v / top) * (height - 4);
  const drawing = svg('svg', { class: 'plot', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  for (const at of isLarge ? [0, height / 2, height] : [height])
    drawing.append(svg('line', { class: 'grid', x1: 0, x2: width, y1: at, y2: at }));
  lines.forEach((line, nth) => {
    let path = '', area = '', first = null, last = null;
    line.values.forEach((v, i) => {
      if (v === null) { if (first !== null) area += `L${last} ${height}L${first} ${height}Z`; first = null; return; }
      const at = x(i, line.values.length).toFixed(1);
      path += `${first === null ? 'M' : 'L'}${at} ${y(v).toFixed(1)}`;
      area += `${first === null ? 'M' : 'L'}${at} ${y(v).toFixed(1)}`;
      if (first === null) { first = at; path += 'h.01'; }
      last = at;
    });
    if (first !== null) area += `L${last} ${height}L${first} ${height}Z`;
    if (nth === 0) drawing.append(svg('path', { class: 'area', d: area }));
    drawing.append(svg('path', { class: nth ? 'line second' : 'line', d: path }));
  });
  const now = lines.map((line) => lastOf(line.values));
  const words = lines.map((line, i) => (lines.length > 1 ? line.name + ' ' : '') + unit(now[i])).join(', ');
  const figure = el('figure', { role: 'img', 'aria-label': `${title} over the last hour: now ${words}` });
  const told = el('span', null, words);
  figure.append(el('figcaption', null, isLarge ? el('b', null, title) : el('span', null, title), isLarge ? told : el('span', null, unit(lastOf(lines[0].values)))),
    el('div', { class: 'drawn' }, drawing, isLarge ? el('span', { class: 'top', 'aria-hidden': 'true' }, unit(top)) : null));
  if (isLarge) {
    figure.append(el('div', { class: 'axis', 'aria-hidden': 'true' }, el('span', null, '1 h ago'), el('span', null, '30 min'), el('span', null, 'now')));
    follow(drawing, told, words, lines, unit, x, max);
    if (lines.length > 1) figure.append(el('div', { class: 'axis keys' }, lines.map((line, i) => el('span', { class: i ? 'key second' : 'key' }, line.name))));
  }
  return figure;
}

function follow(drawing, told, words, lines, unit, x, max) {
  const cross = svg('line', { class: 'cross', y1: 0, y2: 100, x1: 0, x2: 0 });
  drawing.append(cross);
  drawing.addEventListener('pointermove', (event) => {
    const box = drawing.getBoundingClientRect(), length = lines[0].values.length;
    const i = Math.round(((event.clientX - box.left) / box.width) * (max - 1)) - (max - length);
    if (i < 0 || i >= length) return;
    cross.setAttribute('x1', x(i, length));
    cross.setAttribute('x2', x(i, length));
    const ago = span((length - 1 - i) * state.history.step_seconds);
    told.textContent = ago + ' ago: ' + lines.map((line) => (lines.length > 1 ? line.name + ' ' : '') + unit(line.values[i])).join(', ');
  });
  drawing.addEventListener('pointerleave', () => { told.textContent = words; });
}

const perSecond = (v) => number(v) + '/s';
const historyOf = (name) => (state.history ? state.history.endpoints.find((one) => one.name === name) : null);

// ---- endpoints ----------------------------------------------------------------------------------

const moods = { running: 'good', degraded: 'warn', waiting: 'warn', starting: 'warn', stopping: 'warn', ended: 'bad' };
const pill = (text) => el('span', { class: 'pill ' + (moods[text] || 'bad') }, text);

// From the last seconds' events.
function rate(name, count) {
  const of = (status) => status.endpoints.find((one) => one.name === name);
  const first = state.before[0], last = state.before.at(-1);
  if (!first || first === last || !of(first.status) || !of(last.status)) return null;
  const seconds = (last.at - first.at) / 1000, grown = count(of(last.status)) - count(of(first.status));
  return seconds > 0 && grown >= 0 ? grown / seconds : null;
}
function figure(name, text, unit, mood) {
  return el('div', { class: mood }, el('dt', null, name), el('dd', null, text, unit ? el('small', null, unit) : null));
}
function lastOf(values) {
  for (let i = (values || []).length - 1; i >= 0 && i >= values.length - 6; i--) if (values[i] !== null) return values[i];
  return null;
}
function figures(one) {
  const past = historyOf(one.name), failed = rate(one.name, (e) => e.messages.failed) || 0;
  const list = [figure('Handled', number(rate(one.name, (e) => e.messages.handled) || 0), '/s'),
    figure('Failed attempts', number(failed), '/s', failed > 0 ? 'bad' : null),
    figure('Critical, 95 %', span(lastOf(past && past.critical_high))),
    figure('Moved to error', number(one.messages.moved), '', null)];
  if (one.pending) list.push(figure('Pending rows', number(one.pending.rows), one.pending.rows ? 'oldest ' + span(one.pending.oldest_seconds) : '', one.pending.parked ? 'warn' : null));
  return el('dl', { class: 'figures' }, list);
}
function plotsOf(name, isLarge) {
  const past = historyOf(name) || { handled: [], failed: [], critical_high: [], critical_mean: [], lag: [], pending: [] };
  const list = [plot(isLarge ? 'Handled and failed' : 'Rate', [{ name: 'handled', values: past.handled }, { name: 'failed', values: past.failed }], perSecond, isLarge),
    plot(isLarge ? 'Critical time' : 'Critical', [{ name: '95 %', values: past.critical_high }, { name: 'mean', values: past.critical_mean }], span, isLarge),
    plot(isLarge ? 'Oldest pending row' : 'Lag', [{ name: 'lag', values: past.lag }], span, isLarge)];
  if (isLarge) list.push(plot('Pending rows', [{ name: 'rows', values: past.pending }], number, true));
  return list;
}
function whatIsWrong(one) {
  const away = Object.entries(one.servers).filter((server) => server[1] === 'away').map((server) => server[0].replace(/_/g, ' '));
  const text = one.reason || (away.length ? 'waits for its ' + away.join(' and ') : '');
  return text ? el('p', { class: one.state === 'running' ? 'muted wrap' : 'note wrap' }, visible(text)) : null;
}

function endpointCard(one) {
  return el('section', { class: 'card', 'data-endpoint': one.name },
    el('div', { class: 'title' }, el('h2', null, el('a', { href: '#/endpoint/' + encodeURIComponent(one.name), 'data-focus': 'endpoint ' + one.name }, one.name)),
      el('span', { class: 'end' }, el('span', { class: 'tag' }, one.transport + (one.persistence ? ' + ' + one.persistence : '')), pill(one.state))),
    el('div', { class: 'body' }, whatIsWrong(one), figures(one), el('div', { class: 'sparks' }, plotsOf(one.name, false))));
}

const pageEndpoints = {
  title: 'Endpoints', isLive: true,
  async load() { if (!state.status) state.status = await ask('/api/status'); await loadHistory(); },
  show() {
    return [el('div', { class: 'head' }, el('h1', null, 'Endpoints'), el('span', { class: 'muted' }, plural(state.status.endpoints.length, 'endpoint') + ' in this process, since ', el('span', { class: 'nowrap' }, utc(state.status.started)))),
      el('div', { class: 'endpoints' }, state.status.endpoints.map(endpointCard))];
  },
};

function facts(list) {
  return el('dl', { class: 'facts' }, list.filter((one) => one && one[1] !== undefined && one[1] !== null).map((one) => [el('dt', null, one[0]), el('dd', null, one[1])]));
}
function planCard(plan) {
  const known = plan.outbox ? [plan.by_position ? 'positions' : null, plan.by_id ? 'ids' : null].filter(Boolean).join(' and ') : null;
  const list = plan.send_only ? [['Mode', 'send-only: it has no queue']] : [['Transaction mode', plan.mode],
    ['Outbox', plan.outbox ? 'on; duplicates are known by ' + known : 'off'], ['Deduplication store', plan.deduplication_store],
    ['Retries', `${plan.immediate_retries} immediate, ${plan.delayed_retries} delayed`], ['Error queue', plan.error_queue], ['Audit queue', plan.audit_queue],
    ['Keeps failures of', plan.failures_from && plan.failures_from.join(', ')], ['Workers', String(plan.concurrency)]];
  return el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'Plan'), el('span', { class: 'muted' }, 'as negotiated with its plugins')),
    el('div', { class: 'body' }, facts([['Transport', plan.transport], ['Persistence', plan.persistence || 'none'], ...list, ['Who sends', plan.who_sends],
      ['Delays', plan.delay_by === 'none' ? 'nobody: what is due later is refused' : 'by the ' + plan.delay_by], ['Time to be received', plan.expiry ? 'honoured' : 'refused']])));
}
function handlersCard(plan) {
  if (!plan.handlers.length) return null;
  return el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'Handlers'), el('span', { class: 'muted' }, plural(plan.handlers.length, 'type'))),
    el('div', { class: 'scroll' }, el('table', null, el('thead', null, el('tr', null, el('th', null, 'Type'), el('th', null, 'Module'))),
      el('tbody', null, plan.handlers.map((one) => el('tr', null, el('td', { class: 'wrap' }, visible(one.type), one.batch ? [' ', el('span', { class: 'tag' }, 'batches')] : null),
        el('td', { class: 'wrap muted' }, one.module.split('/').pop())))))));
}
function countsCard(one) {
  const labels = { handled: 'Handled', failed: 'Attempts failed', moved: 'Moved to the error queue', duplicates: 'Duplicates', retried_later: 'Delayed retries',
    discarded: 'Discarded', parked: 'Parked', expired: 'Expired', in_hand: 'In hand' };
  const w = one.workers;
  return el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'Since it was started')),
    el('div', { class: 'body' }, facts([...Object.entries(labels).map((label) => [label[1], one.messages[label[0]] === undefined ? null : one.messages[label[0]].toLocaleString('en')]),
      ['Operations sent', one.operations_sent.toLocaleString('en')],
      ['Workers', `${w.working} working` + (w.missing ? `, ${w.missing} missing` : '') + (w.stuck ? `, ${w.stuck} stuck` : '')],
      ...Object.entries(one.servers).map((server) => [server[0][0].toUpperCase() + server[0].slice(1).replace(/_/g, ' '), server[1] === 'there' ? 'there' : el('span', { class: 'pill bad' }, 'away')])])));
}
const pageEndpoint = (name) => ({
  title: name, isLive: true, nav: '#/',
  load: pageEndpoints.load,
  show() {
    const one = state.status.endpoints.find((e) => e.name === name), plan = state.plan.find((p) => p.name === name);
    if (!one || !plan) return [el('a', { class: 'back', href: '#/' }, '\u2190 Endpoints'), nothing('There is no such endpoint here', 'It is not in the configuration that this process runs.')];
    const keeps = plan.keeps, q = query({ endpoint: name });
    return [el('a', { class: 'back', href: '#/' }, '\u2190 Endpoints'),
      el('div', { class: 'head' }, el('h1', null, name), pill(one.state),
        el('span', { class: 'end' }, keeps.failures ? el('a', { class: 'button', href: '#/failures' + q }, 'Failed messages') : null,
          keeps.delayed ? el('a', { class: 'button', href: '#/delayed' + q }, 'Delayed') : null, keeps.pending ? el('a', { class: 'button', href: '#/pending' + q }, 'Pending') : null)),
      whatIsWrong(one),
      el('section', { class: 'card' }, el('div', { class: 'body' }, figures(one))),
      el('div', { class: 'plots' }, plotsOf(name, true).map((p) => el('section', { class: 'card' }, el('div', { class: 'body' }, p)))),
      el('div', { class: 'two' }, planCard(plan), el('div', null, countsCard(one), handlersCard(plan)))];
  },
});

// ---- tables -------------------------------------------------------------------------------------

function nothing(title, text) { return el('div', { class: 'card empty' }, el('strong', null, title), text); }
function table(names, rows) {
  return el('div', { class: 'scroll' }, el('table', { class: 'stack' }, el('thead', null, el('tr', null, names.map((name) => el('th', { class: name.right ? 'right' : null, scope: 'col' }, name.text ?? name)))),
    el('tbody', null, rows.map((cells) => el('tr', null, cells.map((cell, i) => { cell.setAttribute('data-name', names[i].text ?? names[i]); return cell; }))))));
}
const td = (content, kind) => el('td', { class: kind }, content);
function pages(given, path, hasMore, count) {
  const skip = Number(given.skip || 0);
  if (!skip && !hasMore) return null;
  const to = (n) => path + query({ ...given, skip: n || '' });
  return el('div', { class: 'more head' }, el('span', { class: 'muted' }, count ? `${skip + 1} to ${skip + count}` : ''), el('span', { class: 'end' },
    skip ? el('a', { class: 'button', href: to(Math.max(skip - 50, 0)), 'data-focus': 'earlier' }, '\u2190 Earlier') : null,
    hasMore ? el('a', { class: 'button', href: to(skip + count), 'data-focus': 'later' }, 'Later \u2192') : null));
}
// There is none, or none any more so far behind.
function none(given, path, title, text) {
  return Number(given.skip) ? [nothing('None is left on this page', 'There may be some on those before it.'), pages(given, path, false, 0)] : nothing(title, text);
}
// Of those endpoints that have such a table; nothing to choose from where there is one.
function chooser(kind, given, path) {
  const suited = state.plan.filter((plan) => plan.keeps[kind]);
  if (suited.length < 2) return null;
  return el('select', { 'aria-label': 'Endpoint', 'data-focus': 'chooser', onchange: (event) => { location.hash = path + query({ ...given, skip: '', endpoint: event.target.value }); } },
    suited.map((plan) => el('option', { value: plan.name, selected: plan.name === given.endpoint || null }, plan.name)));
}
const keeper = (kind) => state.plan.some((plan) => plan.keeps[kind]);

// ---- failed messages ------------------------------------------------------------------------------

const statuses = ['failed', 'retrying', 'resolved', 'archived'];
const unkept = () => nothing('No endpoint of this process keeps failed messages', ['Add one with a group ', el('code', null, 'failures = { from = ["error"]; }'), ' and they are shown here.']);
const statusPill = (status) => el('span', { class: 'pill ' + ({ failed: 'bad', retrying: 'warn', resolved: 'good' }[status] || '') }, status);

function statusTabs(given, counts) {
  return el('div', { class: 'tabs', role: 'navigation', 'aria-label': 'Status' }, statuses.map((status) => el('a', { href: '#/failures' + query({ endpoint: given.endpoint, status }), 'data-focus': 'status ' + status,
    'aria-current': (given.status || 'failed') === status ? 'page' : null }, status[0].toUpperCase() + status.slice(1), el('span', { class: 'number' }, number(counts[status] || 0)))));
}
const finders = { id: 'Message id', failure: 'Failure', type: 'Type', of: 'Endpoint', queue: 'Queue', reason: 'Reason has' };
// A page keeps it while it is asked for anew: what is typed in it stays.
function searchForm(given) {
  const by = Object.keys(finders).find((name) => given[name]) || 'id';
  const what = el('select', { 'aria-label': 'Find by', 'data-focus': 'find by' }, Object.entries(finders).map(([name, words]) => el('option', { value: name, selected: name === by }, words)));
  const text = el('input', { type: 'search', 'aria-label': 'Find', placeholder: 'Find', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', 'data-focus': 'search', value: given[by] || '' });
  const time = (name, words) => el('label', null, words, el('input', { type: 'datetime-local', name, 'data-focus': 'find ' + name, value: (given[name] || '').slice(0, 16) }));
  const from = time('from', 'Failed from, UTC'), before = time('before', 'and before');
  const at = (label) => (label.lastChild.value ? label.lastChild.value.slice(0, 16) + ':00Z' : '');
  const find = (event) => {
    event.preventDefault();
    const asked = query({ endpoint: given.endpoint, [what.value]: text.value.trim(), from: at(from), before: at(before) });
    const to = text.value.trim() || at(from) || at(before) ? '#/failures/found' + asked : '#/failures' + asked.replace(/\?$/, '');
    if (location.hash === to) refresh(true); else location.hash = to;
  };
  return el('form', { class: 'find', role: 'search', 'aria-label': 'Failed messages', onsubmit: find }, what, text, button('Find', '', 'find', null, 'submit'),
    el('details', { open: Boolean(given.from || given.before) }, el('summary', { 'data-focus': 'by time' }, 'By time'), el('div', { class: 'times' }, from, before)));
}
const unreadableNote = (count) => el('p', { class: 'note', id: 'unreadable' }, `${number(count)} kept by a later version, which this one cannot read: left alone.`);
const pageFailures = (given) => ({
  title: 'Failed messages', nav: '#/failures', every: 5, isCount: !given.endpoint,
  async load() { this.data = keeper('failures') ? await ask('/api/failures/groups' + query(given)) : null; if (this.data && this.isCount) noteFailed(this.data); },
  show() {
    if (!this.data) return [el('div', { class: 'head' }, el('h1', null, 'Failed messages')), unkept()];
    const groups = this.data.groups.sort((a, b) => b.count - a.count || (a.group < b.group ? -1 : 1)), status = given.status || 'failed', canRetry = mayWrite() && status === 'failed';
    this.search ||= searchForm(given);
    return [el('div', { class: 'head' }, el('h1', null, 'Failed messages'), el('span', { class: 'end' }, chooser('failures', given, '#/failures'), statusTabs(given, this.data.counts))),
      this.search, this.data.unreadable ? unreadableNote(this.data.unreadable) : null,
      this.data.more ? el('p', { class: 'note', id: 'more-groups' }, `There are more reasons than these ${number(groups.length)}, the first ones. Find messages by type, endpoint or time.`) : null,
      groups.length === 0 ? (this.data.unreadable ? null : status === 'failed' ? nothing('Nothing waits for you', 'No message has failed and was not seen to.') : nothing('None is ' + status, 'Those that are stay here until the retention is over.'))
        : el('section', { class: 'card', id: 'groups' }, table(['Reason and type', 'Failed in', { text: 'Messages', right: true }, 'First', 'Last', ...(canRetry ? [{ text: '', right: true }] : [])], groups.map((g) => [
          td(el('a', { href: '#/failures/group/' + g.group + query({ endpoint: given.endpoint, status: given.status }), 'data-focus': 'group ' + g.group },
            [el('span', { class: 'clamp' }, visible(value(g, 'reason') || 'no reason is known')), el('span', { class: 'sub' }, visible(value(g, 'type') || 'no type'))]), 'grow'),
          td(visible(value(g, 'endpoint') || value(g, 'queue')), 'wrap'), td(number(g.count), 'right'), td(when(g.first), 'nowrap'), td(when(g.last), 'nowrap'),
          ...(canRetry ? [td(button('Retry', 'small', 'retry ' + g.group, () => retry({ endpoint: this.data.endpoint, group: g.group }, g.count, '')), 'right')] : [])])))];
  },
});
// Whatever became of them: who has an id wants to know just that.
const pageFound = (given) => ({
  title: 'Failed messages found', nav: '#/failures', every: 5,
  async load() { this.data = await ask('/api/failures' + query({ ...given, status: given.status || 'any' })); },
  show() {
    const list = this.data.messages;
    this.search ||= searchForm(given);
    const words = Object.keys(finders).filter((name) => given[name]).map((name) => [finders[name] + ' ', el('span', { class: 'mono wrap' }, visible(given[name]))]);
    return [el('a', { class: 'back', href: '#/failures' + query({ endpoint: given.endpoint }) }, '\u2190 Failed messages'),
      el('div', { class: 'head' }, el('h1', null, 'Found'), el('span', { class: 'muted' }, words, given.from ? ' from ' + utc(given.from).replace('Z', ' UTC') : null, given.before ? ' before ' + utc(given.before).replace('Z', ' UTC') : null)),
      this.search, list.length === 0 ? none(given, '#/failures/found', 'No failed message is like that', 'Ids, types, endpoints and queues are compared whole, letter by letter; of a reason a part is enough.')
        : el('section', { class: 'card', id: 'found' }, table(['Message and reason', 'Status', 'Failed in', 'Failed'], list.map((m) => [
          td([el('a', { class: 'mono wrap', href: '#/failures/message/' + encodeURIComponent(value(m, 'failure')) + query({ endpoint: given.endpoint }), 'data-focus': 'message ' + m.failure }, visible(value(m, 'id') || 'no id')),
            el('span', { class: 'sub wrap' }, visible(value(m, 'type') || 'no type')), el('span', { class: 'sub clamp' }, visible(value(m, 'reason')))], 'grow'),
          td(statusPill(m.status)), td(visible(value(m, 'endpoint') || value(m, 'queue')), 'wrap'), td(when(m.failed_at), 'nowrap')])), pages(given, '#/failures/found', this.data.more, list.length))];
  },
});
const pageGroup = (group, given) => ({
  title: 'A group of failed messages', nav: '#/failures', every: 5, chosen: new Set(),
  async load() { this.data = await ask('/api/failures' + query({ ...given, group })); },
  show() {
    const list = this.data.messages, first = list[0];
    const back = el('a', { class: 'back', href: '#/failures' + query({ endpoint: given.endpoint, status: given.status }) }, '\u2190 Failed messages');
    if (!first) return [back, none(given, '#/failures/group/' + group, 'None is left here', 'Somebody has seen to them, or they were handled.')];
    return [back, el('div', { class: 'head' }, el('h1', null, visible(value(first, 'type') || 'No type')), statusPill(first.status), el('span', { class: 'tag mono' }, group), this.deeds(list)),
      el('div', { class: 'reason' }, visible(value(first, 'reason'))),
      el('section', { class: 'card' }, table(['Message', 'Failed in', { text: 'Attempts', right: true }, 'Failed'], list.map((m) => [
        td([this.canChange(list) ? this.choice(m) : null, el('a', { class: 'mono wrap', href: '#/failures/message/' + encodeURIComponent(value(m, 'failure')) + query({ endpoint: given.endpoint }), 'data-focus': 'message ' + m.failure }, visible(value(m, 'id') || 'no id')),
          value(m, 'reason') === value(first, 'reason') ? null : el('span', { class: 'sub clamp' }, visible(value(m, 'reason')))], 'grow'),
        td(visible(value(m, 'endpoint') || value(m, 'queue')), 'wrap'), td(String(m.attempts), 'right'), td(when(m.failed_at), 'nowrap')])), pages(given, '#/failures/group/' + group, this.data.more, list.length))];
  },
  canChange(list) { return mayWrite() && (list[0].status === 'failed' || list[0].status === 'retrying'); },
  choice(m) {
    const key = value(m, 'failure');
    return el('input', { type: 'checkbox', 'aria-label': 'Choose ' + value(m, 'id'), 'data-focus': 'choose ' + key, checked: this.chosen.has(key) || null,
      onchange: (event) => { if (event.target.checked) this.chosen.add(key); else this.chosen.delete(key); put(this.show()); } });
  },
  deeds(list) {
    if (!this.canChange(list)) return null;
    const chosen = list.map((m) => value(m, 'failure')).filter((key) => this.chosen.has(key)), status = list[0].status, endpoint = this.data.endpoint;
    const which = chosen.length ? { endpoint, status, failures: chosen } : { endpoint, status, group }, words = chosen.length ? `${chosen.length} chosen` : 'all';
    const count = chosen.length || (this.data.more || given.skip ? 0 : list.length), name = count ? count : 'all';
    return el('span', { class: 'end' }, status === 'failed' ? button(`Retry ${words}`, 'main', 'retry', () => retry(which, name, value(list[0], 'queue'))) : null,
      button(`Archive ${words}`, 'danger', 'archive', () => archive(which, name)));
  },
});

// ---- one failed message -----------------------------------------------------------------------------

// As it was written, but for blanks between: no number changes, no name is lost. What is nested deeper than people read stays as it is.
function prettyJson(text) {
  const parts = [], tokens = text.matchAll(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null|[{}[\],:]/g);
  let depth = 0, before = '', line = '';
  const flush = () => { if (line) parts.push(line); line = ''; };
  const mark = (kind, token) => { flush(); parts.push(el('span', { class: kind }, visible(token))); };
  for (const [token] of tokens) {
    if (depth > 100) return visible(text); // each step is written before each line
    if (token === '}' || token === ']') { depth--; if (before !== '{' && before !== '[') line += '\n' + '  '.repeat(depth); line += token; }
    else {
      if (before === '{' || before === '[' || before === ',') line += '\n' + '  '.repeat(depth);
      if (token === '{' || token === '[') { line += token; depth++; }
      else if (token === ',') line += token;
      else if (token === ':') { const last = parts.at(-1); if (!line && last.className === 'j-string') last.className = 'j-key'; line += ': '; }
      else mark(token[0] === '"' ? 'j-string' : /[-\d]/.test(token[0]) ? 'j-number' : 'j-word', token);
    }
    before = token;
  }
  flush();
  return parts;
}
function hexDump(digits) {
  const lines = [];
  for (let at = 0; at < digits.length; at += 32) {
    const pairs = digits.slice(at, at + 32).match(/../g);
    const letters = pairs.map((pair) => { const c = parseInt(pair, 16); return c >= 0x20 && c < 0x7f ? String.fromCharCode(c) : '\u00b7'; }).join('');
    lines.push((at / 2).toString(16).padStart(8, '0') + '  ' + (pairs.slice(0, 8).join(' ') + '  ' + pairs.slice(8).join(' ')).padEnd(50) + letters);
  }
  return lines.join('\n');
}
function isJson(m) {
  if (m.body === undefined || m.body_is_cut || !/^\s*[[{]/.test(m.body)) return false;
  try { JSON.parse(m.body); return true; } catch (error) { return false; }
}
function bodyCard(m, endpoint) {
  const kinds = { JSON: isJson(m) ? () => el('pre', { class: 'text', tabindex: 0 }, m.body.length > 65536 ? visible(m.body) : prettyJson(m.body)) : null,
    Text: m.body !== undefined ? () => el('pre', { class: 'text', tabindex: 0 }, visible(m.body)) : null,
    Hex: () => el('pre', { tabindex: 0 }, hexDump(m.body_hex)) };
  const names = Object.keys(kinds).filter((kind) => kinds[kind]), shown = el('div', { role: 'tabpanel' });
  const choose = (kind) => { shown.replaceChildren(kinds[kind]()); for (const button of buttons) button.setAttribute('aria-selected', button.dataset.kind === kind); };
  const buttons = names.map((kind) => el('button', { role: 'tab', type: 'button', 'data-kind': kind, onclick: () => choose(kind) }, kind));
  const card = el('section', { class: 'card', id: 'body' }, el('div', { class: 'title' }, el('h2', null, 'Body'), el('span', { class: 'muted' }, bytes(m.body_size) + (m.body_is_cut ? ', its beginning is shown' : '')),
    el('span', { class: 'end' }, el('span', { class: 'tabs', role: 'tablist' }, buttons), el('a', { class: 'button', href: '/api/failures/body' + query({ endpoint, failure: value(m, 'failure') }), download: 'body' }, 'Save'))), shown);
  if (m.body_size) choose(names[0]);
  else shown.append(el('p', { class: 'body muted' }, 'It is empty.'));
  return card;
}
function headersCard(headers) {
  const names = Object.keys(headers).sort();
  return el('section', { class: 'card', id: 'headers' }, el('div', { class: 'title' }, el('h2', null, 'Headers'), el('span', { class: 'muted' }, String(names.length))),
    el('div', { class: 'scroll' }, el('table', { class: 'headers' }, el('tbody', null, names.map((name) => el('tr', null, el('td', null, visible(name)), el('td', null, visible(headers[name]))))))));
}
function historyCard(m) {
  const sent = m.headers['NServiceBus.TimeSent'], list = [];
  if (sent) list.push(['Sent', sent.replace(/:\d{6} Z$/, ' UTC')]);
  list.push([m.attempts > 1 ? `Failed ${m.attempts} times, the last one` : 'Failed', utc(m.failed_at)]);
  if (m.status === 'retrying') list.push(['Sent back to ' + value(m, 'queue') + '; nothing was heard of it yet', utc(m.changed_at)]);
  if (m.status === 'resolved') list.push(['Sent back, and handled', utc(m.changed_at)]);
  if (m.status === 'archived') list.push(['Archived', utc(m.changed_at)]);
  return el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'History')), el('div', { class: 'body' }, el('ol', { class: 'timeline' }, list.map((one) => el('li', null, visible(one[0]), el('time', null, visible(one[1])))))));
}
const pageMessage = (failure, given) => ({
  title: 'A failed message', nav: '#/failures', every: 5,
  async load() { this.data = await ask('/api/failures/message' + query({ ...given, failure })); },
  show() {
    const m = this.data, stack = m.headers['NServiceBus.ExceptionInfo.StackTrace'];
    return [el('a', { class: 'back', href: '#/failures/group/' + m.group + query({ endpoint: given.endpoint, status: m.status === 'failed' ? '' : m.status }) }, '\u2190 Its group'),
      el('div', { class: 'head' }, el('h1', null, visible(value(m, 'type') || 'No type')), statusPill(m.status), this.deeds(m)),
      el('div', { class: 'reason' }, visible(value(m, 'reason') || 'No reason is known.'), stack ? ['\n\n', visible(stack)] : null),
      el('div', { class: 'two' }, el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'Message')), el('div', { class: 'body' }, facts([['Id', el('span', { class: 'mono' }, visible(value(m, 'id')))],
        ['Endpoint', visible(value(m, 'endpoint'))], ['Queue', visible(value(m, 'queue'))], ['Kind', visible(value(m, 'kind'))], ['Attempts', String(m.attempts)], ['Failed', [when(m.failed_at), ', ', utc(m.failed_at)]], ['Failure', el('span', { class: 'mono' }, visible(value(m, 'failure')))]]))),
      historyCard(m)), bodyCard(m, given.endpoint), headersCard(m.headers)];
  },
  deeds(m) {
    if (!mayWrite() || (m.status !== 'failed' && m.status !== 'retrying')) return null;
    const which = { endpoint: given.endpoint, status: m.status, failures: [failure] };
    const edit = () => { location.hash = '#/failures/edit/' + encodeURIComponent(failure) + query({ endpoint: given.endpoint }); };
    return el('span', { class: 'end' }, m.status === 'failed' ? [button('Retry', 'main', 'retry', () => retry(which, 1, value(m, 'queue'))), button('Edit and retry', '', 'edit', edit)] : null, button('Archive', 'danger', 'archive', () => archive(which, 1)));
  },
});

// ---- delayed messages, pending rows -------------------------------------------------------------------

const pageDelayed = (given) => ({
  title: 'Delayed messages', nav: '#/delayed', every: 5,
  async load() { this.data = keeper('delayed') ? await ask('/api/delayed' + query(given)) : null; },
  show() {
    const head = el('div', { class: 'head' }, el('h1', null, 'Delayed messages'), el('span', { class: 'end' }, chooser('delayed', given, '#/delayed')));
    if (!this.data) return [head, nothing('No endpoint of this process has a store of delayed messages', 'What is due later waits at the broker.')];
    const list = this.data.messages;
    if (!list.length) return [head, none(given, '#/delayed', 'Nothing waits', 'No message of ' + this.data.endpoint + ' is due later.')];
    return [head, el('section', { class: 'card' }, table(['Message', 'To', 'Due', { text: 'Retries', right: true }, { text: 'Tries failed', right: true }, 'State'], list.map((m) => [
      td(el('a', { class: 'mono wrap', href: '#/delayed/message' + query({ endpoint: this.data.endpoint, id: m.id, destination: m.destination, retries: String(m.retries) }), 'data-focus': 'delayed ' + m.id }, visible(value(m, 'id'))), 'grow'),
      td(visible(value(m, 'destination')), 'wrap'), td(when(m.due), 'nowrap'), td(String(m.retries), 'right'), td(String(m.failures), 'right'),
      td(m.taken_until ? el('span', { class: 'pill warn' }, 'being sent') : el('span', { class: 'pill' }, 'waits'))])), pages(given, '#/delayed', this.data.more, list.length))];
  },
});
const pageDelayedOne = (given) => ({
  title: 'A delayed message', nav: '#/delayed', every: 5,
  async load() { this.data = await ask('/api/delayed/message' + query(given)); },
  show() {
    const m = this.data;
    return [el('a', { class: 'back', href: '#/delayed' + query({ endpoint: given.endpoint }) }, '\u2190 Delayed messages'),
      el('div', { class: 'head' }, el('h1', { class: 'mono' }, visible(value(m, 'id'))), el('span', { class: m.taken_until ? 'pill warn' : 'pill' }, m.taken_until ? 'being sent' : 'waits'), mayWrite() && m.id && m.destination ? this.deeds(m) : null),
      el('section', { class: 'card' }, el('div', { class: 'body' }, facts([['To', visible(value(m, 'destination'))], ['Due', [when(m.due), ', ', utc(m.due)]], ['Delayed retries', String(m.retries)], ['Tries that failed', String(m.failures)],
        ['Taken until', m.taken_until ? utc(m.taken_until) : null], ['Kind', m.kind], ['Body', m.body_size === undefined ? 'This version cannot read it.' : bytes(m.body_size)]]))), m.headers ? headersCard(m.headers) : null];
  },
  deeds(m) {
    const which = { endpoint: given.endpoint, id: m.id, destination: m.destination, retries: m.retries };
    const cancel = async () => { if (await confirmed('Cancel this message?', 'It was not sent, and never will be.', 'Cancel it', 'danger')) await change('/api/delayed/cancel', which, 'cancelled'); };
    const reschedule = async () => {
      const minutes = el('input', { type: 'number', min: 0, max: 5000000, step: 1, value: 0, required: true, 'aria-label': 'Due in so many minutes' });
      const text = await confirmed('Reschedule this message?', 'By the clock of its database; 0 is at once.', 'Reschedule', 'main', minutes);
      if (text !== null) await change('/api/delayed/reschedule', { ...which, delay_seconds: 60 * Number(minutes.value) }, 'rescheduled');
    };
    return el('span', { class: 'end' }, button('Reschedule', '', 'reschedule', reschedule), button('Cancel it', 'danger', 'cancel', cancel));
  },
});

function whyPending(row) {
  if (row.state === 'parked') return [visible(value(row, 'reason')), el('span', { class: 'sub' }, plural(row.tries, 'try', 'tries'), ', tried again ', when(row.due))];
  if (row.state === 'attempts') return 'A note of attempts; it goes with its message, or with the retention';
  if (row.state === 'unreadable') return 'A later version wrote it: this one leaves it alone';
  return row.age_seconds < 0 ? 'Of the future: a clock is wrong' : 'Committed and not sent yet: its worker does that, or the sweeper, once it is old enough';
}
const rowPills = { operations: ['', 'to be sent'], parked: ['bad', 'parked'], attempts: ['', 'note'], unreadable: ['warn', 'unreadable'] };
const pagePending = (given) => ({
  title: 'Pending rows', nav: '#/pending', every: 5,
  async load() { this.data = keeper('pending') ? await ask('/api/pending' + query(given)) : null; },
  show() {
    const head = el('div', { class: 'head' }, el('h1', null, 'Pending rows'), el('span', { class: 'end' }, chooser('pending', given, '#/pending')));
    if (!this.data) return [head, nothing('No endpoint of this process has an outbox', 'So nothing can stay in one.')];
    const rows = this.data.rows;
    if (!rows.length) return [head, nothing('Nothing is pending', 'All that ' + this.data.endpoint + ' committed has left.')];
    return [head, el('section', { class: 'card' }, table(['Why it stays', 'Operations', 'State', { text: 'Stored', right: true }], rows.map((row) => [
      td(whyPending(row), 'grow wrap'),
      td(row.operations.length ? el('details', null, el('summary', null, plural(row.operations.length, 'operation')), el('ul', null, row.operations.map((o) => el('li', { class: 'wrap' }, o.kind, ' to ', visible(value(o, 'destination')), el('span', { class: 'sub' }, visible(value(o, 'type')), ' ', el('span', { class: 'mono' }, visible(value(o, 'id')))))))) : '\u2013'),
      td(el('span', { class: 'pill ' + rowPills[row.state][0] }, rowPills[row.state][1])), td(row.stored ? when(row.stored) : '\u2013', 'right')])),
      this.data.more ? el('p', { class: 'more muted' }, 'There are more; these are the oldest.') : null)];
  },
});

// ---- signing in -----------------------------------------------------------------------------------------

async function signIn(token) {
  const options = { method: 'POST' };
  if (token !== null) {
    if (!/^[!-~]+$/.test(token)) throw new Refusal(401, 'this is not the token');
    options.headers = { Authorization: 'Bearer ' + token };
  }
  state.session = await ask('/api/session', options);
}
const pageSign = {
  title: 'Sign in',
  show() {
    const input = el('input', { type: 'password', name: 'token', autocomplete: 'current-password', required: true, spellcheck: 'false', 'data-focus': 'token' }), told = el('p', { class: 'note bad', hidden: true, role: 'alert' });
    const sign = async (event) => {
      event.preventDefault();
      try { await signIn(input.value); await begin(); } catch (error) { told.hidden = false; told.textContent = error.status === 401 ? 'This is not the token.' : error.message; input.select(); }
    };
    return el('form', { class: 'card sign', onsubmit: sign }, el('div', { class: 'body' }, el('h1', null, 'Sign in'), el('p', { class: 'muted' }, 'With the token of this process: ', el('code', null, 'http.token'), ' in its configuration.'), told, el('label', null, 'Token', input), el('button', { class: 'main', type: 'submit' }, 'Sign in')));
  },
};
async function signOut() { drafts.clear(); await ask('/api/session', { method: 'DELETE' }).catch(() => {}); location.reload(); }

// ---- which page ---------------------------------------------------------------------------------------------

const navigation = [['#/', 'Endpoints'], ['#/failures', 'Failed'], ['#/delayed', 'Delayed'], ['#/pending', 'Pending']];
let page = null, shown = '', timer = 0, turn = 0;

function find(hash) {
  const [path, search] = hash.replace(/^#?/, '').split('?');
  const given = Object.fromEntries(new URLSearchParams(search || '')), part = path.split('/').slice(1).map(decodeURIComponent);
  if (part[0] === 'endpoint' && part[1]) return pageEndpoint(part[1]);
  if (part[0] === 'failures') return part[1] === 'group' ? pageGroup(part[2], given) : part[1] === 'message' ? pageMessage(part[2], given) : part[1] === 'edit' ? pageEdit(part[2], given) : part[1] === 'found' ? pageFound(given) : pageFailures(given);
  if (part[0] === 'delayed') return part[1] === 'message' ? pageDelayedOne(given) : pageDelayed(given);
  if (part[0] === 'pending') return pagePending(given);
  return { ...pageEndpoints };
}

// What a page keeps of itself stays where it is, with what is typed there; all else takes the place of the old.
function place(parent, nodes) {
  for (const old of [...parent.childNodes]) if (!nodes.includes(old)) old.remove();
  nodes.forEach((node, i) => { if (parent.childNodes[i] !== node) parent.insertBefore(node, parent.childNodes[i] || null); });
}
// Where somebody is on the page stays where it is: the focus, what is open, how far he has scrolled.
function put(nodes) {
  const main = $('main'), focus = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.focus : null;
  const isOpen = [...main.querySelectorAll('details')].map((one) => one.open), y = window.scrollY;
  place(main, [state.told, nodes].flat(3).filter(Boolean));
  [...main.querySelectorAll('details')].forEach((one, i) => { one.open ||= isOpen[i] || false; });
  if (focus) { const same = [...main.querySelectorAll('[data-focus]')].find((one) => one.dataset.focus === focus); if (same) same.focus({ preventScroll: true }); }
  window.scrollTo(0, y);
}
function tell(error) { if (error.status === 404 && state.told) { put([nothing('It is gone', error.message)]); return; } put([el('div', { class: 'note bad', role: 'alert' }, visible(error.message))]); shown = ''; }

async function refresh(isNew) {
  const mine = turn, current = page, begun = Date.now();
  clearTimeout(timer);
  try {
    if (current.load) await current.load();
    const text = JSON.stringify(current.data ?? null);
    if (mine === turn && (isNew === true || current.isLive || text !== shown)) { shown = text; put(current.show()); }
    document.body.dataset.ready = location.hash || '#/';
  } catch (error) {
    if (mine === turn && error.status !== 401) tell(error);
  }
  // A database that takes long is asked less often.
  const pause = Math.max(current.every * 1000, 10 * (Date.now() - begun));
  if (mine === turn && current.every) timer = setTimeout(() => (document.hidden ? (timer = setTimeout(refresh, 5000)) : refresh()), pause);
}
function route() {
  turn++;
  state.told = state.next;
  state.next = null;
  delete document.body.dataset.ready;
  const mayLook = state.session && state.session.signed_in;
  page = mayLook ? find(location.hash) : { ...pageSign };
  document.title = page.title + ' \u2013 Waybill';
  showFrame();
  window.scrollTo(0, 0);
  refresh(true).then(() => {
    const first = state.seeks && $('main').querySelector('[data-focus=search]') || state.told || $('main').querySelector('input[type=password], [data-first]');
    state.seeks = false;
    if (first) first.focus();
  });
}

// ---- the frame, and what is live ----------------------------------------------------------------------------

function showFrame() {
  const mayLook = state.session && state.session.signed_in, here = page.nav || (location.hash || '#/').split('?')[0];
  $('nav').replaceChildren(...(mayLook ? navigation : []).map(([to, name]) => el('a', { href: to, 'aria-current': here === to || (to === '#/' && here === '') ? 'page' : null }, name,
    to === '#/failures' && state.failed ? el('span', { class: 'count', 'aria-label': state.failed + ' wait' }, number(state.failed)) : null)));
  $('foot').replaceChildren(...(state.session ? [el('span', null, 'Waybill ' + state.session.version), mayLook ? el('span', null, state.session.write ? 'You may change things here.' : 'Read-only.') : null,
    mayLook && state.session.needs_token ? el('button', { type: 'button', class: 'link', onclick: signOut }, 'Sign out') : null,
    mayLook ? el('span', { class: 'keys' }, el('kbd', null, '1'), ' to ', el('kbd', null, '4'), ' pages, ', el('kbd', null, 'Esc'), ' back', keeper('failures') ? [', ', el('kbd', null, '/'), ' find'] : null) : null] : []).filter(Boolean));
  showState();
}
function showState() {
  const mayLook = state.session && state.session.signed_in;
  const parts = [];
  if (mayLook) parts.push(state.status && state.isLive ? pill(state.status.state) : null, el('span', { class: state.isLive ? 'live' : 'live off' }, state.isLive ? 'Live' : 'Not connected'));
  const text = JSON.stringify([state.isLive, state.status && state.status.state, mayLook]);
  if ($('state').dataset.shown === text) return;
  $('state').dataset.shown = text;
  $('state').replaceChildren(...parts.filter(Boolean));
}
function noteFailed(groups) { const failed = groups.counts.failed; if (failed !== state.failed) { state.failed = failed; showFrame(); } }
function note(status) {
  state.status = status;
  state.before.push({ at: Date.now(), status });
  if (state.before.length > 6) state.before.shift();
  showState();
  if (page && page.isLive && !document.hidden && document.body.dataset.ready && !$('main').querySelector('svg:hover') && getSelection().isCollapsed) put(page.show());
}
async function loadHistory() {
  if (!state.history || Date.now() - state.history.at > state.history.step_seconds * 1000) state.history = { ...(await ask('/api/history')), at: Date.now() };
}
function goLive() {
  const events = new EventSource('/api/events');
  let silence = 0;
  const hear = () => { clearTimeout(silence); silence = setTimeout(() => { state.isLive = false; showState(); }, 5000); };
  events.onmessage = (event) => { state.isLive = true; hear(); note(JSON.parse(event.data)); };
  // A stream ends now and then, and the browser asks for the next one by itself; but not where it was refused.
  events.onerror = () => { if (events.readyState === EventSource.CLOSED) setTimeout(async () => { await poll(); goLive(); }, 3000); };
  hear();
}
async function poll() {
  try { note(await ask('/api/status')); state.isLive = true; } catch (error) { state.isLive = false; }
  showState();
}
async function slowly() {
  const begun = Date.now();
  if (!document.hidden && state.session.signed_in) {
    await loadHistory().catch(() => {});
    if (keeper('failures') && !page.isCount) await ask('/api/failures/groups').then(noteFailed).catch(() => {});
  }
  setTimeout(slowly, Math.max((state.history ? state.history.step_seconds : 10) * 1000, 10 * (Date.now() - begun)));
}
let isBegun = false;
async function begin() {
  if (!state.session) state.session = await ask('/api/session');
  if (!state.session.needs_token && !state.session.token) await signIn(null);
  if (!state.session.signed_in) { route(); return; }
  state.plan = await ask('/api/plan');
  route();
  if (!isBegun) { isBegun = true; goLive(); slowly(); }
}

function seek(event) {
  const input = $('main').querySelector('[data-focus=search]');
  event.preventDefault();
  if (input) { input.focus(); input.select(); } else { state.seeks = true; location.hash = '#/failures'; }
}
window.addEventListener('hashchange', route);
// What was typed is nowhere else.
window.addEventListener('beforeunload', (event) => { if ([...drafts.values()].some(isEdited)) event.preventDefault(); });
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || document.querySelector('dialog[open]')) return;
  const to = navigation[Number(event.key) - 1];
  if (to && state.session && state.session.signed_in) location.hash = to[0];
  if (event.key === '/' && state.session && state.session.signed_in && keeper('failures')) seek(event);
  const back = event.key === 'Escape' ? $('main').querySelector('.back') : null;
  if (back) back.click();
});
begin().catch(tell);
