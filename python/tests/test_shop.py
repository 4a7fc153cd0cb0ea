"""The frame of a shop, as people have it: text, true and false, dates, money, holes and a key. It is the same table wherever it lies."""

import datetime
import decimal
import json
import os
import pickle
import subprocess

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

import coremix
from coremix import GaussianMixture, KMeans, TableMixture

N = 300
GROUP = np.arange(N) % 3


def shop():
    rng = np.random.default_rng(0)
    hole = lambda values, share: [None if rng.random() < share else value for value in values]
    plans = np.array(["pro", "free", "crème"], dtype=object)
    days = rng.normal(3000 * (GROUP + 1), 200).astype(int)
    cents = rng.normal(1500 * GROUP, 300)
    columns = {
        "key": [f"c{i}" for i in range(N)],
        "plan": hole([plans[(g + (rng.random() > 0.9)) % 3] for g in GROUP], 0.05),
        "paid": [bool((g == 1) ^ (rng.random() > 0.9)) for g in GROUP],
        "since": hole([datetime.date(1960, 1, 1) + datetime.timedelta(days=int(day)) for day in days], 0.05),
        "price": [decimal.Decimal(f"{p:.2f}") for p in rng.normal(10 + 20 * GROUP, 2)],
        "spent": [f"{'-' if c < 0 else ''}${abs(c):,.2f}" for c in cents],
        "visits": rng.poisson(2 + 6 * GROUP).tolist(),
        "age": hole(rng.normal(25 + 15 * GROUP, 3).round(1).tolist(), 0.05),
    }
    types = {"since": pa.date32(), "price": pa.decimal128(9, 2), "visits": pa.int64(), "age": pa.float64()}
    return pa.table({name: pa.array(values, types.get(name)) for name, values in columns.items()})


def frame(table):
    made = table.to_pandas()
    made["since"] = pd.to_datetime(made["since"])
    return made


def fit(X):
    model = TableMixture(3, categories=["plan"], counts=["visits"], allow_missing=True, random_state=0)
    return model.fit(X)


def files(table, folder):
    pyarrow.parquet.write_table(table, folder / "shop.parquet")
    pyarrow.feather.write_feather(table, folder / "shop.arrow", compression="uncompressed")
    frame(table).to_csv(folder / "shop.csv", index=False)
    return [folder / f"shop.{ending}" for ending in ("parquet", "arrow", "csv")]


def ways(table, folder):
    """The rows in all ways, without the key."""
    own = table.drop_columns(["key"])
    pandas = frame(own)
    yield "pandas", pandas
    yield "pandas with categories and times of nanoseconds", pandas.assign(
        plan=pandas["plan"].astype("category"), since=pandas["since"].astype("datetime64[ns]")
    )
    yield "pandas of Arrow", own.to_pandas(types_mapper=pd.ArrowDtype)
    yield "pyarrow", own
    yield "polars", pl.from_arrow(own)
    yield "polars with categories and times", pl.from_arrow(own).with_columns(
        pl.col("plan").cast(pl.Categorical), pl.col("since").cast(pl.Datetime("ms"))
    )
    yield "a LazyFrame", pl.from_arrow(own).lazy()
    yield "a dataset", coremix.scan(pyarrow.dataset.dataset(own), categories="plan", missing=True)
    for path in files(table, folder):
        yield path.name, coremix.scan(path, key="key", categories=["plan"], missing=True)
    yield "pandas from CSV", pd.read_csv(folder / "shop.csv").drop(columns="key")
    yield "polars from CSV", pl.read_csv(folder / "shop.csv").drop("key")
    yield "pandas from Parquet", pd.read_parquet(folder / "shop.parquet").drop(columns="key")


