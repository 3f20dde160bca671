"""Nodes that are lost while ranks run on them; this machine plays two, in namespaces."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from distspmd.runtime.toolchain import MPI, find_mpi

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


def settings(mpi: MPI, folder: Path) -> dict[str, str]:
    """What lets an mpiexec start its ranks on both nodes, two on each."""
    agent, hosts = str(HERE / "fake_nodes"), folder / "nodes.txt"
    if mpi.kind == "openmpi":
        hosts.write_text("n1 slots=2\nn2 slots=2\n")
        return {
            "PRTE_MCA_plm_ssh_agent": agent,
            "OMPI_MCA_plm_rsh_agent": agent,
            "PRTE_MCA_prte_default_hostfile": str(hosts),
            "OMPI_MCA_orte_default_hostfile": str(hosts),
        }
    hosts.write_text("n1:2\nn2:2\n")
    return {
        "HYDRA_LAUNCHER": "ssh",
        "HYDRA_LAUNCHER_EXEC": agent,
        "HYDRA_HOST_FILE": str(hosts),
        "MPIR_CVAR_CH4_NETMOD": "ofi",  # UCX takes the two for one machine
        "FI_PROVIDER": "tcp",
    }


def test_a_lost_node_is_an_error_that_names_it_and_its_ranks(tmp_path: Path) -> None:
    nodes, lost = tmp_path / "nodes", tmp_path / "lost"
    tool = f"{HERE / 'fake_nodes'}"
    run = f"{sys.executable} -m distspmd run {HERE / 'lost.py'} -n 4 {lost}"
    script = f"""
trap '{tool} stop {nodes}' EXIT
{tool} start {nodes} 2 || exit 99
(until [ -e {lost} ]; do sleep 0.1; done; exec {tool} lose {nodes} n2) &
losing=$!
{tool} n1 "{run}"
code=$?
kill $losing 2>/dev/null
exit $code
"""
    around = {
        **os.environ,
        **settings(find_mpi(), tmp_path),
        "FAKE_NODES": str(nodes),
        "PYTHONPATH": str(HERE.parents[2]),
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
    told = said.read_text()
    assert "hosts: ['n1', 'n1', 'n2', 'n2']" in told, told
    assert done.returncode not in (0, 99), told
    if find_mpi().kind == "openmpi":
        assert told.count("ranks 2, 3 on n2 did not come to the end") == 1, told
