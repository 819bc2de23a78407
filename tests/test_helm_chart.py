"""The chart for Helm makes the objects of the example for Kustomize, whose promises `test_kubernetes.py` holds."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.settings import SECRET_SETTINGS, Settings, environment_variable_name, secret_file_variable_name

EXAMPLES = Path(__file__).parents[1] / "examples"
CHART = EXAMPLES / "helm/easel"
needs_helm = pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
ADDED_LABELS = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart"}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)


def rendered_objects(*values: str) -> dict[str, dict[str, Any]]:
    """Return the objects of a release by kind."""
    options = [option for value in values for option in ("--set", value)]
    rendered = helm("template", "easel", str(CHART), *options)
    assert rendered.returncode == 0, rendered.stderr
    return {one["kind"]: one for one in yaml.safe_load_all(rendered.stdout) if one}


def kustomized_objects(folder: Path) -> dict[str, dict[str, Any]]:
    copy = shutil.copytree(EXAMPLES / "kubernetes", folder / "kubernetes")
    (copy / "secrets").mkdir()
    for name in ("database_url", "secret_key", "metrics_token"):
        (copy / "secrets" / name).write_text("secret")
    rendered = subprocess.run(["kubectl", "kustomize", copy], check=True, capture_output=True, text=True).stdout
    return {one["kind"]: one for one in yaml.safe_load_all(rendered)}


def without_additions(value: Any) -> Any:
    """Return an object without the labels and annotations that Helm alone needs, and names as without their hashes."""
    if isinstance(value, dict):
        return {
            key: without_additions(inner)
            for key, inner in value.items()
            if key not in {*ADDED_LABELS, "annotations", "namespace", "creationTimestamp"}
        }
    if isinstance(value, list):
        return [without_additions(inner) for inner in value]
    return "easel" if isinstance(value, str) and value.startswith("easel-") and len(value) == 16 else value


@pytest.mark.slow
@needs_helm
def test_helm_finds_nothing_to_complain_about():
    linted = helm("lint", "--strict", str(CHART))
    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "[WARNING]" not in linted.stdout


@pytest.mark.slow
@needs_helm
@needs_kubectl
def test_it_makes_the_same_objects_as_kustomize(tmp_path):
    ours, theirs = without_additions(rendered_objects()), without_additions(kustomized_objects(tmp_path))
    assert ours["Job"]["metadata"].pop("name") == "easel-migrate-1"  # a new one for each upgrade
    assert theirs["Job"]["metadata"].pop("name") == "easel-migrate"
    # The autoscaler alone counts the servers, or an upgrade would undo what it did.
    assert theirs["Deployment"]["spec"].pop("replicas") == ours["HorizontalPodAutoscaler"]["spec"]["minReplicas"]
    # One namespace may have more than one release.
    theirs["NetworkPolicy"]["spec"]["podSelector"] = {"matchLabels": {"app.kubernetes.io/name": "easel"}}
    for missing in ("Namespace", "Secret"):  # `--create-namespace`, and the owner's own secret
        del theirs[missing]
    assert ours == theirs


@pytest.mark.slow
@needs_helm
def test_values_choose_what_is_made():
    usual = rendered_objects()
    assert "Ingress" not in usual
    small = rendered_objects("autoscaling.enabled=false", "replicas=1", "networkPolicy.enabled=false")
    assert small["Deployment"]["spec"]["replicas"] == 1
    assert {*usual} - {*small} == {"HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget"}
    reached = rendered_objects("ingress.enabled=true", "publicUrl=https://easel.example.org:8443", "image.tag=1")
    (rule,) = reached["Ingress"]["spec"]["rules"]
    assert rule["host"] == "easel.example.org"
    (container,) = reached["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.org/easel:1"


@pytest.mark.slow
@needs_helm
def test_more_settings_and_secrets_reach_the_server():
    made = rendered_objects("settings.EASEL_WORKERS=3", "settings.EASEL_RETENTION_DAYS=1048576", "poolSize=1048577")
    data = made["ConfigMap"]["data"]
    assert (data["EASEL_WORKERS"], data["EASEL_RETENTION_DAYS"], data["EASEL_POOL_SIZE"]) == ("3", "1048576", "1048577")
    made = rendered_objects("secret.files.EASEL_SMTP_URL_FILE=smtp_url", "metrics.enabled=false")
    (container,) = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    files = {one["name"]: one["value"] for one in container["env"]}
    assert files["EASEL_SMTP_URL_FILE"] == "/run/secrets/easel/smtp_url"
    assert "EASEL_METRICS_TOKEN_FILE" not in files
    assert {*files} <= {secret_file_variable_name(field) for field in SECRET_SETTINGS}
    known = {environment_variable_name(field) for field in Settings.model_fields}
    assert {*made["ConfigMap"]["data"]} <= known


@pytest.mark.slow
@needs_helm
@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("workerz=3", "additional properties 'workerz' not allowed"),
        ("publicUrl=scale.example.org", "/publicUrl"),
        ("replicas=0", "/replicas"),
        ("settings.SECRET=1", "'SECRET' does not match"),
    ],
)
def test_a_wrong_value_is_named(value, complaint):
    refused = helm("template", "easel", str(CHART), "--set", value)
    assert refused.returncode != 0
    assert complaint in refused.stderr


def test_each_value_is_described_by_the_schema():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert {*values} == {*schema["properties"]} - {"global"}
    for name, inner in schema["properties"].items():
        if inner.get("additionalProperties") is False:
            assert {*values[name]} == {*inner["properties"]}


def test_its_version_is_that_of_the_project():
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (EXAMPLES.parent / "pyproject.toml").read_text()
    assert f'version = "{chart["version"]}"' in project
    assert chart["appVersion"] == chart["version"]
