"""The files that `discodso init` writes."""

_RUN = """
[run]
budget = {budget:<18}# objective calls
seed = 0                   # the same seed gives the same run
# target = {target:<16}# stop at this reward
# patience = 20000         # stop after so many calls without a better design
# time_limit = 3600.0      # seconds
# top = {top:<19}# designs to keep
# checkpoint_seconds = 60.0
"""


def _run(budget: int, target: str = "0.999", top: int = 10) -> str:
    return _RUN.format(budget=budget, target=target, top=top)


_EXECUTOR = """
[executor]                 # where designs are evaluated
kind = "none"              # none (this process), threads, processes, dask, ray
# workers = 4              # of threads, processes, or a Ray on this machine
# address = "tcp://10.0.0.1:8786"   # of a Dask scheduler or a Ray cluster
"""

_METHOD = """
[method]
kind = "disco"             # or a baseline: decoupled-rl, decoupled-gp, bo, gp, random
preset = "default"         # or "paper": the paper's hyperparameters and nothing else
# batch_size = 100         # N, designs for one update; this and the following change the preset
# learning_rate = 0.005
# entropy_coefficient = 0.05
# risk_factor = 0.2        # epsilon, the share of a batch that teaches
# queue_size = 50          # best designs to keep, vary and refine, and with queue_weight to imitate
# queue_recheck = 0.2      # share of a batch that evaluates good designs again, for noisy rewards

[method.policy]
# cell = "lstm"            # or "gru"
# units = 32
"""

_REGRESSION = """# An equation for a column of a table.

[task]
kind = "regression"
table = "data.csv"         # with a header line
target = "y"               # the column to explain
# ignore = ["id"]
# library = ["add", "sub", "mul", "div", "sin", "cos", "exp", "log", "sqrt", "n2", "const"]
# max_length = 32
# const_range = [-inf, inf]
# metric = "nmse"          # nmse, nrmse, mae, r2
# selection = "auto"       # auto, accuracy, validation, complexity
# polish = true            # fit constants by least squares
# preset = "default"       # or "paper"
# threads = 1

# [method] may be given as for other tasks; without it, it follows the budget.
"""

_BITSTRING = """# The paper's parameterised bitstring: hidden bits, each with a hidden number.

[task]
kind = "bitstring"
length = 10
alpha = 0.9                # weight of the bits against the numbers
objective = "f1"           # f1 has many local maxima, f2 jumps
"""

_POLICY = """# A decision tree that acts in a Gymnasium environment.

[task]
kind = "policy"
environment = "CartPole-v1"   # an id, or module:Id-v0
episodes = 100             # N, for one objective call: its reward is their mean return
# max_nodes = 31           # decisions and leaves of the largest tree
# typical_nodes = 7        # begin with trees of about this size, 0 for any; by default as the preset has it
# workers = 1              # processes, or threads where the environment is compiled
# preset = "tuned"         # or "paper"
# racing = true            # cut poor trees after few episodes; by default as the preset has it
# common_episodes = true   # all trees meet the same episodes instead of fresh ones
# restart_after = 5000     # calls without a better tree until a fresh network begins
# trim = true              # at the end, cut out decisions that earn nothing; by default as the preset has it
# resolution = 0.01        # closest distance of thresholds on one path, as a share of their range
# test_seeds = [0, 1, 2]   # for the final score; 0 to 999 by default
# probe_ranges = true      # thresholds where features lie in random episodes, instead of in declared bounds
# [task.arguments]         # of the environment
# [task.ranges]            # of thresholds, by feature
# angle = [-0.2, 0.2]

# [method] may be given as for other tasks; without it, it is the preset's.
"""

_CUSTOM = """# A task of one's own.

[task]
kind = "custom"
task = "my_task:task"      # module:attribute, a Task or a function that returns one
# path = "."               # folder of the module; the current one by default
# [task.arguments]         # of the function
"""

TEMPLATES = {
    "regression": _REGRESSION + _run(100_000),
    "bitstring": _BITSTRING + _METHOD + _run(50_000) + _EXECUTOR,
    "policy": _POLICY + _run(10_000, target="500.0", top=100),
    "custom": _CUSTOM + _METHOD + _run(10_000) + _EXECUTOR,
}

CUSTOM_TASK = '''"""A drive train: any number of stages, each with a ratio of its own."""

from discodso import OpenSequence, Space, Task, Token

space = Space(
    [Token("gears", range=(0.2, 5.0), scale="log"), Token("belt", range=(0.5, 2.0)), Token("coupling")],
    OpenSequence(min_length=1, max_length=6),
)


def objective(design):
    """Hit a total ratio of 12 with little loss; rewards are maximised."""
    ratio, efficiency = 1.0, 1.0
    for name, value in design:
        ratio *= value or 1.0
        efficiency *= {"gears": 0.97, "belt": 0.95, "coupling": 0.999}[name]
    return efficiency - abs(ratio - 12) / 12


task = Task(space, objective, name="drive train")
'''
