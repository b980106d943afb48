"""A Kubernetes cluster as tests and the demo see it: the embedded one, or any kubeconfig context.

Everything goes through one `kubectl proxy` on a Unix socket, which works for every way to log in and across network
namespaces, and is fast enough to put milliseconds on events. kubectl itself is used where a person would use it.
"""

import contextlib
import datetime
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from polling import poll

ROOT = pathlib.Path(__file__).resolve().parents[2]
EMBEDDED = ROOT / "tests" / "cluster" / "cluster"

JOBS = "apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs"
PODS = "api/v1/namespaces/{namespace}/pods"
BREAKPOINTS = "apis/rekindle.dev/v1alpha1/namespaces/{namespace}/breakpoints"
EVENTS = "apis/events.k8s.io/v1/namespaces/{namespace}/events"
SECRETS = "api/v1/namespaces/{namespace}/secrets"


class Failed(Exception):
    """Something that was expected did not come; the text is for people."""


class ApiError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Kubernetes:
    """Use as a context manager: it starts a kubectl proxy and ends it."""

    def __init__(self, context=None):
        self.context = context
        self.embedded = context is None
        self._prefix = [str(EMBEDDED), "kubectl"] if self.embedded else ["kubectl", "--context", context]

    def __enter__(self):
        self._folder = tempfile.mkdtemp(prefix="rk-proxy-")
        self._socket = os.path.join(self._folder, "s")
        self._proxy = subprocess.Popen(
            [*self._prefix, "proxy", f"--unix-socket={self._socket}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            wait_for(
                lambda: os.path.exists(self._socket) or self._proxy.poll() is not None, 20, "kubectl proxy to listen"
            )
            if self._proxy.poll() is not None:
                raise Failed(f"kubectl proxy ended: {self._proxy.stderr.read().strip()}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._proxy.terminate()
        self._proxy.wait()
        self._proxy.stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # kubectl, as a person would

    def kubectl(self, *words, text=None, check=True, seconds=None):
        """Standard output. Failed with kubectl's own words when it fails. After `seconds` it is ended, with code 124 as
        timeout(1) has it."""
        limit = [] if seconds is None else ["timeout", str(seconds)]
        done = subprocess.run([*limit, *self._prefix, *words], input=text, capture_output=True, text=True)
        if check and done.returncode != 0:
            raise Failed(f"kubectl {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout if check else done

    def start_kubectl(self, *words, output):
        """A kubectl that goes on until it is terminated."""
        return subprocess.Popen(
            [*self._prefix, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL
        )

    def helm(self, *words, check=True):
        """Standard output. Failed with helm's own words when it fails."""
        prefix = [str(EMBEDDED), "helm"] if self.embedded else ["helm", "--kube-context", self.context]
        done = subprocess.run([*prefix, *words], capture_output=True, text=True, cwd=ROOT)
        if check and done.returncode != 0:
            raise Failed(f"helm {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout if check else done

    def apply(self, text):
        return self.kubectl("apply", "-f", "-", text=text if isinstance(text, str) else json.dumps(text))

    # the API

    def request(self, method, path, body=None, query=None, content_type="application/json", timeout=60):
        connection = UnixConnection(self._socket, timeout)
        try:
            target = "/" + path + ("?" + urllib.parse.urlencode(query) if query else "")
            connection.request(
                method, target, json.dumps(body) if body is not None else None, {"Content-Type": content_type}
            )
            answer = connection.getresponse()
            content = answer.read()
            try:
                document = json.loads(content) if content else {}
            except ValueError:
                document = {"message": content.decode(errors="replace")}
            if answer.status >= 400:
                raise ApiError(answer.status, document.get("message", str(answer.status)))
            return document
        finally:
            connection.close()

    def list(self, kind, namespace, selector=None):
        query = {"labelSelector": selector} if selector else None
        return self.request("GET", kind.format(namespace=namespace), query=query)["items"]

    def get(self, kind, namespace, name):
        """None when there is none."""
        try:
            return self.request("GET", f"{kind.format(namespace=namespace)}/{name}")
        except ApiError as error:
            if error.code == 404:
                return None
            raise

    def create(self, kind, namespace, body):
        return self.request("POST", kind.format(namespace=namespace), body)

    def patch(self, kind, namespace, name, body):
        return self.request(
            "PATCH", f"{kind.format(namespace=namespace)}/{name}", body, content_type="application/merge-patch+json"
        )

    def delete(self, kind, namespace, name, grace_seconds=None):
        body = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        try:
            self.request("DELETE", f"{kind.format(namespace=namespace)}/{name}", body)
        except ApiError as error:
            if error.code != 404:
                raise

    def evict(self, namespace, pod):
        self.request(
            "POST",
            f"{PODS.format(namespace=namespace)}/{pod}/eviction",
            {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}},
        )

    def logs(self, namespace, pod, container):
        done = self.kubectl("-n", namespace, "logs", pod, "-c", container, check=False)
        return done.stdout + done.stderr

    def log(self, namespace, pod, container, **query):
        """The log of a container as the API has it, without kubectl; `query` as in the API (tailLines, limitBytes,
        sinceTime...)."""
        connection = UnixConnection(self._socket, 60)
        try:
            connection.request(
                "GET",
                f"/api/v1/namespaces/{namespace}/pods/{pod}/log?"
                + urllib.parse.urlencode({"container": container, **query}),
            )
            answer = connection.getresponse()
            content = answer.read().decode(errors="replace")
            if answer.status >= 400:
                raise ApiError(answer.status, content)
            return content
        finally:
            connection.close()

    def follow_log(self, namespace, pod, container, path):
        """Appends the whole log, and what comes, to the file `path` on a thread of its own. close() ends it."""
        return Follower(
            UnixConnection(self._socket, None),
            f"/api/v1/namespaces/{namespace}/pods/{pod}/log?container={container}&follow=true",
            path,
        )

    def pods_of(self, namespace, job):
        return self.list(PODS, namespace, f"volcano.sh/job-name={job}")

    @contextlib.contextmanager
    def namespace(self, name, labels=None):
        """A namespace for the time of the block; deleted with everything in it, and waited for."""
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels or {}}})
        try:
            yield name
        finally:
            self.kubectl("delete", "namespace", name, "--wait=false", check=False)
            wait_for(
                lambda: self.kubectl("get", "namespace", name, check=False).returncode != 0,
                180,
                f"namespace {name} to be gone",
            )

    def watch(self, kind, namespace, on_event=None):
        """`on_event(type, object)` is called on the watch's thread."""
        return Watch(self._socket, kind.format(namespace=namespace), on_event)

    # what only the embedded cluster can do

    def processes(self, namespace, pod, container):
        done = subprocess.run([str(EMBEDDED), "processes", namespace, pod, container], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(done.stderr.strip())
        return json.loads(done.stdout)


class Follower:
    """One container's log into a file, on a thread of its own; ends with the container or with close()."""

    def __init__(self, connection, target, path):
        self._connection = connection
        self._thread = threading.Thread(target=self._read, args=(target, path), daemon=True)
        self._thread.start()

    def _read(self, target, path):
        try:
            self._connection.request("GET", target)
            answer = self._connection.getresponse()
            with open(path, "ab") as file:
                while content := answer.read1(65536):
                    file.write(content)
                    file.flush()
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            pass  # closed

    def close(self):
        with contextlib.suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()


class Watch:
    """Every event of a kind with the moment it arrived, on a thread of its own, until close(). The server ends a watch
    now and then (when a definition is replaced, for one); it is opened again then, and what exists is told once more as
    ADDED."""

    def __init__(self, socket_path, path, on_event=None):
        self.events = []
        self._on_event = on_event
        self._lock = threading.Condition()
        self._closed = False
        self._leaving = threading.Event()
        self._socket_path, self._path = socket_path, path
        self._open()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _open(self):
        self._connection = UnixConnection(self._socket_path, None)
        self._connection.request("GET", f"/{self._path}?watch=true&allowWatchBookmarks=false")
        self._answer = self._connection.getresponse()

    def _read(self):
        failures = 0
        while not self._leaving.is_set() and failures < 60:
            try:
                if self._answer is None:
                    self._open()
                for line in self._answer:
                    self._take(json.loads(line))
                    failures = 0
            except (OSError, ValueError, KeyError, AttributeError, http.client.HTTPException):
                pass  # closed, cut, or nothing there to be watched just now
            self._answer = None
            failures += 1
            if not self._leaving.is_set():
                self._connection.close()
                self._leaving.wait(0.5)
        with self._lock:
            self._closed = True
            self._lock.notify_all()

    def _take(self, event):
        if event["type"] == "ERROR" or "metadata" not in event["object"]:
            raise ValueError("not an object")
        with self._lock:
            self.events.append((time.monotonic(), event["type"], event["object"]))
            self._lock.notify_all()
        if self._on_event is not None:
            self._on_event(event["type"], event["object"])

    def first(self, predicate, seconds, what):
        """(moment, object) of the first event for which predicate(type, object) holds; waits for it."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self._lock:
            while True:
                for moment, type_, object_ in self.events[seen:]:
                    if predicate(type_, object_):
                        return moment, object_
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Failed(f"waited {seconds} s for {what}")
                if self._closed:
                    raise Failed(f"the watch ended while waiting for {what}")
                self._lock.wait(left)

    def close(self):
        self._leaving.set()
        with contextlib.suppress(OSError, AttributeError):
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._connection.close()


def wait_for(question, seconds, what, pause=0.1):
    """The first answer of question() that is true in Python's sense. Failed after `seconds`."""
    if answer := poll(question, seconds, pause):
        return answer
    raise Failed(f"waited {seconds} s for {what}")


def condition(object_, type_):
    """The condition of that type, or None."""
    for one in object_.get("status", {}).get("conditions", []) or []:
        if one.get("type") == type_:
            return one
    return None


def ready(pod):
    one = condition(pod, "Ready")
    return bool(one and one["status"] == "True" and not pod["metadata"].get("deletionTimestamp"))


def wall(text):
    """Seconds since 1970 of a time as Kubernetes or a container runtime writes it."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", text)  # Python reads microseconds at the most
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
