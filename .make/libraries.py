"""Run the programs for PipelineDP and Tumult on the sample events, and those for Opacus and JAX Privacy on the digits.

    .venv/bin/python .make/libraries.py

Each library has an environment of its own in .venv. Tumult needs Java 17 or newer; where it is missing and packages may
be installed here, it is installed with apt.
"""

from __future__ import annotations

import os
import subprocess
import sys

from engines import JAVA_PACKAGE, OLDEST_JAVA, ROOT, SetUpError, find_java_version, install_packages

LIBRARIES = ("pipelinedp", "tumult", "opacus", "jaxprivacy")


def main() -> int:
    """Set up and test; return the exit code of the first pytest that fails, or 0."""
    try:
        if find_java_version() < OLDEST_JAVA:
            install_packages([JAVA_PACKAGE])
        if find_java_version() < OLDEST_JAVA:
            raise SetUpError(f"Java {OLDEST_JAVA} is still not found; set JAVA_HOME, or PATH")
        for library in LIBRARIES:
            python_path = str(ROOT / ".venv" / library / "bin" / "python")
            environment = {
                **os.environ, "SWEETSPOT_LIBRARY": library, "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": python_path, "PYSPARK_DRIVER_PYTHON": python_path,
            }  # fmt: skip
            # The warnings of the libraries are theirs.
            words = [
                python_path,
                "-m",
                "pytest",
                "-W",
                "default",
                "--disable-warnings",
                "-p",
                "no:cacheprovider",
            ]
            exit_code = subprocess.run(
                [*words, "tests/libraries", *sys.argv[1:]], cwd=ROOT, env=environment
            ).returncode
            if exit_code:
                return exit_code
    except (SetUpError, subprocess.SubprocessError, OSError) as error:
        print(f"The libraries could not be tested: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
