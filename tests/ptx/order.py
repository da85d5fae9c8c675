"""What has happened before what: vector clocks of the warps that run together.

Every warp counts its own epochs and knows, of every other warp of its cluster and of every mbarrier's copies, the epoch
up to which all is done and seen. A barrier gives what one knows to the others; two accesses to one place, one of them a
store, are a race where the second one's warp does not know of the first one's epoch.
"""

from __future__ import annotations

import numpy as np

COPIES = 64  # mbarriers of a cluster that can be told apart, each an agent whose copies are stores
GROUP = 4  # warps of a warpgroup, whose wgmma is an agent that reads: one of the warps may tell that it is done


class Order:
    """`known[cluster, agent, other]` is an epoch; `turn[cluster, agent]` counts what orders the lanes of a warp.

    Agents are warps, then warpgroups, then mbarriers.
    """

    def __init__(self, clusters: int, warps: int):
        self.warps, self.readers = warps, warps + -(-warps // GROUP)
        count = self.readers + COPIES
        self.known = np.zeros((clusters, count, count), np.int32)
        own = np.arange(count)
        self.known[:, own, own] = 1
        self.turn = np.zeros((clusters, warps), np.int32)

    def release(self, cluster: int, agents) -> np.ndarray:
        """What these agents know together; what they do from now on is not part of it."""
        agents = np.unique(agents)
        together = self.known[cluster, agents].max(0)
        self.known[cluster, agents, agents] += 1
        return together

    def acquire(self, cluster: int, agents, known: np.ndarray) -> None:
        """Agents get to know what others released."""
        agents = np.unique(agents)
        self.known[cluster, agents] = np.maximum(self.known[cluster, agents], known)
        warps = agents[agents < self.warps]
        self.turn[cluster, warps] += 1

    def product(self, cluster: int, warps) -> tuple[int, int]:
        """The (agent, epoch) of a product of these warps of a warpgroup, which know now that it has been done."""
        agent = self.warps + int(warps[0]) // GROUP
        self.known[cluster, agent, agent] += 1
        epoch = int(self.known[cluster, agent, agent])
        self.known[cluster, warps, agent] = epoch
        return agent, epoch
