"""Shows that the formatters and linters are asked as they have to be: each refuses one bad file."""

import os
import tempfile

import programs

# name: (the check, the file's ending, what stands in it)
BAD = {
    "clang-format": (lambda path: programs.clang_format({path: ""}), ".cc", "int  main( ) {return 0;}\n"),
    "ruff-format": (lambda path: programs.ruff_format({}, [path]), ".py", "x  =  1\n"),
    "ruff-check": (lambda path: programs.ruff_check({}, [path]), ".py", "import os\n"),
    "clang-tidy": (
        lambda path: programs.analyse(path, ("--", "-std=c++23")),
        ".cc",
        "struct Base {\n  virtual void run() = 0;\n};\nstruct Part : Base {\n  virtual void run();\n};\n",
    ),
}


def outcomes(quick):
    folder = programs.ROOT / "build" / "tidy-test"
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for name, (check, ending, text) in BAD.items():
        if quick and name == "clang-tidy":
            continue
        with tempfile.NamedTemporaryFile("w", suffix=ending, dir=folder) as file:
            file.write(text)
            file.flush()
            path = os.path.relpath(file.name, programs.ROOT)
            found = [fault for fault in check(path) if fault.startswith(path)]
        results.append((f"program-can-fail-{name}", [] if found else ["accepts a file that breaks it"]))
    return results
