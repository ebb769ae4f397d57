// SPDX-License-Identifier: Apache-2.0
//
// The console's form in which a failed message is edited. It is read before console.js, of which it uses elements, words and the way to ask.
'use strict';

// What somebody typed outlives the page that he typed it on, and his session; it is kept here alone, until it is sent or given up.
const drafts = new Map();

// With more of them a browser's field of text takes seconds for a letter.
const linesMax = 20000;

// ---- what is edited ---------------------------------------------------------------------------

// A body as text, and back. What nobody changes keeps its bytes: a field of text knows no CR and shows no byte order mark, so both are taken
// off and put on again.
function readText(bytes) {
  let text;
  try { text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes); } catch (error) { return { why: 'it is no UTF-8' }; }
  const mark = text.startsWith('\ufeff') ? '\ufeff' : '', rest = text.slice(mark.length), count = (pattern) => (rest.match(pattern) || []).length;
  if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/.test(rest)) return { why: 'it has control characters' };
  const pairs = count(/\r\n/g);
  if (count(/\r/g) !== pairs || (pairs && count(/\n/g) !== pairs)) return { why: 'its lines end in several ways, which a field of text cannot keep' };
  if (count(/\n/g) > linesMax) return { why: `it has more than ${whole(linesMax)} lines` };
  return { mark, end: pairs ? '\r\n' : '\n', hasLines: rest.includes('\n'), text: rest.replace(/\r\n/g, '\n') };
}
const writeText = (form, text) => form.mark + (form.end === '\n' ? text : text.replace(/\n/g, form.end));

function makeDraft(m, body) {
  const count = (name) => m.headers.filter((one) => one.name === name).length;
  const form = body ? readText(body) : { why: m.body_size > m.body_max ? `it has ${whole(m.body_size)} bytes, and at most ${whole(m.body_max)} are edited here` : 'it was not read' };
  const isOpen = (one) => !one.fixed && one.value !== undefined && count(one.name) === 1;
  return { m, form, text: form.text, added: [], fixed: m.headers.filter((one) => !isOpen(one)), headers: m.headers.filter(isOpen).map((one) => ({ name: one.name, old: one.value, value: one.value, isRemoved: false })) };
}
const isEdited = (draft) => draft.text !== draft.form.text || draft.added.some((one) => one.name || one.value) || draft.headers.some((one) => one.isRemoved || one.value !== one.old);
// What is sent: nothing of what stays as it is.
function editOf(draft) {
  const given = { headers: [...draft.headers.filter((one) => !one.isRemoved && one.value !== one.old), ...draft.added.filter((one) => one.name || one.value)].map((one) => ({ name: one.name, value: one.value })),
    removed: draft.headers.filter((one) => one.isRemoved).map((one) => one.name) };
  if (draft.text !== draft.form.text) given.body = writeText(draft.form, draft.text);
  return given;
}
function whatIsWrongWith(draft, given) {
  const size = given.body === undefined ? 0 : new TextEncoder().encode(given.body).length, texts = [given.body || '', ...given.headers.flatMap((one) => [one.name, one.value])];
  const twice = draft.added.find((one) => draft.headers.some((old) => old.name === one.name && !old.isRemoved));
  if (given.body === undefined && !given.headers.length && !given.removed.length) return ['Nothing is changed. To send it back as it came, go back and retry it.'];
  if (size > draft.m.body_max) return [`The body has ${whole(size)} bytes now, and at most ${whole(draft.m.body_max)} are edited here.`];
  if (texts.some((text) => /\p{Surrogate}/u.test(text))) return ['There is half a character somewhere, which cannot be sent.'];
  if (twice) return ['Header ', visible(twice.name), ' is there already: change it in its place.'];
  return null;
}

// ---- what is changed --------------------------------------------------------------------------

