# Debian's Prometheus, for where no registry is: docker build -t terse-prometheus:local -f THIS_FILE deploy/compose
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends prometheus && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
USER prometheus
EXPOSE 9090
ENTRYPOINT ["prometheus"]
