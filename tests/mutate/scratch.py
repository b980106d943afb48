"""A copy of the tree to change things in. It stays between runs: what did not change keeps its time, so that little is
built again."""

import contextlib
import fcntl
import pathlib
import shutil
import subprocess


def _names(source):
    """Files that git tracks or would track."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    output = subprocess.run(listing, cwd=source, check=True, capture_output=True).stdout.decode()
    return {name for name in output.split("\0") if name and (source / name).is_file()}


class ScratchTree:
    def __init__(self, source: pathlib.Path, folder: pathlib.Path):
        self.source = source
        self.folder = folder

    @contextlib.contextmanager
    def held(self):
        """Up to date, and nobody else's meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder.parent / f"{self.folder.name}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SystemExit(f"mutate: another run works in {self.folder}; wait until it has ended") from None
            self._copy()
            yield self

    def _copy(self):
        if not (self.folder / ".git").exists():
            # A repository of its own: programs that ask git for the files of the tree are answered here as well.
            subprocess.run(["git", "init", "--quiet"], cwd=self.folder, check=True)
        names = _names(self.source)
        for name in _names(self.folder) - names:
            (self.folder / name).unlink()
        for name in names:
            original, copy = self.source / name, self.folder / name
            if not copy.exists() or copy.read_bytes() != original.read_bytes():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(original, copy)
            shutil.copymode(original, copy)

    @contextlib.contextmanager
    def mutated(self, mutation):
        """The tree with the mutation in it. A mutation that does not fit is a ValueError."""
        path = self.folder / mutation.file
        text = path.read_text() if path.is_file() else ""
        changed = mutation.apply(text)
        if changed is None:
            raise ValueError(f"`before` stands {text.count(mutation.before)} times in {mutation.file}")
        path.write_text(changed)
        try:
            yield
        finally:
            path.write_text(text)
