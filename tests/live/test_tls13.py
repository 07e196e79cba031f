"""What TLS's second engine is for: servers that want 1.3, Extended Master Secret, RSA-PSS or long keys, and which engine
stays with whom. test_tls.py asks both engines the same."""
import contextlib
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import pytest

from lab import golang, linked, process, tiers
from lab.authority import Authority, answering, check_good, forward, openssl, pin_of, says, serving

pytestmark = pytest.mark.measures

FIPS = (1, 24)  # the first release of Go that knows such a mode
SECOND = "by the second engine"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("tls13"))
    authority.own("rsa", ["basicConstraints=critical,CA:TRUE"], kind="RSA-2048")
    return authority


@pytest.fixture(scope="module")
def get(arch, pillion):
    program = linked.program("tests/live/programs/tls_get.c", arch, pillion)

    def run(port, *options, host="server.test"):
        done = process.run([program, host, port, "--at", "127.0.0.1", *options], timeout=60)
        assert done.status in (0, 1), done
        return done.out
    return run


@pytest.fixture
def ca(authority):
    return ["--ca", authority.file("root.pem")]


# ---- OpenSSL's server

def test_a_server_that_wants_tls_13(authority, get, ca):
    """The first handshake is refused, the second engine's is good, and from then on it is asked at once."""
    with serving(authority.leaf("leaf"), "-tls1_3") as port:
        out = get(port, *ca, "--times", "3", "--poll")
        check_good(out)
        assert out.count(SECOND) == 3 and re.findall(r"^(full|short) ", out, re.M) == ["full", "short", "short"], out
        assert re.search(r"^ *4 server accepts \(", out, re.M), out


def test_a_server_that_takes_both_gets_the_first(authority, get, ca):
    with serving(authority.leaf("leaf")) as port:
        out = get(port, *ca)
        check_good(out, "TLSv1.2")
        assert SECOND not in out


@pytest.mark.parametrize("cipher", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_every_cipher(authority, get, ca, cipher):
    with serving(authority.leaf("leaf"), "-tls1_3", "-ciphersuites", cipher) as port:
        out = get(port, *ca, "--poll")
        check_good(out)
        assert cipher in out


@pytest.mark.parametrize("group", ["P-256", "P-384", "P-521", "X25519"])
def test_every_group(authority, get, ca, group):
    """The server asks for another key share than it was sent."""
    with serving(authority.leaf("leaf"), "-tls1_3", "-groups", group) as port:
        check_good(get(port, *ca))


@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "RSA-2048", "RSA-8192"])
@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_every_kind_of_key(authority, get, ca, kind, version):
    """A key of 8192 bits is too long for the first engine, whatever the version."""
    with serving(authority.leaf(f"leaf-{kind}", kind=kind), version) as port:
        out = get(port, *ca)
        check_good(out, version.replace("-tls1_", "TLSv1."))
        assert (SECOND in out) == (version == "-tls1_3" or kind == "RSA-8192"), out


@pytest.mark.parametrize("kind", ["ED25519", "RSA-PSS"])
def test_keys_that_nobody_here_knows(authority, get, ca, kind):
    with serving(authority.leaf(f"leaf-{kind}", kind=kind), "-tls1_3") as port:
        sort, why = says(get(port, *ca))
    assert sort == "config" and why.endswith("A certificate with a key of the kind Ed25519 or RSASSA-PSS is not known here: "
                                             "give the server one with an ECDSA or RSA key"), why


# ---- Certificates with RSA-PSS signatures

@pytest.fixture
def pss(authority):
    """pss(NAME...) -> a leaf signed by RSA-PSS, by an authority with an ordinary RSA key"""
    def make(name="pss", **more):
        return authority.leaf(name, by="rsa", pss=True, **more)
    return make


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_rsa_pss_signatures(authority, get, pss, version):
    with serving(pss(), version) as port:
        out = get(port, "--ca", authority.file("rsa.pem"))
        check_good(out, version.replace("-tls1_", "TLSv1."))
        assert SECOND in out


