"""asyncio's tasks at known places, in the loops of two threads; at SIGUSR1 where they are, by what Python itself knows:
name, name of the awaiting task, functions with line from the innermost on. With "busy" many tasks that take turns."""
import asyncio
import gc
import signal
import sys
import threading

ATTRIBUTES = (("cr_frame", "cr_await"), ("gi_frame", "gi_yieldfrom"), ("ag_frame", "ag_await"))


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
    loops.append(asyncio.get_running_loop())
    event = asyncio.Event()
    waiting = [asyncio.create_task(group(event), name="group"), asyncio.create_task(unnamed(event))]
    await asyncio.sleep(0.1)
    ready()
    await asyncio.gather(*waiting)


async def spin():
    while True:
        await asyncio.sleep(0)


async def busy():
    spinning = [asyncio.create_task(spin()) for _ in range(200)]
    await asyncio.sleep(0.1)
    print("ready", flush=True)
    await asyncio.gather(*spinning)


def frames(awaited):
    found = []
    while awaited is not None:
        for frame, onwards in ATTRIBUTES:
            if hasattr(awaited, frame):
                frame = getattr(awaited, frame)
                found.insert(0, f"{frame.f_code.co_name}:{frame.f_lineno}")
                awaited = getattr(awaited, onwards)
                break
        else:
            awaited = next((one for one in gc.get_referents(awaited) if hasattr(one, "ag_frame")), None)
    return found


def tell(*_):
    for loop in loops:
        for task in asyncio.all_tasks(loop):
            awaiting = [one.get_name() for one in task._asyncio_awaited_by or ()]
            print("\t".join([task.get_name(), *(awaiting or [""]), *frames(task.get_coro())]))
    print("end", flush=True)


loops = []
if sys.argv[1:] == ["busy"]:
    asyncio.run(busy())
signal.signal(signal.SIGUSR1, tell)
started = threading.Event()
threading.Thread(target=lambda: asyncio.run(main(started.set)), name="other", daemon=True).start()
started.wait()
asyncio.run(main(lambda: print("ready", flush=True)))
