"""Keystone's API for the web server, made whole before the first request.

Keystone makes its policy when it is first asked for, without a lock: of several requests at once to a new worker some
meet it half made and are refused (403).
"""
from keystone.common.rbac_enforcer import enforcer
from keystone.wsgi.api import application  # noqa: F401 - what the web server looks for

enforcer.RBACEnforcer()._enforcer.load_rules()