def test_a_chain_with_rsa_pss(authority, get):
    """Of an intermediate authority; its own signature is of the other kind."""
    authority.leaf("rsa-middle", ["basicConstraints=critical,CA:TRUE"], kind="RSA-2048", pss=True, by="rsa")
    (authority.folder / "rsa-middle.key").write_bytes((authority.folder / "RSA-2048.key").read_bytes())
    pair = authority.leaf("below", kind="P-384", by="rsa-middle")
    with serving(pair, "-cert_chain", authority.file("rsa-middle.pem")) as port:
        check_good(get(port, "--ca", authority.file("rsa.pem")), "TLSv1.3")
        sort, why = says(get(port, "--ca", authority.file("root.pem")))
        assert sort == "config" and why.startswith('the authority "rsa" is unknown, of 1 known ones'), why


def test_rsa_pss_is_no_way_around(authority, get, pss):
    """An authority of the same name with another key, one that may not sign, dates, another host, constraints, usages."""
    (authority.folder / "forged").mkdir()
    forged = Authority(authority.folder / "forged")
    forged.own("rsa", ["basicConstraints=critical,CA:TRUE"], kind="RSA-2048")
    trusted = ["--ca", authority.file("rsa.pem")]
    authority.leaf("plain-rsa", kind="RSA-2048", by="rsa")
    (authority.folder / "plain-rsa.key").write_bytes((authority.folder / "RSA-2048.key").read_bytes())
    cases = [
        (forged.leaf("pss", by="rsa", pss=True), [], trusted, 'the authority "rsa" is unknown'),
        (authority.leaf("by-a-leaf", by="plain-rsa", pss=True), ["-cert_chain", authority.file("plain-rsa.pem")], trusted,
         'the authority "rsa" is unknown'),
        (pss(), [], [*trusted, "--wall", "4000000000"], "the certificate of pss expired 20"),
        (pss("elsewhere", extensions=["subjectAltName=DNS:else.test"]), [], trusted, "the certificate is for else.test"),
        (pss("client", extensions=["subjectAltName=DNS:server.test", "extendedKeyUsage=clientAuth"]), [], trusted,
         "the certificate of client may not be a server's"),
        (pss("strict", extensions=["subjectAltName=DNS:server.test", "extendedKeyUsage=critical,serverAuth"]), [], trusted,
         "the certificate of strict has a critical extension, 2.5.29.37"),
        (pss(), [], [], "no authority is known that could have signed the certificate of pss"),
    ]
    for pair, server, client, said in cases:
        with serving(pair, *server) as port:
            sort, why = says(get(port, *client))
        assert sort == "config" and why.startswith(said), (pair, why)


# ---- Go's server

@pytest.fixture(scope="module")
def go():
    """One that knows the mode of FIPS hosts."""
    reason = tiers.tool_missing("go")
    if reason:
        pytest.skip(reason)
    local = golang.Go("local")
    return local if local.number >= FIPS else golang.Go("go1.24.6")


@pytest.fixture(scope="module")
def go_server(go, repository, tmp_path_factory):
    """go_server(PAIR, OPTION..., godebug="") gives a port"""
    folder = tmp_path_factory.mktemp("go-server")
    (folder / "main.go").write_text((repository / "tests/live/programs/tls_server.go").read_text())
    (folder / "go.mod").write_text("module tls_server\n\ngo 1.24\n")
    done = go.run("build", "-o", "tls_server", ".", cwd=folder)
    assert done.status == 0, done

    @contextlib.contextmanager
    def run(pair, *options, godebug=""):
        server = process.start([folder / "tls_server", "-cert", pair[0], "-key", pair[1], *options],
                               env={**os.environ, "GODEBUG": godebug})
        try:
            process.until(lambda: re.search(r"ACCEPT \S+:(\d+)", server.out) or server.poll() is not None, 20,
                          lambda: server.err)
            assert server.poll() is None, server.err
            yield int(re.search(r"ACCEPT \S+:(\d+)", server.out).group(1))
        finally:
            server.end()
    return run


@pytest.mark.parametrize("kind", ["P-256", "P-521", "RSA-2048", "RSA-8192"])
@pytest.mark.parametrize("options,version", [([], "TLSv1.2"), (["-max", "1.2"], "TLSv1.2"), (["-min", "1.3"], "TLSv1.3")])
def test_go(authority, get, go_server, ca, kind, options, version):
    with go_server(authority.leaf(f"leaf-{kind}", kind=kind), *options) as port:
        out = get(port, *ca)
        second = "-min" in options or kind == "RSA-8192"
        check_good(out, "TLSv1.3" if second and not options else version)
        assert (SECOND in out) == second, out


