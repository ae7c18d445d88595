"""Plan arithmetic, step by step: a tutorial to read and to run. It takes about a minute on a CPU.

    python examples/plan_arithmetic.py

Each part says what it does, does it, and prints what there is to see. Pictures go to the folder out/.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import planvec as pv
from planvec.evaluation.rollouts import Episode
from planvec.media.filming import film_together
from planvec.media.pictures import save_figure
from planvec.training.compilation import keep_compiled_programs

OUT = Path("out")
OUT.mkdir(exist_ok=True)
SCENES = 3  # in which the agent acts on each plan


def act(name: str, plan: pv.Plan, task: tuple[str, ...]) -> Episode:
    """Let the agent act on a plan in a few scenes, and say how it went. Returns an episode, a success if there is one.

    The task is never shown to the agent: it says what the scene must have in it, and what is judged.
    """
    episodes = [pv.rollout(agent, plan, world, task, seed=seed) for seed in range(SCENES)]
    for episode in episodes:
        print(f"  {name}: {episode.describe()}")
    return max(episodes, key=lambda episode: episode.success)


keep_compiled_programs()  # in your cache folder: the second start is faster
print("1. An agent, and the world it lives in")
# The shipped agent is the paper's cpv-full. It has learned from pairs of demonstrations of two to four skills. Nobody
# told it what a skill is, nor has it ever seen plans being added.
agent = pv.load("crafting")
world = pv.make("crafting")
print(f"  the skills: {', '.join(world.skills)}")

print("2. Two demonstrations, by the expert")
# Each is in a scene of its own. The images are what the agent sees, one more than there are actions.
a = world.demonstrate("ChopTree,BuildHouse", seed=0)
b = world.demonstrate("MakeBread,EatBread", seed=1)
print(f"  a: {', '.join(a.task)}, {len(a)} actions and images of shape {a.observations.shape}")
print(f"  b: {', '.join(b.task)}, {len(b)} actions and images of shape {b.observations.shape}")

print("3. Their plans")
# A plan is g(first image, last image): what has changed between the two, as 512 numbers. It does not say how.
# Plans that have nothing in common are nearly at right angles, so that their similarity is about 0.
A, B = agent.plan(a), agent.plan(b)
print(f"  A has {len(A.vector)} numbers and length {A.norm():.1f}, B length {B.norm():.1f}")
print(f"  similarity of A with itself {A.similarity(A):.2f}, with B {A.similarity(B):.2f}")

print("4. What a plan holds")
# A linear map, fitted afterwards to demonstrations whose skills are known, reads off a plan how often each skill is in
# it. The agent itself has no use for it.
print(f"  A: {agent.read(A)}")
print(f"  B: {agent.read(B)}")
print(f"  A + B: {agent.read(A + B)}")

print("5. A + B, in scenes that nobody has seen before")
# At every step the agent subtracts what it has done so far, g(first, now), and acts on what is left. The order is its
# own: a sum has none.
both = act("A + B", A + B, a.task + b.task)

print("6. Is A + B the plan of doing both?")
# The expert does all four skills in one go. Of the sums of two plans, A + B should be the one most like its plan.
whole = agent.plan(world.demonstrate(a.task + b.task, seed=2))
C = agent.plan(world.demonstrate("BreakRock,BreakRock", seed=3))
plans = {"A": A, "B": B, "C": C}
likeness = {f"{x} + {y}": float(whole.similarity(plans[x] + plans[y])) for x, y in combinations(plans, 2)}
for name, similarity in likeness.items():
    print(f"  similarity of the plan of all four with {name}: {similarity:.2f}")

print("7. The plan of all four, less A")
# A + B - A is B, as in school. That the plan of one demonstration can be taken off that of another is more: the plan
# of all four has never been a sum.
print(f"  A + B - A is B: {A + B - A == B}")
print(f"  all four - A: {agent.read(whole - A)}")
act("all four - A", whole - A, b.task)

print("8. Twice A")
# 2 * A is A + A: two trees, two houses.
print(f"  2 * A: {agent.read(2 * A)}")
act("2 * A", 2 * A, a.task * 2)

print("9. What is left to do, step by step")
# The subtraction that the policy makes at every step, here on an episode of part 5, read after each skill.
events = [None, *world.events(both.steps, both.actions)]
left = [agent.read(agent.remaining(A + B, both.first, now)) for now in both.observations]
for step, (event, reading) in enumerate(zip(events, left, strict=True)):
    if event or step == 0:
        print(f"  step {step}, {event or 'the beginning'}; left: {reading}")

print("10. Pictures")
# A film of the two demonstrations and their sum; what five plans hold; and what is left while the agent acts.
titles = ("A, by the expert", "B, by the expert", "A + B, by the agent")
film_together(world, list(zip(titles, (a, b, both), strict=True)), OUT / "plan_arithmetic.gif")

figure = Figure(figsize=(11, 3.6), layout="constrained")
held, rest = figure.subplots(1, 2)
shown = {"A": A, "B": B, "A + B": A + B, "all four - A": whole - A, "2 * A": 2 * A}
counts = [list(agent.read(plan).counts.values()) for plan in shown.values()]
held.imshow(counts, cmap="Greens", vmin=0, vmax=3, aspect="auto")
for (row, column), count in np.ndenumerate(counts):
    held.text(column, row, f"{count:z.1f}", ha="center", va="center")
held.set_xticks(range(len(world.skills)), world.skills, rotation=20)
held.set_yticks(range(len(shown)), shown)
held.set_title("what plans hold")

asked = dict.fromkeys(a.task + b.task)
rest.stackplot(range(len(left)), [[max(reading.counts[skill], 0) for reading in left] for skill in asked], labels=asked)
rest.set(xlabel="step", ylabel="skills", title="what is left of A + B")
rest.legend(frameon=False)
rest.spines[["top", "right"]].set_visible(False)
save_figure(OUT / "plan_arithmetic.png", figure)
print(f"  {OUT / 'plan_arithmetic.gif'} and {OUT / 'plan_arithmetic.png'}")
