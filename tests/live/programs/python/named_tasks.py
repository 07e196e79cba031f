"""named_tasks.py SECONDS (of CPU time): asyncio tasks that take turns, one of them without a name; then 400 that live for a moment."""
import asyncio
import sys
import time


def burn(milliseconds):
    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass


def paying():
    burn(5)


def shipping():
    burn(3)


def nameless():
    burn(2)


def request():
    burn(1.5)


async def turns(work, end):
    while time.process_time() < end:
        work()
        await asyncio.sleep(0)


async def once():
    request()


async def main(seconds):
    end = time.process_time() + seconds
    await asyncio.gather(asyncio.create_task(turns(paying, end), name="pay"),
                         asyncio.create_task(turns(shipping, end), name="expédier 任务"),
                         asyncio.create_task(turns(nameless, end)))
    for number in range(400):
        await asyncio.create_task(once(), name=f"request-{number}")


asyncio.run(main(float(sys.argv[1])))
