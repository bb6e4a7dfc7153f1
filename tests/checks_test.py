"""The checks find what they are there to find: each is run on a small tree with one fault, and on the same tree without it."""
import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / "tools"


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


class Laws(unittest.TestCase):
    ELSEWHERE = "isomer/nn/a.cc"

    def laws(self, text, name=ELSEWHERE):
        """(exit status, output) on a tree with the laws delta and scalar_decay, and a file."""
        return check("laws", {"isomer/laws/delta/delta.h": "struct DeltaOptions {};\n", "isomer/laws/scalar_decay/x.h": "\n", name: text})

    def test_other_words_pass(self):
        fine = ("// the law delta\nconst double delta = 1;\nf(delta, x.delta());\nint scalar_decay_rate;\nauto k = std::delta();\n"
                'throw Error("no delta of tokens");\nenum class Kind { deltas, other };\n')
        self.assertEqual(self.laws(fine), (0, ""))

    def test_a_law_that_is_named_elsewhere_fails(self):
        for text, found in (('#include "isomer/laws/delta/delta.h"', '"isomer/laws/delta/'), ("DeltaOptions o;", "DeltaOptions"),
                            ("f(scalar_decay_law());", "scalar_decay_law"), ('find_law("delta");', '"delta"'),
                            ('split("scan,delta");', '"scan,delta"'), ("case Law::delta: break;", "Law::delta"),
                            ("enum class Kind {\n  other,\n  delta,\n};", "enum class Kind { other, delta"),
                            ("builder.delta({.q = q});", "builder.delta("), ("m.scalar_decay({.q = q});", "m.scalar_decay("),
                            ("ops::delta<float>(tape, in);", "ops::delta<float>(")):
            law = "scalar_decay" if "scalar_decay" in text else "delta"
            self.assertEqual(self.laws("\n" + text + "\n"), (1, f"{self.ELSEWHERE}:2: knows the law {law} as {found}\n"))

    def test_presets_tests_and_wrappers_may_name_laws(self):
        for name in ("isomer/mixers/presets/a.cc", "isomer/nn/a_test.cc", "isomer/autograd/laws.h", "isomer/laws/delta/delta_law.cc"):
            self.assertEqual(self.laws("m.delta({});\n", name), (0, ""))

    def test_the_binding_may_not(self):
        self.assertEqual(self.laws('find_law("delta");\n', "python/binding/laws.cc")[0], 1)


class Tables(unittest.TestCase):
    """What lists every member of something does not compile when one is left out."""

    def errors(self, source, header, old, new):
        """Of the compiler for `source`, with `old` in a header replaced."""
        with tempfile.TemporaryDirectory() as folder:
            text = (ROOT / header).read_text()
            self.assertIn(old, text)
            changed = Path(folder) / header
            changed.parent.mkdir(parents=True)
            changed.write_text(text.replace(old, new))
            done = subprocess.run(["c++", "-std=c++20", f"-I{folder}", f"-I{ROOT}", "-fsyntax-only", "-x", "c++", "-"], input=source,
                                  capture_output=True, text=True)
            return done.stderr

    def test_every_elementwise_function_has_its_row(self):
        source = '#include "isomer/kernels/elementwise/functions.h"\n'
        unary, binary = ("unary.h", "gelu_erf ", "gelu_erf, fresh "), ("binary.h", "multiply };", "multiply, fresh };")
        swapped = ("unary.h", "  sin,\n  cos,", "  cos,\n  sin,")
        for (header, old, new), enum in ((unary, "Unary"), (binary, "Binary"), (swapped, "Unary")):
            self.assertIn(f"every function is in the table, in the order of {enum}",
                          self.errors(source, f"isomer/kernels/elementwise/{header}", old, new))

    def test_a_fingerprint_has_the_options_of_every_kind_of_node(self):
        source, header = '#include "isomer/mixers/fingerprint.cc"\n', "isomer/mixers/graph_work.h"
        errors = self.errors(source, header, "struct Detach {};", "struct Detach { int option = 0; };")
        self.assertIn("error: ", errors)
        self.assertIn("Detach", errors)


PRESET = """#include "isomer/mixers/parts.h"
namespace isomer::preset::{space} {{
extern const Preset {constant}{{.name = "fresh", .source = "", .summary = "", .build = [](Builder& m) {{ m.output(m.x()); }}}};
}}
"""


