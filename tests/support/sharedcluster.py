"""One cluster, one set of images and one chart for all stages of a run."""

import contextlib

# For the stages: cluster and chart are there and stay there.
ENVIRONMENT = {"REKINDLE_INSTALLED": "1"}


class SharedCluster:
    """`installed`: makes the context manager that installs and takes down again; see installation.py."""

    def __init__(self, installed, failures):
        self._installed = installed
        self._failures = failures
        self._stack = contextlib.ExitStack()
        self._begun = False
        self._failure = None

    def ensure(self):
        """Comes up the first time. None, or the sentence that says why it did not: it is not tried again."""
        if not self._begun:
            self._begun = True
            try:
                self._stack.enter_context(self._installed())
            except self._failures as why:
                self._failure = " / ".join(line.strip() for line in str(why).splitlines()) or type(why).__name__
        return self._failure

    def take_down(self):
        self._stack.close()
