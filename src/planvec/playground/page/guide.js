// The guide: one sentence at a time for whoever is here for the first time. Using the page moves it on.

import { make } from "./words.js";

const $ = (id) => document.getElementById(id);

export class Guide {
  constructor(plan) {
    Object.assign(this, { plan, seen: new Set(), last: "" });
  }

  /** An agent is acting. */
  watch() {
    if (this.said?.length) this.say(["Watch the bars: what it has done is taken off the plan."]);
  }

  /** An agent has acted on a plan; `elsewhere`: in a scene that the visitor has asked for. */
  saw(plan, success, elsewhere) {
    this.seen.add("run").add(success ? "success" : "failure");
    if (plan.includes("-")) this.seen.add("difference");
    if (elsewhere) this.seen.add("scene");
    if (plan === this.hard) this.seen.add("failure");
    this.last = success && plan === this.sum ? "It did both. " : "";
    this.show();
  }

  /** Say what comes next; nothing where there is no plan to run. */
  show(ready = this.ready) {
    this.ready = ready;
    this.say(ready && this.plan.names.length > 1 ? this.next() : []);
  }

  say(said) {
    $("guide").hidden = !said.length;
    if (said.join() !== this.said?.join()) $("guide").replaceChildren(...said.map((part) =>
      (part.plan ? this.suggestion(part.plan) : part)));
    this.said = said;
  }

  /** A plan to try; the button goes when it is pressed, and Run is what comes next. */
  suggestion(plan) {
    const button = this.plan.suggestion(plan);
    button.addEventListener("click", () => $("run").focus());
    return button;
  }

  get sum() {
    return this.plan.names.slice(0, 2).join(" + ");
  }

  /** What is likely to fail; null where nobody knows. */
  get hard() {
    return this.plan.world.too_much?.replaceAll(/\{(\d)\}/g, (_, i) => this.plan.names[i]) ?? null;
  }

  /** The first thing that was not tried yet. Text, and plans to try: {plan}. */
  next() {
    const { seen, plan } = this;
    if (!seen.has("run")) return ["New here? Press Run."];
    if (!seen.has("difference")) {
      const away = plan.takeAway.split(" ").at(-1);
      if (plan.text.includes("-")) return ["Press Run."];
      return [`${this.last}Now take ${away} away: try `, as(plan.takeAway)];
    }
    if (!seen.has("scene")) return ["Same plan, another scene: press New scene."];
    if (this.hard && !seen.has("failure")) {
      return plan.text === this.hard ? ["Press Run."] : ["Where does it end? Try ", as(this.hard), ", which often fails."];
    }
    return [];
  }
}

function as(plan) {
  return { plan, toString: () => plan };
}
