#!/usr/bin/env python3
"""The house tests themselves: each wrong tree must be found, each right one pass."""

import os
import tempfile
import unittest

import docs_names
import file_length
import include_rules


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        self.addCleanup(self.folder.cleanup)
        for path in ("lib/util/a.h", "lib/ops/op.h", "lib/training/t.h", "datasets/d.h", "results/r.h", "tasks/t.h"):
            self.write(path, "#pragma once\n")
        self.write("README.md", "")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


class IncludeRules(Tree):
    def problems(self, path, text):
        self.write(path, text)
        return include_rules.check(self.root)

    def assert_found(self, path, text, words):
        problems = self.problems(path, text)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(words, problems[0])
        self.assertIn(path, problems[0])

    def test_right_includes_pass(self):
        for path, target in (("lib/ops/b.cpp", "lib/util/a.h"), ("lib/ops/b.cpp", "lib/ops/op.h"),
                             ("datasets/d.cpp", "lib/util/a.h"), ("results/r.cpp", "lib/util/a.h"),
                             ("tasks/t.cpp", "lib/training/t.h"), ("tasks/t.cpp", "datasets/d.h"),
                             ("tasks/t.cpp", "results/r.h"), ("apps/a.cpp", "tasks/t.h"),
                             ("tests/lib/t.cpp", "lib/ops/op.h"), ("benchmarks/b.cpp", "datasets/d.h")):
            self.assertEqual(self.problems(path, f'#include <vector>\n#include "{target}"\n'), [], (path, target))

    def test_wrong_includes_are_found(self):
        for path, target in (("lib/util/b.cpp", "lib/ops/op.h"), ("lib/ops/b.cpp", "lib/training/t.h"),
                             ("lib/ops/b.cpp", "datasets/d.h"), ("datasets/b.cpp", "lib/ops/op.h"),
                             ("datasets/b.cpp", "tasks/t.h"), ("results/b.cpp", "tasks/t.h"),
                             ("results/b.cpp", "lib/training/t.h"), ("tasks/b.cpp", "apps/a.h"),
                             ("lib/training/b.cpp", "tests/s.h")):
            self.write("apps/a.h", "")
            self.write("tests/s.h", "")
            self.assert_found(path, f'\n#include "{target}"\n', f":2: may not include {target}")
            os.remove(os.path.join(self.root, path))

    def test_angle_brackets_and_spaces_do_not_hide_an_include(self):
        self.assert_found("lib/util/b.cpp", " #  include  <lib/ops/op.h>\n", "may not include")

    def test_comments_are_no_includes(self):
        self.assertEqual(self.problems("lib/util/b.cpp", '// #include "lib/ops/op.h"\n/*\n#include "lib/ops/op.h"\n*/'), [])

    def test_missing_file_is_found(self):
        self.assert_found("lib/ops/b.cpp", '#include "lib/util/gone.h"\n', "does not exist")

    def test_relative_include_is_found(self):
        self.assert_found("lib/util/b.cpp", '#include "a.h"\n', "path from the root")

    def test_unknown_places_are_found(self):
        self.assert_found("lib/kitchen/b.cpp", "", "no room of lib")
        os.remove(os.path.join(self.root, "lib/kitchen/b.cpp"))
        self.assert_found("src/b.cpp", "", "sources lie in one of")

    def test_backend_in_the_header_of_an_op_is_found(self):
        self.assert_found("lib/ops/b.h", "#include <oneapi/dnnl/dnnl.h>\n", "backend")
        os.remove(os.path.join(self.root, "lib/ops/b.h"))
        self.assertEqual(self.problems("lib/ops/b.cpp", "#include <oneapi/dnnl/dnnl.h>\n"), [])


class FileLength(Tree):
    def test_limits(self):
        self.write("lib/util/short.cpp", "x\n" * 400)
        self.assertEqual(file_length.check(self.root), ([], []))
        self.write("lib/util/longer.cpp", "x\n" * 401)
        problems, remarks = file_length.check(self.root)
        self.assertEqual((len(problems), len(remarks)), (0, 1))
        self.write("lib/util/long.cpp", "x\n" * 701)
        self.assertEqual(len(file_length.check(self.root)[0]), 1)
        self.write("tests/data/long.tsv", "x\n" * 5000)
        self.assertEqual(len(file_length.check(self.root)[0]), 1)


class DocsNames(Tree):
    def problems(self, text):
        self.write("docs/page.md", text)
        self.write("apps/CMakeLists.txt", "lra_program(lra-listops SOURCES a.cpp)\n")
        self.write("CMakePresets.json", '{"configurePresets": [{"name": "release"}]}')
        return docs_names.check(self.root)

    def test_right_names_pass(self):
        for text in ("`lib/util/a.h`", "`lib/util/`", "`./lib/util/a.h`.", "`lib/<room>/a.h`", "`lib/util/*.h`",
                     "`lib/{util/a,ops/op}.h`", "`lra-listops --steps 3`", "`build/release/bin/x`", "`runs/a/b`",
                     "[x](../README.md)", "[x](page.md#part)", "[x](https://a.b/c)", "`cmake --preset release`",
                     "```\nlib/util/a.h\n```", "`x/y` and `forward/backward`"):
            self.assertEqual(self.problems(text), [], text)

    def test_wrong_names_are_found(self):
        for text in ("`lib/util/b.h`", "`lib/sub/`", "`./lib/b.h`", "`lib/<room>/b.h`", "`lib/util/*.cpp`",
                     "`lib/{util/a,ops/gone}.h`", "`lra-nothing`", "[x](gone.md)", "`cmake --preset fast`",
                     "```\nlib/util/b.h --x\n```", "`GONE.md`"):
            self.assertEqual(len(self.problems(text)), 1, (text, self.problems(text)))


if __name__ == "__main__":
    unittest.main()
