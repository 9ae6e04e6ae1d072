"""A small task and method for runs that are stopped and go on."""

from __future__ import annotations

from spaces import valued_sequence

from discodso import Design, DisCoSettings, NetworkSettings, Task
from discodso.disco.settings import ArchiveSettings

SMALL = DisCoSettings(batch_size=50, archive=ArchiveSettings(size=5), network=NetworkSettings(units=8))


def objective(design: Design) -> float:
    if design.tokens[0] == "d" and len(design) > 1 and design.tokens[1] == "d":
        raise ValueError("no value")
    return -sum((v - 0.7) ** 2 for v in design.values if v is not None) - 0.01 * len(design)


TASK = Task(valued_sequence(), objective)
