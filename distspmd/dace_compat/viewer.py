"""Pages and notebook cells in which DaCe's viewer draws an SDFG; they load nothing.

The viewer is in the package of DaCe, as one script. A page has it compressed; in a notebook the
first cell that shows an SDFG has it, for those that follow.
"""

from __future__ import annotations

import base64
import gzip
import html
import itertools
import json
import os
import re
from functools import cache
from pathlib import Path
from typing import Any

import dace
from dace import SDFG
from dace.cli import sdfv
from dace.jupyter import isnotebook

from distspmd.dace_compat.drawn import COMMUNICATION, drawn
from distspmd.lowering import ATTRIBUTE, Lowering

_COLOUR = "#ffd8a8"
"""Of nodes that communicate."""

_ICONS = {
    "menu": "☰",
    "settings": "⚙",
    "saved_search": "◩",
    "fit_screen": "⊡",
    "fit_width": "↔",
    "unfold_less": "⊟",
    "unfold_more": "⊞",
    "pan_tool": "☞",
    "open_with": "✥",
    "select": "⬚",
    "content_cut": "✂",
    "memory": "▦",
    "close": "✕",
}
"""Signs for the icons of the viewer, whose font is not in the package."""

_SETTINGS = {"textLOD": "3", "scopeLOD": "5", "showMapSchedules": "false"}
"""Up to which zoom the viewer draws text, and that of maps as that of other nodes."""

_NO_VIEWER = "The viewer was in another cell, the first that showed an SDFG: run that cell again."

_SCRIPT = Path(__file__).with_name("viewer.js").read_text()
_numbers = itertools.count()


def picture(sdfg: SDFG) -> str:
    """HTML in which the viewer draws an SDFG, with the script of the viewer where it is needed."""
    text = _in_script(json.dumps(drawn(sdfg), separators=(",", ":")))
    name = f"distspmd-{next(_numbers)}-{sdfg.guid[:8]}"
    legend = (
        f'<p style="font: 13px sans-serif">{html.escape(_headline(sdfg))} '
        f'<span style="background: {_COLOUR}; border: 1px solid; padding: 0 4px">like this</span>: '
        "from -> to (calls, bytes received). Other nodes: what is computed, and the grid of ranks "
        "that it is split over.</p>"
        if isinstance(getattr(sdfg, ATTRIBUTE, None), Lowering)
        else ""
    )
    return (
        f'{_viewer()}{legend}<div class="sdfv"><div id="{name}" class="distspmd-picture" '
        'style="position: relative; height: 600px; border: 1px solid #ccc; '
        'overflow: hidden; background: white"></div>'
        f"</div><script>if (window.distspmdDraw) distspmdDraw({json.dumps(name)}, {text}); "
        f"else document.getElementById({json.dumps(name)}).textContent = {json.dumps(_NO_VIEWER)}"
        "</script>"
    )


def page(title: str, content: str) -> str:
    """A page with HTML as notebooks show it."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>body {{ margin: 12px; font: 14px sans-serif }} "
        "td, th { text-align: left; padding: 2px 10px 2px 0 } "
        ".distspmd-picture { height: 80vh !important }</style></head>"
        f"<body>{content}</body></html>\n"
    )


def _headline(sdfg: SDFG) -> str:
    record: Lowering = getattr(sdfg, ATTRIBUTE)
    ranks = "1 rank" if record.ranks == 1 else f"{record.ranks} ranks"
    return f"{sdfg.name}, the program of each of {ranks}. Communication looks"


def _in_script(text: str) -> str:
    """A text of JSON that ends no script around it."""
    return text.replace("</", "<\\/").replace("<!--", "<\\!--")


@cache
def _in_this_notebook() -> list[bool]:
    return []


def _viewer() -> str:
    """The scripts; nothing where an earlier cell of a notebook has them."""
    if isnotebook():
        if _in_this_notebook():
            return ""
        _in_this_notebook().append(True)
    return _scripts()


@cache
def _scripts() -> str:
    folder = Path(dace.__file__).parent / "viewer" / "webclient" / "dist"
    code = (folder / "sdfv_jupyter.js").read_text()
    code = re.sub(r'\w+\.p\+"\w+\.(?:woff2|ttf)"', '"data:,"', code)
    code = re.sub(r'<i class="material-symbols-outlined">(\w+)</i>', _sign, code)
    for name, value in _SETTINGS.items():
        code = re.sub(rf'("{name}":{{[^}}]*"default":)[\w.]+', rf"\g<1>{value}", code)
    packed = base64.b64encode(gzip.compress(code.encode(), mtime=0)).decode()
    own = _SCRIPT.replace("COMMUNICATION", json.dumps(COMMUNICATION))
    return (
        f'<script>{own.replace("COLOUR", json.dumps(_COLOUR))}\ndistspmdUnpack("{packed}")</script>'
    )


def _sign(icon: re.Match[str]) -> str:
    return f'<i style="font-style: normal">{_ICONS.get(icon[1], icon[1])}</i>'


def _repr_html(sdfg: SDFG) -> str:
    """The picture, in place of DaCe's."""
    return picture(sdfg)


_view = sdfv.view


def _view_drawn(sdfg: Any, filename: Any = None, *arguments: Any, **keywords: Any) -> None:
    """DaCe's page with labels in words; what is given as text is drawn as it is.

    In VS Code, DaCe saves the SDFG, and an extension draws the file.
    """
    in_editor = filename is None and any(name.startswith("VSCODE_") for name in os.environ)
    shown: Any = sdfg
    if isinstance(sdfg, SDFG) and not in_editor:
        shown = json.dumps(drawn(sdfg))
    _view(shown, filename, *arguments, **keywords)


SDFG._repr_html_ = _repr_html  # type: ignore[method-assign]
sdfv.view = _view_drawn
