"""A Ray cluster of several node processes on this machine, which are joined to it and killed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.processes import children

OBJECTS = 80 * 2**20  # bytes of shared memory of a node


class Machines:
    """A head without processors, and the nodes that have joined it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._nodes: list[Any] = []
        self.address: str = cluster.address

    def join(self) -> None:
        """One more machine, of one processor."""
        self._nodes.append(self._cluster.add_node(num_cpus=1, object_store_memory=OBJECTS))

    def lose(self) -> None:
        """`kill -9` of the oldest machine's processes."""
        self._cluster.remove_node(self._nodes.pop(0), allow_graceful=False)

    def newest_works(self) -> bool:
        """Whether the member of the machine that joined last has processes: it starts them with its first work."""
        (raylet,) = self._nodes[-1].all_processes["raylet"]
        return any(_is_member(worker) and children(worker) for worker in children(raylet.process.pid))

    def jobs(self) -> set[str]:
        """What the cluster knows of how its drivers were started."""
        from ray._raylet import GcsClient

        return {job.entrypoint for job in GcsClient(address=self.address).get_all_job_info().values()}

    def be(self, count: int) -> Machines:
        """As many machines as that."""
        while len(self._nodes) > count:
            self.lose()
        while len(self._nodes) < count:
            self.join()
        return self


@contextlib.contextmanager
def cluster() -> Iterator[Machines]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": OBJECTS, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        yield Machines(made)
    finally:
        made.shutdown()


def _is_member(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::ClusterMember")
    except OSError:  # it has ended meanwhile
        return False
