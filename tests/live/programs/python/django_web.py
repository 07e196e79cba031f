"""A Django application in one file: `django_web:application` for a server; the page is a template over what a view computes."""
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.template import engines
from django.urls import path

from web import primes

settings.configure(
    SECRET_KEY="none", ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__,
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()

TABLE = """{% for row in rows %}<tr>{% for cell in row %}<td>{{ cell|upper }}</td>{% endfor %}</tr>
{% endfor %}"""


def index(request):
    return JsonResponse({"primes": primes(1500)})


def table(request):
    rows = [["cell %d" % (row * column) for column in range(8)] for row in range(60)]
    return HttpResponse(engines["django"].from_string(TABLE).render({"rows": rows}))


urlpatterns = [path("", index), path("table", table)]
application = get_wsgi_application()
