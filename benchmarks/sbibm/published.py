"""Published accuracies of the benchmark: C2ST, the mean over the ten observations.

    published("NRE-C", "slcp", 10_000)          # a number, or None where there is none

METHODS says what each is and where it comes from. Of methods that were run with several seeds it is the
median over the seeds, so that a training that failed (NRE-C on SIR, one of five) spoils nothing. The
Gaussian mixture is the task as it is since sbibm 1.1, of NRE-C perhaps the one before. FMPE (Wildberger
et al. 2023) is not here: its figures are published as a plot alone.

    python3 benchmarks/sbibm/published.py FOLDER

computes TABLE from main_paper.csv, gaussian_mixture_rerun.csv (both github.com/sbi-benchmark/results),
fix-sbibm.csv (github.com/bkmi/cnre, infinite/) and summary.csv (github.com/mackelab/npe-pfn, branch
main_experiments, main_results/sbibm/) in that folder, and prints it.
"""

BUDGETS = (1000, 10_000, 100_000)

PAPER = "Lueckmann et al. 2021"
LATER = "Vetter et al. 2025"
METHODS = {  # name → (what it is, where from); one network for all observations each
    "NRE": ("NRE-B with 10 atoms, a residual network", PAPER),
    "NRE-C": ("99 contrasts, a residual network of 3 × 128",
              "Miller et al. 2022, runs of 2024 in the paper's repository"),
    "NLE": ("masked autoregressive flow", PAPER),
    "NPE": ("neural spline flow", PAPER),
    "NRE′": ("NRE-B, a network of sbi's default size", LATER),
    "NLE′": ("masked autoregressive flow", LATER),
    "NPE′": ("neural spline flow", LATER),
    "5 NPE′": ("five neural spline flows", LATER),
    "NPE-PFN": ("a transformer trained beforehand on other tables", LATER),
}

TABLE = """
NRE
  two_moons                0.822 0.761 0.629
  gaussian_mixture         0.777 0.748 0.735
  gaussian_linear          0.672 0.560 0.536
  gaussian_linear_uniform  0.788 0.706 0.631
  slcp                     0.972 0.947 0.919
  slcp_distractors         0.980 0.968 0.953
  bernoulli_glm            0.899 0.812 0.751
  bernoulli_glm_raw        0.915 0.834 0.777
  lotka_volterra           1.000 0.998 0.996
  sir                      0.841 0.770 0.690
NRE-C
  two_moons                0.701 0.595 0.545
  gaussian_mixture         0.749 0.749 0.738
  gaussian_linear          0.639 0.557 0.519
  gaussian_linear_uniform  0.729 0.639 0.554
  slcp                     0.971 0.905 0.773
  slcp_distractors         0.980 0.958 0.789
  bernoulli_glm            0.799 0.696 0.601
  bernoulli_glm_raw        0.924 0.768 0.631
  lotka_volterra           0.998 0.984 0.970
  sir                      0.746 0.660 0.603
NLE
  two_moons                0.773 0.713 0.668
  gaussian_mixture         0.740 0.723 0.690
  gaussian_linear          0.650 0.555 0.515
  gaussian_linear_uniform  0.723 0.548 0.506
  slcp                     0.946 0.771 0.699
  slcp_distractors         0.987 0.961 0.905
  bernoulli_glm            0.740 0.605 0.545
  bernoulli_glm_raw        0.870 0.939 0.951
  lotka_volterra           0.994 0.956 0.952
  sir                      0.761 0.748 0.730
NPE
  two_moons                0.725 0.606 0.542
  gaussian_mixture         0.716 0.615 0.548
  gaussian_linear          0.694 0.552 0.506
  gaussian_linear_uniform  0.696 0.553 0.509
  slcp                     0.975 0.901 0.831
  slcp_distractors         0.982 0.970 0.863
  bernoulli_glm            0.863 0.678 0.559
  bernoulli_glm_raw        0.900 0.765 0.607
  lotka_volterra           0.999 0.997 0.981
  sir                      0.815 0.680 0.585
NRE′
  two_moons                0.900 0.816 0.727
  gaussian_mixture         0.697 0.674 0.670
  gaussian_linear          0.677 0.599 0.542
  gaussian_linear_uniform  0.783 0.616 0.603
  slcp                     0.964 0.894 0.850
  slcp_distractors         0.973 0.913   -
  bernoulli_glm            0.927 0.844 0.750
  bernoulli_glm_raw        0.928 0.855 0.783
  lotka_volterra           0.999 0.997 0.994
  sir                      0.914 0.813 0.724
NLE′
  two_moons                0.692 0.600 0.537
  gaussian_mixture         0.715 0.693 0.577
  gaussian_linear          0.625 0.556 0.522
  gaussian_linear_uniform  0.630 0.554 0.524
  slcp                     0.906 0.752 0.609
  slcp_distractors         0.985 0.927   -
  bernoulli_glm            0.737 0.646 0.579
  bernoulli_glm_raw        0.883 0.915 0.966
  lotka_volterra           0.990 0.962 0.789
  sir                      0.870 0.717 0.626
NPE′
  two_moons                0.703 0.550 0.523
  gaussian_mixture         0.674 0.540 0.514
  gaussian_linear          0.749 0.598 0.532
  gaussian_linear_uniform  0.749 0.607 0.544
  slcp                     0.968 0.866 0.717
  slcp_distractors         0.978 0.921   -
  bernoulli_glm            0.882 0.691 0.594
  bernoulli_glm_raw        0.906 0.780 0.654
  lotka_volterra           0.997 0.968 0.875
  sir                      0.704 0.556 0.519
5 NPE′
  two_moons                0.675 0.542 0.515
  gaussian_mixture         0.644 0.530 0.507
  gaussian_linear          0.714 0.573 0.516
  gaussian_linear_uniform    -     -     -
  slcp                     0.966 0.850 0.687
  slcp_distractors           -     -     -
  bernoulli_glm            0.867 0.656 0.560
  bernoulli_glm_raw          -     -     -
  lotka_volterra           0.998 0.964 0.863
  sir                      0.678 0.545 0.513
NPE-PFN
  two_moons                0.696 0.632 0.546
  gaussian_mixture         0.718 0.678 0.557
  gaussian_linear          0.547 0.523 0.520
  gaussian_linear_uniform  0.553 0.544 0.530
  slcp                     0.898 0.866 0.810
  slcp_distractors           -     -     -
  bernoulli_glm            0.749 0.629 0.572
  bernoulli_glm_raw        0.781 0.685 0.685
  lotka_volterra           0.930 0.834 0.694
  sir                      0.580 0.536 0.514
"""


