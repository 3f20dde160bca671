"""Pages and notebook cells in which DaCe's viewer draws SDFGs: in a browser, nothing is blank."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from browser import CHROMIUM, Browser
from dace import SDFG, nodes

import distspmd
from distspmd.dace_compat import viewer
from distspmd.dace_compat.drawn import COMMUNICATION, drawn
from distspmd.frontend import numpy_program
from distspmd.lowering import CONTEXT

in_a_browser = pytest.mark.skipif(not CHROMIUM, reason="no chromium: apt install chromium")

N, M = 12, 9


def perceptron(x: dace.float32[N, M], w: dace.float32[M, N], b: dace.float32[N]):
    hidden = x @ w
    return np.maximum(hidden + b, 0)


def stencil(u: dace.float64[N, N], v: dace.float64[N, N]):
    for _ in range(5):
        v[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
        u[:] = v


def irregular(
    row: dace.int64[N + 1], col: dace.int64[30], val: dace.float64[30], x: dace.float64[N]
):
    y = np.zeros(N)
    for i in distspmd.map[0:N]:
        for k in range(row[i], row[i + 1]):
            y[i] += val[k] * x[col[k]]
    return y


def training() -> SDFG:
    torch = pytest.importorskip("torch")
    from distspmd import frontend

    torch.manual_seed(0)
    model = torch.nn.Linear(M, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return frontend.training_step(step, torch.randn(8, M), torch.arange(8) % 4)


def lowered(name: str) -> distspmd.lowering.Lowering:
    if name == "training":
        from distspmd import frontend

        return distspmd.lower(training(), frontend.data_parallel(2))
    if name == "perceptron":
        return distspmd.lower(perceptron, {"hidden": (2, 2, 1)})
    if name == "stencil":
        return distspmd.lower(stencil, {"v": (2, 2), "u": (2, 2)})
    return distspmd.lower(irregular, {"__return": (4,), "__return.2": (4,)})


PROGRAMS = ["perceptron", "stencil", "training", "irregular"]


@pytest.fixture(scope="module")
def lowerings() -> dict[str, distspmd.lowering.Lowering]:
    return {name: lowered(name) for name in PROGRAMS}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


COUNT = """(() => {
  const found = [];
  const walk = (graph) => {
    for (const name of graph.nodes()) {
      const node = graph.node(name);
      if (node.data.node) found.push([node.data.node.type, node.data.node.label, node.width > 0]);
      for (const inner of [node.data.graph, ...(node.branches || []).map((b) => b[1].data.graph)])
        if (inner) walk(inner);
    }
  };
  walk(RENDERER.graph);
  return found;
})()"""
"""Type and label of each node that the viewer has laid out, and whether it has a size."""

COLOURS = """(() => {
  const canvas = RENDERER.canvas;
  const all = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const found = {};
  for (let n = 0; n < all.length; n += 4) {
    const colour = [all[n], all[n + 1], all[n + 2]].join(",");
    found[colour] = (found[colour] || 0) + 1;
  }
  return found;
})()"""
"""How many points of the canvas have which colour."""

FIRST = "Object.values(window.distspmdDrawn || {})[0]"
ORANGE = "255,216,168"


def types(sdfg: SDFG) -> Counter[str]:
    """How many nodes of each type the viewer is to draw."""
    kinds = (nodes.LibraryNode, nodes.NestedSDFG, nodes.Tasklet, nodes.MapEntry, nodes.MapExit)
    return Counter(
        next((kind.__name__ for kind in kinds if isinstance(node, kind)), "AccessNode")
        for node, graph in sdfg.all_nodes_recursive()
        if isinstance(node, nodes.Node)
        and not (isinstance(node, nodes.AccessNode) and node.data == CONTEXT)
    )


def shown(browser: Browser, renderer: str) -> list[list[Any]]:
    """What a renderer shows, once it has drawn."""
    browser.wait_for(f"{renderer} && {renderer}.graph && {renderer}.canvas")
    browser.ask("new Promise((done) => setTimeout(done, 300))")
    found: list[list[Any]] = browser.ask(COUNT.replace("RENDERER", renderer))
    return found


@in_a_browser
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_page_draws_every_node_of_a_lowered_program_and_loads_nothing(
    name: str, lowerings: dict[str, distspmd.lowering.Lowering], browser: Browser, tmp_path: Path
) -> None:
    lowering = lowerings[name]
    page = tmp_path / "page.html"
    page.write_text(viewer.page(name, lowering._repr_html_()), encoding="utf-8")
    browser.open(page)
    found = shown(browser, FIRST)
    assert Counter(kind for kind, *_ in found) == types(lowering.sdfg)
    assert all(has_size for *_, has_size in found)
    colours = browser.ask(COLOURS.replace("RENDERER", FIRST))
    assert colours[ORANGE] > 1000  # communication
    assert len(colours) > 20
    assert not browser.exceptions
    assert browser.loaded == [page.as_uri()]


@in_a_browser
def test_viewers_without_our_script_draw_saved_programs_before_and_after_lowering(
    lowerings: dict[str, distspmd.lowering.Lowering], browser: Browser, tmp_path: Path
) -> None:
    parsed = numpy_program(perceptron)
    page = tmp_path / "page.html"
    page.write_text(viewer.page("any", lowerings["perceptron"].sdfg._repr_html_()), "utf-8")
    browser.open(page)
    shown(browser, FIRST)
    for n, sdfg in enumerate([parsed, *(lowerings[p].sdfg for p in PROGRAMS)]):
        file = tmp_path / f"{n}.sdfg"
        sdfg.save(str(file))
        browser.ask(
            f"""(() => {{ const at = document.createElement("div");
            at.style.height = "400px"; document.body.appendChild(at);
            window.other{n} = new SDFGRenderer(checkCompatLoad(parse_sdfg(
            {json.dumps(file.read_text())})), at, undefined, null, null, false, null, null);
            }})()"""
        )
        found = shown(browser, f"window.other{n}")
        wanted = types(sdfg)
        drawn_types = Counter(kind for kind, label, _ in found if label != CONTEXT)
        assert drawn_types == wanted
    assert not browser.exceptions


def test_labels_have_grids_layouts_plans_and_bytes_in_words(
    lowerings: dict[str, distspmd.lowering.Lowering],
) -> None:
    text = json.dumps(drawn(lowerings["perceptron"].sdfg))
    assert "$" not in text
    assert "symbol(" not in text
    for words in (
        '"x_tile [6{i}12, 9]"',
        '"x: root [12, 9] -> [6{i}12, 9] (scatter + broadcast, 648 bytes)"',
        '"hidden: ik,kj->ij on grid (2, 2, 1)"',
        '"__return: __i0=0:12, __i1=0:12 on grid (2, 2)"',
        '"maximum(hidden[__i0, __i1] + b[__i1], 0)"',
    ):
        assert words in text, words
    assert "boxes of [12, 12]" in json.dumps(drawn(lowerings["stencil"].sdfg))
    assert "fetches at run time" in json.dumps(drawn(lowerings["irregular"].sdfg))


def test_what_communicates_is_marked_and_the_handle_of_plans_is_left_out(
    lowerings: dict[str, distspmd.lowering.Lowering],
) -> None:
    for lowering in lowerings.values():
        found = drawn(lowering.sdfg)
        marked = json.dumps(found).count(f'"{COMMUNICATION}": true')
        assert marked >= len(lowering.memlets)
        assert f'"data": "{CONTEXT}"' not in json.dumps(found)
        for state in (block for block in found["nodes"] if block["type"] == "SDFGState"):
            assert [node["id"] for node in state["nodes"]] == list(range(len(state["nodes"])))


def test_every_space_of_a_lowering_has_its_place_in_the_program(
    lowerings: dict[str, distspmd.lowering.Lowering],
) -> None:
    for lowering in lowerings.values():
        there = {node.guid for node, _ in lowering.sdfg.all_nodes_recursive()}
        assert set(lowering.places) <= there
        assert {space.name for space in lowering.spaces} == set(lowering.places.values())


def test_an_sdfg_is_as_it_was_after_it_was_drawn(
    lowerings: dict[str, distspmd.lowering.Lowering],
) -> None:
    sdfg = lowerings["irregular"].sdfg
    before = sdfg.to_json()
    drawn(sdfg)
    assert sdfg.to_json() == before


@pytest.mark.parametrize("in_editor", [False, True])
def test_the_view_of_dace_has_words_but_where_an_editor_opens_the_saved_file(
    in_editor: bool,
    lowerings: dict[str, distspmd.lowering.Lowering],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commands: list[str] = []
    monkeypatch.setattr("os.system", commands.append)
    for name in [name for name in os.environ if name.startswith("VSCODE_")]:
        monkeypatch.delenv(name)
    if in_editor:
        monkeypatch.setenv("VSCODE_IPC_HOOK", "x")
        lowerings["perceptron"].sdfg.view()
        assert commands[0].startswith("code ")
        saved = SDFG.from_file(commands[0].split()[1])
        assert types(saved) == types(lowerings["perceptron"].sdfg)
        return
    lowerings["perceptron"].sdfg.view(str(tmp_path / "viewed"))
    assert "on grid (2, 2)" in (tmp_path / "viewed.html").read_text()


def test_a_compiled_program_shows_its_record() -> None:
    from mpi4py import MPI

    lowering = distspmd.lower(perceptron, {"hidden": (1, 1, 1)})
    with distspmd.compile(lowering, MPI.COMM_SELF) as program:
        assert "Homes of the arrays" in program._repr_html_()
        assert "distspmdDraw" in program._repr_html_()


@in_a_browser
def test_one_cell_of_a_notebook_brings_the_viewer_for_all(
    lowerings: dict[str, distspmd.lowering.Lowering],
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(viewer, "isnotebook", lambda: True)
    viewer._in_this_notebook().clear()
    cells = [lowerings[name]._repr_html_() for name in ("perceptron", "stencil")]
    assert len(cells[1]) < 0.1 * len(cells[0])
    page = tmp_path / "notebook.html"
    page.write_text("".join(cells), "utf-8")
    browser.open(page)
    for n, name in enumerate(("perceptron", "stencil")):
        found = shown(browser, f"Object.values(window.distspmdDrawn || {{}})[{n}]")
        assert Counter(kind for kind, *_ in found) == types(lowerings[name].sdfg)
    page.write_text(cells[1], "utf-8")  # the first cell was emptied
    browser.open(page)
    browser.wait_for("document.body && document.body.innerText.includes('run that cell again')")
    assert not browser.exceptions
