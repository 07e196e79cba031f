"""TLS as src/deliver/tls speaks it (programs/tls_get.c) against a real server, openssl s_server: each way in which a
handshake can end, with its sentence."""
import contextlib
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

from lab import linked, process
from lab.authority import NAME, Authority, answering, check_good, forward, openssl, pin_of, says, serving

pytestmark = pytest.mark.measures

YEAR = 365 * 86400


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module", params=["first", "second"])
def engine(request):
    return request.param


@pytest.fixture(scope="module")
def get(arch, pillion, engine):
    """get(PORT, OPTION...) -> the lines that tls_get prints, asking 127.0.0.1 as server.test."""
    program = linked.program("tests/live/programs/tls_get.c", arch, pillion)

    def run(port, *options, host="server.test", at="127.0.0.1"):
        begins = ["--second"] if engine == "second" else []
        done = process.run([program, host, port, "--at", at, *begins, *options], timeout=60)
        assert done.status in (0, 1), done
        return done.out
    return run


@pytest.fixture
def refused(get):
    """refused(PAIR, [OPTION OF THE SERVER...], [OF THE CLIENT...]) -> (class, sentence)"""
    def run(pair, server=(), client=(), **more):
        with serving(pair, *server) as port:
            return says(get(port, *client, **more))
    return run


# ---- What is good

@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "RSA-2048"])
def test_every_kind_of_key(authority, get, kind):
    with serving(authority.leaf(f"leaf-{kind}", kind=kind)) as port:
        check_good(get(port, "--ca", authority.file("root.pem")))


@pytest.mark.parametrize("group", ["P-256", "P-384", "P-521", "X25519"])
def test_every_group(authority, get, group):
    with serving(authority.leaf("leaf"), "-groups", group) as port:
        check_good(get(port, "--ca", authority.file("root.pem")))


@pytest.mark.parametrize("cipher", ["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-GCM-SHA256",
                                    "ECDHE-ECDSA-AES256-GCM-SHA384"])
def test_every_cipher(authority, get, cipher):
    """Read only when `readable` says so, and then without waiting."""
    with serving(authority.leaf("leaf"), "-cipher", cipher) as port:
        out = get(port, "--ca", authority.file("root.pem"), "--poll")
        check_good(out)
        assert cipher in out


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST"])
def test_names_as_they_are_written(authority, get, host):
    with serving(authority.leaf("leaf")) as port:
        check_good(get(port, "--ca", authority.file("root.pem"), host=host))


def test_an_address_is_found_among_the_names(authority, get):
    pair = authority.leaf("addresses", ["subjectAltName=DNS:x.test,IP:127.0.0.1,IP:::1"])
    with serving(pair) as port:
        check_good(get(port, "--ca", authority.file("root.pem"), host="127.0.0.1"))
        assert "x.test, 127.0.0.1, ::1, not for this host" in get(port, "--ca", authority.file("root.pem"), host="127.0.0.2")
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 here: {error}")
    with serving(pair, at="[::1]") as port:
        check_good(get(port, "--ca", authority.file("root.pem"), host="::1", at="::1"))


def test_the_server_is_told_the_name_but_no_address(authority, get):
    """By its -servername: another certificate for who names it."""
    by_name = authority.leaf("by-name", ["subjectAltName=DNS:named.test"])
    other = authority.leaf("address", ["subjectAltName=IP:127.0.0.1"])
    options = ["-servername", "named.test", "-cert2", by_name[0], "-key2", by_name[1]]
    with serving(other, *options) as port:
        check_good(get(port, "--ca", authority.file("root.pem"), host="named.test"))
        check_good(get(port, "--ca", authority.file("root.pem"), host="127.0.0.1"))


def test_a_chain_with_an_intermediate(authority, get, refused):
    pair = authority.leaf("end", by=authority.signer("middle"), kind="P-384")
    with serving(pair, "-cert_chain", authority.file("middle.pem")) as port:
        check_good(get(port, "--ca", authority.file("root.pem")))
    kind, why = refused(pair, client=["--ca", authority.file("root.pem")])
    assert kind == "config"
    assert re.fullmatch(r'the authority "middle" is unknown, of 1 known ones \(\S+/root.pem\): give its certificate with '
                        r"--ca-file, or let the server send the intermediate ones", why), why


