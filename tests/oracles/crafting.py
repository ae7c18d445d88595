"""The crafting world once more, slow and obvious: a dict of what lies where, and the spec's sentences as ifs."""

from collections import deque

STEPS = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}


def step(things, agent, held, action):
    """`things`: {(row, column): name}. Returns things, agent, held and the name of the skill done, or None."""
    things = dict(things)
    if action == 4:
        if held is None and things.get(agent) in ("logs", "hammer", "axe"):
            held = things.pop(agent)
        return things, agent, held, None
    if action == 5:
        if held is not None and agent not in things:
            things[agent], held = held, None
        return things, agent, held, None

    cell = (agent[0] + STEPS[action][0], agent[1] + STEPS[action][1])
    if not (0 <= cell[0] < 10 and 0 <= cell[1] < 10):
        return things, agent, held, None
    there = things.get(cell)
    if there == "tree":
        if held != "axe":
            return things, agent, held, None
        things[cell] = "logs"
        return things, cell, held, "ChopTree"
    if there == "rock":
        if held != "hammer":
            return things, agent, held, None
        del things[cell]
        return things, cell, held, "BreakRock"
    if there == "logs" and held == "hammer":
        things[cell] = "house"
        return things, cell, held, "BuildHouse"
    if there == "wheat" and held == "axe":
        things[cell] = "bread"
        return things, cell, held, "MakeBread"
    if there == "bread":
        del things[cell]
        return things, cell, held, "EatBread"
    return things, cell, held, None


def first_moves(start, goals, free):
    """The moves that begin a shortest path from `start` into `goals` through `free` cells, by breadth-first search."""
    lengths = {}
    for move, (dr, dc) in STEPS.items():
        queue, seen = deque([((start[0] + dr, start[1] + dc), 1)]), set()
        while queue:
            cell, length = queue.popleft()
            if cell in seen or not (0 <= cell[0] < 10 and 0 <= cell[1] < 10):
                continue
            seen.add(cell)
            if cell in goals:
                lengths[move] = length
                break
            if cell in free:
                queue.extend(((cell[0] + r, cell[1] + c), length + 1) for r, c in STEPS.values())
    return {move for move, length in lengths.items() if length == min(lengths.values())}


def decode(image, rules):
    """Read the state back out of the agent's picture. Returns things, agent, held."""
    dim, things, agent, held = 16, {}, None, None
    for row in range(10):
        for column in range(10):
            tile = image[3 * row : 3 * row + 3, 3 * column : 3 * column + 3].reshape(9, 3).astype(int) - dim
            if tile[4].tolist() == [110, 110, 110]:
                agent = (row, column)
            for thing in rules.things[1:]:
                lit, colour = tile[thing.pixel].tolist(), list(thing.colour)
                half = [channel // 2 for channel in colour]
                both = [whole + part for whole, part in zip(colour, half, strict=True)]
                if lit in (colour, both):
                    things[row, column] = thing.name
                if lit in (half, both):
                    held = thing.name
    white = image[30:33, :3]
    assert (white == (0 if held is None else 255)).all()
    assert (image[30:33, 3:] == 0).all()
    return things, agent, held
