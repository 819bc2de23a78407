"""The example for Kubernetes: what it promises of pods, and that its names fit together."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import SECRET_SETTINGS, Settings, environment_variable_name, secret_file_variable_name

FOLDER = Path(__file__).parents[1] / "examples/kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
OBJECTS: list[dict[str, Any]] = [
    one for name in KUSTOMIZATION["resources"] for one in yaml.safe_load_all((FOLDER / name).read_text())
]
PODS = {one["kind"]: one["spec"]["template"]["spec"] for one in OBJECTS if "template" in one.get("spec", {})}


def object_of_kind(kind: str) -> dict[str, Any]:
    (found,) = [one for one in OBJECTS if one["kind"] == kind]
    return found


def test_every_file_of_the_folder_is_part_of_it():
    assert sorted(KUSTOMIZATION["resources"]) == sorted(
        {path.name for path in FOLDER.iterdir()} - {"kustomization.yaml"}
    )


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_pods_have_no_rights_and_write_to_volumes_only(kind):
    pod = PODS[kind]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 10001  # as in the Dockerfile
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts == {"secrets": "/run/secrets/easel", "tmp": "/tmp", "data": "/var/lib/easel"}
    assert {volume["name"] for volume in pod["volumes"]} == {*mounts}


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_secrets_are_files_and_in_no_variable(kind):
    (generated,) = KUSTOMIZATION["secretGenerator"]
    keys = {file.partition("=")[0] for file in generated["files"]}
    (container,) = PODS[kind]["containers"]
    files = {one["name"]: one["value"] for one in container["env"]}
    known = {secret_file_variable_name(field) for field in SECRET_SETTINGS}
    assert {*files} <= known
    assert {value.rpartition("/")[2] for value in files.values()} <= keys
    assert not (FOLDER / "secrets").exists()


def test_settings_have_names_that_easel_knows():
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    names = {line.partition("=")[0] for line in generated["literals"]}
    assert names <= {environment_variable_name(field) for field in Settings.model_fields}
    assert not names & {environment_variable_name(field) for field in SECRET_SETTINGS}


def test_a_server_is_ready_by_the_database_and_alive_without_it():
    deployment = object_of_kind("Deployment")
    (container,) = PODS["Deployment"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["startupProbe"]["httpGet"]["path"] == "/health"
    seconds = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert seconds >= container["readinessProbe"]["periodSeconds"]
    assert PODS["Deployment"]["terminationGracePeriodSeconds"] > seconds + 30
    assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_others_select_the_pods_of_the_server():
    labels = object_of_kind("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert object_of_kind("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert object_of_kind("Service")["spec"]["selector"] == labels
    budget = object_of_kind("PodDisruptionBudget")["spec"]
    assert budget["selector"]["matchLabels"] == labels
    assert budget["minAvailable"] < object_of_kind("Deployment")["spec"]["replicas"]
    assert object_of_kind("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"] == "easel"
    assert object_of_kind("Job")["spec"]["template"]["metadata"]["labels"] != labels


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_renders_it(tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "kubernetes")
    (folder / "secrets").mkdir()
    for file in KUSTOMIZATION["secretGenerator"][0]["files"]:
        (folder / file.partition("=")[2]).write_text("secret")
    rendered = subprocess.run(["kubectl", "kustomize", folder], check=True, capture_output=True, text=True).stdout
    kinds = {one["kind"] for one in yaml.safe_load_all(rendered)}
    assert kinds == {one["kind"] for one in OBJECTS} | {"ConfigMap", "Secret"}
