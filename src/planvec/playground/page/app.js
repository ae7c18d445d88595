// The page: puts shelf, plan, stage and map together, and keeps the address up to date.

import * as address from "./address.js";
import { Painter } from "./canvas.js";
import { Guide } from "./guide.js";
import { PlanMap } from "./map.js";
import { PlanLine } from "./plan.js";
import { Shelf, letters } from "./shelf.js";
import { Socket } from "./socket.js";
import { Stage } from "./stage.js";
import { callAgent, make } from "./words.js";

const $ = (id) => document.getElementById(id);
const wanted = { world: document.documentElement.dataset.world, demos: [], plan: null, scene: 0, first: 0 };
let opening = 0; // counts worlds entered, so that what comes too late is not shown

const socket = new Socket({
  opened: () => enter(),
  told: (message) => message.is === "step" && stage.told(message),
  lost,
});
const plan = new PlanLine(socket, (meaning) => {
  stage.enable(Boolean(meaning));
  map.place(meaning, plan.text);
  guide.show(Boolean(meaning));
  remember();
});
const guide = new Guide(plan);
const shelf = new Shelf(socket, { changed: () => shelf.opening || offer(), notice: notify });
const stage = new Stage(socket, {
  plan: () => plan.text,
  agents: () => [$("agent").value, $("other").value].filter(Boolean),
  moved: remember,
  began: () => guide.watch(),
  ended: (text, success) => guide.saw(text, success, stage.scene !== wanted.first),
});
const map = new PlanMap();

/** Enter a world, as the address or the last choice says. */
async function enter() {
  const mine = ++opening;
  const late = setTimeout(() => notify("Getting the world and its agents ready; this takes some seconds …"), 600);
  const world = await socket.ask({ do: "open", world: wanted.world });
  clearTimeout(late);
  if (mine !== opening) return;
  showWorlds();
  connected(true);
  if (world.is === "mistake") return unavailable(world.reason);
  const painter = await Painter.of(world.canvas);
  if (mine !== opening) return;
  notify("");
  for (const part of ["shelf", "act"]) $(part).hidden = false;
  for (const part of ["plan", "atlas"]) $(part).hidden = !world.agents.length;
  plan.world = world;
  shelf.open(world, painter);
  stage.open(world, painter);
  map.open(world);
  offerAgents(world.agents);
  for (const part of document.querySelectorAll("[data-letter]")) part.textContent = letters(world)[part.dataset.letter];
  const demos = wanted.demos.length ? wanted.demos
    : world.examples.map((task, i) => ({ name: letters(world)[i], task, seed: i }));
  plan.text = wanted.plan ?? demos.slice(0, 2).map(({ name }) => name).join(" + ");
  stage.scene = wanted.first = wanted.scene;
  shelf.opening = true;
  await Promise.all(demos.map((demo) => shelf.add(demo)));
  shelf.opening = false;
  if (mine !== opening) return;
  offer();
  fetchMap(mine);
}

/** The shelf has changed: so have the letters. */
function offer() {
  plan.offer(shelf.list);
  plan.read();
}

async function fetchMap(mine = opening) {
  const agent = $("agent").value;
  if (!agent) return;
  const answer = await socket.ask({ do: "map", agent });
  if (mine !== opening || agent !== $("agent").value || answer.is === "mistake") return;
  map.show(answer.map);
  plan.read();
}

function offerAgents(agents) {
  const option = (agent) => make("option", { value: agent.name }, callAgent(agent));
  $("agent").replaceChildren(...agents.map(option));
  const second = agents.length > 1 ? "nobody" : "no second agent yet";
  $("other").replaceChildren(make("option", { value: "" }, second), ...agents.map(option));
  if (agents.some(({ name }) => name === wanted.agent)) $("agent").value = wanted.agent;
  if (agents.some(({ name }) => name === wanted.beside)) $("other").value = wanted.beside;
  $("agent").closest(".agents").hidden = !agents.length;
  $("other").disabled = agents.length < 2;
  plan.agent = $("agent").value || null;
}

$("agent").onchange = () => {
  plan.agent = $("agent").value;
  stage.clear();
  map.open(plan.world);
  plan.read();
  fetchMap();
};
$("other").onchange = () => {
  stage.clear();
  remember();
};

function showWorlds() {
  const names = document.documentElement.dataset.worlds.split(" ");
  const choice = (name) => make("label", {}, make("input", { type: "radio", name: "world", value: name,
    onchange: () => choose(name) }), make("span", {}, name));
  if (!$("worlds").querySelector("input")) $("worlds").append(...names.map(choice));
  for (const input of $("worlds").querySelectorAll("input")) input.checked = input.value === wanted.world;
}

function choose(world) {
  Object.assign(wanted, { world, demos: [], plan: null, scene: 0, agent: null, beside: null });
  address.write(wanted);
  stage.clear();
  enter();
}

function unavailable(reason) {
  for (const part of ["shelf", "plan", "act", "atlas"]) $(part).hidden = true;
  const extra = /planvec\[(\w+)\]/.exec(reason)?.[1];
  notify(reason, ...(extra ? [make("br"), "If you started with make play, write ",
    make("code", {}, `.venv/bin/pip install -c constraints.txt '.[${extra}]'`), " there, and make play again."] : []));
}

function lost(reason) {
  opening += 1;
  stage.pause();
  connected(false);
  notify(reason);
}

/** What needs the server can be used, or cannot. */
function connected(there) {
  for (const part of document.querySelectorAll(".needs-server")) part.inert = !there;
  $("plan-text").readOnly = !there;
  if (!there) shelf.wait();
}

function notify(...said) {
  $("notice").replaceChildren(...said);
  $("notice").hidden = !said[0];
}

/** Write everything into the address, and keep it for a lost connection. */
function remember() {
  if (shelf.opening) return;
  const demos = shelf.list.map(({ name, seed, moves, task }) => ({ name, seed, moves, task }));
  const agents = { agent: $("agent").value, beside: $("other").value };
  address.write(Object.assign(wanted, { demos, plan: plan.text, scene: stage.scene, ...agents }));
}

document.querySelector(".skip").onclick = (event) => {
  event.preventDefault();
  $("plan-text").focus();
};
$("plan-text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !$("run").disabled) $("run").click();
});

const THEMES = { "": ["◐", "as the system has them"], light: ["☀", "light"], dark: ["☾", "dark"] };

function setTheme(theme) {
  const [sign, name] = THEMES[theme];
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  $("theme").textContent = sign;
  $("theme").setAttribute("aria-label", `Colours: ${name}`);
  $("theme").title = `Colours: ${name}`;
  localStorage.setItem("theme", theme);
}

$("theme").onclick = () => {
  const names = Object.keys(THEMES);
  setTheme(names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length]);
};
const stored = localStorage.getItem("theme");
setTheme(stored in THEMES ? stored : "");

function takeFromAddress() {
  const { world, ...rest } = address.read();
  if (world) Object.assign(wanted, { world, ...rest });
}
takeFromAddress();
window.addEventListener("hashchange", () => {
  if (!address.read().world) return address.write(wanted); // a place on the page, and no playground
  takeFromAddress();
  stage.clear();
  enter();
});
let resized;
window.addEventListener("resize", () => {
  clearTimeout(resized);
  resized = setTimeout(() => {
    shelf.redraw();
    map.draw();
  }, 200);
});
