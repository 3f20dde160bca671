"""A short piece of `scripts/torture`, and that it finds what is wrong."""

import json
from pathlib import Path

import pytest

from torture import __main__ as torture
from torture.programs import Program, Statement, random_program
from torture.run_programs import of_text

FIRST = 400_000


def test_random_programs_compute_what_numpy_computes() -> None:
    seeds = [str(n) for n in range(FIRST, FIRST + 6)]
    found = torture.try_programs(seeds, 3, 300)
    assert found.keys() == set(seeds)
    assert not {became for became, _ in found.values()} & set(torture.FAILURES), json.dumps(found)
    assert torture.RIGHT in {became for became, _ in found.values()}


def test_random_redistributions_move_every_element() -> None:
    done = torture.run("run_redistributions", FIRST, 60, ranks=4, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 right" in done.stdout


def test_a_program_shrinks_to_statements_that_stand_alone() -> None:
    program = random_program(11)
    assert of_text("11") == program
    for smaller in program.smaller():
        defined = {a.name for a in smaller.arguments}
        for statement in smaller.statements:
            assert {*statement.reads, *statement.writes} <= defined
            defined |= set(statement.defines)
        assert set(smaller.results) <= defined


def test_what_needs_a_statement_goes_with_it() -> None:
    first = Statement("v0 = x0 + 1", ("v0",), ("x0",))
    second = Statement("v1 = v0 * 2", ("v1",), ("v0",))
    program = Program(0, random_program(0).arguments, (first, second), ("v1",))
    texts = [smaller.statements for smaller in program.smaller()]
    assert texts == [(first,), ()]


@pytest.mark.slow
def test_many_calls_programs_and_communicators_leave_nothing() -> None:
    done = torture.run("run_growth", 400, 24, ranks=4, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("bytes more on rank 0") == 3


@pytest.mark.slow
def test_programs_give_the_same_bits_again_and_on_more_ranks(tmp_path: Path) -> None:
    done = torture.run("run_deterministic", tmp_path, FIRST, 3, ranks=4, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 right" not in done.stdout
