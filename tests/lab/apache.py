#!/usr/bin/python3
"""Apache with PHP in its workers under load, out of a root unpacked from Debian's packages (phps.apache): requests, one behind the other.

    tests/lab/apache.py ROOT SCRIPT SECONDS       prints JSON: requests, CPU seconds of the server and its workers
"""
import http.client
import shutil
import socket
import subprocess
import sys
from pathlib import Path

if __package__:
    from . import fastcgi
else:
    import fastcgi

CONFIGURATION = """ServerRoot /tmp
ServerName localhost
Listen 127.0.0.1:{port}
PidFile /tmp/apache.pid
ErrorLog /dev/null
Mutex pthread
{modules}
AddType application/x-httpd-php .php
TypesConfig /dev/null
DocumentRoot /tmp/www
User nobody
Group #65534
StartServers 2
MaxSpareServers 3
MaxRequestWorkers 4
"""
MODULES = {"mpm_prefork_module": "mod_mpm_prefork.so", "authz_core_module": "mod_authz_core.so", "mime_module": "mod_mime.so",
           "php_module": "libphp8.2.so"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def request(port, name):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", f"/{name}")
    try:
        return connection.getresponse().read()
    finally:
        connection.close()


def main(root, script, seconds):
    port, www = free_port(), Path(root, "tmp", "www")
    www.mkdir(exist_ok=True)
    shutil.copy(script, www)
    Path(root, "etc", "passwd").write_text("nobody:x:65534:65534::/:/bin/false\n")
    modules = "\n".join(f"LoadModule {name} /usr/lib/apache2/modules/{file}" for name, file in MODULES.items())
    Path(root, "tmp", "apache.conf").write_text(CONFIGURATION.format(port=port, modules=modules))
    running = subprocess.Popen(["/usr/sbin/chroot", root, "/usr/sbin/apache2", "-f", "/tmp/apache.conf", "-DFOREGROUND"],
                               start_new_session=True) # it ends its whole group
    fastcgi.load(running, lambda: request(port, Path(script).name), seconds)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
