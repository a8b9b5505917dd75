'use strict';
// The page: what its controls do, and how they fit together.

const KINDS = {
  root: ['all', 0, 0], thread: ['thread', 220, 14],
  compiled: ['compiled Java', 105, 55], c1: ['compiled Java, C1', 140, 40], inlined: ['inlined Java', 178, 52],
  interpreted: ['interpreted Java', 62, 62], subject: ['what the event is about', 300, 45], stub: ['JVM stub', 45, 60],
  native: ['native (JVM, libraries)', 12, 72], kernel: ['kernel', 32, 85], unknown: ['no name', 0, 0],
};

const element = id => document.getElementById(id);

function shade(name) {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) % 997;
  return hash / 997;
}

function percent(share) {
  return `${(100 * share).toFixed(2)} %`;
}

function amount(value, unit) {
  if (unit === 'nanoseconds') return value >= 1e9 ? `${(value / 1e9).toFixed(2)} s` : `${(value / 1e6).toFixed(1)} ms`;
  if (unit === 'bytes') return value >= 1 << 20 ? `${(value / (1 << 20)).toFixed(1)} MB` : `${(value / 1024).toFixed(1)} KB`;
  return `${Math.round(value).toLocaleString('en')} ${unit === 'count' ? '' : unit}`.trim();
}

