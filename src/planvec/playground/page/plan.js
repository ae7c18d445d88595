// The plan: an expression, live parsed; what is in it, in words and as a sum of bars.

import { figure, make, readOut, sign, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const SIGNS = [ // what stands on a button, what it writes, and its name
  ["+", " + ", "plus"], ["−", " - ", "minus"], ["2×", "2*", "two times"], ["½×", "0.5*", "half of"],
  ["(", "(", "open parenthesis"], [")", ")", "close parenthesis"],
];
const SOME = 0.25; // skills: what is less than this in every column needs no row where there are many

export class PlanLine {
  /** `changed` is called with the reading, or null where the plan is no plan. */
  constructor(socket, changed) {
    Object.assign(this, { socket, changed, world: null, agent: null, asked: 0, names: [] });
    $("plan-text").addEventListener("input", () => this.readSoon());
  }

  get text() {
    return $("plan-text").value.replaceAll("−", "-").replaceAll(/[×·]/g, "*").replaceAll("½", "0.5*");
  }

  set text(text) {
    $("plan-text").value = text;
  }

  /** The letters that can be written have changed. */
  offer(names) {
    this.names = names;
    const letters = names.map((name) => key(name, name, `demonstration ${name}`, "letter"));
    const erase = make("button", { type: "button", "aria-label": "Delete the last part",
      onclick: () => this.write($("plan-text").value.replace(/\s*(\w+|\S)\s*$/, "")) }, "⌫");
    $("keys").replaceChildren(...letters, ...SIGNS.map(([label, text, name]) => key(label, text, name)), erase);
    const [one, two] = names;
    const twice = this.world.twice ? [`2*${one}`] : [];
    const tries = two ? [`${one} + ${two}`, `${one} + ${two} - ${one}`, ...twice, `${one} - ${one}`]
      : one ? [one, ...twice] : [];
    $("tries").replaceChildren(...tries.map((text) =>
      make("button", { type: "button", class: "try", onclick: () => this.write(text) }, text.replaceAll("-", "−"))));
  }

  write(text) {
    this.text = text;
    this.read();
  }

  readSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.read(), 80);
  }

  async read() {
    clearTimeout(this.soon);
    if (!this.agent) return this.changed(null);
    const asked = ++this.asked;
    const answer = await this.socket.ask({ do: "read", plan: this.text, agent: this.agent });
    if (asked !== this.asked) return; // something else has been written meanwhile
    if (answer.is === "mistake") this.showMistake(answer);
    else this.show(answer);
    this.changed(answer.is === "mistake" ? null : answer);
  }

  showMistake({ reason, at }) {
    const text = $("plan-text").value;
    const place = at === undefined || at === null ? [] : [make("code", { class: "caret", "aria-hidden": "true" },
      text.slice(0, at), make("mark", {}, text.slice(at, at + 1) || "▁"), text.slice(at + 1))];
    $("plan-mistake").replaceChildren(make("p", {}, reason), ...place);
    $("plan-mistake").hidden = false;
    $("plan-text").setAttribute("aria-invalid", "true");
    $("plan-words").textContent = "";
    $("sum").replaceChildren();
  }

  show(reading) {
    $("plan-mistake").hidden = true;
    $("plan-text").removeAttribute("aria-invalid");
    const { counts } = reading.plan;
    const said = counts ? readOut(this.world.skills, counts) : tell(reading.task) || "nothing to do";
    $("plan-words").replaceChildren("In words: ", make("strong", {}, said));
    $("sum").replaceChildren(counts ? this.sum(reading) : make("p", { class: "hint" },
      "This agent has nothing to read plans with, so there are no bars. Fit a probe: planvec probe RUN/"));
  }

  /** The arithmetic as a table: a row for each skill, a column for each demonstration, and what they add up to. */
  sum({ factors, parts, plan }) {
    const columns = Object.entries(factors).map(([name, factor], i) => ({
      title: sign(factor, i, " ") + name, counts: parts[name].counts.map((count) => factor * count) }));
    columns.push({ title: "= plan", counts: plan.counts, total: true });
    const most = Math.max(1, ...columns.flatMap(({ counts }) => counts.map(Math.abs)));
    const rows = this.world.skills.map((skill, i) => ({ skill, i }))
      .filter(({ i }) => this.world.skills.length <= 6 || columns.some(({ counts }) => Math.abs(counts[i]) > SOME));
    return make("table", { class: "sum" },
      make("caption", { class: "hint" }, "What is in it, read off the vectors: how often each skill"),
      make("thead", {}, make("tr", {}, make("td", {}), ...columns.map(({ title, total }) =>
        make("th", { scope: "col", class: total && "total" }, title)))),
      make("tbody", {}, ...rows.map(({ skill, i }) => make("tr", {}, make("th", { scope: "row" }, words(skill)),
        ...columns.map(({ counts, total }) => make("td", { class: total && "total" }, bar(i, counts[i], most)))))));
  }
}

/** A bar with its figure: as long as the count, dashed where it is below zero. */
export function bar(skill, count, most) {
  const shape = make("span", { class: `bar hue-${skill % 8}${count < 0 ? " below" : ""}` });
  shape.style.width = `${Math.min(100, (100 * Math.abs(count)) / most)}%`;
  return make("span", { class: `measure${Math.abs(count) < SOME ? " little" : ""}` },
    make("span", { class: "track" }, shape), make("span", { class: "figure" }, figure(count)));
}

function key(label, text, name, kind = "") {
  return make("button", { type: "button", class: kind, "aria-label": name, onclick: () => {
    const input = $("plan-text");
    input.setRangeText(text, input.selectionStart, input.selectionEnd, "end");
    input.dispatchEvent(new Event("input"));
    if (matchMedia("(hover: hover)").matches) input.focus();
  } }, label);
}
