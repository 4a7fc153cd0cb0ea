"""Calls that people get wrong, each with the answer: the kind of the error, and the words that help."""

import numpy as np
import pandas as pd
import pyarrow
import pytest
import scipy.sparse as sp
from conftest import blobs
from sklearn.exceptions import NotFittedError

import coremix
from coremix import BayesianGaussianMixture, GaussianMixture, KMeans, SparsifiedGmm, TableMixture, VcGmm

X = blobs(200, 4, 2)
HOLE = np.where((np.arange(200)[:, None] == 3) & (np.arange(4) == 1), np.nan, X)
FRAME = pd.DataFrame(X, columns=list("abcd"))
SHOP = pd.DataFrame({"paid": X[:, 0], "plan": ["basic", "pro"] * 100})
SPARSE = sp.csr_matrix(X)
ONES = np.ones(200)


def kmeans():
    return KMeans(2, random_state=0).fit(X)


def mixture(rows=X, **settings):
    return GaussianMixture(2, random_state=0, **settings).fit(rows)


def saved(folder):
    mixture().save(folder / "mixture.cmx")
    return folder / "mixture.cmx"


def written(folder, name, text):
    (folder / name).write_text(text)
    return folder / name


# Name, call (of a folder), kind of the error, words of the error.
WRONG = [
    ("a name of scikit-learn", lambda _: KMeans(n_components=3), TypeError, ["n_clusters is its name"]),
    ("a name of other libraries", lambda _: GaussianMixture(k=3), TypeError, ["n_components is its name"]),
    ("a letter too few", lambda _: GaussianMixture(covariance_typ="full"), TypeError, ["covariance_type meant"]),
    ("a parameter by its place", lambda _: KMeans(3, "lloyd"), TypeError, ["one positional argument, n_clusters", "'lloyd'"]),
    ("set_params", lambda _: KMeans(3).set_params(n_cluster=2), ValueError, ["'n_cluster'", "'n_clusters'"]),
    ("a class of scikit-learn", lambda _: coremix.MiniBatchKMeans, ImportError, ["MiniBatchKMeans", "partial_fit"]),
    ("a class misspelled", lambda _: coremix.GaussianMixtures, AttributeError, ["is GaussianMixture meant"]),
    ("one column", lambda _: KMeans(2).fit(X[:, 0]), ValueError, ["1D array", "reshape(-1, 1)"]),
    ("three dimensions", lambda _: KMeans(2).fit(X[None]), ValueError, ["dim 3", "dim <= 2"]),
    ("no rows", lambda _: KMeans(2).fit(X[:0]), ValueError, ["0 sample(s)", "minimum of 1"]),
    ("NaN", lambda _: KMeans(2).fit(HOLE), ValueError, ["row 3, column 1", "allow_missing=True"]),
    ("NaN in a frame", lambda _: KMeans(2).fit(pd.DataFrame(HOLE, columns=list("abcd"))), ValueError, ['row 3, column "b"', "allow_missing=True"]),
    ("NaN in a question", lambda _: mixture().predict(HOLE), ValueError, ["row 3, column 1", "allow_missing=True"]),
    ("NaN with cosine", lambda _: KMeans(2, metric="cosine", allow_missing=True).fit(HOLE), ValueError, ["directions", "NaN is one"]),
    ("NaN in a sketch", lambda _: SparsifiedGmm(2, allow_missing=True).fit(HOLE), ValueError, ["sketches", "NaN is one"]),
    ("text", lambda _: KMeans(2).fit(SHOP), ValueError, ['"plan"', "leave it out", "categories of TableMixture"]),
    ("text in an array", lambda _: KMeans(2).fit(np.array([[1, "x"], [2, 3]], dtype=object)), ValueError, ["row 0, column 1 is 'x'", "no number"]),
    ("lists of different lengths", lambda _: KMeans(2).fit([[1, 2], [3]]), ValueError, ["row 1 has 1 values"]),
    ("a dict", lambda _: KMeans(2).fit({"a": [1, 2]}), TypeError, ["pandas.DataFrame(X)"]),
    ("a path", lambda _: KMeans(2).fit("points.csv"), TypeError, ["points.csv", "coremix.scan(X)"]),
    ("a generator", lambda _: KMeans(2).fit(rows for rows in [X]), TypeError, ["only once", "a function"]),
    ("complex numbers", lambda _: KMeans(2).fit(X + 1j), ValueError, ["Complex data not supported"]),
    ("complex numbers in a list", lambda _: KMeans(2).fit(list(X + 1j)), ValueError, ["Complex data not supported"]),
    ("complex weights in a list", lambda _: KMeans(2).fit(X, sample_weight=list(ONES + 1j)), ValueError, ["Complex data not supported"]),
    ("centres of columns in another order", lambda _: KMeans(2, init=FRAME[:2].iloc[:, ::-1]).fit(FRAME), ValueError, ["init has the columns ['d', ", "must have ['a', "]),
    ("means of other columns", lambda _: GaussianMixture(2, means_init=pyarrow.table({n: [0.0, 1.0] for n in "abce"})).fit(FRAME), ValueError, ["'e'], and must"]),
    ("a prior in another order", lambda _: BayesianGaussianMixture(2, mean_prior=FRAME.mean()[::-1]).fit(FRAME), ValueError, ["mean_prior has the columns ['d', "]),
    ("values in another order", lambda _: GaussianMixture(2).fit(FRAME).condition(["a", "b"], FRAME.iloc[0][["b", "a"]]), ValueError, ["values has the columns ['b', 'a']"]),
    ("more clusters than rows", lambda _: KMeans(300).fit(X), ValueError, ["n_samples=200", "n_clusters=300"]),
    ("no clusters", lambda _: KMeans(0).fit(X), ValueError, ["n_clusters = 0", "at least 1"]),
    ("half a component", lambda _: GaussianMixture(2.5).fit(X), TypeError, ["n_components = 2.5", "an integer"]),
    ("a negative weight", lambda _: KMeans(2).fit(X, sample_weight=np.r_[-1, ONES[1:]]), ValueError, ["weight of row 0 is -1", "not negative"]),
    ("weights of another length", lambda _: KMeans(2).fit(X, sample_weight=ONES[:7]), ValueError, ["(7,), expected (200,)"]),
    ("weights as a column", lambda _: mixture().score(X, sample_weight=ONES[:, None]), ValueError, ["(200, 1), expected (200,)"]),
    ("weights by name", lambda _: KMeans(2).fit(X, sample_weight="w"), TypeError, ["one for each row", "coremix.scan(X, weights='w')"]),
    ("weights of 0", lambda _: KMeans(2).fit(X, sample_weight=0 * ONES), ValueError, ["every weight is zero"]),
    ("a covariance of Rust", lambda _: mixture(covariance_type="diagonal"), ValueError, ['covariance_type = "diagonal"', "'diag'"]),
    ("factors without a number", lambda _: mixture(covariance_type="factors"), ValueError, ["n_factors = None", "fewer than columns"]),
    ("more factors than columns", lambda _: mixture(covariance_type="factors", n_factors=9), ValueError, ["n_factors = 9", "fewer than columns"]),
    ("factors of others", lambda _: mixture(n_factors=2), ValueError, ["n_factors = 2", "covariance_type='factors'"]),
    ("an algorithm of scikit-learn", lambda _: KMeans(2, algorithm="elkan").fit(X), ValueError, ["algorithm = 'elkan'", "'lloyd'"]),
    ("a metric", lambda _: KMeans(2, metric="manhattan").fit(X), ValueError, ['metric = "manhattan"', "'cosine'"]),
    ("random seeds", lambda _: KMeans(2, init="random").fit(X), ValueError, ["init = 'random'", "'k-means++'", "rows of X"]),
    ("too many seeds", lambda _: KMeans(2, init=X[:3]).fit(X), ValueError, ["init has the shape (3, 4), expected (2, 4)"]),
    ("a negative seed", lambda _: KMeans(2, random_state=-1).fit(X), ValueError, ["random_state = -1"]),
    ("an amount of memory", lambda _: KMeans(2, memory="1XB").fit(X), ValueError, ['memory = "1XB"', "4GiB"]),
    ("a negative prior", lambda _: mixture(prior_rows=-1), ValueError, ["prior_rows = -1", "0 and 1e9"]),
    ("not fitted", lambda _: KMeans(2).predict(X), NotFittedError, ["KMeans", "'fit'"]),
    ("an attribute before the fit", lambda _: KMeans(2).cluster_centers_, AttributeError, ["cluster_centers_", "call fit(X) first"]),
    ("an attribute of others", lambda _: mixture().labels_, AttributeError, ["predict(X) has labels"]),
    ("densities of k-means", lambda _: kmeans().score_samples(X), AttributeError, ["GaussianMixture has"]),
    ("a criterion of the process", lambda _: BayesianGaussianMixture(2).fit(X).bic(X), ValueError, ["score() of rows held out"]),
    ("fewer columns", lambda _: kmeans().predict(X[:, :3]), ValueError, ["3 features", "expecting 4"]),
    ("other columns", lambda _: mixture(FRAME).predict(FRAME.rename(columns={"a": "z"})), ValueError, ["unseen at fit time:\n- z", "missing:\n- a"]),
    ("another order", lambda _: mixture(FRAME).predict(FRAME[list("dcba")]), ValueError, ["same order"]),
    ("a column that there is not", lambda _: mixture(FRAME).marginal(["q"]), ValueError, ["no column 'q'", "'a', 'b', 'c', 'd'"]),
    ("sparse rows", lambda _: mixture(SPARSE, covariance_type="full"), TypeError, ["X is sparse", "'diag'", "X.toarray()"]),
    ("shares of sparse rows", lambda _: mixture().predict_proba(SPARSE), TypeError, ["predict_top(X, m)"]),
    ("a file of another class", lambda folder: KMeans.load(saved(folder)), ValueError, ["GaussianMixture.load"]),
    ("a file of others", lambda folder: KMeans.load(written(folder, "a.cmx", "x" * 99)), ValueError, ["a.cmx", "not a file of coremix"]),
    ("no file", lambda folder: KMeans.load(folder / "none.cmx"), FileNotFoundError, ["none.cmx"]),
    ("no such column of a file", lambda folder: coremix.scan(written(folder, "p.csv", "a,b\n1,2\n"), columns=["z"]), ValueError, ['no column "z"', "it has a, b"]),
    ("numbers as counts", lambda _: TableMixture(2, counts=[0]).fit(X), ValueError, ["column 0", "must be a count"]),
    ("one category", lambda _: TableMixture(2, categories="plan").fit(SHOP), TypeError, ["categories = 'plan'", "a list of columns"]),
    ("a category that there is not", lambda _: TableMixture(2, categories=["tier"]).fit(SHOP), ValueError, ["no column 'tier'", "'plan'"]),
    ("both kinds", lambda _: TableMixture(2, counts=[0], categories=[0]).fit(X), ValueError, ["both in counts and in categories"]),
    ("no batch yet", lambda _: KMeans(2).finish(), ValueError, ["call partial_fit first"]),
    ("a narrower batch", lambda _: KMeans(2).partial_fit(X).partial_fit(X[:, :2]), ValueError, ["2 features", "expecting 4"]),
    ("a setting of another algorithm", lambda _: KMeans(2, greedy=True).fit(X), ValueError, ["greedy = True", "'lloyd'"]),
    ("a sweep in another order", lambda _: coremix.sweep(KMeans(2), X, [2, 3]), TypeError, ["estimator = [2, 3]", "sweep(X, range(2, 9), GaussianMixture())"]),
    ("no threads", lambda _: KMeans(2, n_jobs=0).fit(X), ValueError, ["n_jobs = 0", "-1"]),
    ("labels as something else", lambda folder: kmeans().assign(X, folder / "labels.txt"), ValueError, ["labels.txt", ".csv, .csv.gz, .parquet"]),
    ("both of a pair", lambda _: VcGmm(2, n_clusters=2), TypeError, ["n_components is its name"]),
]


@pytest.mark.parametrize("about, call, kind, words", WRONG, ids=[about for about, *_ in WRONG])
def test_wrong_calls_have_an_answer(about, call, kind, words, tmp_path):
    with pytest.raises(kind) as caught:
        call(tmp_path)
    said = str(caught.value)
    assert type(caught.value) is kind or kind is NotFittedError
    assert all(word in said for word in words), said


def test_there_are_forty():
    assert len(WRONG) >= 40