@pytest.mark.parametrize("order", ["lower upper", "upper lower", "root upper other lower", "lower lower upper root"])
def test_a_chain_in_any_order(authority, get, order):
    """As OpenSSL takes it: swapped, with the root, with what does not belong, with one twice."""
    pair = authority.leaf("deep", by=authority.signer("lower", by=authority.signer("upper")), kind="P-384")
    chain = authority.folder / "chain.pem"
    chain.write_text("".join((authority.folder / f"{name}.pem").read_text() for name in order.split()))
    openssl(authority.folder, "verify", "-CAfile", "root.pem", "-untrusted", chain, pair[0])
    with serving(pair, "-cert_chain", str(chain)) as port:
        check_good(get(port, "--ca", authority.file("root.pem")))


def test_a_self_signed_one_that_is_given(authority, get):
    authority.own("alone", [NAME])
    with serving((authority.file("alone.pem"), authority.file("alone.key"))) as port:
        check_good(get(port, "--ca", authority.file("alone.pem")))


def test_without_verifying(authority, get):
    with serving(authority.leaf("far", ["subjectAltName=DNS:far.test"], by="other", kind="RSA-2048")) as port:
        check_good(get(port, "--no-verify", "--wall", "0"))


# ---- What is not

def test_dates(authority, get):
    now = int(time.time())
    with serving(authority.leaf("leaf")) as port:
        for wall, says_so in ((now + 2 * YEAR, r"the certificate of leaf expired \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d, and this "
                               r"machine's clock says \S+ \(UTC\): renew it on the server, or set the clock"),
                              (now - YEAR, r"the certificate of leaf is valid only from \S+, and this machine's clock "
                               r"says \S+ \(UTC\): set the clock, or wait")):
            kind, why = says(get(port, "--ca", authority.file("root.pem"), "--wall", wall))
            assert kind == "config" and re.fullmatch(says_so, why), why


def test_another_host(authority, refused):
    kind, why = refused(authority.leaf("leaf"), client=["--ca", authority.file("root.pem")], host="else.test")
    assert (kind, why) == ("config", "the certificate is for server.test, localhost, not for this host: use such a name, "
                                     "or get a certificate for it")


def test_unknown_authorities(authority, refused):
    ca = ["--ca", authority.file("root.pem")]
    kind, why = refused(authority.leaf("foreign", by="other"), client=ca)
    assert kind == "config" and why.startswith('the authority "other" is unknown, of 1 known ones'), why
    authority.own("alone", [NAME])
    kind, why = refused((authority.file("alone.pem"), authority.file("alone.key")), client=ca)
    assert kind == "config" and re.fullmatch(
        r"the certificate of alone is signed by itself and not among the 1 known authorities \(\S+\): give it with "
        r"--ca-file", why), why
    kind, why = refused(authority.leaf("leaf"), client=["--built-in"])
    assert kind == "config" and re.search(r'"root" is unknown, of 1\d\d known ones \(built in, as of 20', why), why
    kind, why = refused(authority.leaf("leaf"))
    assert kind == "config" and why.startswith("no authority is known that could have signed the certificate of leaf"), why


def test_a_clients_certificate_is_no_servers(authority, refused):
    pair = authority.leaf("client-only", [NAME, "extendedKeyUsage=clientAuth"])
    kind, why = refused(pair, client=["--ca", authority.file("root.pem")])
    assert kind == "config" and "client-only may not be a server's (extendedKeyUsage): it needs serverAuth" in why


def test_critical_extensions(authority, refused):
    pair = authority.leaf("strict", [NAME, "extendedKeyUsage=critical,serverAuth"])
    kind, why = refused(pair, client=["--ca", authority.file("root.pem")])
    assert kind == "config" and "a critical extension, 2.5.29.37 (extendedKeyUsage), that is not known here" in why, why


@pytest.mark.parametrize("kind,criticality", [("upper", ""), ("root", ""), ("root", "critical,")])
def test_name_constraints(authority, get, kind, criticality):
    """Of an intermediate authority and of a trusted one; OpenSSL agrees."""
    name = f"{kind}-{criticality}"
    allowed = [f"nameConstraints={criticality}permitted;DNS:good.test"]
    if kind == "root":
        authority.own(name, ["basicConstraints=critical,CA:TRUE", *allowed])
    else:
        authority.signer(name, allowed)
    trusted, chain = authority.file(f"{name if kind == 'root' else 'root'}.pem"), authority.file(f"{name}.pem")
    good = authority.leaf(f"good by {name}", ["subjectAltName=DNS:a.good.test"], by=name, kind="P-384")
    bad = authority.leaf(f"bad by {name}", by=name, kind="P-384")
    with serving(good, "-cert_chain", chain) as port:
        check_good(get(port, "--ca", trusted, host="a.good.test"))
    with serving(bad, "-cert_chain", chain) as port:
        sort, why = says(get(port, "--ca", trusted))
    assert sort == "config" and why.startswith(f'the authority "{name}" may not sign for all names'), why
    verified = subprocess.run(["openssl", "verify", "-CAfile", trusted, "-untrusted", chain, bad[0]], capture_output=True)
    assert b"permitted subtree violation" in verified.stdout + verified.stderr


