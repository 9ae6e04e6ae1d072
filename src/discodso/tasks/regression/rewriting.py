"""The name by which the choice of a model knows `canonical`."""

from __future__ import annotations

from discodso.tasks.regression.canonical import canonical as rewritten

__all__ = ["rewritten"]
