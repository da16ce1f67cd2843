"""What an HTTP server of the command's is attacked with: it must go on to serve the others."""
import contextlib
import socket

MALFORMED = (b"\0" * 1000, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
             b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n",
             b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20000 + b"\r\n",
             b"POST / HTTP/1.1\r\nContent-Length: 99999999999999\r\n\r\n",
             b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n")


def send_malformed(port):
    for request in MALFORMED:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            with contextlib.suppress(OSError):
                client.sendall(request)
                client.shutdown(socket.SHUT_WR)
                client.recv(1 << 16)


@contextlib.contextmanager
def slow_clients(test, port, count=1000):
    """So many connections that never end their request."""
    with contextlib.ExitStack() as clients:
        try:
            for _ in range(count):
                client = socket.create_connection(("127.0.0.1", port), timeout=30)
                clients.enter_context(client)
                client.sendall(b"GET /met")
        except OSError as error:
            test.skipTest(f"no {count} connections here: {error}")
        yield
