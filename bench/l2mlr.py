"""Softmax regression with an L2 penalty beside scikit-learn's lbfgs and lightning's SDCA, in one run.

The objective is the mean loss plus lambda/2 times the squared weights, with lambda one over the number of examples (C = 1)
and the bias as a feature that is 1. Prints the wall and CPU seconds to a duality gap of 1e-3 (ours alone proves one) and
to within 1e-4 of the optimum; of ourselves arranging the examples counts, of the others a whole call, the first of ever
longer ones that gets there. lightning's SDCA has no logistic loss: it minimises smooth hinge losses, one class against the
rest, to its own tolerance of 1e-3; beside its seconds stands the accuracy on the test set. A verdict on each set compares
CPU seconds: those to within 1e-4 with lbfgs, and those to a gap of 1e-3 with lightning.

Arguments behind the program name the sets to run, all of them if there are none; `mnist` alone takes a few minutes. A set
may take LIMIT wall seconds: each call of another program runs in a process of its own, which is ended when its time is up,
and is then told of as not there. With `check` among the arguments lbfgs also goes on to its own optimum, without a limit.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "2"
import gzip, importlib.util, json, resource, subprocess, sys, time, warnings
import numpy as np
import scipy.sparse as sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import normalize

LAB = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "shared", "data")
MADE = os.path.join(HERE, "..", "target", "bench-l2mlr")
WITHIN = 1e-4
LIMIT = 540  # wall seconds of a set, of which the last THIRD is for lightning
THIRD = LIMIT / 3


def digits(part):
    def idx(name, skip):
        return np.frombuffer(gzip.open(os.path.join(DATA, "mnist", name)).read(), np.uint8, offset=skip)
    images = idx(f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784).astype(np.float32) / np.float32(255)
    return images, idx(f"{part}-labels-idx1-ubyte.gz", 8).astype(int)


def mnist():
    return digits("train"), digits("t10k"), os.path.join(DATA, "mnist", "train-images-idx3-ubyte.gz")


def news(prepare):
    def load():
        parts = [load_svmlight_file(os.path.join(DATA, "20news", f"20news.{part}.libsvm.gz"), n_features=61188, zero_based=False)
                 for part in ("train", "test")]
        (train, labels), test = [(prepare(words), classes.astype(int)) for words, classes in parts]
        file = os.path.join(MADE, f"{prepare.__name__}.svm")
        os.makedirs(MADE, exist_ok=True)
        if not os.path.exists(file):
            dump_svmlight_file(train, labels, file, zero_based=True)
        return (train, labels), test, file
    return load


def counts(words):
    return words


def logs(words):
    words.data = np.log1p(words.data)
    return normalize(words)


SETS = {"mnist": mnist, "20news-logs": news(logs), "20news-counts": news(counts)}


class Problem:
    def __init__(self, name):
        (self.examples, self.labels), self.test, self.file = SETS[name]()
        self.examples, self.test = self.with_bias(self.examples), (self.with_bias(self.test[0]), self.test[1])
        self.penalty = 1 / len(self.labels)

    @staticmethod
    def with_bias(examples):
        ones = np.ones((examples.shape[0], 1), examples.dtype)
        return sparse.hstack([examples, ones]).tocsr() if sparse.issparse(examples) else np.hstack([examples, ones])

    def objective(self, weights):
        scores = np.asarray(self.examples @ weights.T.astype(np.float64))
        greatest = scores.max(1)
        right = scores[np.arange(len(scores)), np.searchsorted(np.unique(self.labels), self.labels)]
        losses = greatest + np.log(np.exp(scores - greatest[:, None]).sum(1)) - right
        return float(losses.mean() + 0.5 * self.penalty * (weights.astype(np.float64) ** 2).sum())


def timed(call):
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def within(seconds, *call):
    """What a call of another program gives in a process of its own, or None if that takes longer."""
    try:
        command = [sys.executable, os.path.abspath(__file__), LAB, "call", *map(str, call)]
        out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=max(seconds, 1)).stdout
        return json.loads(out.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return None


def hemiola(problem, gap, workers, deadline):
    """The last line of the run, wall seconds of training, and CPU seconds, which those of reading are taken off."""
    def run(*keys):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        left = max(deadline - time.monotonic(), 1)
        out = subprocess.run([LAB, problem.file, *keys], check=True, capture_output=True, text=True, timeout=left).stdout.splitlines()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return [json.loads(line) for line in out], sum(getattr(after, part) - getattr(before, part) for part in ("ru_utime", "ru_stime"))
    _, reading = run("gap=1e9")
    lines, cpu = run(f"gap={gap}", f"workers={workers}")
    return lines[-1], lines[-2]["seconds"], max(cpu - reading, 0)


def lbfgs(problem, iterations, tolerance=1e-9):
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=tolerance, max_iter=iterations)
    model, wall, cpu = timed(lambda: model.fit(problem.examples, problem.labels))
    return problem.objective(model.coef_), wall, cpu


def lightning_sdca(problem):
    from lightning.classification import SDCAClassifier
    model = SDCAClassifier(alpha=problem.penalty, loss="smooth_hinge", tol=1e-3, max_iter=100, random_state=1)
    examples = problem.examples.astype(np.float64)
    model, wall, cpu = timed(lambda: model.fit(examples, problem.labels))
    right = (model.predict(problem.test[0].astype(np.float64)) == problem.test[1]).mean()
    return wall, cpu, right


def main():
    warnings.filterwarnings("ignore")
    if sys.argv[2:3] == ["call"]:
        problem, program = Problem(sys.argv[3]), sys.argv[4]
        print(json.dumps(lbfgs(problem, int(sys.argv[5])) if program == "lbfgs" else lightning_sdca(problem)))
        return
    asked = [name for name in sys.argv[2:] if name != "check"]
    for name in asked or SETS:
        if not os.path.exists(os.path.join(DATA, name.split("-")[0])):
            print(f"{name}: skipped, the data are not there")
            continue
        try:
            compare(name, Problem(name), time.monotonic() + LIMIT)
        except subprocess.TimeoutExpired:
            print(f"{name}: hemiola took longer than {LIMIT} s\nverdict: no", flush=True)


def compare(name, problem, deadline):
    best = hemiola(problem, 1e-5, 1, deadline)[0]
    optimum = best["objective"]
    print(f"\n{name}: {problem.examples.shape[0]} examples, lambda {problem.penalty:.4g}, optimum {optimum:.6f} "
          f"(gap {best['gap']:.1e})\n{'program':34} {'seconds':>8} {'CPU s':>7} {'objective':>10}", flush=True)
    show = lambda what, wall, cpu, value: print(f"{what:34} {wall:8.2f} {cpu:7.2f} {value:10.6f}", flush=True)
    ours = {}
    for workers in (1, 2):
        for gap in (1e-3, WITHIN):
            last, wall, cpu = hemiola(problem, gap, workers, deadline)
            reached = "" if last["gap"] <= gap and last["objective"] <= optimum + gap else ", not there"
            ours[gap] = min(ours.get(gap, np.inf), cpu if not reached else np.inf)
            show(f"hemiola, {workers} thread{'s'[: workers - 1]}, gap {gap:.0e}{reached}", wall, cpu, last["objective"])
    theirs = {}
    for iterations in (20, 40, 80, 160, 320, 640, 1280):
        left = deadline - THIRD - time.monotonic()
        found = within(left, name, "lbfgs", iterations)
        if found is None:
            print(f"scikit-learn lbfgs, {iterations} steps: not there when its time was up", flush=True)
            break
        objective, wall, cpu = found
        if objective <= optimum + WITHIN:
            theirs["lbfgs"] = (cpu, WITHIN)
            show(f"scikit-learn lbfgs, {iterations} steps", wall, cpu, objective)
            break
    if "check" in sys.argv:
        objective, wall, cpu = lbfgs(problem, 5000)
        show("scikit-learn lbfgs, to its end", wall, cpu, objective)
    if importlib.util.find_spec("lightning") is None:
        print("lightning SDCA: not installed")
    elif found := within(deadline - time.monotonic(), name, "lightning"):
        wall, cpu, right = found
        theirs["lightning"] = (cpu, 1e-3)
        print(f"{'lightning SDCA, smooth hinge':34} {wall:8.2f} {cpu:7.2f}          - (test accuracy {right:.4f})", flush=True)
    else:
        print("lightning SDCA: not there when its time was up", flush=True)
    faster = [f"{other} ({cpu:.1f} s, hemiola {ours[gap]:.1f} s)" for other, (cpu, gap) in theirs.items() if cpu < ours[gap]]
    if not np.isfinite(list(ours.values())).all():
        print("verdict: no, hemiola does not get there")
    elif faster:
        print(f"verdict: no, less CPU time is needed by {' and '.join(faster)}")
    elif theirs:
        print(f"verdict: yes, no less CPU time is needed by {' and '.join(theirs)}")
    else:
        print("verdict: open, no other got there in its time")


main()
