"""Matrix factorisation beside LIBMF (its Python wheel), on the same ratings in one run, with two threads each.

Prints ratings per second of training and seconds to a held-out RMSE. Reading and evaluating are left out on both
sides; LIBMF's seconds are of whole calls of `fit`, from which the call with one iteration is taken where a rate is
computed. MovieLens 1M is used where it lies beside the project, as ../shared/data/ml-1m.
"""
import gzip, json, os, subprocess, sys, tempfile, time
import numpy as np

HEMIOLA = sys.argv[1]
THREADS = 2
ML_1M = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "data", "ml-1m", "ratings_notime.dat.gz")


def load(path):
    """Ratings as three arrays with ids from zero; every tenth line is held out."""
    text = (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read()
    lines = text.replace(b"::", b" ").replace(b",", b" ").split()
    if lines[0].isalpha():
        lines = lines[3:]
    table = np.array(lines, dtype=np.float64).reshape(-1, 3)
    _, users = np.unique(table[:, 0], return_inverse=True)
    _, items = np.unique(table[:, 1], return_inverse=True)
    test = np.arange(len(table)) % 10 == 9
    return users.astype(np.int32), items.astype(np.int32), table[:, 2].astype(np.float32), test


def rmse(data, model):
    users, items, values, test = data
    low, high = values[~test].min(), values[~test].max()
    predicted = np.einsum("ij,ij->i", model.p_factors()[users[test]], model.q_factors()[items[test]])
    return float(np.sqrt(np.mean((np.clip(np.nan_to_num(predicted), low, high) - values[test]) ** 2)))


def libmf(data, rank, target):
    """Ratings per second, and seconds of the first call whose model reaches the target."""
    out, sys.stdout = sys.stdout, open(os.devnull, "w")
    import libmf.mf as library
    sys.stdout = out
    users, items, values, test = data
    train = np.column_stack([users, items, values]).astype(np.float32)[~test]
    train = train[np.random.default_rng(7).permutation(len(train))]

    def fit(iterations, rate):
        model = library.MF(k=rank, nr_threads=THREADS, nr_bins=20, nr_iters=iterations, lambda_p2=0.05, lambda_q2=0.05,
                           lambda_p1=0.0, lambda_q1=0.0, eta=rate, quiet=True)
        began = time.perf_counter()
        model.fit(train)
        return model, time.perf_counter() - began

    one, many = (min(fit(iterations, 0.1)[1] for _ in range(2)) for iterations in (1, 11))
    reached = None
    for rate in (0.05, 0.1) if target else ():
        for iterations in (6, 8, 10, 12, 16, 20, 30):
            model, seconds = fit(iterations, rate)
            if rmse(data, model) <= target:
                reached = min(reached or seconds, seconds)
                break
    return len(train) * 10 / (many - one), reached


def hemiola(path, data, rank, target):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.jsonl")
        subprocess.run([HEMIOLA, "train", "mf", path, "--holdout-every", "10", "--workers", str(THREADS), "--rank", str(rank),
                        "--epochs", "20", "--quiet", "--report", report, "--out", os.path.join(folder, "m.model")], check=True)
        epochs = [line for line in map(json.loads, open(report)) if line["event"] == "evaluation"]
    ratings = int((~data[3]).sum())
    reached = next((e["seconds"] for e in epochs if target and e["test_rmse"] <= target), None)
    return ratings * len(epochs) / epochs[-1]["seconds"], reached


def main():
    with tempfile.TemporaryDirectory() as folder:
        made = os.path.join(folder, "ratings.csv")
        subprocess.run([HEMIOLA, "generate", "ratings", "--users", "60000", "--items", "8000", "--ratings", "6000000",
                        "--rank", "16", "--noise", "0.75", "--out", made], check=True, stdout=subprocess.DEVNULL)
        sets = [("generated 6M", made, None)]
        if os.path.exists(ML_1M):
            sets.insert(0, ("ml-1m", ML_1M, 0.845))
        print(f"{'set':14} {'rank':>4}  {'LIBMF':>10}  {'hemiola':>10}  {'ratio':>5}   seconds to RMSE: target, LIBMF, hemiola")
        for name, path, target in sets:
            data = load(path)
            for rank in (32, 100):
                ours, our_seconds = hemiola(path, data, rank, target)
                theirs, their_seconds = libmf(data, rank, target)
                line = f"{name:14} {rank:4}  {theirs / 1e6:6.1f} M/s  {ours / 1e6:6.1f} M/s  {ours / theirs:5.1f}"
                seconds = [f"{s:.3f}" if s else "not reached" for s in (their_seconds, our_seconds)]
                print(line + (f"   {target}, {seconds[0]}, {seconds[1]}" if target else ""), flush=True)


main()
