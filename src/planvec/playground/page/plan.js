// The plan: an expression, live parsed; what is in it, in words and as a sum of bars.

import { figure, make, pretty, readOut, sign, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const SIGNS = [ // what stands on a button, what it writes, and its name
  ["+", " + ", "plus"], ["−", " - ", "minus"], ["2×", "2*", "two times"], ["½×", "0.5*", "half of"],
  ["(", "(", "open parenthesis"], [")", ")", "close parenthesis"],
];
const SOME = 0.25; // skills: what is less than this in every column needs no row where there are many
const LATE = 400; // milliseconds after which a meaning is announced
const COLUMNS = 3; // that fit a phone with their bars

export class PlanLine {
  /** `changed` is called with the meaning, or null where the plan is no plan. */
  constructor(socket, changed) {
    Object.assign(this, { socket, changed, world: null, agent: null, asked: 0, names: [] });
    $("plan-text").addEventListener("input", () => this.readSoon());
  }

  /** As the server reads it; small letters count as large ones where there is no doubt. */
  get text() {
    const plain = $("plan-text").value.replaceAll("−", "-").replaceAll(/[×·]/g, "*").replaceAll("½", "0.5*");
    return plain.replaceAll(/\b[a-z]\b/g, (letter) =>
      (this.names.includes(letter.toUpperCase()) ? letter.toUpperCase() : letter));
  }

  set text(text) {
    $("plan-text").value = text;
  }

  /** The shelf has changed, and with it the letters that can be written. */
  offer(demos) {
    const names = this.names = demos.map(({ name }) => name);
    this.takeAway = takeAway(demos);
    const letters = names.map((name) => key(name, name, `demonstration ${name}`, "letter"));
    const erase = make("button", { type: "button", "aria-label": "Delete the last part",
      onclick: () => this.write($("plan-text").value.replace(/\s*(\w+|\S)\s*$/, "")) }, "⌫");
    $("keys").replaceChildren(...letters, ...SIGNS.map(([label, text, name]) => key(label, text, name)), erase);
    const [one, two] = names;
    const twice = this.world.twice ? [`2*${one}`] : [];
    const tries = two ? [`${one} + ${two}`, this.takeAway, ...twice, `${one} - ${one}`] : one ? [one, ...twice] : [];
    $("tries").replaceChildren(...tries.map((text) => this.suggestion(text)));
    $("tries").parentElement.hidden = !tries.length;
  }

  /** A button that writes a plan. */
  suggestion(text) {
    return make("button", { type: "button", class: "try", onclick: () => this.write(text) }, pretty(text));
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
    clearTimeout(this.late);
    this.late = setTimeout(() => ($("plan-words").textContent = "Reading the plan …"), LATE);
    const answer = await this.socket.ask({ do: "read", plan: this.text, agent: this.agent });
    if (asked !== this.asked) return; // something else has been written meanwhile
    clearTimeout(this.late);
    if (answer.is === "mistake") this.showMistake(answer);
    else this.show(answer);
    this.changed(answer.is === "mistake" ? null : answer);
  }

  showMistake({ reason, at }) {
    const { text } = this;
    const place = at === undefined || at === null ? [] : [make("code", { class: "caret", "aria-hidden": "true" },
      text.slice(0, at), make("mark", {}, text.slice(at, at + 1) || "▁"), text.slice(at + 1))];
    $("plan-mistake").replaceChildren(make("p", {}, reason), ...place);
    $("plan-mistake").hidden = false;
    $("plan-text").setAttribute("aria-invalid", "true");
    $("plan-words").textContent = "";
    $("sum").replaceChildren();
  }

  show(meaning) {
    $("plan-mistake").hidden = true;
    $("plan-text").removeAttribute("aria-invalid");
    const parts = Object.values(meaning.counts).some((count) => !Number.isInteger(count));
    $("plan-words").replaceChildren("In words: ", make("strong", {}, readOut(meaning.counts)), ...(parts ? [
      make("span", { class: "hint" }, ` (judged by whole skills, halves are none: ${tell(meaning.task) || "nothing"})`),
    ] : []));
    $("sum").replaceChildren(meaning.plan.counts ? this.sum(meaning) : make("p", { class: "hint" },
      "This agent has nothing to read plans with, so there are no bars. Fit a probe: planvec probe RUN/"));
  }

  /** The arithmetic as a table: a row for each skill, a column for each term, and what they add up to. */
  sum({ terms, parts, plan }) {
    const columns = terms.map(([name, factor], i) => ({
      title: sign(factor, i, " ") + name, counts: parts[name].counts.map((count) => factor * count) }));
    columns.push({ title: "= plan", counts: plan.counts, total: true });
    const scale = scaleOf(columns.flatMap(({ counts }) => counts));
    const rows = this.world.skills.map((skill, i) => ({ skill, i }))
      .filter(({ i }) => this.world.skills.length <= 6 || columns.some(({ counts }) => Math.abs(counts[i]) > SOME));
    return make("table", { class: columns.length > COLUMNS ? "sum many" : "sum" },
      make("caption", { class: "hint" }, "What is in it, read off the vectors: how often each skill"),
      make("thead", {}, make("tr", {}, make("td", {}), ...columns.map(({ title, total }) =>
        make("th", { scope: "col", class: total && "total" }, title)))),
      make("tbody", {}, ...rows.map(({ skill, i }) => make("tr", {}, make("th", { scope: "row" }, words(skill)),
        ...columns.map(({ counts, total }) => make("td", { class: total && "total" }, bar(i, counts[i], scale)))))));
  }
}

/** What bars of these counts have room for; to the left of zero only where something is below it. */
function scaleOf(counts) {
  const low = Math.min(...counts);
  return { low: low < -SOME ? low : 0, high: Math.max(1, ...counts) };
}

/** A bar with its figure: to the right of zero what there is, to the left, hatched, what there is too much of. */
export function bar(skill, count, { low, high }) {
  const share = (value) => (100 * (Math.min(high, Math.max(low, value)) - low)) / (high - low);
  const [from, to] = [share(Math.min(0, count)), share(Math.max(0, count))];
  const shape = make("span", { class: `bar hue-${skill % 8}${count < 0 ? " below" : ""}` });
  Object.assign(shape.style, { left: `${from}%`, width: `${to - from}%` });
  const line = make("span", { class: "origin", hidden: low === 0 });
  line.style.left = `${share(0)}%`;
  return make("span", { class: `measure${Math.abs(count) < SOME ? " little" : ""}` },
    make("span", { class: "track" }, shape, line), make("span", { class: "figure" }, figure(count)));
}

/** A difference worth trying: of a demonstration that does all that another does, and more. */
function takeAway(demos) {
  const holds = (all, some) => {
    const left = [...all];
    return some.every((skill) => left.includes(skill) && left.splice(left.indexOf(skill), 1)) && left.length > 0;
  };
  for (const part of demos) {
    const whole = demos.find(({ task }) => task && part.task && holds(task, part.task));
    if (whole) return `${whole.name} - ${part.name}`;
  }
  const [one, two] = demos;
  return two && `${one.name} + ${two.name} - ${one.name}`;
}

function key(label, text, name, kind = "") {
  return make("button", { type: "button", class: kind, "aria-label": name, onclick: () => {
    const input = $("plan-text");
    input.setRangeText(text, input.selectionStart, input.selectionEnd, "end");
    input.dispatchEvent(new Event("input"));
    if (matchMedia("(hover: hover)").matches) input.focus();
  } }, label);
}
