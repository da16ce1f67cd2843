"""A headless Chromium for tests of pages, by its own protocol over two pipes, without a driver."""
import base64
import json
import os
import shutil
import subprocess
import tempfile

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or \
    shutil.which("google-chrome")


class Browser:
    """One page at a time. What its console says as an error or a warning is in `errors`."""

    def __init__(self):
        to_read, self.write = os.pipe()
        self.read, to_write = os.pipe()
        self.folder = tempfile.TemporaryDirectory()
        # The child finds its ends at 3 and 4, whatever they are here.
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec 3<&{to_read} 4>&{to_write}; exec "$@"', "sh", CHROMIUM,
             "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu",
             "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={self.folder.name}",
             "about:blank"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.left, self.number, self.session, self.errors, self.events = b"", 0, None, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        finally:
            self.process.wait(timeout=60)
            os.close(self.read)
            os.close(self.write)
            self.folder.cleanup()

    def receive(self):
        while b"\0" not in self.left:
            data = os.read(self.read, 1 << 20)
            assert data, "the browser ended"
            self.left += data
        message, _, self.left = self.left.partition(b"\0")
        message = json.loads(message)
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        if method:
            self.events.append(message)
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url, width, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.go("about:blank")          # an address that differs behind # alone is no new page
        self.events.clear()
        self.errors.clear()
        self.go(url)

    def go(self, url):
        self.call("Page.navigate", url=url)
        while self.run("document.readyState + ' ' + location.href") != "complete " + url:
            pass

    def run(self, script):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def requests(self):
        """What the page asked for since it was opened."""
        return [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"]

    def picture(self, path):
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(image))
