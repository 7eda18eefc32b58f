"""How Sphinx builds these pages: `sphinx-build -W docs build/docs`, in an environment where tilecore is installed."""

import re
from pathlib import Path

from sphinx.search.en import SearchEnglish

import tilecore

project = "tilecore"
author = "The tilecore developers"
copyright = author
version = release = tilecore.__version__
setup_py = Path(__file__).parents[1] / "setup.py"
repository = re.search('^REPOSITORY = "(.*)"', setup_py.read_text(encoding="utf-8"), re.MULTILINE)[1]

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
root_doc = "index"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).with_name("search.js"))
html_use_index = html_domain_indices = False  # reference.rst lists every function
toc_object_entries_show_parents = "hide"  # `restore()`, where its class is above it
html_title = f"tilecore {release}"
default_role = "py:obj"  # of `names` in docstrings
myst_heading_anchors = 3

autodoc_typehints = "none"  # the docstrings say the types
autodoc_mock_imports = ["dask", "onnx", "openvino", "torch"]  # the integrations' libraries need not be installed
autosummary_generate = False  # its tables link to reference.rst
numpydoc_show_class_members = False

SearchEnglish.stopwords = SearchEnglish.stopwords - {"out"}  # else a search for `out` finds no page


def name_sections(app, what, name, obj, options, lines):
    """Give a docstring's last line, "Source: ...", and prose after its sections a heading that numpydoc knows."""
    for k in range(len(lines) - 1, -1, -1):
        if lines[k].startswith("Source: "):
            lines[k : k + 1] = ["References", "----------", lines[k].removeprefix("Source: ")]


def link_pages(app, docname, source):
    """To the report: the repository shows the file, the site the page that includes it. And to the repository."""
    source[0] = source[0].replace("(../benchmarks/results/report.md)", "(report.md)")
    if docname == root_doc and repository:
        source[0] = source[0].replace("the repository", f"[the repository]({repository})")


def setup(app):
    app.connect("source-read", link_pages)
    app.connect("autodoc-process-docstring", name_sections, priority=1)  # before numpydoc
