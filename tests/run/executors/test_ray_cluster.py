"""Ray: the same result from one node and from two."""

from __future__ import annotations

import os
import sys
import time

import pytest
from executor_tasks import TASKS, outcome

from discodso.run.executors.dispatch import as_completed
from discodso.run.executors.registry import Ray


@pytest.mark.slow
def test_ray_gives_the_same_result():
    pytest.importorskip("ray")
    with Ray(workers=2) as executor:
        for task in TASKS.values():
            assert outcome(task, executor=executor) == outcome(task)


def where(_):
    import ray

    time.sleep(0.2)
    return ray.get_runtime_context().get_node_id()


@pytest.mark.slow
def test_two_nodes_of_ray_give_the_same_result(monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(os.path.abspath(path) for path in sys.path))
    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False, configure_logging=False)
        with Ray() as executor:
            assert executor.workers == 2
            assert len(set(as_completed(executor, where, range(8)))) == 2
            for task in TASKS.values():
                assert outcome(task, executor=executor) == outcome(task)
    finally:
        ray.shutdown()
        cluster.shutdown()
