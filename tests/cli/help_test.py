"""`neyman help`, the reference and the schema that it writes.

    python3 help_test.py --neyman build/cli/neyman             all groups
    python3 help_test.py --neyman build/cli/neyman Schema      one group

Exits with 77 where the schema cannot be tried out: python3-jsonschema is not there.
"""

import copy
import json
import os
import re
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

import program
from program import neyman

try:
    import jsonschema
except ImportError:
    jsonschema = None

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def printed(*arguments, cwd=None):
    done = neyman(*arguments, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout


def topics():
    """The names of all topics: the headings of the reference."""
    return re.findall(r"^##+ `(.*)`$", printed("help", "--reference"), re.MULTILINE)


def tables(reference):
    """The rows of the reference by topic: [(key, type, default, meaning), …]."""
    out = {}
    for part in re.split(r"^##+ ", reference, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", part, re.MULTILINE)
        out[part.split("`")[1]] = rows
    return out


def names_in(schema):
    """Every name that a table may have somewhere."""
    out = set(schema.get("properties", {})) if isinstance(schema, dict) else set()
    for part in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(part, (dict, list)):
            out |= names_in(part)
    return out


class Help(unittest.TestCase):
    def test_topics_are_listed_with_their_kinds(self):
        words = set(re.split(r"[\s,]+", printed("help")))
        for name in topics():
            self.assertTrue({name, name.rpartition(".")[2]} & words, name)
        self.assertRegex(printed("help"), r"(?m)^  training  +what is simulated")

    def test_every_topic_has_type_default_and_meaning(self):
        rows = tables(printed("help", "--reference"))
        self.assertGreater(sum(map(len, rows.values())), 150)
        for name in topics():
            text = printed("help", name)
            self.assertTrue(text.startswith(f"{name}: "), text)
            words = " ".join(text.split())
            for key, kind, default, meaning in rows[name]:
                self.assertTrue(meaning and kind, f"{name}.{key}")
                kind = re.sub(r"\[`(.*?)`\]\(.*?\)", r"\1", kind)
                if default not in ("", "required"):
                    kind += f"; default {default.strip('`')}"
                elif default:
                    kind += "; required"
                line = " ".join(f"{key} {kind} {meaning}".replace("\\|", "|").split())
                self.assertIn(line, words)

    def test_fits_in_80_columns(self):
        for name in [None, *topics()]:
            for line in printed("help", *([name] if name else [])).splitlines():
                self.assertLessEqual(len(line), 80, line)
                self.assertEqual(line, line.rstrip())

    def test_known_answers(self):
        training = printed("help", "training")
        self.assertIn("  samples            a whole number, at least 1; default 200000\n", training)
        self.assertIn("default 5\n", training)
        parameters = " ".join(printed("help", "parameters").split())
        self.assertIn("range a list of 2 numbers; required [lowest, highest] value", parameters)
        self.assertIn('role one of "interest", "nuisance"; default "interest"', parameters)
        mlp = " ".join(printed("help", "classifier.mlp").split())
        self.assertIn("hidden a list of whole numbers, between 1 and 65536; default [40, 40]", mlp)
        mixture = " ".join(printed("help", "mixture").split())
        self.assertIn("components a list of tables: see simulator.mixture.components; required",
                      mixture)
        self.assertIn("points a table of parameter values, or a list of numbers, between 1 and",
                      " ".join(printed("help", "grid").split()))
        self.assertIn("against a table of parameter values",
                      " ".join(printed("help", "diagnostics").split()))

    def test_the_end_of_a_name_is_enough(self):
        self.assertEqual(printed("help", "mlp"), printed("help", "classifier.mlp"))
        both = printed("help", "histogram")
        self.assertEqual(both, printed("help", "simulator.histogram") + "\n" +
                         printed("help", "calibration.histogram"))

    def test_an_unknown_topic_names_the_nearest(self):
        for asked, meant in (("trainign", "training"), ("boosted-tree", "boosted-trees"),
                             ("classifier.mpl", "classifier.mlp")):
            done = neyman("help", asked)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(done.stdout, "")
            self.assertIn(f"'{asked}' is not a topic", done.stderr)
            self.assertIn(f"did you mean '{meant}'?", done.stderr)

    def test_needs_no_study_and_no_files(self):
        with tempfile.TemporaryDirectory() as empty:
            for arguments in (["help"], ["help", "files"], ["help", "--schema"]):
                self.assertEqual(printed(*arguments, cwd=empty), printed(*arguments, cwd=ROOT))
            self.assertEqual(os.listdir(empty), [])


class Files(unittest.TestCase):
    def test_the_files_in_docs_are_what_the_program_writes(self):
        for option, name in (("--reference", "study-reference.md"), ("--schema", "study.schema.json")):
            self.assertEqual((ROOT / "docs" / name).read_text(encoding="utf-8"),
                             printed("help", option), f"docs/{name} is old: run make reference")

    def test_every_key_that_is_read_is_described(self):
        """No key hides in a branch that describing does not reach."""
        known = names_in(json.loads(printed("help", "--schema")))
        known |= {name.rpartition(".")[2] for name in topics()}
        tables = "settings|settings_|table|entry|own|calibration|inference|training|data|test"
        patterns = [r'(?:\{|Key \w+\()\s*"([A-Za-z_]\w*)",\s*"[^"]* [^"]*"',  # with a meaning
                    rf'\b(?:{tables})\.(?!problem|has|is_|skip|find|where)\w+\(\s*"(\w+)"']
        found = 0
        for path in sorted((ROOT / "src").rglob("*.cpp")):
            text = path.read_text(encoding="utf-8")
            if not re.search(r"\bSettings&? ", text) or path.parent.name in ("core", "reports"):
                continue
            for name in [name for pattern in patterns for name in re.findall(pattern, text)]:
                found += 1
                self.assertIn(name, known, f"{path.relative_to(ROOT)} reads a key that neyman help "
                              "does not know")
        self.assertGreater(found, 150)


@unittest.skipIf(jsonschema is None, "python3-jsonschema is not installed")
class Schema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        schema = json.loads(printed("help", "--schema"))
        jsonschema.Draft7Validator.check_schema(schema)
        cls.validator = jsonschema.Draft7Validator(schema)
        cls.first = tomllib.loads((ROOT / "examples/01_mixture/study.toml").read_text())
        cls.second = tomllib.loads((ROOT / "examples/02_multidimensional/study.toml").read_text())

    def fits(self, study):
        errors = [f"{list(error.absolute_path)}: {error.message[:300]}"
                  for error in self.validator.iter_errors(study)]
        self.assertEqual(errors, [])

    def refuses(self, study):
        self.assertFalse(self.validator.is_valid(study))

    def test_all_examples_fit(self):
        studies = sorted((ROOT / "examples").rglob("*.toml"))
        self.assertGreater(len(studies), 6)
        for path in studies:
            with self.subTest(path.name):
                self.fits(tomllib.loads(path.read_text()))

    # Studies that `neyman check` refuses for what a schema cannot know: values of other keys, the
    # content of files, what formulas say, which kind of study it is.
    BEYOND = """
        across_design_correlation across_design_covariance across_design_log across_design_log_range
        across_range_open across_range_open_truth across_range_open_uniform
        across_calibrator_kind across_design_grid_points across_design_one_point
        across_design_table_outside across_of_separable across_parameter_unused
        across_simulator_undefined across_too_few_samples compare_across components_dimensions
        components_same_name contours_unknown_parameter coverage_point_outside data_and_no_truth
        data_column_missing data_features data_file_is_a_folder data_file_missing data_not_finite
        data_other_names data_weights_missing diagnostics_against_outside ensemble_point_outside hypothesis_outside
        hypothesis_unknown_parameter level_extreme mixture_with_one_model_keys
        not_a_number parameter_name parameter_named_like_a_function range_reversed
        reference_outside_range reference_unknown_parameter test_null_is_alternative
        too_few_samples truth_outside_range weight_assignment weight_syntax_error
        weight_unknown_parameter weights_constant weights_negative_at_end weights_sum
        weights_too_few""".split()

    def test_broken_studies_are_refused_where_a_schema_can_say_so(self):
        for path in sorted((HERE / "broken").glob("*.toml")):
            with self.subTest(path.name):
                try:
                    study = tomllib.loads(path.read_text())
                except tomllib.TOMLDecodeError:
                    continue
                self.assertEqual(self.validator.is_valid(study), path.stem in self.BEYOND)

    def changed(self, study, path, value):
        out = copy.deepcopy(study)
        table = out
        *way, key = path.split(".")
        for name in way:
            table = table.setdefault(name, {})
        table[key] = value
        return out

    def test_a_range_has_exactly_two_values(self):
        self.fits(self.changed(self.first, "parameters.gamma.range", [0, 1]))
        for wrong in ([], [0], [0, 0.5, 1], ["0", "1"], 1):
            self.refuses(self.changed(self.first, "parameters.gamma.range", wrong))

    def test_whole_numbers(self):
        self.fits(self.changed(self.first, "training.samples", 1e6))
        for wrong in (0, 0.5, "many", True, [1]):
            self.refuses(self.changed(self.first, "training.samples", wrong))

    def test_components_may_be_nested(self):
        normal = {"kind": "normal", "mean": "gamma", "sigma": 1}
        deep = {"kind": "mixture", "weights": [0.5],
                "components": [{"name": "a", **normal},
                               {"kind": "mixture", "weights": [0.1], "components": [normal, normal]}]}
        self.fits(self.changed(self.first, "simulator", deep))
        deep["components"][1]["components"][1] = {**normal, "sgima": 1}
        self.refuses(self.changed(self.first, "simulator", deep))
        deep["components"][1]["components"][1] = {"kind": "exponential", "mean": 1}
        self.refuses(self.changed(self.first, "simulator", deep))
        joined = {"kind": "join", "parts": [{"kind": "linear-transform", "matrix": [[1]],
                                             "of": {"kind": "join", "parts": [normal]}}]}
        self.fits(self.changed(self.first, "simulator", joined))
        joined["parts"][0]["of"]["parts"][0] = {"name": "a", **normal}  # only components have names
        self.refuses(self.changed(self.first, "simulator", joined))

    def test_a_histogram_has_counts_or_a_file(self):
        for own in ({"edges": [0, 1, 2], "counts": [3, 4]},
                    {"edges": [[0, 1], [0, 1, 2]], "counts": [3, 4]},
                    {"file": "events.csv", "binning": "bayesian-blocks"}):
            self.fits(self.changed(self.first, "simulator", {"kind": "histogram", **own}))
        self.refuses(self.changed(self.first, "simulator", {"kind": "kde"}))
        for width in ("scott", 0.5, [0.5, 1]):
            self.fits(self.changed(self.first, "simulator",
                                   {"kind": "kde", "file": "events.csv", "bandwidth": width}))

    def test_constraints(self):
        for own in ({"kind": "gaussian", "mean": 1, "sigma": 0.1}, {"kind": "poisson", "count": 3},
                    {"kind": "log-normal", "mean": 1, "kappa": 1.1}):
            self.fits(self.changed(self.second, "parameters.alpha.constraint", own))
        for own in ({"kind": "gaussian", "mean": 1}, {"mean": 1, "sigma": 0.1},
                    {"kind": "log-normal", "mean": 1, "kappa": 1}):
            self.refuses(self.changed(self.second, "parameters.alpha.constraint", own))

    def test_members_of_ensembles(self):
        for of in ("mlp", {"kind": "mlp", "epochs": 3}, [{"kind": "logistic"}, {"kind": "mlp"}],
                   {"kind": "ensemble", "of": {"kind": "logistic", "l2": 0.1}}):
            self.fits(self.changed(self.first, "classifier", {"kind": "ensemble", "of": of}))
        for of in ("mpl", {"kind": "logistic", "epochs": 3}, [{"kind": "separable"}], 3,
                   {"kind": "ensemble", "of": {"kind": "logistic", "l3": 0.1}}):
            self.refuses(self.changed(self.first, "classifier", {"kind": "ensemble", "of": of}))

    def test_keys_belong_to_a_kind(self):
        self.fits(self.changed(self.second, "classifier", {"kind": "separable", "degree": 3}))
        self.fits(self.changed(self.second, "classifier", {"degree": 3}))
        self.refuses(self.changed(self.second, "classifier", {"kind": "mlp", "degree": 3}))
        self.refuses(self.changed(self.second, "classifier", {"kind": "separable", "l2": 0.1}))
        self.fits(self.changed(self.second, "training.design", "sobol"))
        self.fits(self.changed(self.second, "training.design", {"kind": "grid", "points": [3, 3]}))
        self.fits(self.changed(self.second, "training.design",
                               {"kind": "grid", "points": {"alpha": 3, "beta": 3}}))
        self.refuses(self.changed(self.second, "training.design", {"kind": "grid"}))
        self.refuses(self.changed(self.second, "training.design", {"kind": "sobol", "points": [3]}))
        self.fits(self.changed(self.second, "diagnostics.which", "all"))
        self.fits(self.changed(self.second, "diagnostics.which", ["closure"]))
        self.refuses(self.changed(self.second, "diagnostics.which", ["clozure"]))
        self.refuses(self.changed(self.second, "inference.contours", [["alpha"]]))

    def test_defaults_are_of_their_own_type(self):
        schema, found = self.validator.schema, 0

        def look(part):
            nonlocal found
            if isinstance(part, dict):
                if "default" in part and "description" in part:
                    found += 1
                    jsonschema.validate(part["default"],
                                        {**part, "definitions": schema["definitions"]},
                                        jsonschema.Draft7Validator)
                part = list(part.values())
            for value in part if isinstance(part, list) else []:
                look(value)

        look(schema)
        self.assertGreater(found, 100)


if __name__ == "__main__":
    options = program.start(program.parser())
    if jsonschema is None and options.groups == ["Schema"]:
        print("python3-jsonschema is not installed")
        sys.exit(77)
    program.run(options)
