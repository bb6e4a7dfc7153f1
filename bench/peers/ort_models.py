"""ONNX Runtime on the CPU: a Llama or BERT of its fused operators, as its own builders and optimiser make them, from a folder's weights."""

import json
import pathlib

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

import model_files
from peers.models import Server
from peers.worker import Skip, serve

FLOAT, INT64, INT32 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.INT32
FUSED = "com.microsoft"


class Graph:
    """Nodes in the order they are added; weights are given to the session from memory, not copied into the model."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initial, self.constants = weights, [], {}, []

    def weight(self, name, array):
        if name not in self.initial:
            self.initial[name] = np.ascontiguousarray(array, np.float32)
        return name

    def constant(self, name, array):
        tensor = helper.make_tensor(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.flatten().tolist())
        self.constants.append(tensor)
        return name

    def add(self, op, inputs, outputs=1, domain="", **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)] if isinstance(outputs, int) else outputs
        self.nodes.append(helper.make_node(op, inputs, names, domain=domain, **attributes))
        return names[0] if len(names) == 1 else names

    def linear(self, x, name, bias=False):
        """x · weightᵀ: the weight is turned once, here."""
        y = self.add("MatMul", [x, self.weight(f"{name}.turned", self.weights[f"{name}.weight"].T)])
        return self.add("Add", [y, self.weight(f"{name}.bias", self.weights[f"{name}.bias"])]) if bias else y

    def session(self, inputs, outputs, threads):
        infos = [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs]
        results = [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs]
        tensors, values = list(self.constants), []
        for name, array in self.initial.items():
            tensor = TensorProto(name=name, data_type=FLOAT, dims=array.shape, data_location=TensorProto.EXTERNAL)
            for key, value in (("location", "memory"), ("offset", "0"), ("length", str(array.nbytes))):
                tensor.external_data.add(key=key, value=value)
            tensors.append(tensor)
            values.append(onnxruntime.OrtValue.ortvalue_from_numpy(array))
        model = helper.make_model(helper.make_graph(self.nodes, "model", infos, results, tensors),
                                  opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)], ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.add_external_initializers(list(self.initial), values)
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class Llama:
    """Keys and values stay in buffers that a step writes to in place, as GroupQueryAttention wants them."""

    def __init__(self, case, config):
        self.layers, self.heads, self.groups = (config[f"num_{name}"] for name in ("hidden_layers", "attention_heads", "key_value_heads"))
        self.size, self.room = config["hidden_size"] // self.heads, case["room"]
        graph = Graph({name: model_files.widened(array) for name, array in model_files.read(case["model"]).items()})
        self.build(graph, config)
        past = [(f"past_{part}_{i}", FLOAT, [1, self.groups, None, self.size]) for i in range(self.layers) for part in "kv"]
        self.session = graph.session([("tokens", INT64, [1, None]), ("lengths", INT32, [1]), ("total", INT32, []), *past],
                                     ["logits", *[f"present_{part}_{i}" for i in range(self.layers) for part in "kv"]], case["threads"])
        self.cache = [onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros((1, self.groups, self.room, self.size), np.float32))
                      for _ in range(2 * self.layers)]

    def build(self, graph, config):
        angles = np.arange(self.room)[:, None] * config.get("rope_theta", 1e4) ** (-np.arange(0, self.size, 2) / self.size)
        cos, sin = graph.weight("cos", np.cos(angles)), graph.weight("sin", np.sin(angles))
        norm = {"axis": -1, "epsilon": config["rms_norm_eps"], "domain": FUSED}
        table = graph.weight("embedding", graph.weights["model.embed_tokens.weight"])
        x = graph.add("Gather", [table, "tokens"])
        skip = None
        for i in range(self.layers):
            at = f"model.layers.{i}."
            x, skip = self.normed(graph, x, skip, at + "input_layernorm", norm)
            q, k, v = (graph.linear(x, f"{at}self_attn.{part}_proj") for part in "qkv")
            y, *_ = graph.add("GroupQueryAttention", [q, k, v, f"past_k_{i}", f"past_v_{i}", "lengths", "total", cos, sin],
                              [f"mixed_{i}", f"present_k_{i}", f"present_v_{i}"], FUSED, num_heads=self.heads, kv_num_heads=self.groups,
                              do_rotary=1)
            x = graph.linear(y, at + "self_attn.o_proj")
            x, skip = self.normed(graph, x, skip, at + "post_attention_layernorm", norm)
            gate, up = (graph.linear(x, f"{at}mlp.{part}_proj") for part in ("gate", "up"))
            gate = graph.add("Mul", [gate, graph.add("Sigmoid", [gate])])
            x = graph.linear(graph.add("Mul", [gate, up]), at + "mlp.down_proj")
        x, _ = self.normed(graph, x, skip, "model.norm", norm)
        x = graph.add("Gather", [x, graph.constant("last", np.array([-1], np.int64))], axis=1)
        graph.add("MatMul", [x, graph.weight("head", graph.weights["model.embed_tokens.weight"].T)], ["logits"])

    @staticmethod
    def normed(graph, x, skip, name, options):
        """The norm of x + skip, and the sum."""
        weight = graph.weight(name, graph.weights[name + ".weight"])
        if skip is None:
            return graph.add("SimplifiedLayerNormalization", [x, weight], axis=-1, epsilon=options["epsilon"]), x
        y, _, _, total = graph.add("SkipSimplifiedLayerNormalization", [x, skip, weight], 4, FUSED, epsilon=options["epsilon"])
        return y, total

    def read(self, tokens):
        self.seen = 0
        return self.run(tokens)

    def say(self, token):
        return self.run([token])

    def run(self, tokens):
        self.seen += len(tokens)
        binding = self.session.io_binding()
        binding.bind_cpu_input("tokens", np.array([tokens], np.int64))
        binding.bind_cpu_input("lengths", np.array([self.seen - 1], np.int32))
        binding.bind_cpu_input("total", np.array(self.seen, np.int32))
        binding.bind_output("logits")
        for i, value in enumerate(self.cache):
            part, layer = "kv"[i % 2], i // 2
            binding.bind_ortvalue_input(f"past_{part}_{layer}", value)
            binding.bind_ortvalue_output(f"present_{part}_{layer}", value)
        self.session.run_with_iobinding(binding)
        return binding.get_outputs()[0].numpy()[0, -1]


class Bert:
    def __init__(self, case, config):
        graph = Graph({name: model_files.widened(array) for name, array in model_files.read(case["model"]).items()})
        self.heads, self.epsilon = config["num_attention_heads"], config["layer_norm_eps"]
        self.build(graph, config)
        self.session = graph.session([("tokens", INT64, [1, None]), ("places", INT64, [1, None])], ["logits"], case["threads"])

    def build(self, graph, config):
        weights = graph.weights
        words = graph.add("Gather", [graph.weight("words", weights["bert.embeddings.word_embeddings.weight"]), "tokens"])
        places = graph.add("Gather", [graph.weight("places_table", weights["bert.embeddings.position_embeddings.weight"]), "places"])
        types = graph.weight("types", weights["bert.embeddings.token_type_embeddings.weight"][0])
        x = self.normed(graph, graph.add("Add", [graph.add("Add", [words, places]), types]), "bert.embeddings.LayerNorm")
        for i in range(config["num_hidden_layers"]):
            at = f"bert.encoder.layer.{i}."
            q, k, v = (graph.linear(x, f"{at}attention.self.{part}", True) for part in ("query", "key", "value"))
            y = graph.add("MultiHeadAttention", [q, k, v], domain=FUSED, num_heads=self.heads)
            x = self.added(graph, graph.linear(y, at + "attention.output.dense"), x, at + "attention.output")
            y = self.gelu(graph, x, at + "intermediate.dense")
            x = self.added(graph, graph.linear(y, at + "output.dense"), x, at + "output")
        x = self.normed(graph, self.gelu(graph, x, "cls.predictions.transform.dense"), "cls.predictions.transform.LayerNorm")
        y = graph.add("MatMul", [x, graph.weight("head", weights["bert.embeddings.word_embeddings.weight"].T)])
        graph.add("Add", [y, graph.weight("head_bias", weights["cls.predictions.bias"])], ["logits"])

    @staticmethod
    def gelu(graph, x, name):
        return graph.add("BiasGelu", [graph.linear(x, name), graph.weight(f"{name}.bias", graph.weights[f"{name}.bias"])], domain=FUSED)

    def gains(self, graph, name):
        return [graph.weight(f"{name}.{part}", graph.weights[f"{name}.{part}"]) for part in ("weight", "bias")]

    def normed(self, graph, x, name):
        return graph.add("LayerNormalization", [x, *self.gains(graph, name)], axis=-1, epsilon=self.epsilon)

    def added(self, graph, x, skip, name):
        bias = graph.weight(f"{name}.dense.bias", graph.weights[f"{name}.dense.bias"])
        return graph.add("SkipLayerNormalization", [x, skip, *self.gains(graph, f"{name}.LayerNorm"), bias], domain=FUSED, epsilon=self.epsilon)

    def read(self, tokens):
        places = np.arange(len(tokens), dtype=np.int64)[None]
        return self.session.run(["logits"], {"tokens": np.array([tokens], np.int64), "places": places})[0][0, -1]


def make(case):
    if case["weights"] != "float32":
        raise Skip("ONNX Runtime's CPU has no bfloat16 products")
    config = json.loads((pathlib.Path(case["model"]) / "config.json").read_text())
    return (Llama if case["kind"] == "language" else Bert)(case, config)


if __name__ == "__main__":
    serve(Server(make, lambda: f"ONNX Runtime {onnxruntime.__version__}").answer)
