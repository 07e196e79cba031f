"""shop.py [SECONDS]: what `make demo` profiles where there is a python3 (else demo.c). It needs no package.

A small shop's day: the orders come as JSON, their addresses are put right, they are booked in a database that calls
back for each price and each comparison, and ranked; a second thread packs the day's text. Over and over for SECONDS of
wall time (5), a week of texts in turn.
"""
import hashlib
import json
import queue
import random
import re
import sqlite3
import sys
import threading
import time
import zlib

PRICES = {"lamp": 3900, "chair": 8900, "kettle": 2500, "bicycle": 49900, "saddle": 4500, "helmet": 6900}
CITIES = ("paris", "new york", "rio de janeiro", "addis ababa")
REBATES = ((0, 0), (3, 5), (6, 10))
ORDERS = 3000


def write_orders(draw):
    goods = list(PRICES)
    return json.dumps([{"id": n, "item": goods[draw.randrange(6)], "count": draw.randrange(1, 9),
                        "city": CITIES[draw.randrange(4)], "note": "please ring twice " * draw.randrange(9)}
                       for n in range(ORDERS)])


def capital(match):
    return match[0].upper()


def tidy(orders):
    for order in orders:
        order["city"] = re.sub(r"\b[a-z]", capital, order["city"])


def rebate(count):
    return max(percent for least, percent in REBATES if count >= least)


def price(item, count):
    return PRICES[item] * count * (100 - rebate(count)) // 100


def by_town(one, other):
    one, other = one.split()[-1], other.split()[-1]
    return (one > other) - (one < other)


def open_books():
    books = sqlite3.connect(":memory:")
    books.create_function("price", 2, price)
    books.create_collation("by_town", by_town)
    books.execute("create table sales (id integer primary key, item text, city text, cents integer)")
    return books


def book(books, orders):
    books.execute("delete from sales")
    books.executemany("insert into sales values (:id, :item, :city, price(:item, :count))", orders)


def report(books):
    return books.execute("select city, cents from sales where cents > 20000 order by city collate by_town").fetchall()


def value(order):
    return price(order["item"], order["count"])


def rank(orders):
    return sorted(orders, key=value, reverse=True)


def run_day(books, text):
    orders = json.loads(text)
    tidy(orders)
    book(books, orders)
    report(books)
    rank(orders)


def keep(text):
    return hashlib.sha256(zlib.compress(text.encode(), 6)).hexdigest()


def keep_all(texts):
    for text in iter(texts.get, None):
        keep(text)


def main(seconds):
    until, days = time.monotonic() + seconds, 0
    books, texts, draw = open_books(), queue.Queue(1), random.Random(1)
    week = [write_orders(draw) for _ in range(7)]
    backup = threading.Thread(target=keep_all, args=(texts,))
    backup.start()
    while time.monotonic() < until:
        texts.put(week[days % 7])
        run_day(books, week[days % 7])
        days += 1
    texts.put(None)
    backup.join()
    print(f"{days} days of {ORDERS} orders")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5)
