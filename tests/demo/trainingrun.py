"""One job of the example, run to its end through `rekindle run`, with all that the demo may ask about it."""

import dataclasses
import json
import pathlib
import signal
import subprocess
import time

from building import Programs
from controlblock import ControlBlock, Word, doing_of
from events import Event, EventFile
from failure import Failure
from polling import poll
from processes import Processes, children_of, end_process, environment_of, free_port, last_lines
from stepjournal import LoggedStep, read_journals

RANKS = 4
STEPS = 400
SEED = 7


@dataclasses.dataclass(frozen=True)
class Setting:
    """What all runs of one demo share."""

    programs: Programs
    data: pathlib.Path
    folder: pathlib.Path
    steps: int = STEPS
    seed: int = SEED


class UndisturbedRun:
    """The twin: the same program, data and seed, without Rekindle and without a fault."""

    def __init__(self, processes: Processes, setting: Setting, name: str = "undisturbed") -> None:
        self.folder = setting.folder / name
        self.folder.mkdir(parents=True)
        self.output = self.folder / "final.safetensors"
        self.log = self.folder / "output.log"
        self.started = time.monotonic()
        self._process = processes.start(
            [
                setting.programs.digits,
                "--data",
                setting.data,
                "--seed",
                setting.seed,
                "--steps",
                setting.steps,
                "--spawn",
                RANKS,
                "--without-rekindle",
                "--output",
                self.output,
            ],
            self.log,
            {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())},
        )

    def finish(self, patience_seconds: float = 600) -> float:
        """Seconds that it took."""
        try:
            code = self._process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            end_process(self._process, 0)
            raise Failure(
                f"the undisturbed run was not done after {patience_seconds:.0f} s; its output: {self.log}"
            ) from None
        if code != 0 or not self.output.exists():
            raise Failure(
                f"the undisturbed run ended with {code}; expected 0 and {self.output}. Its last lines ({self.log}):\n"
                f"{last_lines(self.log)}"
            )
        return time.monotonic() - self.started


def initial_state(processes: Processes, setting: Setting) -> pathlib.Path:
    """The file with the state before the first step: where a run ends that makes none."""
    run = UndisturbedRun(processes, dataclasses.replace(setting, steps=0), "initial")
    run.finish(60)
    return run.output