@pytest.mark.parametrize("name,more,why", [
    ("weak", {"kind": "RSA-1024"}, "the RSA key of weak has fewer than 2048 bits: the server needs a longer one"),
    ("sha1", {"digest": "sha1"}, "the key of sha1 or its signature (1.2.840.10045.4.1) is of an unknown kind here"),
])
def test_weak_certificates(authority, refused, name, more, why):
    kind, text = refused(authority.leaf(name, **more), client=["--ca", authority.file("root.pem")])
    assert kind == "config" and text.startswith(why), text


NO_CIPHER = "the server has no cipher or kind of key in common with this side (TLS 1.2 and 1.3, "
ONLY_TLS13 = ["-ciphersuites", "TLS_AES_128_CCM_SHA256"]  # which nobody here has


@pytest.mark.parametrize("kind,options,why", [
    ("P-256", ["-tls1_1"], "the server speaks only TLS 1.1 or older, and TLS 1.2 and 1.3 are spoken here: allow one of them "
                           "there"),
    ("ED25519", [], NO_CIPHER),
    ("RSA-PSS", [], NO_CIPHER),
    ("RSA-2048", ["-cipher", "AES128-SHA", *ONLY_TLS13], NO_CIPHER),
    ("RSA-2048", ["-cipher", "DHE", *ONLY_TLS13], NO_CIPHER),
    ("P-256", ["-alpn", "h2"], "the server speaks only HTTP/2 or another protocol, and HTTP/1.1 is spoken here"),
])
def test_servers_that_speak_another_language(authority, refused, kind, options, why):
    kind, text = refused(authority.leaf(f"leaf-{kind}", kind=kind), options, ["--ca", authority.file("root.pem")])
    assert kind == "config" and text.startswith(why), text


# ---- Servers that are none

def test_plain_http_on_the_port(get):
    def deal(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    with answering(deal) as port:
        assert says(get(port)) == ("config", "the server does not speak TLS on this port: is it http, or another port?")


@pytest.mark.parametrize("sends", [b"", b"\x16\x03\x03\x00\x40\x02\x00"])
def test_a_cut_during_the_handshake(get, sends):
    def deal(connection):
        connection.recv(4096)
        connection.sendall(sends)
    with answering(deal) as port:
        assert says(get(port)) == ("passing", "the server closed the connection during the handshake")


# ---- Certificates of the client

@pytest.fixture
def client(authority):
    """client("P-384") -> its options"""
    def options(kind, by="root"):
        pair = authority.leaf(f"client-{kind}-{by}", ["extendedKeyUsage=clientAuth"], kind=kind, by=by)
        return ["--ca", authority.file("root.pem"), "--cert", pair[0], "--key", pair[1]]
    return options


@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "RSA-2048"])
@pytest.mark.parametrize("server", ["P-256", "RSA-2048"])
def test_a_client_certificate_that_is_required(authority, get, client, kind, server):
    with serving(authority.leaf(f"leaf-{server}", kind=server), "-Verify", "2", "-verify_return_error", "-CAfile",
                 authority.file("root.pem")) as port:
        out = get(port, *client(kind))
        check_good(out)
        assert f"CN = client-{kind}-root" in out or f"CN=client-{kind}-root" in out, out


def test_a_client_certificate_that_is_asked_for_and_not_there(authority, get):
    with serving(authority.leaf("leaf"), "-verify", "2", "-CAfile", authority.file("root.pem")) as port:
        check_good(get(port, "--ca", authority.file("root.pem")))


def test_a_client_certificate_that_is_required_and_not_there(authority, refused):
    assert refused(authority.leaf("leaf"), ["-Verify", "2"], ["--ca", authority.file("root.pem")]) == (
        "config", "the server requires a client certificate: give one with its key")


def test_a_client_certificate_that_is_refused(authority, refused, client):
    kind, why = refused(authority.leaf("leaf"), ["-Verify", "2", "-verify_return_error", "-CAfile",
                                                 authority.file("root.pem")], client("P-256", by="other"))
    assert kind == "config" and why == ("the server refuses the client certificate (alert 48, unknown authority): use one "
                                        "of an authority that it trusts"), why


