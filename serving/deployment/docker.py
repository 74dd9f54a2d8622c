"""A Dockerfile that bakes the model in, and a compose file that mounts it."""

from __future__ import annotations

import json
from typing import Any

from serving.deployment.configs import FOLDER, GRPC_PORT, PROGRAM, REST_PORT, config_files, flags
from serving.deployment.settings import Deployment

USER = 1000
"""A user without rights, as in KServe's runtime; TensorFlow Serving's image names none."""

CHECK_SECONDS = 10
CHECK_TIMEOUT_SECONDS = 5
CHECK_RETRIES = 3


def health_check(deployment: Deployment) -> list[str]:
    """A command that succeeds once a version serves. The image has no curl, but a bash that opens connections."""
    request = f"GET {deployment.readiness_path} HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n"
    script = (
        f"exec 3<>/dev/tcp/127.0.0.1/{REST_PORT} && printf '{request}' >&3 && "
        "read -r status <&3 && [[ $status == *' 200 '* ]]"
    )
    return ["bash", "-c", script]


def dockerfile(deployment: Deployment) -> str:
    """An image with the model in it; its versions come from the named build context `models`."""
    configs = list(config_files(deployment, deployment.folder))
    check = (
        f"HEALTHCHECK --interval={CHECK_SECONDS}s --timeout={CHECK_TIMEOUT_SECONDS}s "
        f"--start-period={deployment.startup_seconds}s --retries={CHECK_RETRIES} \\\n"
        f"    CMD {json.dumps(health_check(deployment))}"
    )
    start = json.dumps([PROGRAM, *flags(deployment, deployment.folder)], indent=4).replace("\n", " \\\n")
    instructions = [
        f"FROM {deployment.image}",
        f"COPY {' '.join(configs)} {FOLDER}/",
        f"COPY --from=models . {deployment.folder}/",
        f"USER {USER}:{USER}",
        f"EXPOSE {GRPC_PORT} {REST_PORT}",
        check,
        f"ENTRYPOINT {start}",
    ]
    return "\n".join(instructions) + "\n"


def compose(deployment: Deployment) -> dict[str, Any]:
    """One server on loopback, over the folder that the Pusher writes."""
    configs = config_files(deployment, deployment.folder)
    mounts = {f"./{name}": f"{FOLDER}/{name}" for name in configs} | {deployment.local_folder: deployment.folder}
    service = {
        "image": deployment.image,
        "entrypoint": [PROGRAM],
        "command": flags(deployment, deployment.folder),
        "ports": [f"127.0.0.1:{port}:{port}" for port in (GRPC_PORT, REST_PORT)],
        "volumes": [_mount(source, target) for source, target in mounts.items()],
        "user": f"{USER}:{USER}",
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 (the container's own)
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        # TensorFlow Serving handles no signals, and a first process without a handler ignores SIGTERM.
        "init": True,
        "restart": "unless-stopped",
        "healthcheck": {
            # Compose takes a single dollar sign for a variable of its own.
            "test": ["CMD", *(word.replace("$", "$$") for word in health_check(deployment))],
            "interval": f"{CHECK_SECONDS}s",
            "timeout": f"{CHECK_TIMEOUT_SECONDS}s",
            "start_period": f"{deployment.startup_seconds}s",
            "retries": CHECK_RETRIES,
        },
        "deploy": {"resources": {"limits": deployment.resources.for_compose()}},
    }
    return {"name": f"{deployment.resource_name}-serving", "services": {deployment.resource_name: service}}


def _mount(source: str, target: str) -> dict[str, Any]:
    """A read-only mount that fails where there is nothing; Docker would make an empty folder, and the server wait."""
    bind = {"create_host_path": False}
    return {"type": "bind", "source": source, "target": target, "read_only": True, "bind": bind}
