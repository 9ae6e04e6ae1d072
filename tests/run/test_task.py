"""Tasks: what is refused when one is declared."""

from __future__ import annotations

import math

import pytest
from near_task import near
from spaces import valued_sequence

from discodso import DeclarationError, Task


@pytest.mark.parametrize(
    ("declare", "word"),
    [
        (lambda: Task(valued_sequence(), near, worst_reward="x"), "worst_reward"),
        (lambda: Task("space", near), "space"),
        (lambda: Task(valued_sequence()), "objective"),
        (lambda: Task(valued_sequence(), 3), "functions"),
        (lambda: Task(valued_sequence(), near, worst_reward=math.nan), "worst_reward"),
    ],
)
def test_bad_tasks_are_refused(declare, word):
    with pytest.raises(DeclarationError, match=word):
        declare()
