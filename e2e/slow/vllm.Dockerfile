# What vLLM needs of the system; its Python is a folder of the node.
ARG BASE=python:3.11-slim
FROM ${BASE}
RUN apt-get update && apt-get install --yes --no-install-recommends libnuma1 && rm -rf /var/lib/apt/lists/*
