"""Methods that a benchmark compares, by name, with options: "separable degree=3 hidden=[64,64]"."""

import ast

LEARNERS = {"separable": "SeparableRatio", "density": "DensityRatio", "learned": "LearnedRatio"}


def learners():
    """{name: the class} of those that this version of the package has."""
    import neyman

    return {name: getattr(neyman, kind) for name, kind in LEARNERS.items() if hasattr(neyman, kind)}


def with_options(text, known):
    """The function of "name option=value …": the known one of that name, with these options."""
    name, *options = text.split()
    given = {}
    for option in options:
        key, equal, value = option.partition("=")
        if not equal:
            raise ValueError(f"'{option}' of the method '{text}' is no option=value")
        try:
            given[key] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            given[key] = value
    if name not in known:
        raise ValueError(f"the method '{name}' is not among {', '.join(known)}")
    return lambda *arguments: known[name](*arguments, **given)