class Presets(unittest.TestCase):
    def compile(self, space, constant):
        """(exit status, errors) of the compiler for the list of the one preset fresh.cc."""
        with tempfile.TemporaryDirectory() as folder:
            preset, script, source = (Path(folder) / name for name in ("fresh.cc", "write.cmake", "list.cc"))
            preset.write_text(PRESET.format(space=space, constant=constant))
            script.write_text(f"include({ROOT}/cmake/presets.cmake)\nisomer_write_preset_list({source} {preset})\n")
            subprocess.run(["cmake", "-P", script], check=True)
            done = subprocess.run(["c++", "-std=c++20", f"-I{ROOT}", "-fsyntax-only", source], capture_output=True, text=True)
            return done.returncode, done.stderr

    def test_a_preset_named_like_its_file_compiles(self):
        self.assertEqual(self.compile("fresh", "fresh"), (0, ""))

    def test_another_name_is_an_error_that_says_which_was_expected(self):
        for space, constant in (("fresh", "other"), ("other", "fresh")):
            status, errors = self.compile(space, constant)
            self.assertEqual(status, 1)
            self.assertIn("presets/fresh.cc must have: namespace isomer::preset::fresh, extern const Preset fresh", errors)


class Symbols(unittest.TestCase):
    def symbols(self, target, source):
        """(exit status, output) of tools/symbols for one object of an instruction set."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{target}.dir" / "x.o"
            path.parent.mkdir()
            subprocess.run(["c++", "-std=c++20", f"-I{ROOT}", "-O1", "-c", "-x", "c++", "-", "-o", path], input=source, text=True, check=True)
            (Path(folder) / "list").write_text(f"{path}\n")
            done = subprocess.run([sys.executable, TOOLS / "symbols", Path(folder) / "list"], capture_output=True, text=True)
            return done.returncode, done.stdout

    def test_only_what_has_the_tag_of_the_instruction_set_passes(self):
        tagged = "enum class Isa { scalar, avx2 }; template <Isa I> void f() {} template void f<Isa::avx2>();"
        self.assertEqual(self.symbols("isomer_avx2", "namespace isomer { " + tagged + " }"), (0, "1 objects hold only their own symbols\n"))
        status, output = self.symbols("isomer_avx2", "int f() { return 1; }")
        self.assertEqual(status, 1)
        self.assertIn("x.o: f()", output)


@unittest.skipUnless(shutil.which("clang-format") and shutil.which("clang-tidy"), "clang-format and clang-tidy are not installed")
class Changed(unittest.TestCase):
    GOOD, UGLY, WRONG = "int f() { return 1; }\n", "int  f( ) {return 1;}\n", "int* f() { return 0; }\n"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.together = []
        for name in (".clang-format", ".clang-tidy"):
            shutil.copy(ROOT / name, self.root)

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, "-c", "user.name=x", "-c", "user.email=x", *arguments], check=True, capture_output=True)

    def commit(self, files):
        for name, text in files.items():
            (self.root / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "-qm", "x")

    def changed(self, path=None):
        """(exit status, output)"""
        entries = [{"directory": str(self.root), "file": str(file), "command": f"c++ -std=c++20 -o x.o -c {file}"}
                   for file in self.together or self.root.glob("*.cc")]
        (self.root / "compile_commands.json").write_text(json.dumps(entries))
        done = subprocess.run([sys.executable, TOOLS / "changed", self.root, self.root], capture_output=True, text=True,
                              env=None if path is None else {"PATH": path})
        return done.returncode, done.stdout + done.stderr

    def test_only_what_a_change_touches_is_looked_at(self):
        self.git("init", "-q", "-b", "main")
        self.commit({"old.cc": self.UGLY})
        self.commit({"new.cc": self.GOOD})
        self.assertEqual(self.changed()[0], 0, self.changed())
        self.git("checkout", "-q", "-b", "branch")
        self.commit({"ugly.cc": self.UGLY})
        self.commit({"new.cc": self.GOOD + "\n// More.\n"})
        status, output = self.changed()
        self.assertEqual(status, 1)
        self.assertIn("ugly.cc:1", output)
        self.assertNotIn("old.cc", output)

    def test_clang_tidy_finds_what_is_wrong_and_not_committed(self):
        self.git("init", "-q", "-b", "main")
        self.commit({"new.cc": self.GOOD})
        self.commit({"other.cc": self.GOOD})
        (self.root / "new.cc").write_text(self.WRONG)
        status, output = self.changed()
        self.assertEqual(status, 1)
        self.assertIn("modernize-use-nullptr", output)

    def test_clang_tidy_looks_at_new_lines(self):
        self.git("init", "-q", "-b", "main")
        self.commit({"old.cc": self.WRONG})
        self.commit({"old.cc": self.WRONG + self.GOOD.replace("f", "g")})
        self.assertEqual(self.changed()[0], 0, self.changed())
        (self.root / "fresh.cc").write_text(self.WRONG)
        self.assertIn("fresh.cc:1:19", self.changed()[1])

    def test_what_is_compiled_together_is_looked_at_alone(self):
        self.git("init", "-q", "-b", "main")
        self.commit({"a.cc": self.GOOD, "b.cc": self.GOOD.replace("f", "g")})
        unity = self.root / "Unity"
        unity.mkdir()
        (unity / "both.cxx").write_text("".join(f'#include "{self.root}/{name}"\n' for name in ("a.cc", "b.cc")))
        self.together = [unity / "both.cxx"]
        self.commit({"b.cc": self.WRONG.replace("f", "g")})
        self.assertIn("b.cc:1:19: error: use nullptr", self.changed()[1])
        self.commit({"b.cc": "int g() { return f(); }\n"})
        status, output = self.changed()
        self.assertEqual(status, 1)
        self.assertIn("b.cc:1:18: error: ‘f’ was not declared in this scope", output)

    def test_without_a_commit_before_the_format_of_all_is_checked(self):
        self.git("init", "-q", "-b", "main")
        self.commit({"wrong.cc": self.WRONG})
        status, output = self.changed()
        self.assertEqual((status, output), (0, "changed: no commit to compare with, so only the format of all 1 files is checked\n"))
        (self.root / "wrong.cc").write_text(self.UGLY)
        self.assertEqual(self.changed()[0], 1)

    def test_without_clang_format_it_is_skipped_with_a_line(self):
        status, output = self.changed(path="/nowhere")
        self.assertEqual((status, output), (77, "changed: skipped, clang-format is not installed; tools/setup lint installs it\n"))


class Examples(unittest.TestCase):
    def test_an_example_is_what_is_compiled_but_for_spaces_and_remarks(self):
        compiled = "void f() {\n  // from isomer/a.h\n  int x = 1;\n  g(x);\n  // end\n}\n"
        header = "#pragma once\n// What it is.\n//\n//   int x = 1;   // one\n//   g(x);\n//\n"
        self.assertEqual(check("examples", {"tests/examples/x_test.cc": compiled, "isomer/a.h": header}),
                         (0, "headers with examples that are compiled: 1, with others: 0\n"))
        for stale in (header.replace("g(x)", "g(x, 2)"), header.replace("//   g(x);", "//   g(x);\n//   h(x);"), header.replace("//   g(x);\n", "")):
            status, output = check("examples", {"tests/examples/x_test.cc": compiled, "isomer/a.h": stale})
            self.assertEqual(status, 1)
            self.assertIn("isomer/a.h: no example in its comments is the one that tests/examples/x_test.cc compiles", output)


    def test_examples_that_are_not_compiled_do_not_become_more(self):
        compiled = "void f() {\n  // from isomer/a.h\n  g(x);\n  // end\n}\n"
        files = {"tests/examples/x_test.cc": compiled, "isomer/a.h": "//   g(x);\n", "isomer/b.h": "//   h(x);   // one\n",
                 "isomer/c.h": "//   y = W x   a formula\n", "isomer/d_test.cc": "//   h(x);\n"}
        status, output = check("examples", files)
        self.assertEqual((status, output), (1, "headers with examples that are not compiled: expected at most 0 "
                                               "(tests/examples/not_compiled), got 1: isomer/b.h\n"))
        self.assertEqual(check("examples", {**files, "tests/examples/not_compiled": "1\n"}),
                         (0, "headers with examples that are compiled: 1, with others: 1\n"))

    def test_an_example_may_end_with_an_expression(self):
        compiled = "void f() {\n  // from isomer/a.h\n  g(x);\n  // end\n}\n"
        files = {"tests/examples/x_test.cc": compiled, "isomer/a.h": "//   g(x);\n"}
        self.assertEqual(check("examples", {**files, "isomer/b.h": "//   const P p;\n//   p.total()   // all\n"})[0], 1)
        self.assertEqual(check("examples", {**files, "isomer/b.h": "//   // Twice:\n//   h(x);\n//   // and no more\n"})[0], 1)
        self.assertEqual(check("examples", {**files, "isomer/b.h": "//   y = W x\n//   z = e^y;\n//   w = z / 2\n"})[0], 0)

    def test_json_is_no_example_but_code_with_json_in_it_is(self):
        compiled = "void f() {\n  // from isomer/a.h\n  g(x);\n  // end\n}\n"
        files = {"tests/examples/x_test.cc": compiled, "isomer/a.h": "//   g(x);\n"}
        answer = '//   {"op": "train", "repeat": n}\n//       -> {"seconds": [of each step], "isa"}\n'
        self.assertEqual(check("examples", {**files, "isomer/b.h": answer}),
                         (0, "headers with examples that are compiled: 1, with others: 0\n"))
        for code in ('//   f(R"({"a": 1})");\n', '//   {\n//     g(x);\n//   }\n', '//   x = {"a", "b"};\n'):
            self.assertEqual(check("examples", {**files, "isomer/b.h": code})[0], 1)


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
