"""server.py SECONDS: an asyncio server and its clients in one process; what it does is in coroutines and a thread pool."""
import asyncio
import os
import sys
import time


def parse(line):
    return sum(number * len(line) % 7 for number in range(3000))


async def answer(line):
    await asyncio.sleep(0)
    return parse(line)


async def serve(reader, writer):
    while True:
        line = await reader.readline()
        if not line:
            break
        writer.write(b"%d\n" % await answer(line))
        await writer.drain()
    writer.close()


def blocking(seconds):
    end = time.thread_time() + seconds
    total = 0
    while time.thread_time() < end:
        for number in range(10000):
            total += number
    return total


async def client(port, end):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while sum(os.times()[:2]) < end:
        writer.write(b"hello\n")
        await reader.readline()
    writer.close()


async def main(seconds):
    end = sum(os.times()[:2]) + seconds
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    pool = asyncio.get_running_loop().run_in_executor(None, blocking, seconds / 4)
    await asyncio.gather(pool, *(client(port, end) for _ in range(4)))
    server.close()


asyncio.run(main(float(sys.argv[1])))
