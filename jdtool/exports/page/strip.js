'use strict';
// What the JVM itself did, above the heat map and by its columns: how much of the time went into pauses and into
// compilations, and how many deoptimisations there were. There is none where nothing was recorded of it.

const LANES = [
  ['pauses', 0, 'paused'], ['compilations', 215, 'compiling'], ['deoptimisations', 285, 'deoptimised'],
];
const LANE = 7;

class Strip {
  constructor(box, profile, map, said) {
    this.map = map;
    this.seconds = profile.seconds;
    this.lanes = LANES.filter(([name]) => profile.marks?.[name]?.length)
      .map(([name, hue, label]) => ({ label, hue, isCount: name === 'deoptimisations', values: this.add(profile.marks[name], name === 'deoptimisations') }));
    if (this.lanes.length === 0) return;
    this.canvas = document.createElement('canvas');
    this.canvas.className = 'strip';
    this.canvas.setAttribute('role', 'img');
    this.canvas.setAttribute('aria-label', `what the JVM did: ${this.lanes.map(lane => lane.label).join(', ')}`);
    box.append(this.canvas);
    this.canvas.addEventListener('mousemove', event => {
      const bounds = this.canvas.getBoundingClientRect();
      const column = Math.max(0, Math.min(map.columns - 1, Math.floor((event.clientX - bounds.left) / map.wide)));
      said(this.tell(column));
    });
  }

  // Seconds by column of [from, length, ...] in ticks, or how many began there.
  add(marks, isCount) {
    const { columns, column } = this.map;
    const values = new Float64Array(columns);
    for (let i = 0; i < marks.length; i += 2) {
      let from = marks[i] * this.seconds;
      const until = from + marks[i + 1] * this.seconds;
      let at = Math.min(columns - 1, Math.floor(from / column));
      if (isCount) { values[at]++; continue; }
      for (; at < columns && from < until; at++) {
        const end = Math.min(until, (at + 1) * column);
        values[at] += Math.max(0, end - from);
        from = end;
      }
    }
    return values;
  }

  tell(column) {
    const parts = this.lanes.map(({ label, isCount, values }) =>
      isCount ? `${values[column]} ${label}` : `${(1000 * values[column]).toFixed(1)} ms ${label}`);
    return `${(column * this.map.column).toFixed(1)} s: ${parts.join(', ')}`;
  }

  draw() {
    if (!this.canvas) return;
    const { canvas, map: { columns, wide } } = this;
    const scale = window.devicePixelRatio || 1;
    const high = this.lanes.length * LANE;
    canvas.width = columns * wide * scale;
    canvas.height = high * scale;
    canvas.style.width = `${columns * wide}px`;
    canvas.style.height = `${high}px`;
    const context = canvas.getContext('2d');
    context.scale(scale, scale);
    const style = getComputedStyle(document.body);
    const dark = style.getPropertyValue('--dark').trim() === '1';
    context.fillStyle = style.getPropertyValue('--heat-none');
    context.fillRect(0, 0, columns * wide, high);
    this.lanes.forEach(({ hue, values }, lane) => {
      const most = values.reduce((a, b) => Math.max(a, b), 0);
      values.forEach((value, column) => {
        if (value === 0) return;
        const heat = Math.sqrt(value / most);
        context.fillStyle = dark ? `hsl(${hue} 80% ${22 + 45 * heat}%)` : `hsl(${hue} 80% ${88 - 45 * heat}%)`;
        context.fillRect(column * wide, lane * LANE, wide - (wide > 3 ? 1 : 0), LANE - 1);
      });
    });
  }
}
