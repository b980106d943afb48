"""What happened to a job's pods, and when."""

from kubernetes import ready
from timeline import ReportedEvent


def gone_and_back(watched: list[tuple], old_uids: set, new_uids: set) -> list[ReportedEvent]:
    """`watched`: (moment, type, pod) as the watch has brought them. What did not happen is not told."""
    gone = [moment for moment, type_, pod in watched if type_ == "DELETED" and pod["metadata"]["uid"] in old_uids]
    ready_at: dict[str, float] = {}
    for moment, _, pod in watched:
        if pod["metadata"]["uid"] in new_uids and ready(pod):
            ready_at.setdefault(pod["metadata"]["uid"], moment)
    told = [ReportedEvent(max(gone), "pods_gone", "the old pods are gone")] if len(gone) == len(old_uids) else []
    if set(ready_at) == new_uids:
        told.append(ReportedEvent(max(ready_at.values()), "pods_back", "the new pods run"))
    return told
