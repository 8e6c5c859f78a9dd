# The model server. Build from the root of the repository:
#   docker build -f deploy/model-server.Dockerfile -t headroom-model-server .
#   docker build -f deploy/model-server.Dockerfile --build-arg EXTRAS=server,torch -t headroom-model-server-torch .
# The first has the emulated engine alone; the second also torch. Each image has a lock of its own.
ARG BASE=python:3.11-slim@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${BASE} AS build
ARG EXTRAS=server
COPY deploy/model-server.lock deploy/model-server-torch.lock /tmp/locks/
# With pip, for images that add packages.
RUN case "${EXTRAS}" in \
      server) lock=model-server.lock ;; \
      server,torch) lock=model-server-torch.lock ;; \
      *) echo "EXTRAS is server or server,torch; got ${EXTRAS}" >&2; exit 1 ;; \
    esac \
    && python3 -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install \
       --no-cache-dir --no-deps --require-hashes -r "/tmp/locks/${lock}"

# Only this package of the project, without the operator and its dependencies.
# A path file makes it importable, so that PYTHONPATH stays free for the user's own classes.
COPY model_server/headroom_server /opt/headroom/headroom_server
RUN python3 -m compileall -q /opt/headroom \
    && echo /opt/headroom > "$(/opt/venv/bin/python -c \
       'import sysconfig; print(sysconfig.get_path("purelib"))')/headroom.pth"

FROM ${BASE}
# Kubernetes takes the group from here: without an entry it would be root.
RUN echo 'headroom:x:65532:65532:headroom:/tmp:/usr/sbin/nologin' >> /etc/passwd \
    && echo 'headroom:x:65532:' >> /etc/group
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/headroom /opt/headroom

# Nothing is written at run time, so the root file system may be read-only. Files that libraries keep in
# the home folder (compiled kernels, downloads) go to /tmp, where the operator mounts a volume.
ENV HOME=/tmp \
    PATH=/opt/venv/bin:${PATH} \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8000
ENTRYPOINT ["python", "-m", "headroom_server"]
