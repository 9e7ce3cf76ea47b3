"""What `make run` shows: the shipped snapshot's answers, then real work on a package from the index."""

import subprocess
import sys

LANDED = [sys.executable, "-m", "landed"]
PACKAGE = "trl"
KNOWN = "trl==1.9.0"


def step(title: str, *command: str, show: int = 40) -> int:
    print(f"\n$ landed {' '.join(command)}    # {title}", flush=True)
    done = subprocess.run([*LANDED, *command], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    print("\n".join(lines[:show]))
    if len(lines) > show:
        print(f"… {len(lines) - show} more lines")
    if done.stderr:
        print(done.stderr.rstrip())
    return done.returncode


def main() -> int:
    codes = [
        step("the field's data and the shipped snapshot are whole", "validate"),
        step("can I use GSPO, and what do I write?", "can", "gspo"),
        step("who offers what against entropy collapse?", "matrix", "--failure", "entropy-collapse"),
    ]
    print("\nReal work on real input: the newest released package is downloaded and opened (not installed, not imported).")
    code = step("a release of the snapshot's time: held against the tag of the same version", "package", KNOWN, show=6)
    code = step("the newest release: held against the main branch as the snapshot has it", "package", PACKAGE, show=20) or code
    if code == 3:
        print("No network, or the index has no such release: the package was not read; everything above is from the snapshot.")
        code = 0
    return max(*codes, code)


if __name__ == "__main__":
    raise SystemExit(main())
