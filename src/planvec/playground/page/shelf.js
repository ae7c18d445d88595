// The shelf: demonstrations as cards, and the two ways to add one.

import { isWide } from "./canvas.js";
import { make, tell, words } from "./words.js";

const FRAME = 1000 / 12; // milliseconds
const PAUSE = 8; // frames, for which the end of a film is shown
const MOVES = {
  ArrowUp: 0, ArrowDown: 1, ArrowLeft: 2, ArrowRight: 3, w: 0, s: 1, a: 2, d: 3, e: 4, " ": 4, q: 5,
};
const PAD = [
  ["↑", "up", 0], ["←", "left", 2], ["↓", "down", 1], ["→", "right", 3], ["E", "pick up", 4], ["Q", "put down", 5],
];
const $ = (id) => document.getElementById(id);

export class Shelf {
  /** `changed` is called when there is one demonstration more or fewer, `notice` with what went wrong. */
  constructor(socket, { changed, notice }) {
    Object.assign(this, { socket, changed, notice, demos: new Map(), painter: null, task: [], recording: null });
    $("new").onclick = () => this.askForTask();
    $("new-clear").onclick = () => this.chooseSkills([]);
    $("new-dialog").onclose = () => {
      if ($("new-dialog").returnValue === "keep") this.add({ task: this.task, seed: seed() });
    };
    $("record").onclick = () => this.record();
    $("record-again").onclick = () => this.newScene();
    $("record-dialog").onclose = () => this.keepRecording();
    $("record-dialog").addEventListener("keydown", (event) => this.press(event));
    $("pad").append(...PAD.map(([sign, name, action]) =>
      make("button", { type: "button", "aria-label": name, onclick: () => this.move(action) }, sign)));
  }

  open(world, painter) {
    this.closeDialogs();
    Object.assign(this, { world, painter, demos: new Map() });
    $("cards").replaceChildren();
    $("record").hidden = $("rings").hidden = painter.kind !== "cells";
    const choose = (skill) => () => this.chooseSkills([...this.task, skill]);
    $("new-skills").replaceChildren(...world.skills.map((skill) =>
      make("button", { type: "button", onclick: choose(skill) }, `+ ${words(skill)}`)));
  }

  get list() {
    return [...this.demos.values()];
  }

  /** Put a demonstration onto the shelf: {task, seed} or {moves, seed}, under its name or the next free letter. */
  async add(demo) {
    const name = demo.name ?? letters(this.world).find((letter) => !this.demos.has(letter));
    this.notice(name ? "" : "The shelf is full: remove a demonstration first.");
    if (!name) return;
    const letter = make("span", { class: "letter" }, name);
    const card = make("li", { class: "card busy", id: `card-${name}` },
      make("div", { class: "card-head" }, letter, make("span", {}, "the expert is at work …")));
    $("cards").append(card);
    $("no-cards").hidden = true;
    this.demos.set(name, { ...demo, name });
    const what = demo.kept ? { do: "keep" } : demo.moves
      ? { do: "replay", moves: demo.moves, seed: demo.seed } : { do: "demonstrate", task: demo.task, seed: demo.seed };
    const answer = await this.socket.ask({ ...what, name });
    if (answer.is === "mistake") {
      this.drop(name);
      this.notice(answer.reason);
    } else {
      this.demos.set(name, { name, seed: demo.seed, moves: demo.moves, task: answer.task, film: answer.film });
      card.replaceWith(this.card(this.demos.get(name), answer));
    }
    this.changed();
  }

  remove(name) {
    this.drop(name);
    this.socket.tell({ do: "forget", name });
    this.notice("");
    this.changed();
    $("new").focus();
  }

  drop(name) {
    this.demos.delete(name);
    $(`card-${name}`).remove();
    $("no-cards").hidden = this.demos.size > 0;
  }

  /** Nothing comes until there is a server again; what was asked for is asked for anew then. */
  wait() {
    for (const busy of document.querySelectorAll(".card.busy .card-head span:last-child")) {
      busy.textContent = "waits for the server";
    }
    this.closeDialogs();
  }

  closeDialogs() {
    this.recording = null;
    for (const dialog of [$("new-dialog"), $("record-dialog")]) if (dialog.open) dialog.close("");
  }

  card({ name, task, film, moves }, { events }) {
    const [before, after] = [0, 1].map(() => make("canvas", { class: "thumb", width: 100, height: 100 }));
    const caption = make("span", { class: "when" }, "before");
    const named = { "aria-label": `Play demonstration ${name}` };
    const play = make("button", { type: "button", class: "quiet", ...named }, "▶ play");
    const pictures = make("div", { class: "pictures", role: "img", "aria-label": `Before and after: ${tell(task)}` },
      make("figure", {}, before, caption), make("span", { class: "to", "aria-hidden": "true" }, "→"),
      make("figure", {}, after, make("span", { class: "when" }, "after")));
    const steps = `${moves ? "by you, " : ""}${events.length} ${events.length === 1 ? "step" : "steps"}`;
    const remove = make("button", { type: "button", class: "quiet", "aria-label": `Remove demonstration ${name}`,
      onclick: () => this.remove(name) }, "✕");
    const foot = make("span", { class: "needs-server" }, remove);
    const card = make("li", { class: "card", id: `card-${name}` },
      make("div", { class: "card-head" },
        make("span", { class: "letter", "aria-label": `Demonstration ${name}` }, name),
        make("span", { class: "card-task" }, tell(task))),
      pictures,
      make("div", { class: "row card-foot" }, play, make("span", { class: "hint" }, steps), foot));
    requestAnimationFrame(() => this.drawEnds(before, after, film));
    this.letPlay(film, { before, after, caption, play, pictures });
    return card;
  }

