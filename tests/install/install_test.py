"""Installs a build into an empty folder, then builds and runs outside projects: one whose main is the C++ of the README, and the
examples. Each must print what its README says."""
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


def blocks(path, language):
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)


def build_outside(source, folder, prefix):
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder)


def expect_printed(program, expected):
    printed = run(program)
    if printed != expected:
        sys.exit(f"expected {program.name} to print\n{expected}got\n{printed}")


def expect_served(program):
    """An installed program finds the module that it listens by."""
    with subprocess.Popen([str(program), "explore", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        line = server.stdout.readline()
        server.terminate()
    if not line.startswith("http://127.0.0.1:"):
        sys.exit(f"expected {program.name} explore to print its address, got {line}")


def main():
    build = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        prefix, outside = Path(folder) / "prefix", Path(folder) / "outside"
        run("cmake", "--install", build, "--prefix", prefix)
        outside.mkdir()
        shutil.copy(HERE / "CMakeLists.txt", outside)
        (outside / "main.cc").write_text(blocks(ROOT / "README.md", "cpp")[0])
        build_outside(outside, outside / "build", prefix)
        expect_printed(outside / "build" / "outside", blocks(ROOT / "README.md", "text")[0])
        examples = Path(folder) / "examples"
        build_outside(ROOT / "examples", examples, prefix)
        for name, expected in zip(("stream_delta", "train_decay", "fork_state"), blocks(ROOT / "examples" / "README.md", "text"), strict=True):
            expect_printed(examples / name, expected)
        if (build / "libisomer_http.so").exists():
            expect_served(prefix / "bin" / "isomer")
        private = [str(h) for h in (prefix / "include").rglob("*_impl.h")]
        if private:
            sys.exit(f"expected no private headers, got {private}")


main()
