"""The HTTP client over real sockets, against servers that behave badly in every way we know: deliver/client over os/net,
driven by live/programs/http_send.c, which is linked with the product's objects (and its C library: names are resolved as
the product resolves them)."""
import errno
import json
import ssl
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import pytest

from lab import linked, process, webserver
from lab.webserver import Server, answers

pytestmark = pytest.mark.measures

CLEAN = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin"}
LARGE = 5_000_000
# printf 'us er:p@ss' | base64
USER, CREDENTIALS = "us%20er:p%40ss", "dXMgZXI6cEBzcw=="
NAMESERVER = "tests/lab/nameserver.py"


@pytest.fixture(scope="module")
def http_send(arch, pillion):
    return linked.program("tests/live/programs/http_send.c", arch, pillion)


@pytest.fixture
def send(http_send):
    """send(URL, "--post", "5", …) -> what came of the request, or a list with --times."""
    def call(*args, env=None, timeout=30):
        done = process.run([http_send, *args], env={**CLEAN, **(env or {})}, timeout=timeout)
        assert done.status == 0, done
        found = [json.loads(line) for line in done.out.splitlines()]
        return found if "--times" in args else found[0]
    return call


def expected(length):
    return bytes(ord("a") + i % 26 for i in range(26)) * (length // 26) + b"abcdefghijklmnopqrstuvwxyz"[:length % 26]


# ---- as it should be

def test_a_body_arrives_as_it_was_and_the_connection_is_kept(send):
    bodies = []

    def handle(c):
        while request := c.request():
            bodies.append(request[1])
            c.say(200, "thanks")
    with Server(handle) as server:
        found = send("--post", LARGE, "--times", "3", server.url + "/base", "/up?x=1")
    assert [f["status"] for f in found] == [200] * 3
    assert found[2]["connects"] == 1 and server.connections == 1
    assert bodies == [expected(LARGE)] * 3
    assert server.requests[0].startswith(f"POST /base/up?x=1 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n")


def test_chunked_answers_are_read_however_they_come(send):
    def handle(c):
        while c.request():
            c.send("HTTP/1.1 100 Continue\r\n\r\n")
            for byte in "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n6\r\n again\r\n0\r\nT: x\r\n\r\n":
                c.send(byte)
    with Server(handle) as server:
        found = send("--times", "2", server.url)
    assert [(f["status"], f["body"], f["whole"]) for f in found] == [(200, "hello again", 1)] * 2
    assert server.connections == 1


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_a_unix_socket_is_spoken_to_as_localhost(send, workdir, kind):
    path = str(workdir / "s.sock") if kind == "path" else f"\0pillion-{workdir.name}"
    with Server(answers(204), path) as server:
        found = send("--post", "5", "unix:" + path.replace("\0", "@"), "/up")
    assert found["status"] == 204
    assert "Host: localhost" in server.requests[0].split("\r\n")


def test_an_ipv6_address_is_written_in_brackets(send):
    try:
        server = Server(answers(), ("::1", 0))
    except OSError as why:
        pytest.skip(f"no IPv6 here: {why}")
    with server:
        assert send(server.url)["status"] == 200
    assert f"Host: [::1]:{server.port}" in server.requests[0].split("\r\n")


# ---- servers in trouble

def test_a_slow_reader_gets_everything(send):
    received = []

    def handle(c):
        head = c.head()
        while len(c.buffer) < webserver.length_of(head) and c.more(50_000):
            time.sleep(0.01)
        received.append(c.buffer)
        c.say(200)
    with Server(handle, receive_buffer=16_384) as server:
        # progress all the time, if slow: no wait is as long as the stall that is allowed
        found = send("--post", "2000000", "--stall-ms", "3000", "--deadline-ms", "30000", server.url)
    assert found["status"] == 200 and found["sent_all"], found
    assert received == [expected(2_000_000)]


def test_a_connection_cut_in_the_request_is_told_as_such(send):
    def handle(c):
        c.head()
        c.more()
        c.cut()
    with Server(handle) as server:
        found = send("--post", LARGE, server.url)
    assert not found["ok"] and found["sent"] and not found["sent_all"] and not found["began"], found
    assert found["errno"] in (errno.ECONNRESET, errno.EPIPE) and not found["config"]
    assert found["error"].startswith(server.url + ": ")
    assert server.connections == 1


def test_a_connection_cut_in_the_answer_leaves_its_status(send):
    def handle(c):
        c.request()
        c.send("HTTP/1.1 503 Sorry\r\nContent-Length: 100\r\n\r\nhello")
        time.sleep(0.05)
        c.cut()
    with Server(handle) as server:
        found = send("--post", "5", server.url)
    assert found["ok"] and found["status"] == 503 and not found["whole"], found


@pytest.mark.parametrize("option,sentence", [("--stall-ms", "nothing came for 0.3 s"),
                                             ("--deadline-ms", "the time limit was reached")])
def test_a_response_that_never_comes_is_waited_for_so_long(send, option, sentence):
    def handle(c):
        c.request()
        c.hold()
    with Server(handle) as server:
        found = send("--post", "5", option, "300", server.url)
    assert not found["ok"] and found["errno"] == errno.ETIMEDOUT and found["sent_all"], found
    assert sentence in found["error"]
    assert found["ms"] >= 299


def test_trickled_bytes_do_not_outlive_the_deadline(send):
    def handle(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nX: ")
        while not c.server.closing.wait(0.02):
            c.send("y")
    with Server(handle) as server:
        found = send("--deadline-ms", "400", "--stall-ms", "200", server.url)
    assert not found["ok"] and "time limit" in found["error"] and 399 <= found["ms"], found


@pytest.mark.parametrize("then", ["ends", "hangs"])
def test_a_content_length_that_lies_takes_nothing_from_the_status(send, then):
    def handle(c):
        c.request()
        c.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello")
        if then == "hangs":
            c.hold()
    with Server(handle) as server:
        found = send("--post", "5", "--stall-ms", "300" if then == "hangs" else "9000", server.url)
    assert found["ok"] and found["status"] == 200 and found["body"] == "hello", found
    assert not found["whole"] and not found["keeps"]


@pytest.mark.parametrize("status", [401, 413])
@pytest.mark.parametrize("then", ["closes", "drains", "holds"])
def test_an_early_answer_is_heard_while_the_body_is_sent(send, status, then):
    def handle(c):
        c.head()
        c.say(status, "no")
        {"closes": lambda: None, "drains": c.drain, "holds": c.hold}[then]()
    with Server(handle, receive_buffer=16_384) as server:
        found = send("--post", LARGE, "--deadline-ms", "60000", server.url)
    assert found["ok"] and found["status"] == status, found
    assert not found["sent_all"] and not found["keeps"]
    # 10 s would be the stall; the answer is seen long before
    assert found["ms"] < 8000


def test_retry_after_comes_in_seconds_and_as_a_date(send):
    with Server(answers(429, "", "Retry-After: 7")) as server:
        assert send("--post", "5", server.url)["retry_after_s"] == 7
    when = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=120), usegmt=True)
    with Server(answers(429, "", f"Retry-After: {when}")) as server:
        found = send("--post", "5", server.url)
    assert found["status"] == 429 and 60 < found["retry_after_s"] <= 120, found


