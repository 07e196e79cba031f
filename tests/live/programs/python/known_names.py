"""For known_stacks.py: names outside ASCII, one for each width a string has in memory."""


def café():
    return burn()


def 名前():
    return burn()


def 𝒻𐐀():
    return burn()


class Größe:
    def метод(self):
        return burn()

    async def später(self):
        return burn()


def coroutine():
    try:
        Größe().später().send(None)
    except StopIteration as end:
        return end.value


DEEDS = [
    ("latin", café), ("wide", 名前), ("widest", 𝒻𐐀), ("mixed", lambda: Größe().метод()),
    ("coroutine", coroutine),
]
