"""Which GoogleTest programs run under which sanitizer: all that the CMake files name, but for those that stand here with
a reason. A new program runs under both."""

_STARTS_PROGRAMS = "its code is in programs that it starts: the stages `local` and `e2e` are for those"
_READS_FILES = "it looks at what ships: a sanitizer changes the files that it reads"
_ONE_THREAD = "of one thread: tsan has nothing to see in it"

EXCLUDED = {
    "asan": {
        "abi_test": _READS_FILES,
        "sidecar_local_run_test": _STARTS_PROGRAMS,
        "sidecar_pod_test": _STARTS_PROGRAMS,
    },
    "tsan": {
        "abi_test": _READS_FILES,
        "common_contract_test": _ONE_THREAD,
        "coordination_scenarios": _ONE_THREAD,
        "coordination_test": _ONE_THREAD,
        "operator_admission_test": _ONE_THREAD,
        "operator_controller_test": _ONE_THREAD,
        "operator_faults_test": _ONE_THREAD,
        "operator_kube_test": _ONE_THREAD,
        "operator_model_test": _ONE_THREAD,
        "operator_reconcile_test": _ONE_THREAD,
        "operator_scenario_test": _ONE_THREAD,
        "sidecar_checkpoint_test": _ONE_THREAD,
        "sidecar_cli_test": "its threads are those of sidecar_storage_test",
        "sidecar_local_run_test": _STARTS_PROGRAMS,
        "sidecar_mindspore_test": _ONE_THREAD,
        "sidecar_pod_test": _STARTS_PROGRAMS,
        "sidecar_resharding_test": "its threads are those of sidecar_storage_test",
    },
}


def under(preset, programs):
    """Those of `programs` that run with the preset."""
    return [program for program in programs if program.name not in EXCLUDED[preset]]


def unknown_exclusions(programs):
    """(preset, name) of what is left out and is no program."""
    names = {program.name for program in programs}
    return [(preset, name) for preset, excluded in EXCLUDED.items() for name in excluded if name not in names]
