"""The tabletop world, a hosted one: an arm in MuJoCo."""

from planvec.worlds.registry import Registration

REGISTRATIONS = (
    Registration(
        "tabletop",
        "a robot arm, four cubes and a box with a lid: twenty skills, where things are, pick-and-place",
        factory="planvec.worlds.tabletop.world:Tabletop",
        environments={"planvec/Tabletop-v0": {"entry_point": "planvec.worlds.tabletop.gym:TabletopEnv"}},
        benchmark="planvec.worlds.tabletop.benchmark:run",
    ),
)
