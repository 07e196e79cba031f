"""Whether windows could be sent is tried by the doctor, and what it says is what uploading says then."""
import json
import os
import ssl
import subprocess

import pytest

from lab import process, webserver
from lab.sink import Sink, free_port
from lab.studio_server import Server
from lab.uploading import Run

pytestmark = pytest.mark.measures

CLEAN = {"PATH": os.environ["PATH"]}
TOKEN = "SECRET-1"
NAMESERVER = "tests/lab/nameserver.py"


@pytest.fixture
def ask(pillion, workdir):
    """ask(NAME, OPTION…) -> the line about a back end; all that was said is in `said`, and no secret in it."""
    def call(name, *options, env=None, prefix=(), **more):
        done = process.run([*prefix, pillion, "doctor", "--json", "-o", workdir, "-p", os.getpid(), *options],
                           env={**CLEAN, **(env or {})}, timeout=30, **more)
        assert done.status == 0 and done.err == "" and TOKEN not in done.out, done
        answer = json.JSONDecoder().raw_decode(done.out)[0]
        (line,) = [line for line in answer["mechanisms"] if line["name"] == f"upload_{name}"]
        assert line["works"] == (line["state"] == "ok") and line["state"] in ("ok", "blocked"), line
        assert (line["gate"] is None) == line["works"], line
        return line
    return call


def sentence(line):
    """What stands in it and its remedy, when they are of one sentence."""
    return line["detail"].split(": ", 1)[1]


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    """(authority, another authority, the context of a server that the first one signed)"""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")
    for name in ("ca", "other"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN=The {name}")
    openssl("req", *key[:-2], "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=lab")
    (folder / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "cert.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "ca.pem", folder / "other.pem", context


def test_without_a_wish_to_upload_nothing_is_tried(pillion, workdir):
    done = process.run([pillion, "doctor", "--json", "-o", workdir, "-p", os.getpid()], env=CLEAN)
    assert "upload_" not in done.out, done


@pytest.mark.exact
def test_the_studio_is_asked_and_a_wrong_token_is_named(ask, tls):
    with Server(tls=tls[2]) as server:
        options = ["--server-host", server.url, "--ca-file", tls[0]]
        line = ask("studio", *options, "--token", TOKEN)
        assert line["detail"] == f"studio: {server.url} responds and accepts the token", line
        line = ask("studio", *options, "--token", "WRONG-1")
        assert line["gate"] == "token" and "--token-file" in line["remedy"] and "WRONG-1" not in str(line), line
        assert sentence(line) == "Performance Studio at 127.0.0.1 answered 400: Invalid API key"
        assert server.health_checks == 2 and not server.requests
    line = ask("studio", *options)
    assert line["gate"] == "token" and line["detail"] == "studio: studio needs a token", line
    assert line["remedy"] == "set PILLION_TOKEN_FILE"


@pytest.mark.parametrize("backend", ["http", "pyroscope"])
def test_others_are_connected_to_and_sent_nothing(ask, tls, backend):
    with Sink(tls=tls[2]) as sink:
        address = ["--backend", backend, "--server-host", sink.url + "/in"]
        line = ask(backend, *address, "--ca-file", tls[0])
        assert line["detail"] == f"{backend}: {sink.url} is reachable; nothing was sent"
        line = ask(backend, *address, "--ca-file", tls[1])
        assert line["gate"] == "tls" and 'the authority "The ca" is unknown' in line["detail"], line
        assert line["remedy"].startswith("give its certificate with --ca-file"), line
        assert ask(backend, *address, "--ca-file", tls[1], "--no-verify")["works"]
        line = ask(backend, *address, "--ca-file", "/nowhere")
        assert line["gate"] == "setting" and "/nowhere" in line["detail"], line
        assert not sink.seen


def test_what_is_said_is_what_an_upload_says(ask, pillion, workdir, tls):
    (workdir / "x.col").write_text("sh;main 2")
    with Sink(tls=tls[2]) as sink:
        options = ["--server-host", sink.url, "--ca-file", tls[1]]
        line = ask("http", "--backend", "http", *options)
        done = process.run([pillion, "upload", "--backend", "http", *options, workdir / "x.col"], env=CLEAN)
        assert f"not sent to http: {sentence(line)}: {line['remedy']}\n" in done.err, (line, done)
    options = ["--server-host", f"http://127.0.0.1:{free_port()}"]
    line = ask("http", "--backend", "http", *options)
    assert (line["gate"], line["errno"]) == ("connect", "ECONNREFUSED") and "--server-host" in line["remedy"], line
    run = Run(pillion, *options, env=CLEAN)
    run.window()
    process.until(lambda: "upload to http failed" in run.err, 10, lambda: run.err)
    run.kill()
    assert f"upload to http failed: {sentence(line)}; windows kept" in run.err, (line, run.err)


def test_a_proxy_that_refuses_is_named(ask):
    with webserver.Server(webserver.answers(403)) as proxy:
        env = {"https_proxy": f"http://127.0.0.1:{proxy.port}"}
        line = ask("http", "--backend", "http", "--server-host", "https://origin.invalid", env=env)
        assert line["gate"] == "proxy" and "no_proxy" in line["remedy"], line
        assert sentence(line) == f"the proxy 127.0.0.1:{proxy.port} does not connect to origin.invalid:443: 403 Said"
    line = ask("http", "--backend", "http", "--server-host", "https://origin.invalid", env={"https_proxy": "socks5://h:1"})
    assert line["gate"] == "proxy" and "SOCKS" in line["detail"] and line["remedy"].startswith("name an HTTP proxy"), line


@pytest.mark.exact
def test_a_server_in_trouble_and_a_wrong_address_are_told_apart(ask):
    with webserver.Server(webserver.answers(503)) as ill, webserver.Server(webserver.answers(404)) as other:
        line = ask("studio", "--server-host", ill.url, "--token", TOKEN)
        assert line["gate"] == "server" and line["remedy"] is None and "answered 503" in line["detail"], line
        line = ask("studio", "--server-host", other.url, "--token", TOKEN)
        assert line["gate"] == "address" and "--server-host" in line["remedy"], line


@pytest.mark.root
@pytest.mark.parametrize("mode", ["silent", "missing"])
def test_a_name_that_is_not_resolved_is_told_within_seconds(ask, mode):
    prefix = ["unshare", "--net", "--mount", "python3", NAMESERVER, mode]
    line = ask("pyroscope", "--backend", "pyroscope", "--server-host", "http://name.test:4040", prefix=prefix)
    assert line["gate"] == "name" and "cannot resolve the name name.test" in line["detail"] and "resolv.conf" in line["remedy"], line
    assert mode != "missing" or line["detail"].endswith("Name does not resolve"), line


def test_several_have_a_line_each_in_text_too(pillion, workdir, tls):
    with Sink() as sink, Server() as studio:
        env = {**CLEAN, "PYROSCOPE_SERVER_ADDRESS": f"http://127.0.0.1:{free_port()}", "PILLION_TOKEN": f"studio={TOKEN}"}
        done = process.run([pillion, "doctor", "-o", workdir, "-p", os.getpid(), "-u", "--backend", "studio,pyroscope,http",
                            "--server-host", f"studio={studio.url},http={sink.url}"], env=env)
    words = " ".join(done.out.split())
    assert f"upload ok studio: {studio.url} responds and accepts the token" in words, done
    assert "upload blocked pyroscope: cannot connect to 127.0.0.1 port" in words and f"upload ok http: {sink.url} is reachable" in words
    assert TOKEN not in done.out and done.status == 0

