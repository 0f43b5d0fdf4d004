"""Splash beside Spark MLlib on the same data in one run, with two threads each: the paper's three applications.

Both give a curve: Spark of whole calls of `fit` with so many iterations, hemiola of whole runs of `train --engine splash`
with so many epochs. Spark's clock begins when its session is up, the data lies in its cache and a first call has warmed
it; reading and evaluating are left out on both sides. CPU seconds, which other work on the machine changes little, are those
of Spark's process during a call and of hemiola's from its start to its end, with reading. Losses are computed here, by the
same lines for both models:

  mlr  the mean loss of softmax regression, on held-out and on the training examples; of hemiola with two rates
  mf   the mean squared error of held-out ratings
  lda  the mean negative log-likelihood of a held-out word given others of its document

For every loss that both come to, the table says when, and how many times sooner hemiola is there; the verdict is yes if it
is at least as many times as the paper claims, at all of them. L-BFGS goes up to MLlib's default of 100 iterations. MNIST,
enlarged by deformed copies as the paper's is, MovieLens 1M and the NIPS articles are used where they lie beside the project,
as ../shared/data; generated sets otherwise. `bench/run spark mlr` makes one of the three. Spark's calls have five minutes
for a curve, of which there are four.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"
import gzip, json, resource, shutil, struct, subprocess, sys, tempfile, time
import numpy as np

HEMIOLA, WHICH = sys.argv[1], sys.argv[2:] or ["mlr", "mf", "lda"]
THREADS = 2
# Seconds that Spark's calls for one curve may take together.
PATIENCE = float(os.environ.get("PATIENCE", 300))
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "data")
# How many times as many images as MNIST has there are to train on.
TIMES = 4
# What the paper claims, as the least number of times that Splash is sooner.
CLAIMS = {"mlr": 15, "mf": 36, "lda": 6}


def given(*path):
    """The path of a file beside the project, or None."""
    path = os.path.join(DATA, *path)
    return path if os.path.exists(path) else None


def contents(path):
    return (gzip.open(path) if path.endswith(".gz") else open(path, "rb")).read()


def tensors(path):
    """The tensors of a safetensors file by name."""
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    parts = {name: (of["shape"], data[8 + size:][slice(*of["data_offsets"])]) for name, of in header.items() if name != "__metadata__"}
    return {name: np.frombuffer(part, "<f4").reshape(shape).astype(np.float64) for name, (shape, part) in parts.items()}


def hemiola(folder, epochs, arguments, score):
    """The losses of models after so many epochs, with the seconds of training."""
    curve = []
    for count in epochs:
        model, report = os.path.join(folder, "ours.model"), os.path.join(folder, "ours.jsonl")
        command = [HEMIOLA, "train", *arguments, "--engine", "splash", "--workers", str(THREADS), "--epochs", str(count)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command + ["--quiet", "--report", report, "--out", model], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        evaluations = [line for line in map(json.loads, open(report)) if line["event"] == "evaluation"]
        rate = f", rate {arguments[-1]}" if "--rate" in arguments else ""
        curve.append((evaluations[-1]["seconds"], score(model), f"{count} epochs{rate}", cpu))
    return curve


def spark_cpu():
    """CPU seconds of Spark's process so far."""
    from pyspark import SparkContext
    numbers = open(f"/proc/{SparkContext._gateway.proc.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


def spark(estimator, iterations, frame, score):
    """The losses of models after so many iterations, with the seconds of fitting; as many calls as there is time for."""
    estimator(1).fit(frame)
    curve, spent, before = [], 0.0, 0
    for count in iterations:
        if curve and spent + curve[-1][0] * count / before > PATIENCE:
            print(f"Spark has no time for {count} iterations", flush=True)
            break
        began, cpu = time.perf_counter(), spark_cpu()
        model = estimator(count).fit(frame)
        seconds, cpu = time.perf_counter() - began, spark_cpu() - cpu
        curve.append((seconds, score(model), f"{count} iterations", cpu))
        spent, before = spent + seconds, count
    return curve


def reached(curve, loss):
    return min((point for point in curve if point[1] <= loss), default=None)


def one_loss(curve, which):
    return [(seconds, losses[which], *rest) for seconds, losses, *rest in curve]


def table(which, data, ours, name, theirs):
    """When each loss of Spark's is reached, by both; and each of ours that Spark never comes to."""
    print(f"\n{which}: {data}\n{'':24} {'loss':>8}  {'Spark':>8} {'(CPU)':>8}  {'hemiola':>8} {'(CPU)':>8}  {'sooner':>7} {'(CPU)':>7}")
    ratios = []
    for seconds, loss, label, cpu in theirs:
        if seconds > reached(theirs, loss)[0]:
            continue
        own = reached(ours, loss)
        ratios.append(seconds / own[0] if own else 0.0)
        tail = f"{own[0]:7.2f}s {own[3]:7.2f}s  {ratios[-1]:6.1f}x {cpu / own[3]:6.1f}x   {own[2]}" if own else "  never"
        print(f"{name + ', ' + label:24} {loss:8.4f}  {seconds:7.2f}s {cpu:7.2f}s  {tail}")
    for seconds, loss, label, cpu in ours:
        if not reached(theirs, loss):
            print(f"{'':24} {loss:8.4f}  {'never':>8} {'':8}  {seconds:7.2f}s {cpu:7.2f}s  {label:>18}")
    verdict = "yes" if min(ratios) >= CLAIMS[which] else "no"
    print(f"verdict: {verdict}, {min(ratios):.1f} to {max(ratios):.1f} times sooner than {name}; the paper claims {CLAIMS[which]}", flush=True)


def session(folder):
    from pyspark.sql import SparkSession
    settings = {
        "spark.driver.memory": "4g", "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.local.dir": folder,
        "spark.sql.shuffle.partitions": 2 * THREADS, "spark.default.parallelism": 2 * THREADS,
        # ALS of 20 iterations is read by a recursion that the usual stack is too small for.
        "spark.driver.extraJavaOptions": "-Xss64m",
        "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1",
    }
    builder = SparkSession.builder.master(f"local[{THREADS}]").appName("bench")
    for key, value in settings.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    started.sparkContext.setLogLevel("OFF")
    return started


def cached(frame):
    frame = frame.repartition(2 * THREADS).cache()
    frame.count()
    return frame


def images(folder):
    """Images in MNIST's format to train on and to test with, labels beside them: digits, or blots whose places tell the class."""
    found = [given("mnist", f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    if all(found):
        enlarged = os.path.join(folder, "large-images-idx3-ubyte")
        subprocess.run([HEMIOLA, "generate", "images", found[0], "--times", str(TIMES), "--out", enlarged], check=True, stdout=subprocess.DEVNULL)
        return f"MNIST times {TIMES}", [enlarged, found[1]]
    random = np.random.default_rng(5)
    places = random.normal(0, 40, (10, 784))
    made = []
    for part, count in (("train", 30000), ("test", 5000)):
        made.append(os.path.join(folder, f"{part}-images-idx3-ubyte"))
        labels = random.integers(0, 10, count).astype(np.uint8)
        blots = places[labels] + random.normal(0, 300, (count, 784)) + 40
        with open(made[-1], "wb") as file:
            file.write(struct.pack(">4I", 0x803, count, 28, 28) + blots.clip(0, 255).astype(np.uint8).tobytes())
        with open(made[-1].replace("images-idx3", "labels-idx1"), "wb") as file:
            file.write(struct.pack(">2I", 0x801, count) + labels.tobytes())
    return "made images", made


def mlr(started, folder):
    from pyspark.ml.classification import LogisticRegression
    name, paths = images(folder)
    pixels = [np.frombuffer(contents(path), np.uint8, offset=16).reshape(-1, 784) / np.float32(255) for path in paths]
    labels = [np.frombuffer(contents(path.replace("images-idx3", "labels-idx1")), np.uint8, offset=8) for path in paths]

    def losses(weights, bias):
        """On the examples to train on, and on those to test with."""
        found = []
        for features, classes in zip(pixels, labels):
            scores = features @ weights.T.astype(np.float32) + bias.astype(np.float32)
            scores -= scores.max(1, keepdims=True)
            found.append(float((np.log(np.exp(scores).sum(1)) - scores[np.arange(len(classes)), classes]).mean()))
        return found

    def of_ours(model):
        order = np.argsort([int(line) for line in open(os.path.join(model, "classes.txt"))])
        numbers = tensors(os.path.join(model, "weights.safetensors"))
        return losses(numbers["weights"][:, order].T, numbers["bias"][order])

    text = os.path.join(folder, "images.libsvm")
    with open(text, "w") as file:
        for label, row in zip(labels[0], pixels[0]):
            file.write(f"{label} " + " ".join(f"{i + 1}:{row[i]:.6f}" for i in np.flatnonzero(row)) + "\n")
    frame = cached(started.read.format("libsvm").option("numFeatures", 784).load(text))
    # Without regularisation, as in the paper. With it Spark takes many more iterations where it may not scale the features.
    estimator = lambda count: LogisticRegression(maxIter=count, regParam=0.0, family="multinomial", tol=1e-12)
    of_theirs = lambda model: losses(model.coefficientMatrix.toArray(), model.interceptVector.toArray())
    theirs = spark(estimator, [1, 5, 10, 20, 40, 100], frame, of_theirs)
    frame.unpersist()
    arguments = ["mlr", paths[0], "--no-holdout", "--l2", "0"]
    ours = hemiola(folder, [1, 2, 3, 5, 8], arguments, of_ours)
    # Longer steps predict a little less well and come to a lower training loss.
    ours += hemiola(folder, [3, 5, 8, 12, 15, 18], [*arguments, "--rate", "0.3"], of_ours)
    for which, what in ((1, "held-out loss"), (0, "training loss")):
        table("mlr", f"{what}, {name}", one_loss(ours, which), "L-BFGS", one_loss(theirs, which))


def mf(started, folder):
    from pyspark.ml.recommendation import ALS
    from pyspark.sql.types import FloatType, IntegerType, StructType
    rank, l2 = 32, 0.05
    path = given("ml-1m", "ratings_notime.dat.gz")
    if not path:
        path = os.path.join(folder, "ratings.csv")
        subprocess.run([HEMIOLA, "generate", "ratings", "--users", "6000", "--items", "3000", "--ratings", "1000000", "--rank", "12",
                        "--noise", "0.75", "--out", path], check=True, stdout=subprocess.DEVNULL)
    words = contents(path).replace(b"::", b" ").replace(b",", b" ").split()
    lines = np.array(words[3:] if words[0].isalpha() else words, dtype=np.float64).reshape(-1, 3)
    test = np.arange(len(lines)) % 10 == 9
    low, high = lines[~test, 2].min(), lines[~test, 2].max()
    size = int(lines[:, :2].max()) + 1

    def loss(users, items, biases=0.0):
        product = np.einsum("ij,ij->i", users[lines[test, 0].astype(int)], items[lines[test, 1].astype(int)])
        return float(np.mean((np.clip(product + biases, low, high) - lines[test, 2]) ** 2))

    def of_ours(model):
        numbers = tensors(os.path.join(model, "factors.safetensors"))
        mean = json.load(open(os.path.join(model, "model.json")))["mean"]
        by_id, bias = {}, {}
        for side, column in (("user", 0), ("item", 1)):
            ids = [int(line) for line in open(os.path.join(model, f"{side}s.txt"))]
            by_id[side], of_id = np.zeros((size, rank)), np.zeros(size)
            by_id[side][ids], of_id[ids] = numbers[f"{side}_factors"], numbers[f"{side}_bias"]
            bias[side] = of_id[lines[test, column].astype(int)]
        return loss(by_id["user"], by_id["item"], mean + bias["user"] + bias["item"])

    def of_theirs(model):
        sides = [np.zeros((size, rank)), np.zeros((size, rank))]
        for side, factors in zip(sides, (model.userFactors, model.itemFactors)):
            for row in factors.collect():
                side[row["id"]] = row["features"]
        return loss(*sides)

    text = os.path.join(folder, "train.csv")
    np.savetxt(text, lines[~test], fmt="%g", delimiter=",")
    schema = StructType().add("user", IntegerType()).add("item", IntegerType()).add("rating", FloatType())
    frame = cached(started.read.csv(text, schema=schema))
    estimator = lambda count: ALS(rank=rank, maxIter=count, regParam=l2, seed=1, checkpointInterval=-1,
                                  numUserBlocks=2 * THREADS, numItemBlocks=2 * THREADS)
    theirs = spark(estimator, [1, 2, 3, 5, 8, 12, 20], frame, of_theirs)
    frame.unpersist()
    ours = hemiola(folder, [1, 2, 3, 5], ["mf", path, "--holdout-every", "10", "--rank", str(rank), "--l2", str(l2)], of_ours)
    table("mf", "held-out loss, " + ("MovieLens 1M" if "ml-1m" in path else "made ratings"), ours, "ALS", theirs)


def bags(path):
    """UCI bag-of-words as a matrix of documents and words."""
    numbers = np.array(contents(path).split(), dtype=np.int64)
    counts = np.zeros(numbers[:2], np.float32)
    entries = numbers[3:].reshape(-1, 3)
    counts[entries[:, 0] - 1, entries[:, 1] - 1] = entries[:, 2]
    return counts


def lda(started, folder):
    from pyspark.ml.clustering import LDA
    topics, alpha, beta = 100, 0.1, 0.01
    path, held_out = given("nips", "docword.nips.train.txt.gz"), given("nips", "docword.nips.test.txt.gz")
    if not path:
        path, held_out = (os.path.join(folder, f"docword.{part}.txt") for part in ("train", "test"))
        whole = os.path.join(folder, "docword.made.txt")
        subprocess.run([HEMIOLA, "generate", "corpus", "--documents", "2200", "--words", "5000", "--tokens-per-document", "300", "--topics", "50",
                        "--out", whole], check=True, stdout=subprocess.DEVNULL)
        head, entries = contents(whole).split(b"\n", 3)[:3], np.loadtxt(whole, skiprows=3, dtype=int)
        for part, low, high in ((path, 0, 2000), (held_out, 2000, 2200)):
            kept = entries[(entries[:, 0] > low) & (entries[:, 0] <= high)] - [low, 0, 0]
            np.savetxt(part, kept, fmt="%d", header=f"{high - low}\n{int(head[1])}\n{len(kept)}", comments="")
    train, test = bags(path), bags(held_out)
    random = np.random.default_rng(3)
    # Of every two words of a document one is shown, for its topics, and the other is held out.
    shown = random.random(test.shape[1]) < 0.5
    known = (train.sum(0) > 0)

    def loss(counts):
        """For the counts of topics and words: shares of topics by expectation and maximisation on the words shown."""
        phi = counts + beta
        phi /= phi.sum(1, keepdims=True)
        total, tokens = 0.0, 0.0
        for document in test:
            seen, hidden = np.flatnonzero(document * shown * known), np.flatnonzero(document * ~shown * known)
            theta, of_seen = np.full(topics, 1.0 / topics), phi[:, seen]
            for _ in range(50):
                theta = theta * (of_seen @ (document[seen] / (theta @ of_seen))) + alpha
                theta /= theta.sum()
            total -= float(document[hidden] @ np.log(theta @ phi[:, hidden]))
            tokens += float(document[hidden].sum())
        return total / tokens

    def of_ours(model):
        numbers = tensors(os.path.join(model, "topics.safetensors"))
        counts = np.zeros((topics, train.shape[1]))
        ids = [int(line) - 1 for line in open(os.path.join(model, "vocabulary.txt"))]
        counts[:, ids] = numbers["word_topic"].T
        return loss(counts)

    text = os.path.join(folder, "bags.libsvm")
    with open(text, "w") as file:
        for document in train:
            file.write("0 " + " ".join(f"{w + 1}:{document[w]:g}" for w in np.flatnonzero(document)) + "\n")
    frame = cached(started.read.format("libsvm").option("numFeatures", train.shape[1]).load(text))
    of_theirs = lambda model: loss(model.topicsMatrix().toArray().T)

    def estimator(optimizer, alpha, beta, rate=0.05):
        return lambda count: LDA(k=topics, maxIter=count, optimizer=optimizer, docConcentration=[alpha], topicConcentration=beta, seed=1,
                                 subsamplingRate=rate, optimizeDocConcentration=False, checkpointInterval=-1)

    arguments = ["lda", path, "--topics", str(topics), "--alpha", str(alpha), "--beta", str(beta)]
    ours = hemiola(folder, [1, 2, 3, 5, 8, 12, 20, 40, 60], arguments, of_ours)
    data = "held-out loss, " + ("NIPS articles" if "nips" in path else "made documents")
    # Its expectation and maximisation takes hyper-parameters that are greater by 1 for the same meaning.
    for optimizer, more, iterations in (("em", 1, [5, 10, 20, 40]), ("online", 0, [5, 10, 20, 40, 80, 160])):
        theirs = spark(estimator(optimizer, more + alpha, more + beta), iterations, frame, of_theirs)
        table("lda", data, ours, optimizer, theirs)
    frame.unpersist()


def main():
    if not shutil.which("java"):
        # No failure, so that bench/run goes on with what is behind this.
        print("Spark needs java, which is not here: apt-get install default-jre-headless")
        return
    unknown = [which for which in WHICH if which not in CLAIMS]
    if unknown:
        sys.exit(f"'{unknown[0]}' is none of mlr, mf and lda")
    with tempfile.TemporaryDirectory() as folder:
        started = session(folder)
        for which in WHICH:
            globals()[which](started, folder)
        started.stop()


main()
