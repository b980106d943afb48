"""A test stage on a cluster: cases, several at once where they do not disturb each other, a line each, and what helps
after a failure.

`ok NAME: note`, `FAIL NAME: why`, `skip NAME: why`, then `N passed, N failed, N skipped`.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time
import traceback
import typing

import installation
from failure import Failure
from kubernetes import ROOT, ApiError, Failed, Kubernetes
from operatorlog import OperatorLogs
from scene import Scene


class Unmet(Exception):
    """An expectation that did not hold: what was expected and what came."""


class Skipped(Exception):
    """The case cannot run here; says why."""


def expect(holds, sentence):
    if not holds:
        raise Unmet(sentence)


def expect_equal(actual, expected, what):
    if actual != expected:
        raise Unmet(f"{what}: expected {expected!r}, got {actual!r}")


@dataclasses.dataclass(frozen=True)
class Case:
    """A story. `alone`: nothing else may run beside it. `node`: it reaches into a node, which only the embedded cluster
    allows. `level`: the Pod Security level that its namespace enforces; None: it has no namespace."""

    tell: typing.Callable
    alone: bool
    node: bool
    level: str | None

    @property
    def name(self):
        return self.tell.__name__


class Cases:
    """Collects stories in the order in which they are written."""

    def __init__(self):
        self.all = []

    def case(self, *, alone=False, node=False, level="restricted"):
        def collect(tell):
            self.all.append(Case(tell, alone, node, level))
            return tell

        return collect


@dataclasses.dataclass
class Site:
    """What every case is told: the cluster, and the options."""

    stage: str
    kubernetes: Kubernetes
    options: argparse.Namespace
    logs: pathlib.Path

    @property
    def seed(self):
        return self.options.seed


class Runner:
    def __init__(self, site):
        self._site = site
        self._printing = threading.Lock()
        self._scenes = []
        self.results = []

    def run(self, cases, at_once):
        together = [case for case in cases if not case.alone]
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            try:
                for done in concurrent.futures.as_completed([pool.submit(self._run, case) for case in together]):
                    done.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for case in cases:
            if case.alone:
                self._run(case)

    def judge_operators(self, operators):
        """Every operator that there was has ended as tests or Kubernetes wanted it, never by itself."""
        if faults := operators.faults():
            self._say("failed", f"FAIL no_operator_ended_by_itself: {'; '.join(faults[:3])}")
        else:
            self._say("passed", f"ok no_operator_ended_by_itself: {operators.summary()}")

    def clean_up(self):
        """Every namespace is on its way out by now; waits until they are gone."""
        for scene in self._scenes:
            scene.begin_end()
        for scene in self._scenes:
            with contextlib.suppress(Failed, ApiError, OSError):
                scene.finish_end()

    def _run(self, case):
        began = time.monotonic()
        if case.node and not self._site.kubernetes.embedded:
            self._say(
                "skipped",
                f"skip {case.name}: it reaches into a node, which only the embedded cluster allows; run it without --context",
            )
            return
        folder = self._site.logs / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        scene = Scene(self._site.kubernetes, self._site.stage, case.name, case.level, folder)
        self._scenes.append(scene)
        try:
            scene.begin()
            notes = [case.tell(self._site, scene), *map(str, scene.losses)]
            scene.begin_end()
            shutil.rmtree(folder, ignore_errors=True)
            told = ", ".join([f"{time.monotonic() - began:.0f} s", *(note for note in notes if note)])
            self._say("passed", f"ok {case.name}: {told}")
            return
        except Skipped as why:
            self._say("skipped", f"skip {case.name}: {why}")
            scene.begin_end()
            return
        except (Unmet, Failed, ApiError, Failure) as why:
            sentence = " / ".join(line.strip() for line in str(why).splitlines())
        except Exception:  # a fault of the test itself: the other cases still run
            sentence = " / ".join(line.strip() for line in traceback.format_exc().splitlines()[-4:])
            (folder / "traceback.txt").write_text(traceback.format_exc())
        try:
            scene.dump()
        except Exception as why:  # the case's own failure is what has to be told
            sentence += f" (what helps could not be kept: {why})"
        self._say(
            "failed",
            f"FAIL {case.name}: {sentence} (after {time.monotonic() - began:.0f} s; logs in {folder.relative_to(ROOT)})",
        )
        scene.begin_end()

    def _say(self, result, line):
        with self._printing:
            self.results.append(result)
            print(line, flush=True)


def main(stage, cases, describe, add_options=None, at_once=3):
    parser = argparse.ArgumentParser(
        prog=f"tests/{stage}/run", description=describe, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--context", metavar="NAME", help="a kubeconfig context instead of the embedded cluster")
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="extend",
        nargs="+",
        default=[],
        help="only cases whose name begins with one of these",
    )
    parser.add_argument("--installed", action="store_true", help="take cluster and chart as they are")
    parser.add_argument(
        "--at-once", type=int, default=at_once, metavar="N", help=f"cases beside each other ({at_once})"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="of everything random")
    parser.add_argument("--list", action="store_true", help="name the cases and do nothing")
    if add_options is not None:
        add_options(parser)
    options = parser.parse_args()
    chosen = [case for case in cases if not options.only or case.name.startswith(tuple(options.only))]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    if not chosen:
        parser.error(f"no case begins with {' or '.join(options.only)}; --list names them")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logs = ROOT / "build" / "logs" / stage
    logs.mkdir(parents=True, exist_ok=True)
    results = []
    try:
        with (
            installation.installed(options.context, logs / "install.log", take_as_is=options.installed),
            Kubernetes(options.context) as kubernetes,
        ):
            operators = OperatorLogs(kubernetes, logs)
            runner = Runner(Site(stage, kubernetes, options, logs))
            results = runner.results
            try:
                runner.run(chosen, options.at_once)
                runner.judge_operators(operators)
            finally:
                operators.close()
                runner.clean_up()
    except Failed as why:
        results.append("failed")
        print(f"FAIL set_up: {' / '.join(line.strip() for line in str(why).splitlines())}", flush=True)
    print(
        f"{results.count('passed')} passed, {results.count('failed')} failed, {results.count('skipped')} skipped",
        flush=True,
    )
    sys.stdout.flush()
    # Threads of cases that were cut short must not hold the program.
    os._exit(1 if "failed" in results or not results else 0)
