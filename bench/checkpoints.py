"""What saving costs: a table of ten million numbers, changed by two workers, with checkpoints all the time and without.

Runs of both kinds take turns; the speed is the median of their ratios by the clock on the wall, because what the machine
does beside this changes from minute to minute. Memory is compared process by process: a server is smaller than the
workers, and what it keeps for a checkpoint must not hide behind them.
"""
import json, os, resource, statistics, subprocess, sys, tempfile, time

PROGRAM, CLOCKS = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "600"
ROUNDS = 5


def most_memory(process):
    """The most bytes that a process has had so far, or nothing once it is gone."""
    try:
        with open(f"/proc/{process}/status") as status:
            return next((1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM")), None)
    except (FileNotFoundError, ProcessLookupError):
        return None


def run(arguments):
    """Wall and processor seconds, and the most memory of the process and of each that it started, in that order."""
    spent = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    before, memory = spent(), {}
    process = subprocess.Popen([PROGRAM] + arguments, stdout=subprocess.PIPE, text=True)
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
                processes = [process.pid, *map(int, children.read().split())]
        except (FileNotFoundError, ProcessLookupError):
            processes = []
        for one in processes:
            memory[one] = max(most_memory(one) or 0, memory.get(one, 0))
        time.sleep(0.01)
    if process.returncode:
        sys.exit(f"{PROGRAM} {' '.join(arguments)}: it ended with {process.returncode}")
    return float(process.stdout.read().split()[0]), spent() - before, [memory[one] for one in sorted(memory)]


held = []
for place in ("threads", "tcp"):
    plain, saved, saves = [], [], []
    for _ in range(ROUNDS):
        plain.append(run([place, CLOCKS]))
        with tempfile.TemporaryDirectory() as folder:
            directory = os.path.join(folder, "saved")
            saved.append(run([place, CLOCKS, directory]))
            for name in filter(lambda name: name.startswith("clock-"), os.listdir(directory)):
                with open(os.path.join(directory, name, "manifest.json")) as manifest:
                    saves.append(json.load(manifest)["seconds"])
    ratios = lambda at: sorted(without[at] / with_it[at] for without, with_it in zip(plain, saved))
    wall, cpu = ratios(0), statistics.median(ratios(1))
    # The one of the processes that grew the most, each in a middling run.
    middling = lambda runs: [statistics.median(process) for process in zip(*(run[2] for run in runs))]
    grown, least = max((after / before, before) for before, after in zip(middling(plain), middling(saved)))
    held.append(statistics.median(wall) >= 0.8 and grown <= 1.5)
    seconds = lambda runs: statistics.median(run[0] for run in runs)
    print(f"{place:8} {seconds(plain):.2f} s without, {seconds(saved):.2f} s with: "
          f"{100 * statistics.median(wall):.0f} % of the speed ({100 * wall[0]:.0f} to {100 * wall[-1]:.0f} %; "
          f"{100 * cpu:.0f} % by processor time), {grown:.2f} of the memory of {least / 2**20:.0f} MB, "
          f"a checkpoint in {statistics.median(saves):.2f} s; at least 80 % and at most 1.5: {'holds' if held[-1] else 'DOES NOT HOLD'}")
sys.exit(not all(held))
