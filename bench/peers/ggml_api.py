"""The part of ggml's C API that the peer calls, by ctypes from the libraries inside the npm package.

Shapes are ggml's: fastest axis first, so a numpy array [B, T, H, D] is a tensor of ne = (D, H, T, B).
"""

import ctypes
import glob
import os
from ctypes import POINTER, c_bool, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint32, c_void_p

import numpy as np

TENSOR_OVERHEAD = 4096  # more than sizeof(ggml_tensor) plus its object header, in every release so far
GRAPH_BYTES = 1 << 20
KINDS = {np.dtype(np.float32): 0, np.dtype(np.float16): 1, np.dtype(np.int32): 26}
CPU_DEVICE = 0


class InitParams(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("buffer", c_void_p), ("no_alloc", c_bool)]


class ThreadpoolParams(ctypes.Structure):
    _fields_ = [("cpumask", c_bool * 512), ("n_threads", c_int), ("prio", c_int), ("poll", c_uint32),
                ("strict_cpu", c_bool), ("paused", c_bool)]


SIGNATURES = {
    "ggml_init": (c_void_p, [InitParams]),
    "ggml_free": (None, [c_void_p]),
    "ggml_new_tensor": (c_void_p, [c_void_p, c_int, c_int, POINTER(c_int64)]),
    "ggml_permute": (c_void_p, [c_void_p] * 2 + [c_int] * 4),
    "ggml_nbytes": (c_size_t, [c_void_p]),
    "ggml_new_graph": (c_void_p, [c_void_p]),
    "ggml_build_forward_expand": (None, [c_void_p] * 2),
    "ggml_flash_attn_ext": (c_void_p, [c_void_p] * 5 + [c_float] * 3),
    # The last argument of these two, the number of states to keep, is ignored by releases that do not have it.
    "ggml_ssm_scan": (c_void_p, [c_void_p] * 8 + [c_int64]),
    "ggml_gated_delta_net": (c_void_p, [c_void_p] * 7 + [c_int64]),
    "ggml_gated_linear_attn": (c_void_p, [c_void_p] * 6 + [c_float]),
    "ggml_rwkv_wkv6": (c_void_p, [c_void_p] * 7),
    "ggml_rwkv_wkv7": (c_void_p, [c_void_p] * 8),
    "ggml_backend_load_all_from_path": (None, [c_char_p]),
    "ggml_backend_dev_by_type": (c_void_p, [c_int]),
    "ggml_backend_dev_init": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_dev_backend_reg": (c_void_p, [c_void_p]),
    "ggml_backend_reg_get_proc_address": (c_void_p, [c_void_p, c_char_p]),
    "ggml_backend_alloc_ctx_tensors": (c_void_p, [c_void_p] * 2),
    "ggml_backend_buffer_free": (None, [c_void_p]),
    "ggml_backend_tensor_set": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_tensor_get": (None, [c_void_p, c_void_p, c_size_t, c_size_t]),
    "ggml_backend_graph_compute": (c_int, [c_void_p] * 2),
    "ggml_threadpool_params_default": (ThreadpoolParams, [c_int]),
}


class Ggml:
    """The loaded libraries and a CPU backend: the variant for this processor is chosen by ggml itself."""

    def __init__(self, folder):
        base, front = (sorted(glob.glob(os.path.join(folder, pattern))) for pattern in ("libggml-base*.so", "libggml.*so"))
        if not base or not front:
            raise FileNotFoundError("the ggml libraries are not installed")
        libraries = [ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in (base[0], front[0])]
        for name, (result, arguments) in SIGNATURES.items():
            function = next(getattr(lib, name) for lib in libraries if hasattr(lib, name))
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("ggml_"), function)
        self.backend_load_all_from_path(folder.encode())
        device = self.backend_dev_by_type(CPU_DEVICE)
        self.registry = self.backend_dev_backend_reg(device)
        self.backend = self.backend_dev_init(device, None)
        self.pool, self.threads = None, 0

    def cpu_function(self, name, result, *arguments):
        address = self.backend_reg_get_proc_address(self.registry, name.encode())
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    def set_threads(self, threads):
        """A pool that lives as long as the thread count does, as llama.cpp has it, instead of new threads per call."""
        if threads == self.threads:
            return
        params = self.threadpool_params_default(threads)
        pool = self.cpu_function("ggml_threadpool_new", c_void_p, POINTER(ThreadpoolParams))(ctypes.byref(params))
        self.cpu_function("ggml_backend_set_n_threads", None, c_void_p, c_int)(self.backend, threads)
        self.cpu_function("ggml_backend_cpu_set_threadpool", None, c_void_p, c_void_p)(self.backend, pool)
        if self.pool:
            self.cpu_function("ggml_threadpool_free", None, c_void_p)(self.pool)
        self.pool, self.threads = pool, threads


class Graph:
    """One operation on given arrays: build(graph, **tensors) returns the result tensor; compute() runs it."""

    def __init__(self, api, arrays, build):
        self.api = api
        self.context = api.init(InitParams(GRAPH_BYTES + TENSOR_OVERHEAD * 64, None, True))
        self.buffer = None
        tensors = {name: self.tensor(array) for name, array in arrays.items()}
        self.result = build(self, **tensors)
        self.graph = api.new_graph(self.context)
        api.build_forward_expand(self.graph, self.result)
        self.buffer = api.backend_alloc_ctx_tensors(self.context, api.backend)
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            api.backend_tensor_set(tensors[name], array.ctypes.data, 0, array.nbytes)

    def tensor(self, array):
        shape = (c_int64 * array.ndim)(*reversed(array.shape))
        return self.api.new_tensor(self.context, KINDS[array.dtype], array.ndim, shape)

    def permute(self, tensor, *axes):
        return self.api.permute(self.context, tensor, *axes)

    def compute(self):
        if self.api.backend_graph_compute(self.api.backend, self.graph) != 0:
            raise RuntimeError("ggml_backend_graph_compute failed")

    def read(self, count):
        """The first `count` floats of the result."""
        out = np.empty(count, np.float32)
        self.api.backend_tensor_get(self.result, out.ctypes.data, 0, out.nbytes)
        return out

    def __del__(self):
        if self.buffer:
            self.api.backend_buffer_free(self.buffer)
        if self.context:
            self.api.free(self.context)
