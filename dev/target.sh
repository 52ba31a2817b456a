# shellcheck shell=bash disable=SC2034
# Which cluster the entry points work on. Sourced after lib.sh and k8s/cluster.sh.

# LOCAL: our own cluster on this machine, unless KUBECONFIG names another one.
if [ -z "${KUBECONFIG:-}" ] || [ "$(readlink -m "$KUBECONFIG")" = "$(readlink -m "$LOCAL_KUBECONFIG")" ]; then
  LOCAL=yes
  export KUBECONFIG=$LOCAL_KUBECONFIG
else
  LOCAL=
fi

OPERATOR_NAMESPACE=kupenstack-system
CLOUD_NAMESPACE=openstack
export PATH=$TOOLS:$REPO/dev/bin:$PATH
