"""Container images as OCI archives, from files, without a container tool.

    build_image(archive_path, reference, files, modes=..., symlinks=..., entrypoint=..., command=...,
                env=..., user=..., working_dir=..., labels=...) -> manifest digest

        archive_path  where the tar goes: `ctr images import` and `dev cluster load` read it
        reference     full name with a domain and a tag, "rekindle.test/operator:dev"; runtimes put a
                      public registry in front of names without a domain, and the pod then asks for another
        files         {"/path/in/image": pathlib.Path or bytes}; a Path to a folder is taken whole
        modes         {"/path/in/image": 0o640}; else 0755 for executables and folders, 0644 for the rest.
                      A path that is not in `files` and not below one is made as an empty folder
        owners        {"/path/in/image": (uid, gid)}, else 0, 0
        symlinks      {"/path/in/image": "target"}
        entrypoint, command    lists of words
        env           {"NAME": "value"}
        user          "1000" or "1000:1000"
        labels        {"name": "value"}

    with_libraries(binary) -> {"/path/in/image": Path}
        the binary's shared libraries and its ELF interpreter, to be put into `files` beside the binary

    write_archive(archive_path, reference, layers, config) -> manifest digest
        the lower half: `layers` are uncompressed tars as bytes, `config` the image's "config" object

The same input gives the same bytes: names are sorted, times are zero, gzip carries no time.
Images are always usr-merged: /bin, /sbin, /lib and /lib64 go below /usr and become links, so a library
that is found under both names is one file.
"""

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path, PurePosixPath

from failure import Failure

MERGED = ("bin", "sbin", "lib", "lib64")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def architecture():
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def canonical(path):
    """The path inside a usr-merged image, without the leading slash."""
    parts = PurePosixPath("/", path).parts[1:]
    if parts and parts[0] in MERGED:
        parts = ("usr", *parts)
    return "/".join(parts)


def with_libraries(binary):
    """What the dynamic loader needs for `binary`: {} for a static one."""
    outcome = subprocess.run(["ldd", str(binary)], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if re.search("not a dynamic executable|statically linked", outcome.stdout + outcome.stderr):
        return {}
    if outcome.returncode != 0:
        raise Failure(f"ldd cannot read {binary}: {outcome.stderr.strip()}")
    missing = re.findall(r"^\s*(\S+) => not found", outcome.stdout, re.MULTILINE)
    if missing:
        raise Failure(f"{binary} needs {', '.join(missing)}, which this machine does not have")
    # "name => /path (address)" for a library, "/path (address)" for the interpreter; the vdso has no path.
    paths = re.findall(r"(?:=>\s+|^\s*)(/\S+) \(0x", outcome.stdout, re.MULTILINE)
    return {"/" + canonical(path): Path(path).resolve() for path in paths}


def expanded(files):
    """`files` with folders replaced by what is in them."""
    for path, source in files.items():
        if isinstance(source, bytes) or not source.is_dir():
            yield path, source
            continue
        for inner in sorted(source.rglob("*")):
            if inner.is_file():
                yield f"{path.rstrip('/')}/{inner.relative_to(source)}", inner


def default_mode(content, source):
    if isinstance(source, Path) and os.access(source, os.X_OK):
        return 0o755
    return 0o755 if content.startswith((b"\x7fELF", b"#!")) else 0o644


def layer(files, modes=None, owners=None, symlinks=None):
    """One layer as the bytes of an uncompressed tar."""
    modes = {canonical(path): mode for path, mode in (modes or {}).items()}
    owners = {canonical(path): owner for path, owner in (owners or {}).items()}
    contents, links = {}, {canonical(path): target for path, target in (symlinks or {}).items()}
    sources = {}
    for path, source in expanded(files):
        sources[canonical(path)] = source
        contents[canonical(path)] = source if isinstance(source, bytes) else source.read_bytes()
    for name in MERGED:
        if any(path.startswith(f"usr/{name}/") for path in (*contents, *links)):
            links.setdefault(name, f"usr/{name}")
    entries = set(contents) | set(links) | {path for path in modes if path}
    folders = {str(parent) for path in entries for parent in PurePosixPath(path).parents if str(parent) != "."}
    folders |= {path for path in modes if path and path not in contents and path not in links}

    result = io.BytesIO()
    with tarfile.open(fileobj=result, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(folders | set(contents) | set(links)):
            entry = tarfile.TarInfo(path)
            entry.uid, entry.gid = owners.get(path, (0, 0))
            if path in contents:
                entry.size = len(contents[path])
                entry.mode = modes.get(path, default_mode(contents[path], sources[path]))
                archive.addfile(entry, io.BytesIO(contents[path]))
            elif path in links:
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, links[path], 0o777
                archive.addfile(entry)
            else:
                entry.type, entry.mode = tarfile.DIRTYPE, modes.get(path, 0o755)
                archive.addfile(entry)
    return result.getvalue()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def checked_reference(reference):
    domain, _, rest = reference.partition("/")
    if not rest or not ("." in domain or ":" in domain or domain == "localhost") or ":" not in rest:
        raise Failure(f"the image name {reference} needs a domain and a tag, such as rekindle.test/name:dev")
    return reference


def write_archive(archive_path, reference, layers, config):
    """Write an OCI archive of `layers` (uncompressed tars) and return the digest of its manifest."""
    blobs = {}

    def add(content, media_type):
        blobs[digest(content)] = content
        return {"mediaType": media_type, "digest": digest(content), "size": len(content)}

    def as_json(value):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()

    image = {
        "architecture": architecture(),
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest(content) for content in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": add(as_json(image), "application/vnd.oci.image.config.v1+json"),
        "layers": [
            add(gzip.compress(content, 6, mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip") for content in layers
        ],
    }
    described = add(as_json(manifest), manifest["mediaType"])
    # containerd takes the name from its own annotation, other tools from the standard one.
    described["annotations"] = {
        "io.containerd.image.name": checked_reference(reference),
        "org.opencontainers.image.ref.name": reference,
    }
    members = {
        "oci-layout": as_json({"imageLayoutVersion": "1.0.0"}),
        "index.json": as_json({"schemaVersion": 2, "manifests": [described]}),
        **{"blobs/sha256/" + name.partition(":")[2]: content for name, content in blobs.items()},
    }
    archive_path = Path(archive_path)
    archive_path.parent.mkdir(parents=True, exist_ok=True)
    temporary = archive_path.with_name(archive_path.name + ".part")
    with tarfile.open(temporary, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(members):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(members[name]), 0o644
            archive.addfile(entry, io.BytesIO(members[name]))
    temporary.rename(archive_path)
    return described["digest"]


def build_image(
    archive_path,
    reference,
    files,
    modes=None,
    owners=None,
    symlinks=None,
    entrypoint=None,
    command=None,
    env=None,
    user=None,
    working_dir=None,
    labels=None,
):
    """Build an image of one layer. The module's docstring says what each argument is."""
    config = {
        "Entrypoint": list(entrypoint) if entrypoint else None,
        "Cmd": list(command) if command else None,
        "Env": [
            f"{name}={value}"
            for name, value in sorted(
                {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **(env or {})}.items()
            )
        ],
        "User": user,
        "WorkingDir": working_dir,
        "Labels": labels,
    }
    config = {name: value for name, value in config.items() if value}
    return write_archive(archive_path, reference, [layer(files, modes, owners, symlinks)], config)
