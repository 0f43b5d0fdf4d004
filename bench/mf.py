"""Matrix factorisation beside LIBMF, built with AVX from the source in its Python package, with two threads each.

Prints passes over the ratings per second, by wall clock and of processor time, and seconds of training to a held-out
RMSE. Reading, arranging, evaluating and saving are left out on both sides: a rate is that of the ten passes by which a
run with eleven is longer than one with one, and the seconds are the fewest passes that reach the RMSE at that rate,
LIBMF's at the better of two step sizes. On a busy machine compare processor time: LIBMF, which sleeps and wakes some
hundred times a pass, was seen to get more than its share there. Last comes what a rating costs: the floating-point
operations of its step, its bytes from memory with the part of the memory's bandwidth that they take, and its bytes from
caches. Rows are taken to stay in caches if all of them fit into the largest; the rating itself comes from memory, in 5
bytes where a worker has at most 65,536 users and there are at most 256 different values, otherwise in 12. At the end
stands the peak of the resident memory of a training, its program included, as a multiple of 12 bytes a rating and the model.
Arguments behind the programs are ranks (32 and 100). MovieLens 1M and the generator of the other set are used where
they lie beside the project, in ../shared.
"""
import ctypes, glob, gzip, json, os, resource, subprocess, sys, tempfile, threading, time
import numpy as np
from measured import measured

HEMIOLA, LIBMF = sys.argv[1:3]
RANKS = [int(rank) for rank in sys.argv[3:]] or [32, 100]
THREADS = 2
SECONDS = 20
SHARED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared")
ML_1M = os.path.join(SHARED, "data", "ml-1m", "ratings_notime.dat.gz")
GENERATOR = os.path.join(SHARED, "bench", "gen_synth.py")


class Parameters(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("fun", "k", "nr_threads", "nr_bins", "nr_iters")] + \
        [(name, ctypes.c_float) for name in ("lambda_p1", "lambda_p2", "lambda_q1", "lambda_q2", "eta")] + \
        [(name, ctypes.c_bool) for name in ("do_nmf", "quiet", "copy_data")]


class Model(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in ("fun", "m", "n", "k")] + \
        [("b", ctypes.c_float), ("P", ctypes.POINTER(ctypes.c_float)), ("Q", ctypes.POINTER(ctypes.c_float))]


library = ctypes.CDLL(LIBMF)
library.mf_train.restype = ctypes.POINTER(Model)


class Problem(ctypes.Structure):
    _fields_ = [("m", ctypes.c_int), ("n", ctypes.c_int), ("nnz", ctypes.c_longlong), ("R", ctypes.c_void_p)]


