#!/bin/bash
# Is the controller connected to the southbound database?
[[ $(ovn-appctl --timeout=3 -t /run/ovn/ovn-controller.ctl connection-status) == connected ]]
