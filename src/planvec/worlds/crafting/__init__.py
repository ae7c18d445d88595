"""The crafting world, a pure one: rules, step, image and expert are JAX functions of a state."""

from planvec.worlds.registry import Registration

REGISTRATIONS = (
    Registration(
        "crafting",
        "a board of trees, rocks, tools and bread: five skills, images of 33×30 pixels, six actions",
        factory="planvec.worlds.crafting.world:Crafting",
        environments={
            "planvec/Crafting-v0": {
                "entry_point": "planvec.worlds.crafting.gym:CraftingEnv",
                "vector_entry_point": "planvec.worlds.crafting.gym:CraftingVectorEnv",
            }
        },
        benchmark="planvec.worlds.crafting.benchmark:run",
    ),
)
