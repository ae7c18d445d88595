// The stage: one agent, or two side by side, acting on the plan.

import { bar } from "./plan.js";
import { callAgent, make, tell, words } from "./words.js";

const $ = (id) => document.getElementById(id);
const RATE = 12; // pictures a second at speed 1
const AHEAD = 24; // steps asked for before they are shown

export class Stage {
  constructor(socket, { plan, agents, moved }) {
    Object.assign(this, { socket, plan, agents, moved, scene: 0, run: null, stages: [], timer: null });
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
    if (this.run !== null) this.socket.tell({ do: "stop" });
    Object.assign(this, { run: null, stages: [] });
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
    $("run").disabled = true;
    $("verdict").textContent = "Setting the scene …";
    const asked = { do: "run", plan: this.plan(), seed: this.scene, agents: this.agents() };
    const answer = await this.socket.ask(asked);
    $("run").disabled = false;
    $("verdict").textContent = answer.is === "mistake" ? answer.reason : "";
    if (answer.is === "mistake") return;
    this.run = answer.run;
    this.task = answer.task;
    this.horizon = answer.horizon;
    this.text = asked.plan.replaceAll("-", "−");
    this.stages = answer.stages.map((stage) => this.build(stage, answer.stages.length > 1));
    $("stages").replaceChildren(...this.stages.map(({ element }) => element));
    await Promise.all(this.stages.map((stage, i) => this.show(stage, answer.stages[i].picture)));
    this.want();
    this.go();
  }

  /** One agent's part of the stage: the board, the checklist with what is left of the plan, the steps. */
  build({ agent, left }, several) {
    const canvas = make("canvas", { class: "board", role: "img", "aria-label": `The scene in which ${agent} acts` });
    const [held, steps] = [make("span", { class: "held" }), make("span", { class: "steps" }, "step 0")];
    const model = callAgent(this.world.agents.find(({ name }) => name === agent));
    const rows = this.world.skills.map((skill, i) => ({ skill, i, wanted: this.task.filter((one) => one === skill).length }))
      .filter(({ wanted }) => this.world.skills.length <= 6 || wanted);
    const checks = new Map(rows.map(({ skill, wanted }) => [skill, make("span", { class: wanted ? "check" : "check none" })]));
    const bars = new Map(rows.map(({ i }) => [i, make("span", { class: "cell" })]));
    const stage = { agent, model, held, steps, canvas, checks, bars, rows, queue: [], time: 0, done: [], end: null, over: false,
      most: Math.max(1, ...(left ?? []).map(Math.abs)) };
    stage.element = make("article", { class: "stage", "aria-label": model },
      ...(several ? [make("h3", {}, model)] : []),
      make("div", { class: "scene" }, canvas, make("p", { class: "row under" }, held, steps)),
      make("table", { class: "left" }, make("caption", {}, `Left to do of ${this.text}`),
        make("tbody", {}, ...rows.map(({ skill, i }) => make("tr", {},
          make("th", { scope: "row" }, checks.get(skill), " ", words(skill)), make("td", {}, bars.get(i)))))));
    this.showLeft(stage, left);
    this.tick(stage, null);
    return stage;
  }

  /** What the server tells of a step: kept until it is its turn. */
  told(step) {
    const stage = step.run === this.run && this.stages[step.stage];
    if (!stage) return;
    step.pictures.forEach((picture, i) => stage.queue.push({ picture, step: i === step.pictures.length - 1 ? step : null }));
  }

  want() {
    const upto = Math.max(...this.stages.map(({ time }) => time)) + AHEAD;
    if (!(upto < this.wanted + AHEAD / 3) || this.wantedOf !== this.run) {
      Object.assign(this, { wanted: upto, wantedOf: this.run });
      this.socket.tell({ do: "want", run: this.run, upto });
    }
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
    const acting = this.stages.filter(({ over }) => !over);
    if (acting.every(({ queue }) => queue.length)) for (const stage of acting) this.next(stage);
    if (this.stages.every(({ over }) => over)) {
      this.pause();
      this.judge();
    } else this.want();
  }

  stepOnce() {
    this.pause();
    const times = this.stages.map(({ time }) => time);
    const due = () => this.stages.some((stage, i) => !stage.over && stage.time === times[i] && stage.queue.length);
    while (due()) this.forward();
    this.want();
  }

  next(stage) {
    const { picture, step } = stage.queue.shift();
    this.show(stage, picture);
    if (!step) return;
    stage.time = step.time;
    stage.steps.textContent = `step ${step.time} of ${this.horizon} at most`;
    this.showLeft(stage, step.left);
    if (step.event) {
      this.tick(stage, step.event);
      if (!step.over) $("verdict").textContent = `So far: ${this.stages.map(({ done }) => tell(done) || "nothing").join(" / ")}.`;
    }
    if (step.over) Object.assign(stage, { over: true, end: step.end });
  }

  async show(stage, picture) {
    const held = await this.painter.draw(stage.canvas, picture);
    stage.held.textContent = held ? `in hand: ${held}` : "";
  }

  showLeft(stage, left) {
    if (left) for (const { i } of stage.rows) stage.bars.get(i).replaceChildren(bar(i, left[i], stage.most));
  }

  /** Tick a skill off, or count what nobody asked for. */
  tick(stage, event) {
    if (event) stage.done.push(event);
    for (const { skill, wanted } of stage.rows) {
      const done = stage.done.filter((one) => one === skill).length;
      const boxes = "☑".repeat(Math.min(done, wanted)) + "☐".repeat(Math.max(0, wanted - done));
      const check = stage.checks.get(skill);
      check.textContent = boxes + (done > wanted ? `+${done - wanted}` : "") || "–";
      check.setAttribute("aria-label", wanted ? `${Math.min(done, wanted)} of ${wanted} done` : "not asked for");
      if (skill === event) {
        const row = check.closest("tr");
        row.classList.remove("just");
        requestAnimationFrame(() => row.classList.add("just"));
      }
      check.closest("tr")?.classList.toggle("done", wanted > 0 && done >= wanted);
    }
  }

  judge() {
    $("verdict").replaceChildren(...this.stages.map((stage) => {
      const { success, extras, events } = stage.end;
      const who = this.stages.length > 1 ? `${stage.model}: ` : "";
      const nothing = `The plan asks for nothing, and it did ${events.length ? tell(events) : "nothing"}.`;
      const missing = this.task.filter((skill) => { const i = events.indexOf(skill); if (i >= 0) events.splice(i, 1); return i < 0; });
      const more = extras.length ? `It also did what nobody asked for: ${tell(extras)}.` : "And nothing else.";
      const verdict = !this.task.length ? nothing
        : success ? `Done in ${stage.time} steps: ${tell(this.task)}. ${more}`
          : `Not done in ${stage.time} steps. ${missing.length ? `Missing: ${tell(missing)}.` : ""} ${extras.length ? more : ""}`;
      return make("span", { class: success ? "good" : "bad" }, make("span", { "aria-hidden": "true" }, success ? "✓ " : "✗ "), who + verdict);
    }));
    this.enable();
  }

  /** Which buttons make sense now. */
  enable(ready = this.ready) {
    this.ready = ready;
    const acting = this.stages.length > 0 && this.stages.some(({ over }) => !over);
    $("run").disabled = !ready;
    $("scene").disabled = !ready;
    $("pause").disabled = $("step").disabled = !acting;
    $("pause").textContent = this.timer || !acting ? "Pause" : "Go on";
  }
}

