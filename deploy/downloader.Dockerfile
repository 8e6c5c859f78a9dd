# Downloads models before their servers start, with huggingface_hub and the AWS CLI. Build from the root:
#   docker build -f deploy/downloader.Dockerfile -t headroom-downloader .
ARG BASE=python:3.11-slim@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${BASE} AS build
COPY deploy/downloader/requirements.lock /tmp/requirements.lock
RUN python3 -m venv --without-pip /opt/venv \
    && python3 -m pip --python /opt/venv/bin/python install \
       --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.lock

FROM ${BASE}
RUN echo 'headroom:x:65532:65532:headroom:/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=build /opt/venv /opt/venv
COPY deploy/downloader/download.py /opt/downloader/download.py

# Caches go to /tmp; telemetry and update checks are off.
ENV PATH=/opt/venv/bin:${PATH} \
    HOME=/tmp \
    HF_HOME=/tmp/huggingface \
    HF_HUB_DISABLE_PROGRESS_BARS=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    HF_HUB_DISABLE_UPDATE_CHECK=1 \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["python", "/opt/downloader/download.py"]
