"""Weights in ONNX files. An exporter that folds transposes loses the names of matrices (`onnx::MatMul_123`), but not those of the biases
that are added to their products: a matrix W whose product feeds an Add with `X.bias` is the transpose of `X.weight`."""
from .arrays import Array, Refused
from .protobuf import fields, numbers, text

TYPES = {1: "F32", 2: "U8", 6: "I32", 7: "I64", 9: "BOOL", 10: "F16", 11: "F64", 16: "BF16"}


class Node:
    def __init__(self, message):
        parts = fields(message)
        self.inputs, self.outputs = ([text(name) for name in parts.get(n, [])] for n in (1, 2))
        self.name, self.op = (text((parts.get(n) or [b""])[0]) for n in (3, 4))
        self.attributes = {}
        for attribute in parts.get(5, []):
            of = fields(attribute)
            self.attributes[text((of.get(1) or [b""])[0])] = of


def tensor(message):
    """(name, array) of a TensorProto."""
    parts = fields(message)
    name, kind = text((parts.get(8) or [b""])[0]), (parts.get(2) or [0])[0]
    if kind not in TYPES:
        raise Refused(f"onnx: expected numbers of type {', '.join(TYPES.values())} for {name}, got type {kind}")
    if 13 in parts or (parts.get(14) or [0])[0] != 0:
        raise Refused(f"onnx: expected the numbers of {name} in the file, got a name of another")
    shape = numbers(parts.get(1, []))
    if 9 in parts:
        data = parts[9][0]
    elif kind == 1 and 4 in parts:
        data = b"".join(bytes(value) for value in parts[4])
    elif kind == 7 and 7 in parts:
        data = b"".join((number & (1 << 64) - 1).to_bytes(8, "little") for number in numbers(parts[7]))
    else:
        data = b""
    return name, Array(TYPES[kind], shape, data)


def read_onnx(data):
    """(arrays by name, nodes) of the bytes of a model."""
    model = fields(memoryview(data))
    if 7 not in model or isinstance(model[7][0], int):
        raise Refused("onnx: expected a model with a graph, found none")
    graph = fields(model[7][0])
    arrays = dict(tensor(message) for message in graph.get(5, []))
    nodes = [Node(message) for message in graph.get(1, [])]
    for node in nodes:
        # A constant is a node in some files.
        if node.op == "Constant" and "value" in node.attributes and node.outputs:
            arrays.setdefault(node.outputs[0], tensor(node.attributes["value"][5][0])[1])
    return arrays, nodes


def named_matrices(arrays, nodes):
    """All arrays with names of their own, and the matrices of products under the names of their biases, as rows of outputs."""
    users = {}
    for node in nodes:
        for name in node.inputs:
            users.setdefault(name, []).append(node)
    named, matched = {}, set()
    for node in nodes:
        matrix = next((name for name in node.inputs if name in arrays), None) if node.op == "MatMul" else None
        if matrix is None:
            continue
        for add in users.get(node.outputs[0], []):
            bias = [name for name in add.inputs if add.op == "Add" and name in arrays and name.endswith(".bias")]
            if bias:
                named[bias[0].removesuffix("bias") + "weight"] = arrays[matrix].transposed()
                matched.add(matrix)
    lost = [name for name, a in arrays.items() if name.startswith("onnx::MatMul") and name not in matched]
    if lost:
        raise Refused(f"onnx: expected every matrix beside a bias, got {', '.join(lost[:3])} without")
    return {name: a for name, a in arrays.items() if name not in matched} | named
