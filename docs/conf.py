"""The documentation's site: pip install . -r docs/requirements.txt && sphinx-build -W docs build/site. Nothing is fetched, neither by
the build nor by a page.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))
from page_parts import fill

import cuptiprof

project = "cuptiprof"
version = release = cuptiprof.__version__
html_title = f"cuptiprof {version}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["requirements.txt"]

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_show_sourcelink = False
copybutton_prompt_text = "$ "

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # the parts of a page that are put in begin with their own level

default_role = "code"
smartquotes = False
napoleon_custom_sections = [("Raises (on start)", "notes_style")]
napoleon_use_rtype = False
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
add_module_names = False


def setup(app: Sphinx) -> None:
    app.connect("source-read", _source_read)


def _source_read(app: Sphinx, page: str, source: list[str]) -> None:
    source[0] = fill(source[0])
