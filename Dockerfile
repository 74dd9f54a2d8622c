# syntax=docker/dockerfile:1
# The one image: each node of a pipeline on Kubernetes (docs/kubeflow.md), and Beam's worker on Flink, Spark or Dataflow
# (docs/flink.md). `make image` builds it.
# It has the newer set of versions (docs/sets.md), whose packages need Debian 13's glibc.
# The packages come first: a change of Millrace's code, or of the recipes, moves no layer of theirs.

FROM apache/beam_python3.13_sdk:2.77.0 AS beam

# Not the slim one: some packages (pyfarmhash, crcmod) are published as source alone and need a compiler.
FROM python:3.13.7-trixie AS packages
WORKDIR /opt/millrace
COPY requirements.runtime.lock ./
RUN python -m venv .venv \
    && .venv/bin/pip install --quiet --no-cache-dir --no-deps --require-hashes -r requirements.runtime.lock
# Some packages ship files for other versions of Python, which do not compile.
RUN .venv/bin/python -m compileall -q -j 0 .venv/lib >/dev/null || true

FROM packages AS wheel
COPY LICENSE README.md MANIFEST.in setup.py pyproject.toml ./
COPY components components
COPY contracts contracts
COPY environments environments
COPY flink flink
COPY metadata metadata
COPY pipeline pipeline
COPY serving serving
COPY ui ui
RUN .venv/bin/pip wheel --quiet --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheel .

# Millrace without a project: what a project's image begins with (docs/projects.md).
FROM python:3.13.7-slim-trixie AS engine
RUN useradd --uid 1000 --create-home millrace
WORKDIR /opt/millrace
COPY --from=beam /opt/apache/beam/boot /opt/apache/beam/boot
COPY --from=packages /opt/millrace/.venv .venv
COPY scripts/entrypoint.sh /usr/local/bin/entrypoint
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    .venv/bin/pip install --quiet --no-cache-dir --no-deps --no-index /wheel/*.whl \
    && install --directory --owner millrace artifacts
# Beam's workers find the recipes by PYTHONPATH; our own commands would find them by themselves.
ENV PATH=/opt/millrace/.venv/bin:$PATH \
    PYTHONPATH=/opt/millrace \
    PYTHONUNBUFFERED=1
USER 1000:1000
ENTRYPOINT ["entrypoint"]
CMD ["millrace", "--help"]

# The project of this repository.
FROM engine
COPY environments environments
COPY schemas schemas
COPY recipes recipes
