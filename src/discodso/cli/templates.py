"""The files that `discodso init` writes."""

_RUN = """
[run]
budget = {budget:<18}# objective calls
seed = 0                   # the same seed gives the same run
# target = {target:<16}# stop at this reward
# patience = 20000         # stop after so many calls without a better design
# time_limit = 3600.0      # seconds
# on_failure = "continue"  # if all of the first batch fail; by default the run stops
# top = {top:<19}# designs to keep
# checkpoint_seconds = 60.0
"""


_EXECUTOR = """
[executor]                 # where designs are evaluated
kind = "none"              # none (this process), threads, processes, dask, ray
# workers = 4              # of threads, processes, or a Ray on this machine
# address = "tcp://10.0.0.1:8786"   # of a Dask scheduler or a Ray cluster
# renew_after = 100        # designs after which a worker process is replaced
"""

_METHOD = """
[method]
kind = "disco"             # or a baseline: decoupled-rl, decoupled-gp, bo, gp, random
preset = "default"         # or "paper", the paper's to the letter, or "paper-scaled"
# batch_size = 100         # N, designs for one update; this and the following change the preset
# restarts = false         # never begin anew

# [method.network]         # a network that proposes and learns, as in the paper
# cell = "lstm"            # or "gru"
# units = 32

# [method.learner]
# learning_rate = 0.005
# entropy_coefficient = 0.05
# risk_factor = 0.2        # epsilon, the share of a batch that teaches

# [method.archive]
# size = 50                # best designs to keep, vary and refine
# recheck = 0.2            # share of a batch that evaluates good designs again, for noisy rewards
"""


def template(name: str) -> str:
    """A commented settings file for a kind of task."""
    from discodso.run.kinds import kind_named

    kind = kind_named(name)
    executor = _EXECUTOR if kind.executors is True else ""
    run = _RUN.format(budget=kind.budget, target=kind.target, top=kind.top)
    return kind.template + _METHOD + run + executor
