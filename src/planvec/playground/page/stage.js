// The stage: one agent, or two side by side, acting on the plan.

import { isWide } from "./canvas.js";
import { bar } from "./plan.js";
import { callAgent, make, pretty, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const RATE = 12; // pictures a second at speed 1
const AHEAD = 24; // steps asked for before they are shown
const ROOM = 1 / 3; // of a bar's length, for what is done too often
const OVER = -0.5; // less than this of a skill is left: it was done too often

export class Stage {
  /** `moved` is called with every new scene, `began` and `ended` with a plan, and in the end whether it was done. */
  constructor(socket, { plan, agents, moved, began, ended }) {
    Object.assign(this, { socket, plan, agents, moved, began, ended });
    Object.assign(this, { scene: 0, run: null, begun: 0, waiting: false, stages: [], timer: null });
    $("run").onclick = () => this.begin();
    $("pause").onclick = () => (this.timer ? this.pause() : this.go());
    $("step").onclick = () => this.stepOnce();
    $("scene").onclick = () => this.newScene();
    $("speed").onchange = () => this.timer && this.go();
  }

  open(world, painter) {
    Object.assign(this, { world, painter });
    this.clear();
    const agents = world.agents.length;
    $("controls").hidden = !agents;
    $("stages").replaceChildren(make("p", { class: "empty" }, agents
      ? "Press Run: the agent gets the plan's vector, a new scene, and nothing else."
      : `There is no trained agent for ${world.name} yet, so nobody can act here; the demonstrations can be watched. `
        + "With a trained run of your own: planvec play --agent RUN/"));
  }

  clear() {
    this.pause();
    if (this.run !== null || this.waiting) this.socket.tell({ do: "stop" });
    Object.assign(this, { run: null, waiting: false, stages: [] });
    this.begun += 1; // so that what comes too late is not shown
    $("verdict").textContent = "";
    this.enable();
  }

  newScene() {
    this.scene = Math.floor(Math.random() * 1e6);
    this.moved();
    this.begin();
  }

  async begin() {
    this.clear();
    const { begun } = this;
    this.waiting = true;
    this.enable();
    $("verdict").textContent = "Setting the scene …";
    const asked = { do: "run", plan: this.plan(), seed: this.scene, agents: this.agents() };
    const answer = await this.socket.ask(asked);
    if (begun !== this.begun) return;
    this.waiting = false;
    this.enable();
    $("verdict").textContent = answer.is === "mistake" ? answer.reason : "";
    if (answer.is === "mistake") return;
    const { run, task, counts, horizon } = answer;
    Object.assign(this, { run, task, counts, horizon, text: pretty(asked.plan), asked, wanted: 0 });
    $("stages").classList.toggle("one", answer.stages.length === 1);
    this.stages = answer.stages.map((stage) => this.build(stage, answer.stages.length > 1));
    $("stages").replaceChildren(...this.stages.map(({ element }) => element));
    await Promise.all(this.stages.map((stage, i) => this.show(stage, answer.stages[i].picture)));
    if (begun !== this.begun) return;
    this.began();
    this.want();
    this.go();
  }

  /** One agent's part of the stage: the board, the checklist with what is left of the plan, the steps. */
  build({ agent, left }, several) {
    const label = callAgent(this.world.agents.find(({ name }) => name === agent));
    const canvas = make("canvas", { class: "board", role: "img", "aria-label": `The scene in which ${label} acts` });
    const [held, steps] = [make("span", { class: "held" }), make("span", { class: "steps" }, "step 0")];
    const high = Math.max(1, ...(left ?? []));
    const scale = { low: Math.min(-ROOM * high, ...(left ?? [])), high };
    const rows = this.world.skills
      .map((skill, i) => ({ skill, i, wanted: this.task.filter((one) => one === skill).length }))
      .filter(({ skill }) => this.world.skills.length <= 6 || skill in this.counts)
      .map((row) => ({ ...row, check: make("span", { class: row.wanted ? "check" : "check none" }), bar: make("td") }));
    const table = make("table", { class: "left" }, make("caption", {}, `Left to do of ${this.text}`),
      make("tbody", {}, ...rows.map(({ skill, check, bar: cell }) => make("tr", {},
        make("th", { scope: "row" }, make("span", { class: "item" }, check,
          make("span", { class: "what" }, words(skill)))), cell))));
    const over = make("p", { class: "hint", hidden: true }, "Left of the line: more than was asked for.");
    const element = make("article", { class: "stage", "aria-label": label },
      ...(several ? [make("h3", {}, label)] : []),
      make("div", { class: "scene" }, canvas, make("p", { class: "row under" }, held, steps)),
      make("div", {}, table, over));
    const stage = { label, element, canvas, held, steps, rows, scale, over, queue: [], time: 0, done: [], end: null };
    this.showLeft(stage, left);
    this.tick(stage, null);
    return stage;
  }

  /** What the server tells of a step: kept until it is its turn. */
  told(step) {
    const stage = step.run === this.run && this.stages[step.stage];
    if (!stage) return;
    const pictures = step.pictures.length ? step.pictures : [null]; // none, where acting has failed
    const last = pictures.length - 1;
    pictures.forEach((picture, i) => stage.queue.push({ picture, step: i === last ? step : null }));
  }

  want() {
    const upto = Math.max(...this.stages.map(({ time }) => time)) + AHEAD;
    if (upto < this.wanted + AHEAD / 3) return;
    this.wanted = upto;
    this.socket.tell({ do: "want", run: this.run, upto });
  }

  go() {
    clearInterval(this.timer);
    this.timer = setInterval(() => this.forward(), 1000 / RATE / Number($("speed").value));
    this.enable();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.enable();
  }

  /** One picture of each. Two side by side keep in step. */
  forward() {
    const acting = this.stages.filter(({ end }) => !end);
    if (acting.every(({ queue }) => queue.length)) for (const stage of acting) this.next(stage);
    if (this.stages.every(({ end }) => end)) {
      this.pause();
      this.judge();
    } else this.want();
  }

  stepOnce() {
    this.pause();
    const before = Math.max(...this.stages.map(({ time }) => time));
    const acting = this.stages.filter(({ end }) => !end);
    while (acting.every(({ queue }) => queue.length) && acting.every(({ time }) => time <= before)) this.forward();
  }

  next(stage) {
    const { picture, step } = stage.queue.shift();
    if (picture) this.show(stage, picture);
    if (!step) return;
    stage.time = step.time;
    stage.end = step.over ? step.end : null;
    stage.steps.textContent = `step ${step.time} of ${this.horizon} at most`;
    this.showLeft(stage, step.left);
    if (!step.event) return;
    this.tick(stage, step.event);
    $("verdict").textContent = `So far: ${this.stages.map(({ done }) => tell(done) || "nothing").join(" / ")}.`;
  }

  async show(stage, picture) {
    const held = await this.painter.draw(stage.canvas, picture);
    if (isWide(stage.canvas) !== stage.element.classList.contains("wide")) {
      stage.element.classList.toggle("wide");
      await this.painter.draw(stage.canvas, picture); // at the size it has now
    }
    stage.held.textContent = held ? `in hand: ${held}` : "";
  }

  showLeft(stage, left) {
    if (!left) return;
    for (const row of stage.rows) row.bar.replaceChildren(bar(row.i, left[row.i], stage.scale));
    stage.over.hidden = !stage.rows.some(({ i }) => left[i] < OVER);
  }

  /** Tick a skill off, or count what nobody asked for. */
  tick(stage, event) {
    if (event) stage.done.push(event);
    for (const { skill, wanted, check } of stage.rows) {
      const done = stage.done.filter((one) => one === skill).length;
      const boxes = "☑".repeat(Math.min(done, wanted)) + "☐".repeat(Math.max(0, wanted - done));
      check.textContent = boxes + (done > wanted ? `+${done - wanted}` : "") || "–";
      check.setAttribute("aria-label", wanted ? `${Math.min(done, wanted)} of ${wanted} done` : "not asked for");
      const row = check.closest("tr");
      row.classList.toggle("done", wanted > 0 && done >= wanted);
      row.classList.remove("just");
      if (skill === event) requestAnimationFrame(() => row.classList.add("just"));
    }
  }

  judge() {
    const several = this.stages.length > 1;
    $("verdict").replaceChildren(...this.stages.map(({ label, time, end }) =>
      make("span", { class: end.success ? "good" : "bad" },
        make("span", { "aria-hidden": "true" }, end.success ? "✓ " : "✗ "),
        (several ? `${label}: ` : "") + verdict(this.task, time, end))));
    this.enable();
    this.ended(this.asked.plan, this.stages[0].end.success);
  }

  /** Which buttons make sense now. */
  enable(ready = this.ready) {
    this.ready = ready;
    const acting = this.stages.length > 0 && this.stages.some(({ end }) => !end);
    $("run").disabled = $("scene").disabled = !ready || this.waiting;
    $("pause").disabled = $("step").disabled = !acting;
    $("pause").textContent = this.timer || !acting ? "Pause" : "Go on";
  }
}

/** How an episode ended, in words. */
function verdict(task, time, { success, exact, extras, events }) {
  if (!task.length) return `The plan asks for no whole skill, and it did ${tell(events) || "nothing"}.`;
  const more = extras.length ? `It also did what nobody asked for: ${tell(extras)}.` : "";
  if (success) return `Done in ${time} steps: ${tell(task)}. ${exact ? "And nothing else." : more || "But not only that."}`;
  const left = [...events];
  const missing = task.filter((skill) => !left.includes(skill) || !left.splice(left.indexOf(skill), 1));
  return `Not done in ${time} steps. ${missing.length ? `Missing: ${tell(missing)}.` : ""} ${more}`;
}
