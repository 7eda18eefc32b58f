"""How Sphinx builds these pages: `sphinx-build -W docs build/docs`, in an environment where tilecore is installed."""

from sphinx.search.en import SearchEnglish

import tilecore

project = "tilecore"
author = "The tilecore developers"
copyright = author
version = release = tilecore.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
root_doc = "index"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
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


def link_to_the_report(app, docname, source):
    """The repository shows the file, the site the page that includes it."""
    source[0] = source[0].replace("(../benchmarks/results/report.md)", "(report.md)")


def setup(app):
    app.connect("source-read", link_to_the_report)
    app.connect("autodoc-process-docstring", name_sections, priority=1)  # before numpydoc
