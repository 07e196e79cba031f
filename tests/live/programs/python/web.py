"""A small web application: with Flask where it is installed (`web:app`), and as a plain WSGI function (`application`)."""
import json


def primes(limit):
    found = []
    for number in range(2, limit):
        for prime in found:
            if number % prime == 0:
                break
        else:
            found.append(number)
    return found


def page():
    return json.dumps({"primes": primes(1500)})


def application(environment, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [page().encode()]


try:
    import flask
except ImportError:
    app = application
else:
    app = flask.Flask("web")

    @app.route("/")
    def index():
        return page()
