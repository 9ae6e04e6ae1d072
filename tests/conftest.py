"""Test settings: one hypothesis profile that is the same on every machine, one thread, and Ctrl-C that arrives."""

import os
import signal

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
