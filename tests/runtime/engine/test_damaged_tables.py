"""A wrong word in a table is a message, not a crash: the reader under the sanitizers of g++."""

import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import Storage, words
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.runtime.compilers.toolchain import find_compiler
from distspmd.runtime.engine.compile_runtime import INCLUDE
from distspmd.solvers import SOLVERS

HERE = Path(__file__).parent / "without_mpi"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    program = tmp_path_factory.mktemp("reader") / "read_tables"
    command = [*find_compiler().command, "-std=c++17", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{HERE}", f"-I{INCLUDE}", str(HERE / "read_tables.cpp"), "-o", str(program)]
    if subprocess.run([*command, *SANITIZERS], capture_output=True, check=False).returncode != 0:
        subprocess.run(command, check=True)  # a compiler without the sanitizers
    return program


def read(reader, tables):
    """Numbers of tables that were read and that were refused, and what was said."""
    sent = b"".join(np.array([len(t), *t], dtype=np.int64).tobytes() for t in tables)
    done = subprocess.run([reader], input=sent, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr.decode()[-4000:]
    found = re.match(r"(\d+) read, (\d+) refused", done.stdout.decode())
    return int(found[1]), int(found[2]), done.stderr.decode(errors="replace")


def sound_tables():
    mesh = Mesh(x=2, y=2)
    layouts = [
        Layout.root((5, 4)),
        *(Layout.parse(t, mesh) for t in ("[3{x}5, 2{y}4]", "[5, 1{x,y}4]")),
    ]
    partial = Layout.parse("[3{x}5, 4] + partial(max){y}", mesh)
    moves = [Redistribution(a, b, "float32") for a in (*layouts, partial) for b in layouts]
    plans = [p for move in moves for solver in SOLVERS if isinstance(p := solver.plan(move), Plan)]
    for rank in range(4):
        for plan in plans:
            storages = [Storage.of(layout.box(rank)) for layout in plan.buffers[:2]]
            yield words([("the memlet x", plan, storages)], rank).tolist()


def test_sound_tables_are_read(reader):
    tables = list(sound_tables())
    assert read(reader, tables) == (len(tables), 0, "")


def test_a_damaged_table_is_read_or_refused_with_its_place(reader):
    rng = random.Random(1)
    sound = list(sound_tables())
    damaged = []
    for _ in range(8000):
        table = list(rng.choice(sound))
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(table))
            near = table[at] + rng.choice([-1, 1, 2])
            far = rng.choice(
                [rng.randrange(-9, 9), rng.randrange(-(2**63), 2**63), 2**31, -(2**63)]
            )
            table[at] = max(-(2**63), min(rng.choice([near, near, far]), 2**63 - 1))
        damaged.append(table)
    _, refused, said = read(reader, damaged)
    assert refused > 4000
    messages = said.split("distspmd: rank -1: ")[1:]
    assert len(messages) == refused
    known = re.compile(r"bad plan table: .+ \(word \d+ of \d+\)\.", re.DOTALL)
    assert [message for message in messages if not known.match(message)] == []


def test_a_table_that_ends_anywhere_is_refused(reader):
    table = next(sound_tables())
    cut = [table[:n] for n in range(len(table))]
    cut += [[*table[:2], n, *table[3:n]] for n in range(3, len(table))]
    assert read(reader, cut)[:2] == (0, len(cut))


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (0, 1, "does not begin as one"),
        (1, 99, "version 99, but this runtime reads version 1"),
        (2, 7, "it is cut off"),
    ],
)
def test_the_message_says_what_is_wrong(reader, word, value, message):
    table = next(sound_tables())
    table[word] = value
    assert message in read(reader, [table])[2]
