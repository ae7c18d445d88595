// The map: plan vectors on a plane, and the arithmetic as arrows from the middle.

import { make, sign, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const RADIUS = 5;

export class PlanMap {
  constructor() {
    this.map = this.reading = null;
  }

  open(world) {
    Object.assign(this, { world, map: null, reading: null });
    $("map").replaceChildren(make("p", { class: "empty" }, "Drawing the map …"));
    $("legend").replaceChildren(...(world.skills.length > 8 ? [] : world.skills.map((skill, i) =>
      make("li", {}, make("span", { class: `swatch hue-${i % 8}` }), words(skill)))));
  }

  show(map) {
    this.map = map;
    if (!map) $("map").replaceChildren(make("p", { class: "empty" }, "There is no map of this agent's plans."));
    this.draw();
  }

  place(reading) {
    this.reading = reading;
    this.draw();
  }

  draw() {
    if (!this.map) return;
    const arrows = this.arrows();
    const all = [...this.map.points, [0, 0], ...arrows.flatMap(({ from, to }) => [from, to])];
    const [xs, ys] = [0, 1].map((axis) => all.map((point) => point[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const [width, height, margin] = [640, 420, 34];
    const scale = Math.min((width - 2 * margin) / (right - left), (height - 2 * margin) / (bottom - top));
    const at = ([x, y]) => [
      width / 2 + (x - (left + right) / 2) * scale, height / 2 + (y - (top + bottom) / 2) * scale];
    const said = arrows.length ? `${arrows.map(({ name }) => name).join(", ")} drawn as arrows` : "";
    $("map").replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Plans of ${this.map.points.length} demonstrations on a plane. ${said}` },
      make("g", { class: "dots" }, ...this.map.points.map((point, i) => this.dot(at(point), this.map.tasks[i]))),
      ...this.names().map(({ name, point }) => label(at(point), name, "name")),
      ...arrows.map((arrow) => this.arrow(arrow, at)),
      make("circle", { class: "zero", cx: at([0, 0])[0], cy: at([0, 0])[1], r: 4 }),
      ...arrows.map(({ name, at: place, kind }) => label(at(place), name, `tag ${kind}`)),
      label(at([0, 0]), "nothing", "name")));
  }

  /** A disc in a skill's colour; of two skills, two halves. */
  dot([x, y], task) {
    const hues = task.map((skill) => this.world.skills.indexOf(skill) % 8);
    const halves = hues.length === 1 || hues[0] === hues[1]
      ? [make("circle", { cx: x, cy: y, r: hues.length === 1 ? RADIUS - 1 : RADIUS + 1, class: `hue-${hues[0]}` })]
      : hues.slice(0, 2).map((hue, i) => make("path", { class: `hue-${hue}`,
        d: `M ${x} ${y - RADIUS} A ${RADIUS} ${RADIUS} 0 0 ${i} ${x} ${y + RADIUS} Z` }));
    return make("g", {}, make("title", {}, tell(task)), ...halves);
  }

  /** Each skill's name, where its demonstrations lie. */
  names() {
    if (this.world.skills.length > 8) return [];
    return this.world.skills.flatMap((skill) => {
      const own = this.map.points.filter((_, i) => this.map.tasks[i].length === 1 && this.map.tasks[i][0] === skill);
      const point = own.length && [0, 1].map((axis) => own.reduce((sum, p) => sum + p[axis], 0) / own.length);
      return point ? [{ name: words(skill), point }] : [];
    });
  }

  /** One arrow after the other, as often as each demonstration counts; then the plan itself, from the middle. */
  arrows() {
    if (!this.reading?.plan.place) return [];
    let from = [0, 0];
    const arrows = [];
    for (const [name, factor] of Object.entries(this.reading.factors)) {
      const place = this.reading.parts[name].place;
      const to = from.map((value, axis) => value + factor * place[axis]);
      arrows.push({ from, to, kind: "part", at: middle(from, to), name: sign(factor, arrows.length) + name });
      from = to;
    }
    const to = this.reading.plan.place;
    if (arrows.length > 1) arrows.push({ from: [0, 0], to, kind: "whole", at: to, name: "plan" });
    return arrows;
  }

  arrow({ from, to, kind }, at) {
    const [[x1, y1], [x2, y2]] = [at(from), at(to)];
    const [dx, dy] = [x2 - x1, y2 - y1];
    const length = Math.hypot(dx, dy) || 1;
    const [ux, uy] = [dx / length, dy / length];
    const head = Math.min(11, length);
    const [x, y] = [x2 - head * ux, y2 - head * uy]; // where the head begins
    const points = `${x2},${y2} ${x + 5 * uy},${y - 5 * ux} ${x - 5 * uy},${y + 5 * ux}`;
    return make("g", { class: `arrow ${kind}` }, make("line", { x1, y1, x2: x, y2: y }), make("polygon", { points }));
  }
}

function middle(from, to) {
  return from.map((value, axis) => (value + to[axis]) / 2);
}

function label([x, y], text, kind) {
  return make("text", { x, y: y - 10, class: kind, "text-anchor": "middle" }, text);
}