class ProtectedRun:
    """The job under `rekindle run`. Several launches may follow each other on the same folder."""

    def __init__(
        self,
        processes: Processes,
        setting: Setting,
        name: str,
        *,
        checkpoint_every: int = 0,
        shadow_every: str = "",
        checkpoints: pathlib.Path | None = None,
        max_restarts: int = 1000,
        job: str = "digits",
        prefix: tuple = (),
    ) -> None:
        """`prefix` is put in front of the command, for runs that see the world otherwise (unshare)."""
        self._processes = processes
        self._setting = setting
        self.steps = setting.steps
        self.checkpoint_every = checkpoint_every
        self._shadow_every = ["--shadow-every", shadow_every] if shadow_every else []
        self._max_restarts = max_restarts
        self.folder = setting.folder / name
        self.folder.mkdir(parents=True)
        self.checkpoints = checkpoints or self.folder / "checkpoints"
        if checkpoints is None:
            self.checkpoints.mkdir()
        self.output = self.folder / "final.safetensors"
        self.log = self.folder / "output.log"
        self.job = job
        self._prefix = prefix
        self.launches: list[EventFile] = []
        self.launcher: subprocess.Popen | None = None
        self._blocks: dict[int, tuple[int, ControlBlock]] = {}

    def launch(self) -> None:
        number = len(self.launches) + 1
        events = self.folder / f"events-{number}.jsonl"
        port = str(free_port())
        command = [
            *self._prefix,
            self._setting.programs.rekindle,
            "run",
            "-n",
            RANKS,
            "--max-restarts",
            self._max_restarts,
            *self._shadow_every,
            "--events",
            events,
            "--",
            self._setting.programs.digits,
            "--data",
            self._setting.data,
            "--seed",
            self._setting.seed,
            "--steps",
            self._setting.steps,
            "--output",
            self.output,
            "--log",
            self.folder / "steps-%r.jsonl",
            "--status-page",
            self.folder / "status-%r",
            "--checkpoint-every",
            self.checkpoint_every,
        ]
        self.launches.append(EventFile(events, time.monotonic()))
        self.launcher = self._processes.start(
            command,
            self.log,
            {
                "REKINDLE_CHECKPOINT_DIR": str(self.checkpoints),
                "REKINDLE_JOB": self.job,
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": port,
            },
        )

    def failure(self, sentence: str) -> Failure:
        return Failure(f"{sentence}. Logs are in {self.folder}; the last lines of output.log:\n{last_lines(self.log)}")

    # --- ranks

    def rank_processes(self) -> dict[int, int]:
        """Process id of each rank that runs now."""
        found: dict[int, int] = {}
        for pid in children_of(self.launcher.pid):
            environment = environment_of(pid)
            if environment.get("REKINDLE_RANK", "").isdigit() and "REKINDLE_SOCKET" in environment:
                found[int(environment["REKINDLE_RANK"])] = pid
        return found

    def words(self, pids: dict[int, int]) -> dict[int, Word]:
        """What each rank has published; ranks without a control block yet are missing."""
        found: dict[int, Word] = {}
        for rank, pid in pids.items():
            known = self._blocks.get(rank)
            if known is None or known[0] != pid:
                block = self._open_block(rank, pid)
                if block is None:
                    continue
                if known is not None:
                    known[1].close()
                self._blocks[rank] = (pid, block)
            found[rank] = self._blocks[rank][1].read()
        return found

    @staticmethod
    def _open_block(rank: int, pid: int) -> ControlBlock | None:
        """The block that this very process has mapped, found through its own mappings."""
        try:
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
                names = {line.split(maxsplit=5)[5].strip() for line in file if f"rank-{rank}.control" in line}
            for name in names:
                return ControlBlock(pathlib.Path(name))
        except (OSError, ValueError, IndexError):
            pass
        return None

    def doing(self, rank: int) -> str:
        return doing_of(self.folder / f"status-{rank}")

    def await_training(
        self, after_attempt: int, patience_seconds: float = 120
    ) -> tuple[dict[int, int], dict[int, Word]]:
        """Until all ranks train in one attempt newer than `after_attempt`: their processes and words."""

        def training() -> tuple[dict[int, int], dict[int, Word]] | None:
            self.launches[-1].follow()
            pids = self.rank_processes()
            words = self.words(pids)
            if len(words) == RANKS and all(
                word.is_training and word.attempt > after_attempt for word in words.values()
            ):
                self.launches[-1].follow()
                return pids, words
            if self.launcher.poll() is not None:
                raise self.failure(
                    f"`rekindle run` ended with {self.launcher.returncode} where all {RANKS} ranks were expected to "
                    f"train in an attempt after {after_attempt}"
                )
            return None

        if found := poll(training, patience_seconds, pause=0.004):
            return found
        raise self.failure(
            f"not all {RANKS} ranks were training {patience_seconds:.0f} s after attempt {after_attempt}"
        )

    def is_running(self) -> bool:
        return self.launcher.poll() is None

    def finish(self, patience_seconds: float = 600) -> None:
        """Until the launcher ends with 0 and the result is written."""
        code = self.await_end(patience_seconds)
        if code != 0 or not self.output.exists():
            raise self.failure(f"the disturbed run ended with {code}; expected 0 and {self.output.name}")

    def await_end(self, patience_seconds: float) -> int:
        """The launcher's exit code; follows its events meanwhile."""

        def ended() -> bool:
            self.launches[-1].follow()
            return self.launcher.poll() is not None

        if not poll(ended, patience_seconds, pause=0.001):
            end_process(self.launcher, 0)
            raise self.failure(f"`rekindle run` was not done after {patience_seconds:.0f} s")
        return self.launcher.returncode

    def signal_launcher(self, number: int) -> None:
        self.launcher.send_signal(signal.Signals(number))

    # --- what happened

    def events(self) -> list[Event]:
        """Of all launches, in order of time."""
        return [event for launch in self.launches for event in launch.events()]

    def journals(self) -> dict[int, list[LoggedStep]]:
        """What every rank has committed, by its own account."""
        return read_journals(self.folder, RANKS)

    def has_trained(self) -> bool:
        """Whether any rank has made a step."""
        return any(path.stat().st_size > 0 for path in self.folder.glob("steps-*.jsonl"))

    def manifests(self) -> list[tuple[pathlib.Path, dict]]:
        """Published checkpoints, oldest first by attempt and step."""
        found = []
        for path in self.checkpoints.glob("*/a*-s*-*/manifest.json"):
            try:
                manifest = json.loads(path.read_text())["manifest"]
                found.append((path.parent, manifest))
            except (OSError, ValueError, KeyError):
                continue
        return sorted(found, key=lambda entry: (entry[1].get("attempt", 0), entry[1].get("step", 0)))
