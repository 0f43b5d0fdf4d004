"""What saving costs: a table of ten million numbers, changed by two workers, with checkpoints all the time and without.

Wall and processor seconds of 200 clocks, the better of three runs of each kind, and the most memory of any process.
"""
import json, os, sys, tempfile
from measured import measured

PROGRAM, CLOCKS = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "200"


def run(arguments):
    """Wall and processor seconds, and the most memory of any process."""
    seconds, most, printed = measured([PROGRAM] + arguments)
    return float(printed.split()[0]), seconds, most


for place in ("threads", "tcp"):
    plain, saved = [], []
    saves = []
    for _ in range(3):
        plain.append(run([place, CLOCKS]))
        with tempfile.TemporaryDirectory() as folder:
            directory = os.path.join(folder, "saved")
            saved.append(run([place, CLOCKS, directory]))
            for name in filter(lambda name: name.startswith("clock-"), os.listdir(directory)):
                with open(os.path.join(directory, name, "manifest.json")) as manifest:
                    saves.append(json.load(manifest)["seconds"])
    best = lambda runs, at: min(run[at] for run in runs)
    wall, cpu = best(plain, 0) / best(saved, 0), best(plain, 1) / best(saved, 1)
    memory = best(saved, 2) / best(plain, 2)
    print(f"{place:8} {best(plain, 0):.2f} s without, {best(saved, 0):.2f} s with: {100 * wall:.0f} % of the speed "
          f"({100 * cpu:.0f} % by processor time), {memory:.2f} of the memory "
          f"({best(plain, 2) / 2**20:.0f} MB without), a checkpoint in {min(saves):.2f} s")
