# Terse with CUDA: the programs of the other image, linked with the LibTorch of Python's package torch, and NVIDIA's libraries.
#
#   docker build -t terse-build:local --target build .
#   docker build -t terse-cuda:local -f deploy/cuda.Dockerfile deploy
#   docker run --gpus all ... terse-cuda:local terse-client --device cuda ...      # with NVIDIA's container toolkit
#
# The packages come from PyPI; pip's own variables name another index: --build-arg PIP_INDEX_URL=https://pypi.example/simple
ARG BASE=debian:bookworm-slim
ARG BUILD=terse-build:local

FROM ${BASE} AS base
RUN find /usr/lib >/tmp/base

FROM ${BUILD} AS build
ARG TORCH=2.7.1
ARG PIP_INDEX_URL= PIP_TRUSTED_HOST=
RUN apt-get update && apt-get install -y --no-install-recommends python3-pip && \
    if [ -z "$PIP_INDEX_URL" ]; then unset PIP_INDEX_URL; fi && \
    python3 -m pip install --no-cache-dir --no-compile --target /opt/python "torch==${TORCH}"
# Only what depends on LibTorch is built again.
ARG JOBS=
RUN cmake --preset programs -DTERSE_TORCH=/opt/python/torch && \
    ninja -C build/programs ${JOBS:+-j "$JOBS"} && \
    strip build/programs/bin/terse-coordinator build/programs/bin/terse-client build/programs/bin/terse-client-torch \
      build/programs/bin/terse-relay build/programs/bin/terse-simulate build/programs/bin/tersectl
# Only the libraries that the programs load, and those of cuDNN and NVRTC, which LibTorch opens when it needs them.
COPY --from=base /tmp/base /tmp/base
RUN mkdir /libraries && \
    { for program in build/programs/bin/*; do ldd "$program"; done | sed -n 's#.* => \(/[^ ]*\) .*#\1#p'; \
      ls /opt/python/nvidia/cudnn/lib/*.so* /opt/python/nvidia/cuda_nvrtc/lib/*.so* /opt/python/torch/lib/libcaffe2_nvrtc.so \
         /opt/python/torch/lib/libtorch_cuda_linalg.so; } | \
    sed 's#^/lib/#/usr/lib/#' | sort -u | grep -vxFf /tmp/base | \
    xargs cp --dereference --parents --target-directory /libraries

FROM ${BASE}
COPY --from=build /libraries /
RUN ldconfig && \
    groupadd --system --gid 10001 terse && \
    useradd --system --uid 10001 --gid terse --no-create-home --home-dir /state --shell /usr/sbin/nologin terse && \
    install -d -o terse -g terse -m 0750 /state
COPY --from=build /src/build/programs/bin/terse-coordinator /src/build/programs/bin/terse-client \
  /src/build/programs/bin/terse-client-torch /src/build/programs/bin/terse-relay /src/build/programs/bin/terse-simulate \
  /src/build/programs/bin/tersectl /usr/local/bin/
COPY runs /etc/terse/runs
USER terse
WORKDIR /state
VOLUME /state
# Which cards the container toolkit shows, and which of the driver's libraries it brings.
ENV OMP_NUM_THREADS=1 TERSE_ADMIN=unix:/state/admin.sock NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
CMD ["terse-client", "--help"]