@pytest.mark.parametrize("kind", ["P-256", "RSA-2048"])
@pytest.mark.parametrize("most", ["1.2", "1.3"])
def test_a_fips_host(authority, get, go_server, ca, kind, most):
    """It demands Extended Master Secret of 1.2."""
    with go_server(authority.leaf(f"leaf-{kind}", kind=kind), "-max", most, godebug="fips140=only") as port:
        out = get(port, *ca, "--times", "2")
        check_good(out, f"TLSv{most}")
        assert out.count(SECOND) == 2, out


def test_a_kind_of_key_that_go_has(authority, get, go_server, ca):
    with go_server(authority.leaf("leaf-ED25519", kind="ED25519")) as port:
        sort, why = says(get(port, *ca))
    assert sort == "config" and why.startswith("the key of leaf-ED25519 or its signature (1.3.101.112 Ed25519) is of an "
                                               "unknown kind here"), why


@pytest.mark.parametrize("kind", ["P-256", "P-384", "P-521", "RSA-2048"])
@pytest.mark.parametrize("least", ["1.2", "1.3"])
def test_client_certificates(authority, get, go_server, ca, kind, least):
    good = authority.leaf(f"client-{kind}", ["extendedKeyUsage=clientAuth"], kind=kind)
    other = authority.leaf(f"other-{kind}", ["extendedKeyUsage=clientAuth"], kind=kind, by="other")
    with go_server(authority.leaf("leaf"), "-min", least, "-authority", authority.file("root.pem")) as port:
        out = get(port, *ca, "--cert", good[0], "--key", good[1], "--times", "2")
        check_good(out, f"TLSv{least}")
        assert out.count(f'client "client-{kind}"') == 2, out
        sort, why = says(get(port, *ca, "--cert", other[0], "--key", other[1]))
        assert sort == "config" and why.startswith("the server refuses the client certificate (alert "), why
        sort, why = says(get(port, *ca))
        assert sort == "config" and why.startswith("the server re"), why
        assert "requires a client certificate: give one with its key" in why or "refuses the client certificate" in why, why


@pytest.mark.parametrize("options,handshakes", [([], ["full", "short", "short"]), (["-no-tickets"], ["full"] * 3)])
def test_resumption(authority, get, go_server, ca, options, handshakes):
    with go_server(authority.leaf("leaf"), "-min", "1.3", *options) as port:
        out = get(port, *ca, "--times", "3")
        assert re.findall(r"^(full|short) ", out, re.M) == handshakes, out
        assert re.findall(r"resumed (\w+)", out) == [{"full": "false", "short": "true"}[each] for each in handshakes], out


def test_a_certificate_that_was_changed(authority, get, go_server, ca):
    """A ticket of the server before it is worth nothing: the new certificate is looked at."""
    first, second, foreign = (authority.leaf(name, by=by) for name, by in (
        ("before", "root"), ("after", "root"), ("stranger", "other")))
    ticket = authority.folder / "ticket"
    with go_server(first, "-min", "1.3") as port:
        check_good(get(port, *ca, "--session", ticket), "TLSv1.3")
    assert ticket.stat().st_size > 100
    with go_server(second, "-min", "1.3") as port:
        out = get(port, *ca, "--session", ticket)
        check_good(out, "TLSv1.3")
        assert out.startswith("full "), out
    with go_server(foreign, "-min", "1.3") as port:
        sort, why = says(get(port, *ca, "--session", ticket))
        assert sort == "config" and why.startswith('the authority "other" is unknown'), why


# ---- On the way

