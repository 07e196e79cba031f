"""Certificates by openssl's own program, and its server, for tests of TLS.

    authority = Authority(folder); pair = authority.leaf("leaf")
    with serving(pair, "-tls1_3") as port: ...
"""
import contextlib
import re
import socket
import subprocess
import threading

from . import process

EC = ["-algorithm", "EC", "-pkeyopt"]
KEYS = {
    "P-256": [*EC, "ec_paramgen_curve:P-256"], "P-384": [*EC, "ec_paramgen_curve:P-384"],
    "P-521": [*EC, "ec_paramgen_curve:P-521"], "ED25519": ["-algorithm", "ED25519"],
    "RSA-1024": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
    "RSA-8192": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:8192", "-pkeyopt", "rsa_keygen_primes:4"],  # two take half a minute
    "RSA-PSS": ["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"],
    "RSA-2048": ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
}
NAME = "subjectAltName=DNS:server.test,DNS:localhost"


def openssl(folder, *arguments, stdin=None):
    done = subprocess.run(["openssl", *map(str, arguments)], cwd=folder, input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


class Authority:
    """Makes certificates: each is NAME.pem with NAME.key in one folder."""

    def __init__(self, folder):
        self.folder = folder
        self.keys = {}
        self.own("root", ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"])
        self.own("other", ["basicConstraints=critical,CA:TRUE"])

    def file(self, name):
        return str(self.folder / name)

    def key(self, kind):
        """One per kind: they take time, and may be shared."""
        if kind not in self.keys:
            self.keys[kind] = self.file(f"{kind}.key")
            openssl(self.folder, "genpkey", *KEYS[kind], "-out", self.keys[kind])
        return self.keys[kind]

    def own(self, name, extensions, kind="P-256"):
        key = self.file(f"{name}.key")
        if (self.folder / f"{name}.pem").exists():
            return
        openssl(self.folder, "genpkey", *KEYS[kind], "-out", key)
        added = [word for each in extensions for word in ("-addext", each)]
        openssl(self.folder, "req", "-x509", "-new", "-key", key, "-subj", f"/CN={name}", "-days", "3650", *added, "-out",
                self.file(f"{name}.pem"))

    def leaf(self, name, extensions=(NAME,), kind="P-256", by="root", digest="sha256", subject=None, pss=False):
        """(certificate, key)"""
        key = self.key(kind)
        if (self.folder / f"{name}.pem").exists():
            return self.file(f"{name}.pem"), key
        request = openssl(self.folder, "req", "-new", "-key", key, "-subj", f"/CN={subject or name}")
        (self.folder / f"{name}.ext").write_text("".join(each + "\n" for each in extensions))
        openssl(self.folder, "x509", "-req", "-CA", f"{by}.pem", "-CAkey", f"{by}.key", "-days", "365", f"-{digest}",
                *(("-sigopt", "rsa_padding_mode:pss") if pss else ()),
                "-extfile", f"{name}.ext", "-set_serial", str(len(list(self.folder.iterdir()))), "-out", f"{name}.pem",
                stdin=request)
        return self.file(f"{name}.pem"), key

    def signer(self, name, extensions=(), by="root"):
        """The name of an authority that another one signed."""
        self.leaf(name, ["basicConstraints=critical,CA:TRUE", *extensions], by=by)
        (self.folder / f"{name}.key").write_bytes((self.folder / "P-256.key").read_bytes())
        return name


@contextlib.contextmanager
def serving(pair, *options, at="127.0.0.1"):
    """openssl s_server with a certificate and its key, on a port of its own: a page about each connection."""
    certificate = ["-cert", pair[0], "-key", pair[1]] if pair else ["-nocert"]
    server = process.start(["openssl", "s_server", "-accept", f"{at}:0", "-www", "-cipher", "DEFAULT@SECLEVEL=0",
                            *certificate, *options])
    try:
        process.until(lambda: re.search(r"ACCEPT .*:(\d+)", server.out) or server.poll() is not None, 20,
                      lambda: server.err)
        assert server.poll() is None, server.err
        yield int(re.search(r"ACCEPT .*:(\d+)", server.out).group(1))
    finally:
        server.end()


def check_good(out, version=None):
    """A handshake and a page to its end; by the version that the engine is for unless one is named."""
    version = version or ("TLSv1.3" if "by the second engine" in out else "TLSv1.2")
    assert re.match(r"(full|short) ", out), out
    assert f", {version}, Cipher" in out and "\nend\n" in out, out


def says(out):
    """What a handshake that failed says, without the host."""
    found = re.search(r"^(config|passing): TLS with [\w.:-]+: (.*)\n", out, re.M)
    assert found, out
    return found.group(1), found.group(2)


def pin_of(authority, certificate):
    public = openssl(authority.folder, "x509", "-in", certificate, "-noout", "-pubkey")
    der = openssl(authority.folder, "pkey", "-pubin", "-outform", "der", stdin=public)
    digest = openssl(authority.folder, "dgst", "-sha256", "-binary", stdin=der)
    return "sha256//" + openssl(authority.folder, "base64", stdin=digest).decode().strip()


@contextlib.contextmanager
def answering(deal):
    """A socket that deals with each connection by deal(connection)."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def accept():
            with contextlib.suppress(OSError):  # of the listener, which is closed
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError):
                        deal(connection)
        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(30)


def forward(source, to):
    with contextlib.suppress(OSError):
        while data := source.recv(16384):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
