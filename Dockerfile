# syntax=docker/dockerfile:1
# The one image: each node of a pipeline on Kubernetes (docs/kubeflow.md), and Beam's worker on Flink, Spark or Dataflow
# (docs/flink.md). `make image` builds it. The packages come first: a change of the project's code moves no layer of theirs.

FROM apache/beam_python3.10_sdk:2.62.0 AS beam

# Not the slim one: some packages (pyfarmhash, crcmod) are published as source alone and need a compiler.
FROM python:3.10.18-bookworm AS packages
WORKDIR /opt/millrace
COPY requirements.runtime.lock ./
RUN python -m venv .venv \
    && .venv/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes -r requirements.runtime.lock
# Some packages ship files for other versions of Python, which do not compile.
RUN .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null || true

FROM python:3.10.18-slim-bookworm
RUN useradd --uid 1000 --create-home millrace
WORKDIR /opt/millrace
COPY --from=beam /opt/apache/beam/boot /opt/apache/beam/boot
COPY --from=packages /opt/millrace/.venv .venv
COPY scripts/entrypoint.sh /usr/local/bin/entrypoint
COPY LICENSE README.md setup.py pyproject.toml ./
COPY components components
COPY metadata metadata
COPY serving serving
COPY pipeline pipeline
COPY environments environments
COPY schemas schemas
COPY recipes recipes
RUN .venv/bin/pip install --quiet --no-cache-dir --no-deps --no-build-isolation -e . \
    && .venv/bin/python -m compileall -q components metadata serving pipeline recipes \
    && install --directory --owner millrace artifacts
ENV PATH=/opt/millrace/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 1000:1000
ENTRYPOINT ["entrypoint"]
CMD ["millrace", "--help"]
