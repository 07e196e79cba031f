"""setup.py of a Beam pipeline in Python whose workers are profiled.

The file pillion stands beside this one and travels with it. On a worker, the SDK container's program `boot` installs the
package by pip; that runs `build` below, which starts one profiler for the container and leaves it behind. Whatever goes
wrong there, the worker starts: the reason is one line in the worker's log. Anywhere else nothing is started.
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request

import setuptools  # first: from Python 3.12 on it is what brings distutils

try:
    from setuptools.command.build import build
except ImportError:  # setuptools before 62.4
    from distutils.command.build import build

# Yours. No token stands here: this file is copied to the job's staging bucket. It is read from Secret Manager on the
# worker, as the worker's service account; "" where no token is needed, or the image sets PILLION_TOKEN_FILE.
SERVICE = "checkout"
SERVER = "https://profiler.example.com"
SECRET = "projects/shop/secrets/pillion/versions/latest"
# A worker is killed without a warning, so windows are short; a variable of the image, PILLION_..., wins over these.
SETTINGS = {"PILLION_ALL": "1", "PILLION_UPLOAD_RESULTS": "1", "PILLION_CONTINUOUS": "1", "PILLION_PROFILING_DURATION": "30",
            "PILLION_SERVICE_NAME": SERVICE, "PILLION_SERVER_HOST": SERVER}
METADATA = "http://{}/computeMetadata/v1/instance/service-accounts/default/token"
SECRETS = "https://secretmanager.googleapis.com/v1/"
BINARY = "pillion"


def boot_above():
    """The id of the boot program that started this, or 0. Of several the first one, whose standard error is the container's log:
    a pool of workers has one above each. It is 0 as well where boot only prepares an image."""
    pid, found = os.getpid(), 0
    while pid > 1:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])
        if pid == 0:
            break
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        if os.path.basename(words[0]) == b"boot":
            if any(word.lstrip(b"-").startswith(b"setup_only") for word in words):
                return 0
            found = pid
    return found


def is_running():
    """Whether this container has a profiler: from here, or in front of boot in a custom image."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
            if name == BINARY and rest.split()[0] != "Z":
                return True
        except OSError:
            pass
    return False


def installed():
    """A copy that can be executed. pip's folder is gone in a moment; /tmp may be noexec, so the virtual environment is first."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), BINARY)
    if not os.path.exists(source):
        raise OSError("the file pillion was not beside setup.py when the job was submitted")
    for folder in (sys.prefix, tempfile.gettempdir(), "/var/tmp", "/opt", "/dev/shm"):
        program = os.path.join(folder, "pillion-worker", BINARY)
        try:
            os.makedirs(os.path.dirname(program), exist_ok=True)
            shutil.copyfile(source, program)
            os.chmod(program, 0o755)
            quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            if subprocess.run([program, "--version"], timeout=20, check=False, **quiet).returncode == 0:
                return program
        except (OSError, subprocess.SubprocessError):
            pass
    raise OSError("no folder takes the file pillion and executes it")


def asked(opener, url, name, value, seconds):
    with opener.open(urllib.request.Request(url, headers={name: value}), timeout=seconds) as answer:
        return json.load(answer)


def secret():
    """The token, as the worker's service account may read it."""
    without_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    place = METADATA.format(os.environ.get("GCE_METADATA_HOST", "169.254.169.254"))
    access = asked(without_proxy, place, "Metadata-Flavor", "Google", 2)["access_token"]
    answer = asked(urllib.request.build_opener(), f"{SECRETS}{SECRET}:access", "Authorization", f"Bearer {access}", 10)
    return base64.b64decode(answer["payload"]["data"]).decode().strip()


def become_the_profiler(program, log):
    """In a child: pip waits for whoever holds one of its pipes, so none is kept. The token is asked for here, where nobody waits."""
    os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for number, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, number)
    environment = {**SETTINGS, **os.environ}
    if SECRET and not {"PILLION_TOKEN", "PILLION_TOKEN_FILE"} & set(environment):
        try:
            environment["PILLION_TOKEN"] = secret()
        except Exception as error:  # pylint: disable=broad-except
            tell(log, f"no token: {SECRET} cannot be read ({error})")
    os.execve(program, [program], environment)


def tell(log, text):
    os.write(log, f"pillion: {text}\n".encode(errors="replace"))


def log_of(boot):
    """The container's log. Never waited for: O_NONBLOCK."""
    try:
        return os.open(f"/proc/{boot}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return os.open(os.devnull, os.O_WRONLY)


def start(boot, log):
    import fcntl  # here: not all machines that submit have it
    with open(os.path.join(tempfile.gettempdir(), "pillion-worker.lock"), "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another build does it
        if is_running():
            return
        program = installed()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            return
        # In between, a process that ends at once: what is below pip would not be seen as somebody else's. Files are closed at
        # exec, the lock with them: from then on the profiler can be seen.
        try:
            if os.fork():
                return
            for number in map(int, os.listdir("/proc/self/fd")):
                if number > 2 and number not in (lock.fileno(), log):
                    try:
                        os.close(number)
                    except OSError:
                        pass
            become_the_profiler(program, log)
        except BaseException as error:  # pylint: disable=broad-except
            tell(log, f"this worker is not profiled: {error}")
        finally:
            os._exit(0)


class BuildAndProfile(build):
    def run(self):
        log = None
        try:
            boot = boot_above()
            if boot:
                log = log_of(boot)
                start(boot, log)
        except Exception as error:  # pylint: disable=broad-except
            if log is not None:
                tell(log, f"this worker is not profiled: {error}")
        build.run(self)


setuptools.setup(
    # Yours, too: name, version, packages, install_requires.
    name="pipeline", version="1.0", packages=setuptools.find_packages(), cmdclass={"build": BuildAndProfile},
    # Into the sdist, and from there into the worker's PATH.
    data_files=[("bin", [BINARY])] if os.path.exists(BINARY) else [])
