// The page's address holds everything: the world, the demonstrations, the plan, the scene and the agents.
//
//   #world=crafting&A=ChopTree~0&B=MakeBread,EatBread~1&plan=A+%2B+B&scene=3&agent=crafting&beside=…
//
// A demonstration is its skills and its seed, or, where a person gave it, its moves and its seed: C=*0133~5.

const DEMONSTRATION = /^(?:\*(?<moves>[0-9]{1,300})|(?<task>[^~*]{1,400}))~(?<seed>[0-9]{1,10})$/;

export function read() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const demos = [];
  for (const [name, text] of fields) {
    const found = /^[A-Z]$/.test(name) && DEMONSTRATION.exec(text);
    if (!found) continue;
    const { moves, task, seed } = found.groups;
    demos.push({ name, seed: Number(seed) % 2 ** 31, ...(moves ? { moves } : { task: split(task) }) });
  }
  const scene = Number(fields.get("scene"));
  return {
    world: fields.get("world"),
    demos: demos.slice(0, 12),
    plan: fields.get("plan")?.slice(0, 500) ?? null,
    scene: Number.isSafeInteger(scene) && scene >= 0 && scene < 2 ** 31 ? scene : 0,
    agent: fields.get("agent"),
    beside: fields.get("beside"),
  };
}

export function write({ world, demos, plan, scene, agent, beside }) {
  const fields = new URLSearchParams({ world });
  for (const demo of demos) {
    fields.set(demo.name, `${demo.moves ? `*${demo.moves}` : demo.task.join(",")}~${demo.seed}`);
  }
  if (plan !== null) fields.set("plan", plan);
  fields.set("scene", scene);
  if (agent) fields.set("agent", agent);
  if (beside) fields.set("beside", beside);
  history.replaceState(null, "", `#${fields}`);
}

/** At the commas outside parentheses. */
function split(task) {
  return task.split(/,(?![^(]*\))/).filter(Boolean);
}