  /** Play a film where the first picture is: once at first, when pointed at, and at the press of a button. */
  letPlay(film, { before, after, caption, play, pictures }) {
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      caption.textContent = "before";
      play.textContent = "▶ play";
      play.setAttribute("aria-pressed", "false");
      this.drawEnds(before, after, film);
    };
    const start = () => {
      if (timer) return;
      let shown = 0;
      play.textContent = "■ stop";
      play.setAttribute("aria-pressed", "true");
      timer = setInterval(() => {
        shown += 1;
        if (shown >= film.length + PAUSE || !before.isConnected) return stop();
        if (shown >= film.length) return;
        caption.textContent = `step ${film[shown].time}`;
        this.painter.draw(before, film[shown].picture);
      }, FRAME);
    };
    play.onclick = () => (timer ? stop() : start());
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const withMouse = (act) => (event) => event.pointerType === "mouse" && !still && act();
    pictures.addEventListener("pointerenter", withMouse(start));
    pictures.addEventListener("pointerleave", withMouse(stop));
    if (!still) requestAnimationFrame(start);
  }

  /** Draw all thumbnails anew, at the size they now have. */
  redraw() {
    for (const { name, film } of this.demos.values()) {
      const [before, after] = $(`card-${name}`).querySelectorAll("canvas");
      if (film && before) this.drawEnds(before, after, film);
    }
  }

  /** The first picture and the last, with rings around what has changed. */
  async drawEnds(before, after, film) {
    const [first, last] = [film[0].picture, film.at(-1).picture];
    const changed = this.painter.changes(first, last);
    const draw = () => Promise.all([[before, first], [after, last]].map(([canvas, picture]) =>
      this.painter.draw(canvas, picture, changed)));
    await draw();
    const pictures = before.closest(".pictures");
    if (!pictures || isWide(before) === pictures.classList.contains("wide")) return;
    pictures.classList.toggle("wide");
    await draw(); // at the size they have now
  }

  askForTask() {
    this.chooseSkills([]);
    $("new-dialog").returnValue = "";
    $("new-dialog").showModal();
  }

  chooseSkills(task) {
    this.task = task.slice(0, 8);
    $("new-task").replaceChildren(...this.task.map((skill) => make("li", {}, words(skill))));
    $("new-keep").disabled = !this.task.length;
  }

  async record() {
    $("record-dialog").returnValue = "";
    $("record-dialog").showModal();
    $("record-canvas").focus();
    await this.newScene();
  }

  async newScene() {
    const recording = this.recording = { seed: seed(), moves: "", waiting: 0, ready: false };
    this.complain("");
    $("record-held").textContent = "Setting the scene …";
    $("record-done").textContent = "nothing yet";
    $("record-keep").disabled = true;
    const answer = await this.socket.ask({ do: "play", seed: recording.seed });
    if (recording !== this.recording) return;
    recording.ready = answer.is !== "mistake";
    if (!recording.ready) $("record-held").textContent = "";
    this.showRecording(answer);
  }

  /** What is wrong, where whoever records sees it. */
  complain(reason) {
    $("record-mistake").textContent = reason;
    $("record-mistake").hidden = !reason;
  }

  press(event) {
    const action = MOVES[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const onButton = event.target.tagName === "BUTTON" && event.key === " ";
    if (action === undefined || onButton || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    this.move(action);
  }

  /** One move after the other; of keys that come faster than they are answered, a few are kept. */
  async move(action) {
    const recording = this.recording;
    if (!recording?.ready || recording.waiting >= 4) return;
    recording.waiting += 1;
    const answer = await this.socket.ask({ do: "move", action });
    recording.waiting -= 1;
    if (recording !== this.recording) return;
    if (answer.is === "mistake") return this.complain(answer.reason);
    recording.moves += action;
    this.showRecording(answer);
  }

  async showRecording(answer) {
    if (answer.is === "mistake") return this.complain(answer.reason);
    const held = await this.painter.draw($("record-canvas"), answer.picture);
    $("record-held").textContent = `in hand: ${held} · ${answer.steps} ${answer.steps === 1 ? "step" : "steps"}`;
    $("record-done").textContent = answer.done.length ? tell(answer.done) : "nothing yet";
    $("record-keep").disabled = !answer.done.length;
  }

  keepRecording() {
    const recording = this.recording;
    this.recording = null;
    if ($("record-dialog").returnValue === "keep" && recording) {
      this.add({ kept: true, seed: recording.seed, moves: recording.moves });
    }
  }
}

/** What demonstrations are called; where skills are called A, B and so on, by letters further on. */
export function letters(world) {
  return world.skills.includes("A") ? [..."PQRSTUVWXYZ"] : [..."ABCDEFGHIJKL"];
}

export function seed() {
  return Math.floor(Math.random() * 1e6);
}
