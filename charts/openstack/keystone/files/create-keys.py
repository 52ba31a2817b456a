"""Create the Secret of a key repository with fresh keys, unless it exists: keys in use are never touched.

SECRET_NAME and NAMESPACE tell which. A key is 32 random bytes in URL-safe base64; "0" is the staged key, "1" the primary.
"""
import base64
import json
import os
import secrets
import ssl
import urllib.error
import urllib.request

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def key():
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()


def secret(name):
    labels = {"application": "keystone", "kupenstack.io/keys": name}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": labels},
            "stringData": {"0": key(), "1": key()}}


def create(namespace, body):
    """Whether it was created; False when it was there before."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    host = f"[{host}]" if ":" in host else host
    with open(f"{ACCOUNT}/token", encoding="ascii") as token:
        headers = {"Authorization": f"Bearer {token.read().strip()}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"https://{host}:{port}/api/v1/namespaces/{namespace}/secrets",
                                     data=json.dumps(body).encode(), headers=headers, method="POST")
    context = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
    try:
        urllib.request.urlopen(request, context=context, timeout=30).close()
    except urllib.error.HTTPError as error:
        if error.code == 409:
            return False
        raise
    return True


def main():
    name = os.environ["SECRET_NAME"]
    made = create(os.environ["NAMESPACE"], secret(name))
    print(f"secret {name}: {'created' if made else 'nothing to do'}")


if __name__ == "__main__":
    main()
