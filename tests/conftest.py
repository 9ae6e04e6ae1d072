"""Test settings: one hypothesis profile that is the same on every machine, one thread, and Ctrl-C that arrives."""

import os
import signal
from pathlib import Path

# Before any library is loaded: tests run side by side, where threads of linear algebra wait for one another.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings  # noqa: E402

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell does that to what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The first tests go to the first worker, the next ones to the second: so the search for equations is compiled
# once, while the other worker runs what does without. What takes long comes before what is short.
TESTS = Path(__file__).parent
ORDER = (
    *(f"tasks/regression/{name}" for name in ("engine", "test_refine", "test_expressions")),
    *("base", "space", "disco", "tasks/policies"),
    *("test_", "run"),
)


def pytest_collection_modifyitems(items):
    def place(item):
        path = item.path.relative_to(TESTS).as_posix()
        return next((place for place, start in enumerate(ORDER) if path.startswith(start)), len(ORDER))

    items.sort(key=place)
