"""Topic models beside tomotopy, on the same corpus in one run, with two threads each, for 100 and for 1,000 topics.

Prints for tomotopy, for us unless told otherwise (auto) and for proposals (mh) the tokens that a sweep over all documents
gets through per second and per processor second, and the seconds of both kinds to the joint log-likelihood per token
that tomotopy has after its last sweep, of which there are SWEEPS (100); then the held-out log-likelihood of the models by
document completion, with one scorer for all. Behind each of our lines are ratios to tomotopy's, how many times as many
tokens and how many times sooner at its likelihood, each by the clock on the wall and by processor seconds. All of it is
done ROUNDS times (3), one after the other in turn; the medians by the clock on the wall are then held against what we aim
at: 3 times as many tokens and 2.5 times sooner for up to 500 topics, 8 and 6 for more. One of the samplers must reach both
for each number of topics.

Passes over few documents, with which training begins, count in the seconds to the likelihood and not in the rate. Reading
is left out on both sides. Evaluations, one in two sweeps of ours, are left out of the seconds on the wall, but our
processor seconds contain them. The corpus is made here (20,000 documents of a hundred topics, three million tokens) unless
a folder with `docword.train.txt` and `docword.test.txt` (UCI bag of words) is named. Training is given up after LIMIT
seconds (1200) each time; TOPICS (100,1000) says for which numbers of topics.

    lda.py LDA_LAB [FOLDER]
"""
import os, re, statistics, subprocess, sys, tempfile, time
import numpy as np