# ---- kept connections

def test_a_kept_connection_that_ended_meanwhile_is_replaced(send):
    def handle(c):
        c.request()
        c.say(200)
    with Server(handle) as server:
        found = send("--post", "5", "--times", "3", "--pause-ms", "100", server.url)
    assert [f["status"] for f in found] == [200] * 3
    assert server.connections == found[2]["connects"] == 3 and len(server.requests) == 3


@pytest.mark.parametrize("how", ["close", "cut"])
def test_a_kept_connection_that_ends_under_the_request_is_tried_anew_once(send, how):
    def handle(c):
        c.request()
        c.say(200)
        c.request()
        c.cut() if how == "cut" else None
    with Server(handle) as server:
        found = send("--post", "5", "--times", "2", server.url)
    assert [f["status"] for f in found] == [200, 200], found
    assert server.connections == 2 and len(server.requests) == 3


# ---- proxies. Targets are names that nobody resolves: loopback is never proxied.

def test_plain_http_goes_through_a_proxy_by_its_whole_address(send):
    with Server(answers()) as server:
        found = send("--post", "5", "http://origin.invalid:81/p", "/up",
                     env={"http_proxy": f"http://{USER}@127.0.0.1:{server.port}"})
    assert found["status"] == 200
    lines = server.requests[0].split("\r\n")
    assert lines[:2] == ["POST http://origin.invalid:81/p/up HTTP/1.1", "Host: origin.invalid:81"]
    assert f"Proxy-Authorization: Basic {CREDENTIALS}" in lines


