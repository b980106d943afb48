"""Which sources clang-tidy looks at, told by example."""

from changed_sources import choose

COMPILED = {"a/x.cc", "a/y.cc", "b/z.cc"}
FILES = {"a/x.cc": "", "a/y.cc": '#include "a/only.h"\n', "b/z.cc": "", "a/only.h": "", "a/x.h": ""}

# name: (changed, most files, what is chosen, how many are left)
STORIES = {
    "a-source": (["b/z.cc"], 40, ["b/z.cc"], 0),
    "a-header-through-its-source": (["a/x.h"], 40, ["a/x.cc"], 0),
    "a-header-through-one-that-includes-it": (["a/only.h"], 40, ["a/y.cc"], 0),
    "header-and-source-once": (["a/x.h", "a/x.cc"], 40, ["a/x.cc"], 0),
    "no-more-than-asked-newest-first": (["b/z.cc", "a/y.cc", "a/x.cc"], 2, ["b/z.cc", "a/y.cc"], 1),
    "nothing-of-what-is-not-compiled": (["docs/x.md", "a/gone.cc", "a/nobody.h"], 40, [], 0),
}


def outcomes():
    results = []
    for name, (changed, files_max, chosen, left) in STORIES.items():
        actual = choose(changed, COMPILED, FILES, files_max)
        faults = [] if actual == (chosen, left) else [f"expected {(chosen, left)}, got {actual}"]
        results.append((f"changed-sources-{name}", faults))
    return results
