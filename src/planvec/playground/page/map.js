// The map: plan vectors on a plane, and the arithmetic as arrows from the middle.

import { make, pretty, sign, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const RADIUS = 5;
const MANY = 8; // skills: of more, only those in the plan are named
const SHORT = 14; // characters of an expression that stands at its arrow's tip
const SIZES = { tag: 18, name: 13 }; // pixels, as in the style sheet

export class PlanMap {
  constructor() {
    this.map = this.meaning = null;
  }

  open(world) {
    Object.assign(this, { world, map: null, meaning: null });
    $("map").replaceChildren(make("p", { class: "empty" }, "Drawing the map …"));
    this.explain();
  }

  show(map) {
    this.map = map;
    if (!map) $("map").replaceChildren(make("p", { class: "empty" }, "There is no map of this agent's plans."));
    this.draw();
  }

  /** A plan as it is read, or null; `text` is how it is written. */
  place(meaning, text = "") {
    Object.assign(this, { meaning, text });
    this.explain();
    this.draw();
  }

  draw() {
    if (!this.map) return;
    const width = Math.max(280, $("map").clientWidth);
    const height = Math.round(Math.min(430, Math.max(280, 0.68 * width)));
    const arrows = this.arrows();
    const at = this.projection(arrows, width, height);
    const drawn = arrows.map((arrow) => ({ ...arrow, from: at(arrow.from), to: at(arrow.to) }));
    sideBySide(drawn);
    const labels = new Labels(width, height);
    const wholeFirst = [...drawn].sort((one, other) => (other.kind === "whole") - (one.kind === "whole"));
    const tags = wholeFirst.map((arrow) => labels.put(arrow.name, `tag ${arrow.kind}`, SIZES.tag, spots(arrow), true));
    const zero = labels.put("nothing", "name", SIZES.name, around(at([0, 0])).slice(1), true); // above it are arrows
    labels.keepOff(drawn.filter(long));
    const names = this.names().map(({ name, point }) =>
      labels.put(name, "name", SIZES.name, around(at(point)), this.world.skills.length > MANY));
    const said = tags.length ? `${drawn.map(({ name }) => name).join(", ")} drawn as arrows.` : "";
    $("map").replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img",
      "aria-label": `Plans of ${this.map.points.length} demonstrations on a plane. ${said}` },
      make("g", { class: "dots" }, ...this.map.points.map((point, i) => this.dot(at(point), this.map.tasks[i]))),
      ...drawn.filter(long).map(draw),
      make("circle", { class: "zero", cx: at([0, 0])[0], cy: at([0, 0])[1], r: 4 }),
      ...[...names, zero, ...tags].filter(Boolean)));
  }

  /** From the plane to the picture, with room for everything. */
  projection(arrows, width, height) {
    const all = [...this.map.points, [0, 0], ...arrows.flatMap(({ from, to }) => [from, to])];
    const [xs, ys] = [0, 1].map((axis) => all.map((point) => point[axis]));
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const margin = 30;
    const scale = Math.min((width - 2 * margin) / (right - left), (height - 2 * margin) / (bottom - top));
    return ([x, y]) => [width / 2 + (x - (left + right) / 2) * scale, height / 2 + (y - (top + bottom) / 2) * scale];
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

  /** The skills that are named: all, or those in the plan where there are many. */
  get named() {
    const { skills } = this.world;
    return skills.length > MANY ? skills.filter((skill) => skill in (this.meaning?.counts ?? {})) : skills;
  }

  /** Each skill's name, where its demonstrations lie. */
  names() {
    return this.named.flatMap((skill) => {
      const own = this.map.points.filter((_, i) => this.map.tasks[i].length === 1 && this.map.tasks[i][0] === skill);
      const point = own.length && [0, 1].map((axis) => own.reduce((sum, p) => sum + p[axis], 0) / own.length);
      return point ? [{ name: words(skill), point }] : [];
    });
  }

  explain() {
    $("legend").replaceChildren(...this.named.map((skill) => make("li", {},
      make("span", { class: `swatch hue-${this.world.skills.indexOf(skill) % 8}` }), words(skill))));
  }

  /** One term's arrow after the other; then the plan itself, from the middle, and faintly each further
      demonstration from there. */
  arrows() {
    if (!this.meaning?.plan.place) return [];
    const { terms, parts, plan } = this.meaning;
    const zero = [0, 0];
    const arrows = [];
    let from = zero;
    for (const [name, factor] of terms) {
      const to = from.map((value, axis) => value + factor * parts[name].place[axis]);
      const kind = factor < 0 ? "part minus" : "part";
      arrows.push({ from, to, kind, name: sign(factor, arrows.length) + name });
      from = to;
    }
    if (terms.length < 2) return arrows;
    const others = new Set(terms.slice(1).map(([name]) => name));
    if (terms[0][1] === 1) others.delete(terms[0][0]); // whose arrow is there already
    const faint = [...others].map((name) => ({ from: zero, to: parts[name].place, kind: "faint", name }));
    const text = pretty(this.text);
    arrows.push({ from: zero, to: plan.place, kind: "whole", name: text.length <= SHORT ? text : "plan" });
    return [...faint.filter(({ to }) => !near(to, plan.place)), ...arrows];
  }
}

