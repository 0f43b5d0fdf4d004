"""L1-regularised logistic regression beside LIBLINEAR, scikit-learn, celer, skglm and Vowpal Wabbit, in one run.

Prints the wall and CPU seconds that each needs to bring the objective, the mean logistic loss plus lambda times the
sum of the absolute weights (no bias), to within 0.1 % of the optimum. Reading and evaluating are left out on all
sides; turning the examples into columns is not. Of ourselves a pass counts when it ends; of the others a whole call,
the first of ever stricter ones that gets there, or none within LIMIT seconds of a call and ALLOWED seconds in all.
Who needs less than BRIEF seconds is timed REPEATS times, and the least counts.
Then LIBLINEAR's optimum beside ours, and how many times as long as we the best of the others takes. The real sets are
looked for beside the project, as ../shared/data; the generated one (200,000 examples of 1,000,000 features) is made
here. Arguments behind the program name the sets to run.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "2"
import gzip, json, multiprocessing, subprocess, sys, time, warnings, zlib
import numpy as np
import scipy.sparse as sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

LAB = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "..", "shared", "data")
MADE = os.path.join(HERE, "..", "target", "bench-l1lr")
LIMIT = 20  # seconds that a call may take before stricter ones are left out
BRIEF, REPEATS = 0.5, 5
ALLOWED = 180  # seconds of all calls of a program, of which one may not come to an end


def generated():
    """Features drawn by a power law, one in thirty of them with a weight, labels drawn by the logistic model."""
    random = np.random.default_rng([1, 303])
    rows, features = 200_000, 1_000_000
    popularity = 1.0 / (np.arange(features) + 6.0) ** 1.1
    bounds = np.cumsum(popularity / popularity.sum())
    names = random.permutation(features)
    lengths = np.maximum(5, random.poisson(50, rows))
    at = np.repeat(np.arange(rows, dtype=np.int64), lengths)
    drawn = np.searchsorted(bounds, random.random(len(at)), side="right").clip(0, features - 1)
    keys = np.unique(at * features + drawn)
    at, ranks = keys // features, keys % features
    weights = np.zeros(features)
    chosen = np.unique(np.concatenate([random.choice(3000, 1500, replace=False), random.choice(features, 30_000, replace=False)]))
    weights[chosen] = random.normal(0, 1, len(chosen))
    weights[:20] *= 0.3
    scores = np.bincount(at, weights=weights[ranks], minlength=rows)
    scores = (scores - np.median(scores)) * 1.2 - 0.8
    labels = np.where(random.random(rows) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
    return sparse.csr_matrix((np.ones(len(at)), (at, names[ranks])), shape=(rows, features)), labels


def libsvm(*path, keep=None):
    examples, labels = load_svmlight_file(os.path.join(DATA, *path), zero_based=True)
    labels = np.where(labels > 0, 1.0, -1.0)
    return (examples, labels) if keep is None else (examples[keep(len(labels))], labels[keep(len(labels))])


def covtype():
    """The second kind of forest against the others, every column divided by its greatest value."""
    numbers = np.loadtxt(gzip.open(os.path.join(DATA, "covtype", "covtype.data.gz")), delimiter=",", dtype=np.float32)
    features = numbers[:, :-1] / np.abs(numbers[:, :-1]).max(0)
    return sparse.csr_matrix(features.astype(np.float64)), np.where(numbers[:, -1] == 2, 1.0, -1.0)


def criteo():
    """Every field and value hashed to one of 2^18 features, numbers by their logarithm."""
    at, features, labels = [], [], []
    for row, line in enumerate(gzip.open(os.path.join(DATA, "criteo-sample", "criteo.train.tsv.gz"), "rt")):
        fields = line.rstrip("\n").split("\t")
        labels.append(1.0 if fields[0] == "1" else -1.0)
        for field, value in enumerate(fields[1:]):
            if value:
                value = int(np.log(max(int(value), 0) + 1) ** 2) if field < 13 else value
                at.append(row)
                features.append(zlib.crc32(f"{field}:{value}".encode()) % (1 << 18))
    counts = sparse.csr_matrix((np.ones(len(at)), (at, features)), shape=(len(labels), 1 << 18))
    counts.data[:] = 1.0
    return counts, np.array(labels)


SETS = {
    "generated": (generated, 1e-5),
    "a9a": (lambda: libsvm("a9a", "a9a.gz"), 1 / 32561),
    "farm-ads": (lambda: libsvm("farm-ads", "farm-ads.libsvm.gz", keep=lambda rows: np.arange(rows) % 5 != 4), 1 / 3315),
    "reuters-moneyfx": (lambda: libsvm("reuters-moneyfx", "reuters.trn.gz"), 1 / 7770),
    "covtype": (covtype, 1e-5),
    "criteo-sample": (criteo, 1e-4),
    "ipinyou-sample": (lambda: libsvm("ipinyou-sample", "ipinyou.train.libsvm.gz"), 1 / 26773),
}


class Problem:
    def __init__(self, name):
        load, self.penalty = SETS[name]
        self.examples, self.labels = load()
        # Some of the others take no wider ones.
        self.examples.indices, self.examples.indptr = (
            part.astype(np.int32) for part in (self.examples.indices, self.examples.indptr))
        self.file = os.path.join(MADE, name + ".svm")
        if not os.path.exists(self.file):
            os.makedirs(MADE, exist_ok=True)
            dump_svmlight_file(self.examples, self.labels, self.file, zero_based=True)
        self.strength = 1 / (self.penalty * len(self.labels))

    def objective(self, weights):
        weights = np.pad(np.ravel(weights), (0, self.examples.shape[1] - np.size(weights)))
        return float(np.logaddexp(0, -self.labels * (self.examples @ weights)).mean() + self.penalty * abs(weights).sum())


def liblinear(problem):
    from liblinear.liblinearutil import parameter, problem as prepared, train
    given = prepared(problem.labels, problem.examples)

    def fit(tolerance):
        model = train(given, parameter(f"-s 6 -c {problem.strength:.12g} -e {tolerance} -q"))
        weights = np.array(model.w[: model.nr_feature])
        return lambda: weights if model.label[0] > 0 else -weights
    return fit, (0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4)


def scikit(solver, steps):
    def prepare(problem):
        from sklearn.linear_model import LogisticRegression

        def fit(iterations):
            model = LogisticRegression(C=problem.strength, l1_ratio=1.0, solver=solver, max_iter=iterations, tol=1e-9,
                                       fit_intercept=False, random_state=1).fit(problem.examples, problem.labels)
            return lambda: model.coef_
        return fit, steps
    return prepare


def celer(problem):
    from celer import LogisticRegression
    examples = problem.examples.tocsc()

    def fit(tolerance):
        model = LogisticRegression(C=problem.strength, tol=tolerance, fit_intercept=False).fit(examples, problem.labels)
        return lambda: model.coef_
    return fit, (0.1, 0.01, 1e-3, 1e-4)


def skglm(problem):
    from skglm import SparseLogisticRegression
    examples = problem.examples.tocsc()

    def fit(tolerance):
        model = SparseLogisticRegression(alpha=problem.penalty, tol=tolerance, fit_intercept=False)
        model.fit(examples, problem.labels)
        return lambda: model.coef_
    return fit, (1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 1e-6)


def wabbit(problem):
    from vowpalwabbit import Workspace
    file = problem.file + ".vw"
    if not os.path.exists(file):
        with open(file, "w") as out:
            for row, label in enumerate(problem.labels):
                part = slice(problem.examples.indptr[row], problem.examples.indptr[row + 1])
                pairs = zip(problem.examples.indices[part].tolist(), problem.examples.data[part].tolist())
                out.write(f"{label:.0f} | " + " ".join(f"{feature}:{value:.6g}" for feature, value in pairs) + "\n")
    bits = max(18, int(np.ceil(np.log2(problem.examples.shape[1] + 1))))

    def fit(passes):
        cache = ["--cache_file", file + ".cache", "--passes", str(passes), "--holdout_off"]
        arguments = ["-d", file, "--loss_function", "logistic", "--noconstant", "-b", str(bits), "--l1", str(problem.penalty), "--quiet"]
        Workspace(arg_list=arguments + cache + ["-f", file + ".model"]).finish()

        def weights():
            # Only a saved model has its weights cut as --l1 says.
            model = Workspace(arg_list=["-i", file + ".model", "-t", "--quiet"])
            return np.array([model.get_weight_from_name(str(feature)) for feature in range(problem.examples.shape[1])])
        return weights
    return fit, (1, 5, 20)


def allowed(function, *arguments):
    """What the function returns, in a process of its own that has ALLOWED seconds."""
    here, there = multiprocessing.Pipe(duplex=False)

    def run():
        try:
            there.send((function(*arguments), None))
        except Exception as error:  # a peer that is not there, or not up to the data
            there.send((None, str(error)))
    child = multiprocessing.get_context("fork").Process(target=run)
    child.start()
    there.close()
    try:
        value, error = here.recv() if here.poll(ALLOWED) else (None, f"no end within {ALLOWED} s")
    except EOFError:
        value, error = None, "it died"
    child.kill()
    child.join()
    if error:
        raise RuntimeError(error)
    return value


def liblinear_optimum(problem):
    return problem.objective(liblinear(problem)[0](1e-6)())


def least_of(first, again):
    """The least wall and CPU seconds of several runs, if the first was a brief one."""
    runs = [first] + [again() for _ in range(REPEATS - 1) if first[0] is not None and first[0] < BRIEF]
    return first if len(runs) == 1 else (*(min(run[place] for run in runs) for place in (0, 1)), first[2])


def seconds_to(problem, target, prepare):
    """Wall and CPU seconds of the first call that reaches the target, and the objective of the last."""
    fit, steps = prepare(problem)
    fit(steps[0])  # compiled code and caches are there from now on

    def call(step):
        wall, cpu = time.perf_counter(), time.process_time()
        weights = fit(step)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        return wall, cpu, problem.objective(weights())
    for step in steps:
        wall, cpu, objective = call(step)
        if objective <= target:
            return least_of((wall, cpu, objective), lambda: call(step))
        if wall > LIMIT:
            break
    return None, None, objective


def lab(problem, *keys):
    out = subprocess.run([LAB, problem.file, f"lambda={problem.penalty}", *keys], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def hemiola(problem, target, *keys):
    def run():
        passes = lab(problem, *keys)
        reached = next((line for line in passes if line["objective"] <= target), None)
        return (reached["seconds"], reached["cpu"], reached["objective"]) if reached else (None, None, passes[-1]["objective"])
    return least_of(run(), run)


PEERS = (
    ("LIBLINEAR", liblinear),
    ("scikit-learn liblinear", scikit("liblinear", (2, 4, 6, 8, 10, 15, 20, 40))),
    ("scikit-learn saga", scikit("saga", (5, 10, 20, 40, 80))),
    ("celer", celer),
    ("skglm", skglm),
    ("Vowpal Wabbit", wabbit),
)


def main():
    warnings.filterwarnings("ignore")
    for name in sys.argv[2:] or SETS:
        if name != "generated" and not os.path.exists(os.path.join(DATA, name)):
            print(f"{name}: skipped, the data are not there")
            continue
        problem = Problem(name)
        optimum = lab(problem, "tolerance=1e-9", "violation=1e-6", "passes=2000")[-1]["objective"]
        target = 1.001 * optimum
        print(f"\n{name}: {problem.examples.shape[0]} examples of {problem.examples.shape[1]} features, lambda {problem.penalty:.4g}, "
              f"optimum {optimum:.6f}\n{'program':26} {'seconds':>8} {'CPU s':>7} {'objective':>10}", flush=True)
        runs = [(f"hemiola, {workers} thread{'s'[: workers - 1]}", lambda workers=workers: hemiola(problem, target, f"workers={workers}"))
                for workers in (1, 2)]
        runs += [(peer, lambda prepare=prepare: allowed(seconds_to, problem, target, prepare)) for peer, prepare in PEERS]
        least = {}
        for program, run in runs:
            try:
                wall, cpu, objective = run()
            except RuntimeError as error:
                print(f"{program:26} failed: {error}", flush=True)
                continue
            shown = (f"{wall:8.3f}", f"{cpu:7.3f}") if wall is not None else ("   never", "      -")
            print(f"{program:26} {shown[0]} {shown[1]} {objective:10.6f}", flush=True)
            if wall is not None:
                side = least.setdefault(program.startswith("hemiola"), [np.inf, np.inf])
                side[:] = min(side[0], wall), min(side[1], cpu)
        if len(least) == 2:
            print("best of the others, as a multiple of our best: {:.2f} by wall, {:.2f} by CPU seconds".format(
                *(theirs / ours for theirs, ours in zip(least[False], least[True]))))
        try:
            theirs = allowed(liblinear_optimum, problem)
            print(f"LIBLINEAR's optimum (-e 1e-6) {theirs:.7f}, ours {optimum:.7f}: {optimum / theirs - 1:+.1e}", flush=True)
        except RuntimeError as error:
            print(f"LIBLINEAR's optimum: {error}", flush=True)


main()