LAB = sys.argv[1]
FOLDER = sys.argv[2] if len(sys.argv) > 2 else None
SWEEPS = int(os.environ.get("SWEEPS", 100))
# How long we train: more sweeps, which draw several tokens at once, and most of the sampler whose sweeps do least.
EPOCHS = {"auto": int(os.environ.get("EPOCHS", 3 * SWEEPS // 2)), "mh": 8 * int(os.environ.get("EPOCHS", SWEEPS))}
LIMIT = int(os.environ.get("LIMIT", 1200))
ROUNDS = int(os.environ.get("ROUNDS", 3))
TOPICS = [int(number) for number in os.environ.get("TOPICS", "100,1000").split(",")]
THREADS, ALPHA, BETA = 2, 0.1, 0.01


def make(folder, documents=20000, held_out=1000, words=20000, topics=100, length=150):
    """Documents of a few topics each; topics are Dirichlet draws around a Zipf law."""
    rng = np.random.default_rng(202)
    base = 1.0 / (np.arange(words) + 3.7) ** 1.05
    phi = rng.gamma(base / base.sum() * 250 + 1e-3, size=(topics, words))
    cumulated = np.cumsum(phi / phi.sum(1, keepdims=True), axis=1)
    theta = rng.gamma(0.06, size=(documents + held_out, topics)) + 1e-12
    lengths = np.maximum(20, rng.lognormal(np.log(length) - 0.18, 0.6, documents + held_out)).astype(int)
    shuffle = rng.permutation(words)
    for name, first, last in (("train", 0, documents), ("test", documents, documents + held_out)):
        lines = []
        for document in range(first, last):
            counts = rng.multinomial(lengths[document], theta[document] / theta[document].sum())
            drawn = [np.searchsorted(cumulated[k], rng.random(n)) for k, n in enumerate(counts) if n]
            found, often = np.unique(shuffle[np.concatenate(drawn).clip(0, words - 1)], return_counts=True)
            lines += [f"{document - first + 1} {w + 1} {n}" for w, n in zip(found, often)]
        with open(os.path.join(folder, f"docword.{name}.txt"), "w") as file:
            file.write("\n".join([str(last - first), str(words), str(len(lines))] + lines) + "\n")


def load(path):
    """Documents as arrays of words, each as often as it occurs, and the number of words."""
    with open(path) as file:
        documents, words, _ = (int(file.readline()) for _ in range(3))
        table = np.array(file.read().split(), dtype=np.int64).reshape(-1, 3)
    starts = np.searchsorted(table[:, 0], np.arange(1, documents + 2))
    rows = (table[a:b] for a, b in zip(starts, starts[1:]))
    return [(row[:, 1] - 1, row[:, 2]) for row in rows], words


def held_out(documents, phi):
    """Log-likelihood per token of one half of every document, its topics inferred from the other half."""
    phi = np.maximum(phi, 1e-12)
    columns = np.ascontiguousarray((phi / phi.sum(1, keepdims=True)).T.astype(np.float32))
    likelihood, tokens = 0.0, 0
    for number, (words, counts) in enumerate(documents[:500]):
        half = (words * 2654435761 + number * 40503 >> 16) & 1 == 1
        if not half.any() or half.all():
            continue
        seen, theta = columns[words[~half]], np.full(len(phi), 1 / len(phi), np.float32)
        for _ in range(40):
            theta = ALPHA + theta * ((counts[~half] / (seen @ theta)) @ seen)
            theta /= theta.sum()
        likelihood += float(np.log(columns[words[half]] @ theta) @ counts[half])
        tokens += int(counts[half].sum())
    return likelihood / tokens


def tomotopy(train, words, topics, sweeps):
    import tomotopy as library
    model = library.LDAModel(k=topics, alpha=ALPHA, eta=BETA, seed=1)
    model.optim_interval = 0
    for found, counts in train:
        model.add_doc([str(word) for word in np.repeat(found, counts)])
    model.train(0, workers=THREADS)
    began, processor, done = time.perf_counter(), time.process_time(), 0
    while done < sweeps and time.perf_counter() - began < LIMIT:
        done += 10
        model.train(min(10, sweeps - done + 10), workers=THREADS)
    seconds, processor, sweeps = time.perf_counter() - began, time.process_time() - processor, min(done, sweeps)
    phi = np.full((topics, words), 1e-12)
    phi[:, [int(word) for word in model.used_vocabs]] = [model.get_topic_word_dist(k) for k in range(topics)]
    return seconds, processor, sweeps, model.ll_per_word, phi


def hemiola(path, words, topics, sampler, target):
    with tempfile.NamedTemporaryFile() as out:
        options = dict(topics=topics, sampler=sampler, epochs=EPOCHS[sampler], every=2, begin=os.environ.get("BEGIN", ""), alpha=ALPHA, beta=BETA,
                       threads=THREADS, target=target, out=out.name)
        command = [LAB, path] + [f"{key}={value}" for key, value in options.items()]
        text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout
        counts = np.fromfile(out.name, dtype="<u4")[2:].reshape(words, topics).T.astype(np.float64)
    lines = re.findall(r"epoch +(\d+) +likelihood (\S+) .* total (\S+) s, .* processor (\S+) s", text)
    (first, _, *began), (last, likelihood, *ended) = lines[0], lines[-1]
    wall, cpu = (float(end) - float(start) for start, end in zip(began, ended))
    reached = re.search(r"reached \S+ after (\S+) s, processor (\S+) s", text)
    phi = (counts + BETA) / (counts.sum(1, keepdims=True) + BETA * words)
    sweeps = int(last) - int(first)
    return sweeps / wall, sweeps / cpu, int(last), float(likelihood), phi, reached and [float(x) for x in reached.groups()]


def main():
    with tempfile.TemporaryDirectory() as made:
        folder = FOLDER or made
        if not FOLDER:
            make(folder)
        path = os.path.join(folder, "docword.train.txt")
        (train, words), (test, _) = load(path), load(os.path.join(folder, "docword.test.txt"))
        tokens = sum(int(counts.sum()) for _, counts in train) / 1e6
        print("                               M tokens per second             log-likelihood       to tomotopy's last"
              "        times the tokens     times sooner")
        print("topics                   sweeps    wall  processor       training  held out     wall s  processor s"
              "     wall  processor   wall  processor")

        def line(topics, name, sweeps, rates, likelihood, phi, reached, times=()):
            wall, cpu = (f"{x:.1f}" for x in reached) if reached else ("not", "reached")
            print(f"{topics:6} {name:16} {sweeps:6} {tokens * rates[0]:8.1f} {tokens * rates[1]:10.1f} {likelihood:14.4f} "
                  f"{held_out(test, phi):9.4f} {wall:>10} {cpu:>12}" + "".join(f" {x:8.2f}" for x in times), flush=True)

        missed = []
        for topics in TOPICS:
            ratios = {sampler: [] for sampler in EPOCHS}
            for _ in range(ROUNDS):
                *seconds, sweeps, target, phi = tomotopy(train, words, topics, SWEEPS)
                rates = [sweeps / x for x in seconds]
                line(topics, "tomotopy", sweeps, rates, target, phi, seconds)
                for sampler in EPOCHS:
                    try:
                        *ours, epochs, likelihood, phi, reached = hemiola(path, words, topics, sampler, target)
                    except subprocess.TimeoutExpired:
                        print(f"{topics:6} hemiola {sampler}: given up after {LIMIT} seconds", flush=True)
                        continue
                    times = [x / y for x, y in zip(ours, rates)] + [x / y for x, y in zip(seconds, reached or (np.inf,) * 2)]
                    ratios[sampler].append(times)
                    line(topics, f"hemiola {sampler}", epochs, ours, likelihood, phi, reached, times)
            least, held = (3, 2.5) if topics <= 500 else (8, 6), []
            for sampler, times in ((sampler, times) for sampler, times in ratios.items() if times):
                tokens_times, _, sooner, _ = map(statistics.median, zip(*times))
                held.append(tokens_times >= least[0] and sooner >= least[1])
                print(f"{topics} topics, hemiola {sampler}: {tokens_times:.2f} times the tokens, {sooner:.2f} times sooner; "
                      f"at least {least[0]} and {least[1]}: {'holds' if held[-1] else 'does not hold'}", flush=True)
            if not any(held):
                missed.append(str(topics))
        print("for each number of topics one of the samplers, which --sampler picks, reaches both: "
              + (f"DOES NOT HOLD for {' and '.join(missed)}" if missed else "holds"))
        sys.exit(bool(missed))


main()
