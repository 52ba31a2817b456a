terraform {
  required_providers {
    openstack = {
      source = "terraform-provider-openstack/openstack"
    }
  }
}

# What changes in a resource without making another one of it.
variable "description" {
  type    = string
  default = "first"
}

variable "image" {
  type = string
}

data "openstack_identity_role_v3" "member" {
  name = "member"
}

resource "openstack_identity_project_v3" "shop" {
  name        = "shop"
  description = var.description
  tags        = ["shop"]
}

resource "openstack_identity_user_v3" "shop" {
  name               = "shop"
  description        = var.description
  default_project_id = openstack_identity_project_v3.shop.id
  password           = "secret-of-the-shop"
}

resource "openstack_identity_role_assignment_v3" "shop" {
  user_id    = openstack_identity_user_v3.shop.id
  project_id = openstack_identity_project_v3.shop.id
  role_id    = data.openstack_identity_role_v3.member.id
}

resource "openstack_images_image_v2" "disk" {
  name             = "disk-${var.description}"
  local_file_path  = var.image
  container_format = "bare"
  disk_format      = "raw"
  min_disk_gb      = 1
  tags             = [var.description]

  properties = {
    os_distro = var.description
  }
}

resource "openstack_compute_flavor_v2" "small" {
  name        = "small"
  description = var.description
  ram         = 256
  vcpus       = 1
  disk        = 1
  is_public   = false

  extra_specs = {
    "hw:cpu_policy" = var.description == "first" ? "shared" : "dedicated"
  }
}

resource "openstack_compute_keypair_v2" "key" {
  name       = "key"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
}

resource "openstack_networking_network_v2" "front" {
  name           = "front"
  description    = var.description
  tenant_id      = openstack_identity_project_v3.shop.id
  admin_state_up = true
  mtu            = 1400
}

resource "openstack_networking_subnet_v2" "front" {
  name            = "front"
  description     = var.description
  tenant_id       = openstack_identity_project_v3.shop.id
  network_id      = openstack_networking_network_v2.front.id
  cidr            = "10.91.0.0/24"
  dns_nameservers = ["10.91.0.2"]
}

resource "openstack_networking_secgroup_v2" "web" {
  name        = "web"
  description = var.description
  tenant_id   = openstack_identity_project_v3.shop.id
}

resource "openstack_networking_secgroup_rule_v2" "https" {
  security_group_id = openstack_networking_secgroup_v2.web.id
  tenant_id         = openstack_identity_project_v3.shop.id
  direction         = "ingress"
  ethertype         = "IPv4"
  protocol          = "tcp"
  port_range_min    = 443
  port_range_max    = 443
  remote_ip_prefix  = "10.0.0.0/8"
}
