"""Nothing in the repository tells where it was written: no path of a machine, no registry host."""

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

LEAK: Final = re.compile(
    r"""
    (?<![\w.])/(?:home|Users|root|work)/\w      # somebody's home
    | (?<![\w.])/(?:tmp|var/folders)/\w         # somebody's scratch folder; tests have tmp_path
    | \b[A-Z]:\\Users\\                         # the same elsewhere
    | \bpypi\.org | \bpythonhosted\.org | \bnpmjs\.org | \bproxy\.golang\.org
    | --(?:extra-)?index-url\b | --find[-]links\b # where one machine gets its packages from
    """,
    re.VERBOSE,
)


def tracked_files(root: Path) -> list[Path]:
    """The files of the repository, those not yet committed included."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [path for name in done.stdout.split("\0") if name and (path := root / name).is_file()]


def leak_faults(files: Iterable[Path]) -> list[str]:
    """Lines of text files that name a place on a machine or a registry."""
    faults: list[str] = []
    for path in files:
        data = path.read_bytes()
        if b"\0" in data:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            found = LEAK.search(line)
            if found:
                faults.append(f"{path}:{number} names {found[0]!r}.")
    return faults
