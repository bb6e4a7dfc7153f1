"""Installs a build into an empty folder, then builds and runs an outside project whose main is the C++ of the README."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


def block(text, language):
    """The first fenced block of a language."""
    return re.search(rf"^```{language}\n(.*?)^```", text, re.M | re.S).group(1)


def main():
    build = Path(sys.argv[1])
    readme = (ROOT / "README.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        prefix, outside = Path(folder) / "prefix", Path(folder) / "outside"
        run("cmake", "--install", build, "--prefix", prefix)
        outside.mkdir()
        shutil.copy(HERE / "CMakeLists.txt", outside)
        (outside / "main.cc").write_text(block(readme, "cpp"))
        run("cmake", "-S", outside, "-B", outside / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", outside / "build")
        printed = run(outside / "build" / "outside")
        expected = block(readme, "text")
        if printed != expected:
            sys.exit(f"expected the README's program to print\n{expected}got\n{printed}")
        private = [str(h) for h in (prefix / "include").rglob("*_impl.h")]
        if private:
            sys.exit(f"expected no private headers, got {private}")


main()