def test_the_answer_is_one(tmp_path):
    table = shop()
    rows = list(ways(table, tmp_path))
    first = fit(rows[0][1])
    labels = first.predict(rows[0][1])
    found = [np.bincount(labels[GROUP == g], minlength=3).argmax() for g in range(3)]
    assert sorted(found) == [0, 1, 2] and np.mean(np.array(found)[GROUP] == labels) > 0.99
    assert first.categories_[0].tolist() == ["crème", "free", "pro"]
    for name, X in rows:
        model = fit(X)
        assert model._model == first._model, name
        assert model._model.names == first._model.names and model._model.texts == first._model.texts, name
        np.testing.assert_array_equal(model.predict(X), labels, err_msg=name)
        # Each is asked about rows of the others.
        np.testing.assert_array_equal(first.predict(X), labels, err_msg=name)
    # Numbers, truth values, dates and money are for all algorithms.
    kinds = {"pandas": frame(table).drop(columns=["key", "plan"]), "polars": pl.from_arrow(table).drop("key", "plan")}
    scans = {path.name: coremix.scan(path, key="key", missing=True) for path in files(table, tmp_path)}
    models = [GaussianMixture(3, allow_missing=True, random_state=0).fit(X)._model for X in [*kinds.values(), *scans.values()]]
    assert all(model == models[0] for model in models)
    assert scans["shop.csv"].not_used == [("plan", "text")]
    few = [KMeans(3, allow_missing=True, standardise=True, random_state=0).fit(X)._model for X in [*kinds.values(), *scans.values()]]
    assert all(model == few[0] for model in few)


def test_the_command_has_the_same_answer(tmp_path):
    command = os.environ.get("COREMIX_COMMAND")
    if not command:
        pytest.skip("COREMIX_COMMAND names no command")
    table = shop()
    own = fit(frame(table).drop(columns="key"))
    own.save(tmp_path / "python.cmx")
    run = lambda *given: subprocess.run([command, *map(str, given)], check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    kinds = ["--counts", "visits", "--categories", "plan", "--missing", "--key", "key", "-q"]
    texts = []
    for path in files(table, tmp_path):
        model = f"{path.name}.cmx"
        run("fit", path, "-a", "table", "-k", 3, "--tolerance", "1e-3", *kinds, "-m", model)
        texts.append((json.loads(run("info", model, "--json"))["notes"]["texts"], (tmp_path / model).stat().st_size))
        loaded = TableMixture.load(tmp_path / model)
        assert loaded.categories == ["plan"] and loaded._model.texts == own._model.texts
        run("assign", tmp_path / "python.cmx", path, "--missing", "--key", "key", "-l", "labels.csv", "--force")
        labels = pd.read_csv(tmp_path / "labels.csv")
        np.testing.assert_array_equal(labels["label"], own.predict(frame(table).drop(columns="key")))
        np.testing.assert_array_equal(labels["key"], table["key"].to_pylist())
    assert texts == [texts[0]] * 3 and texts[0][0] == {"plan": ["crème", "free", "pro"]}
    assert "plan: crème, free, pro" in run("info", "python.cmx")


def test_names_stay_with_the_model(tmp_path):
    X = frame(shop()).drop(columns="key")
    model = fit(X)
    model.save(tmp_path / "m.cmx")
    for other in (TableMixture.load(tmp_path / "m.cmx"), pickle.loads(pickle.dumps(model))):
        assert other.categories_[0].tolist() == ["crème", "free", "pro"]
        other.allow_missing = True
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    said = [one for one in model.explain(top=7) if one["column"] == "plan"]
    assert {one["mean"] for one in said} == {"crème", "free", "pro"} and all(one["share"] > 0.5 for one in said)
    part = model.marginal(["plan", "visits"])
    assert part.categories_[0].tolist() == ["crème", "free", "pro"]
    own = model.condition(["plan"], ["pro"])
    code = model.condition(["plan"], [2])
    np.testing.assert_array_equal(own.weights_, code.weights_)
    with pytest.raises(ValueError, match="no category 'gold' of the column 'plan'; they are"):
        model.condition(["plan"], ["gold"])
    # A level that no row of the fit had is as unlikely in all components: the others decide.
    rows = X.head(3).assign(plan=["gold", "gold", "gold"])
    np.testing.assert_array_equal(model.predict(rows), model.predict(X.head(3).assign(plan=[None] * 3)))
    assert (model.score_samples(rows) < model.score_samples(X.head(3)) - 10).all()


def test_other_columns_say_what_they_are():
    X = frame(shop()).drop(columns="key").fillna({"age": 30.0, "since": pd.Timestamp("2000-01-01")})
    for rows in (X, pl.from_pandas(X), pa.Table.from_pandas(X)):
        with pytest.raises(ValueError, match='column "plan" does not hold numbers, but text such as "(pro|free|crème)".*TableMixture'):
            KMeans(3).fit(rows)
    with pytest.raises(TypeError, match="KMeans has no categories: TableMixture takes categories"):
        KMeans(3, categories=["plan"])
    with pytest.raises(ValueError, match="no column 'color'"):
        TableMixture(2, categories=["color"]).fit(X.drop(columns="plan"))
    with pytest.raises(ValueError, match="partial_fit: the columns .'plan'. hold text"):
        TableMixture(2, categories=["plan"], allow_missing=True).partial_fit(X)
    scan = coremix.scan([X], categories="plan", missing=True)
    with pytest.raises(ValueError, match="'plan' is a category of the scan, which KMeans does not take: TableMixture"):
        KMeans(3, allow_missing=True).fit(scan)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([True, False, None], [1, 0, np.nan]),
        (["True", "false", ""], [1, 0, np.nan]),
        (["$1,234.50", "NA", "($2)"], [1234.5, np.nan, -2]),
        (["1969-12-31", None, "1970-01-01T18:00-06:00"], [-1, np.nan, 1]),
        ([pd.Timestamp("1969-12-31 12:00"), pd.NaT, pd.Timestamp("1970-01-02")], [-0.5, np.nan, 1]),
        ([pd.Timestamp("1970-01-02 02:00", tz="Europe/Paris"), pd.NaT, None], [1 + 1 / 24, np.nan, np.nan]),
        ([decimal.Decimal("1.25"), None, decimal.Decimal(-2)], [1.25, np.nan, -2]),
        ([True, 2, 3.5], [1, 2, 3.5]),
        ([None, None, None], [np.nan] * 3),
    ],
)
def test_cells_of_frames(cells, expected):
    X = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": cells, "d": pd.to_datetime(["2020-01-01"] * 3)})
    found = GaussianMixture(1, allow_missing=True, reg_covar=1e-3).fit(pd.DataFrame({"x": [1.0, 2], "c": [0.0, 1], "d": [5.0, 6]})).impute
    got = found(X)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(got[known, 1], np.asarray(expected)[known])
    assert not np.isnan(got).any()


