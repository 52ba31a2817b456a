#!/bin/bash
# run.sh: OpenTofu makes everything in main.tf, finds it as it was declared, changes and deletes it, in the cloud that
# OS_AUTH_URL and its like name.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PROGRAMS=$("$HERE/build.sh")
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

# The provider that was built, instead of one from a registry.
cat >"$WORK/tofurc" <<CONFIG
provider_installation {
  dev_overrides {
    "terraform-provider-openstack/openstack" = "$PROGRAMS"
  }
}
CONFIG
head -c 100000 /dev/zero >"$WORK/image"
cp "$HERE/main.tf" "$WORK"
export TF_CLI_CONFIG_FILE=$WORK/tofurc TF_IN_AUTOMATION=yes TF_VAR_image=$WORK/image

tofu() { "$PROGRAMS/tofu" -chdir="$WORK" "$@" -no-color; }

for description in first second; do
  export TF_VAR_description=$description
  tofu apply -auto-approve
  # 2 stands for a difference, and is a failure
  tofu plan -detailed-exitcode
done
tofu destroy -auto-approve
[ -z "$(tofu state list)" ]
