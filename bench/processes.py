"""What two processes cost over one: processor seconds of the same training, eager with staleness 2, one worker each.

10,000 users, 2,000 items, a million ratings, rank 32, 50 epochs of 10 clocks. The time to read the file is taken from
a training of one epoch and left out on both sides. Turn by turn, because the machine is not as fast all the time: a ratio
is the median of those of the turns, and beside it that of the least times, which others on the machine disturbed least.
"""
import os, resource, statistics, subprocess, sys, tempfile

HEMIOLA = sys.argv[1]
EPOCHS, TURNS = 50, 21


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
    turns = []
    for _ in range(TURNS):
        turn = {}
        for name, arguments in (("one process", one), ("two processes", two), ("two, bf16", half)):
            turn[name] = cpu(arguments + ["--epochs", str(EPOCHS + 1)]) - cpu(arguments + ["--epochs", "1"])
        turns.append(turn)
    least = {name: min(turn[name] for turn in turns) for name in turns[0]}
    for name, seconds in least.items():
        print(f"{name:14} {seconds:.2f} s of processor time for {EPOCHS} epochs, {seconds / EPOCHS:.4f} us a rating")
    for name in ("two processes", "two, bf16"):
        ratios = [turn[name] / turn["one process"] for turn in turns]
        of_least = least[name] / least["one process"]
        print(f"ratio          {statistics.median(ratios):.2f}  {name} ({min(ratios):.2f} to {max(ratios):.2f}), "
              f"{of_least:.2f} of the least times")
