"""What ./dev test runs: the stages in their order, and how long each may take."""

STAGES = [
    "tidy", "unit", "scenario", "abi", "checkpoint", "sanitizers", "interop", "local", "demo", "admission", "e2e",
]  # fmt: skip
# GoogleTest programs; the others are programs tests/STAGE/run.
COMPILED = {"unit", "scenario", "abi"}
# They share one cluster, one set of images and one installation of the chart.
ON_CLUSTER = {"demo", "admission", "e2e"}
# Of one GoogleTest program, or of tests/STAGE/run.
PROGRAM_SECONDS_MAX = {
    "tidy": 600,
    "unit": 300,
    "scenario": 300,
    "abi": 120,
    "checkpoint": 900,
    "sanitizers": 2400,
    "interop": 900,
    "local": 1800,
    "demo": 1800,
    "admission": 1800,
    "e2e": 3600,
}
# Of a whole run on two cores: where everything has been built before, and in a fresh clone.
WARM_MINUTES_MAX = 35
COLD_MINUTES_MAX = 60
