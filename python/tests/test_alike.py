"""Columns are the same, however they are stored: text and numbers, dates and times."""

import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from sklearn.metrics import silhouette_score

import coremix
from coremix import GaussianMixture, KMeans, TableMixture


def plans():
    """A frame whose first column are whole numbers from 1 on, which say the group."""
    rng = np.random.default_rng(0)
    group = np.arange(300) % 2
    draw = np.where(rng.random(300) < 0.8, 1 + 2 * group, rng.choice([1, 2, 3], 300))
    return pd.DataFrame({"plan": draw, "x": rng.normal(size=300)})


def doors(frame, path):
    """The rows of a frame by every way that keeps the types of its columns."""
    frame.to_parquet(path / "t.parquet")
    yield "pandas", frame
    yield "a category of pandas", frame.astype({"plan": "category"})
    yield "polars", pl.from_pandas(frame)
    yield "arrow", pa.Table.from_pandas(frame)
    yield "batches", [frame.head(7), frame.tail(293)]
    yield "a dataset", pyarrow.dataset.dataset(path / "t.parquet")
    yield "a lazy frame", pl.scan_parquet(path / "t.parquet")
    yield "a scan", coremix.scan(path / "t.parquet", categories="plan")


def test_numbers_are_no_texts(tmp_path):
    """Text has codes by its order: the number 1 is not the text '1', and would be the code of '2'."""
    numbers = plans()
    text = numbers.assign(plan=numbers["plan"].astype(str))
    floats = numbers.assign(plan=numbers["plan"].astype(float))
    of_text = TableMixture(2, categories=["plan"], random_state=0).fit(text)
    of_numbers = TableMixture(2, categories=["plan"], random_state=0).fit(numbers)
    labels = of_text.predict(text)
    for name, rows in doors(text, tmp_path):
        np.testing.assert_array_equal(of_text.predict(rows), labels, err_msg=name)
        with pytest.raises(ValueError, match="column 'plan' holds text such as '1', where the fit had numbers"):
            of_numbers.predict(rows)
    for frame in (numbers, floats):
        for name, rows in doors(frame, tmp_path):
            np.testing.assert_array_equal(of_numbers.predict(rows), of_numbers.predict(numbers), err_msg=name)
            with pytest.raises(ValueError, match='column "plan" holds numbers, where others, or a model, have texts'):
                of_text.predict(rows)
    # Text has no types: it is what the fit had.
    numbers.to_csv(tmp_path / "t.csv", index=False)
    for options in ({}, {"categories": "plan"}):
        rows = coremix.scan(tmp_path / "t.csv", **options)
        np.testing.assert_array_equal(of_text.predict(rows), labels)
        np.testing.assert_array_equal(of_numbers.predict(rows), of_numbers.predict(numbers))
    # Rows without names have codes.
    codes = np.c_[numbers["plan"] - 1, numbers["x"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(of_text.predict(codes), labels)
        for rows in (text.to_numpy(), text.to_numpy().tolist()):
            with pytest.raises(ValueError, match="text such as '.' in rows without names of columns"):
                of_text.predict(rows)
    with pytest.raises(ValueError, match="1 is a code of the column 'plan', which has the text '1', too: give text"):
        of_text.condition(["plan"], [1])
    # A column without any value may be of any type.
    of_text.allow_missing = True
    for none in (np.nan, None):
        assert len(of_text.predict(text.assign(plan=none))) == 300
    assert len(of_text.predict(pl.DataFrame({"plan": [None, None], "x": [0.0, 1.0]}))) == 2
    with pytest.raises(ValueError, match="holds text such as '1', where the fit had numbers"):
        TableMixture(2, categories=["plan"]).partial_fit(numbers).partial_fit(text)


def test_a_date_is_one_category(tmp_path):
    rng = np.random.default_rng(0)
    days = pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"])
    group = np.arange(300) % 2
    frame = pd.DataFrame({"day": days[np.where(rng.random(300) < 0.8, 2 * group, 1)], "x": rng.normal(size=300)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    model = TableMixture(2, categories=["day"], random_state=0).fit(frame)
    assert model.categories_[0].tolist() == ["2024-01-01", "2024-01-02", "2024-01-03"]
    dates = frame.assign(day=frame["day"].dt.date)
    assert isinstance(dates["day"][0], datetime.date)
    for other in (
        dates,
        pl.from_pandas(dates),
        frame.assign(day=frame["day"].dt.tz_localize("UTC")),
        frame.assign(day=frame["day"].dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")),
        frame.astype({"day": "datetime64[s]"}),
        frame.assign(day=frame["day"].astype(str)),
        frame.assign(day=frame["day"].dt.strftime("%Y-%m-%d %H:%M")),
        coremix.scan(tmp_path / "t.csv"),
        coremix.scan(tmp_path / "t.parquet"),
    ):
        assert model.score(other) == pytest.approx(model.score(frame), rel=1e-12)
    times = pd.DataFrame({"t": pd.to_datetime(["2024-01-01T10:00", "2024-01-01T10:00:00.5"] * 9, format="ISO8601"), "x": np.arange(18) % 3})
    assert TableMixture(1, categories=["t"]).fit(times).categories_[0].tolist() == ["2024-01-01T10:00:00", "2024-01-01T10:00:00.5"]
    months = pd.DataFrame({"m": pd.period_range("2024-01", periods=9, freq="M"), "x": np.arange(9.0)})
    for fit in (KMeans(2).fit, TableMixture(2, categories=["m"]).fit, lambda rows: coremix.scan([rows])):
        with pytest.raises(ValueError, match=r"'m' holds periods of pandas: give X\['m'\].dt.to_timestamp\(\)"):
            fit(months)
    with pytest.raises(ValueError, match="X has several columns 'day': rename one"):
        KMeans(2).fit(pd.concat([frame, frame[["day"]]], axis=1))


def test_large_integers_in_text(tmp_path):
    (tmp_path / "t.csv").write_text("x\n1\n9007199254740993\n")
    with pytest.raises(ValueError, match="line 3: 9007199254740993 is an integer beyond 2\\^53"):
        KMeans(2).fit(coremix.scan(tmp_path / "t.csv"))


def test_silhouettes_are_by_the_distances_of_the_fit():
    rng = np.random.default_rng(0)
    group = np.arange(300) % 3
    X = np.c_[np.array([25, 45, 65])[group] + 4 * rng.normal(size=300), 15000 * rng.normal(size=300)]
    for rows in (X, pa.Table.from_pandas(pd.DataFrame(X, columns=["a", "b"]))):
        found = coremix.sweep(rows, [2, 3], KMeans(standardise=True, random_state=0), silhouette=300, held_out=0)
        expected = [silhouette_score(X / X.std(axis=0), one.predict(rows)) for one in found.estimators_]
        np.testing.assert_allclose(found.table_["silhouette"], expected, rtol=1e-6)
    D = (np.abs(rng.normal(size=(300, 3))) + 6 * np.eye(3)[group]) * rng.lognormal(0, 2, (300, 1))
    found = coremix.sweep(D, [2, 3], KMeans(metric="cosine", random_state=0), silhouette=300, held_out=0)
    unit = D / np.linalg.norm(D, axis=1, keepdims=True)
    expected = [silhouette_score(unit, one.predict(D)) for one in found.estimators_]
    np.testing.assert_allclose(found.table_["silhouette"], expected, rtol=1e-6)
    # Rows of weight 0 count as absent.
    rows = np.r_[rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 8, 40 * rng.normal(size=(200, 2))]
    weights = np.repeat([1.0, 0.0], [120, 200])
    found = coremix.sweep(rows, [2, 3], KMeans(random_state=0), sample_weight=weights, silhouette=600, held_out=0)
    expected = [silhouette_score(rows[:120], one.predict(rows[:120])) for one in found.estimators_]
    np.testing.assert_allclose(found.table_["silhouette"], expected, rtol=1e-6)


@pytest.mark.parametrize(("wrong", "shown"), [(-5.0, "-5"), (np.nan, "NaN"), (np.inf, "inf")])
def test_weights_that_are_none(wrong, shown):
    X = np.random.default_rng(0).normal(size=(50, 2))
    weights = np.r_[np.ones(49), wrong]
    mixture = GaussianMixture(2, random_state=0).fit(X)
    asked = [mixture.sizes, mixture.medoids, mixture.bic, lambda X, w: mixture.score(X, sample_weight=w)]
    for ask in [*asked, lambda X, w: mixture.density_threshold(X, 0.1, w)]:
        with pytest.raises(ValueError, match=f"weight of row 49 is {shown}; weights must be finite and not negative"):
            ask(X, weights)


def test_columns_of_a_generator():
    frame = plans().assign(visits=lambda frame: frame["plan"] % 3)
    listed = TableMixture(2, categories=["plan"], counts=["visits"], random_state=0).fit(frame)
    given = TableMixture(2, categories=iter(["plan"]), counts=(c for c in ["visits"]), random_state=0).fit(frame)
    np.testing.assert_array_equal(given.probabilities_[0], listed.probabilities_[0])
    np.testing.assert_array_equal(given.predict(frame), listed.predict(frame))
    assert (given.categories, given.counts) == (["plan"], ["visits"])
