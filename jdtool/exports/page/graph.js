'use strict';
// The flame graph on a canvas. Only what is in sight and wide enough is laid out and drawn.

const ROW = 18;
const LEAST = 0.5; // pixels; narrower frames are left out

class Graph {
  // colour(frame) gives a CSS colour, light: whether it needs dark text is decided by the page's theme.
  constructor(box, { colour, selected, zoomed }) {
    this.box = box;
    this.colour = colour;
    this.onSelected = selected;
    this.onZoomed = zoomed;
    this.canvas = document.createElement('canvas');
    this.spacer = document.createElement('div');
    this.spacer.append(this.canvas);
    box.replaceChildren(this.spacer);
    this.canvas.style.cssText = 'position:sticky;top:0;display:block';
    this.rows = [];
    this.rootOnTop = false;
    this.match = null;
    this.frame = null;  // the selected one
    this.zoom = null;
    box.addEventListener('scroll', () => this.draw());
    this.canvas.addEventListener('mousemove', event => this.hover(event));
    this.canvas.addEventListener('mouseleave', () => this.select(null));
    this.canvas.addEventListener('click', event => {
      const hit = this.at(event);
      if (hit) this.zoomTo(hit.frame);
    });
    new ResizeObserver(() => this.lay()).observe(box);
  }

  show(view) {
    this.view = view;
    // What was zoomed and selected is found again by its names.
    this.zoom = this.again(this.zoom) ?? view.root;
    this.frame = this.again(this.frame);
    this.lay();
    this.scrollToRoot();
  }

  again(frame) {
    if (!frame) return null;
    const path = [];
    for (let at = frame; at.parent; at = at.parent) path.unshift(at);
    let found = this.view.root;
    for (const { name, kind } of path) {
      const kids = this.view.children(found);
      found = kids.find(kid => kid.name === name && kid.kind === kind) ?? kids.find(kid => kid.name === name);
      if (!found) return null;
    }
    return found;
  }

  zoomTo(frame) {
    this.zoom = frame;
    this.frame = frame;
    this.lay();
    this.onZoomed(frame);
    this.onSelected(frame);
  }

  // Rows of { x, width, frame }, left to right; a row a depth.
  lay() {
    if (!this.view) return;
    const width = this.box.clientWidth;
    const layout = this.view.layout;
    this.rows = [];
    const put = (frame, x, w) => (this.rows[frame.depth] ??= []).push({ x, width: w, frame });
    for (let at = this.zoom.parent; at; at = at.parent) put(at, 0, width);
    const todo = [[this.zoom, 0, width]];
    while (todo.length) {
      const [frame, x, w] = todo.pop();
      put(frame, x, w);
      const whole = frame.weight(layout);
      if (!whole) continue;
      let left = x;
      const kids = [];
      for (const kid of this.view.children(frame)) {
        const wide = w * kid.weight(layout) / whole;
        if (wide >= LEAST) kids.push([kid, left, wide]);
        left += wide;
      }
      for (let i = kids.length - 1; i >= 0; i--) todo.push(kids[i]);
    }
    for (let i = 0; i < this.rows.length; i++) this.rows[i] ??= [];
    this.draw();
  }

  height() {
    return this.rows.length * ROW;
  }

  top(depth) {
    const free = Math.max(0, this.box.clientHeight - this.height());
    return this.rootOnTop ? depth * ROW : free + (this.rows.length - 1 - depth) * ROW;
  }

  scrollToRoot() {
    this.box.scrollTop = this.rootOnTop ? 0 : this.height();
    this.draw();
  }

