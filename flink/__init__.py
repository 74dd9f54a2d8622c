"""A Flink session cluster with Beam's job server on this machine: `make flink`, `make flink-stop`."""