@pytest.mark.parametrize("does,sentence,config", [
    (answers(407, "who?"), "requires a valid user and password", True),
    (answers(502), "does not connect to origin.invalid:443: 502 Said", False),
    (lambda c: c.head(), "the connection was closed instead of a response", False),
    (lambda c: (c.head(), c.hold()), "nothing came for 2 s", False)], ids=["407", "502", "closes", "silent"])
def test_a_proxy_that_refuses_is_named(send, does, sentence, config):
    with Server(does) as server:
        found = send("--post", "5", "--secret", "Authorization:Bearer SECRET-1", "--stall-ms", "2000", "https://origin.invalid",
                     env={"HTTPS_PROXY": f"http://127.0.0.1:{server.port}"})
    assert not found["ok"] and found["config"] == config, found
    assert f"proxy 127.0.0.1:{server.port}" in found["error"] and sentence in found["error"]
    assert server.requests[0].startswith("CONNECT origin.invalid:443 HTTP/1.1\r\nHost: origin.invalid:443\r\n")
    assert "SECRET" not in "".join(server.requests)


def test_no_proxy_is_honoured(send):
    with Server(answers()) as server, Server(answers()) as proxy:
        found = send("--deadline-ms", "3000", "http://origin.invalid",
                     env={"http_proxy": f"http://127.0.0.1:{proxy.port}", "no_proxy": "10.0.0.0/8,.invalid"})
        assert not found["ok"] and proxy.connections == 0
        assert send(server.url, env={"http_proxy": f"http://127.0.0.1:{proxy.port}"})["status"] == 200
    assert proxy.connections == 0


@pytest.fixture(scope="module")
def certificates(http_send, tmp_path_factory):
    """A folder with an authority, ca.pem, and what it signed for origin.invalid and 127.0.0.1: cert.pem, key.pem."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test authority", "-days", "2")
    openssl("req", *key, "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=origin.invalid")
    (folder / "ext").write_text("subjectAltName=DNS:origin.invalid,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", "ext", "-out", "cert.pem")
    return folder


@pytest.fixture(scope="module")
def s_server(certificates):
    """openssl s_server for origin.invalid: its port."""
    server = subprocess.Popen(["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", "cert.pem", "-key", "key.pem", "-www"],
                              cwd=certificates, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    process.foreign.add(server.pid)
    port = next(int(line.rsplit(":", 1)[1]) for line in server.stdout if line.startswith("ACCEPT"))
    threading.Thread(target=server.stdout.read, daemon=True).start()
    yield port
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def tls(certificates):
    """For Server: the certificate as Python's ssl module wants it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")
    return context


def test_connect_and_then_tls(send, s_server, certificates):
    with Server(webserver.proxy(s_server, CREDENTIALS)) as proxy:
        found = send("--ca", certificates / "ca.pem", "--times", "2", "https://origin.invalid",
                     env={"https_proxy": f"http://{USER}@127.0.0.1:{proxy.port}"})
    assert [f["status"] for f in found] == [200, 200], found
    assert len(proxy.requests) == 2 and found[1]["resumptions"] == 1


def test_over_tls_a_body_arrives_as_it_was_and_the_connection_is_kept(send, tls, certificates):
    bodies = []

    def handle(c):
        while request := c.request():
            bodies.append(request[1])
            c.say(200, "thanks")
    with Server(handle, tls=tls) as server:
        found = send("--ca", certificates / "ca.pem", "--post", LARGE, "--times", "2", server.url)
    assert [(f["status"], f["keeps"]) for f in found] == [(200, 1)] * 2, found
    assert server.connections == 1 and bodies == [expected(LARGE)] * 2


@pytest.mark.parametrize("then", ["closes", "drains", "holds"])
def test_over_tls_an_early_answer_is_heard_too(send, tls, certificates, then):
    def handle(c):
        c.head()
        c.say(413, "no")
        {"closes": lambda: None, "drains": c.drain, "holds": c.hold}[then]()
    with Server(handle, receive_buffer=16_384, tls=tls) as server:
        found = send("--ca", certificates / "ca.pem", "--post", LARGE, "--deadline-ms", "60000", server.url)
    assert found["ok"] and found["status"] == 413, found
    assert not found["sent_all"] and not found["keeps"] and found["ms"] < 8000


def test_over_tls_a_cut_and_a_silence_are_told(send, tls, certificates):
    def handle(c):
        c.request()
        c.cut() if c.number == 1 else c.hold()
    with Server(handle, tls=tls) as server:
        found = send("--ca", certificates / "ca.pem", "--post", "5", "--times", "2", "--stall-ms", "2000", server.url)
    assert [f["ok"] for f in found] == [0, 0] and not found[0]["config"]
    assert found[0]["errno"] == errno.ECONNRESET and found[1]["errno"] == errno.ETIMEDOUT, found


