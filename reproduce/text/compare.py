"""The table of `reproduce/text/run`: seconds, error and peak memory of each library."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context

sys.path.append("reproduce/peers")
import environment  # noqa: E402

environment.prepare(os.cpu_count())

import numpy as np  # noqa: E402
import threadpoolctl  # noqa: E402
from sklearn.cluster import KMeans  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402
from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: E402
from sklearn.preprocessing import normalize  # noqa: E402

environment.check_kernels(threadpoolctl.threadpool_info())

COLUMNS = 50_000


def rows():
    """TF-IDF of the short descriptions, with words and pairs of words: the columns that most documents have."""
    dump = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, errors="replace").stdout
    lines = (line for line in dump.splitlines() if line.startswith("Description"))
    texts = sorted({line.split(": ", 1)[1] for line in lines if "md5" not in line and ": " in line})
    texts = [text for text in texts if len(text.split()) >= 3]
    if len(texts) < 20_000:
        sys.exit(f"{len(texts)} descriptions: apt-get update first")
    found = TfidfVectorizer(ngram_range=(1, 2), max_features=COLUMNS, dtype=np.float32).fit_transform(texts)
    found.sort_indices()
    return found[np.diff(found.indptr) > 0]


def error(x, labels, k):
    """The mean of 1 - cos to the direction of the sum of each cluster's rows."""
    from scipy.sparse import csr_array

    members = csr_array((np.ones(len(labels), np.float32), (labels, np.arange(len(labels)))), shape=(k, len(labels)))
    means = normalize((members @ x).astype(np.float64))
    return 1 - float(means[labels].multiply(x).sum()) / len(labels)


def with_scikit_learn(x, k):
    return KMeans(k, n_init=1, random_state=0).fit(x).labels_


def with_faiss(x, k):
    import faiss

    dense = normalize(TruncatedSVD(100, random_state=0).fit_transform(x)).astype(np.float32)
    kmeans = faiss.Kmeans(100, k, niter=25, seed=0, spherical=True, max_points_per_centroid=10**9)
    kmeans.train(dense)
    return kmeans.index.search(dense, 1)[1][:, 0]


def timed(work, x, k, to):
    """Seconds, labels and peak memory of a process of its own, less what it began with."""
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    labels = work(x, k)
    seconds, peak = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    to.put((seconds, np.asarray(labels, np.int64), (peak - before) / 1024))


def main():
    x = rows()
    print(f"{x.shape[0]:,} rows, {x.shape[1]:,} columns, {x.nnz:,} values\n")
    print("| k | library | seconds | mean of 1 - cos | further memory, MiB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/starts.npy", x.indptr.astype(np.uint64))
        np.save(f"{folder}/columns.npy", x.indices.astype(np.uint32))
        np.save(f"{folder}/values.npy", x.data)
        for k in map(int, sys.argv[1:] or ["100", "1000"]):
            command = ["target/release/text", folder, str(x.shape[1]), str(k)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            labels = np.load(f"{folder}/labels.npy").astype(np.int64)
            print(f"| {k} | coremix | {float(said[0]):.2f} | {error(x, labels, k):.4f} | {float(said[1]):.0f} |", flush=True)
            for name, work in [("scikit-learn, CSR", with_scikit_learn), ("faiss, 100 columns", with_faiss)]:
                context = get_context("fork")
                to = context.Queue()
                process = context.Process(target=timed, args=(work, x, k, to))
                process.start()
                seconds, labels, memory = to.get()
                process.join()
                print(f"| {k} | {name} | {seconds:.2f} | {error(x, labels, k):.4f} | {memory:.0f} |", flush=True)


main()
