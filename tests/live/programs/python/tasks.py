"""asyncio's tasks at known places, in two threads, that wait; the main thread's loop does, too."""
import asyncio
import threading


async def deepest(event):
    await event.wait()


async def middle(event):
    await deepest(event)


async def numbers(event):
    await event.wait()
    yield 1


async def over(event):
    async for _ in numbers(event):
        pass


async def group(event):
    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(middle(event), name=f"wörker-{number}")
        tasks.create_task(over(event), name="over")


async def unnamed(event):
    await event.wait()


async def main(ready):
    event = asyncio.Event()
    waiting = [asyncio.create_task(group(event), name="group"), asyncio.create_task(unnamed(event))]
    await asyncio.sleep(0.1)
    ready()
    await asyncio.gather(*waiting)


def other():
    asyncio.run(main(started.set))


started = threading.Event()
threading.Thread(target=other, name="other", daemon=True).start()
started.wait()
asyncio.run(main(lambda: print("ready", flush=True)))