def test_over_tls_a_kept_connection_that_ended_is_replaced(send, tls, certificates):
    def handle(c):
        c.request()
        c.say(200)
    with Server(handle, tls=tls) as server:
        found = send("--ca", certificates / "ca.pem", "--post", "5", "--times", "3", "--pause-ms", "100", server.url)
    assert [f["status"] for f in found] == [200] * 3, found
    assert server.connections == 3 and len(server.requests) == 3


# ---- names

def in_namespace(http_send, mode, *args):
    """What came of the requests, and the questions that the name server saw."""
    done = process.run(["unshare", "--net", "--mount", sys.executable, NAMESERVER, mode, http_send, *args], env=CLEAN, timeout=60,
                       cwd=linked.REPOSITORY)
    if "peration not permitted" in done.err:
        pytest.skip("no namespaces here: " + done.err.strip().splitlines()[-1])
    assert done.status == 0, done
    found = [json.loads(line) for line in done.out.splitlines()]
    return found[:-1], found[-1]


@pytest.mark.root
def test_a_name_server_that_is_silent_holds_nothing_up(http_send):
    (first, second), counts = in_namespace(http_send, "silent", "--deadline-ms", "400", "--times", "2", "http://slow.test:8080")
    for found in (first, second):
        assert not found["ok"] and found["errno"] == errno.ETIMEDOUT and not found["config"], found
        assert found["error"].startswith("cannot resolve the name slow.test yet")
        assert 399 <= found["ms"] < 3000
    # The second request waited for the questions of the first, which are repeated after 2.5 s.
    assert counts["udp"] == 2 or first["ms"] + second["ms"] > 1500


@pytest.mark.root
def test_a_waker_ends_the_wait_for_a_name(http_send):
    (found,), _ = in_namespace(http_send, "silent", "--deadline-ms", "30000", "--wake-after-ms", "200", "http://slow.test:8080")
    assert not found["ok"] and found["errno"] == errno.ECANCELED and found["ms"] < 4000, found


@pytest.mark.root
def test_a_truncated_answer_is_asked_for_by_tcp(http_send):
    (found,), counts = in_namespace(http_send, "truncated", "http://many.test:8080")
    assert found["status"] == 200, found
    assert counts["tcp"] >= 1 and counts["http"] == 1


@pytest.mark.root
def test_families_are_tried_in_turn_and_addresses_are_kept(http_send):
    """20 dead addresses of one family come first, and of all 16 are tried at most."""
    found, counts = in_namespace(http_send, "dead-first", "--times", "3", "http://two.test:8080")
    assert [f["status"] for f in found] == [200] * 3, found
    assert counts["udp"] == 2 and counts["http"] == 3  # A and AAAA, once


@pytest.mark.root
def test_a_name_that_is_not_there_is_named(http_send):
    (found,), _ = in_namespace(http_send, "missing", "http://typo.test:8080")
    assert not found["ok"] and "cannot resolve the name typo.test" in found["error"], found


# ---- being stopped

def test_a_waker_ends_the_wait_for_an_answer(send):
    def handle(c):
        c.request()
        c.hold()
    with Server(handle) as server:
        found = send("--post", "5", "--deadline-ms", "60000", "--wake-after-ms", "200", server.url)
    assert not found["ok"] and found["errno"] == errno.ECANCELED and 199 <= found["ms"] < 5000, found


def test_a_waker_ends_the_sending(send):
    def handle(c):
        c.head()
        c.hold()
    with Server(handle, receive_buffer=16_384) as server:
        found = send("--post", 50_000_000, "--deadline-ms", "60000", "--wake-after-ms", "300", server.url)
    assert not found["ok"] and found["errno"] == errno.ECANCELED and found["ms"] < 5000, found


@pytest.mark.root
def test_the_own_address_is_that_of_the_way_out(http_send):
    script = ("ip link add way type veth peer name other && ip link set other up && ip link set way address 02:42:ac:11:00:02 && ip addr add 10.9.8.7/24 dev way && "
              'ip link set way up && "$0" --own-address && ip route add default via 10.9.8.1 && "$0" --own-address')
    done = process.run(["unshare", "--net", "sh", "-c", script, http_send], env=CLEAN)
    if done.status != 0:
        pytest.skip(f"no such interface here: {done.err.strip()}")
    assert done.out.splitlines() == ["10.9.8.7", "02:42:ac:11:00:02"] * 2
