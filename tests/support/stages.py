"""What ./dev test runs: the stages in their order, and how long each may take."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Stage:
    """`seconds_max`: of one GoogleTest program, or of tests/STAGE/run."""

    seconds_max: int
    # GoogleTest programs; the others are programs tests/STAGE/run.
    is_compiled: bool = False
    # They share one cluster, one set of images and one installation of the chart.
    is_on_cluster: bool = False


STAGES = {
    "tidy": Stage(600),
    "unit": Stage(300, is_compiled=True),
    "scenario": Stage(300, is_compiled=True),
    "abi": Stage(120, is_compiled=True),
    "checkpoint": Stage(900),
    "sanitizers": Stage(2400),
    "interop": Stage(900),
    "local": Stage(1800),
    "demo": Stage(1800, is_on_cluster=True),
    "admission": Stage(1800, is_on_cluster=True),
    "e2e": Stage(3600, is_on_cluster=True),
}
# Of a whole run on two cores: where everything has been built before, and in a fresh clone.
WARM_MINUTES_MAX = 35
COLD_MINUTES_MAX = 60
