"""Write the keys by which hypervisors bring disks of VMs to each other. They follow from a secret that all of them have.

What connects gets a key and knows what key answers; what answers gets that key and knows which one may connect.
"""
import hmac
import os
import pathlib

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET = pathlib.Path("/etc/ssh-secret/secret")
# Nova calls ssh and scp with an address and nothing else.
CONFIG = """\
Host *
  User nova
  Port {port}
  IdentityFile {folder}/id
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/known_hosts
  HostKeyAlias hypervisors
  StrictHostKeyChecking yes
  ConnectTimeout 10
  ServerAliveInterval 15
"""


def key(secret, role):
    """The private and the public key of a role."""
    seed = hmac.digest(secret.encode(), f"ssh key of {role}".encode(), "sha256")
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    text = private.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption())
    return text.decode(), public.decode() + "\n"


def write(file, text):
    """Put a file in place whole, for its owner's eyes only."""
    new = file.with_name(file.name + ".new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w", encoding="utf-8") as out:
        out.write(text)
    new.rename(file)


def main():
    secret = SECRET.read_text(encoding="utf-8")
    (own, may_connect), (host, answers) = key(secret, "client"), key(secret, "host")
    if "SSH_CLIENT_DIR" in os.environ:
        client = pathlib.Path(os.environ["SSH_CLIENT_DIR"])
        write(client / "id", own)
        write(client / "known_hosts", "hypervisors " + answers)
        write(client / "config", CONFIG.format(port=os.environ["SSH_PORT"], folder=client))
    if "SSH_SERVER_DIR" in os.environ:
        server = pathlib.Path(os.environ["SSH_SERVER_DIR"])
        write(server / "host_key", host)
        write(server / "authorized_keys", "restrict " + may_connect)


if __name__ == "__main__":
    main()
