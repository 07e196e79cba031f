"""Threads that wait, each in its own way, for argv[1] seconds; two that take the interpreter's lock from each other."""
import socket
import sys
import threading
import time

SECONDS = float(sys.argv[1])
lock = threading.Lock()
here, there = socket.socketpair()


def holds_lock():
    with lock:
        time.sleep(SECONDS)


def wants_lock():
    with lock:
        pass


def sleeps():
    time.sleep(SECONDS)


def receives():
    here.recv(1)


def works():
    end = time.time() + SECONDS
    while time.time() < end:
        pass


for each in (holds_lock, wants_lock, sleeps, receives, works, works):
    thread = threading.Thread(target=each)
    thread.daemon = True
    thread.start()
    time.sleep(0.02)
time.sleep(SECONDS)
there.send(b"x")
