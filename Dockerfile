# Terse's images, from one build:
#
#   docker build -t terse:local .                              terse-coordinator, terse-client, terse-relay, terse-simulate and
#                                                              tersectl
#   docker build -t tersectl:local --target tersectl .         tersectl alone: small, without LibTorch
#   docker build -t terse-fleet:local --target fleet .         the first, and what shapes a container's link (deploy/compose)
#
# Without a registry, deploy/base_image.sh makes the base image on the machine. In a closed network give the package
# sources as build arguments: --build-arg APT_MIRROR=http://mirror.example/debian --build-arg http_proxy=...
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS packages
ARG APT_MIRROR=
RUN if [ -n "$APT_MIRROR" ]; then \
      rm -f /etc/apt/sources.list.d/debian.sources && \
      printf 'deb %s bookworm main\ndeb %s-security bookworm-security main\n' "$APT_MIRROR" "$APT_MIRROR" \
        >/etc/apt/sources.list; \
    fi
COPY deploy/packages.sh /usr/local/lib/terse/packages.sh

FROM packages AS build
RUN /usr/local/lib/terse/packages.sh build
WORKDIR /src
COPY CMakeLists.txt CMakePresets.json ./
COPY cmake cmake
COPY core core
COPY compression compression
COPY storage storage
COPY security security
COPY web web
COPY proto proto
COPY net net
COPY trainer trainer
COPY sandbox sandbox
COPY learning learning
COPY coordinator coordinator
COPY tersectl tersectl
COPY client client
COPY relay relay
COPY simulation simulation
# How many compilers at a time; each takes up to 1.5 GB.
ARG JOBS=
RUN cmake --preset programs && \
    ninja -C build/programs ${JOBS:+-j "$JOBS"} && \
    strip build/programs/bin/terse-coordinator build/programs/bin/terse-client build/programs/bin/terse-client-torch \
      build/programs/bin/terse-relay build/programs/bin/terse-simulate build/programs/bin/tersectl

FROM packages AS tersectl
RUN /usr/local/lib/terse/packages.sh tersectl && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/* && \
    groupadd --system --gid 10001 terse && \
    useradd --system --uid 10001 --gid terse --no-create-home --home-dir /state --shell /usr/sbin/nologin terse
COPY --from=build /src/build/programs/bin/tersectl /usr/local/bin/
COPY LICENSE /usr/share/doc/terse/LICENSE
USER terse
ENTRYPOINT ["tersectl"]

# Only the libraries that the programs load: the packages of Debian's LibTorch bring LLVM, Mesa and others besides.
FROM packages AS libraries
RUN find /usr/lib >/tmp/base && /usr/local/lib/terse/packages.sh runtime
COPY --from=build /src/build/programs/bin/terse-coordinator /src/build/programs/bin/terse-client \
  /src/build/programs/bin/terse-client-torch /src/build/programs/bin/terse-relay /src/build/programs/bin/terse-simulate \
  /usr/local/bin/
RUN mkdir /libraries && for program in /usr/local/bin/terse-*; do ldd "$program"; done | \
    sed -n 's#.* => \(/usr\)\{0,1\}\(/lib/[^ ]*\) .*#/usr\2#p' | sort -u | grep -vxFf /tmp/base | \
    xargs cp --dereference --parents --target-directory /libraries

FROM packages AS runtime
COPY --from=libraries /libraries /
RUN ldconfig && \
    groupadd --system --gid 10001 terse && \
    useradd --system --uid 10001 --gid terse --no-create-home --home-dir /state --shell /usr/sbin/nologin terse && \
    install -d -o terse -g terse -m 0750 /state
COPY --from=build /src/build/programs/bin/terse-coordinator /src/build/programs/bin/terse-client \
  /src/build/programs/bin/terse-client-torch /src/build/programs/bin/terse-relay /src/build/programs/bin/terse-simulate \
  /src/build/programs/bin/tersectl /usr/local/bin/
COPY deploy/compose/health.sh /usr/local/bin/terse-health
COPY deploy/runs /etc/terse/runs
COPY LICENSE /usr/share/doc/terse/LICENSE
USER terse
WORKDIR /state
VOLUME /state
ENV OMP_NUM_THREADS=1 TERSE_ADMIN=unix:/state/admin.sock
EXPOSE 7700
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["terse-health"]
CMD ["terse-coordinator", "--run-file", "/etc/terse/runs/demo.toml", "--state", "/state", "--listen", "0.0.0.0:7700", \
  "--tls", "/etc/terse/tls"]

# Begins as root to shape the container's link, and trains as the user that the first image has.
FROM runtime AS fleet
USER root
RUN apt-get update && apt-get install -y --no-install-recommends iproute2 iptables && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/*
COPY deploy/compose/link.sh /usr/local/bin/terse-link
HEALTHCHECK NONE

FROM runtime