# ---- Pins

def test_pins(authority, get):
    pair = authority.leaf("far", ["subjectAltName=DNS:far.test"], by="other", kind="RSA-2048")
    own, other = pin_of(authority, pair[0]), pin_of(authority, authority.file("root.pem"))
    with serving(pair) as port:
        check_good(get(port, "--pin", own))
        check_good(get(port, "--pin", other, "--pin", own))
        assert says(get(port, "--pin", other)) == (
            "config", "the key of far is none of the 1 pinned ones: is this the server, or did its key change?")
    with serving(authority.leaf("leaf")) as port:
        kind, _ = says(get(port, "--pin", other, "--ca", authority.file("root.pem")))
        assert kind == "config"


# ---- Connections

def test_the_second_handshake_is_a_short_one(authority, get):
    with serving(authority.leaf("leaf")) as port:
        out = get(port, "--ca", authority.file("root.pem"), "--times", "3")
        assert re.findall(r"^(full|short) ", out, re.M) == ["full", "short", "short"], out
        assert re.findall(r"^(New|Reused), TLSv1", out, re.M) == ["New", "Reused", "Reused"], out
        assert out.count("\nend\n") == 3


def test_a_server_that_forgot_is_shaken_hands_with_anew(authority, get):
    with serving(authority.leaf("leaf"), "-no_cache", "-no_ticket") as port:
        out = get(port, "--ca", authority.file("root.pem"), "--times", "2")
        assert re.findall(r"^(full|short) ", out, re.M) == ["full", "full"], out


def test_an_end_without_a_farewell_is_no_end(authority, get):
    """A page by a server whose connection is cut before it says that it is done."""
    with serving(authority.leaf("leaf")) as port:
        def cut(connection):
            with socket.create_connection(("127.0.0.1", port)) as server:
                relay(connection, server)
        with answering(cut) as middle:
            out = get(middle, "--ca", authority.file("root.pem"))
    assert ", Cipher is" in out and "cut: TLS with server.test: the connection was closed before the server ended " \
        "the session" in out, out


def relay(client, server):
    """Both ways, record by record, but not the last one: an alert of the server, which TLS 1.3 hides among others."""
    threading.Thread(target=forward, args=(client, server), daemon=True).start()
    head, from_server = b"", server.makefile("rb")
    while len(head := from_server.read(5)) == 5 and head[0] != 0x15 and head[3:] != b"\0\x13":
        client.sendall(head + from_server.read(int.from_bytes(head[3:], "big")))
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)


def test_a_long_request_arrives_whole(authority, get):
    """1 MB to a server, in Python's words, that begins to read late."""
    pair, size, got = authority.leaf("leaf"), 1_000_000, []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)

    def deal(connection):
        with context.wrap_socket(connection, server_side=True) as secure:
            head, _, body = secure.recv(65536).partition(b"\r\n\r\n")
            time.sleep(0.1)
            while len(body) < size:
                body += secure.recv(65536)
            got.append((head, body))
            secure.sendall(b"HTTP/1.0 200 OK\r\n\r\ntaken")
            with contextlib.suppress(OSError):
                secure.unwrap()
    with answering(deal) as port:
        out = get(port, "--ca", authority.file("root.pem"), "--long", size)
    assert "\ntaken\nend\n" in out, out
    assert got[0][1] == bytes(size) and got[0][0].startswith(b"POST / "), got[0][0]


def test_a_changed_byte_is_noticed(authority, get):
    """The server's page loses a bit: the long record."""
    def damage(client):
        with socket.create_connection(("127.0.0.1", port)) as server:
            threading.Thread(target=forward, args=(client, server), daemon=True).start()
            from_server = server.makefile("rb")
            while len(head := from_server.read(5)) == 5:
                body = bytearray(from_server.read(int.from_bytes(head[3:], "big")))
                body[-1] ^= head[0] == 0x17 and len(body) > 1500
                with contextlib.suppress(OSError):
                    client.sendall(head + body)
    with serving(authority.leaf("leaf")) as port, answering(damage) as middle:
        out = get(middle, "--ca", authority.file("root.pem"))
    assert "cut: TLS with server.test: a record was damaged on its way" in out, out


def test_memory(authority, get):
    """All authorities and a connection: the whole program, statically linked."""
    with serving(authority.leaf("leaf")) as port:
        out = get(port, "--built-in", "--ca", authority.file("root.pem"))
        check_good(out)
        assert int(re.search(r"^rss (\d+)$", out, re.M).group(1)) < 4096, out
