"""scikit-learn's checks of estimators, without expected failures."""

from functools import partial

import pytest
from sklearn.base import clone
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import coremix

ESTIMATORS = [
    coremix.KMeans(),
    coremix.KMeans(algorithm="lloyd"),
    coremix.KMeans(algorithm="k-means-c-prime"),
    coremix.KMeans(algorithm="lazy-k-means"),
    coremix.KMeans(algorithm="lwcs-k-means"),
    coremix.GaussianMixture(),
    coremix.GaussianMixture(3, covariance_type="spherical"),
    coremix.GaussianMixture(3, covariance_type="tied-spherical"),
    coremix.BayesianGaussianMixture(),
    coremix.VcGmm(),
    coremix.VcGmm(coreset_size="all"),
    coremix.DGmm(),
    coremix.SparsifiedGmm(),
    coremix.GaussianMixture(8, c_prime=3, covariance_type="tied-spherical", init_params="k-means++"),
    coremix.BayesianGaussianMixture(init_params="k-means++", merges=False),
    coremix.TableMixture(3),
]

# scikit-learn asks these of heirs of its ClusterMixin alone.
OF_CLUSTERS = [
    estimator_checks.check_clusterer_compute_labels_predict,
    estimator_checks.check_clustering,
    partial(estimator_checks.check_clustering, readonly_memmap=True),
    estimator_checks.check_estimators_partial_fit_n_features,
]

pytestmark = pytest.mark.filterwarnings("ignore:Estimator .* does not inherit from:UserWarning")


@pytest.mark.parametrize("check", OF_CLUSTERS)
@pytest.mark.parametrize("estimator", [own for own in ESTIMATORS if hasattr(own, "transform")], ids=repr)
def test_check_of_clusterers(estimator, check):
    check(type(estimator).__name__, clone(estimator))


@parametrize_with_checks(ESTIMATORS)
def test_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_no_check_is_skipped_or_excused(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    names = [result["check_name"] for result in results]
    print(f"{estimator}: {len(names)} checks")
    assert "check_sample_weight_equivalence_on_dense_data" in names
    failed = [result["check_name"] for result in results if result["status"] == "failed"]
    skipped = [result["check_name"] for result in results if result["status"] == "skipped"]
    excused = [result["check_name"] for result in results if result["expected_to_fail"]]
    assert (failed, skipped, excused) == ([], [], [])
    assert {result["status"] for result in results} == {"passed"}
