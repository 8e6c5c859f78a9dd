# The operator. Build from the root of the repository:
#   docker build -f deploy/operator.Dockerfile -t headroom-operator .
# No torch and no plots inside; the model server stays out.
ARG BASE=python:3.11-slim@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${BASE} AS build
COPY deploy/operator.lock /tmp/operator.lock
RUN python3 -m venv --without-pip /opt/venv \
    && python3 -m pip --python /opt/venv/bin/python install \
       --no-cache-dir --no-deps --require-hashes -r /tmp/operator.lock
COPY operator/headroom /opt/headroom/headroom
RUN python3 -m compileall -q /opt/headroom

FROM ${BASE}
# Without an entry here a container of this user runs with group 0.
RUN echo 'headroom:x:65532:65532:headroom:/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/headroom /opt/headroom

# Nothing is written at run time, so the root file system may be read-only. The decision solves small systems of
# equations, for which threads of the linear algebra library cost more than they gain.
ENV PATH=/opt/venv/bin:${PATH} \
    PYTHONPATH=/opt/headroom \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    OPENBLAS_NUM_THREADS=1
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["python", "-m", "headroom"]
CMD ["run"]
