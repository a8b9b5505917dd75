'use strict';
// A profile as jdtool's exports/flame.c describes it: a tree of functions as columns, and every sample.

class Profile {
  // text: base64 of a gzipped file.
  static async read(text, title) {
    const binary = atob(text.trim());
    const packed = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) packed[i] = binary.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Profile(await new Response(stream).arrayBuffer(), title);
  }

  constructor(buffer, title) {
    const head = new DataView(buffer, 0, 12);
    if (new TextDecoder().decode(new Uint8Array(buffer, 0, 8)) !== 'jdflame1') throw new Error('this is no profile');
    const size = head.getUint32(8, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 12, size)));
    Object.assign(this, header);
    this.title = title;
    const types = { u8: Uint8Array, u32: Uint32Array, f64: Float64Array };
    let at = 12 + size;
    for (const [name, type, count] of header.columns) {
      at = Math.ceil(at / 8) * 8;
      this[name] = new types[type](buffer, at, count);
      at += this[name].byteLength;
    }
    this.seconds = this.tick / 1e9;
    // The samples of an event are neighbours.
    let first = 0;
    for (const event of this.events) {
      event.first = first;
      first += event.samples;
      event.end = first;
      event.each = event.samples ? event.weight / event.samples : 0;
    }
    this.trees = new Map();
  }

  rootLabel(thread, roots) {
    const [pid, tid, comm, process] = this.threads[thread];
    switch (roots) {
    case 'name': return comm || '[unknown]';
    case 'thread': return `${comm || '[unknown]'} (${tid})`;
    case 'process': return `${process || '[unknown]'} (${pid})`;
    default: return null;
    }
  }

  // The tree with roots of that kind: none, or the names of threads, threads, processes.
  tree(roots) {
    if (!this.trees.has(roots)) this.trees.set(roots, roots === 'none' ? Tree.plain(this) : Tree.rooted(this, roots));
    return this.trees.get(roots);
  }
}

// Nodes as columns; a parent stands before its children, and -1 is the parent of the outermost ones.
class Tree {
  static plain(profile) {
    const count = profile.parent.length;
    const parent = new Int32Array(count);
    for (let i = 0; i < count; i++) parent[i] = profile.parent[i] ? i - profile.parent[i] : -1;
    return new Tree(profile, parent, profile.name, profile.kind, profile.line, profile.share, profile.node, profile.names);
  }

