"""A Celery application whose broker is a folder (the environment's TASKS): `celery -A tasks worker`, and as a program the
one that orders: tasks.py COUNT waits for so many results."""
import os
import sys

from celery import Celery

from web import primes

FOLDER = os.environ["TASKS"]
for name in ("queue", "results"):
    os.makedirs(os.path.join(FOLDER, name), exist_ok=True)
app = Celery("tasks", broker="filesystem://")
app.conf.update(
    broker_transport_options={"data_folder_in": FOLDER + "/queue", "data_folder_out": FOLDER + "/queue"},
    result_backend="file://" + FOLDER + "/results")


@app.task
def compute(limit):
    return len(primes(limit))


def main(count):
    results = [compute.delay(6000) for _ in range(count)]
    for result in results:
        result.get(timeout=30, interval=.05)


if __name__ == "__main__":
    main(int(sys.argv[1]))
