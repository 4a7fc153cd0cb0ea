"""The Python of the READMEs and of the guide runs, page by page, and so do the examples of docstrings."""

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import coremix

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "python" / "README.md", *sorted((ROOT / "docs/guide/src").glob("*.md"))]
MODULES = [module.name for module in pkgutil.iter_modules(coremix.__path__, "coremix.")]


class Frame:
    """A data frame of Spark, as far as a page needs one."""

    def __init__(self, table):
        self.batches = table.to_batches(max_chunksize=1_000)

    def mapInArrow(self, function, schema):
        return pa.Table.from_batches(function(self.batches))


@pytest.fixture
def points(tmp_path, monkeypatch):
    """A folder with points.npy: 10,000 rows around 25 means."""
    rng = np.random.default_rng(0)
    means = np.stack(np.meshgrid(range(5), range(5)), axis=-1).reshape(25, 2)
    X = 10.0 * means[rng.integers(25, size=10_000)] + rng.normal(size=(10_000, 2))
    table = pa.table({"x": X[:, 0], "y": X[:, 1]})
    np.save(tmp_path / "points.npy", X)
    monkeypatch.chdir(tmp_path)
    return X, table


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(page, tmp_path, monkeypatch):
    """In an empty folder: a page makes the files that it reads."""
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.finditer(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        line = page.read_text()[: block.start()].count("\n") + 1
        if "mapInArrow" in block[1]:
            X = np.random.default_rng(0).normal(size=(10_000, 2))
            table = pa.table({"x": X[:, 0], "y": X[:, 1]})
            scope |= {"frame": Frame(table), "model": coremix.KMeans(25, random_state=0).fit(X)}
        exec(compile("\n" * line + block[1], str(page), "exec"), scope)


@pytest.mark.skipif("COREMIX_COMMAND" not in os.environ, reason="needs the command")
def test_commands_of_the_guide_run(tmp_path):
    """In one empty folder, in the order of the summary: what builds is left out."""
    summary = (ROOT / "docs/guide/src/SUMMARY.md").read_text()
    pages = [ROOT / "docs/guide/src" / name for name in re.findall(r"\(([\w-]+\.md)\)", summary)]
    pages.sort(key=lambda page: page.stem != "bigger-than-memory")  # it makes the file of the others
    lines = ['coremix() { "$COREMIX_COMMAND" --quiet "$@"; }', f'python3() {{ "{sys.executable}" "$@"; }}']
    for page in pages:
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            lines += [line for line in block.splitlines() if re.match("(awk|cp|coremix|python3) ", line)]
    assert sum(line.startswith("coremix ") for line in lines) >= 12
    script = "set -eu -o pipefail\n" + "\n".join(lines)
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_all_code_of_the_tables_of_tasks_runs(points):
    """The columns coremix and scikit-learn; a cell without code says that there is nothing."""
    page = (ROOT / "docs/guide/src/coming-from.md").read_text()
    X, table = points
    imports = {
        0: "from coremix import *",
        1: "from sklearn.cluster import *; from sklearn.mixture import *; import joblib",
    }
    rows = re.findall(r"^\| \d+\. .*", page, re.MULTILINE)
    assert len(rows) == 10
    for column, imported in imports.items():
        scope = {"np": np, "X": X, "table": table, "w": np.ones(len(X)), "C": X[:25], "k": 25}
        exec(imported, scope)
        for row in rows:
            for code in re.findall(r"`([^`]+)`", row.split(" | ")[column + 1]):
                exec(code, scope)


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings(module):
    if module.endswith("._coremix"):
        pytest.skip("native")
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.parametrize("name", [name for name in coremix.__all__ if hasattr(getattr(coremix, name), "fit")])
def test_docstrings_name_every_parameter(name):
    estimator = getattr(coremix, name)
    assert "Examples\n" in estimator.__doc__ and "See Also\n" in estimator.__doc__
    listed = estimator.__doc__.partition("Attributes\n")[0]
    missing = [p for p in estimator().get_params() if not re.search(rf"\b{p}\b", listed)]
    assert missing == []


def public():
    """Everything public by its name: functions, classes, and their methods and properties, but those of scikit-learn."""
    found = {}
    for module in [coremix, coremix.partitions, coremix.plots]:
        for name in module.__all__:
            thing = getattr(module, name)
            if isinstance(thing, str):
                continue
            found[f"{module.__name__}.{name}"] = thing
            for member in dir(thing) if inspect.isclass(thing) else []:
                owner = next(of for of in thing.__mro__ if member in vars(of))
                own = owner.__module__.partition(".")[0] == "coremix" and not type(vars(owner)[member]).__module__.startswith("sklearn")
                # The parameters of an estimator are in its own docstring.
                own = own and member not in getattr(thing, "__dataclass_fields__", {})
                if own and not member.startswith("_"):
                    found[f"{module.__name__}.{name}.{member}"] = getattr(thing, member)
    return found


def test_everything_public_has_a_docstring_with_its_parameters():
    everything = public()
    assert len(everything) > 100
    assert [name for name, thing in everything.items() if not inspect.getdoc(thing)] == []
    missing = {}
    for name, thing in everything.items():
        if callable(thing) and not inspect.isclass(thing):
            own = [p for p in inspect.signature(thing).parameters if p not in ("self", "cls")]
            missing[name] = [p for p in own if not re.search(rf"\b{p}\b", inspect.getdoc(thing))]
    assert {name: own for name, own in missing.items() if own} == {}


@pytest.mark.parametrize("name", [name for name in coremix.__all__ if hasattr(getattr(coremix, name), "fit")])
def test_docstrings_name_every_attribute(name):
    estimator = getattr(coremix, name)
    X = np.random.default_rng(0).normal(size=(300, 3))
    fitted = estimator(2).fit(pa.table(dict(zip("abc", X.T))))
    own = [a for a in {*dir(estimator), *vars(fitted)} if a.endswith("_") and not a.startswith("_")]
    listed = estimator.__doc__.partition("Attributes\n")[2].partition("See Also\n")[0]
    for other in re.findall(r"See :class:`(\w+)`", listed):
        listed += getattr(coremix, other).__doc__.partition("Attributes\n")[2]
    assert [a for a in own if not re.search(rf"\b{a}\b", listed)] == []
