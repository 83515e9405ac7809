"""Asks the server of the Kubernetes."""

import http.client
import json
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

_TIME_LIMIT = 20
_ALREADY_THERE = 409
_GONE = 404


class Api:
    """One connection, for one thread, by a kubeconfig as configuration.py writes it."""

    def __init__(self, kubeconfig: Path) -> None:
        found = json.loads(kubeconfig.read_text())
        cluster = found["clusters"][0]["cluster"]
        self._token = found["users"][0]["user"]["token"]
        context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._connection = http.client.HTTPSConnection(
            urlsplit(cluster["server"]).netloc, context=context, timeout=_TIME_LIMIT
        )

    def ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict:
        """The answer; OSError for one that is an error."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            text = answer.read()
        except (http.client.HTTPException, OSError) as error:
            # The next request connects anew.
            self._connection.close()
            raise OSError(f"{method} {path}: {error}") from None
        if answer.status >= http.client.BAD_REQUEST:
            raise RefusedError(answer.status, f"{method} {path}: {text.decode(errors='replace')}")
        return json.loads(text) if text.startswith(b"{") else {"text": text.decode()}

    def items(self, path: str) -> list[dict]:
        """The objects of a list."""
        return self.ask("GET", path)["items"]

    def find(self, path: str) -> dict | None:
        """An object, if it is there."""
        try:
            return self.ask("GET", path)
        except RefusedError as error:
            if error.status == _GONE:
                return None
            raise

    def create(self, document: dict) -> bool:
        """Creates an object; False if there is one of this name."""
        try:
            self.ask("POST", path_of(document), document)
        except RefusedError as error:
            if error.status != _ALREADY_THERE:
                raise
            return False
        return True

    def set_status(self, document: dict, status: dict) -> None:
        """Merges a status into that of an object."""
        path = f"{path_of(document)}/{document['metadata']['name']}/status"
        self.ask("PATCH", path, {"status": status}, "application/merge-patch+json")

    def delete(self, document: dict) -> None:
        """Deletes an object, if it is there."""
        path = f"{path_of(document)}/{document['metadata']['name']}"
        try:
            self.ask("DELETE", path, {"gracePeriodSeconds": 0})
        except RefusedError as error:
            if error.status != _GONE:
                raise


class RefusedError(OSError):
    """The server refused a request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def plural(kind: str) -> str:
    """The word of a kind in paths."""
    return f"{kind.lower()}s"


def path_of(document: dict) -> str:
    """The path of all objects of the kind and namespace of this one."""
    version = document["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = document["metadata"].get("namespace")
    return os.path.join(root, *(["namespaces", namespace] if namespace else []), plural(document["kind"]))
