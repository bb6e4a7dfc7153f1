"""llama.cpp, from the npm package @node-llama-cpp/linux-x64 below $ISOMER_BENCH_NPM: its defaults, on a GGUF file of the weights."""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int32, c_uint32, c_void_p
import glob

import numpy as np

from peers.ggml import PACKAGE, version
from peers.models import Server
from peers.worker import Skip, serve

# What llama_context_default_params() begins with. The rest of the structures differs from release to release and stays as it is:
# they are passed in memory, so that one that is too large does no harm.
BATCH, MICRO_BATCH = 2048, 512


class Opaque(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 1024)]


class ContextParams(ctypes.Structure):
    _fields_ = [("n_ctx", c_uint32), ("n_batch", c_uint32), ("n_ubatch", c_uint32), ("rest", ctypes.c_char * 1012)]


class Batch(ctypes.Structure):
    _fields_ = [("n_tokens", c_int32), ("token", c_void_p), ("embd", c_void_p), ("pos", c_void_p), ("n_seq_id", c_void_p),
                ("seq_id", c_void_p), ("logits", c_void_p)]


SIGNATURES = {
    "llama_backend_init": (None, []),
    "llama_model_default_params": (Opaque, []),
    "llama_context_default_params": (ContextParams, []),
    "llama_model_load_from_file": (c_void_p, [c_char_p, Opaque]),
    "llama_init_from_model": (c_void_p, [c_void_p, ContextParams]),
    "llama_set_n_threads": (None, [c_void_p, c_int32, c_int32]),
    "llama_model_get_vocab": (c_void_p, [c_void_p]),
    "llama_vocab_n_tokens": (c_int32, [c_void_p]),
    "llama_batch_get_one": (Batch, [POINTER(c_int32), c_int32]),
    "llama_decode": (c_int32, [c_void_p, Batch]),
    "llama_get_logits_ith": (POINTER(c_float), [c_void_p, c_int32]),
    "llama_get_memory": (c_void_p, [c_void_p]),
    "llama_memory_clear": (None, [c_void_p, c_bool]),
}


def library():
    folder = PACKAGE / "bins" / "linux-x64"
    found = [sorted(glob.glob(str(folder / name))) for name in ("libggml-base*.so", "libggml.*so", "libllama.*so")]
    if not all(found):
        raise Skip("llama.cpp is not installed")
    base, front, llama = (ctypes.CDLL(paths[0], mode=ctypes.RTLD_GLOBAL) for paths in found)
    front.ggml_backend_load_all_from_path(str(folder).encode())
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(llama, name)
        function.restype, function.argtypes = result, arguments
    return llama


class Model:
    def __init__(self, case):
        if "gguf" not in case["files"]:
            raise Skip("llama.cpp has no head for masked words")
        self.api = library()
        self.api.llama_backend_init()
        self.model = self.api.llama_model_load_from_file(case["files"]["gguf"].encode(), self.api.llama_model_default_params())
        params = self.api.llama_context_default_params()
        if (params.n_batch, params.n_ubatch) != (BATCH, MICRO_BATCH):
            raise Skip(f"another llama.h: batches of {params.n_batch} and {params.n_ubatch}")
        params.n_ctx = case["room"]
        self.context = self.model and self.api.llama_init_from_model(self.model, params)
        if not self.context:
            raise Skip("llama.cpp does not load the file")
        self.api.llama_set_n_threads(self.context, case["threads"], case["threads"])
        self.vocabulary = self.api.llama_vocab_n_tokens(self.api.llama_model_get_vocab(self.model))

    def read(self, tokens):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), False)
        return self.decode(tokens)

    def say(self, token):
        return self.decode([token])

    def decode(self, tokens):
        array = (c_int32 * len(tokens))(*tokens)
        if self.api.llama_decode(self.context, self.api.llama_batch_get_one(array, len(tokens))) != 0:
            raise Skip("llama_decode failed")
        return np.ctypeslib.as_array(self.api.llama_get_logits_ith(self.context, -1), (self.vocabulary,))


if __name__ == "__main__":
    serve(Server(Model, version).answer)
