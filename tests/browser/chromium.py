"""Headless Chromium, driven through the DevTools protocol over two pipes: standard library only.

    with Chromium() as browser:
        page = browser.page(width=1600, height=900)
        page.open(path)
        page.js("document.title")

Everything a page writes to the console, every exception and every violation of its content security policy is kept in
`page.complaints`. Times are the browser's own clock (performance.now()), so a slow pipe does not enter them.
"""
import base64
import ctypes
import itertools
import json
import os
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Runs before any script of the page: what must not happen is written down.
WITNESS = """
window.pwned = [];
window.violations = [];
for (const name of ['alert', 'confirm', 'prompt', 'open']) window[name] = () => window.pwned.push(name);
document.addEventListener('securitypolicyviolation', e => window.violations.push(e.violatedDirective + ' ' + e.blockedURI));
"""
# The codes of keys that are not characters.
KEYS = {"Enter": 13, "Escape": 27, "Backspace": 8, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
        "ArrowDown": 40, "Home": 36, "End": 35}


def missing():
    """Why there is no browser here, or ''."""
    return "" if any(map(shutil.which, NAMES)) else "no chromium here (apt-get install chromium)"


class Failed(Exception):
    pass


class Chromium:
    def __init__(self, *flags):
        program = next(filter(None, map(shutil.which, NAMES)))
        self.folder = tempfile.mkdtemp(prefix="chromium-")
        self.downloads = Path(self.folder) / "downloads"
        self.downloads.mkdir()
        to_read, self.writer = os.pipe()
        self.reader, to_write = os.pipe()

        def prepare():
            # The browser talks on 3 and 4. What it leaves behind comes back to it, not to the test run.
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)

        # The pipes' ends must not be 3 or 4 themselves before they are put there.
        to_read, to_write = (self._above_4(fd) for fd in (to_read, to_write))
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-extensions", "--disable-background-networking",
             "--force-color-profile=srgb", "--remote-debugging-pipe", f"--user-data-dir={self.folder}/profile",
             *flags, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=prepare,
            pass_fds=(3, 4), start_new_session=True, env=dict(os.environ, HOME=self.folder))
        os.close(to_read)
        os.close(to_write)
        self.ids, self.rest, self.pages = itertools.count(1), b"", {}
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.reader, selectors.EVENT_READ)
        self.version = self.call("Browser.getVersion")["product"]

    @staticmethod
    def _above_4(fd):
        if fd > 4:
            return fd
        higher = os.dup(fd)
        os.close(fd)
        return Chromium._above_4(higher)

    def call(self, method, session=None, timeout=120, **params):
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            for answer in self.messages(deadline):
                if answer.get("id") == number:
                    if "error" in answer:
                        raise Failed(f"{method}: {answer['error']['message']}")
                    return answer["result"]

    def messages(self, deadline):
        """Waits for the next messages; hands events to their pages and returns the answers."""
        wait = deadline - time.monotonic()
        if wait <= 0 or not self.selector.select(wait):
            raise Failed("chromium did not answer in time")
        data = os.read(self.reader, 1 << 20)
        if not data:
            raise Failed("chromium has ended")
        *whole, self.rest = (self.rest + data).split(b"\0")
        answers = []
        for text in whole:
            message = json.loads(text)
            if "id" in message:
                answers.append(message)
            elif message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].event(message["method"], message["params"])
        return answers

    def page(self, **options):
        return Page(self, **options)

    def close(self):
        for fd in (self.writer, self.reader):
            os.close(fd)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Page:
    def __init__(self, browser, width=1600, height=900, scale=1, media=(), touch=False):
        self.browser = browser
        context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        self.complaints, self.loaded = [], False
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        browser.call("Browser.setDownloadBehavior", behavior="allow", browserContextId=context,
                     downloadPath=str(browser.downloads))
        self.call("Page.addScriptToEvaluateOnNewDocument", source=WITNESS)
        self.resize(width, height, scale)
        if touch:
            self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.media(*media)

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def event(self, method, params):
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(" ".join(str(a.get("value")) for a in params["args"]))
        elif method == "Log.entryAdded" and "willReadFrequently" not in params["entry"]["text"]:
            # that one is about our own looking at the canvas
            self.complaints.append(params["entry"]["text"])

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=False)

    def media(self, *features):
        """media(("prefers-color-scheme", "dark")) …"""
        self.call("Emulation.setEmulatedMedia", features=[{"name": n, "value": v} for n, v in features])

    def open(self, where, drawn=True, timeout=120):
        url = where if "://" in str(where) else Path(where).resolve().as_uri()
        self.complaints.clear()
        self.loaded = False
        # A hash alone would not load the page again.
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        if drawn:
            self.until("document.documentElement?.dataset.drawn", timeout)
        else:
            self.until("document.readyState === 'complete'", timeout)

    def js(self, expression, wait=False):
        """The value of an expression, or of the promise it gives."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        if "exceptionDetails" in answer:
            raise Failed(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def until(self, expression, timeout=30):
        deadline = time.monotonic() + timeout
        while not self.js(expression):
            if time.monotonic() > deadline:
                raise Failed(f"not within {timeout} s: {expression}; {self.complaints}")
            time.sleep(0.01)

    def settle(self):
        """Until what was asked for has been painted."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def mouse(self, kind, x, y, button="none"):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                  clickCount=0 if button == "none" else 1)

    def hover(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click_at(self, x, y, button="left"):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button)
        self.mouse("mouseReleased", x, y, button)
        self.settle()

    def click(self, selector):
        """As a person does it: in the middle of the element."""
        box = self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoViewIfNeeded();"
                      " const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()")
        self.click_at(*box)

    def key(self, key, ctrl=False, shift=False):
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 else 0)
        common = {"key": key, "windowsVirtualKeyCode": code, "modifiers": (2 if ctrl else 0) | (8 if shift else 0)}
        text = key if len(key) == 1 and not ctrl else "\r" if key == "Enter" else ""
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown",
                  **common, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        del self.browser.pages[self.session]
