// Skills and plans in words.

/** "ChopTree" → "chop tree", "Stack(red,blue)" → "stack red on blue", "A" → "go to A". */
export function words(skill) {
  const [, name, inside] = /^([^(]*)(?:\((.*)\))?$/.exec(skill);
  if (name.length === 1) return `go to ${name}`;
  const parts = name.split(/(?=[A-Z])/).map((part) => part.toLowerCase());
  if (!inside) return parts.join(" ");
  const [what, onto] = inside.split(",");
  return [parts[0], what, ...parts.slice(1), ...(onto ? ["on", onto] : [])].join(" ");
}

/** ["ChopTree", "ChopTree", "EatBread"] → "chop tree twice and eat bread". */
export function tell(task) {
  const counts = new Map();
  for (const skill of task) counts.set(skill, (counts.get(skill) ?? 0) + 1);
  return list([...counts].map(([skill, count]) => times(words(skill), count)));
}

/** "1, 2 and 3". */
export function list(items) {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** "chop tree", "chop tree twice", "half of chop tree", "1.5 × chop tree". */
export function times(text, count) {
  if (!Number.isInteger(count)) return count === 0.5 ? `half of ${text}` : `${Number(count.toFixed(2))} × ${text}`;
  return count === 1 ? text : count === 2 ? `${text} twice` : `${text} ${count} times`;
}

/** What is asked for, {skill: how often}; what is below zero is told apart. */
export function readOut(counts) {
  const of = (asked) => list(asked.map(([skill, count]) => times(words(skill), Math.abs(count))));
  const all = Object.entries(counts);
  const [wanted, against] = [of(all.filter(([, count]) => count > 0)), of(all.filter(([, count]) => count < 0))];
  return (wanted || "nothing to do") + (against ? `, minus ${against}` : "");
}

/** An expression as people write it. */
export function pretty(text) {
  return text.replaceAll("-", "−").replaceAll("*", "×");
}

/** A number with one decimal, with a real minus and without −0.0. */
export function figure(number) {
  const text = number.toFixed(1);
  return text === "-0.0" ? "0.0" : text.replace("-", "−");
}

/** How a demonstration with some factor enters a sum: "+ 2 × ", "− ", or nothing at its beginning. */
export function sign(factor, position, gap = "") {
  const size = Math.abs(factor);
  const number = size === 1 ? "" : `${Number(size.toFixed(2))}${gap}×${gap}`;
  return (factor < 0 ? `−${gap}` : position ? `+${gap}` : "") + number;
}

/** An agent as people tell it from others. */
export function callAgent({ name, model }) {
  return name.includes("/") ? `${model}, ${name.split("/").filter(Boolean).at(-1)}` : model;
}

/** An element: make("p", {class: "hint"}, "text", child, …). Text is always text, never markup. */
export function make(tag, attributes = {}, ...children) {
  const element = tag === "svg" || make.drawing.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
make.drawing = new Set(["circle", "line", "path", "g", "text", "title", "polygon"]);
