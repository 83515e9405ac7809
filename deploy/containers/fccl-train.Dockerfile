# torch, the package fccl and the trainer behind fsdp.sbatch. build.sh makes the context: a wheel of fccl, and trainer/.
ARG BASE=docker.io/library/debian:bookworm
FROM ${BASE}
ARG PACKAGES="ca-certificates libfabric1 python3 python3-venv"
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${PACKAGES} \
 && rm -rf /var/lib/apt/lists/*
# The torch that the wheel was built for, and what the trainer was tested with. A base that has them keeps them.
ARG TORCH=2.13.0
ARG LIBRARIES="numpy==2.4.6 transformers==5.23.0 tqdm==4.70.1 matplotlib==3.11.2 python-etcd==0.4.5"
COPY fccl-*.whl /tmp/
RUN python3 -m venv --system-site-packages /opt/fccl-env \
 && /opt/fccl-env/bin/python -m pip install --no-cache-dir "torch==${TORCH}" ${LIBRARIES} /tmp/fccl-*.whl \
 && rm /tmp/fccl-*.whl
COPY trainer/ /opt/fccl/trainer/
ENV PATH=/opt/fccl-env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LD_LIBRARY_PATH=/opt/amazon/efa/lib \
    PYTHONPATH=/opt/fccl \
    FCCL_SOCKET_IFNAME=^docker,lo,veth
WORKDIR /workspace
CMD ["python", "-m", "trainer.fsdp", "--help"]
