"""Settings, channels and certificates for tests that talk to a real server on loopback."""

from __future__ import annotations

import datetime
import ipaddress
import socket
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from serving.settings import ServerSettings

HOST = "127.0.0.1"


def free_port() -> int:
    """A port on loopback on which nothing listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def settings(base_path: Path, **overrides: Any) -> ServerSettings:
    """Settings of a server for the arithmetic model, on a free port."""
    values = {"port": free_port(), "model_name": "arithmetic", "model_base_path": base_path}
    return ServerSettings(**(values | {"file_system_poll_wait_seconds": 0, "max_num_load_retries": 0} | overrides))


def refusal(call: Any, *args: Any, **kwargs: Any) -> tuple[grpc.StatusCode, str]:
    """The code and details with which the server refuses a call."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*args, **kwargs)
    return caught.value.code(), caught.value.details()


class Authority:
    """Signs certificates for loopback."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._certificate = self._sign(self._name, self._key, is_authority=True)
        self.pem = _pem(self._certificate)

    def issue(self, name: str, address: str = HOST) -> tuple[str, str]:
        """A key and a certificate for an address, PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), key, address)
        text = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return text.decode(), _pem(certificate)

    def _sign(self, name: x509.Name, key: Any, address: str = HOST, is_authority: bool = False) -> x509.Certificate:
        now = datetime.datetime.now(datetime.timezone.utc)
        names = [x509.IPAddress(ipaddress.ip_address(address))]
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            # From 3.13 on, Python refuses certificates without the following.
            .add_extension(_key_usage(is_authority), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )


def _key_usage(is_authority: bool) -> x509.KeyUsage:
    unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "crl_sign")
    used = {"digital_signature": not is_authority, "key_cert_sign": is_authority}
    return x509.KeyUsage(**dict.fromkeys(unused, False), **used, encipher_only=False, decipher_only=False)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
