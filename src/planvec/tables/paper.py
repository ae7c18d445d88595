"""The paper's three tables: success in %, mean and standard deviation of three seeds where it gives one."""

from typing import NamedTuple


class Figure(NamedTuple):
    mean: float
    std: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:g}" if self.std is None else f"{self.mean:g} ± {self.std:g}"


COLUMNS = {
    "crafting": ("4", "8", "16", "1+1", "2+2", "4+4"),
    "tabletop": ("1", "2", "1+1"),
    "doom": ("1", "2", "1+1", "2+2"),
}
TABLES = {
    "crafting": {  # table 1; its "CPV-Naive" is cpv-plain
        "naive": ((29, 2), (9, 2), (7, 2), (29, 10), (24, 5), (5, 2)),
        "tecnet": ((49, 11), (17, 7), (7, 6), (59, 11), (43, 11), (29, 23)),
        "te-plain": ((53, 4), (28, 2), (25, 20), (32, 1), (44, 25), (18, 12)),
        "te-pair": ((64, 1), (31, 1), (18, 2), (55, 3), (53, 8), (21, 2)),
        "te-hom": ((50, 4), (27, 2), (21, 1), (51, 1), (52, 1), (20, 1)),
        "te-full": ((61, 8), (28, 8), (13, 2), (60, 1), (47, 7), (23, 7)),
        "cpv-plain": ((51, 8), (19, 5), (9, 2), (31, 16), (30, 15), (5, 2)),
        "cpv-pair": ((68, 11), (44, 14), (31, 13), (2, 3), (1, 2), (0, 0)),
        "cpv-hom": ((63, 3), (35, 5), (27, 8), (71, 8), (60, 11), (26, 14)),
        "cpv-full": ((73, 2), (40, 3), (28, 6), (76, 3), (64, 6), (30, 10)),
    },
    "tabletop": {  # table 2: the best epoch of each training, 100 tasks
        "naive": ((65, 7), (34, 8), (6, 2)),
        "tecnet": ((82, 6), (50, 2), (33, 4)),
        "te-plain": ((91, 2), (55, 5), (22, 2)),
        "te-pair": ((81, 11), (51, 8), (15, 3)),
        "te-hom": ((92, 1), (59, 1), (24, 12)),
        "te-full": ((88, 2), (55, 8), (9, 6)),
        "cpv-plain": ((87, 2), (55, 2), (52, 2)),
        "cpv-pair": ((82, 4), (42, 3), (7, 1)),
        "cpv-hom": ((88, 1), (54, 5), (55, 4)),
        "cpv-full": ((87, 4), (54, 4), (56, 6)),
    },
    "doom": {  # table 3; its "CPV" is cpv-full
        "naive": ((97,), (94,), (36.7,), (2,)),
        "tecnet": ((96,), (95.3,), (48.3,), (0,)),
        "cpv-full": ((93,), (90.7,), (91,), (64,)),
    },
}


def figure(world: str, agent: str, condition: str) -> Figure | None:
    """What the paper reports, if it does."""
    row = TABLES.get(world, {}).get(agent)
    return Figure(*row[COLUMNS[world].index(condition)]) if row and condition in COLUMNS[world] else None
