"""One of two applications in one process (two.ru is the other): spends CPU time, answers with the process and the seconds spent."""
import os
import time


def python_works(until):
    number = 1
    while time.thread_time() < until:
        for _ in range(500):
            number = (number * 1103515245 + 12345) & 0xffffffff
    return number


def application(environ, start_response):
    begin = time.thread_time()
    python_works(begin + .02)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [f"{os.getpid()} {time.thread_time() - begin}\n".encode()]
