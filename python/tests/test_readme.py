"""The snippets of the README run."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.mark.parametrize("snippet", [s for s in SNIPPETS if "import numpy" in s])
def test_snippets_run(snippet, capsys):
    exec(compile(snippet, str(README), "exec"), {})


def test_the_snippet_for_spark_maps_batches():
    import numpy as np
    import pyarrow as pa

    import coremix

    x = np.random.default_rng(0).normal(size=(100, 2))
    model = coremix.KMeans(3, random_state=0).fit(x)
    (snippet,) = [s for s in SNIPPETS if "mapInArrow" in s]
    scope = {"assign": coremix.assign, "model": model}
    exec(snippet.partition("frame.")[0], scope)
    batches = pa.table({"a": x[:, 0], "b": x[:, 1]}).to_batches(max_chunksize=30)
    labels = pa.Table.from_batches(scope["label"](batches))["label"]
    np.testing.assert_array_equal(labels, model.labels_)
