'use strict';
/* pillion's flame graph: decodes the data block above, draws it, answers to mouse and keys. Nothing here makes markup or
   code out of text: names reach the page through textContent and fillText only. */
(async () => {
const $ = id => document.getElementById(id);
const canvas = $('canvas'), scroll = $('scroll'), status = $('status'), query = $('query'), list = $('list');
const PROCESS = 64, THREAD = 65, ACCOUNT = 9, DROP = -1, SPLICE = -2;

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
let dark = systemDark.matches, themeSet = false;
try { /* some browsers refuse storage to local files */
  const kept = localStorage.getItem('pillion-theme');
  if (kept) { dark = kept === 'dark'; themeSet = true; }
} catch (e) { /* then the system decides */ }
function applyTheme() {
  if (themeSet) root.dataset.theme = dark ? 'dark' : 'light';
}
function switchTheme() {
  dark = !dark;
  themeSet = true;
  try { localStorage.setItem('pillion-theme', dark ? 'dark' : 'light'); } catch (e) { /* for this visit only */ }
  applyTheme();
  recolour();
}
applyTheme();
if (!canvas) return; /* an empty profile has no graph */
if (typeof DecompressionStream === 'undefined') {
  status.textContent = 'This browser cannot unpack the graph: Chromium 103, Firefox 113, Safari 16.4 and later can. The tables below hold the essence.';
  return;
}

/* ---- Data: see flame.h for the format. */
const CALLEES_MAX = 127;
/* Characters that are invisible or reorder others are shown as escapes, as the tables do. */
const show = text => text.replace(/[\0-\x1f\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, c => {
  const hex = c.charCodeAt(0).toString(16);
  return c < '\x80' || c <= '\x9f' ? '\\x' + hex.padStart(2, '0') : '\\u' + hex.padStart(4, '0');
});
let head, names, kinds, places, placeOf, file;

async function unpack(text) {
  const packed = atob(text), bytes = new Uint8Array(packed.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function decode(bytes) {
  const text = new TextDecoder();
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
  names = [];
  kinds = [];
  placeOf = [];
  texts(name => {
    names.push(name);
    kinds.push(number());
    placeOf.push(number());
  });
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

/* ---- Trees. Nodes are numbers in pre-order, 0 is the root. Per node: name, parent, own time `self`, `total`, `left`
   edge in nanoseconds, `depth`, `end` of its subtree; in a comparison `before` and `wasTotal`, the other profile's part
   of self and total, scaled to equal sums. `row` has the nodes by depth, then by left edge; row d begins at start[d]. */
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
  if (t.items) for (let d = 0; d <= deepest; d++) row.subarray(start[d], start[d + 1]).sort((a, b) => t.left[a] - t.left[b]);
  return Object.assign(t, {deepest, start, row, marks: null});
}

/* Puts nodes whose parents come before them into pre-order, heaviest child first; those without time are left out. */
function arrange(n, parent, name, self, before) {
  const total = self.slice(0, n), first = new Int32Array(n + 2), order = new Int32Array(n), to = new Int32Array(n);
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

/* Folds nodes into a new tree. place(src, i, p, name) says what becomes of node i below the new node p: its name, SPLICE
   (its time and children go to p) or DROP (gone with all below). Only time under `focus` counts, unless it is -1. */
function folder(size, rootName, compared) {
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
        inside[i] = focus < 0 || inside[up] || src.name[i] === focus;
        let c = p;
        if (x === DROP) {
          to[i] = -1;
          continue;
        }
        if (x !== SPLICE) {
          let h = (Math.imul(p, 0x9e3779b1) ^ Math.imul(x, 0x85ebca6b)) >>> 7 & mask;
          while ((c = slot[h]) && (parent[c] !== p || name[c] !== x)) h = h + 1 & mask;
          if (!c) {
            c = slot[h] = made++;
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
  const t = {src, up, fresh, n: 1, name: [name], parent: [0], depth: [0], left: [0], total: [0], items: [items], kids: [null], waiting: [0]};
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
    const g = groupOf[x] || (groups.push(groupOf[x] = {x, sum: 0, was: 0, cur: [], w: [], b: []}), groupOf[x]);
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
      for (let c = cur[k] + 1; c < src.end[cur[k]]; c = src.end[c]) add(c, src.total[c], src.before && src.wasTotal[c]);
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
const VIEWS = ['graph', 'bottom', 'sandwich', 'table'], COLOURS = ['kind', 'module', 'own time'];
const S = {view: 'graph', name: '', flip: false, colour: 0, query: '', regex: false, focus: '', recursion: false,
  modules: false, kind: new Set(), hide: new Set(), proc: new Set(), thread: new Set(), box: new Set()};
const SETS = ['kind', 'hide', 'proc', 'thread', 'box'];
let base, parts = [], hit, hits = null, selected = null, hovered = null, sortBy = 'self', note = '';
const rowOfLabel = new Map(), moduleName = [];

/* The last resort for a name without a file: its package, class or namespace. */
function moduleOf(x) {
  if (places[placeOf[x]]) return places[placeOf[x]];
  const name = names[x], file = /\(([^()]*?)(:\d+)?[^()]*\)$/.exec(name);
  if (kinds[x] === 4 && file) return file[1];
  const bare = short(name)[1], cut = Math.max(bare.lastIndexOf('/'), bare.lastIndexOf('::'), bare.lastIndexOf('.'));
  return cut > 0 ? bare.slice(0, cut) : '[' + kindName(x) + ']';
}
const kindName = x => kinds[x] < PROCESS ? head.kinds[kinds[x]][0] : ['process', 'thread', 'container'][kinds[x] - PROCESS];

/* A name for each module, made when first wanted. */
function moduleAsName(x) {
  if (kinds[x] >= PROCESS || kinds[x] === ACCOUNT) return x;
  if (moduleName[x] === undefined) {
    const text = moduleOf(x), key = kinds[x] + text;
    if (!moduleName.made) moduleName.made = new Map();
    if (!moduleName.made.has(key)) {
      moduleName.made.set(key, names.push(text) - 1);
      kinds.push(kinds[x]);
      placeOf.push(placeOf[x]);
    }
    moduleName[x] = moduleName.made.get(key);
  }
  return moduleName[x];
}

function nameOf(text) {
  const x = names.indexOf(text);
  return x;
}

function derive() {
  const filtered = S.proc.size || S.thread.size || S.box.size;
  if (!filtered && !S.kind.size && !S.hide.size && !S.focus && !S.recursion && !S.modules) return file;
  const focus = S.focus ? nameOf(S.focus) : -1;
  const place = (t, i, p, name) => {
    const x = t.name[i], k = kinds[x], above = t.name[t.parent[i]];
    if (k === PROCESS) {
      const row = rowOfLabel.get(names[x]) || ['', '', ''];
      return S.proc.size && !S.proc.has(names[x]) || S.box.size && !S.box.has(row[2]) ? DROP : x;
    }
    if (S.hide.has(names[x])) return DROP;
    if (S.thread.size && (k === THREAD || kinds[above] === PROCESS)) {
      const thread = k === THREAD ? names[x] : (rowOfLabel.get(names[above]) || ['', ''])[1];
      if (!S.thread.has(thread)) return DROP;
    }
    if (S.kind.has(k)) return k === ACCOUNT ? DROP : SPLICE;
    const made = S.modules ? moduleAsName(x) : x;
    return (S.recursion || S.modules) && name[p] === made ? SPLICE : made;
  };
  const f = folder(file.n, file.name[0], file.before);
  f.add(file, place, focus);
  return f.done();
}