// Lines of two texts that differ, with those around them that do not: [kind, text]. What is too long to be compared is all of it taken out and put in.
function compareLines(before, after) {
  const a = before.split('\n'), b = after.split('\n');
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const old = a.slice(head, a.length - tail), now = b.slice(head, b.length - tail), from = Math.max(head - 2, 0), end = a.length - tail, all = (kind, lines) => lines.map((line) => [kind, line]);
  const changed = old.length * now.length > 250000 ? all('was', old).concat(all('now', now)) : longestCommon(old, now);
  return { first: from + 1, lines: all('same', a.slice(from, head)).concat(changed, all('same', a.slice(end, end + 2))) };
}
function longestCommon(a, b) {
  const width = b.length + 1, best = new Uint32Array((a.length + 1) * width), lines = [];
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--)
    best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { lines.push(['same', a[i]]); i++; j++; }
    else if (j === b.length || (i < a.length && best[(i + 1) * width + j] >= best[i * width + j + 1])) lines.push(['was', a[i++]]);
    else lines.push(['now', b[j++]]);
  }
  return lines;
}
// One text in place of another: what differs is marked, with some of what stands around it.
function marked(text, other) {
  const a = Array.from(text), b = Array.from(other);
  let head = 0, tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const from = head > 80 ? head - 60 : 0, end = a.length - tail, to = tail > 80 ? end + 60 : a.length, part = a.slice(head, end);
  return [from ? '\u2026' : '', visible(a.slice(from, head).join('')), part.length ? el('mark', null, visible(part.slice(0, 2000).join('')), part.length > 2000 ? `\u2026 ${part.length - 2000} more` : null) : null, visible(a.slice(end, to).join('')), to < a.length ? '\u2026' : ''];
}
const sides = { was: ['\u2212', 'before: '], now: ['+', 'after: '], same: [' ', ''] };
const side = (kind, content) => el('div', { class: 'side ' + kind }, el('span', { 'aria-hidden': 'true' }, sides[kind][0]), el('span', { class: 'aloud' }, sides[kind][1]), el('span', { class: 'line' }, content));
const oneChange = (name, ...lines) => el('section', { class: 'change' }, el('h3', null, name), el('div', { class: 'sides' }, lines));
function bodyChange(draft) {
  const { first, lines } = compareLines(draft.form.text, draft.text), shown = lines.slice(0, 300), isOne = lines.filter((l) => l[0] === 'was').length === 1 && lines.filter((l) => l[0] === 'now').length === 1;
  const other = (kind) => lines.find((l) => l[0] === (kind === 'was' ? 'now' : 'was'))[1];
  const long = (line) => [visible(line.slice(0, 2000)), line.length > 2000 ? `\u2026 ${line.length - 2000} more` : null];
  return oneChange(['Body, from line ', String(first)], shown.map(([kind, line]) => side(kind, kind !== 'same' && isOne ? marked(line, other(kind)) : long(line))), lines.length > shown.length ? el('p', { class: 'muted' }, `${lines.length - shown.length} lines more.`) : null);
}
function headerChange(draft, one) {
  const before = draft.m.headers.filter((old) => old.name === one.name && !draft.headers.some((h) => h.name === one.name && h.isRemoved)).map((old) => value(old, 'value'));
  const isOne = before.length === 1;
  return oneChange(['Header ', visible(one.name), before.length ? null : ' is new'], before.map((old) => side('was', isOne ? marked(old, one.value) : visible(old))), side('now', isOne ? marked(one.value, before[0]) : visible(one.value)));
}
function changesOf(draft, given) {
  return [given.body === undefined ? null : bodyChange(draft),
    given.removed.map((name) => oneChange(['Header ', visible(name), ' goes'], side('was', visible(draft.headers.find((one) => one.name === name).old)))),
    given.headers.map((one) => headerChange(draft, one))];
}
// Whether somebody means what he sees there.
function reviewed(draft, given) {
  return new Promise((resolve) => {
    const done = (value) => { dialog.close(); dialog.remove(); resolve(value); };
    const dialog = el('dialog', { class: 'wide', 'aria-labelledby': 'asked', oncancel: (event) => { event.preventDefault(); done(false); } },
      el('form', { onsubmit: (event) => { event.preventDefault(); done(true); } }, el('h2', { id: 'asked' }, 'Retry it edited?'),
        el('p', { class: 'muted' }, 'It goes back to ', visible(value(draft.m, 'queue')), ' once, with an id of its own. All that is not shown here stays as it is.'),
        el('div', { class: 'changes', id: 'changes', tabindex: 0, role: 'region', 'aria-label': 'What is changed' }, changesOf(draft, given)),
        el('div', { class: 'row' }, button('Go on editing', '', null, () => done(false)), el('button', { type: 'submit', class: 'main', autofocus: true }, 'Retry it edited'))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// ---- the form ---------------------------------------------------------------------------------

function bodyEditor(draft) {
  const { form } = draft, m = draft.m;
  if (form.why) return el('p', { class: 'body', id: 'fixed-body' }, 'This body is not edited here: ', form.why, '. It goes back as it is; headers can be changed. ', el('code', null, 'waybill failures edit-retry --body-file'), ' takes another one.');
  const text = el('textarea', { id: 'text', rows: 16, 'aria-label': 'Body', spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', dir: 'ltr', 'data-focus': 'text', 'data-first': true, oninput: () => { draft.text = text.value; } });
  text.value = draft.text;
  const unseen = [...new Set(draft.text.match(hidden) || [])].slice(0, 12).map((character) => [' ', el('span', { class: 'control' }, nameOf(character))]);
  return el('div', { class: 'body' }, text, el('p', { class: 'muted sub' }, form.hasLines ? `Lines end with ${form.end === '\n' ? 'LF' : 'CR LF'}, new ones too. ` : null, form.mark ? 'It begins with a byte order mark, which stays. ' : null,
    unseen.length ? ['What does not show in it:', unseen, '. '] : null, `At most ${bytes(m.body_max)}.`));
}
// A row of a header that can be changed: its name, its value, and whether it goes.
function headerEditor(one, isFirst) {
  const input = el('input', { 'aria-label': 'Value of ' + one.name, autocomplete: 'off', spellcheck: 'false', dir: 'ltr', 'data-first': isFirst, oninput: () => { one.value = input.value; } });
  const goes = el('button', { type: 'button', class: 'small', onclick: () => { one.isRemoved = !one.isRemoved; mark(); } });
  const row = el('div', { class: 'edited' }, el('span', { class: 'name mono wrap' }, visible(one.name)), input, goes);
  const mark = () => { goes.textContent = one.isRemoved ? 'Keep' : 'Remove'; goes.setAttribute('aria-label', goes.textContent + ' header ' + one.name); input.disabled = one.isRemoved; row.classList.toggle('gone', one.isRemoved); };
  input.value = one.value;
  mark();
  return row;
}
function addedEditor(one, drop) {
  const name = el('input', { class: 'mono', 'aria-label': 'Name of a new header', placeholder: 'Name', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', dir: 'ltr', oninput: () => { one.name = name.value; } });
  const text = el('input', { 'aria-label': 'Value of a new header', placeholder: 'Value', autocomplete: 'off', spellcheck: 'false', dir: 'ltr', oninput: () => { one.value = text.value; } });
  name.value = one.name;
  text.value = one.value;
  const row = el('div', { class: 'edited added' }, name, text, el('button', { type: 'button', class: 'small', 'aria-label': 'Remove this new header', onclick: () => drop(row) }, 'Remove'));
  return row;
}
function headersEditor(draft) {
  const rows = el('div', { class: 'rows' }, draft.headers.map((one, i) => headerEditor(one, i === 0)));
  const add = el('button', { type: 'button', class: 'small', id: 'add', onclick: () => { const one = { name: '', value: '' }; draft.added.push(one); append(one).querySelector('input').focus(); } }, 'Add a header');
  const append = (one) => { const row = addedEditor(one, (gone) => { draft.added.splice(draft.added.indexOf(one), 1); gone.remove(); add.focus(); }); rows.append(row); return row; };
  draft.added.forEach(append);
  return el('section', { class: 'card', id: 'edit-headers' }, el('div', { class: 'title' }, el('h2', null, 'Headers'), el('span', { class: 'end' }, add)), el('div', { class: 'body' }, rows,
    draft.fixed.length ? el('details', null, el('summary', null, plural(draft.fixed.length, 'header') + ' not edited here'), el('p', { class: 'muted sub' }, 'Set or left out by who sends the message back; or no text; or there more than once.'),
      el('ul', null, draft.fixed.map((one) => el('li', { class: 'wrap' }, el('span', { class: 'mono' }, visible(value(one, 'name'))), el('span', { class: 'sub mono wrap' }, visible(value(one, 'value').slice(0, 300))))))) : null));
}

const pageEdit = (failure, given) => ({
  title: 'Edit and retry', nav: '#/failures', every: 5, draft: null, parts: null, isKept: false, isSending: false,
  path: '#/failures/message/' + encodeURIComponent(failure) + query({ endpoint: given.endpoint }), which: query({ endpoint: given.endpoint, failure }),
  async load() {
    const kept = drafts.get(this.which);
    if (!this.draft && kept && isEdited(kept)) { this.draft = kept; this.isKept = true; }
    if (this.draft) { await this.watch(); return; }
    const m = await ask('/api/failures/editable' + this.which), body = m.body_size <= m.body_max ? await reach('/api/failures/body' + this.which) : null;
    if (body && !body.ok) throw new Refusal(body.status, 'The body cannot be read.');
    this.draft = makeDraft(m, body ? new Uint8Array(await body.arrayBuffer()) : null);
    drafts.set(this.which, this.draft);
    this.data = m.status;
  },
  // Somebody else may see to it meanwhile; what is typed stays, whatever becomes of it.
  async watch() {
    try { this.data = (await ask('/api/failures/editable' + this.which)).status; } catch (error) { if (error.status === 401) throw error; if (error.status === 404) this.data = 'gone'; }
  },
  show() {
    this.parts ||= this.build();
    const why = !mayWrite() ? 'This console is read-only.' : this.data === 'gone' ? 'It is not there any more.' : this.data && this.data !== 'failed' ? `Somebody else has seen to it: it is ${this.data} now.` : '';
    this.status.textContent = why && why + ' What is edited here cannot be sent.';
    this.status.hidden = !why;
    this.submit.disabled = Boolean(why) || this.isSending;
    return this.parts;
  },
  build() {
    const m = this.draft.m;
    this.status = el('div', { class: 'note', role: 'status', hidden: true, id: 'seen-to' });
    this.wrong = el('div', { class: 'note bad', role: 'alert', tabindex: -1, hidden: true, id: 'wrong' });
    this.submit = el('button', { type: 'submit', class: 'main', id: 'review' }, 'Review and retry');
    const kept = this.isKept ? el('div', { class: 'note', id: 'kept' }, 'What you had typed is here again. ', el('button', { type: 'button', class: 'link', onclick: () => { drafts.delete(this.which); route(); } }, 'Begin anew')) : null;
    const form = el('form', { id: 'edit', onsubmit: (event) => { event.preventDefault(); this.send(); } },
      el('section', { class: 'card' }, el('div', { class: 'title' }, el('h2', null, 'Body'), el('span', { class: 'muted' }, bytes(m.body_size))), bodyEditor(this.draft)), headersEditor(this.draft),
      el('div', { class: 'row' }, button('Give up', '', 'give up', () => this.giveUp()), this.submit));
    return [el('a', { class: 'back', href: this.path }, '\u2190 The message'), el('div', { class: 'head' }, el('h1', null, 'Edit and retry'), el('span', { class: 'muted wrap' }, visible(value(m, 'type') || 'No type'), ' ', el('span', { class: 'mono' }, visible(value(m, 'id'))))),
      el('p', { class: 'muted lead' }, 'It goes back to ', visible(value(m, 'queue')), ' as another message: with an id of its own, and the header ServiceControl.EditOf, which names this failure. This one is resolved when that one is handled.'), this.status, kept, this.wrong, form].filter(Boolean);
  },
  async giveUp() {
    if (isEdited(this.draft) && !await confirmed('Give up what you edited?', 'The message stays as it is.', 'Give up', 'danger')) return;
    drafts.delete(this.which);
    location.hash = this.path;
  },
  complain(...words) {
    this.wrong.replaceChildren(...words.flat(3));
    this.wrong.hidden = false;
    this.wrong.focus();
  },
  async send() {
    const edit = editOf(this.draft), wrong = whatIsWrongWith(this.draft, edit);
    this.wrong.hidden = true;
    if (wrong) { this.complain(wrong); return; }
    if (!await reviewed(this.draft, edit)) return;
    this.submit.disabled = this.isSending = true;
    try {
      await post('/api/failures/edit-retry', { endpoint: given.endpoint, failure, ...edit });
      drafts.delete(this.which);
      state.next = el('div', { class: 'note good', role: 'status', id: 'told', tabindex: -1 }, 'Edited and retried: it went back to ', visible(value(this.draft.m, 'queue')), ' with an id of its own.');
      location.hash = this.path;
    } catch (error) {
      this.complain(error.status ? 'It was not sent: ' : 'Whether it was sent is not known; look at the message again, nothing is done twice. ', visible(error.message));
      await this.watch().catch(() => {});
    }
    this.isSending = false;
    this.show();
  },
});
