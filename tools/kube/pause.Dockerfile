# What holds the namespaces of a pod: a program that waits.
FROM scratch
COPY catatonit /catatonit
ENTRYPOINT ["/catatonit", "-P"]
