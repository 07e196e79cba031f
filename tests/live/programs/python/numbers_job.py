"""numbers_job.py SECONDS: a numpy job: products of matrices, sorting, a transform."""
import os
import sys

import numpy

MATRIX = numpy.arange(300 * 300, dtype=float).reshape(300, 300)
ROW = numpy.arange(300000)[::-1].copy()


def multiply():
    return MATRIX @ MATRIX


def order():
    return numpy.sort(ROW * 7919 % 300007)


def transform():
    return numpy.fft.fft(MATRIX)


def main():
    end = sum(os.times()[:2]) + float(sys.argv[1])
    while sum(os.times()[:2]) < end:
        for deed in (multiply, order, transform):
            deed()


main()
