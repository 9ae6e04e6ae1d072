"""Holding linear algebra to one thread: for small matrices more are many times slower."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all libraries of the process, which takes a while


def one_blas_thread() -> AbstractContextManager[Any]:
    """Run BLAS on one thread; the number belongs to the process and is put back."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