  // One node for each node of the plain tree and each root that it is found below.
  static rooted(profile, roots) {
    const plain = profile.tree('none');
    const labels = profile.names.slice();
    const numbers = new Map();
    const rootOfThread = profile.threads.map((_, thread) => {
      const label = profile.rootLabel(thread, roots);
      if (!numbers.has(label)) numbers.set(label, numbers.size);
      return numbers.get(label);
    });
    const rootCount = numbers.size;
    labels.push(...numbers.keys());

    // place: where (root, node) is in the new tree, open addressing.
    let room = 1 << 16;
    let keyRoot = new Int32Array(room).fill(-1);
    let keyNode = new Int32Array(room);
    let place = new Int32Array(room);
    const slotOf = (root, node) => {
      let slot = (Math.imul(node, 0x9e3779b1) ^ Math.imul(root + 1, 0x85ebca6b)) >>> 0 & room - 1;
      while (keyRoot[slot] !== -1 && (keyRoot[slot] !== root || keyNode[slot] !== node)) slot = slot + 1 & room - 1;
      return slot;
    };
    let baseOf = new Int32Array(room);
    let parent = new Int32Array(room).fill(-1);
    let count = rootCount;
    const grow = () => {
      const old = { keyRoot, keyNode, place, room };
      room *= 2;
      keyRoot = new Int32Array(room).fill(-1);
      keyNode = new Int32Array(room);
      place = new Int32Array(room);
      for (let i = 0; i < old.room; i++) {
        if (old.keyRoot[i] === -1) continue;
        const slot = slotOf(old.keyRoot[i], old.keyNode[i]);
        keyRoot[slot] = old.keyRoot[i];
        keyNode[slot] = old.keyNode[i];
        place[slot] = old.place[i];
      }
      const larger = array => { const made = new Int32Array(room); made.set(array); return made; };
      baseOf = larger(baseOf);
      parent = larger(parent);
    };
    const path = [];
    const find = (root, node) => {
      path.length = 0;
      let above = root;
      for (; node >= 0; node = plain.parent[node]) {
        const slot = slotOf(root, node);
        if (keyRoot[slot] === root) { above = place[slot]; break; }
        path.push(node);
      }
      while (path.length) {
        if (2 * count >= room) grow();
        const base = path.pop();
        const slot = slotOf(root, base);
        keyRoot[slot] = root;
        keyNode[slot] = base;
        place[slot] = count;
        baseOf[count] = base;
        parent[count] = above;
        above = count++;
      }
      return above;
    };
    const samples = profile.node.length;
    const sampleNode = new Uint32Array(samples);
    for (let i = 0; i < samples; i++) sampleNode[i] = find(rootOfThread[profile.thread[i]], profile.node[i]);

    const take = (column, type, root) => {
      const made = new type(count);
      for (let i = 0; i < rootCount; i++) made[i] = root(i);
      for (let i = rootCount; i < count; i++) made[i] = column[baseOf[i]];
      return made;
    };
    const threadKind = profile.kinds.indexOf('thread') >= 0 ? profile.kinds.indexOf('thread') : profile.kinds.push('thread') - 1;
    return new Tree(profile, parent.slice(0, count),
                    take(plain.label, Uint32Array, i => profile.names.length + i),
                    take(plain.kind, Uint8Array, () => threadKind),
                    take(plain.line, Uint32Array, () => 0), take(plain.share, Uint8Array, () => 0), sampleNode, labels);
  }

  constructor(profile, parent, label, kind, line, share, sampleNode, labels) {
    Object.assign(this, { profile, parent, label, kind, line, share, sampleNode, labels, count: parent.length });
    // Children, by counting: those of node i are childList[childStart[i + 1] … childStart[i + 2]); -1 has the outermost.
    this.childStart = new Uint32Array(this.count + 2);
    for (let i = 0; i < this.count; i++) this.childStart[parent[i] + 2]++;
    for (let i = 1; i < this.childStart.length; i++) this.childStart[i] += this.childStart[i - 1];
    this.childList = new Uint32Array(this.count);
    const next = this.childStart.slice(0, this.count + 1);
    for (let i = 0; i < this.count; i++) this.childList[next[parent[i] + 1]++] = i;
  }

  file(node) {
    const file = this.profile.name_files[this.label[node]] ?? -1;
    return file >= 0 ? this.profile.files[file] : '';
  }

  // Weights of the event's samples from `from` on and before `until` (ticks): of each node alone, and with all below.
  weigh(event, from = 0, until = Infinity) {
    const { profile, sampleNode, parent, count } = this;
    const self = new Float64Array(count);
    const first = lowerBound(profile.time, from, event.first, event.end);
    const end = until === Infinity ? event.end : lowerBound(profile.time, until, event.first, event.end);
    const weights = profile.weight instanceof Float64Array ? profile.weight : null;
    for (let i = first; i < end; i++) self[sampleNode[i]] += weights ? weights[i] : event.each;
    const total = self.slice();
    let all = 0;
    for (let i = count - 1; i >= 0; i--) {
      if (parent[i] >= 0) total[parent[i]] += total[i];
      else all += total[i];
    }
    return { self, total, all, samples: end - first };
  }
}

// The first index in [first, end) of a sorted column whose value is not below `value`.
function lowerBound(column, value, first, end) {
  while (first < end) {
    const middle = first + end >>> 1;
    if (column[middle] < value) first = middle + 1;
    else end = middle;
  }
  return first;
}
