"""What two processes cost over one: processor seconds of the same training, eager with staleness 2, one worker each.

10,000 users, 2,000 items, a million ratings, rank 32, 20 epochs of 10 clocks. The time to read the file is taken from
a training of one epoch and left out on both sides.
"""
import os, resource, subprocess, sys, tempfile

HEMIOLA = sys.argv[1]


def cpu(arguments):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([HEMIOLA] + arguments, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


with tempfile.TemporaryDirectory() as folder:
    data, model = os.path.join(folder, "ratings.csv"), os.path.join(folder, "ratings.model")
    subprocess.run([HEMIOLA, "generate", "ratings", "--users", "10000", "--items", "2000", "--ratings", "1000000", "--out",
                    data], check=True, stdout=subprocess.DEVNULL)
    base = ["train", "mf", data, "--no-holdout", "--clocks-per-epoch", "10", "--quiet", "--out", model]
    one = base + ["--workers", "1"]
    two = base + ["--processes", "2", "--workers", "1", "--servers", "1"]
    half = two + ["--wire", "bf16"]
    best = {}
    for _ in range(5):
        for name, arguments in (("one process", one), ("two processes", two), ("two, bf16", half)):
            long, short = cpu(arguments + ["--epochs", "21"]), cpu(arguments + ["--epochs", "1"])
            best[name] = min(best.get(name, 1e9), long - short)
    for name, seconds in best.items():
        print(f"{name:14} {seconds:.2f} s of processor time for 20 epochs, {seconds / 20e6 * 1e6:.4f} us a rating")
    for name in ("two processes", "two, bf16"):
        print(f"ratio          {best[name] / best['one process']:.2f}  {name}")
