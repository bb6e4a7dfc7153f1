"""The checks find what they are there to find: each is run on a small tree with one fault, and on the same tree without it."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent / "tools"


def check(tool, files):
    """(exit status, output) of a check on a tree made of `files`."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for name, text in files.items():
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        subprocess.run(["git", "-C", folder, "add", "."], check=True)
        done = subprocess.run([sys.executable, TOOLS / tool, folder], capture_output=True, text=True)
        return done.returncode, done.stdout


class Includes(unittest.TestCase):
    def test_down_and_own_layer_pass(self):
        files = {"isomer/laws/a.cc": '#include "isomer/base/error.h"\n#include "isomer/laws/a.h"\n', "cli/main.cc": '#include "isomer/io/x.h"\n'}
        self.assertEqual(check("includes", files), (0, ""))

    def test_up_fails(self):
        status, output = check("includes", {"isomer/base/a.h": '#include "isomer/simd/vec.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn("isomer/base/a.h: includes isomer/simd/vec.h", output)

    def test_io_knows_base_only(self):
        self.assertEqual(check("includes", {"isomer/io/a.cc": '#include "isomer/laws/law.h"\n'})[0], 1)

    def test_unknown_layer_fails(self):
        self.assertEqual(check("includes", {"isomer/misc/a.cc": "\n"})[0], 1)


class Size(unittest.TestCase):
    def test_small_passes(self):
        self.assertEqual(check("size", {"a.h": "int f(int x) {\n" + "  x++;\n" * 57 + "  return x;\n}\n"}), (0, ""))

    def test_long_function_fails(self):
        status, output = check("size", {"a.cc": "namespace x {\nint f(int a) {\n" + "  if (a) { a++; }\n" * 60 + "}\n}\n"})
        self.assertEqual(status, 1)
        self.assertIn("a.cc:2: function of 62 lines", output)

    def test_long_files_fail(self):
        self.assertEqual(check("size", {"a.h": "\n" * 201})[0], 1)
        self.assertEqual(check("size", {"a.cc": "\n" * 400})[0], 0)
        self.assertEqual(check("size", {"a.cc": "\n" * 401})[0], 1)

    def test_braces_in_strings_do_not_count(self):
        self.assertEqual(check("size", {"a.cc": 'int f() { return sizeof("}{{"); }\n' + "// {\n" * 100}), (0, ""))


if __name__ == "__main__":
    unittest.main()
