"""The two small images of the cluster itself: the pods' pause process and the self test's container."""

from pathlib import Path

import identity
import ociimage
from process import run

SOURCES = Path(__file__).resolve().parent / "images"
VISITOR_IMAGE = "rekindle.test/visitor:1"


def compile_source(name, *flags):
    program = identity.STATE / "images" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    run(["gcc", "-O2", "-Wall", *flags, "-o", program, SOURCES / f"{name}.c"], f"compiling {name}.c")
    return program


def pause_archive():
    program = compile_source("pause", "-static")
    archive = program.with_suffix(".tar")
    ociimage.build_image(archive, identity.PAUSE_IMAGE, {"/pause": program}, entrypoint=["/pause"])
    return archive


def visitor_archive():
    """Linked dynamically on purpose: it proves with_libraries, and name resolution as real programs do it."""
    program = compile_source("visitor")
    archive = program.with_suffix(".tar")
    ociimage.build_image(
        archive,
        VISITOR_IMAGE,
        {"/visitor": program, **ociimage.with_libraries(program)},
        entrypoint=["/visitor"],
        user="1000:1000",
        env={"PURPOSE": "self test"},
    )
    return archive