/** Labels that overprint no others: each goes to the first of its places that is free. */
class Labels {
  constructor(width, height) {
    Object.assign(this, { width, height, boxes: [] });
  }

  /** The label; null where there is no room for it, unless it `must` be there. */
  put(text, kind, size, places, must) {
    const half = [0.3 * size * text.length + 3, 0.55 * size];
    const boxes = places.map(([x, y]) => this.within(x, y, half)).map(([x, y]) =>
      ({ x, y, left: x - half[0], right: x + half[0], top: y - half[1], bottom: y + half[1] }));
    const box = boxes.find((one) => !this.boxes.some((other) => overlap(one, other))) ?? (must ? boxes[0] : null);
    if (!box) return null;
    this.boxes.push(box);
    return make("text", { x: box.x, y: box.y, class: kind, "text-anchor": "middle", "dominant-baseline": "central" },
      text);
  }

  /** Further labels should not lie on arrows. */
  keepOff(arrows) {
    for (const { from, to } of arrows) {
      const count = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1]) / 8);
      for (let i = 1; i < count; i++) {
        const [x, y] = from.map((value, axis) => value + (i / count) * (to[axis] - value));
        this.boxes.push({ left: x - 3, right: x + 3, top: y - 3, bottom: y + 3 });
      }
    }
  }

  /** The nearest place inside the picture. */
  within(x, y, [w, h]) {
    return [Math.min(this.width - w, Math.max(w, x)), Math.min(this.height - h, Math.max(h, y))];
  }
}

function overlap(one, other) {
  return one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
}

/** Places for the label of an arrow: at the tip of the plan's and of faint ones, elsewhere beside its middle. */
function spots({ from, to, kind }) {
  if (kind === "whole" || kind === "faint") return around(to);
  const [across, up] = normal(from, to);
  return [0.5, 0.35, 0.65].flatMap((share) => [1, -1].map((side) =>
    from.map((value, axis) => value + share * (to[axis] - value) + 15 * side * [across, up][axis])));
}

function around([x, y]) {
  const close = [[0, -14], [0, 16], [44, -4], [-44, -4], [34, -22], [-34, -22], [34, 22], [-34, 22]];
  const far = [32, 50, 70].flatMap((up) => [0, 50, -50].flatMap((aside) => [[aside, -up], [aside, up]]));
  return [...close, ...far].map(([dx, dy]) => [x + dx, y + dy]);
}

/** An arrow that leads back along another is drawn beside it. */
function sideBySide(arrows) {
  arrows.forEach((arrow, i) => {
    const back = arrows.slice(0, i).some(({ from, to }) => near(from, arrow.to, 3) && near(to, arrow.from, 3));
    if (!back) return;
    const [across, up] = normal(arrow.from, arrow.to);
    for (const end of ["from", "to"]) arrow[end] = [arrow[end][0] + 6 * across, arrow[end][1] + 6 * up];
  });
}

/** The direction across an arrow, of length one. */
function normal([x1, y1], [x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  return [(y2 - y1) / length, (x1 - x2) / length];
}

function near(one, other, apart = 1e-6) {
  return Math.hypot(one[0] - other[0], one[1] - other[1]) <= apart;
}

function long({ from, to }) {
  return !near(from, to, 3);
}

function draw({ from: [x1, y1], to: [x2, y2], kind }) {
  const length = Math.hypot(x2 - x1, y2 - y1);
  const [ux, uy] = [(x2 - x1) / length, (y2 - y1) / length];
  const head = Math.min(11, length);
  const [x, y] = [x2 - head * ux, y2 - head * uy]; // where the head begins
  const points = `${x2},${y2} ${x + 5 * uy},${y - 5 * ux} ${x - 5 * uy},${y + 5 * ux}`;
  return make("g", { class: `arrow ${kind}` }, make("line", { x1, y1, x2: x, y2: y }), make("polygon", { points }));
}