def test_a_slow_way_there(authority, arch, pillion, tmp_path):
    """The tickets of 1.3 come while a request has filled all buffers: they are no response, and the rest of it goes out."""
    program = linked.program("tests/live/programs/http_send.c", arch, pillion)
    pair, size, got = authority.leaf("address", ["subjectAltName=IP:127.0.0.1"]), 20_000_000, []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(*pair)

    def serve(connection):
        with context.wrap_socket(connection, server_side=True) as secure:
            have = len(secure.recv(65536).partition(b"\r\n\r\n")[2])
            while have < size and (piece := secure.recv(65536)):
                have += len(piece)
            got.append(have)
            secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def relay(client):
        with socket.create_connection(("127.0.0.1", server_port)) as server:
            threading.Thread(target=forward, args=(server, client), daemon=True).start()
            for _ in range(2):  # what the handshake has
                server.sendall(client.recv(4096))
            time.sleep(1)
            forward(client, server)

    with answering(serve) as server_port, answering(relay) as port:
        done = process.run([program, "--post", size, "--ca", authority.file("root.pem"), f"https://127.0.0.1:{port}", "/"], timeout=60)
    assert '"status": 200' in done.out or '"status":200' in done.out, done
    assert got == [size]


def test_a_server_that_closes_without_a_word(authority, get, ca):
    """As some refuse who wants 1.2: a relay that ends connections whose ClientHello does not speak of 1.3."""
    def relay(client):
        hello = client.recv(4096)
        if b"\x00\x2b\x00\x05\x04\x03\x04" in hello:
            with socket.create_connection(("127.0.0.1", server_port)) as server:
                server.sendall(hello)
                threading.Thread(target=forward, args=(server, client), daemon=True).start()
                forward(client, server)

    with serving(authority.leaf("leaf")) as server_port, answering(relay) as port:
        check_good(get(port, *ca), "TLSv1.3")


# ---- What the second reader found

def test_the_usage_of_a_key(authority, get, ca):
    """A leaf whose key may not sign, for both engines."""
    pair = authority.leaf("enciphers", ["subjectAltName=DNS:server.test", "keyUsage=critical,keyEncipherment"], kind="RSA-2048")
    with serving(pair) as port:
        for begins in ([], ["--second"]):
            sort, why = says(get(port, *ca, *begins))
            assert sort == "config" and why.startswith("the server's certificate may not be used for the kind of handshake"), why
    with serving(pair) as port:
        pin = pin_of(authority, pair[0])
        check_good(get(port, "--pin", pin))
        check_good(get(port, "--pin", pin, "--second"))


def test_the_first_known_authority_decides(authority, get):
    """A trusted intermediate that is sent, too, and a root that another one signed: as with the first engine."""
    authority.leaf("middle", ["basicConstraints=critical,CA:TRUE"], kind="RSA-2048", by="rsa")
    (authority.folder / "middle.key").write_bytes((authority.folder / "RSA-2048.key").read_bytes())
    pair = authority.leaf("under middle", by="middle", pss=True)
    with serving(pair, "-cert_chain", authority.file("middle.pem")) as port:
        check_good(get(port, "--ca", authority.file("middle.pem")), "TLSv1.3")
    request = openssl(authority.folder, "req", "-new", "-key", "rsa.key", "-subj", "/CN=rsa")
    openssl(authority.folder, "x509", "-req", "-CA", "other.pem", "-CAkey", "other.key", "-days", "9", "-set_serial", "99", "-out",
            "crossed.pem", "-extfile", "middle.ext", stdin=request)
    with serving(authority.leaf("pss", by="rsa", pss=True), "-cert_chain", authority.file("crossed.pem")) as port:
        check_good(get(port, "--ca", authority.file("rsa.pem")), "TLSv1.3")


@pytest.mark.parametrize("more", [{"by": "edward"}, {"digest": "sha1"}])
def test_pins_whoever_signed(authority, get, more):
    authority.own("edward", ["basicConstraints=critical,CA:TRUE"], kind="ED25519")
    pair = authority.leaf("by-" + "-".join(more.values()), **more)
    with serving(pair, "-tls1_3") as port:
        check_good(get(port, "--pin", pin_of(authority, pair[0])))
        check_good(get(port, "--no-verify"))
        sort, why = says(get(port, "--ca", authority.file("edward.pem")))
        assert sort == "config", why


def test_a_session_of_another_version(authority, get, ca):
    """The server changes its mind about the version between two connections."""
    pair, ticket = authority.leaf("leaf"), authority.folder / "session"
    for first, then, version in (("-tls1_3", "-tls1_2", "TLSv1.2"), ("-tls1_2", "-tls1_3", "TLSv1.3")):
        ticket.unlink(missing_ok=True)
        with serving(pair, first) as port:
            get(port, *ca, "--second", "--session", ticket)
        assert ticket.exists()
        with serving(pair, then) as port:
            check_good(get(port, *ca, "--second", "--session", ticket), version)


