"""What processes with a bandwidth budget put on the wire: the counters of their network interfaces, second by second.

A server and two workers, each in a network namespace of its own, joined by virtual cables. Every interface is shaped:
first wider than the budget, then narrower, to see a network that falls behind. At the end each worker hands in a model, a
second's worth of the budget. Needs root, `ip` and `tc`.
"""
import os, shutil, subprocess, sys, tempfile, time

PROGRAM = sys.argv[1]
BUDGET = 2_500_000
SECONDS = 12
WORKERS = 2
MOST, LEAST = 1.05, 0.9
SERVER = "10.213.7.1"


def missing():
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    absent = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    return f"{absent[0]} is not installed" if absent else None


def sh(*words):
    subprocess.run([str(word) for word in words], check=True, stderr=subprocess.DEVNULL)


def inside(space, *words):
    return ["ip", "netns", "exec", space] + [str(word) for word in words]


class Network:
    """A server's namespace and one for each worker, removed when the block is left."""

    def __init__(self, rate):
        self.rate = rate
        self.name = f"hm{os.getpid() % 100000}"
        self.spaces = [f"{self.name}-s"] + [f"{self.name}-w{i}" for i in range(WORKERS)]

    def __enter__(self):
        try:
            for space in self.spaces:
                sh("ip", "netns", "add", space)
                sh(*inside(space, "ip", "link", "set", "lo", "up"))
            server = self.spaces[0]
            sh(*inside(server, "ip", "address", "add", f"{SERVER}/32", "dev", "lo"))
            for i, space in enumerate(self.spaces[1:]):
                here, there, address = f"w{i}", "cable", f"10.213.7.{i + 2}"
                sh("ip", "link", "add", here, "netns", server, "type", "veth", "peer", "name", there, "netns", space)
                sh(*inside(space, "ip", "address", "add", f"{address}/32", "dev", there))
                for end, name, other in ((server, here, address), (space, there, SERVER)):
                    sh(*inside(end, "ip", "link", "set", name, "up"))
                    sh(*inside(end, "ip", "route", "add", f"{other}/32", "dev", name))
                    sh(*inside(end, "tc", "qdisc", "add", "dev", name, "root", "tbf", "rate", f"{int(self.rate * 8)}bit",
                               "burst", "32kb", "latency", "200ms"))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "delete", space], stderr=subprocess.DEVNULL)

    def interfaces(self):
        """Per node, the namespace and its interfaces."""
        yield "server", self.spaces[0], [f"w{i}" for i in range(WORKERS)]
        for i, space in enumerate(self.spaces[1:]):
            yield f"worker {i}", space, ["cable"]


SAMPLER = """
import sys, time
files = [open(f"/sys/class/net/{name}/statistics/tx_bytes") for name in sys.argv[2:]]
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    total = 0
    for file in files:
        file.seek(0)
        total += int(file.read())
    print(time.monotonic(), total)
    time.sleep(0.005)
"""


def fullest_second(samples):
    most, first = 0, 0
    for last, (seconds, total) in enumerate(samples):
        while samples[first][0] < seconds - 1.0:
            first += 1
        most = max(most, total - samples[first][1])
    return most


def measure(rate):
    """Whether the budget was kept in every second, and used up on average where the network lets it."""
    held = True
    with Network(rate) as network, tempfile.TemporaryDirectory() as folder:
        wrapper = os.path.join(folder, "enter")
        with open(wrapper, "w") as file:
            file.write("#!/bin/sh\ncase \"$HEMIOLA_ROLE\" in\n")
            file.write(f"worker:*) exec ip netns exec {network.name}-w${{HEMIOLA_ROLE#worker:}} \"$@\" ;;\nesac\nexec \"$@\"\n")
        os.chmod(wrapper, 0o755)
        samplers = {}
        for node, space, names in network.interfaces():
            command = inside(space, sys.executable, "-c", SAMPLER, SECONDS + 6, *names)
            samplers[node] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        job = subprocess.run(inside(network.spaces[0], PROGRAM, SERVER, WORKERS, BUDGET, SECONDS, wrapper), timeout=120)
        if job.returncode != 0:
            sys.exit(f"the job ended with exit code {job.returncode}")
        for node, sampler in samplers.items():
            output, _ = sampler.communicate(timeout=60)
            samples = [(float(a), int(b)) for a, b in (line.split() for line in output.splitlines())]
            busy = [sample for sample in samples if sample[1] > samples[0][1] + BUDGET]
            begin = busy[0][0] if busy else samples[0][0]
            middle = [sample for sample in samples if begin <= sample[0] <= begin + SECONDS - 4]
            used = (middle[-1][1] - middle[0][1]) / (middle[-1][0] - middle[0][0]) / BUDGET
            most = fullest_second(samples) / BUDGET
            held = held and most <= MOST and (rate < BUDGET or used >= LEAST)
            print(f"  {node:9} at most {most:6.1%} of the budget in any second, {used:6.1%} on average")
    return held


why = missing()
if why:
    print(f"skipped: {why}")
    sys.exit(0)
held = []
for share in (2.0, 0.5):
    print(f"budget {BUDGET * 8 / 1e6:.0f} Mbit/s, network {share:.0%} of that:")
    held.append(measure(BUDGET * share))
print(f"at most {MOST:.0%} in any second, at least {LEAST:.0%} used: {'holds' if all(held) else 'DOES NOT HOLD'}")
sys.exit(not all(held))
