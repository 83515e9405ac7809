# An etcd for torchrun's rendezvous, also by the interface of version 2 that torch's backend "etcd" speaks.
ARG BASE=docker.io/library/debian:bookworm
FROM ${BASE}
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends etcd-server \
 && rm -rf /var/lib/apt/lists/*
EXPOSE 2379
CMD ["/usr/bin/etcd", "--enable-v2", "--data-dir=/var/lib/etcd", "--listen-client-urls=http://0.0.0.0:2379", \
     "--advertise-client-urls=http://0.0.0.0:2379"]