def test_a_long_list_of_authorities(authority, get, ca):
    """A server that takes client certificates from all that its system knows; a message of the handshake is as long."""
    many = authority.folder / "many.pem"
    for number in range(200):
        name = f"Authority {number:03} of a system where there are a great many"
        openssl(authority.folder, "req", "-x509", "-new", "-key", "root.key", "-subj", f"/O=Made for a test/CN={name}", "-out", "one.pem")
        many.write_text((many.read_text() if number else "") + (authority.folder / "one.pem").read_text())
    for version in ("-tls1_2", "-tls1_3"):
        with serving(authority.leaf("leaf"), version, "-verify", "1", "-CAfile", str(many)) as port:
            out = get(port, *ca)
    sort, why = says(out)
    assert sort == "config" and why.startswith("a message of its handshake has more than 16 KB: shorten its chain"), why


def test_a_clients_key_that_has_no_signature_there(authority, get, ca):
    pair = authority.leaf("client-P-384", ["extendedKeyUsage=clientAuth"], kind="P-384")
    options = ["-tls1_3", "-Verify", "1", "-CAfile", authority.file("root.pem"), "-client_sigalgs", "ecdsa_secp256r1_sha256"]
    with serving(authority.leaf("leaf"), *options) as port:
        sort, why = says(get(port, *ca, "--cert", pair[0], "--key", pair[1]))
    assert (sort, why) == ("config", "the server does not accept this kind of client certificate")


def test_the_doctor_waits_for_the_verdict(authority, pillion):
    """By 1.3 a server refuses the client's certificate when the handshake is over."""
    pair = authority.leaf("address", ["subjectAltName=IP:127.0.0.1"])
    options = ["-Verify", "1", "-verify_return_error", "-CAfile", authority.file("root.pem")]
    for version in ("-tls1_2", "-tls1_3"):
        with serving(pair, version, *options) as port:
            done = process.run([pillion, "doctor", "--backend", "http", "--server-host", f"https://127.0.0.1:{port}/", "--ca-file",
                                authority.file("root.pem")], timeout=60)
            assert "requires a client certificate" in " ".join(done.out.split()), done.out


# ---- A program without it

def test_a_build_without_the_second_engine(repository, out, tmp_path):
    """What `make TLS13=0` compiles of deliver/ asks for nothing of it."""
    sources = [path for path in (repository / "src/deliver").glob("*.c") if not path.name.startswith("tls13")]
    subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE=", "-DPILLION_TLS13=0", "-O1", f"-I{repository}/src",
                    f"-I{out}/host/vendor/include", "-c", *sources], cwd=tmp_path, check=True)
    wanted = subprocess.run(["nm", "-u", *tmp_path.glob("*.o")], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "tls12_open" in wanted and "tls13" not in wanted and "mbedtls" not in wanted


# ---- What it costs

@pytest.mark.parametrize("kind", ["P-256", "RSA-2048"])
def test_what_a_handshake_costs(authority, get, ca, kind, capsys):
    """CPU time of whole and short handshakes, and the most memory of the whole program: all authorities, and a connection."""
    told = []
    with serving(authority.leaf(f"leaf-{kind}", kind=kind)) as port:
        for engine, begins in (("first", []), ("second", ["--second"])):
            out = get(port, "--built-in", *ca, *begins, "--times", "9")
            check_good(out)
            times = {word: sorted(float(each) for each in re.findall(rf"^{word} \S+ (\S+)$", out, re.M)) for word in
                     ("full", "short")}
            rss = int(re.search(r"^rss (\d+)$", out, re.M).group(1))
            assert len(times["full"]) == 1 and len(times["short"]) == 8 and rss < 4096, out
            told.append(f"{engine} engine: {times['full'][0]:.1f} ms, short {times['short'][4]:.1f} ms, {rss} KB")
    with capsys.disabled():
        print(f"\nhandshakes with {kind}, CPU time and RSS: " + "; ".join(told))