def test_hostile_frames():
    for cells in (["$"] * 3, ["$1", "€2", "$3"], ["1,2,3", "4", "5"], ["a", "1e400", "3"], ["yes", "no", "yes"]):
        X = pd.DataFrame({"x": [1.0, 2.0, 3.0], "c": cells})
        with pytest.raises(ValueError, match='"c" does not hold numbers, but text'):
            KMeans(2).fit(X)
        mixture = TableMixture(1, categories=["c"]).fit(X)
        assert sorted(mixture.categories_[1]) == sorted(set(cells))
    with pytest.raises(ValueError, match="values of several kinds.*column c"):
        KMeans(2).fit(pd.DataFrame({"x": [1.0, 2.0], "c": ["a", 2]}))
    with pytest.raises(ValueError, match="are not of numbers"):
        KMeans(2).fit(pd.DataFrame([[1.0, "a"], [2.0, "b"]], columns=["c", "c"]))
    # An empty text is a hole, as in CSV.
    with pytest.raises(ValueError, match='row 0, column "c" is null'):
        TableMixture(1, categories=["c"]).fit(pd.DataFrame({"x": [1.0, 2.0], "c": ["", "a"]}))
    levels = [f"l{i * 7 % 20_000:05}" for i in range(20_000)]
    many = coremix.scan([pd.DataFrame({"c": levels})], categories=["c"])
    assert many.texts["c"] == sorted(levels)


def test_columns_of_arrays():
    rng = np.random.default_rng(0)
    E = (10.0 * (np.arange(60) % 3)[:, None] + rng.normal(size=(60, 4))).astype(np.float32)
    plain = KMeans(3, random_state=0).fit(E)
    for cells in (list(E), E.tolist(), [tuple(row) for row in E.tolist()]):
        X = pd.DataFrame({"embedding": cells})
        np.testing.assert_array_equal(KMeans(3, random_state=0).fit_predict(X), plain.labels_)
        np.testing.assert_array_equal(plain.predict(X), plain.labels_)
    ragged = pd.DataFrame({"embedding": [np.zeros(3), np.zeros(2)]})
    with pytest.raises(ValueError, match="row 1 is a list of 2 numbers, where others have 3"):
        KMeans(1).fit(ragged)
    with pytest.raises(ValueError, match="embedding"):
        KMeans(1).fit(pd.DataFrame({"embedding": list(E), "id": range(60)}))