class Set:
    """Ratings with ids from zero, those to train on in an order drawn at random."""

    def __init__(self, name, path, every, target):
        self.name, self.path, self.every, self.target = name, path, every, target
        text = (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read()
        text = text[text.index(b"\n") if text[:1].isalpha() else 0:].replace(b"::", b" ").replace(b",", b" ")
        table = np.fromstring(text, sep=" ").reshape(-1, 3)
        ratings = np.empty(len(table), dtype=[("user", np.int32), ("item", np.int32), ("value", np.float32)])
        for number, column in enumerate(("user", "item")):
            ratings[column] = np.unique(table[:, number], return_inverse=True)[1]
        ratings["value"] = table[:, 2]
        self.shape = int(ratings["user"].max()) + 1, int(ratings["item"].max()) + 1
        held_out = np.arange(len(ratings)) % every == every - 1
        self.train = np.random.default_rng(7).permutation(ratings[~held_out])
        self.test = ratings[held_out]


def spent(run, who):
    """Seconds by wall clock and of processor time."""
    usage = lambda: sum(resource.getrusage(who)[:2])
    began, before = time.perf_counter(), usage()
    run()
    return np.array([time.perf_counter() - began, usage() - before])


def libmf(data, rank, passes, rate=0.1):
    parameters = Parameters(fun=0, k=rank, nr_threads=THREADS, nr_bins=20, nr_iters=passes, lambda_p2=0.05,
                            lambda_q2=0.05, eta=rate, quiet=True, copy_data=True)
    problem = Problem(*data.shape, len(data.train), data.train.ctypes.data)
    return library.mf_train(ctypes.byref(problem), parameters)


def libmf_rmse(data, rank, passes, rate):
    pointer = libmf(data, rank, passes, rate)
    model = pointer.contents
    users, items = (np.ctypeslib.as_array(rows, (count, model.k)) for rows, count in ((model.P, model.m), (model.Q, model.n)))
    predicted = np.einsum("ij,ij->i", users[data.test["user"]], items[data.test["item"]])
    low, high = data.train["value"].min(), data.train["value"].max()
    error = np.clip(np.nan_to_num(predicted, nan=model.b), low, high) - data.test["value"]
    library.mf_destroy_model(ctypes.byref(pointer))
    return float(np.sqrt(np.mean(error ** 2)))


def libmf_passes(data, rank, rate):
    """The fewest passes that reach the target."""
    reaches = lambda passes: libmf_rmse(data, rank, passes, rate) <= data.target
    most = next((passes for passes in (8, 16, 24, 32) if reaches(passes)), np.inf)
    least = most - 8
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if reaches(middle) else (middle, most)
    return most


def hemiola(data, rank, passes, held_out=("--no-holdout",)):
    """What the report says of every pass; nothing is evaluated, unless something is held out."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.jsonl")
        subprocess.run([HEMIOLA, "train", "mf", data.path, *held_out, "--workers", str(THREADS), "--rank", str(rank),
                        "--epochs", str(passes), "--quiet", "--report", report, "--out", os.path.join(folder, "m.model")], check=True)
        return [line for line in map(json.loads, open(report)) if line["event"] == "evaluation"]


def peak_bytes(data, rank):
    """The most memory that a training had."""
    with tempfile.TemporaryDirectory() as folder:
        command = [HEMIOLA, "train", "mf", data.path, "--workers", str(THREADS), "--rank", str(rank), "--epochs", "4",
                   "--quiet", "--out", os.path.join(folder, "m.model")]
        return measured(command)[1]


def copied_bytes_per_second():
    """What all threads together read and write when they copy what no cache holds."""
    blocks = [(np.zeros(1 << 27, np.uint8), np.ones(1 << 27, np.uint8)) for _ in range(THREADS)]

    def copy():
        threads = [threading.Thread(target=np.copyto, args=block) for block in blocks]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]

    return THREADS * 2 * (1 << 27) / min(spent(copy, resource.RUSAGE_SELF)[0] for _ in range(5))


def largest_cache():
    """Its bytes, if the machine tells."""
    sizes = glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size")
    return max((int(open(size).read().strip().rstrip("K")) << 10 for size in sizes), default=0)


def compare(data, rank, bandwidth):
    ours, theirs, began = [], [], time.perf_counter()
    while time.perf_counter() - began < SECONDS:  # in turns, so that what else the machine does befalls both
        ours.append([spent(lambda: hemiola(data, rank, passes), resource.RUSAGE_CHILDREN) for passes in (1, 11)])
        theirs.append([spent(lambda: libmf(data, rank, passes), resource.RUSAGE_SELF) for passes in (1, 11)])
    ours, theirs = (np.diff(np.min(times, axis=0), axis=0)[0] / 10 for times in (ours, theirs))
    ours *= len(data.train) / (len(data.train) + len(data.test))
    line = f"{data.name:12} {rank:4}  {1 / theirs[0]:6.1f} {1 / theirs[1]:6.1f}  {1 / ours[0]:7.1f} {1 / ours[1]:6.1f}  " \
           f"{theirs[0] / ours[0]:5.2f} {theirs[1] / ours[1]:5.2f}"
    if data.target:
        course = hemiola(data, rank, 24, ("--holdout-every", str(data.every)))
        our_passes = next((number for number, e in enumerate(course, 1) if e["test_rmse"] <= data.target), np.nan)
        their_passes = min(libmf_passes(data, rank, rate) for rate in (0.05, 0.1))
        for passes, seconds in ((their_passes, theirs), (our_passes, ours)):
            line += f"   {passes:3.0f} {passes * seconds[0]:5.2f} {passes * seconds[1]:5.2f}"
    width = -(-rank // 8) * 8 + 2
    rows, near = 2 * 2 * 4 * width, 4 * width * sum(data.shape) <= largest_cache()
    few = data.shape[0] / THREADS <= 1 << 16 and len(np.unique(data.train["value"])) <= 256
    moved = (5 if few else 12) + (0 if near else rows)
    share = len(data.train) / ours[0] * moved / bandwidth
    memory = peak_bytes(data, rank) / (12 * (len(data.train) + len(data.test)) + 4 * (rank + 1) * sum(data.shape))
    print(f"{line}   {8 * rank} flops, {moved} bytes ({share:.0%}), {rows if near else 0}   {memory:.2f}", flush=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        sets = []
        if os.path.exists(ML_1M):
            sets.append(("ml-1m", ML_1M, 10, 0.845))
        made = os.path.join(folder, "ratings.csv")
        if os.path.exists(GENERATOR):
            subprocess.run([sys.executable, GENERATOR, folder, "--only", "ratings"], check=True, stdout=subprocess.DEVNULL)
            with open(made, "wb") as out:
                # Eleven parts, of which the last is held out: every eleventh line is of the test file.
                train, test = (open(os.path.join(folder, "ratings", name), "rb").readlines() for name in ("train.txt", "test.txt"))
                for number, line in enumerate(test):
                    out.writelines(train[10 * number:10 * number + 10] + [line])
            sets.append(("generated 6M", made, 11, 0.785))
        else:
            subprocess.run([HEMIOLA, "generate", "ratings", "--users", "60000", "--items", "8000", "--ratings", "6000000",
                            "--rank", "16", "--noise", "0.75", "--out", made], check=True, stdout=subprocess.DEVNULL)
            sets.append(("generated 6M", made, 10, None))
        bandwidth = copied_bytes_per_second()
        print(f"{THREADS} threads; copying in memory reads and writes {bandwidth / 1e9:.1f} GB/s")
        print("                   passes in a second of wall clock and of     to the RMSE: passes, seconds, cpu seconds")
        print("set          rank         LIBMF         hemiola        ratio              LIBMF           hemiola   a rating: flops, bytes from memory and caches; memory")
        for one in sets:
            data = Set(*one)
            for rank in RANKS:
                compare(data, rank, bandwidth)


main()
