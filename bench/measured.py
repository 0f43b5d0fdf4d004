"""What a command took, started by a small process: who starts one is counted as part of its greatest memory."""
import subprocess, sys

CODE = """import resource, subprocess, sys
out = subprocess.run(sys.argv[1:], check=True, stdout=subprocess.PIPE).stdout
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(spent.ru_utime + spent.ru_stime, 1024 * spent.ru_maxrss)
sys.stdout.write(out.decode())"""


def measured(command):
    """Processor seconds, the most bytes that any of its processes had, and what it printed."""
    out = subprocess.run([sys.executable, "-c", CODE, *command], check=True, stdout=subprocess.PIPE, text=True).stdout
    figures, printed = out.split("\n", 1)
    seconds, most = figures.split()
    return float(seconds), int(most), printed
