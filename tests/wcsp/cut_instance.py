"""Cuts a small instance out of one of the contest: ``python cut_instance.py LARGE SMALL``.

The first nodes stay, each with its first strategies, the edges between them, and their intervals;
the limit is halfway between the least and the largest peak.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

NODES, STRATEGIES = 60, 5


def cut(large: dict) -> dict:
    nodes, edges = large["nodes"], large["edges"]
    small_nodes = {
        "intervals": nodes["intervals"][:NODES],
        "costs": [costs[:STRATEGIES] for costs in nodes["costs"][:NODES]],
        "usages": [usages[:STRATEGIES] for usages in nodes["usages"][:NODES]],
    }
    kept, costs = [], []
    for (first, second), table in zip(edges["nodes"], edges["costs"], strict=True):
        if max(first, second) < NODES:
            columns = len(nodes["costs"][second])
            rows = [table[i : i + columns] for i in range(0, len(table), columns)]
            kept.append([first, second])
            costs.append([cost for row in rows[:STRATEGIES] for cost in row[:STRATEGIES]])
    limit = (peak(small_nodes, min) + peak(small_nodes, max)) // 2
    small_edges = {"nodes": kept, "costs": costs}
    return {"name": "cut", "nodes": small_nodes, "edges": small_edges, "usage_limit": limit}


def peak(nodes: dict, choose) -> int:
    last = max(end for _, end in nodes["intervals"])
    live = zip(nodes["intervals"], nodes["usages"], strict=True)
    taken = [0] * last
    for (begin, end), usages in live:
        for time in range(begin, end):
            taken[time] += choose(usages)
    return max(taken)


if __name__ == "__main__":
    source = json.loads(gzip.decompress(Path(sys.argv[1]).read_bytes()))
    text = json.dumps({"problem": cut(source["problem"])}, separators=(",", ":"))
    Path(sys.argv[2]).write_bytes(gzip.compress(text.encode(), mtime=0))
