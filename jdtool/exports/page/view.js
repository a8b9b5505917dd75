'use strict';
// What is drawn: frames, made of the trees' nodes when they come into sight. A frame stands for the nodes that have its
// name below the same parent: one, but where names are normalised or inverted stacks meet.

// A side is one profile with its weights: { tree, weights, scale }. In a difference there are two, and a frame's weight
// is that of the last one; scale makes them comparable.
class Frame {
  constructor(name, kind, parent, sides) {
    this.name = name;
    this.kind = kind;
    this.parent = parent;
    this.depth = parent ? parent.depth + 1 : 0;
    this.nodes = sides.map(() => []);   // of each side
    this.parts = null;                  // inverted: how much of each node belongs here
    this.weights = sides.map(() => 0);  // scaled, of each side
    this.selfs = sides.map(() => 0);
    this.kids = null;
  }

  // By what its width is: of a difference the side that is laid out.
  weight(layout) {
    return this.weights[layout];
  }
}

class View {
  // mode: 'stacks' or 'inverted'. merge: frames of one name are one whatever their kind.
  constructor(sides, mode, { merge = false, normalise = false } = {}) {
    this.sides = sides;
    this.mode = mode;
    this.merge = merge;
    this.normalise = normalise;
    this.layout = sides.length - 1;
    this.names = new Map(); // label -> name shown, by side
    this.root = new Frame('all', -1, null, sides);
    sides.forEach((side, s) => {
      this.root.weights[s] = side.weights.all * side.scale;
    });
  }

  nameOf(side, node) {
    const label = side.tree.label[node];
    let names = this.names.get(side);
    if (!names) this.names.set(side, names = []);
    const normal = this.normalise ? side.tree.profile.normal?.[label] : undefined;
    return names[label] ??= normal ?? side.tree.labels[label];
  }

  children(frame) {
    return frame.kids ??= this.mode === 'stacks' ? this.below(frame) : this.callers(frame);
  }

  // The kid that a node belongs to, made when it is the first.
  kid(kids, frame, s, node) {
    const side = this.sides[s];
    const name = this.nameOf(side, node);
    const kind = side.tree.kind[node];
    const key = this.merge ? name : `${kind} ${name}`;
    let kid = kids.get(key);
    if (!kid) kids.set(key, kid = new Frame(name, kind, frame, this.sides));
    return kid;
  }

  sorted(kids) {
    return [...kids.values()].sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : a.kind - b.kind);
  }

  below(frame) {
    const kids = new Map();
    this.sides.forEach((side, s) => {
      const { childStart, childList } = side.tree;
      const { total, self } = side.weights;
      for (const node of frame.parent ? frame.nodes[s] : [-1]) {
        for (let i = childStart[node + 1]; i < childStart[node + 2]; i++) {
          const child = childList[i];
          if (total[child] === 0) continue;
          const kid = this.kid(kids, frame, s, child);
          kid.nodes[s].push(child);
          kid.weights[s] += total[child] * side.scale;
          kid.selfs[s] += self[child] * side.scale;
        }
      }
    });
    return this.sorted(kids);
  }

  // Below the root stands what ran, below each frame who called it.
  callers(frame) {
    const kids = new Map();
    const add = (s, node, part) => {
      const kid = this.kid(kids, frame, s, node);
      kid.parts ??= this.sides.map(() => []);
      kid.nodes[s].push(node);
      kid.parts[s].push(part);
      kid.weights[s] += part * this.sides[s].scale;
    };
    this.sides.forEach((side, s) => {
      const { self } = side.weights;
      if (!frame.parent) {
        for (let node = 0; node < side.tree.count; node++) if (self[node] > 0) add(s, node, self[node]);
      } else {
        frame.nodes[s].forEach((node, i) => {
          const parent = side.tree.parent[node];
          if (parent >= 0) add(s, parent, frame.parts[s][i]);
        });
      }
    });
    const made = this.sorted(kids);
    if (!frame.parent) for (const kid of made) kid.selfs = kid.weights.slice();
    return made;
  }

  // Where the source of a frame is: the most frequent line of its heaviest node.
  source(frame) {
    let best = null;
    this.sides.forEach((side, s) => {
      for (const node of frame.nodes[s]) {
        const weight = side.weights.total[node] * side.scale;
        if (!best || weight > best.weight) best = { weight, tree: side.tree, node };
      }
    });
    if (!best) return '';
    const file = best.tree.file(best.node);
    const line = best.tree.line[best.node];
    const share = best.tree.share[best.node];
    if (!line) return file;
    return `${file || 'line '}${file ? ':' : ''}${line}${share < 100 ? ` (${share} % of it)` : ''}`;
  }

  // How much of a side has a frame that matches: each stack counts once. Returns shares by side.
  matched(test) {
    return this.sides.map(side => {
      const { tree, weights } = side;
      const known = new Int8Array(tree.labels.length);
      const inside = new Uint8Array(tree.count);
      let sum = 0;
      for (let i = 0; i < tree.count; i++) {
        const parent = tree.parent[i];
        if (parent >= 0 && inside[parent]) {
          inside[i] = 1;
          continue;
        }
        const label = tree.label[i];
        if (known[label] === 0) known[label] = test(this.nameOf(side, i)) ? 1 : -1;
        if (known[label] === 1) {
          inside[i] = 1;
          sum += weights.total[i];
        }
      }
      return weights.all ? sum / weights.all : 0;
    });
  }
}
