# The perf binaries of FCCL under Open MPI and sshd, as MPI operators start them. build.sh makes the context: lib/ and build/.
ARG BASE=docker.io/library/debian:bookworm
FROM ${BASE}
# What a base with EFA's installer has already is left as it is: /opt/amazon comes first in the paths below.
ARG PACKAGES="ca-certificates htop libfabric1 libhwloc15 openmpi-bin openssh-client openssh-server"
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${PACKAGES} \
 && rm -rf /var/lib/apt/lists/*
# The pods of a job have keys of their own, and names that no host has seen before.
RUN mkdir -p /run/sshd \
 && printf 'StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n' >/etc/ssh/ssh_config.d/fccl.conf \
 && printf 'StrictModes no\n' >/etc/ssh/sshd_config.d/fccl.conf
# AWS's manifests call mpirun by this path, which has it look for orted beside it.
RUN [ -e /opt/amazon/openmpi/bin/mpirun ] \
 || { mkdir -p /opt/amazon/openmpi/bin && ln -s /usr/bin/mpirun /usr/bin/orted /opt/amazon/openmpi/bin; }
COPY lib/ /opt/fccl/lib/
COPY build/ /opt/fccl-tests/build/
# They also set LD_LIBRARY_PATH, without the folder of FCCL's libraries.
RUN echo /opt/fccl/lib >/etc/ld.so.conf.d/fccl.conf && ldconfig
ENV PATH=/opt/amazon/openmpi/bin:/opt/amazon/efa/bin:/opt/fccl-tests/build:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LD_LIBRARY_PATH=/opt/amazon/efa/lib:/opt/amazon/openmpi/lib:/opt/fccl/lib \
    OMPI_MCA_pml=^ucx \
    OMPI_MCA_btl=tcp,self \
    OMPI_MCA_btl_tcp_if_exclude=lo,docker0,veth_def_agent \
    PMIX_MCA_gds=hash \
    FCCL_SOCKET_IFNAME=^docker,lo,veth
EXPOSE 22
CMD ["/usr/sbin/sshd", "-De"]
