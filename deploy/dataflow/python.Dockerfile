# The workers' image of a pipeline in Python, of the same Beam and Python as the submitting side. Dataflow adds boot's
# arguments to ENTRYPOINT; pillion hands them on, and profiles boot and all it starts.
FROM apache/beam_python3.11_sdk:2.77.0
COPY pillion /usr/local/bin/pillion
ENV PILLION_SERVER_HOST=https://profiler.example.com PILLION_SERVICE_NAME=checkout PILLION_PROFILING_DURATION=30
ENTRYPOINT ["/usr/local/bin/pillion", "-u", "--", "/opt/apache/beam/boot"]
