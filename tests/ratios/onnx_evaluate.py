"""Checks a graph of export_onnx and compares its values with those of neyman.

    onnx_evaluate.py <graph.onnx> <case.json> <tolerance>

The case holds inputs and outputs by name, the latter as neyman has them. Evaluates with ONNX's reference and
with onnxruntime where they are installed, and always with the few operators written out below in
NumPy, which serve where ONNX is older than its reference (before 1.13). Exit status 1 where a value
is off by more than the tolerance, 77 without ONNX.
"""

import json
import sys

import numpy as np

try:
    import onnx
    from onnx import numpy_helper
except ImportError:
    print("the Python package onnx is not installed")
    sys.exit(77)

np.seterr(over="ignore")
TYPES = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.DOUBLE: np.float64}


def gemm(a, b, c, transB=0):
    return a @ (b.T if transB else b) + c


def gather(table, indices, axis=0):
    assert indices.min() >= 0 and indices.max() < table.shape[axis]
    return np.take(table, indices, axis=axis)


def trees(x, nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, nodes_values,
          nodes_truenodeids, nodes_falsenodeids, target_treeids, target_nodeids, target_ids,
          target_weights, n_targets):
    assert n_targets == 1 and set(target_ids) == {0}
    nodes = {}
    for at, key in enumerate(zip(nodes_treeids, nodes_nodeids)):
        nodes[key] = at
    leaves = dict(zip(zip(target_treeids, target_nodeids), target_weights))
    out = np.zeros((len(x), 1))
    for tree in sorted(set(nodes_treeids)):
        for i, row in enumerate(x):
            node = 0
            while nodes_modes[nodes[tree, node]] == b"BRANCH_LT":
                at = nodes[tree, node]
                below = row[nodes_featureids[at]] < nodes_values[at]
                node = nodes_truenodeids[at] if below else nodes_falsenodeids[at]
            out[i] += leaves[tree, node]
    return out.astype(np.float32)


OPERATORS = {
    "Abs": np.abs,
    "Add": np.add,
    "Cast": lambda a, to: a.astype(TYPES[to]),
    "Clip": lambda a, low, high: np.clip(a, low, high),
    "Concat": lambda *a, axis: np.concatenate(a, axis=axis),
    "Cos": np.cos,
    "Div": np.divide,
    "Exp": np.exp,
    "Expand": lambda a, shape: np.broadcast_to(a, np.broadcast_shapes(a.shape, tuple(shape))),
    "Gather": gather,
    "Gemm": gemm,
    "Greater": np.greater,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Log": np.log,
    "MatMul": np.matmul,
    "Max": np.maximum,
    "Mul": np.multiply,
    "Neg": np.negative,
    "Pow": np.power,
    "Reciprocal": lambda a: 1 / a,
    "ReduceSum": lambda a, axes: a.sum(axis=tuple(axes), keepdims=True),
    "Relu": lambda a: np.maximum(a, a.dtype.type(0)),
    "Reshape": lambda a, shape: a.reshape(shape),
    "Shape": lambda a: np.array(a.shape, dtype=np.int64),
    "Sigmoid": lambda a: 1 / (1 + np.exp(-a)),
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Sin": np.sin,
    "Sub": np.subtract,
    "Tanh": np.tanh,
    "TreeEnsembleRegressor": trees,
    "Where": np.where,
}


def attribute_value(attribute):
    value = onnx.helper.get_attribute_value(attribute)
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def by_numpy(model, inputs):
    values = dict(inputs)
    for constant in model.graph.initializer:
        values[constant.name] = numpy_helper.to_array(constant)
    for node in model.graph.node:
        attributes = {a.name: attribute_value(a) for a in node.attribute}
        values[node.output[0]] = OPERATORS[node.op_type](*(values[n] for n in node.input),
                                                         **attributes)
    return [values[output.name] for output in model.graph.output]


def by_reference(model, inputs):
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(model).run(None, inputs)


def by_runtime(model, inputs):
    import onnxruntime
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


def arrays(values):
    return {name: np.array(value, dtype=np.float64) for name, value in values.items()}


def main(path, case, tolerance):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    with open(case, encoding="utf-8") as file:
        case = json.load(file)
    inputs, outputs = arrays(case["inputs"]), arrays(case["outputs"])
    for what, have, must in (("inputs", model.graph.input, inputs),
                             ("outputs", model.graph.output, outputs)):
        named = [value.name for value in have]
        if sorted(named) != sorted(must):
            print(f"the {what} are {named}, but must be {sorted(must)}")
            return 1
    failed = False
    for evaluate in (by_numpy, by_reference, by_runtime):
        try:
            found = evaluate(model, inputs)
        except ImportError:
            continue
        for value, output in zip(found, model.graph.output):
            expected = outputs[output.name]
            if value.shape != expected.shape or value.dtype != np.float64:
                print(f"{evaluate.__name__}: {output.name} is {value.dtype} of shape {value.shape}")
                return 1
            worst = np.abs(value - expected).max()
            print(f"{evaluate.__name__}: {output.name}: largest difference {worst:.2g} of values "
                  f"up to {np.abs(expected).max():.3g}")
            failed = failed or not worst <= tolerance
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
