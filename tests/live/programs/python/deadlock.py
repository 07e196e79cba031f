"""Three threads, each of which waits for what the next one holds."""
import sys
import threading

locks = [getattr(threading, sys.argv[1])() for _ in range(3)]
barrier = threading.Barrier(3)


def work(number):
    with locks[number]:
        barrier.wait()
        with locks[(number + 1) % 3]:
            pass


for number in range(3):
    threading.Thread(target=work, args=(number,), name=f"dead-{number}").start()
