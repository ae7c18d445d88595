"""The doom world, a hosted one: rooms seen from within, drawn by ViZDoom."""

from planvec.worlds.registry import Registration

WORLD = "planvec.worlds.doom.world:Doom"
REGISTRATIONS = (
    Registration(
        "doom",
        "rooms with four waypoints, seen from within: four skills, images of 80×60 pixels, three actions",
        factory=WORLD,
        environments={"planvec/Doom-v0": {"entry_point": "planvec.worlds.doom.gym:DoomEnv"}},
        benchmark="planvec.worlds.doom.benchmark:run",
    ),
    Registration(
        "doom-rooms",
        "four rooms of 8 metres with doors between them, in place of one of 12 metres",
        factory=WORLD,
        options={"level": "rooms"},
        variant=True,
    ),
    Registration(
        "doom-noflags",
        "agents are not told outright which waypoints are left: a visited one has zeroes for its place",
        factory=WORLD,
        options={"flags": False},
        variant=True,
    ),
)
