"""Sparse coding beside scikit-learn's MiniBatchDictionaryLearning, in one run.

Both learn atoms of the same patches of natural images, for the same objective: the mean of half the squared error plus
lambda times the absolute codes. Prints wall and CPU seconds of learning (our CPU seconds are those of the whole program,
with reading and judging) and the objective of held-out patches, with codes found by scikit-learn for both. The images are
looked for beside the project, as ../shared/data; an argument behind the program is the number of patches.
"""
import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "2"
import json, resource, subprocess, sys, tempfile, time, warnings
import numpy as np
from sklearn.decomposition import MiniBatchDictionaryLearning, sparse_encode

LAB = sys.argv[1]
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "data")
IMAGES = os.path.join(DATA, "natural-images", "natural60-images-idx3-ubyte.gz")
PATCHES = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
ATOMS, SIZE, LAMBDA, JUDGED = 100, 64, 0.1, 3000
LIMIT = 60  # CPU seconds that a call may take before longer ones are left out


def objective(atoms, patches):
    atoms = atoms / np.maximum(1, np.linalg.norm(atoms, axis=1))[:, None]
    codes = sparse_encode(patches, atoms, algorithm="lasso_cd", alpha=LAMBDA, max_iter=5000)
    return float((0.5 * ((codes @ atoms - patches) ** 2).sum(1) + LAMBDA * abs(codes).sum(1)).mean())


def main():
    warnings.filterwarnings("ignore")
    if not os.path.exists(IMAGES):
        return print("skipped, the images are not there")
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'program':44} {'seconds':>8} {'CPU s':>7} {'objective':>10}")
        numbers = lambda name: np.fromfile(os.path.join(folder, name), np.float32).reshape(-1, SIZE).astype(np.float64)
        show = lambda what, wall, cpu, atoms: print(f"{what:44} {wall:8.2f} {cpu:7.2f} {objective(atoms, held_out):10.6f}", flush=True)
        for workers in (1, 2):
            for epochs in (1, 3, 10):
                keys = {"atoms": ATOMS, "sparsity": LAMBDA, "patches": PATCHES, "workers": workers, "epochs": epochs, "dump": folder}
                before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
                out = subprocess.run([LAB, IMAGES, *(f"{key}={value}" for key, value in keys.items())], check=True, capture_output=True, text=True)
                cpu = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
                wall = json.loads(out.stdout.splitlines()[-1])["seconds"]
                shown, held_out = np.split(numbers("patches.f32"), [PATCHES - PATCHES // 10])
                held_out = held_out[:JUDGED]
                show(f"hemiola, {workers} thread{'s'[: workers - 1]}, {epochs} epochs", wall, cpu, numbers(f"atoms-{epochs}.f32"))
        for algorithm in ("cd", "lars"):
            for epochs in (1, 3, 10):
                model = MiniBatchDictionaryLearning(ATOMS, alpha=LAMBDA, batch_size=256, max_iter=epochs, fit_algorithm=algorithm,
                                                    max_no_improvement=None, tol=0, random_state=1)
                wall, cpu = time.perf_counter(), time.process_time()
                model.fit(shown)
                wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
                show(f"MiniBatchDictionaryLearning, {algorithm}, {epochs} epochs", wall, cpu, model.components_)
                if cpu > LIMIT:
                    break


main()