class Page {
  constructor(profiles) {
    this.profiles = profiles;
    this.isDiff = profiles.length > 1;
    this.last = profiles[profiles.length - 1];
    this.graph = new Graph(element('chart'), {
      colour: frame => this.colour(frame),
      selected: frame => this.tell(frame),
      zoomed: () => {},
    });
    this.maps = profiles.map(profile => new HeatMap(element('heat'), profile, {
      chosen: () => this.weigh(),
      said: text => { element('time').textContent = text; },
    }));
    this.fillEvents();
    this.control();
    this.theme(localStorageGet('jdflame-theme') ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'));
    this.changeEvent();
  }

  fillEvents() {
    for (const [index, event] of this.last.events.entries()) {
      if (event.samples === 0) continue;
      element('event').append(new Option(event.name, index));
    }
    element('event').parentElement.hidden = element('event').length < 2;
    element('layout').parentElement.hidden = !this.isDiff;
    if (this.isDiff) element('roots').value = 'none'; // thread ids differ from run to run
    // Of several runs, what changed is known of stacks from their root, and nothing of time.
    for (const id of ['roots', 'mode']) element(id).parentElement.hidden = Boolean(this.last.runs);
    element('heat').hidden = Boolean(this.last.runs);
  }

  control() {
    for (const id of ['roots', 'mode', 'layout']) element(id).addEventListener('change', () => this.weigh());
    element('event').addEventListener('change', () => this.changeEvent());
    element('top').addEventListener('change', event => {
      this.graph.rootOnTop = event.target.checked;
      this.graph.lay();
      this.graph.scrollToRoot();
    });
    element('search').addEventListener('submit', event => {
      event.preventDefault();
      this.search(element('term').value);
    });
    element('clear').addEventListener('click', () => this.search(''));
    element('reset').addEventListener('click', () => this.graph.zoomTo(this.view.root));
    element('all').addEventListener('click', () => {
      for (const map of this.maps) map.clear();
      this.weigh();
    });
    element('theme').addEventListener('click', () => this.theme(document.body.dataset.theme === 'dark' ? 'light' : 'dark'));
    element('help').addEventListener('click', () => { element('keys').hidden = !element('keys').hidden; });
    document.addEventListener('keydown', event => this.key(event));
  }

  key(event) {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const out = this.graph.rootOnTop ? 'ArrowUp' : 'ArrowDown'; // where the caller is
    const keys = {
      '/': () => element('term').focus(),
      Escape: () => { this.search(''); this.graph.zoomTo(this.view.root); },
      Enter: () => this.graph.frame && this.graph.zoomTo(this.graph.frame),
      Backspace: () => this.graph.zoom.parent && this.graph.zoomTo(this.graph.zoom.parent),
      ArrowLeft: () => this.graph.move('left'),
      ArrowRight: () => this.graph.move('right'),
      ArrowUp: () => this.graph.move(out === 'ArrowUp' ? 'caller' : 'callee'),
      ArrowDown: () => this.graph.move(out === 'ArrowDown' ? 'caller' : 'callee'),
      i: () => this.toggle('mode', 'stacks', 'inverted'),
      t: () => this.toggle('roots', 'none', 'name'),
      d: () => element('theme').click(),
      '?': () => element('help').click(),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }

  toggle(id, first, second) {
    if (element(id).parentElement.hidden) return;
    element(id).value = element(id).value === first ? second : first;
    this.weigh();
  }

  theme(theme) {
    document.body.dataset.theme = theme;
    localStorageSet('jdflame-theme', theme);
    for (const map of this.maps) if (map.cells) map.draw();
    this.legend();
    this.graph.draw();
  }

  changeEvent() {
    const name = this.last.events[element('event').value || 0].name;
    this.events = this.profiles.map(profile => profile.events.find(event => event.name === name) ?? profile.events[0]);
    this.unit = this.events[this.events.length - 1].unit;
    this.maps.forEach((map, i) => map.count(this.events[i]));
    this.weigh();
  }

  // Everything that is drawn follows from the controls; this is the one place where it is made anew.
  weigh() {
    const roots = element('roots').value;
    const sides = this.profiles.map((profile, i) => {
      const tree = profile.tree(roots);
      const weights = tree.weigh(this.events[i], ...this.maps[i].ticks());
      return { tree, weights, scale: 1 };
    });
    // Two profiles are compared by shares: the first is scaled to the second's total.
    const all = sides[sides.length - 1].weights.all;
    for (const side of sides) side.scale = side.weights.all ? all / side.weights.all : 1;
    this.view = new View(sides, element('mode').value, { merge: this.isDiff, normalise: this.isDiff });
    if (this.isDiff && element('layout').value === 'before') this.view.layout = 0;
    this.graph.show(this.view);
    this.legend();
    this.summary();
    if (this.term) this.search(this.term);
  }

  summary() {
    const parts = this.view.sides.map((side, i) => {
      const [from, until] = this.maps[i].ticks();
      const { seconds, duration } = this.profiles[i];
      if (this.last.runs) return `${this.profiles[i].title}: ${amount(side.weights.all, this.unit)} a run`;
      const time = until === Infinity ? '' : `, ${(from * seconds).toFixed(3)} to ${Math.min(until * seconds, duration / 1e9).toFixed(3)} s`;
      return `${this.isDiff ? `${this.profiles[i].title}: ` : ''}${side.weights.samples.toLocaleString('en')} samples, ${amount(side.weights.all, this.unit)}${time}`;
    });
    element('sum').textContent = parts.join('; ');
    element('all').hidden = this.maps.every(map => !map.range);
  }

  legend() {
    if (!this.view) return;
    const items = [];
    const item = (colour, text) => {
      const made = document.createElement('li');
      const box = document.createElement('i');
      box.style.background = colour;
      made.append(box, text);
      items.push(made);
    };
    if (this.isDiff) {
      item(this.deltaColour(0.02), 'grew');
      item(this.deltaColour(0), this.last.runs ? 'within chance' : 'the same');
      item(this.deltaColour(-0.02), 'shrank');
    } else {
      const seen = new Set();
      for (const side of this.view.sides) for (const kind of side.tree.kind) seen.add(kind);
      const names = new Set([...seen].map(kind => this.last.kinds[kind]));
      for (const [id, [text]] of Object.entries(KINDS)) if (names.has(id)) item(this.kindColour(id, 0.5), text);
    }
    element('legend').replaceChildren(...items);
  }

  kindColour(id, tone) {
    const [, hue, saturation] = KINDS[id] ?? KINDS.unknown;
    const dark = document.body.dataset.theme === 'dark';
    return dark ? `hsl(${hue} ${saturation * 0.7}% ${28 + 8 * tone}%)` : `hsl(${hue} ${saturation}% ${63 + 10 * tone}%)`;
  }

  // delta: by how much a frame's share of all has changed.
  deltaColour(delta) {
    const dark = document.body.dataset.theme === 'dark';
    const heat = Math.min(1, Math.sqrt(Math.abs(delta) * 20));
    if (Math.abs(delta) < 1e-4) return dark ? 'hsl(0 0% 32%)' : 'hsl(0 0% 85%)';
    return `hsl(${delta > 0 ? 8 : 212} ${25 + 65 * heat}% ${dark ? 30 + 12 * heat : 84 - 24 * heat}%)`;
  }

  shares(frame) {
    const all = this.view.root.weights;
    return frame.weights.map((weight, i) => all[i] ? weight / all[i] : 0);
  }

  // Of several runs: whether the frame changed by no more than chance does.
  isChance(frame) {
    const event = 1 << element('event').value;
    return Boolean(this.last.runs) && !frame.nodes[1].some(node => this.last.changed[node] & event);
  }

  colour(frame) {
    if (!frame.parent) return this.kindColour('root', 1);
    if (this.isDiff) {
      const [before, after] = this.shares(frame);
      return this.deltaColour(this.isChance(frame) ? 0 : after - before);
    }
    return this.kindColour(this.last.kinds[frame.kind], shade(frame.name));
  }

  tell(frame) {
    element('details').textContent = frame ? this.describe(frame) : this.found ?? '';
  }

  describe(frame) {
    const shares = this.shares(frame);
    const parts = [frame.name];
    const source = this.view.source(frame);
    if (source) parts.push(source);
    if (this.isDiff) {
      const delta = shares[1] - shares[0];
      parts.push(`${percent(shares[0])} before, ${percent(shares[1])} after (${delta >= 0 ? '+' : ''}${(100 * delta).toFixed(2)} points)`);
      if (this.last.runs && frame.parent) parts.push(this.isChance(frame) ? 'within chance' : 'more than chance');
    } else {
      parts.push(`${percent(shares[0])} (${amount(frame.weights[0], this.unit)}), ${amount(frame.selfs[0], this.unit)} of its own`);
      if (frame.parent) parts.push(KINDS[this.last.kinds[frame.kind]]?.[0] ?? '');
    }
    return parts.join(' — ');
  }

  search(term) {
    this.term = term;
    element('term').value = term;
    let test = null;
    try {
      const pattern = new RegExp(term);
      test = term === '' ? null : name => pattern.test(name);
    } catch (error) {
      element('details').textContent = error.message;
      return;
    }
    this.graph.match = test;
    this.graph.draw();
    this.found = test ? `found in ${this.view.matched(test).map(percent).join(' before, ')}${this.isDiff ? ' after' : ''} of ${this.events[0].name}` : '';
    element('details').textContent = this.found;
  }
}

// Pages opened as files may have no storage.
function localStorageGet(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function localStorageSet(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    // It is forgotten, then.
  }
}

(async () => {
  try {
    const blocks = [...document.querySelectorAll('script[type="application/x-jdflame"]')];
    const profiles = await Promise.all(blocks.map(block => Profile.read(block.textContent, block.dataset.title)));
    for (const block of blocks) block.remove();
    window.jdflame = new Page(profiles);
    document.body.dataset.ready = 'yes';
  } catch (error) {
    element('note').textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or later.`;
    throw error;
  }
})();
