"""The cluster's certificates and kubeconfigs, made with openssl: P-256 keys, as they take no time to make."""

import base64
import json
from dataclasses import dataclass

import identity
from process import run

DAYS = "3650"


@dataclass(frozen=True)
class Subject:
    """What a certificate says: who, in which group, reachable under which names."""

    name: str
    common_name: str
    group: str = ""
    names: tuple = ()


def path(name, kind="crt"):
    return identity.CERTIFICATES / f"{name}.{kind}"


def subjects():
    service_names = (
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{identity.CLUSTER_DOMAIN}",
        "localhost",
    )
    addresses = (identity.CONTROL_ADDRESS, identity.KUBERNETES_SERVICE_ADDRESS, "127.0.0.1")
    webhook = f"volcano-admission-service.{identity.VOLCANO_NAMESPACE}.svc"
    return (
        Subject(
            "kube-apiserver",
            "kube-apiserver",
            names=tuple(f"DNS:{name}" for name in service_names) + tuple(f"IP:{one}" for one in addresses),
        ),
        Subject("kube-apiserver-kubelet-client", "kube-apiserver-kubelet-client", "system:masters"),
        Subject("kube-controller-manager", "system:kube-controller-manager"),
        Subject("kube-scheduler", "system:kube-scheduler"),
        Subject("kube-proxy", "system:kube-proxy"),
        Subject("coredns", "rekindle:coredns"),
        Subject("volcano", "rekindle:volcano", "system:masters"),
        Subject("volcano-webhook", webhook, names=(f"DNS:{webhook}", f"IP:{identity.CONTROL_ADDRESS}")),
        Subject("administrator", "administrator", "system:masters"),
        *(
            Subject(node.name, f"system:node:{node.name}", "system:nodes", (f"DNS:{node.name}", f"IP:{node.address}"))
            for node in identity.NODES
        ),
    )


def make_key(name):
    run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path(name, "key")], "making a key")
    path(name, "key").chmod(0o600)


def make_authority():
    make_key("authority")
    run(
        [
            "openssl",
            "req",
            "-x509",
            "-new",
            "-key",
            path("authority", "key"),
            "-days",
            DAYS,
            "-subj",
            "/CN=rekindle cluster authority",
            "-out",
            path("authority"),
            "-addext",
            "basicConstraints=critical,CA:TRUE",
            "-addext",
            "keyUsage=critical,keyCertSign,cRLSign",
        ],
        "making the certificate authority",
    )


def make_certificate(subject):
    make_key(subject.name)
    name = (f"/O={subject.group}" if subject.group else "") + f"/CN={subject.common_name}"
    run(
        ["openssl", "req", "-new", "-key", path(subject.name, "key"), "-subj", name, "-out", path(subject.name, "csr")],
        "making a certificate request",
    )
    extensions = ["basicConstraints=CA:FALSE", "keyUsage=digitalSignature", "extendedKeyUsage=serverAuth,clientAuth"]
    if subject.names:
        extensions.append("subjectAltName=" + ",".join(subject.names))
    path(subject.name, "ext").write_text("\n".join(extensions) + "\n")
    run(
        [
            "openssl",
            "x509",
            "-req",
            "-in",
            path(subject.name, "csr"),
            "-CA",
            path("authority"),
            "-CAkey",
            path("authority", "key"),
            "-CAcreateserial",
            "-days",
            DAYS,
            "-extfile",
            path(subject.name, "ext"),
            "-out",
            path(subject.name),
        ],
        "signing a certificate",
    )


def make_service_account_keys():
    make_key("service-account")
    run(
        ["openssl", "ec", "-in", path("service-account", "key"), "-pubout", "-out", path("service-account", "pub")],
        "making the service account key",
    )


def encoded(file):
    return base64.b64encode(file.read_bytes()).decode()


def write_kubeconfig(name):
    """A kubeconfig that carries its certificates, so it works wherever it is copied. JSON is YAML."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": identity.NAME,
        "clusters": [
            {
                "name": identity.NAME,
                "cluster": {"server": identity.API_URL, "certificate-authority-data": encoded(path("authority"))},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {"client-certificate-data": encoded(path(name)), "client-key-data": encoded(path(name, "key"))},
            }
        ],
        "contexts": [{"name": identity.NAME, "context": {"cluster": identity.NAME, "user": name}}],
    }
    target = identity.KUBECONFIGS / name
    target.write_text(json.dumps(content, indent=1))
    target.chmod(0o600)


def make():
    identity.CERTIFICATES.mkdir(parents=True, exist_ok=True)
    identity.KUBECONFIGS.mkdir(parents=True, exist_ok=True)
    make_authority()
    make_service_account_keys()
    for subject in subjects():
        make_certificate(subject)
        write_kubeconfig(subject.name)
