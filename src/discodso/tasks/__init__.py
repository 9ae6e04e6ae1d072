"""The kinds of tasks: the paper's bitstring, equations, tree policies, tasks of one's own.

Each builds a task for the run layer, and says how its designs are shown.
"""

# The one place where kinds are registered: name, and the module whose KIND is the record.
KINDS = {
    "regression": "discodso.tasks.regression.kind",
    "policy": "discodso.tasks.policies.policy_kind",
    "bitstring": "discodso.tasks.bitstring",
    "problem": "discodso.tasks.regression.problems",
    "custom": "discodso.tasks.custom",
}
