'use strict';
/* pillion's flame graph: decodes the data block of the page, draws it, answers to mouse and keys. Nothing here makes
   markup or code out of text: names reach the page through textContent and fillText only. The loader in flame.c
   provides unpack().

   Sections: theme, data, trees, what is shown, colours, drawing, numbers in words, time, search, selecting and moving,
   taking things out, controls, events, start. */
(async () => {
const $ = id => document.getElementById(id);
const canvas = $('canvas'), scroll = $('scroll'), status = $('status'), query = $('query'), list = $('list');
const pick = $('pick'), chips = $('chips');
const WITH_FILE = 1, WITH_PLACE = 2, PROCESS = 64, THREAD = 65, CONTAINER = 66, DROP = -1, SPLICE = -2;

function make(tag, text, on, attributes) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (on) e.addEventListener('click', on);
  for (const a in attributes) e.setAttribute(a, attributes[a]);
  return e;
}

/* ---- Theme: follows the system until switched. */
const root = document.documentElement, systemDark = matchMedia('(prefers-color-scheme: dark)');
const forced = matchMedia('(forced-colors: active)'), coarse = matchMedia('(pointer: coarse)');
let dark = systemDark.matches, themeSet = false, chosenDark;
try { /* some browsers refuse storage to local files */
  const kept = localStorage.getItem('pillion-theme');
  if (kept) { chosenDark = dark = kept === 'dark'; themeSet = true; }
} catch (e) { /* then the system decides */ }
function applyTheme() {
  if (themeSet) root.dataset.theme = dark ? 'dark' : 'light';
}
function switchTheme() {
  chosenDark = dark = !dark;
  themeSet = true;
  try { localStorage.setItem('pillion-theme', dark ? 'dark' : 'light'); } catch (e) { /* for this visit only */ }
  applyTheme();
  recolour();
}
applyTheme();
if (!canvas) return; /* an empty profile has no graph */
const sheet = new CSSStyleSheet();
sheet.replaceSync(String.raw`
/* flame_tool.css */
`);
document.adoptedStyleSheets = [sheet];
/* ---- Data: see flame.h for the format. */
const CALLEES_MAX = 127;
/* Characters that are invisible or reorder others are shown as escapes, as the tables do. */
const UNSEEN = /[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const show = text => text.replace(UNSEEN, c => {
  const hex = c.charCodeAt(0).toString(16);
  return c < '\x80' || c <= '\x9f' ? '\\x' + hex.padStart(2, '0') : '\\u' + hex.padStart(4, '0');
});
/* By name: linesOf its first line (0: unknown), then each heavy line with its share; moduleName that of its module;
   formsOf ever shorter forms; judged in a comparison [own, with callees]: 1 grew, -1 shrank, 0 within chance; of a process keyOf what it is called in links, joinedAs the box of all of that name. */
let head, names, kinds, places, placeOf, file, linesOf, moduleName, formsOf, keyOf, joinedAs, judged;
let moments, whole; /* when, or null; `file` is what is left of the whole in the picked span of time */

function decode(bytes) {
  const text = new TextDecoder('utf-8', {ignoreBOM: true});
  let at = 0;
  const number = () => {
    let c = bytes[at++];
    if (c < 128) return c;
    let value = c & 127, scale = 128;
    do {
      c = bytes[at++];
      value += (c & 127) * scale;
      scale *= 128;
    } while (c > 127);
    return value;
  };
  const texts = each => {
    let line = new Uint8Array(256), length;
    for (let i = 0, n = number(); i < n; i++) {
      const shared = number(), rest = number();
      length = shared + rest;
      if (length > line.length) {
        const longer = new Uint8Array(length * 2);
        longer.set(line);
        line = longer;
      }
      line.set(bytes.subarray(at, at + rest), shared);
      at += rest;
      each(show(text.decode(line.subarray(0, length))));
    }
  };
  const length = number();
  head = JSON.parse(text.decode(bytes.subarray(at, at + length)));
  head.processes = head.processes.map(row => row.map(show));
  at += length;
  places = [''];
  texts(place => places.push(place));
  [names, kinds, placeOf, linesOf, keyOf, joinedAs, formsOf, moduleName] = Array.from({length: 8}, () => []);
  texts(name => {
    names.push(name);
    kinds.push(number());
    placeOf.push(number());
    if ((head.kinds[kinds.at(-1)] || [])[4] !== WITH_FILE) return;
    const lines = linesOf[names.length - 1] = [number()];
    for (let n = number(); n > 0; n--) lines.push([number(), number() / 1000]);
  });
  noteChanges();
  names.push('all');
  kinds.push(PROCESS);
  placeOf.push(0);
  const callees = new Array(names.length), unit = head.unit_ns;
  const tree = () => {
    const n = number() + 1;
    const name = new Int32Array(n), parent = new Int32Array(n), self = new Float64Array(n);
    for (let i = 1; i < n; i++) {
      let p = i - 1;
      for (let climb = number(); climb > 0; climb--) p = parent[p];
      parent[i] = p;
    }
    for (let i = 1; i < n; i++) self[i] = number();
    for (let i = 1; i < n; i++) if (self[i]) self[i] = (self[i] - 1) * unit + (head.exact ? 0 : number());
    name[0] = names.length - 1;
    for (let i = 1; i < n; i++) {
      const caller = name[parent[i]], known = callees[caller] || (callees[caller] = {name: [], count: []});
      let rank = number() - 1;
      if (rank < 0) {
        rank = Math.min(known.name.length, CALLEES_MAX - 1);
        name[i] = known.name[rank] = number();
        known.count[rank] = 1;
      } else {
        const found = name[i] = known.name[rank], count = known.count[rank] + 1;
        for (; rank > 0 && known.count[rank - 1] < count; rank--) {
          known.name[rank] = known.name[rank - 1];
          known.count[rank] = known.count[rank - 1];
        }
        known.name[rank] = found;
        known.count[rank] = count;
      }
    }
    return {n, name, parent, self};
  };
  file = tree();
  /* By node: in which step which part of its own time was. What has no step stays out. */
  const times = ({n, self}) => {
    const count = new Int32Array(n);
    let m = 0;
    for (let i = 1; i < n; i++) if (self[i]) m += (count[i] = number()) >> 1;
    const node = new Int32Array(m), step = new Int32Array(m), ns = new Float64Array(m);
    for (let i = 1, k = 0; i < n; i++) {
      for (let c = count[i] >> 1, s = 0; c; c--) {
        node[k] = i;
        step[k++] = s += number();
      }
    }
    for (let i = 1, k = 0; i < n; i++) {
      const from = k;
      if (count[i] < 2) continue;
      let sum = count[i] & 1 ? number() : 0;
      for (let c = count[i] >> 1; c; c--) sum += ns[k++] = number();
      for (let j = from; j < k; j++) ns[j] *= self[i] / sum;
    }
    return {node, step, ns};
  };
  moments = head.steps ? times(file) : null;
  if (head.compared) {
    const other = tree();
    file.before = new Float64Array(file.n);
    other.before = other.self;
    other.self = new Float64Array(other.n);
    file = mergeTrees(file, other);
  } else {
    complete(file);
  }
  if (at !== bytes.length) throw new Error('the data is cut or damaged');
}

/* Which functions of a comparison differ by more than chance: judged before the page was made. */
function noteChanges() {
  const key = (name, kind) => kind + ' ' + name;
  const found = new Map((head.changed || []).map(([name, kind, ...signs]) => [key(show(name), kind), signs]));
  judged = head.changed ? names.map((name, x) => kinds[x] < PROCESS && (found.get(key(name, kinds[x])) || [0, 0])) : [];
}
const isWithin = x => judged[x] && !judged[x][0] && !judged[x][1];

/* ---- Trees. Nodes are numbers in pre-order, 0 is the root. Per node: name, parent, own time `self`, `total`, `left`
   edge in nanoseconds, `depth`, `end` of its subtree; in a comparison `before` and `wasTotal`, the other profile's part
   of self and total, scaled to equal sums. `row` has the nodes by depth, then by left edge; row d begins at
   start[d]. */
function complete(t) {
  const {n, parent} = t, depth = t.depth = new Int32Array(n), end = t.end = new Int32Array(n);
  const total = t.total = t.self.slice(), left = t.left = new Float64Array(n), edge = new Float64Array(n);
  if (t.before) t.wasTotal = t.before.slice();
  for (let i = n - 1; i > 0; i--) {
    const p = parent[i];
    total[p] += total[i];
    if (t.before) t.wasTotal[p] += t.wasTotal[i];
    if (!end[i]) end[i] = i + 1;
    if (!end[p]) end[p] = end[i];
  }
  end[0] = n;
  for (let i = 1; i < n; i++) {
    const p = parent[i];
    depth[i] = depth[p] + 1;
    left[i] = edge[i] = edge[p];
    edge[p] += total[i];
  }
  return index(t);
}

function index(t) {
  const {n, depth} = t;
  let deepest = 0;
  for (let i = 0; i < n; i++) if (depth[i] > deepest) deepest = depth[i];
  const start = new Int32Array(deepest + 2), row = new Int32Array(n);
  for (let i = 0; i < n; i++) start[depth[i] + 1]++;
  for (let d = 0; d <= deepest; d++) start[d + 1] += start[d];
  const next = start.slice();
  for (let i = 0; i < n; i++) row[next[depth[i]]++] = i;
  for (let d = 0; t.items && d <= deepest; d++) {
    row.subarray(start[d], start[d + 1]).sort((a, b) => t.left[a] - t.left[b]);
  }
  return Object.assign(t, {deepest, start, row, marks: null});
}

/* Puts nodes whose parents come before them into pre-order, heaviest child first; those without time are left out. */
function arrange(n, parent, name, self, before) {
  const total = self.slice(0, n), first = new Int32Array(n + 2);
  const order = new Int32Array(n), to = new Int32Array(n);
  for (let i = n - 1; i > 0; i--) total[parent[i]] += total[i];
  for (let i = 1; i < n; i++) if (total[i] > 0) first[parent[i] + 2]++;
  for (let i = 0; i < n; i++) first[i + 2] += first[i + 1];
  const child = new Int32Array(n);
  for (let i = 1; i < n; i++) if (total[i] > 0) child[first[parent[i] + 1]++] = i;
  for (let p = 0; p < n; p++) {
    const from = first[p], to = first[p + 1];
    if (to - from > 8) child.subarray(from, to).sort((a, b) => total[b] - total[a] || a - b);
    else for (let k = from + 1; k < to; k++) {
      const c = child[k];
      let j = k;
      for (; j > from && total[child[j - 1]] < total[c]; j--) child[j] = child[j - 1];
      child[j] = c;
    }
  }
  let made = 0, waiting = 1;
  const stack = [0];
  while (waiting) {
    const i = stack[--waiting];
    to[i] = made;
    order[made++] = i;
    for (let c = first[i + 1]; c-- > first[i];) stack[waiting++] = child[c];
  }
  const t = {n: made, name: new Int32Array(made), parent: new Int32Array(made), self: new Float64Array(made)};
  if (before) t.before = new Float64Array(made);
  for (let k = 0; k < made; k++) {
    const i = order[k];
    t.name[k] = name[i];
    t.parent[k] = to[parent[i]];
    t.self[k] = self[i];
    if (before) t.before[k] = before[i];
  }
  return complete(t);
}

/* Folds nodes into a new tree. place(src, i, p, name) says what becomes of node i below the new node p: its name,
   SPLICE (its time and children go to p) or DROP (gone with all below). Only time under `focus` counts, unless it
   is -1.
   Where nothing is spliced or renamed, siblings stay different and need not be looked up (merging). */
function folder(size, rootName, compared, merging = true) {
  const mask = (1 << (33 - Math.clz32(size))) - 1, slot = new Int32Array(mask + 1);
  const parent = new Int32Array(size), name = new Int32Array(size), self = new Float64Array(size);
  const before = compared && new Float64Array(size);
  let made = 1;
  name[0] = rootName;
  return {
    add(src, place, focus = -1) {
      const to = new Int32Array(src.n), inside = new Uint8Array(src.n);
      for (let i = 1; i < src.n; i++) {
        const up = src.parent[i], p = to[up];
        const x = p < 0 ? DROP : place(src, i, p, name);
        inside[i] = focus < 0 || inside[up] || x === focus || src.name[i] === focus;
        let c = p;
        if (x === DROP) {
          to[i] = -1;
          continue;
        }
        if (x !== SPLICE) {
          let h = (Math.imul(p, 0x9e3779b1) ^ Math.imul(x, 0x85ebca6b)) >>> 7 & mask;
          c = 0;
          while (merging && (c = slot[h]) && (parent[c] !== p || name[c] !== x)) h = h + 1 & mask;
          if (!c) {
            c = made++;
            if (merging) slot[h] = c;
            parent[c] = p;
            name[c] = x;
          }
        }
        to[i] = c;
        if (inside[i]) {
          self[c] += src.self[i];
          if (before) before[c] += src.before[i];
        }
      }
    },
    done: () => arrange(made, parent, name, self, before),
  };
}

function mergeTrees(now, was) {
  const f = folder(now.n + was.n, now.name[0], true), same = (t, i) => t.name[i];
  let a = 0, b = 0;
  for (const x of now.self) a += x;
  for (const x of was.before) b += x;
  /* Width is the mean of both shares, so that what vanished can still be seen. */
  for (let i = 0; i < was.n; i++) was.self[i] = was.before[i] *= b && a / b / 2;
  for (let i = 0; i < now.n; i++) now.self[i] /= 2;
  f.add(now, same);
  f.add(was, same);
  return f.done();
}

/* A tree that is opened node by node when one is wide enough to be seen. A node's items are the nodes of `src` it
   stands for; it opens to their callers (up) or callees. */
function lazy(src, name, up, items, fresh) {
  const t = {src, up, fresh, n: 1, name: [name], parent: [0], depth: [0], left: [0], total: [0], items: [items],
    kids: [null], waiting: [0]};
  if (src.before) t.wasTotal = [0];
  for (let k = 0; k < items.w.length; k++) {
    t.total[0] += items.w[k];
    if (src.before) t.wasTotal[0] += items.b[k];
  }
  return index(t);
}

const groupOf = [];
function open(t, i) {
  if (t.kids[i]) return;
  const {src} = t, {cur, w, b} = t.items[i], groups = [];
  const add = (c, weight, was) => {
    const x = src.name[c];
    let g = groupOf[x];
    if (!g) groups.push(g = groupOf[x] = {x, sum: 0, was: 0, cur: [], w: [], b: []});
    g.sum += weight;
    g.cur.push(c);
    g.w.push(weight);
    if (src.before) {
      g.was += was;
      g.b.push(was);
    }
  };
  for (let k = 0; k < cur.length; k++) {
    if (t.up) {
      const c = t.fresh && i === 0 ? cur[k] : src.parent[cur[k]];
      if (c > 0) add(c, w[k], src.before && b[k]);
    } else {
      const end = src.end[cur[k]];
      for (let c = cur[k] + 1; c < end; c = src.end[c]) add(c, src.total[c], src.before && src.wasTotal[c]);
    }
  }
  groups.sort((g, h) => h.sum - g.sum || g.x - h.x);
  t.kids[i] = [t.n, t.n + groups.length];
  let edge = t.left[i];
  for (const g of groups) {
    groupOf[g.x] = undefined;
    t.name.push(g.x);
    t.parent.push(i);
    t.depth.push(t.depth[i] + 1);
    t.left.push(edge);
    t.total.push(g.sum);
    if (t.wasTotal) t.wasTotal.push(g.was);
    t.items.push(g);
    t.kids.push(null);
    edge += g.sum;
    t.waiting.push(t.n++);
  }
}

/* Opens what is at least a pixel wide in the part's present zoom. */
function widen(part, width) {
  const t = part.tree, z = part.zoom;
  if (!t.items || part.widened === z + '/' + width) return;
  const least = t.total[z] / width, x0 = t.left[z], x1 = x0 + t.total[z], kept = [];
  for (let todo = t.waiting; todo.length; todo = t.waiting) {
    t.waiting = [];
    for (const i of todo) {
      if (t.total[i] >= least && t.left[i] < x1 && t.left[i] + t.total[i] > x0) open(t, i);
      else kept.push(i);
    }
  }
  t.waiting = kept;
  part.widened = z + '/' + width;
  index(t);
}

function childrenOf(t, i) {
  const found = [];
  if (t.items) {
    if (!t.kids[i]) {
      open(t, i);
      index(t);
    }
    for (let c = t.kids[i][0]; c < t.kids[i][1]; c++) found.push(c);
  } else {
    for (let c = i + 1; c < t.end[i]; c = t.end[c]) found.push(c);
  }
  return found;
}


/* ---- What is shown. The hash of the address holds all of it by names, so that a link works in another profile too. */
const COLOURS = ['kind', 'module', 'own time'], SETS = ['kind', 'hide', 'proc', 'thread', 'box'];
const FLAGS = ['regex', 'flip', 'recursion', 'modules', 'apart'];
const S = {view: 'graph', name: '', lines: '', flip: false, colour: 0, query: '', regex: false, focus: '', recursion: false,
  modules: false, apart: false, span: null, times: '', kind: new Set(), hide: new Set(), proc: new Set(),
  thread: new Set(), box: new Set()};
let base, parts = []; /* the tree after filtering; what is drawn of it: one part, or callees and callers */
let hit = null, hits = null, hitAt = -1; /* by name; nodes by weight once walked through; the present one */
let selected = null, hovered = null, sortBy = 'self', sortUp = false, note = '', toPivot = false;
const rowOfLabel = new Map(), moduleNames = new Map();
let joined = null; /* the file's tree with the processes of one name as one; null before it is wanted */
const keyName = x => !S.apart && keyOf[x] || names[x];

function addName(text, kind, place) {
  kinds.push(kind);
  placeOf.push(place);
  return names.push(text) - 1;
}

/* A run has its own PIDs, and one program may have hundreds: processes that only a PID tells apart are one box. */
function joinProcesses() {
  const groups = new Map();
  rowOfLabel.clear();
  moduleNames.clear();
  joined = null;
  for (let i = 1, k = 0; i < file.n; i = file.end[i], k++) {
    const x = file.name[i], row = head.processes[k];
    if (kinds[x] !== PROCESS) continue;
    rowOfLabel.set(names[x], row);
    const key = keyOf[x] = / \(pid \d+\)$/.test(names[x]) ? row[0] : names[x];
    groups.set(key, [...groups.get(key) || [], x]);
  }
  for (const [key, all] of groups) {
    if (all.length < 2) continue;
    const boxes = new Set(all.map(x => rowOfLabel.get(names[x])[1])), label = key + ' (' + all.length + ' processes)';
    const made = addName(label, PROCESS, 0);
    rowOfLabel.set(label, [key, boxes.size > 1 ? '' : [...boxes][0]]);
    keyOf[made] = key;
    for (const x of all) joinedAs[x] = made;
  }
}
const formOf = x => (head.kinds[kinds[x]] || [])[4];
const suffix = x => (head.kinds[kinds[x]] || ['', ''])[1];
function kindName(x) {
  const k = kinds[x];
  return k < PROCESS ? (head.kinds[k] || ['other'])[0] : ['process', 'thread', 'container'][k - PROCESS];
}

const kindNumber = name => head.kinds.findIndex(kind => kind[0] === name);

/* Ever shorter forms: without parameters and template arguments, then without leading packages and paths. */
function forms(x) {
  if (formsOf[x]) return formsOf[x];
  const name = names[x], all = formsOf[x] = [name];
  if (keyOf[x]) all.push(keyOf[x]);
  if (kinds[x] >= PROCESS || name[0] === '[') return all;
  let bare = '', depth = 0, last = '';
  for (const c of name) {
    if (c === '(' || c === '<' && (depth || /\w/.test(last))) depth++;
    if (!depth) bare += c;
    if (depth && (c === ')' || c === '>')) depth--;
    last = c;
  }
  bare = bare.trim();
  if (formOf(x) === WITH_PLACE) bare = bare.split(' ')[0]; /* "function file:line" */
  if (depth || !bare) return all;
  all.push(bare);
  for (let cut; all.length < 12 && (cut = /^[^]*?(?:::|[/.])(?=.)/.exec(bare));) {
    all.push(bare = bare.slice(cut[0].length));
  }
  return all;
}

function fit(x, chars) {
  const all = forms(x), found = all.find(form => form.length <= chars);
  return found || (chars < 3 ? '' : all[all.length - 1].slice(0, chars - 1) + '\u2026');
}

/* Without a known file: the file a Python name tells, else the package, class or namespace. */
function moduleOf(x) {
  const place = places[placeOf[x]], file = /\(([^()]*?)(:\d+)?( [^()]*)?\)$/.exec(names[x]);
  if (place) return place;
  if (formOf(x) === WITH_FILE && file) return file[1];
  const bare = forms(x)[1] || '', cut = Math.max(bare.lastIndexOf('/'), bare.lastIndexOf('::'), bare.lastIndexOf('.'));
  return cut > 0 ? bare.slice(0, cut) : '(' + kindName(x) + ')';
}

/* A module as a name of its own, for the collapsed tree. */
function moduleAsName(x) {
  if (kinds[x] >= PROCESS || kinds[x] === head.unseen) return x;
  if (moduleName[x] === undefined) {
    const text = moduleOf(x), key = kinds[x] + text;
    if (!moduleNames.has(key)) moduleNames.set(key, addName(text, kinds[x], placeOf[x]));
    moduleName[x] = moduleNames.get(key);
  }
  return moduleName[x];
}

function derive() {
  const tops = S.proc.size || S.thread.size || S.box.size;
  const all = !tops && !S.kind.size && !S.hide.size && !S.focus && !S.recursion && !S.modules;
  const joining = joinedAs.length && !S.apart;
  if (all && (joined || !joining)) return joining ? joined : file;
  const merging = joining || S.recursion || S.modules || [...S.kind].some(k => k !== head.unseen);
  const f = folder(file.n, file.name[0], file.before, merging);
  const place = (t, i, p, name) => {
    const x = t.name[i], k = kinds[x], above = t.name[t.parent[i]], top = kinds[above] >= PROCESS;
    if (tops && top) {
      const row = rowOfLabel.get(names[k === PROCESS ? x : above]);
      const box = k === PROCESS ? row[1] : k === CONTAINER ? names[x] : '';
      if (k === PROCESS && S.proc.size && !S.proc.has(names[x]) && !S.proc.has(keyOf[x])) return DROP;
      if (!t.parent[i] && S.box.size && !S.box.has(box)) return DROP;
      const thread = k === THREAD ? names[x] : k < PROCESS && row ? row[0] : null;
      if (S.thread.size && thread !== null && !S.thread.has(thread)) return DROP;
    }
    const shown = joining && joinedAs[x] || x;
    if (S.hide.has(names[shown])) return DROP;
    if (S.kind.has(k)) return k === head.unseen ? DROP : SPLICE;
    const made = S.modules ? moduleAsName(shown) : shown;
    return (S.recursion || S.modules) && name[p] === made ? SPLICE : made;
  };
  f.add(file, place, S.focus ? names.indexOf(S.focus) : -1);
  return all ? joined = f.done() : f.done();
}

/* Own and total time per function; a recursive function's total counts once. Only below node z. */
function tally(t, z = 0) {
  const n = names.length, self = new Float64Array(n), total = new Float64Array(n), until = new Int32Array(n);
  const was = t.before && new Float64Array(n), wasTotal = t.before && new Float64Array(n);
  for (let i = z || 1; i < t.end[z]; i++) {
    const x = t.name[i];
    self[x] += t.self[i];
    if (was) was[x] += t.before[i];
    if (i >= until[x]) {
      total[x] += t.total[i];
      if (was) wasTotal[x] += t.wasTotal[i];
      until[x] = t.end[i];
    }
  }
  return {self, total, was, wasTotal};
}

/* A comparison's weights are means of both profiles. As shares of the whole: before, now, now less before. */
function threeShares(sum, was) {
  const all = 2 * (file.total[0] - file.wasTotal[0]);
  return [2 * was / all, 2 * (sum - was) / all, 2 * (sum - 2 * was) / all];
}
const shareNow = (sum, was) => file.before ? threeShares(sum, was)[1] : sum / file.total[0];

const pathOf = (t, i) => {
  const path = [];
  for (; i > 0; i = t.parent[i]) path.push(keyName(t.name[i]));
  return path.reverse();
};

const UNKNOWN = 'Not in this profile, so left out of the link: ';
function follow(part, path) {
  let i = 0;
  for (const name of path) {
    const called = x => keyName(x) === name || names[x] === name;
    const next = childrenOf(part.tree, i).find(c => called(part.tree.name[c]));
    if (next === undefined) {
      note = UNKNOWN + name;
      break;
    }
    i = next;
  }
  return i;
}

function outermost(t, x) {
  const found = {cur: [], w: [], b: []};
  for (let i = 1; i < t.n;) {
    if (x < 0 ? t.self[i] > 0 : t.name[i] === x) {
      found.cur.push(i);
      found.w.push(x < 0 ? t.self[i] : t.total[i]);
      if (t.before) found.b.push(x < 0 ? t.before[i] : t.wasTotal[i]);
    }
    i = x >= 0 && t.name[i] === x ? t.end[i] : i + 1;
  }
  return found;
}

function arrangeView() {
  const part = (tree, up) => ({tree, up, zoom: 0, deep: 0});
  const t = base;
  hovered = selected = null;
  if (S.view === 'bottom') {
    parts = [part(lazy(t, t.name[0], true, outermost(t, -1), true))];
  } else if (S.view === 'sandwich') {
    let x = names.indexOf(S.name);
    if (x < 0) {
      const {self} = tally(t);
      x = self.indexOf(Math.max(...self));
      S.name = names[x];
    }
    const items = outermost(t, x);
    parts = [part(lazy(t, x, false, items)), part(lazy(t, x, true, items), true)];
    selected = {part: parts[0], i: 0};
    toPivot = true;
  } else {
    parts = [part(t)];
  }
  toPivot = toPivot || S.flip;
}

function rebuild(path) {
  base = derive();
  arrangeView();
  if (path && path.length) parts[0].zoom = follow(parts[0], path);
  search();
  recolour();
  drawControls();
}

function setView(view, name) {
  const path = view === S.view && !name ? pathOf(parts[0].tree, parts[0].zoom) : [];
  S.view = view;
  if (name) S.name = name;
  rebuild(path);
  save(true);
}

/* After a change of filters: the same place, if it is still there. */
function refilter() {
  const path = pathOf(parts[0].tree, parts[0].zoom);
  rebuild(path);
  note = '';
  save();
}

function toggle(set, value) {
  if (!set.delete(value)) set.add(value);
  refilter();
}

function zoomTo(part, i, push = true) {
  part.zoom = i;
  hits = null;
  hitAt = -1;
  search.share = null;
  save(push);
  drawControls();
  redraw();
}

/* Sample types: each has a data block of its own, which is unpacked when it is chosen. `types` is the control, where
   there are several; `shown` the number of the block. */
let types, shown, loads = 0;
async function load(number) {
  const mine = ++loads, bytes = await unpack('data' + (number || ''));
  if (mine !== loads) return false;
  decode(bytes);
  joinProcesses();
  whole = file;
  prepareTime();
  shown = number;
  root.classList.toggle('other', number > 0);
  return true;
}
const typeName = () => types?.selectedOptions[0]?.text || '';
const sum = () => spanText() + (types ? typeName() + ': ' + time(file.total[0]) + ' in all. ' : '');

function setType(option) {
  if (!types) return;
  types.selectedIndex = option % types.length;
  restore(save(true));
}

/* What the table is sorted by: a key of its columns, "-" behind it when turned round. */
const sorting = () => sortBy + (sortUp ? '-' : ''), sortedFirst = () => file.before ? 'self2' : 'self';

function save(push) {
  const h = new URLSearchParams(), t = parts[0].tree;
  if (types && types.selectedIndex) h.set('type', typeName());
  if (S.view !== 'graph') h.set('v', S.view);
  if (S.view === 'sandwich') h.set('n', S.name);
  for (const key of ['query', 'colour', 'focus', 'lines']) if (S[key]) h.set(key, S[key]);
  if (sorting() !== sortedFirst()) h.set('sort', sorting());
  for (const key of FLAGS) if (S[key]) h.set(key, 1);
  for (const set of SETS) for (const value of S[set]) h.append(set, set === 'kind' ? head.kinds[value][0] : value);
  saveTime(h);
  for (const name of pathOf(t, parts[0].zoom).slice(0, 500)) h.append('z', name);
  const address = '#' + h;
  if (address === (location.hash || '#')) return address;
  try {
    history[push ? 'pushState' : 'replaceState'](null, '', address);
  } catch (e) { /* too often or not allowed here: then without a link */ }
  return address;
}

async function restore(address = location.hash) {
  const h = new URLSearchParams(address.slice(1)), text = key => h.get(key) || '', type = text('type');
  let damage = '';
  if (types) {
    types.selectedIndex = Math.max(0, [...types].findIndex(option => option.text === type));
    const wanted = +types.value;
    try {
      if (wanted !== shown && !await load(wanted)) return;
    } catch (e) {
      damage = typeName() + ' cannot be shown (' + e.message + ').';
      types.value = 0;
      await load(0);
    }
  }
  S.view = ['bottom', 'sandwich', 'table'].includes(text('v')) ? text('v') : 'graph';
  S.name = text('n');
  S.query = query.value = text('query');
  S.focus = text('focus');
  S.lines = text('lines');
  sortUp = text('sort').endsWith('-');
  sortBy = (text('sort') || sortedFirst()).replace('-', '');
  S.colour = +text('colour') % COLOURS.length || 0;
  for (const key of FLAGS) S[key] = text(key) === '1';
  for (const set of SETS) S[set] = new Set(h.getAll(set));
  S.kind = new Set([...S.kind].map(kindNumber).filter(k => k >= 0));
  note = type && type !== typeName() ? UNKNOWN + type : '';
  for (const name of [S.focus, S.name, S.lines]) if (name && !names.includes(name)) note = UNKNOWN + name;
  note = damage || note;
  restoreTime(text);
  rebuild(h.getAll('z'));
}

/* ---- Colours, as 0xrrggbb. By kind of code as the file says. */
let bg, fg, tint, T;
function mix(a, b, part) {
  const channel = s => Math.round((a >> s & 255) * (1 - part) + (b >> s & 255) * part) << s;
  return channel(16) | channel(8) | channel(0);
}
const css = colour => '#' + colour.toString(16).padStart(6, '0');
const pixel = c => (0xff000000 | (c & 255) << 16 | c & 0xff00 | c >> 16) >>> 0;
const rgb = text => text.match(/\d+/g).slice(0, 3).reduce((sum, v) => sum << 8 | v, 0);

function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  return (h ^ h >>> 15) >>> 0;
}

function hue(h) {
  const lightness = dark ? .24 : .8, a = .5 * Math.min(lightness, 1 - lightness);
  const channel = n => {
    const k = (n + h % 360 / 30) % 12;
    return Math.round(255 * (lightness - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return channel(0) << 16 | channel(8) << 8 | channel(4);
}

const kindColour = k => head.kinds[k] ? head.kinds[k][dark ? 3 : 2] : T.top;

function recolour() {
  dark = !printing && (themeSet ? chosenDark : systemDark.matches);
  const style = getComputedStyle(canvas);
  bg = rgb(style.backgroundColor);
  fg = rgb(style.color);
  T = dark ? {top: 0x30353c, hit: 0xc800a0, less: 0x1f5fbf, more: 0x9a4a00, same: 0x3a3f46, heat: 0xa84300}
    : {top: 0xdde2e8, hit: 0xff4fd8, less: 0x7fb2ff, more: 0xfd8d42, same: 0xe4e6e9, heat: 0xf0702a};
  const {self} = S.colour === 2 ? tally(base) : {}, most = self && Math.max(...self);
  tint = new Uint32Array(names.length);
  for (let x = 0; x < names.length; x++) {
    const h = hash(names[x]), shade = (h % 9 - 4) / 100, top = kinds[x] >= PROCESS || kinds[x] === head.unseen;
    let colour = kindColour(kinds[x]);
    if (!top && S.colour === 1) colour = hue(hash(moduleOf(x)));
    if (!top && self) colour = mix(T.same, T.heat, Math.sqrt(self[x] / most));
    tint[x] = mix(colour, dark || shade < 0 ? 0 : 0xffffff, dark ? shade / 2 + .02 : Math.abs(shade));
  }
  drawLegend();
  redraw();
  drawTime();
}

function colourOf(t, i) {
  if (!t.wasTotal || S.colour || kinds[t.name[i]] >= PROCESS) return tint[t.name[i]];
  const change = t.total[i] ? 1 - 2 * t.wasTotal[i] / t.total[i] : 0;
  return mix(T.same, change > 0 ? T.more : T.less, isWithin(t.name[i]) ? Math.sqrt(Math.abs(change)) / 5 : Math.max(judged[t.name[i]] ? .3 : 0, Math.sqrt(Math.abs(change))));
}

/* ---- Drawing. The canvas has the size of the window onto the graph; per row and pixel at most one box is looked at,
   so the cost does not grow with the tree. Boxes are painted as runs of pixels, then the labels over them. */
const ctx = canvas.getContext('2d', {alpha: false});
let W = 0, H = 0, dpr = 1, rowHeight = 17, font = '', charWidth = 7, waiting = 0, hatch;

function redraw() {
  if (!waiting && base) waiting = requestAnimationFrame(draw);
}

const upRows = () => parts[1] ? parts[1].deep : 0;
const rowCount = () => upRows() + parts[0].deep + 1;
function rowOf(part, depth) {
  const r = part.up ? upRows() - depth : upRows() + depth;
  return S.flip ? rowCount() - 1 - r : r;
}
function atRow(row) {
  const r = (S.flip ? rowCount() - 1 - row : row) - upRows();
  return r < 0 ? [parts[1], -r] : [parts[0], r];
}

/* The first place in row d, from `lo` on, whose box ends (or begins) right of `edge`. */
function seek(t, d, lo, edge, begins) {
  let hi = t.start[d + 1];
  while (lo < hi) {
    const mid = lo + hi >> 1, i = t.row[mid];
    if (begins ? t.left[i] >= edge : t.left[i] + t.total[i] > edge) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}

/* The deepest row with anything below the zoomed node. */
function deepest(part) {
  const t = part.tree, z = part.zoom, edge = t.left[z] + t.total[z];
  let d = t.depth[z];
  while (d < t.deepest) {
    const j = seek(t, d + 1, t.start[d + 1], t.left[z]);
    if (j >= t.start[d + 2] || t.left[t.row[j]] >= edge) break;
    d++;
  }
  return d;
}

/* Calls each(from, to, node, hit, above) for the boxes of one row, in pixels of the canvas. Boxes narrower than a pixel
   share one: the first of them stands for all, and is a hit if any is. */
function scan(part, d, each) {
  const t = part.tree, z = part.zoom, end = t.start[d + 1], marks = hit && marksOf(t);
  if (d <= t.depth[z]) {
    let i = z;
    while (t.depth[i] > d) i = t.parent[i];
    each(0, W, i, hit && hit[t.name[i]], i !== z);
    return;
  }
  const x0 = t.left[z], k = W / t.total[z], x1 = x0 + t.total[z];
  for (let j = seek(t, d, t.start[d], x0); j < end;) {
    const i = t.row[j], a = (t.left[i] - x0) * k, b = a + t.total[i] * k;
    if (t.left[i] >= x1) break;
    if (b - a >= 1) {
      each(Math.max(0, Math.round(a)), Math.min(W, Math.round(b)), i, hit && hit[t.name[i]], false);
      j++;
    } else {
      const column = Math.min(W - 1, Math.floor(a));
      let next = seek(t, d, j + 1, x0 + (column + 1) / k, true);
      /* the last to begin in this pixel may be a wide one */
      if (next - 1 > j && t.total[t.row[next - 1]] * k >= 1) next--;
      each(column, column + 1, i, marks && marks[next] > marks[j], false);
      j = next;
    }
  }
}

/* How many hits come before each place of the rows. */
function marksOf(t) {
  if (!t.marks) {
    t.marks = new Int32Array(t.n + 1);
    for (let j = 0; j < t.n; j++) t.marks[j + 1] = t.marks[j] + hit[t.name[t.row[j]]];
  }
  return t.marks;
}

function measure() {
  const scale = parseFloat(getComputedStyle(root).fontSize) / 16;
  dpr = devicePixelRatio || 1;
  rowHeight = Math.round((coarse.matches ? 24 : 17) * scale);
  const w = scroll.clientWidth, h = scroll.clientHeight;
  if (W !== Math.round(w * dpr) || H !== Math.round(h * dpr)) {
    W = canvas.width = Math.round(w * dpr);
    H = canvas.height = Math.round(h * dpr);
    canvas.style.width = w + 'px';
    canvas.style.height = h + 'px';
  }
  font = ctx.font = 12 * scale * dpr + 'px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
  charWidth = ctx.measureText('mmmmmmmmmm').width / 10;
}

/* Gives the graph what the window has left, or less when the tree is flat. */
function layout() {
  const rows = (file.deepest + 2) * rowHeight;
  const room = innerHeight - (scroll.hidden ? list : scroll).offsetTop - status.offsetHeight - 8;
  scroll.style.height = printing ? Math.min(rowCount() * rowHeight, PAPER_MOST) + 'px' : Math.min(Math.max(innerHeight / 2, room), rows) + 'px';
  list.style.height = Math.max(innerHeight / 2, room) + 'px';
}

function draw() {
  waiting = 0;
  layout();
  if (S.view === 'table') return;
  measure();
  if (!W || !H) return;
  for (const part of parts) {
    widen(part, W);
    part.deep = deepest(part);
  }
  const height = Math.max(rowCount() * rowHeight, scroll.clientHeight);
  $('tall').style.height = height + 'px';
  if (toPivot) scroll.scrollTop = (rowOf(parts[0], 0) + 1) * rowHeight - scroll.clientHeight / (parts[1] ? 2 : 1);
  toPivot = false;
  const top = scroll.scrollTop, image = ctx.createImageData(W, H), pixels = new Uint32Array(image.data.buffer);
  const empty = pixel(bg), drawn = pixel(fg), line = new Uint32Array(W), under = new Uint32Array(W), labels = [];
  const offset = S.flip ? height - rowCount() * rowHeight : 0, gap = Math.max(1, Math.round(dpr));
  pixels.fill(empty);
  for (let row = Math.max(0, Math.floor((top - offset) / rowHeight)); row < rowCount(); row++) {
    const y0 = Math.round((row * rowHeight + offset - top) * dpr), y1 = y0 + Math.round(rowHeight * dpr) - gap;
    if (y0 >= H) break;
    const [part, d] = atRow(row), t = part.tree;
    let lined = forced.matches;
    line.fill(empty);
    under.fill(empty);
    scan(part, d, (from, to, i, found, above) => {
      const x = t.name[i], wide = to - from >= 3 * gap ? to - gap : to;
      let colour = found ? T.hit : colourOf(t, i);
      if (above) colour = mix(colour, bg, .6);
      if (hovered && x === hovered.part.tree.name[hovered.i]) colour = mix(colour, 0, dark ? .4 : .14);
      if (forced.matches) {
        colour = bg;
        under.fill(drawn, from, wide);
      }
      line.fill(pixel(colour), from, wide);
      if (!forced.matches) under.fill(found ? drawn : pixel(colour), from, wide);
      else line[from] = drawn;
      if (found) lined = true;
      if (to - from >= charWidth * 3 + 6 * dpr || sameNode(selected, part, i)) labels.push([from, to, y0, y1, part, i]);
    });
    const rule = y1 - (forced.matches ? gap : 2 * gap);
    for (let y = Math.max(0, y0); y < Math.min(H, y1); y++) pixels.set(lined && y >= rule ? under : line, y * W);
  }
  ctx.putImageData(image, 0, 0);
  for (const label of labels) drawLabel(...label);
  $('found').textContent = foundText();
  if (!root.dataset.drawn) {
    root.dataset.drawn = Math.round(performance.now()); /* milliseconds until the first complete graph */
    performance.mark('graph');
    setTimeout(drawTime); /* the graph comes first */
  }
}

const sameNode = (a, part, i) => a && a.part === part && a.i === i;
/* Of the labels in boxes. */
const ink = () => forced.matches ? fg : dark ? 0xf4f4f4 : 0x111111;

/* A comparison's labels begin with a sign, as colour must not be the only carrier. */
function labelOf(t, i, width) {
  const more = t.wasTotal && kinds[t.name[i]] < PROCESS && !isWithin(t.name[i]) ? t.total[i] - 2 * t.wasTotal[i] : 0;
  const sign = more > 0 ? '+ ' : more < 0 ? '\u2212 ' : '';
  const text = fit(t.name[i], Math.floor(width / charWidth) - sign.length);
  return text && sign + text;
}

function drawLabel(from, to, y0, y1, part, i) {
  const t = part.tree, x = t.name[i], pad = 3 * dpr;
  if (kinds[x] === head.unseen && !forced.matches) {
    ctx.fillStyle = hatch = hatch || ctx.createPattern(stripes(), 'repeat');
    ctx.fillRect(from, y0, to - from - 1, y1 - y0);
  }
  ctx.fillStyle = css(ink());
  ctx.font = font;
  ctx.textBaseline = 'middle';
  const text = labelOf(t, i, to - from - 2 * pad);
  if (text) ctx.fillText(text, from + pad, (y0 + y1 + dpr) / 2, to - from - pad);
  if (sameNode(selected, part, i)) {
    const b = 2 * dpr, w = Math.max(to - from, 3 * b), h = y1 - y0;
    ctx.fillStyle = css(fg);
    for (const [left, top, wide, high] of [[0, 0, w, b], [0, h - b, w, b], [0, 0, b, h], [w - b, 0, b, h]]) {
      ctx.fillRect(from + left, y0 + top, wide, high);
    }
  }
}

function stripes() {
  const tile = make('canvas'), size = tile.width = tile.height = Math.round(6 * dpr), c = tile.getContext('2d');
  c.strokeStyle = dark ? '#ffffff22' : '#00000022';
  c.lineWidth = 1.5 * dpr;
  for (const x of [-size, 0, size]) {
    c.moveTo(x, size);
    c.lineTo(x + size, 0);
  }
  c.stroke();
  return tile;
}

/* ---- Numbers in words. */
function time(ns) {
  if (head.unit === 'bytes') {
    let i = 0;
    for (; ns >= 999.5; i++) ns /= 1000;
    return (i ? ns.toPrecision(3) : ns) + ' ' + ['bytes', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB'][i];
  }
  if (head.noun || !head.hz && !head.value) return Math.round(ns / head.unit_ns).toLocaleString('en') + ' ' + (head.noun || 'samples');
  const s = ns / 1e9;
  return s.toFixed(s === 0 || s >= 9.995 ? 1 : s >= .0995 ? 2 : 3) + ' s';
}
const percent = share => (100 * (share || 0)).toFixed(1) + ' %';
const points = share => (Math.abs(share) < .0005 ? '' : share < 0 ? '\u2212' : '+') + Math.abs(100 * share).toFixed(1);

/* A share of few samples is told with its \u00b1, as in the summary: 95 of 100 such intervals hold the true share. */
const samples = () => head.hz && !head.value && !file.before ? file.total[0] / head.unit_ns : 0;
function margin(share) {
  const n = samples(), points = n && 196 * Math.sqrt(share * (1 - share) / n);
  return points >= share * 10 && points >= .05 ? ' \u00b1 ' + points.toFixed(1) : '';
}

function describe({part, i}) {
  const t = part.tree, x = t.name[i], z = part.zoom, all = file.total[0];
  const facts = [kindName(x)];
  if (places[placeOf[x]]) facts.push(places[placeOf[x]]);
  if (t.wasTotal) {
    const [was, now, change] = threeShares(t.total[i], t.wasTotal[i]);
    facts.push(percent(was) + ' before, ' + percent(now) + ' now (' + points(change) + ' points)');
    if (judged[x]) facts.push(isWithin(x) ? 'within chance' : 'beyond chance');
  } else {
    facts.push('total ' + time(t.total[i]) + ', ' + percent(t.total[i] / all) + ' of all' + margin(t.total[i] / all) +
      (z || base !== file && base !== joined ? ', ' + percent(t.total[i] / t.total[z]) + ' of view' : ''));
    if (t.self) facts.push('own ' + time(t.self[i]));
    if (head.hz && !head.value) facts.push(Math.round(t.total[i] / head.unit_ns).toLocaleString('en') + ' samples');
  }
  const [first, ...lines] = linesOf[x] || [];
  if (first) facts.push('begins at line ' + first);
  if (lines.length) facts.push('executes line ' + lines.map(([line, share]) => line + ' ' + percent(share)).join(', '));
  return [names[x], facts.join(' \u00b7 ')];
}

function showStatus(text) {
  const at = hovered || selected, [name, facts] = text ? ['', text] : at ? describe(at) : ['', note || sum() + S.hint];
  status.replaceChildren(make('b', name), make('span', facts));
}

/* ---- Time: a strip of CPU over the window, or a heat map of it (columns of seconds, rows of their parts). A picked
   span [from, to) of steps makes `file` what was in it; what has no moment is in no span. */
const RAMP = [0, .3, .52, .7, .84], WIDTHS = [.1, .2, .5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200];
const STRIP = 72, AXIS = 18, GUTTER = 44;
const strip = make('section', undefined, null, {id: 'time', 'aria-label': 'Time', hidden: ''});
const band = make('canvas', undefined, null, {id: 'band', tabindex: 0, role: 'application', 'aria-describedby': 'status'});
const timeBar = make('p'), paper = band.getContext('2d', {alpha: false});
strip.append(timeBar, band);
scroll.before(strip);
let lane, dragged = null, timeless = 0, cutAt = '', due = 0;

const stepS = () => head.step_ns / 1e9;
const stepSeconds = step => +(step * stepS()).toFixed(3);
const inRange = (low, x, high) => Math.max(low, Math.min(x, high));
const ofCpu = (words, other = '') => head.hz ? words : other;
function clock(s, digits) {
  if (!head.start_ms) return s.toFixed(digits) + ' s';
  return new Date(head.start_ms + s * 1000).toISOString().slice(11, digits ? 20 + digits : 19);
}
function spanWords(span) {
  const [from, to] = span.map(step => step * stepS());
  const digits = [from, to].every(s => Math.abs(s * 10 - Math.round(s * 10)) < 1e-6) ? 1 : 2;
  return from.toFixed(digits) + ' s to ' + to.toFixed(digits) + ' s' +
    (head.start_ms ? ' (' + clock(from, digits) + ' to ' + clock(to, digits) + ' UTC)' : '');
}
function spanText() {
  if (!S.span) return '';
  const seen = file.total[0] ? time(file.total[0]) + ofCpu(' of CPU') : 'nothing was seen', lost = timelessText();
  return spanWords(S.span) + ': ' + seen + (lost && ', ' + lost + ' of the window') + '. ';
}
const timelessText = () => timeless > whole.total[0] * 5e-4 ? 'not in time: ' + percent(timeless / whole.total[0]) : '';
function spanDates(when) {
  const [from, to] = S.span ? S.span.map(step => head.start_ms + step * stepS() * 1000) : [head.start_ms, head.end_ms];
  return {start_time: when(from), end_time: when(to)};
}

/* What is told of the whole once: `group` of each moment, the heaviest processes and the rest. */
function prepareTime() {
  cutAt = '';
  strip.hidden = true;
  lane = null;
  if (!moments) return;
  const {node, ns} = moments, top = new Int32Array(whole.n), sums = new Map();
  timeless = whole.total[0];
  for (let i = 1; i < whole.n; i++) {
    const p = whole.parent[i], x = whole.name[i];
    top[i] = p ? top[p] : joinedAs[x] || x;
  }
  for (let m = 0; m < ns.length; m++) {
    const x = top[node[m]];
    sums.set(x, (sums.get(x) || 0) + ns[m]);
    timeless -= ns[m];
  }
  const order = [...sums].sort((a, b) => b[1] - a[1]), most = order.length > 5 ? 4 : 5, place = new Map();
  order.forEach(([x], k) => place.set(x, Math.min(k, most)));
  const group = Uint8Array.from(node, i => place.get(top[i])), rest = order.slice(most);
  const shown = order.slice(0, most).map(([x, ns]) => [fit(x, 28), ns]);
  if (rest.length) shown.push([rest.length + ' others', rest.reduce((sum, [, ns]) => sum + ns, 0)]);
  lane = {group, shown};
}

/* How the picture is divided: into cells of `cell` steps; a column has `rows` of them. */
function divide() {
  const all = head.steps * stepS(), heat = S.times === 'heat', most = x => heat ? 120 : x < 1 ? 60 : 150;
  const wide = WIDTHS.find(w => (!heat || w >= 1) && w >= stepS() && all / w <= most(w)) || Math.ceil(all / 120);
  const rows = heat ? inRange(1, Math.floor(wide / stepS() + 1e-9), 50) : 1;
  const size = wide / rows / stepS(), cells = Math.ceil(head.steps / size - 1e-9);
  const key = [heat, wide, rows].join();
  if (lane.key === key) return;
  const groups = heat ? 1 : lane.shown.length, sum = new Float64Array(cells * groups);
  const {step, ns} = moments;
  for (let m = 0; m < ns.length; m++) {
    const c = Math.floor(step[m] / size + 1e-9);
    sum[c * groups + (heat ? 0 : lane.group[m])] += ns[m];
  }
  let top = 0;
  for (let c = 0; c < cells; c++) {
    let here = 0;
    for (let g = 0; g < groups; g++) here += sum[c * groups + g];
    top = Math.max(top, here / (size * head.step_ns));
  }
  Object.assign(lane, {key, wide, rows, cells, size, groups, sum, top});
}

const edgeOf = cell => Math.min(head.steps, Math.ceil(cell * lane.size - 1e-9));
const cellOf = step => Math.floor(step / lane.size + 1e-9);
const columns = () => Math.ceil(lane.cells / lane.rows);

function drawTime() {
  if (!lane || !root.dataset.drawn) return;
  strip.hidden = S.times === 'hidden';
  if (strip.hidden) return;
  divide();
  const heat = S.times === 'heat', r = devicePixelRatio || 1, w = band.clientWidth, rowH = heat ? 2 : 1;
  const high = heat ? Math.max(STRIP, lane.rows * rowH) : STRIP, n = columns();
  band.style.height = high + AXIS + 'px';
  band.style.touchAction = heat ? 'none' : 'pan-y';
  band.width = Math.round(w * r);
  band.height = Math.round((high + AXIS) * r);
  paper.setTransform(r, 0, 0, r, 0, 0);
  const accent = forced.matches ? fg : dark ? 0x8ab4ff : 0x1b56b8;
  const x = c => Math.round((GUTTER + (w - GUTTER) * c / n) * r) / r;
  const gap = x(1) - x(0) > 4 ? 1 : 0, span = dragged || S.span, shade = k => css(mix(accent, bg, RAMP[k]));
  const rect = (colour, ...where) => { paper.fillStyle = colour; paper.fillRect(...where); };
  const {rows, groups, sum, size} = lane, full = size * head.step_ns * (lane.top || 1);
  const inside = c => !span || edgeOf(c + 1) > span[0] && edgeOf(c) < span[1];
  rect(css(bg), 0, 0, w, high + AXIS);
  for (let c = 0; c < lane.cells; c++) {
    const column = Math.floor(c / rows), left = x(column), wide = x(column + 1) - left - gap;
    if (heat) {
      const edge = row => Math.round(row * high / rows * r) / r, y = edge(c % rows), tall = edge(c % rows + 1) - y;
      const part = sum[c] / full, low = mix(bg, accent, .08);
      const colour = part ? mix(low, accent, Math.sqrt(part)) : mix(bg, fg, S.span ? .12 : .05);
      rect(css(inside(c) ? colour : mix(colour, bg, .65)), left, y, wide, tall);
    } else for (let g = 0, y = high; g < groups; g++) {
      const tall = sum[c * groups + g] / full * (high - 4);
      paper.globalAlpha = inside(c) ? 1 : .3;
      if (tall) rect(shade(g), left, y -= tall, wide, tall);
      paper.globalAlpha = 1;
    }
  }
  if (span && !heat) {
    const at = step => GUTTER + (w - GUTTER) * step / size / n;
    paper.strokeStyle = css(fg);
    paper.strokeRect(at(span[0]) + .5, .5, Math.max(1, at(span[1]) - at(span[0]) - 1), high - 1);
  }
  rect(css(mix(bg, fg, .5)), GUTTER, high, w - GUTTER, 1);
  paper.fillStyle = css(fg);
  paper.font = '11px system-ui, sans-serif';
  paper.textBaseline = 'alphabetic';
  paper.textAlign = 'right';
  const left = GUTTER - 4, label = heat ? [0, lane.wide] : [lane.top, 0];
  paper.fillText(+label[0].toPrecision(2), left, 10);
  paper.fillText(+label[1].toPrecision(2), left, high);
  paper.fillText(heat ? 's' : ofCpu('cores'), left, high / 2 + 4);
  paper.textAlign = 'left';
  const every = Math.max(1, Math.ceil((head.start_ms ? 64 : 56) / ((w - GUTTER) / n)));
  const nice = [1, 2, 5, 10, 15, 20, 30, 60, 120].find(k => k >= every) || every;
  for (let c = 0; c < n; c += nice) {
    const at = x(c);
    if (at + 50 > w) break;
    rect(css(fg), at, high, 1, 4);
    paper.fillText(clock(c * lane.wide, nice * lane.wide < 1 ? 1 : 0), at + 3, high + 14);
  }
  drawTimeBar(shade, heat);
}

function drawTimeBar(shade, heat) {
  const span = dragged || S.span, focused = document.activeElement, all = whole.total[0];
  const button = (key, text) => make('button', text, () => KEYS[key][1](), {title: KEYS[key][0] + ' (' + key + ')'});
  const legend = heat ? [make('span', 'CPU by second (across) and part of it (down)' + ofCpu(', at most ' + lane.top.toFixed(1) + ' cores'))]
    : lane.shown.map(([name, ns], k) => {
      const entry = make('span'), box = make('i');
      box.style.background = shade(k);
      entry.append(box, name + ' ', make('small', percent(ns / all)));
      return entry;
    });
  const kept = timeBar.contains(focused);
  timeBar.replaceChildren(button('q', 'Time: ' + (heat ? 'heat map' : 'strip')), ...legend, make('small', timelessText()));
  if (kept) timeBar.firstChild.focus();
  band.setAttribute('aria-label', (heat ? 'Heat map of CPU over time' : 'CPU over time') + ', ' +
    (span ? 'picked ' + spanWords(span) : 'all ' + spanWords([0, head.steps]) + ' shown') +
    '. Arrow keys move the span, with Shift its end; Escape shows all.');
}

/* What was in the span: those of the nodes that had time in it, or above one. */
function cutTime() {
  const key = String(S.span || '');
  if (key === cutAt) return;
  cutAt = key;
  file = whole;
  joined = null;
  if (!S.span) return;
  const {node, step, ns} = moments, {n, parent, name} = whole, [from, end] = S.span;
  const self = new Float64Array(n), to = new Int32Array(n);
  for (let m = 0; m < ns.length; m++) {
    if (step[m] < from || step[m] >= end) continue;
    self[node[m]] += ns[m];
    for (let i = node[m]; i && !to[i]; i = parent[i]) to[i] = 1;
  }
  let made = 1;
  for (let i = 1; i < n; i++) if (to[i]) to[i] = made++;
  const up = new Int32Array(made), named = new Int32Array(made), own = new Float64Array(made);
  named[0] = name[0];
  for (let i = 1; i < n; i++) {
    const k = to[i];
    if (!k) continue;
    up[k] = to[parent[i]];
    named[k] = name[i];
    own[k] = self[i];
  }
  file = arrange(made, up, named, own);
}

const unlessAll = span => span && (span[0] > 0 || span[1] < head.steps) ? span : null;
function pickTime(span, push) {
  S.span = unlessAll(span);
  dragged = null;
  save(push);
  drawTime();
  cancelAnimationFrame(due);
  due = requestAnimationFrame(() => { /* keys that repeat may be faster than a large graph */
    cutTime();
    refilter();
  });
}
function wholeTime() {
  if (S.span) {
    S.span = null;
    save(true);
  }
  cutTime();
  refilter();
}

function saveTime(h) {
  if (S.span) h.set('span', S.span.map(stepSeconds).join('-'));
  if (S.times) h.set('times', S.times);
}
function restoreTime(text) {
  const [, from, to] = (/^([\d.]+)-([\d.]+)$/.exec(text('span')) || []).map(s => Math.round(s / stepS()));
  S.times = ['heat', 'hidden'].includes(text('times')) ? text('times') : '';
  S.span = moments && from >= 0 && from < to && from < head.steps ? [from, Math.min(to, head.steps)] : null;
  if (text('span') && !S.span) note = UNKNOWN + text('span') + ' s';
  S.span = unlessAll(S.span);
  strip.hidden = !moments || S.times === 'hidden';
  cutTime();
}

function nextTime() {
  if (!moments) return showStatus('When samples were taken is not known here.');
  S.times = {'': 'heat', heat: 'hidden', hidden: ''}[S.times];
  save();
  drawTime();
  redraw();
}
function focusTime() {
  if (!moments) return nextTime();
  if (S.times === 'hidden') nextTime();
  band.focus();
}

/* Left and right by a column, up and down by a row, with Shift the end alone; the first picks a column. */
function timeKey({key, shiftKey}) {
  const {rows, cells} = lane, last = Math.max(0, cells - rows);
  const by = {ArrowLeft: -rows, ArrowRight: rows, ArrowUp: -1, ArrowDown: 1}[key];
  if (!by && key !== 'Home' && key !== 'End') return false;
  if (key === 'Home' || by > 0 && !S.span) pickTime([0, edgeOf(rows)], true);
  else if (key === 'End' || !S.span) pickTime([edgeOf(last), head.steps], true);
  else {
    let a = cellOf(S.span[0]), b = cellOf(S.span[1] - 1) + 1;
    if (shiftKey) b = inRange(a + 1, b + by, cells);
    else {
      const move = inRange(-a, by, cells - b);
      a += move;
      b += move;
    }
    pickTime([edgeOf(a), edgeOf(b)]);
  }
  return true;
}

/* The cell under the pointer. */
function cellAt(event) {
  const box = band.getBoundingClientRect(), {rows} = lane, high = box.height - AXIS;
  const column = Math.floor((event.clientX - box.left - GUTTER) / (box.width - GUTTER) * columns());
  const row = Math.floor((event.clientY - box.top) / high * rows);
  return Math.min(inRange(0, column, columns() - 1) * rows + inRange(0, row, rows - 1), lane.cells - 1);
}
const cellsFrom = (a, b) => [edgeOf(Math.min(a, b)), edgeOf(Math.max(a, b) + 1)];
let pressedAt = -1;
band.addEventListener('pointerdown', event => {
  if (event.button) return;
  band.setPointerCapture(event.pointerId);
  pressedAt = cellAt(event);
});
band.addEventListener('pointermove', event => {
  if (pressedAt < 0) return;
  dragged = cellsFrom(pressedAt, cellAt(event));
  drawTime();
});
band.addEventListener('pointerup', event => {
  if (pressedAt < 0) return;
  const span = cellsFrom(pressedAt, cellAt(event));
  pressedAt = -1;
  pickTime(span, true);
});
band.addEventListener('pointercancel', () => {
  pressedAt = -1;
  dragged = null;
  drawTime();
});

/* ---- Search: each name is tested once. */
function search() {
  const text = S.query, slashed = /^\/(.+)\/$/.exec(text);
  let test = null;
  query.removeAttribute('aria-invalid');
  search.problem = '';
  if (text) {
    const exact = /[A-Z]/.test(text);
    if (S.regex || slashed) {
      try {
        const re = new RegExp(slashed ? slashed[1] : text, exact ? '' : 'i');
        test = name => re.test(name);
      } catch (e) {
        query.setAttribute('aria-invalid', 'true');
        search.problem = 'not a regular expression';
      }
    } else {
      const wanted = exact ? text : text.toLowerCase();
      test = name => (exact ? name : name.toLowerCase()).includes(wanted);
    }
  }
  hit = test && Uint8Array.from(names, name => test(name) ? 1 : 0);
  hits = null;
  hitAt = -1;
  search.share = null;
  for (const part of parts) part.tree.marks = null;
  if (S.view === 'table') drawTable();
  redraw();
}

/* The union of what matches, below the zoomed node: nested matches count once. */
function foundText() {
  if (search.problem || !hit) return search.problem;
  if (!search.share) {
    const t = base, z = S.view === 'graph' ? parts[0].zoom : 0;
    let sum = 0, was = 0, count = 0, inside = false;
    for (let i = z; i; i = t.parent[i]) inside = inside || hit[t.name[i]];
    for (let i = z; i < t.end[z];) {
      if (hit[t.name[i]] || inside) {
        sum += t.total[i];
        was += t.before ? t.wasTotal[i] : 0;
        count++;
        i = t.end[i];
      } else {
        i++;
      }
    }
    const places = count.toLocaleString('en') + (count === 1 ? ' place' : ' places');
    const now = (sum - was) / (t.total[z] - (t.before ? t.wasTotal[z] : 0));
    search.share = (t.before ? percent(was / t.wasTotal[z]) + ' before, ' + percent(now) + ' now' : percent(now)) +
      ' in ' + places;
  }
  return (hitAt >= 0 ? hitAt + 1 + ' of ' : '') + search.share;
}

function nextHit(step) {
  if (!hit) return;
  const part = parts[0], t = part.tree;
  if (!hits) {
    hits = [];
    for (let i = 1; i < t.n; i++) {
      let p = t.parent[i];
      if (!hit[t.name[i]]) continue;
      while (p && !hit[t.name[p]]) p = t.parent[p];
      if (!p) hits.push(i);
    }
    hits.sort((a, b) => t.total[b] - t.total[a] || a - b);
    hitAt = -1;
  }
  if (!hits.length) return;
  hitAt = (hitAt + step + hits.length + (hitAt < 0 && step < 0)) % hits.length;
  const i = hits[hitAt], kept = hits, at = hitAt, share = search.share;
  let up = i;
  while (up && t.total[i] / t.total[up] > .05) up = t.parent[up];
  if (up !== part.zoom && (t.total[i] / t.total[part.zoom] < .01 || t.left[i] < t.left[part.zoom] ||
      t.left[i] >= t.left[part.zoom] + t.total[part.zoom])) {
    zoomTo(part, up, false);
    hits = kept;
    hitAt = at;
    search.share = up ? search.share : share;
  }
  select(part, i);
}

/* ---- Selecting and moving. */
function select(part, i) {
  selected = {part, i};
  hovered = null;
  widen(part, W || 1);
  const y = rowOf(part, part.tree.depth[i]) * rowHeight;
  if (y < scroll.scrollTop || y + rowHeight > scroll.scrollTop + scroll.clientHeight) {
    scroll.scrollTop = y - scroll.clientHeight / 2;
  }
  showStatus();
  redraw();
}

function nodeAt(event) {
  const box = canvas.getBoundingClientRect(), x = (event.clientX - box.left) / box.width;
  const offset = S.flip ? Math.max(0, scroll.clientHeight - rowCount() * rowHeight) : 0;
  const row = Math.floor((event.clientY - box.top + scroll.scrollTop - offset) / rowHeight);
  if (row < 0 || row >= rowCount() || x < 0 || x >= 1) return null;
  const [part, d] = atRow(row), t = part.tree, z = part.zoom;
  if (d <= t.depth[z]) {
    let i = z;
    while (t.depth[i] > d) i = t.parent[i];
    return {part, i};
  }
  if (d > t.deepest) return null;
  const edge = t.left[z] + x * t.total[z], j = seek(t, d, t.start[d], edge);
  return j < t.start[d + 1] && t.left[t.row[j]] <= edge ? {part, i: t.row[j]} : null;
}

/* Arrow keys: up and down as seen on the screen. */
function move(key) {
  const {part, i} = selected || {part: parts[0], i: parts[0].zoom}, t = part.tree;
  if (!selected) return select(part, i);
  if (key === 'ArrowLeft' || key === 'ArrowRight') {
    const row = childrenOf(t, t.parent[i]), at = row.indexOf(i) + (key === 'ArrowLeft' ? -1 : 1);
    if (i && row[at] !== undefined) select(part, row[at]);
    return;
  }
  const deeper = (key === 'ArrowDown') !== (S.flip !== !!part.up), other = parts[part.up ? 0 : 1];
  if (!deeper && i) return select(part.up && !t.parent[i] ? parts[0] : part, t.parent[i]);
  const into = deeper ? part : other, child = into && childrenOf(into.tree, deeper ? i : 0)[0];
  if (child !== undefined) select(into, child);
}

const target = () => hovered || selected;
const targetName = () => target() && names[target().part.tree.name[target().i]];
function onFunction(act) {
  const name = targetName();
  if (name && target().i > 0 || S.view === 'sandwich' && name) act(name);
  else showStatus('Point at a function, or move to one with the arrow keys, first.');
}

/* ---- Taking things out. */
async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch (e) {
    const area = make('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  showStatus('Copied: ' + what);
}

const clean = name => name.replace(/[;\r\n]/g, ':');
/* As in a .col: "f (a.py)" has its first line, "f (a.py:12)". */
function spelled(x) {
  const [first] = linesOf[x] || [];
  return clean(first ? names[x].replace(/( \[[^[\]]*\])?\)$/, ':' + first + '$&') : names[x]) + suffix(x);
}
function collapsed(t, i, from = []) {
  for (; i > 0; i = t.parent[i]) {
    const x = t.name[i], row = kinds[x] === PROCESS && rowOfLabel.get(names[x]);
    if (row) {
      if (!from.thread) from.push(clean(row[0]));
      from.push(clean(row[1]));
    } else {
      from.thread = from.thread || kinds[x] === THREAD;
      from.push(spelled(x));
    }
  }
  return from.reverse().join(';');
}

function copyStack() {
  if (!target()) return onFunction();
  const {part: {tree: t}, i} = target(), path = [];
  if (t === base) return copy(collapsed(t, i) + ' ' + Math.round(t.total[i] / head.unit_ns), 'the stack');
  for (let n = i; n > 0 || n === 0 && !t.fresh; n = t.parent[n]) {
    path.push(spelled(t.name[n]));
    if (!n) break;
  }
  if (!t.up) path.reverse();
  copy(path.join(';') + ' ' + Math.round(t.total[i] / head.unit_ns), 'the stack');
}

function download(lines, type, name) {
  const link = make('a'), url = URL.createObjectURL(new Blob(lines, {type}));
  link.href = url;
  const plain = text => (text || '').replace(/[^\w.-]+/g, '_');
  link.download = (plain(head.service) || 'profile') + (head.value ? '.' + plain(head.value) : '') +
    (S.span ? '.' + S.span.map(stepSeconds).join('-') + 's' : '') + name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

/* Counts are rounded so that the totals are kept. */
function saveCollapsed() {
  const when = ms => new Date(ms).toISOString();
  const lines = ['# ' + JSON.stringify({
    containers: [...new Set(head.processes.map(row => row[1]).filter(box => box))],
    container_names_enabled: true,
    application_metadata: [null],
    application_metadata_enabled: false,
    profiling_mode: 'cpu',
    metadata: {hostname: head.host, run_arguments: {service_name: head.service, profile_api_version: null}},
    sampling_mode: 'frequency',
    sampling_frequency: head.hz,
    ...spanDates(when),
    pillion: {version: head.version, period_ns: head.unit_ns, value: head.value, unit: head.unit,
      span: S.span ? spanWords(S.span) : undefined},
  }) + '\n'];
  let owed = 0;
  for (let i = 1; i < file.n; i++) {
    if (!file.self[i]) continue;
    owed += file.self[i] / head.unit_ns;
    const count = Math.round(owed);
    owed -= count;
    if (count > 0) lines.push(collapsed(file, i) + ' ' + count + '\n');
  }
  download(lines, 'text/plain', '.col');
}

function saveSvg() {
  const xml = text => text.replace(/[&<>"]/g, c => '&#' + c.charCodeAt(0) + ';');
  const h = rowHeight * dpr, told = spanText(), high = (rowCount() + !!told) * h, out = [];
  out.push(`<svg xmlns="http://www.w3.org/2000/svg" width="${W / dpr}" height="${high / dpr}"`,
    ` viewBox="0 0 ${W} ${high}" font-family="monospace" font-size="${12 * h / 17}">`,
    `<rect width="100%" height="100%" fill="${css(bg)}"/>\n`);
  for (let row = 0; row < rowCount(); row++) {
    const [part, d] = atRow(row), t = part.tree;
    scan(part, d, (from, to, i, found) => {
      const w = to - from, text = labelOf(t, i, w - 6 * dpr), y = row * h, wide = Math.max(w - (w > 2), 1);
      const title = xml(describe({part, i}).join(' \u00b7 ')), colour = css(found ? T.hit : colourOf(t, i));
      out.push(`<g><title>${title}</title>`);
      out.push(`<rect x="${from}" y="${y}" width="${wide}" height="${h - dpr}" fill="${colour}"/>`);
      if (text) out.push(`<text x="${from + 3 * dpr}" y="${y + .75 * h}" fill="${css(ink())}">${xml(text)}</text>`);
      out.push('</g>\n');
    });
  }
  if (told) out.push(`<text x="${3 * dpr}" y="${high - .25 * h}" fill="${css(fg)}">${xml(told)}</text>`);
  out.push('</svg>\n');
  download(out, 'image/svg+xml', '.svg');
}

/* ---- The controls. */
function flag(name) {
  S[name] = !S[name];
  refilter();
}
function flip() {
  S.flip = !S.flip;
  toPivot = true;
  save();
  drawControls();
  redraw();
}
function nextColour() {
  S.colour = (S.colour + 1) % COLOURS.length;
  save();
  recolour();
  drawControls();
}
function undoFilters() {
  for (const set of SETS) S[set].clear();
  S.focus = '';
  S.recursion = S.modules = false;
  wholeTime();
}
function leave() {
  if (S.span && !parts.some(part => part.zoom)) return wholeTime();
  for (const part of parts) part.zoom = 0;
  zoomTo(parts[0], 0);
}
const VIEWS = {graphview: 'graph', bottom: 'bottom', sandwich: 'sandwich', table: 'table'};

/* key: [what it does, how, in the context menu?] */
const KEYS = {
  Enter: ['Zoom to this frame', () => target() && zoomTo(target().part, target().i), 1],
  Escape: ['Leave the zoom, then the span of time (also 0)', leave],
  Backspace: ['One caller up', () => zoomTo(parts[0], parts[0].tree.parent[parts[0].zoom])],
  w: ['Sandwich: callers and callees of this function', () => setView('sandwich', targetName()), 1],
  f: ['Only stacks with this function', () => onFunction(name => { S.focus = name; refilter(); }), 1],
  x: ['Hide stacks with this function', () => onFunction(name => toggle(S.hide, name)), 1],
  h: ['Lines of this function', showLines, 1],
  y: ['Copy this stack as a collapsed line', copyStack, 1],
  o: ['Copy this name', () => onFunction(name => copy(name, name)), 1],
  g: ['Graph: callers above, callees below', () => setView('graph')],
  b: ['Bottom-up: own time, then who called', () => setView('bottom')],
  t: ['Table of all functions', () => setView('table')],
  v: ['Next sample type, where there are several', () => setType(types?.selectedIndex + 1)],
  i: ['Turn upside down: icicle or flame', flip],
  c: ['Colour by kind, module or own time', nextColour],
  p: ['Filter by process, thread, container', () => $('filter').click()],
  j: ['Processes of one name together or apart', () => flag('apart'), 2],
  r: ['Collapse direct recursion', () => flag('recursion'), 2],
  m: ['Collapse to modules', () => flag('modules'), 2],
  z: ['Pick a span of time: arrows move it, with Shift its end, Escape shows all', focusTime, 2],
  q: ['Strip of time, heat map or neither', nextTime, 2],
  k: ['Kernel frames on or off', () => toggle(S.kind, kindNumber('kernel'))],
  n: ['Native frames on or off', () => toggle(S.kind, kindNumber('native'))],
  a: ['Time not seen on or off', () => toggle(S.kind, head.unseen)],
  u: ['Undo all filters', undoFilters, 2],
  l: ['Copy a link to this view', () => copy(location.href, 'link'), 2],
  s: ['Save this view as SVG', saveSvg, 2],
  e: ['Save the profile as collapsed stacks', saveCollapsed, 2],
  d: ['Light or dark', switchTheme, 2],
  '/': ['Search (also Ctrl-F); Enter and Shift-Enter walk through the hits, Escape clears', () => query.focus()],
  '?': ['This list', () => $('help').showModal()],
};

function pressed(id, on) {
  $(id).setAttribute('aria-pressed', on);
}

function drawControls() {
  for (const id in VIEWS) pressed(id, S.view === VIEWS[id]);
  pressed('flip', S.flip);
  pressed('regex', S.regex);
  $('colour').textContent = 'Colour: ' + (S.colour || !file.before ? COLOURS[S.colour] : 'change');
  scroll.hidden = S.view === 'table';
  list.hidden = !scroll.hidden;
  drawChips();
  drawDetail();
  const crumbs = [], part = parts[0], crumb = (text, undo) => crumbs.push(make('button', text + ' \u00d7', undo));
  if (part.zoom) crumb('zoom: ' + fit(part.tree.name[part.zoom], 40), leave);
  if (S.view === 'sandwich') crumb('function: ' + S.name, () => setView('graph'));
  if (S.span) crumb('time: ' + spanWords(S.span), wholeTime);
  if (S.focus) crumb('only: ' + S.focus, () => { S.focus = ''; refilter(); });
  for (const set of SETS.slice(1)) {
    const word = set === 'hide' ? 'without: ' : 'only: ';
    for (const value of S[set]) crumb(word + (value || '(none)'), () => toggle(S[set], value));
  }
  if (S.apart) crumb('processes apart', KEYS.j[1]);
  if (S.recursion) crumb('recursion collapsed', KEYS.r[1]);
  if (S.modules) crumb('modules', KEYS.m[1]);
  $('crumbs').replaceChildren(...crumbs);
  showStatus();
}

/* Kinds of code with their share of own time; a click takes the kind out. */
function drawLegend() {
  const share = new Float64Array(head.kinds.length), here = new Set(kinds);
  for (let i = 1; i < file.n; i++) share[kinds[file.name[i]]] += shareNow(file.self[i], file.before?.[i]);
  const order = [...share.keys()].filter(k => here.has(k)).sort((a, b) => share[b] - share[a]);
  $('legend').replaceChildren(...order.map(k => {
    const button = make('button', undefined, () => toggle(S.kind, k),
      {'aria-pressed': !S.kind.has(k), title: 'Show or leave out ' + head.kinds[k][0]});
    if (S.colour === 0 && !file.before) button.append(make('i'));
    if (button.firstChild) button.firstChild.style.background = css(kindColour(k));
    button.append(head.kinds[k][0], make('small', percent(share[k])));
    return button;
  }));
}

/* The heaviest of what there is to choose from; typing finds the others, single processes by their PIDs as well. */
const CHIPS_MAX = 20;
function drawChips() {
  if (chips.hidden) return;
  const groups = {proc: new Map(), thread: new Map(), box: new Map()}, wanted = pick.value.trim().toLowerCase();
  const focused = document.activeElement.chip;
  const count = (set, value, i, text = value, found = true) => {
    const chip = groups[set].get(value) || {value, text: text || '(none)', found, share: 0};
    groups[set].set(value, chip);
    chip.share += shareNow(file.total[i], file.wasTotal?.[i]);
  };
  for (let i = 1; i < file.n;) {
    const x = file.name[i], k = kinds[x], row = rowOfLabel.get(names[x]);
    const up = rowOfLabel.get(names[file.name[file.parent[i]]]);
    if (k === PROCESS) {
      count('proc', keyOf[x], i, names[joinedAs[x] || x]);
      if (joinedAs[x]) count('proc', names[x], i, names[x], false);
      count('box', row[1], i);
    } else if (k === CONTAINER) {
      count('box', names[x], i);
    } else {
      count('thread', k === THREAD ? names[x] : up ? up[0] : '', i);
    }
    i = k === PROCESS || k === CONTAINER ? i + 1 : file.end[i];
  }
  const rows = [];
  for (const [set, title] of [['proc', 'Process'], ['thread', 'Thread'], ['box', 'Container']]) {
    const on = chip => S[set].has(chip.value);
    const fits = chip => wanted ? chip.text.toLowerCase().includes(wanted) : chip.found;
    const found = [...groups[set].values()].filter(chip => on(chip) || fits(chip));
    found.sort((a, b) => on(b) - on(a) || b.share - a.share);
    if (groups[set].size < 2 || !found.length) continue;
    const row = make('div', '', null, {role: 'group', 'aria-label': title, class: 'bar'});
    row.append(make('span', title), ...found.slice(0, CHIPS_MAX).map(chip => {
      const button = make('button', chip.text, () => toggle(S[set], chip.value), {'aria-pressed': on(chip)});
      button.append(make('small', percent(chip.share)));
      button.chip = set + chip.value;
      return button;
    }));
    const more = found.length - CHIPS_MAX;
    if (more > 0) row.append(make('small', '+ ' + more + ' more: type to find them'));
    rows.push(row);
  }
  const none = wanted ? 'Nothing has this name.' : 'One process with one thread: nothing to choose from.';
  if (!rows.length) rows.push(make('p', none));
  $('choices').replaceChildren(...rows);
  for (const button of chips.querySelectorAll('button')) if (focused === button.chip) button.focus();
}

let tableRows = 200;
/* The columns of numbers: key, title, what to sort by, the texts of a function's cells. */
function numberColumns({self, total, was, wasTotal}) {
  const all = base.total[0], pairs = [['self', 'Own time', self, was], ['total', 'With callees', total, wasTotal]];
  return pairs.flatMap(([key, title, sum, before]) => {
    if (!was) return [[key, title, x => sum[x], x => [percent(sum[x] / all) + (samples() < 1000 ? margin(sum[x] / all) : ''), time(sum[x])]]];
    return ['before', 'now', 'points'].map((column, k) => {
      const value = x => threeShares(sum[x], before[x])[k];
      const mark = x => ['\u25bc ', '', '\u25b2 '][(judged[x] ? judged[x][+(key === 'total')] : 0) + 1];
      return [key + k, column, value, x => [k === 2 ? mark(x) + points(value(x)) : percent(value(x))]];
    });
  });
}

function sortedFunctions({self, total}, columns) {
  const [, , value] = columns.find(([key]) => key === sortBy) || [];
  const order = value ? (a, b) => value(b) - value(a) : sortBy === 'name' ? (a, b) => names[a] < names[b] ? -1 : 1
    : (a, b) => kindName(a).localeCompare(kindName(b));
  const found = [];
  for (let x = 0; x < names.length; x++) if (total[x] > 0 && kinds[x] < PROCESS && (!hit || hit[x])) found.push(x);
  return found.sort((a, b) => (sortUp ? -order(a, b) : order(a, b)) || self[b] - self[a] || a - b);
}

function drawTable() {
  const sums = tally(base), columns = numberColumns(sums), found = sortedFunctions(sums, columns);
  const table = make('table', '', null, {class: 'functions' + (sums.was ? ' compared' : '')});
  const titles = table.createTHead(), body = table.createTBody();
  if (sums.was) {
    titles.insertRow().append(...[['Own time', 3], ['With callees', 3], ['', 2]].map(([title, colspan]) =>
      make(title ? 'th' : 'td', title, null, title ? {scope: 'colgroup', colspan} : {colspan})));
  }
  const top = titles.insertRow();
  for (const [key, title, value] of [...columns, ['kind', 'Kind'], ['name', 'Function']]) {
    const direction = key !== sortBy ? 'none' : !value === sortUp ? 'descending' : 'ascending';
    const cell = make('th', undefined, null,
      {scope: 'col', colspan: value && !sums.was ? 2 : 1, 'aria-sort': direction});
    cell.append(make('button', title, () => {
      sortUp = key === sortBy && !sortUp;
      sortBy = key;
      save();
      drawTable();
      list.querySelector('[aria-sort*=cending] button').focus();
    }));
    top.append(cell);
  }
  for (const x of found.slice(0, tableRows)) {
    const row = body.insertRow();
    for (const text of [...columns.flatMap(column => column[3](x)), kindName(x)]) row.insertCell().textContent = text;
    row.insertCell().append(make('button', names[x], () => setView('sandwich', names[x]), {title: places[placeOf[x]]}));
  }
  list.replaceChildren(table);
  if (found.length > tableRows) {
    list.append(make('button', 'Show all ' + found.length.toLocaleString('en') + ' functions', () => {
      tableRows = Infinity;
      drawTable();
    }));
  }
}

/* ---- Lines of a function: their shares as bars, and their text if `render --sources` found it. */
const detail = make('section', '', null, {id: 'detail', hidden: '', 'aria-label': 'Lines of a function'});
status.after(detail);
let texts; /* of functions: their kind and name, then [first line, its text, the next one's …] for each piece */

function showLines() {
  onFunction(name => {
    S.lines = name === S.lines ? '' : name;
    save();
    drawDetail();
  });
}
function hideLines() {
  S.lines = '';
  save();
  drawDetail();
}

async function drawDetail() {
  const x = names.findIndex((name, k) => name === S.lines && kinds[k] < PROCESS);
  detail.hidden = x < 0;
  if (x < 0) return redraw();
  if ($('sources') && !texts) {
    texts = new Map();
    for (const [name, kind, ...pieces] of JSON.parse(new TextDecoder().decode(await unpack('sources')))) {
      texts.set(kind + show(name), pieces);
    }
    return drawDetail();
  }
  const {self, total} = tally(base), all = base.total[0], [first, ...heavy] = linesOf[x] || [];
  const facts = [kindName(x), places[placeOf[x]], file.before ? '' : 'own ' + percent(self[x] / all) + margin(self[x] / all) +
    ', with callees ' + percent(total[x] / all) + margin(total[x] / all), first ? 'begins at line ' + first : ''];
  const table = make('table'), most = Math.max(...heavy.map(row => row[1])), share = new Map(heavy);
  const pieces = texts?.get(kinds[x] + S.lines) || heavy.map(([line]) => [line]).sort((a, b) => a[0] - b[0]);
  for (const [from, ...lines] of pieces) {
    const body = table.createTBody();
    (lines.length ? lines : ['']).forEach((text, k) => {
      const row = body.insertRow(), part = share.get(from + k), bar = make('i');
      bar.style.width = 6 * (part || 0) / most + 'em';
      row.insertCell().textContent = from + k;
      row.insertCell().textContent = part ? percent(part) : '';
      row.insertCell().append(bar);
      row.insertCell().textContent = show(text);
      if (part) row.className = 'heavy';
    });
  }
  detail.replaceChildren(make('h2', names[x]), make('button', 'Close', hideLines, {title: 'h'}),
    make('p', facts.filter(fact => fact).join(' \u00b7 ')), heavy.length ? table : make('p', NO_LINES));
  redraw();
}
const NO_LINES = 'Its lines are not in this profile: a .pprof and a running profile have those of Python, Ruby, PHP and Perl,' +
  ' a .col with --col-lines.';

/* Menus: a list of keys of KEYS at a place. */
const menu = $('menu');
function popup(group, x, y, from) {
  menu.replaceChildren(...Object.keys(KEYS).filter(key => KEYS[key][2] === group).map(key => {
    const item = make('button', KEYS[key][0], () => {
      closeMenu();
      KEYS[key][1]();
    }, {role: 'menuitem'});
    item.append(make('kbd', key));
    return item;
  }));
  menu.hidden = false;
  menu.style.left = Math.max(0, Math.min(x, innerWidth - menu.offsetWidth - 8)) + scrollX + 'px';
  menu.style.top = Math.max(0, Math.min(y, innerHeight - menu.offsetHeight - 8)) + scrollY + 'px';
  menu.from = from;
  menu.firstChild.focus();
}
function closeMenu() {
  if (menu.hidden) return;
  menu.hidden = true;
  menu.from.focus();
}

/* ---- Events. */
canvas.addEventListener('pointermove', event => {
  const at = nodeAt(event);
  if (at ? hovered && sameNode(hovered, at.part, at.i) : !hovered) return;
  hovered = at;
  canvas.style.cursor = at ? 'pointer' : '';
  showStatus();
  redraw();
});
canvas.addEventListener('pointerleave', () => {
  hovered = menu.hidden ? null : hovered;
  showStatus();
  redraw();
});
canvas.addEventListener('click', event => {
  const at = nodeAt(event);
  if (!at) return;
  selected = at;
  hovered = null;
  zoomTo(at.part, at.i);
});
canvas.addEventListener('contextmenu', event => {
  const keyed = event.button !== 2 && event.pointerType !== 'touch'; /* a long press has no button */
  const at = keyed ? selected : nodeAt(event);
  if (!at) return;
  event.preventDefault();
  selected = at;
  hovered = null;
  const box = canvas.getBoundingClientRect();
  const y = box.top + (rowOf(at.part, at.part.tree.depth[at.i]) + 1) * rowHeight - scroll.scrollTop;
  popup(1, keyed ? box.left + 20 : event.clientX, keyed ? y : event.clientY, canvas);
  redraw();
});
menu.addEventListener('keydown', event => {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key], items = [...menu.children];
  if (step) items[(items.indexOf(document.activeElement) + step + items.length) % items.length].focus();
  if (event.key === 'Escape' || event.key === 'Tab') closeMenu();
  if (event.key !== 'Enter' && event.key !== ' ') event.preventDefault();
  event.stopPropagation();
});
document.addEventListener('pointerdown', event => { if (!menu.contains(event.target)) menu.hidden = true; });
for (const [field, act] of [[query, () => { S.query = query.value; search(); save(); }], [pick, drawChips]]) {
  field.addEventListener('input', act);
  field.addEventListener('keydown', event => {
    if (event.key !== 'Escape') return;
    field.value = '';
    act();
    field.blur(); /* in the table's view there is no canvas to go to */
    canvas.focus();
  });
}
query.addEventListener('keydown', event => {
  if (event.key !== 'Enter') return;
  nextHit(event.shiftKey ? -1 : 1);
  showStatus();
});
pick.addEventListener('keydown', event => {
  if (event.key === 'Enter' && pick.value) chips.querySelector('button[aria-pressed=false]')?.click();
});
document.addEventListener('keydown', event => {
  const typing = [query, pick, types].includes(event.target), {key} = event;
  if ((event.ctrlKey || event.metaKey) && key === 'f' && event.target !== query) {
    event.preventDefault(); /* pressed again inside the field it is the browser's own search */
    query.focus();
    query.select();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
  const onControl = event.target.closest('button, a, input, summary');
  if (event.target === band && timeKey(event)) return event.preventDefault();
  if (/^Arrow/.test(key) && event.target === canvas) move(key);
  else if (key === '0') leave();
  else if (KEYS[key] && !(onControl && key === 'Enter')) KEYS[key][1]();
  else return;
  event.preventDefault();
});
for (const id in VIEWS) {
  $(id).addEventListener('click', () => setView(VIEWS[id], id === 'sandwich' ? targetName() : ''));
}
for (const [id, key] of [['flip', 'i'], ['colour', 'c'], ['keys', '?']]) $(id).addEventListener('click', KEYS[key][1]);
$('regex').addEventListener('click', () => {
  S.regex = !S.regex;
  search();
  save();
  drawControls();
});
$('filter').addEventListener('click', () => {
  chips.hidden = !chips.hidden;
  $('filter').setAttribute('aria-expanded', !chips.hidden);
  drawChips();
  if (!chips.hidden && !coarse.matches) pick.focus(); /* a touch screen's keyboard would hide the page */
  redraw();
});
$('more').addEventListener('click', () => {
  const box = $('more').getBoundingClientRect();
  popup(2, box.left, box.bottom + 2, $('more'));
});
/* On paper: all rows, in light colours. */
const PAPER_MOST = 4000;
let printing = false;
for (const type of ['beforeprint', 'afterprint']) addEventListener(type, () => {
  printing = type === 'beforeprint';
  root.dataset.theme = 'light';
  if (!printing) {
    dark = themeSet ? chosenDark : systemDark.matches;
    delete root.dataset.theme;
    applyTheme();
  }
  recolour();
  draw();
});
scroll.addEventListener('scroll', redraw);
new ResizeObserver(redraw).observe(scroll);
addEventListener('resize', () => { redraw(); drawTime(); });
(function watchRatio() { /* moved to another screen */
  matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', () => {
    watchRatio();
    redraw();
  }, {once: true});
})();
for (const condition of [systemDark, forced, coarse]) {
  condition.addEventListener('change', () => {
    hatch = null;
    recolour();
  });
}
addEventListener('popstate', () => restore());
addEventListener('hashchange', () => restore());

/* ---- Start. */
try {
  await load(0);
} catch (e) {
  status.textContent = 'The graph cannot be shown (' + e.message + '). The tables below hold the essence.';
  return;
}
S.hint = 'Click a frame to zoom, right-click for more, / to search, ? for all keys.';
const keyList = make('dl');
for (const key in KEYS) keyList.append(make('dt', key), make('dd', KEYS[key][0]));
keyList.append(make('dt', 'Arrows'), make('dd', 'Move from frame to frame'));
$('help').append(make('h2', 'Keys'), keyList, make('button', 'Close', () => $('help').close()));
const begin = () => {
  root.classList.add('ready');
  return restore();
};
if (file.total[0]) begin();
/* The other types stand behind the script, so that this one need not wait for them. */
if (document.readyState === 'loading') await new Promise(done => document.addEventListener('DOMContentLoaded', done));
types = $('type');
if (types) {
  $('views').before(types);
  types.hidden = false;
  types.addEventListener('change', () => setType(types.selectedIndex));
  if (file.total[0] && !location.hash.includes('type=')) showStatus();
  else begin();
} else if (!file.total[0]) {
  status.textContent = '';
}
})();
