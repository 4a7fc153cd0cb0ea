"""Fitted estimators as ONNX, by way of scikit-learn: the share of rows with the same label.

    pip install skl2onnx onnxruntime
    python python/benchmarks/to_onnx.py
"""

import numpy as np
import onnxruntime
import skl2onnx
import sklearn

from coremix import GaussianMixture, KMeans

ESTIMATORS = (
    KMeans(7, random_state=0),
    GaussianMixture(5, covariance_type="diag", random_state=0),
    GaussianMixture(5, covariance_type="spherical", random_state=0),
)


def labels(converted, x):
    session = onnxruntime.InferenceSession(converted.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})[0].ravel()


def main():
    x = np.random.default_rng(0).normal(size=(2_000, 4)).astype(np.float32)
    print(f"scikit-learn {sklearn.__version__}, skl2onnx {skl2onnx.__version__}, onnxruntime {onnxruntime.__version__}")
    for estimator in ESTIMATORS:
        estimator.fit(x)
        converted = skl2onnx.to_onnx(estimator.to_sklearn(), x[:1])
        same = (labels(converted, x) == estimator.predict(x)).mean()
        print(f"{estimator}: {100 * same:.1f} % of {len(x)} rows have the same label")


if __name__ == "__main__":
    main()
