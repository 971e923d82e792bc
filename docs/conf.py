"""Configuration of the documentation. Builds without a network: `make docs`."""

import os
import sys
from pathlib import Path

os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
# As many examples run at once as there are cores. With threads of their own, small fits took twenty times as long.
for threads in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import gramian

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE / "_ext"))

project = "gramian"
author = "The gramian developers"
copyright = author
version = release = gramian.__version__

extensions = [
    "mathml",  # ours: formulas without a script from the network
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
]
exclude_patterns = ["_build", "extending/examples", "gallery/**.ipynb", "gallery/**.py"]
templates_path = ["_templates"]
default_role = "py:obj"  # `newton` in a docstring is a link where there is something to link to
nitpicky = False

# --- Markdown ---------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3

# --- reference --------------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False  # a module's public names are its __all__
autosummary_imported_members = True
# Softmax and softmax are one file where the file system does not tell capitals from small letters
autosummary_filename_map = {"gramian.losses.softmax": "gramian.losses.softmax-function"}
autodoc_typehints = "none"  # the docstrings say it
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False

# --- example gallery --------------------------------------------------------------------------

GALLERY = HERE / "gallery"
if any((ROOT / "examples").glob("plot_*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": ["../examples"],
        "gallery_dirs": ["gallery"],
        "filename_pattern": r"plot_",
        "download_all_examples": False,
        "show_memory": False,
        "show_signature": False,
        "remove_config_comments": True,
        "write_computation_times": False,
        "reset_modules": ("matplotlib",),
        "parallel": True,  # as many examples at once as `make docs` has processes
    }
elif not (GALLERY / "index.rst").exists():
    GALLERY.mkdir(exist_ok=True)
    (GALLERY / "index.rst").write_text("Examples\n========\n\nThere are none yet.\n")

# --- HTML -------------------------------------------------------------------------------------

html_theme = "furo"
html_title = "gramian"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_show_sourcelink = False
html_show_copyright = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def include_only_what_is_there(app, docname, source):
    """The benchmark results are made by `make bench`; a checkout may be without them."""
    if docname == "benchmarks" and not (ROOT / "benchmarks" / "RESULTS.md").exists():
        source[0] = "# Benchmarks\n\n`make bench` writes the results to `benchmarks/RESULTS.md`.\n"


def open_only_the_branch_of_the_page(app, pagename, templatename, context, doctree):
    """Keep the sidebar short: other branches of the tree open when their page is visited.

    A sidebar with every name of the reference, on each of three hundred pages, took half of the time of a build.
    """
    if toctree := context.get("toctree"):
        context["toctree"] = lambda **options: toctree(**{**options, "collapse": True})


def setup(app):
    app.connect("source-read", include_only_what_is_there)
    # furo asks for the tree at the priority of 500
    app.connect("html-page-context", open_only_the_branch_of_the_page, priority=400)