def _read():
    out, method = {}, None
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            method = line
            continue
        task, *values = line.split()
        for budget, value in zip(BUDGETS, values):
            if value != "-":
                out[method, task, budget] = float(value)
    return out


_figures = _read()


def published(method, task, budget):
    return _figures.get((method, task, int(budget)))


def computed(folder):
    """{(method, task, budget): C2ST} from the files."""
    import csv
    import json
    import pathlib
    from statistics import mean, median

    csv.field_size_limit(1 << 30)

    def rows(name):
        with open(pathlib.Path(folder) / name, encoding="utf-8") as file:
            yield from csv.DictReader(file)

    values = {}  # a list of seeds each, of which the paper has one
    of_budget = {"10³": 1000, "10⁴": 10_000, "10⁵": 100_000}
    by_observation = {}
    for name in ("main_paper.csv", "gaussian_mixture_rerun.csv"):
        for row in rows(name):
            if row["algorithm"] in ("NRE", "NLE", "NPE") and (
                    name != "main_paper.csv" or row["task"] != "gaussian_mixture"):
                key = row["algorithm"], row["task"], of_budget[row["num_simulations"]]
                by_observation.setdefault(key, []).append(float(row["C2ST"]))
    for key, found in by_observation.items():
        assert len(found) == 10, key
        values[key] = [mean(found)]
    for row in rows("fix-sbibm.csv"):
        key = "NRE-C", row["task"], int(float(row["num_simulations_simulator"]))
        values.setdefault(key, []).append(mean(float(row[f"C2ST_Z-{i:02d}"]) for i in range(1, 11)))
    names = {"nre": "NRE′", "nle": "NLE′", "npe": "NPE′", "npe_ensemble": "5 NPE′",
             "filtered_tabpfn": "NPE-PFN"}
    for row in rows("summary.csv"):
        if row["metric"] == "c2st" and row["method"] in names:
            key = names[row["method"]], row["task"], int(row["num_simulations"])
            values.setdefault(key, []).append(mean(json.loads(row["value"])))
    return {key: median(seeds) for key, seeds in values.items()}


def main(folder):
    from tasks import TASKS

    found = computed(folder)
    for method in METHODS:
        print(method)
        for task in TASKS:
            numbers = [found.get((method, task, budget)) for budget in BUDGETS]
            print(f"  {task:<24}", *("  -  " if number is None else f"{number:.3f}"
                                     for number in numbers))


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
