"""Test settings: one hypothesis profile that is the same on every machine, and Ctrl-C that arrives."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("suite")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell does that to what it starts in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)
