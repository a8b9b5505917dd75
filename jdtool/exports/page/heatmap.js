'use strict';
// When samples came: a column a stretch of time (a second, where the recording is long enough for that), its parts from
// the bottom up. What is between two cells can be chosen.

const PARTS = 50;

class HeatMap {
  constructor(box, profile, { chosen, said }) {
    this.box = box;
    this.profile = profile;
    this.onChosen = chosen;
    this.onSaid = said;
    this.canvas = document.createElement('canvas');
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute('role', 'application');
    this.canvas.setAttribute('aria-label', `samples of ${profile.title} over time; arrow keys move and widen what is chosen`);
    this.range = null; // cells, both included
    const duration = Math.max(profile.duration / 1e9, 1e-6);
    this.column = [0.1, 1, 10, 60, 600].find(seconds => duration / seconds <= 600) ?? duration / 600;
    this.columns = Math.floor(duration / this.column) + 1;
    this.cellSeconds = this.column / PARTS;
    this.wide = Math.max(2, Math.min(16, Math.floor(900 / this.columns)));
    this.high = 2;
    this.strip = new Strip(box, profile, this, said);
    box.append(this.canvas);
    let from = null;
    this.canvas.addEventListener('mousedown', event => {
      from = this.cellAt(event);
      this.choose(from, from);
    });
    this.canvas.addEventListener('mousemove', event => {
      const cell = this.cellAt(event);
      if (from !== null) this.choose(from, cell, true);
      this.say(cell);
    });
    window.addEventListener('mouseup', () => {
      if (from === null) return;
      from = null;
      this.onChosen(this.range);
    });
    this.canvas.addEventListener('keydown', event => this.key(event));
  }

  // Counts the event's samples by cell.
  count(event) {
    const { time, seconds } = this.profile;
    this.cells = new Uint32Array(this.columns * PARTS);
    for (let i = event.first; i < event.end; i++) {
      this.cells[Math.min(this.cells.length - 1, Math.floor(time[i] * seconds / this.cellSeconds))]++;
    }
    this.most = this.cells.reduce((most, value) => Math.max(most, value), 1);
    this.draw();
  }

  draw() {
    this.strip.draw();
    const { canvas, wide, high } = this;
    const scale = window.devicePixelRatio || 1;
    canvas.width = this.columns * wide * scale;
    canvas.height = PARTS * high * scale;
    canvas.style.width = `${this.columns * wide}px`;
    canvas.style.height = `${PARTS * high}px`;
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    const style = getComputedStyle(document.body);
    context.fillStyle = style.getPropertyValue('--heat-none');
    context.fillRect(0, 0, canvas.width, canvas.height);
    const dark = style.getPropertyValue('--dark').trim() === '1';
    for (let cell = 0; cell < this.cells.length; cell++) {
      const value = this.cells[cell];
      if (value === 0) continue;
      const heat = Math.sqrt(value / this.most);
      context.fillStyle = dark ? `hsl(${10 + 40 * heat} 95% ${18 + 52 * heat}%)` : `hsl(${50 - 45 * heat} 95% ${86 - 46 * heat}%)`;
      context.fillRect(Math.floor(cell / PARTS) * wide, (PARTS - 1 - cell % PARTS) * high, wide - (wide > 3 ? 1 : 0), high);
    }
    if (!this.range) return;
    context.fillStyle = style.getPropertyValue('--shade');
    for (let column = 0; column < this.columns; column++) {
      for (let part = 0; part < PARTS; part++) {
        const cell = column * PARTS + part;
        if (cell < this.range[0] || cell > this.range[1]) context.fillRect(column * wide, (PARTS - 1 - part) * high, wide, high);
      }
    }
  }

  cellAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left) / this.wide);
    const part = PARTS - 1 - Math.floor((event.clientY - bounds.top) / this.high);
    const inside = (value, end) => Math.max(0, Math.min(end - 1, value));
    return inside(column, this.columns) * PARTS + inside(part, PARTS);
  }

  choose(a, b) {
    this.range = [Math.min(a, b), Math.max(a, b)];
    this.draw();
  }

  clear() {
    this.range = null;
    this.draw();
  }

  say(cell) {
    this.onSaid(`${(cell * this.cellSeconds).toFixed(3)} s: ${this.cells[cell]} samples`);
  }

  // The chosen time in ticks of the profile: from, and the first one behind.
  ticks() {
    if (!this.range) return [0, Infinity];
    const tick = cell => Math.ceil(cell * this.cellSeconds / this.profile.seconds - 1e-6);
    return [tick(this.range[0]), tick(this.range[1] + 1)];
  }

  key(event) {
    const steps = { ArrowLeft: -PARTS, ArrowRight: PARTS, ArrowUp: 1, ArrowDown: -1 };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const last = this.columns * PARTS - 1;
    let [first, end] = this.range ?? [0, PARTS - 1];
    if (this.range) {
      end = Math.max(0, Math.min(last, end + step));
      if (!event.shiftKey) first = Math.max(0, Math.min(last, first + step));
    }
    this.choose(first, end);
    this.onChosen(this.range);
  }
}
