# The workers' image of a pipeline in Java: boot starts java in the same container. (Go: apache/beam_go_sdk, in the same way.)
FROM apache/beam_java17_sdk:2.77.0
COPY pillion /usr/local/bin/pillion
ENV PILLION_SERVER_HOST=https://profiler.example.com PILLION_SERVICE_NAME=checkout PILLION_PROFILING_DURATION=30
ENTRYPOINT ["/usr/local/bin/pillion", "-u", "--", "/opt/apache/beam/boot"]
