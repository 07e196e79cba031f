"""SECONDS: a thread for each request, as socketserver.ThreadingMixIn starts them; none lives as long as a sampling period."""
import sys
import threading
import time

spent = {"seventy": 0.0, "thirty": 0.0}


def work(seconds):
    begin = time.thread_time()
    while time.thread_time() < begin + seconds:
        sum(range(300))


def seventy():
    work(0.0028)
    spent["seventy"] += time.thread_time()


def thirty():
    work(0.0012)
    spent["thirty"] += time.thread_time()


turns = 0
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    turns += 1
    for handle in (seventy, thirty):
        one = threading.Thread(target=handle)
        one.start()
        one.join()
print("seventy %.4f seconds %.2f turns %d" % (spent["seventy"] / sum(spent.values()), time.process_time(), turns))
