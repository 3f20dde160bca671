"""Nodes that are lost while ranks run on them; this machine plays two, in namespaces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from distspmd.runtime.compilers.toolchain import MPI, find_mpi

HERE = Path(__file__).parent
TOOLS = ("unshare", "nsenter", "ip", "find")
NAMESPACES = ("unshare", "--net", "--mount", "--propagation", "private")


def cannot_play() -> str:
    """Why there can be no nodes here, if so."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        return f"{', '.join(missing)} are missing"
    if os.geteuid() != 0:
        return "namespaces with networks are made by root alone"
    tried = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else "this machine allows no namespaces"


pytestmark = pytest.mark.skipif(bool(cannot_play()), reason=cannot_play() or "it can be played")


BOTH = {"n1": 2, "n2": 2}


def settings(mpi: MPI, folder: Path, slots: Mapping[str, int]) -> dict[str, str]:
    """What lets an mpiexec start its ranks on nodes, so many on each."""
    agent, hosts = str(HERE / "fake_nodes"), folder / "nodes.txt"
    if mpi.kind == "openmpi":
        hosts.write_text("".join(f"{node} slots={many}\n" for node, many in slots.items()))
        return {
            "PRTE_MCA_plm_ssh_agent": agent,
            "OMPI_MCA_plm_rsh_agent": agent,
            "PRTE_MCA_prte_default_hostfile": str(hosts),
            "OMPI_MCA_orte_default_hostfile": str(hosts),
        }
    hosts.write_text("".join(f"{node}:{many}\n" for node, many in slots.items()))
    return {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": agent,
        "HYDRA_HOST_FILE": str(hosts),
        "MPIR_CVAR_CH4_NETMOD": "ofi",  # UCX takes the two for one machine
        "FI_PROVIDER": "tcp",
    }


def played(
    tmp_path: Path, command: str, loses: Path | None = None, slots: Mapping[str, int] = BOTH
) -> tuple[int, str]:
    """What a command says on the first of two nodes, of which the second is lost once a file is."""
    nodes, tool = tmp_path / "nodes", HERE / "fake_nodes"
    losing = f"(until [ -e {loses} ]; do sleep 0.1; done; exec {tool} lose {nodes} n2) & losing=$!"
    script = f"""
trap '{tool} stop {nodes}' EXIT
{tool} start {nodes} 2 || exit 99
{losing if loses else ""}
{tool} n1 "{command}"
code=$?
kill $losing 2>/dev/null
exit $code
"""
    around = {
        **os.environ,
        **settings(find_mpi(), tmp_path, slots),
        "FAKE_NODES": str(nodes),
        "PYTHONPATH": str(HERE.parents[3]),
    }
    said = tmp_path / "said"
    with said.open("w") as file:
        done = subprocess.run(
            [*NAMESPACES, "bash", "-c", script],
            env=around,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=300,
        )
    return done.returncode, said.read_text()


def test_a_lost_node_is_an_error_that_names_it_and_its_ranks(tmp_path: Path) -> None:
    lost = tmp_path / "lost"
    run = f"{sys.executable} -m distspmd run {HERE / 'lost.py'} -n 4 {lost}"
    code, told = played(tmp_path, run, lost)
    assert "hosts: ['n1', 'n1', 'n2', 'n2']" in told, told
    assert code not in (0, 99), told
    if find_mpi().kind == "openmpi":
        assert told.count("ranks 2, 3 on n2 did not come to the end") == 1, told


@pytest.mark.parametrize(
    ("slots", "sees"), [(BOTH, "sees"), pytest.param({"n2": 4}, "apart", marks=pytest.mark.slow)]
)
def test_one_process_drives_the_ranks_of_nodes(
    slots: Mapping[str, int], sees: str, tmp_path: Path
) -> None:
    hosts = [node for node, many in slots.items() for _ in range(many)]
    script, shell = HERE / "driven.py", HERE / "fake_nodes"
    code, told = played(tmp_path, f"{sys.executable} {script} {shell} {sees}", slots=slots)
    assert code == 0, told
    assert f"hosts: {hosts} shared: {sees == 'sees'}\n" in told, told
    assert told.count("lost: ") == 1, told
    lost = re.search(
        r"^.*lost: rank (\d) \(process \d+ on (n\d)\) .*; all ranks are ended\.$", told, re.M
    )
    assert lost is not None, told  # MPI may have ended another one before the launcher knew of it
    assert hosts[int(lost[1])] == lost[2]