  draw() {
    if (!this.view) return;
    const { box, canvas } = this;
    const width = box.clientWidth;
    const height = box.clientHeight;
    const scale = window.devicePixelRatio || 1;
    this.spacer.style.height = `${Math.max(this.height(), height)}px`;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const style = getComputedStyle(document.body);
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = '11.5px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const text = style.getPropertyValue('--frame-text');
    const edge = style.getPropertyValue('--edge');
    const letter = context.measureText('m').width * 0.8;
    for (let depth = 0; depth < this.rows.length; depth++) {
      const y = this.top(depth) - box.scrollTop;
      if (y + ROW < 0 || y > height) continue;
      for (const { x, width: w, frame } of this.rows[depth]) {
        context.globalAlpha = this.zoom && frame.depth < this.zoom.depth ? 0.55 : 1;
        context.fillStyle = this.match?.(frame.name) ? style.getPropertyValue('--match') : this.colour(frame);
        context.fillRect(x, y, Math.max(w - 0.6, 0.4), ROW - 1);
        if (frame === this.frame) {
          context.strokeStyle = edge;
          context.lineWidth = 2;
          context.strokeRect(x + 1, y + 1, Math.max(w - 2.6, 1), ROW - 3);
        }
        const letters = Math.floor((w - 6) / letter);
        if (letters >= 3) {
          context.fillStyle = text;
          const name = frame.name.length > letters * 1.3 ? this.shortened(frame.name, letters) : frame.name;
          context.save();
          context.beginPath();
          context.rect(x, y, w - 2, ROW);
          context.clip();
          context.fillText(name, x + 3, y + ROW / 2);
          context.restore();
        }
      }
    }
    context.globalAlpha = 1;
  }

  // What is too long loses its package and its parameters first.
  shortened(name, letters) {
    const plain = name.replace(/\(.*/, '');
    const parts = plain.split('.');
    const short = parts.length > 2 && !plain.includes('/') ? parts.slice(-2).join('.') : plain;
    return short.length > letters * 1.3 ? `${short.slice(0, Math.floor(letters * 1.2))}…` : short;
  }

  at(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const y = event.clientY - bounds.top + this.box.scrollTop;
    for (let depth = 0; depth < this.rows.length; depth++) {
      const top = this.top(depth);
      if (y < top || y >= top + ROW) continue;
      return this.rows[depth].find(cell => x >= cell.x && x < cell.x + cell.width) ?? null;
    }
    return null;
  }

  hover(event) {
    const hit = this.at(event);
    this.canvas.style.cursor = hit ? 'pointer' : 'default';
    this.select(hit?.frame ?? null);
  }

  select(frame) {
    if (frame === this.frame) return;
    this.frame = frame;
    this.draw();
    this.onSelected(frame);
  }

  // Where a frame is drawn, in the page; null when it is not.
  place(frame) {
    const cell = this.rows[frame.depth]?.find(candidate => candidate.frame === frame);
    if (!cell) return null;
    const bounds = this.canvas.getBoundingClientRect();
    return { x: bounds.left + cell.x, y: bounds.top + this.top(frame.depth) - this.box.scrollTop, width: cell.width, height: ROW };
  }

  intoSight(frame) {
    const y = this.top(frame.depth);
    if (y < this.box.scrollTop) this.box.scrollTop = y;
    if (y + ROW > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = y + ROW - this.box.clientHeight;
  }

  // The selected frame's neighbour: 'caller', 'callee' (the heaviest), 'left', 'right'.
  move(where) {
    const frame = this.frame ?? this.zoom;
    let to = null;
    if (where === 'caller') {
      to = frame.parent;
    } else if (where === 'callee') {
      const row = this.rows[frame.depth + 1] ?? [];
      for (const cell of row) {
        if (cell.frame.parent === frame && (!to || cell.frame.weight(this.view.layout) > to.weight(this.view.layout))) to = cell.frame;
      }
    } else {
      const row = this.rows[frame.depth] ?? [];
      const index = row.findIndex(cell => cell.frame === frame);
      to = row[index + (where === 'left' ? -1 : 1)]?.frame;
    }
    if (!to) return;
    this.frame = to;
    this.intoSight(to);
    this.draw();
    this.onSelected(to);
  }
}
