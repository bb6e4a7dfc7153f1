"""Files of torch.save (the zip of newer versions): a pickle, and the numbers of each storage as a member.

A pickle is a program. The one here can make lists, dictionaries and arrays; whatever else it names becomes an inert object, and nothing is
imported or called."""
import collections
import io
import pickle
import zipfile

from .arrays import BYTES, MOST_BYTES, Array, Refused

STORAGES = {"FloatStorage": "F32", "DoubleStorage": "F64", "HalfStorage": "F16", "BFloat16Storage": "BF16", "LongStorage": "I64", "IntStorage": "I32",
            "ByteStorage": "U8", "BoolStorage": "BOOL"}
LONGEST_PICKLE = 1 << 26


class Inert:
    """Stands for an object of a class that we do not have."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *_, **__):
        return Inert()

    def __setstate__(self, _):
        pass

    def __setitem__(self, _, __):
        pass

    def append(self, _):
        pass

    def extend(self, _):
        pass


def rebuild(storage, offset, size, stride, *_):
    """Numbers of a storage that stand in the order of rows, or of columns."""
    if not isinstance(storage, Array):
        return Inert()
    if len(size) == 2 and tuple(stride) == (1, size[0]) and min(size) > 1:
        return rebuild(storage, offset, (size[1], size[0]), (size[0], 1)).transposed()
    expected, step = [], 1
    for n in reversed(size):
        expected.insert(0, step)
        step *= n
    if any(n > 1 and have != want for n, have, want in zip(size, stride, expected)):
        raise Refused(f"torch: expected rows behind each other, got strides {list(stride)} of {list(size)}")
    width = BYTES[storage.dtype]
    if not 0 <= offset <= storage.size - step:
        raise Refused(f"torch: expected {step} numbers inside of a storage of {storage.size}")
    return Array(storage.dtype, size, storage.data[offset * width:(offset + step) * width])


class Reader(pickle.Unpickler):
    def __init__(self, archive):
        self.archive, self.storages = archive, {}
        members = {member.filename: member for member in archive.infolist()}
        data = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
        if len(data) != 1 or members[data[0]].file_size > LONGEST_PICKLE:
            raise Refused("torch: expected one data.pkl of a reasonable size")
        self.members, self.folder = members, data[0].removesuffix("data.pkl") + "data/"
        super().__init__(io.BytesIO(archive.read(data[0])))

    def find_class(self, module, name):
        if module == "torch" and name in STORAGES:
            return STORAGES[name]
        known = {("torch._utils", "_rebuild_tensor_v2"): rebuild, ("torch._utils", "_rebuild_parameter"): lambda data, *_: data,
                 ("collections", "OrderedDict"): collections.OrderedDict}
        return known.get((module, name), Inert)

    def persistent_load(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not isinstance(pid[2], str):
            raise Refused("torch: expected storages as torch.save names them")
        _, dtype, key, _, count = pid
        if not isinstance(dtype, str):
            return Inert()
        if key not in self.storages:
            member = self.members.get(self.folder + key)
            if member is None or not isinstance(count, int) or member.file_size != count * BYTES[dtype] or member.file_size > MOST_BYTES:
                raise Refused(f"torch: expected the storage {key} of {count} numbers in the file")
            self.storages[key] = Array(dtype, (count,), memoryview(self.archive.read(member)))
        return self.storages[key]


def read_torch(data):
    """What was saved, with arrays for tensors, from the bytes of a file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return Reader(archive).load()
    except (pickle.UnpicklingError, zipfile.BadZipFile, EOFError, KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise Refused(f"torch: expected a file of torch.save, got: {problem}") from None


def arrays_of(state, prefix=""):
    """The arrays of a dictionary of weights."""
    if not isinstance(state, dict):
        raise Refused("torch: expected a dictionary of weights")
    return {name.removeprefix(prefix): a for name, a in state.items() if isinstance(a, Array)}
