# Debian's PostgreSQL as a primary or its standby, for where no registry is:
# docker build -t terse-postgres:local -f THIS_FILE deploy/compose
ARG BASE=debian:bookworm-slim
FROM ${BASE}
# The user exists before the package comes, with the number of the user of Terse's images, to whom the folder of a fleet
# belongs. The package makes no cluster of its own: terse-postgres does that when the container starts.
RUN groupadd --system --gid 10001 postgres && \
    useradd --system --uid 10001 --gid postgres --home-dir /var/lib/postgresql --no-create-home --shell /usr/sbin/nologin \
      postgres && \
    mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf && \
    apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends postgresql-15 && \
    install -d -o postgres -g postgres -m 0700 /var/lib/postgresql && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY postgres.sh /usr/local/bin/terse-postgres
ENV PATH=/usr/lib/postgresql/15/bin:/usr/local/bin:/usr/bin:/bin PGHOST=/tmp
USER postgres
WORKDIR /var/lib/postgresql
VOLUME /var/lib/postgresql
EXPOSE 5432
# SIGINT is PostgreSQL's fast shutdown: it ends sessions and does not wait for them.
STOPSIGNAL SIGINT
HEALTHCHECK --interval=2s --timeout=5s --start-period=30s --retries=15 CMD ["pg_isready", "--quiet"]
ENTRYPOINT ["terse-postgres"]
